// Zero-copy inputs and outputs: the same bytes as the copying calls in every layout, no copies where none are needed, no
// allocations, memory of the caller's for everything.
#include <sys/mman.h>

#include <fstream>

#include "base/half.h"
#include "base/log.h"
#include "capi_models.h"
#include "failing_allocation.h"
#include "format_sample.h"
#include "ops/eval.h"
#include "sim/executor.h"
#include "temporary_folder.h"
#include "test_paths.h"
#include "toolkit/builder.h"

namespace orknn::tests {
namespace {

// What the copying calls make of uint8 NHWC pixels.
std::vector<uint8_t> expected_output(const std::vector<std::byte>& model, const std::vector<uint8_t>& pixels, bool as_float) {
  TestContext context(model);
  context.set_input(pixels, RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  return context.output(as_float);
}

// Pixels in rows of `row` pixels.
std::vector<uint8_t> pitched(const std::vector<uint8_t>& pixels, size_t height, size_t width, size_t channels, size_t row) {
  std::vector<uint8_t> out(height * row * channels, 0xcc);
  for (size_t h = 0; h < height; ++h)
    std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(h * width * channels), width * channels,
                out.begin() + static_cast<std::ptrdiff_t>(h * row * channels));
  return out;
}

TEST(CApiZeroCopy, RowsOfPicturesArePadded) {
  const std::vector<std::byte> model = bytes_of(int8_model(3, 4, 5));
  const std::vector<uint8_t> pixels = ramp<uint8_t>(60);
  TestContext context(model);
  rknn_tensor_attr in = context.attr(RKNN_QUERY_NATIVE_INPUT_ATTR), out = context.attr(RKNN_QUERY_OUTPUT_ATTR);
  EXPECT_EQ(in.w_stride, 16u);
  EXPECT_EQ(in.size_with_stride, 4u * 16 * 3);
  in.type = RKNN_TENSOR_UINT8;
  TestMemory input(context, in.size_with_stride), output(context, out.n_elems);
  ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_set_io_mem(context, output, &out), RKNN_SUCC) << orknn_last_error();
  input.fill(pitched(pixels, 4, 5, 3, 16));  // read at the run, not when it is bound
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(output.bytes(out.n_elems), expected_output(model, pixels, false));
  EXPECT_EQ(context.output(), expected_output(model, pixels, false)) << "rknn_outputs_get works as well";
  out.type = RKNN_TENSOR_FLOAT32;
  TestMemory floats(context, out.n_elems * 4);
  ASSERT_EQ(rknn_set_io_mem(context, floats, &out), RKNN_SUCC) << "bound again";
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(floats.bytes(out.n_elems * 4), expected_output(model, pixels, true));
}

// What the NPU has in NCHW is not read row by row: rows of such inputs lie side by side, and the attributes say so.
TEST(CApiZeroCopy, RowsOfOtherTypesAreDense) {
  TestContext context(bytes_of(capi_model(R"(graph "g" (%x: int64[1,3,4,5]) -> (%y) {
  %y: int64[1,3,4,5] = Identity(%x)
})")));
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR), out = context.attr(RKNN_QUERY_OUTPUT_ATTR);
  EXPECT_EQ(in.fmt, RKNN_TENSOR_NHWC);
  EXPECT_EQ(in.w_stride, 5u);
  EXPECT_EQ(in.size_with_stride, in.size);
  TestMemory input(context, in.size_with_stride), output(context, out.size);
  ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_set_io_mem(context, output, &out), RKNN_SUCC) << orknn_last_error();
  input.fill(ramp<int64_t>(60));
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  const auto* y = reinterpret_cast<const int64_t*>(output.data());
  for (size_t pixel = 0; pixel < 20; ++pixel)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(y[c * 20 + pixel], ramp<int64_t>(60)[pixel * 3 + c]);
}

// Every layout of the output against the general call, for full and for partial blocks of channels.
class EveryLayout : public testing::TestWithParam<std::pair<const char*, int64_t>> {};
TEST_P(EveryLayout, HasTheSameValues) {
  const auto [chip, channels] = GetParam();
  const int64_t c_out = 2 * channels, h = 4, w = 5, pixels = h * w;
  const std::vector<std::byte> model = bytes_of(int8_model(channels, h, w, chip));
  const std::vector<uint8_t> picture = ramp<uint8_t>(static_cast<size_t>(channels * pixels));
  const std::vector<uint8_t> nchw = expected_output(model, picture, false);
  TestContext context(model);
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR);
  in.type = RKNN_TENSOR_UINT8;
  TestMemory input(context, in.size_with_stride);
  input.fill(pitched(picture, 4, 5, static_cast<size_t>(channels), in.w_stride ? in.w_stride : 5));
  ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC) << orknn_last_error();

  rknn_tensor_attr native = context.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR), nhwc = context.attr(RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR);
  ASSERT_EQ(native.fmt, RKNN_TENSOR_NC1HWC2);
  ASSERT_EQ(nhwc.fmt, RKNN_TENSOR_NHWC);
  TestMemory blocks(context, native.size);
  std::memset(blocks.data(), 0x55, native.size);
  ASSERT_EQ(rknn_set_io_mem(context, blocks, &native), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  const int64_t lanes = native.dims[4], blocks_of_channels = native.dims[1];
  EXPECT_EQ(blocks_of_channels, (c_out + lanes - 1) / lanes);
  for (int64_t c = 0; c < blocks_of_channels * lanes; ++c)
    for (int64_t p = 0; p < pixels; ++p)
      ASSERT_EQ(blocks.data()[((c / lanes) * pixels + p) * lanes + c % lanes],
                c < c_out ? nchw[static_cast<size_t>(c * pixels + p)] : 0)
          << "channel " << c << " pixel " << p;

  TestMemory dense(context, nhwc.size);
  ASSERT_EQ(rknn_set_io_mem(context, dense, &nhwc), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  for (int64_t c = 0; c < c_out; ++c)
    for (int64_t p = 0; p < pixels; ++p) ASSERT_EQ(dense.data()[p * c_out + c], nchw[static_cast<size_t>(c * pixels + p)]);

  // Dequantized blocks, as halves.
  native.type = RKNN_TENSOR_FLOAT16;
  TestMemory halves(context, native.n_elems * 2);
  ASSERT_EQ(rknn_set_io_mem(context, halves, &native), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  const auto* half = reinterpret_cast<const uint16_t*>(halves.data());
  EXPECT_EQ(half_to_float(half[0]), (static_cast<float>(static_cast<int8_t>(nchw[0])) - 3) * 0.5f);
  EXPECT_EQ(half_to_float(half[lanes]), (static_cast<float>(static_cast<int8_t>(nchw[1])) - 3) * 0.5f);
}
INSTANTIATE_TEST_SUITE_P(CApiZeroCopy, EveryLayout,
                         testing::Values(std::pair{"rk3588", int64_t{3}}, std::pair{"rk3588", int64_t{8}},
                                         std::pair{"rk3588", int64_t{13}}, std::pair{"rk3566", int64_t{13}},
                                         std::pair{"rk3566", int64_t{4}}));

// Blocks passed through as the first layer wants them, against plain int8 data.
TEST(CApiZeroCopy, NativeInputsPassThrough) {
  const std::vector<std::byte> model = bytes_of(int8_model(13, 4, 5));
  const std::vector<int8_t> nhwc = ramp<int8_t>(13 * 20);
  TestContext plain(model);
  plain.set_input(nhwc, RKNN_TENSOR_INT8, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_run(plain, nullptr), RKNN_SUCC);
  TestContext context(model);
  rknn_tensor_attr in = context.attr(RKNN_QUERY_NATIVE_INPUT_ATTR), out = context.attr(RKNN_QUERY_OUTPUT_ATTR);
  ASSERT_EQ(in.fmt, RKNN_TENSOR_NC1HWC2);
  in.pass_through = 1;
  TestMemory input(context, in.size), output(context, out.size);
  for (size_t p = 0; p < 20; ++p)
    for (size_t c = 0; c < 13; ++c) input.data()[p * 16 + c] = static_cast<uint8_t>(nhwc[p * 13 + c]);
  ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_set_io_mem(context, output, &out), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(output.bytes(out.size), plain.output());
  // The same blocks through the copying call.
  rknn_input copied{};
  copied.buf = input.data();
  copied.size = in.size;
  copied.pass_through = 1;
  ASSERT_EQ(rknn_inputs_set(context, 1, &copied), RKNN_SUCC) << orknn_last_error();
  std::memset(input.data(), 0, in.size);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(output.bytes(out.size), plain.output()) << "what was set last counts";
}

TEST(CApiZeroCopy, InputAndOutputMayBeTheSameMemory) {
  const std::vector<std::byte> model = bytes_of(capi_model(R"(graph "g" (%x: float16[64]) -> (%y) {
  %r: float16[64] = Neg(%x)
  %y: float16[64] = Add(%r, %x)
})"));
  TestContext context(model);
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR), out = context.attr(RKNN_QUERY_OUTPUT_ATTR);
  TestMemory both(context, in.size);
  both.fill(std::vector<uint16_t>(64, float_to_half(3.f)));
  ASSERT_EQ(rknn_set_io_mem(context, both, &in), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_set_io_mem(context, both, &out), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(both.bytes(128), std::vector<uint8_t>(128, 0)) << "-x + x";
}

TEST(CApiZeroCopy, OffsetsAndForeignMemory) {
  const std::vector<std::byte> model = bytes_of(int8_model(4, 2, 16));
  const std::vector<uint8_t> pixels = ramp<uint8_t>(128);
  TestContext context(model);
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR), out = context.attr(RKNN_QUERY_OUTPUT_ATTR);
  in.type = RKNN_TENSOR_UINT8;
  TestMemory block(context, 8192);
  rknn_tensor_mem* input = rknn_create_mem_from_fd(context, block->fd, block->virt_addr, 128, 1001);
  void* foreign = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  rknn_tensor_mem* output = rknn_create_mem_from_phys(context, 0x1234000, foreign, 256);
  std::memcpy(block.data() + 1001, pixels.data(), pixels.size());
  ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_set_io_mem(context, output, &out), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  const auto* found = static_cast<const uint8_t*>(foreign);
  EXPECT_EQ(std::vector<uint8_t>(found, found + 256), expected_output(model, pixels, false));
  munmap(foreign, 4096);
  EXPECT_EQ(rknn_destroy_mem(context, output), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(context, input), RKNN_SUCC);
}

TEST(CApiZeroCopy, DestroyedMemoryStaysUntilTheContextLetsGo) {
  const std::vector<std::byte> model = bytes_of(int8_model(4, 2, 16));
  TestContext context(model);
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR);
  in.type = RKNN_TENSOR_UINT8;
  rknn_tensor_mem* input = rknn_create_mem(context, in.size_with_stride);
  ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(context, input), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
}

// A run whose memory is bound allocates nothing: neither with floats that are read and written in place nor with pictures that
// are rearranged and converted on the way in and become blocks on the way out.
TEST(CApiZeroCopy, ARunAllocatesNothing) {
  for (const bool rearranged : {false, true}) {
    const std::vector<std::byte> model = rearranged ? bytes_of(capi_model(R"(graph "g" (%x: float16[1,3,32,31]) -> (%y) {
  %s: float16[3] = const {0.5, 1, 2}
  %a: float16[1,3,32,31] = Sigmoid(%x)
  %b: float16[1,3,32,31] = BatchNormalization(%a, %s, %s, %s, %s) + Relu() + Add(%a)
  %y: float16[1,3,32,31] = Neg(%b)
})"))
                                                    : bytes_of(chain_model(4, 1000));
    TestContext context(model);
    rknn_tensor_attr in = context.attr(RKNN_QUERY_NATIVE_INPUT_ATTR), out = context.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR);
    in.type = rearranged ? RKNN_TENSOR_UINT8 : RKNN_TENSOR_FLOAT32;
    if (!rearranged) out.type = RKNN_TENSOR_FLOAT32;
    TestMemory input(context, in.n_elems * 4), output(context, out.n_elems * 4);
    ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC) << orknn_last_error();
    ASSERT_EQ(rknn_set_io_mem(context, output, &out), RKNN_SUCC) << orknn_last_error();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    const FailingAllocation allocations(FailingAllocation::kNone);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    EXPECT_EQ(allocations.counted(), 0) << (rearranged ? "pictures" : "floats");
  }
}

// What no fast kernel computes, in the types of real models: shapes, indices, comparisons, halves, and operators that have one
// but cannot be planned, because their parameters are computed.
TEST(CApiZeroCopy, RunsOfReferenceKernelsAllocateNothing) {
  ASSERT_EQ(orknn_set_thread_count(1), RKNN_SUCC);
  const struct {
    const char *ports, *body;
    std::vector<std::vector<int64_t>> parameters = {};  // the elements of the last inputs
  } rows[] = {
      {"(%x: int64[2,5,6]) -> (%y)", "%y: int64[2,5,6] = Add(%x, %x)"},
      {"(%x: int64[2,5,6]) -> (%y)", "%k: int64[6] = const {1, 2, 3, 4, 5, 6}\n  %y: int64[2,5,6] = Mul(%x, %k)"},
      {"(%x: float32[4,1,6], %z: float32[5,1]) -> (%y)",
       "%g: bool[4,5,6] = Greater(%x, %z)\n  %y: float32[4,5,6] = Where(%g, %x, %z)"},
      {"(%x: float32[2,2,2,2,2,2,2,2,2]) -> (%y)",
       "%k: float32[2,1,2,1,2,1,2,1,2] = const "
       "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32}"
       "\n  %y: bool[2,2,2,2,2,2,2,2,2] = Less(%x, %k)"},
      {"(%x: int64[3,7], %z: int64[3,7]) -> (%y)", "%y: int64[3,7] = Max(%x, %z)"},
      {"(%x: float16[3,7]) -> (%y)", "%y: int64[3,1] = ArgMax(%x) {axis=1}"},
      {"(%x: float32[3,7,2]) -> (%y)", "%y: int64[7,2] = ArgMin(%x) {axis=0, keepdims=0}"},
      {"(%x: float16[3,9]) -> (%y, %i)", "%k: int64[1] = const {2}\n  %y: float16[3,2], %i: int64[3,2] = TopK(%x, %k)"},
      {"(%x: float32[4,6]) -> (%y)", "%i: int64[3] = const {1, 0, -1}\n  %y: float32[4,3] = Gather(%x, %i) {axis=1}"},
      {"(%x: float32[2,3]) -> (%y)", "%i: int64[2,2] = const {1, 0, 2, 2}\n  %y: float32[2,2] = GatherElements(%x, %i) {axis=1}"},
      {"(%x: float32[2,3]) -> (%y)", "%i: int64[2,2] = const {1, 0, 1, 2}\n  %y: float32[2] = GatherND(%x, %i)"},
      {"(%x: float32[4,3], %u: float32[2,3]) -> (%y)",
       "%i: int64[2,1] = const {1, 3}\n  %y: float32[4,3] = ScatterND(%x, %i, %u)"},
      {"(%x: int64[2,6], %s: int64[2]) -> (%y)", "%y: int64[3,4] = Reshape(%x, %s)", {{3, -1}}},
      {"(%x: int64[2,1,6], %a: int64[1]) -> (%y)", "%y: int64[2,6] = Squeeze(%x, %a)", {{1}}},
      {"(%x: int64[2,6], %a: int64[2]) -> (%y)", "%y: int64[1,2,6,1] = Unsqueeze(%x, %a)", {{0, 3}}},
      {"(%x: int64[2,6], %s: int64[2]) -> (%y, %z)", "%y: int64[2,2], %z: int64[2,4] = Split(%x, %s) {axis=1}", {{2, 4}}},
      {"(%x: int64[2,6], %b: int64[1], %e: int64[1], %a: int64[1], %s: int64[1]) -> (%y)",
       "%y: int64[2,2] = Slice(%x, %b, %e, %a, %s)",
       {{1}, {5}, {1}, {2}}},
      {"(%x: int64[2,3], %s: int64[3]) -> (%y)", "%y: int64[4,2,3] = Expand(%x, %s)", {{4, 2, 3}}},
      {"(%x: int64[2,3]) -> (%y)", "%s: int64[2] = const {2, 3}\n  %y: int64[4,9] = Tile(%x, %s)"},
      {"(%x: float32[2,3]) -> (%y)", "%p: int64[4] = const {1, 0, 0, 2}\n  %y: float32[3,5] = Pad(%x, %p)"},
      {"(%x: float32[4,5]) -> (%y)", "%p: int64[4] = const {1, 2, 3, 1}\n  %y: float32[8,8] = Pad(%x, %p) {mode=\"reflect\"}"},
      {"(%x: float32[4,5,6]) -> (%y)", "%a: int64[2] = const {0, 2}\n  %y: float32[5] = ReduceSum(%x, %a) {keepdims=0}"},
      {"(%x: float16[4,5], %a: int64[1]) -> (%y)", "%y: float16[4,1] = ReduceMax(%x, %a)", {{1}}},
      {"(%x: int64[4,5]) -> (%y)", "%a: int64[] = const {1}\n  %y: int64[4,5] = CumSum(%x, %a)"},
      {"(%x: float32[4,5]) -> (%y)", "%y: float32[4,5] = Trilu(%x)"},
      {"(%x: float32[4,5]) -> (%y)", "%y: int64[4,5] = Cast(%x) {to=7}"},
      {"(%x: float32[4,5]) -> (%y)", "%y: bool[4,5] = IsNaN(%x)"},
      {"(%x: bool[4,5], %z: bool[5]) -> (%y)", "%y: bool[4,5] = And(%x, %z)"},
      {"(%x: bool[4,5]) -> (%y)", "%y: bool[4,5] = Not(%x)"},
      {"(%x: int64[4,5]) -> (%y)", "%y: int64[2] = Shape(%x)"},
      {"(%x: int64[4,5]) -> (%x, %y)", "%y: int64[4,5] = Neg(%x)"},
  };
  for (const auto& [ports, body, parameters] : rows) {
    const format::Model model = capi_model("graph \"g\" " + std::string(ports) + " {\n  " + body + "\n}");
    const format::Program& program = model.programs[0];
    const auto executor = sim::Executor::create(program, ops::builtin_ops());
    ASSERT_TRUE(executor) << executor.status().to_string();
    for (size_t i = 0; i < program.tasks.size(); ++i) EXPECT_EQ((*executor)->kernel_name(i), "reference") << body;

    TestContext context(bytes_of(model));
    rknn_input_output_num count{};
    ASSERT_EQ(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count), RKNN_SUCC);
    std::vector<std::unique_ptr<TestMemory>> memory;
    for (uint32_t i = 0; i < count.n_input + count.n_output; ++i) {
      rknn_tensor_attr attr = i < count.n_input ? context.attr(RKNN_QUERY_NATIVE_INPUT_ATTR, i)
                                                : context.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR, i - count.n_input);
      memory.push_back(std::make_unique<TestMemory>(context, attr.n_elems * 8));
      ASSERT_EQ(rknn_set_io_mem(context, *memory.back(), &attr), RKNN_SUCC) << body << ": " << orknn_last_error();
    }
    for (size_t i = 0; i < parameters.size(); ++i) memory[count.n_input - parameters.size() + i]->fill(parameters[i]);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << body << ": " << orknn_last_error();
    const FailingAllocation allocations(FailingAllocation::kNone);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    EXPECT_EQ(allocations.counted(), 0) << body;
  }
  orknn_set_thread_count(0);
}

// Of the views of an output only the general one has room beyond its elements.
TEST(CApiZeroCopy, OutputsOfTheSizeTheirViewStatesAreNotWarnedOf) {
  TestContext context(bytes_of(int8_model(13, 4, 5)));
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel level, std::string_view, std::string_view line) {
    if (level == LogLevel::Warn) warnings.emplace_back(line);
  });
  const LogLevel before = log_level();
  set_log_level(LogLevel::Warn);
  const auto bind = [&](rknn_query_cmd view, bool exactly) {
    rknn_tensor_attr out = context.attr(view);
    const TestMemory memory(context, exactly ? out.size_with_stride : out.size);
    EXPECT_EQ(rknn_set_io_mem(context, memory, &out), RKNN_SUCC) << orknn_last_error();
  };
  bind(RKNN_QUERY_OUTPUT_ATTR, true);
  bind(RKNN_QUERY_NATIVE_OUTPUT_ATTR, true);
  bind(RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR, true);
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  bind(RKNN_QUERY_OUTPUT_ATTR, false);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("smaller than size_with_stride"), std::string::npos) << warnings[0];
  set_log_level(before);
  set_log_sink({});
}

// Pictures passed through the copying call: dense, or in rows as the attributes state.
TEST(CApiZeroCopy, PassedPicturesMayHaveRowsAsQueried) {
  const std::vector<std::byte> model = bytes_of(int8_model(3, 4, 5));
  const std::vector<uint8_t> pixels = ramp<uint8_t>(60);
  TestContext context(model);
  const rknn_tensor_attr attr = context.attr(RKNN_QUERY_NATIVE_INPUT_ATTR);
  ASSERT_EQ(attr.size_with_stride, 4u * 16 * 3);
  const auto result_of = [&](std::vector<uint8_t> bytes) {
    rknn_input input{};
    input.buf = bytes.data();
    input.size = static_cast<uint32_t>(bytes.size());
    input.pass_through = 1;
    EXPECT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    return context.output();
  };
  const std::vector<uint8_t> dense = result_of(pixels);
  EXPECT_EQ(dense[1], pixels[3]) << "the channel's next pixel";
  EXPECT_EQ(result_of(pitched(pixels, 4, 5, 3, 16)), dense);
}

// What clients make memory of is never 0.
TEST(CApiZeroCopy, SizesOfMemoryAreNeverZero) {
  TestContext context(bytes_of(capi_model("graph \"g\" (%x: float16[8]) -> (%y) {\n  %y: float16[8] = Neg(%x)\n}")),
                      RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  rknn_mem_size sizes{};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
  EXPECT_EQ(sizes.total_internal_size, 64u);
  EXPECT_EQ(sizes.total_weight_size, 64u);
  EXPECT_GE(sizes.total_dma_allocated_size, 128u);
  const TestMemory internal(context, sizes.total_internal_size), weights(context, sizes.total_weight_size);
  EXPECT_EQ(rknn_set_internal_mem(context, internal), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(rknn_set_weight_mem(context, weights), RKNN_SUCC) << orknn_last_error();
}

// A bundled network in int8 or float16.
std::vector<std::byte> bundled_model(const std::string& network, bool quantized) {
  const std::string folder = std::string(tests::kSourceFolder) + "/examples/models/";
  const TemporaryFolder list;
  std::ofstream(list.file("dataset.txt")) << folder << "pictures/" << (network == "shapes" ? "shape" : "boxes") << "_000.png\n";
  toolkit::BuildConfig config;
  config.target_platform = "rk3588";
  config.mean_values = config.std_values = toolkit::ChannelValues{{127.5, 127.5, 127.5}};
  auto builder = toolkit::Builder::create(config);
  EXPECT_TRUE(builder) << builder.status().to_string();
  Status s = builder->load_model({folder + network + ".onnx"});
  EXPECT_TRUE(s) << s.to_string();
  s = builder->build({.do_quantization = quantized, .dataset = list.file("dataset.txt")});
  EXPECT_TRUE(s) << s.to_string();
  return bytes_of(*builder->built()->model);
}

// Whole networks: convolutions, pooling, Concat, Resize, Softmax; on one thread and on several.
TEST(CApiZeroCopy, RunsOfNetworksAllocateNothing) {
  for (const std::string network : {"shapes", "boxes"})
    for (const bool quantized : {false, true}) {
      const std::vector<std::byte> model = bundled_model(network, quantized);
      for (const int threads : {1, 2}) {
        ASSERT_EQ(orknn_set_thread_count(threads), RKNN_SUCC);
        TestContext context(model);
        rknn_input_output_num count{};
        ASSERT_EQ(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count), RKNN_SUCC);
        rknn_tensor_attr in = context.attr(RKNN_QUERY_NATIVE_INPUT_ATTR);
        in.type = RKNN_TENSOR_UINT8;
        const TestMemory input(context, in.size_with_stride * 4);
        for (uint32_t i = 0; i < in.size_with_stride; ++i) input.data()[i] = static_cast<uint8_t>(i * 31);
        ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC) << orknn_last_error();
        std::vector<std::unique_ptr<TestMemory>> outputs;
        for (uint32_t i = 0; i < count.n_output; ++i) {
          rknn_tensor_attr out = context.attr(RKNN_QUERY_OUTPUT_ATTR, i);
          out.type = RKNN_TENSOR_FLOAT32;
          outputs.push_back(std::make_unique<TestMemory>(context, out.n_elems * 4));
          ASSERT_EQ(rknn_set_io_mem(context, *outputs.back(), &out), RKNN_SUCC) << orknn_last_error();
        }
        for (int i = 0; i < 3; ++i) ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
        const FailingAllocation allocations(FailingAllocation::kNone);
        for (int i = 0; i < 5; ++i) ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
        EXPECT_EQ(allocations.counted(), 0) << network << (quantized ? " int8, " : " float16, ") << threads << " threads";
      }
    }
  orknn_set_thread_count(0);
}

TEST(CApiZeroCopy, Refusals) {
  const std::vector<std::byte> model = bytes_of(int8_model(3, 4, 5));
  TestContext context(model);
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR), out = context.attr(RKNN_QUERY_OUTPUT_ATTR);
  in.type = RKNN_TENSOR_UINT8;
  TestMemory memory(context, 4096), small(context, in.size_with_stride - 1), tiny(context, out.n_elems - 1);
  EXPECT_EQ(rknn_set_io_mem(0, memory, &in), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_set_io_mem(context, nullptr, &in), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_io_mem(context, memory, nullptr), RKNN_ERR_PARAM_INVALID);
  rknn_tensor_mem empty{};
  EXPECT_EQ(rknn_set_io_mem(context, &empty, &in), RKNN_ERR_PARAM_INVALID);
  rknn_tensor_attr bad = in;
  std::strcpy(bad.name, "nobody");
  EXPECT_EQ(rknn_set_io_mem(context, memory, &bad), RKNN_ERR_PARAM_INVALID);
  bad = in;
  bad.index = 1;
  EXPECT_EQ(rknn_set_io_mem(context, memory, &bad), RKNN_ERR_PARAM_INVALID);
  for (const rknn_tensor_type type : {RKNN_TENSOR_INT64, RKNN_TENSOR_FLOAT16, RKNN_TENSOR_INT4, RKNN_TENSOR_BOOL}) {
    bad = in;
    bad.type = type;
    EXPECT_EQ(rknn_set_io_mem(context, memory, &bad), RKNN_ERR_PARAM_INVALID) << type;
  }
  for (const rknn_tensor_type type : {RKNN_TENSOR_UINT8, RKNN_TENSOR_INT16, RKNN_TENSOR_INT64}) {
    bad = out;
    bad.type = type;
    EXPECT_EQ(rknn_set_io_mem(context, memory, &bad), RKNN_ERR_PARAM_INVALID) << type;
  }
  bad = in;
  bad.h_stride = 3;
  EXPECT_EQ(rknn_set_io_mem(context, memory, &bad), RKNN_ERR_PARAM_INVALID);
  EXPECT_NE(std::string(orknn_last_error()).find("h_stride 3 is less than the height 4"), std::string::npos)
      << orknn_last_error();
  bad = in;
  bad.fmt = RKNN_TENSOR_UNDEFINED;
  EXPECT_EQ(rknn_set_io_mem(context, memory, &bad), RKNN_ERR_PARAM_INVALID);
  bad.fmt = RKNN_TENSOR_NC1HWC2;
  EXPECT_EQ(rknn_set_io_mem(context, memory, &bad), RKNN_ERR_PARAM_INVALID) << "pictures of three channels have no blocks";
  bad = out;
  bad.fmt = RKNN_TENSOR_FORMAT_MAX;
  EXPECT_EQ(rknn_set_io_mem(context, memory, &bad), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_io_mem(context, small, &in), RKNN_ERR_PARAM_INVALID);
  EXPECT_NE(std::string(orknn_last_error()).find("191 bytes, 192 are needed"), std::string::npos) << orknn_last_error();
  EXPECT_STREQ(orknn_context_error(context), orknn_last_error());
  EXPECT_EQ(rknn_set_io_mem(context, tiny, &out), RKNN_ERR_PARAM_INVALID);
  rknn_tensor_mem* closed = rknn_create_mem_from_fd(context, 1 << 20, memory.data(), 4096, 0);
  ASSERT_NE(closed, nullptr);
  EXPECT_EQ(rknn_set_io_mem(context, closed, &in), RKNN_ERR_MALLOC_FAIL);
  rknn_destroy_mem(context, closed);
  EXPECT_EQ(rknn_set_weight_mem(context, memory), RKNN_ERR_FAIL) << "without the flag";
  EXPECT_EQ(rknn_set_internal_mem(context, memory), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_set_weight_mem(context, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_internal_mem(context, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << "nothing of it had an effect";
}

// 16 by 16 weights.
std::vector<std::byte> weighted_model() {
  std::string weights;
  for (int i = 0; i < 4096; ++i) weights += (i ? ", " : "") + std::to_string(i % 17);
  return bytes_of(capi_model("graph \"g\" (%x: float32[1,64]) -> (%y) {\n  %w: float32[64,64] = const {" + weights +
                             "}\n  %a: float32[1,64] = MatMul(%x, %w)\n  %b: float32[1,64] = Sigmoid(%a)\n  %y: float32[1,64] = "
                             "Neg(%b)\n}"));
}

// Two contexts that run in turn on one block, all memory from outside.
TEST(CApiZeroCopy, AllMemoryFromOutside) {
  const std::vector<std::byte> model = weighted_model();
  TestContext plain(model), dry(model, RKNN_FLAG_COLLECT_MODEL_INFO_ONLY | RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  plain.set_input(ramp<float>(64), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  ASSERT_EQ(rknn_run(plain, nullptr), RKNN_SUCC);
  rknn_mem_size sizes;
  ASSERT_EQ(rknn_query(dry, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
  EXPECT_GE(sizes.total_weight_size, 64u * 64 * 4);
  EXPECT_GT(sizes.total_internal_size, 0u);
  TestContext first(model, RKNN_FLAG_MEM_ALLOC_OUTSIDE), second(model, RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  TestMemory internal(first, sizes.total_internal_size), weights(first, sizes.total_weight_size), small(first, 64);
  rknn_tensor_mem* shared = rknn_create_mem_from_fd(second, internal->fd, internal->virt_addr, internal->size, 0);
  std::vector<std::unique_ptr<TestMemory>> ports;
  for (rknn_context context : {static_cast<rknn_context>(first), static_cast<rknn_context>(second)}) {
    rknn_input refused{};
    refused.buf = small.data();
    refused.size = 256;
    EXPECT_EQ(rknn_inputs_set(context, 1, &refused), RKNN_ERR_FAIL);
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL) << "weights are missing";
    EXPECT_EQ(rknn_set_weight_mem(context, small), RKNN_ERR_PARAM_INVALID);
    ASSERT_EQ(rknn_set_weight_mem(context, weights), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL) << "activations are missing";
    EXPECT_EQ(rknn_set_internal_mem(context, small), RKNN_ERR_PARAM_INVALID);
    ASSERT_EQ(rknn_set_internal_mem(context, shared), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL) << "inputs are missing";
    const TestContext& asked = context == first ? first : second;
    for (const rknn_query_cmd command : {RKNN_QUERY_INPUT_ATTR, RKNN_QUERY_OUTPUT_ATTR}) {
      EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
      rknn_tensor_attr attr = asked.attr(command);
      attr.type = RKNN_TENSOR_FLOAT32;
      ports.push_back(std::make_unique<TestMemory>(context, 256));
      ASSERT_EQ(rknn_set_io_mem(context, *ports.back(), &attr), RKNN_SUCC) << orknn_last_error();
    }
  }
  ports[0]->fill(ramp<float>(64));
  ports[2]->fill(ramp<float>(64));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(rknn_run(first, nullptr), RKNN_SUCC) << orknn_last_error();
    ASSERT_EQ(rknn_run(second, nullptr), RKNN_SUCC) << orknn_last_error();
  }
  EXPECT_EQ(ports[1]->bytes(256), plain.output(true));
  EXPECT_EQ(ports[3]->bytes(256), plain.output(true));
  EXPECT_TRUE(std::any_of(weights.data(), weights.data() + weights->size, [](uint8_t b) { return b != 0; }))
      << "weights are there";
  EXPECT_TRUE(std::any_of(internal.data(), internal.data() + internal->size, [](uint8_t b) { return b != 0; }))
      << "activations were computed there";
  rknn_destroy_mem(second, shared);
}

TEST(CApiZeroCopy, InternalMemoryAloneFromOutside) {
  const std::vector<std::byte> model = weighted_model();
  TestContext context(model, RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE);
  context.set_input(ramp<float>(64), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
  rknn_mem_size sizes;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
  TestMemory internal(context, sizes.total_internal_size);
  EXPECT_EQ(rknn_set_weight_mem(context, internal), RKNN_ERR_PARAM_INVALID);
  ASSERT_EQ(rknn_set_internal_mem(context, internal), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
}

// The model is used where it lies; its memory may go before or after the context.
TEST(CApiZeroCopy, TheModelBuffer) {
  const std::vector<std::byte> model = weighted_model();
  for (const bool freed_first : {false, true}) {
    rknn_tensor_mem* buffer = rknn_create_mem2(0, model.size() + 64, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
    ASSERT_NE(buffer, nullptr);
    std::memcpy(static_cast<std::byte*>(buffer->virt_addr) + 64, model.data(), model.size());
    rknn_init_extend extend{};
    extend.real_model_offset = 64;
    extend.real_model_size = static_cast<uint32_t>(model.size());
    extend.model_buffer_fd = buffer->fd;
    extend.model_buffer_flags = buffer->flags;
    rknn_context context = 0;
    ASSERT_EQ(rknn_init(&context, buffer->virt_addr, buffer->size, RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, &extend), RKNN_SUCC)
        << orknn_last_error();
    rknn_tensor_mem found{};
    ASSERT_EQ(rknn_query(context, RKNN_QUERY_DEVICE_MEM_INFO, &found, sizeof found), RKNN_SUCC);
    EXPECT_EQ(found.virt_addr, buffer->virt_addr);
    EXPECT_EQ(found.phys_addr, buffer->phys_addr);
    EXPECT_EQ(found.fd, buffer->fd);
    EXPECT_EQ(found.offset, 64);
    if (freed_first) rknn_destroy_mem(context, buffer);
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
    if (!freed_first) rknn_destroy_mem(context, buffer);
    extend.real_model_offset = 1 << 30;
    EXPECT_EQ(rknn_init(&context, const_cast<std::byte*>(model.data()), static_cast<uint32_t>(model.size()),
                        RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, &extend),
              RKNN_ERR_PARAM_INVALID);
    extend.model_buffer_fd = -1;
    EXPECT_EQ(rknn_init(&context, const_cast<std::byte*>(model.data()), static_cast<uint32_t>(model.size()),
                        RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, &extend),
              RKNN_ERR_PARAM_INVALID);
  }
}

TEST(CApiZeroCopy, DeviceMemoryOfACopiedModel) {
  const std::vector<std::byte> model = weighted_model();
  TestContext context(model);
  rknn_tensor_mem memory{};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_DEVICE_MEM_INFO, &memory, sizeof memory), RKNN_SUCC);
  EXPECT_EQ(memory.size, model.size());
  EXPECT_GT(memory.fd, 2);
  EXPECT_EQ(std::memcmp(memory.virt_addr, model.data(), model.size()), 0);
  TestContext dry(model, RKNN_FLAG_COLLECT_MODEL_INFO_ONLY);
  EXPECT_EQ(rknn_query(dry, RKNN_QUERY_DEVICE_MEM_INFO, &memory, sizeof memory), RKNN_ERR_FAIL);
  ASSERT_EQ(orknn_set_platform("rk3588"), RKNN_SUCC);
  {
    TestContext chosen(weighted_model());
    EXPECT_EQ(rknn_query(chosen, RKNN_QUERY_DEVICE_MEM_INFO, &memory, sizeof memory), RKNN_SUCC) << "of every chip";
  }
  EXPECT_EQ(orknn_set_platform(nullptr), RKNN_SUCC);
}

}  // namespace
}  // namespace orknn::tests
