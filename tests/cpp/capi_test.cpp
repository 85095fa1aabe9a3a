// The C API: results, error codes, tolerance for what real client programs do.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/half.h"
#include "base/log.h"
#include "format/rknn_file.h"
#include "format_sample.h"
#include "openrknn.h"
#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "runtime/session.h"
#include "temporary_folder.h"
#include "test_paths.h"
#include "toolkit/builder.h"

namespace orknn {
namespace {
// The sample: x float16[1,3,2,2] NCHW with mean {1,2,3}, std {2,4,8}; y = relu(relu(xn) * {1,2,0.5} + {4,5,6}) * {3.5,-3.5,0.75};
// z = the middle value as [3,4].
std::vector<std::byte> sample_bytes() { return *format::write_rknn_to_memory(format::sample_model()); }

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::byte> bytes = sample_bytes();
    ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC)
        << orknn_last_error();
    ASSERT_NE(context, 0u);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});  // the caller's buffer is free after the call
  }
  void TearDown() override { rknn_destroy(context); }

  static rknn_input input_of(void* buf, uint32_t size, rknn_tensor_type type, rknn_tensor_format fmt) {
    rknn_input input{};
    input.buf = buf;
    input.size = size;
    input.type = type;
    input.fmt = fmt;
    return input;
  }
  std::vector<float> outputs(uint32_t which) {
    rknn_output out[2] = {};
    out[0].want_float = out[1].want_float = 1;
    EXPECT_EQ(rknn_outputs_get(context, 2, out, nullptr), RKNN_SUCC) << orknn_last_error();
    const auto* p = static_cast<const float*>(out[which].buf);
    std::vector<float> values(p, p + out[which].size / 4);
    EXPECT_EQ(rknn_outputs_release(context, 2, out), RKNN_SUCC);
    EXPECT_EQ(out[0].buf, nullptr);
    return values;
  }
  rknn_context context = 0;
};

// (x - mean) / std and the model's own arithmetic, for pixels x[c][p].
std::vector<float> expected_middle(const std::vector<std::vector<float>>& x, bool normalize) {
  const float mean[] = {1, 2, 3}, std[] = {2, 4, 8}, w[] = {1, 2, 0.5f};
  std::vector<float> out;
  for (size_t c = 0; c < 3; ++c)
    for (float v : x[c])
      out.push_back(half_to_float(
          float_to_half(std::max(half_to_float(float_to_half(normalize ? (v - mean[c]) / std[c] : v)), 0.f) * w[c])));
  return out;
}

TEST_F(CApi, NumbersAndAttributes) {
  rknn_input_output_num number;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number), RKNN_SUCC);
  EXPECT_EQ(number.n_input, 1u);
  EXPECT_EQ(number.n_output, 2u);
  rknn_tensor_attr attr;
  std::memset(&attr, 0xee, sizeof attr);
  attr.index = 0;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_EQ(attr.index, 0u);
  EXPECT_EQ(attr.fmt, RKNN_TENSOR_NHWC);
  EXPECT_EQ(attr.type, RKNN_TENSOR_FLOAT16);
  EXPECT_EQ(attr.qnt_type, RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC);
  EXPECT_EQ(attr.n_dims, 4u);
  EXPECT_EQ(std::vector<uint32_t>(attr.dims, attr.dims + 5), (std::vector<uint32_t>{1, 2, 2, 3, 0}));
  EXPECT_EQ(attr.n_elems, 12u);
  EXPECT_EQ(attr.size, 24u);
  EXPECT_EQ(attr.w_stride, 8u);  // 16 bytes of half a pixel's channel row
  EXPECT_EQ(attr.scale, 1.0f);
  EXPECT_STREQ(attr.name, "x");
  attr.index = 1;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_OUTPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_EQ(attr.fmt, RKNN_TENSOR_UNDEFINED);
  EXPECT_EQ(std::vector<uint32_t>(attr.dims, attr.dims + 3), (std::vector<uint32_t>{3, 4, 0}));
  EXPECT_EQ(attr.w_stride, 0u);
  EXPECT_EQ(attr.size_with_stride, attr.size);
  attr.index = 0;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_NATIVE_OUTPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_EQ(attr.fmt, RKNN_TENSOR_NC1HWC2);
  EXPECT_EQ(std::vector<uint32_t>(attr.dims, attr.dims + 5), (std::vector<uint32_t>{1, 1, 2, 2, 8}));
}

TEST_F(CApi, PixelsAreNormalized) {
  uint8_t pixels[2][2][3] = {{{10, 20, 30}, {40, 50, 60}}, {{70, 80, 90}, {0, 1, 2}}};
  rknn_input input = input_of(pixels, sizeof pixels, RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC) << orknn_last_error();
  std::memset(pixels, 0, sizeof pixels);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(outputs(1), expected_middle({{10, 40, 70, 0}, {20, 50, 80, 1}, {30, 60, 90, 2}}, true));
}

TEST_F(CApi, FloatsInEitherOrderGiveTheSame) {
  float nchw[12], nhwc[12];
  for (int c = 0; c < 3; ++c)
    for (int p = 0; p < 4; ++p) nchw[c * 4 + p] = nhwc[p * 3 + c] = static_cast<float>(c * 10 + p);
  rknn_input input = input_of(nchw, sizeof nchw, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  ASSERT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  const auto first = outputs(0);
  input = input_of(nhwc, sizeof nhwc, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(outputs(0), first);
}

TEST_F(CApi, HalvesAndPassThroughAreNotNormalized) {
  Half halves[12];  // NHWC
  for (int i = 0; i < 12; ++i) halves[i] = Half(static_cast<float>(i));
  const auto expected = expected_middle({{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8, 11}}, false);
  rknn_input input = input_of(halves, sizeof halves, RKNN_TENSOR_FLOAT16, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(outputs(1), expected);
  input.pass_through = 1;
  input.type = RKNN_TENSOR_UINT8;  // ignored
  ASSERT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(outputs(1), expected);
}

TEST_F(CApi, RunsOnZerosWithoutInputs) {
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(outputs(1), std::vector<float>(12, 0.f));
}

TEST_F(CApi, OutputsComeInTheModelsTypeOrAsFloat) {
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  rknn_output out{};
  ASSERT_EQ(rknn_outputs_get(context, 1, &out, nullptr), RKNN_SUCC);
  EXPECT_EQ(out.size, 24u);
  EXPECT_EQ(half_to_float(static_cast<uint16_t*>(out.buf)[0]), 4 * 3.5f);
  float mine[12];
  rknn_output given{};
  given.want_float = given.is_prealloc = 1;
  given.buf = mine;
  given.size = sizeof mine;
  ASSERT_EQ(rknn_outputs_get(context, 1, &given, nullptr), RKNN_SUCC);
  EXPECT_EQ(mine[0], 4 * 3.5f);
  EXPECT_EQ(mine[11], 6 * 0.75f);
  EXPECT_EQ(rknn_outputs_release(context, 1, &given), RKNN_SUCC);
  EXPECT_EQ(given.buf, mine);
  given.size = 47;
  EXPECT_EQ(rknn_outputs_get(context, 1, &given, nullptr), RKNN_ERR_PARAM_INVALID);
  given.buf = nullptr;
  EXPECT_EQ(rknn_outputs_get(context, 1, &given, nullptr), RKNN_ERR_OUTPUT_INVALID);
}

TEST_F(CApi, OutputsGoByPositionUnlessIndicesAreDistinct) {
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  rknn_output out[2] = {};
  out[0].index = 1;
  ASSERT_EQ(rknn_outputs_get(context, 2, out, nullptr), RKNN_SUCC);  // 1 and 0
  EXPECT_EQ(out[0].index, 1u);
  EXPECT_EQ(static_cast<uint16_t*>(out[0].buf)[0], 0);
  rknn_outputs_release(context, 2, out);
  out[0].index = out[1].index = 7;
  ASSERT_EQ(rknn_outputs_get(context, 2, out, nullptr), RKNN_SUCC);
  EXPECT_EQ(out[0].index, 0u);
  EXPECT_EQ(out[1].index, 1u);
  // Not released: destroying the context frees them.
}

TEST_F(CApi, QueryChecks) {
  rknn_tensor_attr attr{};
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_INPUT_ATTR, nullptr, 0), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, 372), RKNN_ERR_PARAM_INVALID);
  EXPECT_NE(std::string(orknn_last_error()).find("372"), std::string::npos) << orknn_last_error();
  attr.index = 1;
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_CMD_MAX, &attr, sizeof attr), RKNN_ERR_PARAM_INVALID);
  attr.index = 0;
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_CURRENT_INPUT_ATTR, &attr, sizeof attr), RKNN_ERR_MODEL_INVALID);
  auto range = std::make_unique<rknn_input_range>();
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_INPUT_DYNAMIC_RANGE, range.get(), sizeof *range), RKNN_ERR_MODEL_INVALID);
  EXPECT_EQ(rknn_query(0, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_query(context + 1000, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_ERR_CTX_INVALID);
  rknn_custom_string text;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_CUSTOM_STRING, &text, sizeof text), RKNN_SUCC);
  EXPECT_STREQ(text.string, "hello");
  EXPECT_STREQ(orknn_last_error(), "");
  rknn_perf_detail detail;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail), RKNN_SUCC);
  EXPECT_NE(detail.perf_data, nullptr);
  rknn_mem_size memory;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &memory, sizeof memory), RKNN_SUCC);
  EXPECT_GT(memory.total_weight_size, 0u);
  EXPECT_EQ(memory.total_internal_size % 64, 0u);
}

TEST_F(CApi, InputChecks) {
  float data[12] = {};
  rknn_input good = input_of(data, sizeof data, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC), bad = good;
  EXPECT_EQ(rknn_inputs_set(context, 0, &good), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_inputs_set(context, 2, &good), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_inputs_set(context, 1, nullptr), RKNN_ERR_PARAM_INVALID);
  bad.index = 1;
  EXPECT_EQ(rknn_inputs_set(context, 1, &bad), RKNN_ERR_INPUT_INVALID);
  bad = good;
  bad.buf = nullptr;
  EXPECT_EQ(rknn_inputs_set(context, 1, &bad), RKNN_ERR_INPUT_INVALID);
  bad = good;
  bad.type = RKNN_TENSOR_INT4;
  EXPECT_EQ(rknn_inputs_set(context, 1, &bad), RKNN_ERR_INPUT_INVALID);
  bad = good;
  bad.fmt = RKNN_TENSOR_FORMAT_MAX;
  EXPECT_EQ(rknn_inputs_set(context, 1, &bad), RKNN_ERR_INPUT_INVALID);
  bad = good;
  bad.size = 47;
  EXPECT_EQ(rknn_inputs_set(context, 1, &bad), RKNN_ERR_PARAM_INVALID);
  good.size = 1000;  // more than needed is fine; only what is needed is read
  EXPECT_EQ(rknn_inputs_set(context, 1, &good), RKNN_SUCC);
}

TEST_F(CApi, OutputChecks) {
  rknn_output out[3] = {};
  EXPECT_EQ(rknn_outputs_get(context, 1, out, nullptr), RKNN_ERR_FAIL) << "no run yet";
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(rknn_outputs_get(context, 3, out, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_outputs_get(context, 0, out, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_outputs_get(context, 1, nullptr, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_outputs_release(context, 1, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_outputs_release(context, 3, out), RKNN_SUCC) << "never filled";
  int foreign = 0;
  out[0].buf = &foreign;
  EXPECT_EQ(rknn_outputs_release(context, 1, out), RKNN_SUCC);
}

TEST_F(CApi, OneContextFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
        rknn_output out{};
        EXPECT_EQ(rknn_outputs_get(context, 1, &out, nullptr), RKNN_SUCC);
        EXPECT_EQ(rknn_outputs_release(context, 1, &out), RKNN_SUCC);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST(CApiInit, Checks) {
  std::vector<std::byte> bytes = sample_bytes();
  const auto size = static_cast<uint32_t>(bytes.size());
  rknn_context context = 77;
  EXPECT_EQ(rknn_init(nullptr, bytes.data(), size, 0, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_init(&context, nullptr, size, 0, nullptr), RKNN_ERR_PARAM_INVALID);
  std::string missing = "/nonexistent/model.rknn";
  EXPECT_EQ(rknn_init(&context, missing.data(), 0, 0, nullptr), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_init(&context, bytes.data(), size - 1, 0, nullptr), RKNN_ERR_MODEL_INVALID);
  EXPECT_EQ(rknn_init(&context, bytes.data(), 3, 0, nullptr), RKNN_ERR_MODEL_INVALID);
  EXPECT_EQ(rknn_init(&context, bytes.data(), size, RKNN_FLAG_SHARE_WEIGHT_MEM, nullptr), RKNN_ERR_PARAM_INVALID);
  rknn_init_extend extend{};
  EXPECT_EQ(rknn_init(&context, bytes.data(), size, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_init(&context, bytes.data(), size, RKNN_FLAG_SHARE_SRAM, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_init(&context, bytes.data(), size, RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(context, 77u) << "a refused call writes no handle";
}

TEST(CApiInit, FromAPathAndFromInsideAFile) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("capi_path.rknn");
  ASSERT_TRUE(format::write_rknn(format::sample_model(), path));
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, const_cast<char*>(path.c_str()), 0, 0, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy(context), RKNN_ERR_CTX_INVALID);
  const std::vector<std::byte> bytes = sample_bytes();
  const std::string larger = folder.file("capi_larger.bin");
  std::ofstream(larger, std::ios::binary)
      .write("head", 4)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()))
      .write("tail", 4);
  rknn_init_extend extend{};
  extend.real_model_offset = 4;
  extend.real_model_size = static_cast<uint32_t>(bytes.size());
  ASSERT_EQ(rknn_init(&context, const_cast<char*>(larger.c_str()), 0, 0, &extend), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  EXPECT_EQ(rknn_init(&context, const_cast<char*>(larger.c_str()), 0, 0, nullptr), RKNN_ERR_MODEL_INVALID)
      << "the file itself is no model";
  extend.real_model_size += 8;
  EXPECT_NE(rknn_init(&context, const_cast<char*>(larger.c_str()), 0, 0, &extend), RKNN_SUCC);
  extend = {};
  extend.real_model_offset = -1;
  EXPECT_EQ(rknn_init(&context, const_cast<char*>(path.c_str()), 0, 0, &extend), RKNN_ERR_PARAM_INVALID);
  extend.real_model_offset = 1 << 30;
  EXPECT_EQ(rknn_init(&context, const_cast<char*>(path.c_str()), 0, 0, &extend), RKNN_ERR_PARAM_INVALID);
}

TEST(CApiInit, DryContextsAnswerQueriesOnly) {
  std::vector<std::byte> bytes = sample_bytes();
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), RKNN_FLAG_COLLECT_MODEL_INFO_ONLY, nullptr),
            RKNN_SUCC);
  rknn_mem_size memory;
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &memory, sizeof memory), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
  rknn_destroy(context);
}

TEST(CApiInit, LayerTimesOnRequest) {
  std::vector<std::byte> bytes = sample_bytes();
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), RKNN_FLAG_COLLECT_PERF_MASK, nullptr),
            RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  rknn_perf_detail detail;
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail), RKNN_SUCC);
  EXPECT_NE(std::string(detail.perf_data, detail.data_len).find("ReluMul"), std::string::npos);
  rknn_destroy(context);
}

// Which cores each chip has, and that they change what is predicted.
TEST(CApiCores, MaskReachesTheReports) {
  format::Model model = format::sample_model();
  for (format::Task& t : model.programs[0].tasks) {
    t.device = format::Device::Npu;
    t.core_mask = 7;
    t.pieces = 3;
    t.predicted_cycles = 3'000'000;
    t.shared_cycles = {2'000'000, 1'000'000};
  }
  const auto tasks = static_cast<int64_t>(model.programs[0].tasks.size());
  for (const char* chip : {"rk3588", "rk3566"}) {
    model.target_platform = chip;
    std::vector<std::byte> bytes = *format::write_rknn_to_memory(model);
    rknn_context context = 0;
    ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), RKNN_FLAG_COLLECT_PERF_MASK, nullptr),
              RKNN_SUCC);
    if (chip == std::string_view("rk3566")) {
      for (rknn_core_mask mask : {RKNN_NPU_CORE_AUTO, RKNN_NPU_CORE_0, RKNN_NPU_CORE_ALL})
        EXPECT_EQ(rknn_set_core_mask(context, mask), RKNN_ERR_TARGET_PLATFORM_UNMATCH);
      rknn_destroy(context);
      continue;
    }
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    const auto duration = [&] {
      rknn_perf_run run{};
      EXPECT_EQ(rknn_query(context, RKNN_QUERY_PERF_RUN, &run, sizeof run), RKNN_SUCC);
      return run.run_duration;
    };
    EXPECT_EQ(duration(), tasks * 3000);
    EXPECT_EQ(rknn_set_core_mask(context, RKNN_NPU_CORE_0_1_2), RKNN_SUCC);
    EXPECT_EQ(duration(), tasks * 1000);
    rknn_perf_detail detail;
    ASSERT_EQ(rknn_query(context, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail), RKNN_SUCC);
    EXPECT_NE(std::string(detail.perf_data, detail.data_len).find("33.3%/33.3%/33.3%"), std::string::npos);
    EXPECT_EQ(rknn_set_core_mask(context, static_cast<rknn_core_mask>(5)), RKNN_ERR_PARAM_INVALID);
    EXPECT_EQ(duration(), tasks * 1000) << "a refused mask changes nothing";
    EXPECT_EQ(rknn_set_core_mask(context, RKNN_NPU_CORE_0_1), RKNN_SUCC);
    EXPECT_EQ(duration(), tasks * 2000);
    rknn_mem_size memory;
    ASSERT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &memory, sizeof memory), RKNN_SUCC);
    EXPECT_GE(memory.total_dma_allocated_size,
              memory.total_weight_size + memory.total_internal_size + static_cast<uint64_t>(tasks) * 4096)
        << "register commands count";
    rknn_destroy(context);
  }
  EXPECT_EQ(rknn_set_core_mask(0, RKNN_NPU_CORE_0), RKNN_ERR_CTX_INVALID);
}

// A chip whose speed nobody published: the query fails instead of telling how long this machine took.
TEST(CApiSpeed, UnknownTimesAreNotMadeUp) {
  format::Model model = format::sample_model();
  model.target_platform = "rv1103b";
  std::vector<std::byte> bytes = *format::write_rknn_to_memory(model);
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  rknn_perf_run run{};
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_PERF_RUN, &run, sizeof run), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
}

TEST(CApiCustomOp, NoContextHasNoAttribute) {
  rknn_custom_op_attr attribute;
  rknn_custom_op_get_op_attr(nullptr, "alpha", &attribute);
  EXPECT_EQ(attribute.n_elems, 0u);
  EXPECT_EQ(attribute.data, nullptr);
}

TEST(CApiOwn, ThreadCount) {
  EXPECT_EQ(orknn_set_thread_count(-1), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(orknn_set_thread_count(3), RKNN_SUCC);
  std::vector<std::byte> bytes = sample_bytes();
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC);
  EXPECT_EQ(orknn_set_thread_count(0), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  rknn_destroy(context);
}

// The C99 program in tests/capi, linked with librknnrt.so, against a session in this process: same bytes.
TEST(CProgram, GivesTheSameValuesAsASession) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("capi_program.rknn");
  ASSERT_TRUE(format::write_rknn(format::sample_model(), path));
  FILE* pipe = popen((std::string(tests::kBuildFolder) + "/capi_basic " + path + " 100 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (char line[4096]; fgets(line, sizeof line, pipe);) text += line;
  EXPECT_EQ(pclose(pipe), 0) << text;
  auto session = runtime::Session::open(path);
  ASSERT_TRUE(session) << session.status().to_string();
  std::vector<uint8_t> pixels(12);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(100 + i);
  ASSERT_TRUE((*session)->set_input(
      0, {.dtype = DType::UInt8, .data = pixels.data(), .bytes = pixels.size(), .layout = ir::Layout::NHWC}));
  ASSERT_TRUE((*session)->run());
  for (size_t i = 0; i < 2; ++i) {
    std::string line = "values " + std::to_string(i);
    const ir::TensorData out = (*session)->output(i);
    for (float v : out.values<float>()) {
      char number[32];
      std::snprintf(number, sizeof number, " %.9g", v);
      line += number;
    }
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << "\n" << text;
  }
}
// The bundled classifier for two sizes of pictures.
std::vector<std::byte> model_of_two_sizes() {
  toolkit::BuildConfig config;
  config.target_platform = "rk3588";
  config.dynamic_input = {{{1, 3, 32, 48}}, {{1, 3, 64, 64}}};
  auto builder = toolkit::Builder::create(config);
  EXPECT_TRUE(builder);
  EXPECT_TRUE(builder->load_model({std::string(tests::kSourceFolder) + "/examples/models/shapes.onnx"}));
  EXPECT_TRUE(builder->build());
  return *format::write_rknn_to_memory(*builder->built()->model);
}

// What rknn_init logs about a model.
std::string init_log(std::vector<std::byte> bytes) {
  std::string text;
  const LogLevel before = log_level();
  set_log_level(LogLevel::Info);
  set_log_sink([&](LogLevel, std::string_view, std::string_view line) { text.append(line).append("\n"); });
  rknn_context context = 0;
  EXPECT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC) << orknn_last_error();
  rknn_destroy(context);
  set_log_sink({});
  set_log_level(before);
  return text;
}

TEST(CApiShapes, TheLogSaysWhetherAModelHasSetsOfShapes) {
  const std::string none = init_log(sample_bytes()), two = init_log(model_of_two_sizes());
  EXPECT_NE(none.find("model inference type: static_shape\n"), std::string::npos) << none;
  EXPECT_NE(two.find("model inference type: dynamic_shape\n"), std::string::npos) << two;
}

TEST(CApiShapes, ASetIsChosenBeforeTheModelRuns) {
  std::vector<std::byte> bytes = model_of_two_sizes();
  rknn_context context = 0;
  ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC) << orknn_last_error();
  std::vector<float> picture(32 * 48 * 3);
  for (size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<float>(i % 251) / 251;
  rknn_input input{};
  input.buf = picture.data();
  input.size = static_cast<uint32_t>(picture.size() * sizeof(float));
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = RKNN_TENSOR_NHWC;
  EXPECT_EQ(rknn_inputs_set(context, 1, &input), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);

  const auto range = std::make_unique<rknn_input_range>();
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_INPUT_DYNAMIC_RANGE, range.get(), sizeof *range), RKNN_SUCC);
  EXPECT_EQ(range->shape_number, 2u);
  EXPECT_EQ(range->n_dims, 4u);
  EXPECT_EQ(range->fmt, RKNN_TENSOR_NHWC);
  EXPECT_STREQ(range->name, "image");
  EXPECT_EQ(std::vector<uint32_t>(range->dyn_range[0], range->dyn_range[0] + 4), (std::vector<uint32_t>{1, 64, 64, 3}));
  EXPECT_EQ(std::vector<uint32_t>(range->dyn_range[1], range->dyn_range[1] + 4), (std::vector<uint32_t>{1, 32, 48, 3}));
  range->index = 1;
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_INPUT_DYNAMIC_RANGE, range.get(), sizeof *range), RKNN_ERR_PARAM_INVALID);

  rknn_tensor_attr attr{};
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_CURRENT_INPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_EQ(attr.dims[1], 64u);
  EXPECT_EQ(rknn_set_input_shapes(context, 1, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_input_shapes(context, 2, &attr), RKNN_ERR_PARAM_INVALID);
  attr.dims[1] = 33;
  EXPECT_EQ(rknn_set_input_shapes(context, 1, &attr), RKNN_ERR_FAIL);
  EXPECT_NE(std::string(orknn_last_error()).find("image [1,33,64,3] NHWC, it has image [1,64,64,3] NHWC; image [1,32,48,3] NHWC"),
            std::string::npos)
      << orknn_last_error();
  attr.n_dims = 99;
  EXPECT_EQ(rknn_set_input_shapes(context, 1, &attr), RKNN_ERR_FAIL);

  attr.n_dims = 4;
  attr.dims[1] = 32;
  attr.dims[2] = 48;
  ASSERT_EQ(rknn_set_input_shapes(context, 1, &attr), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_CURRENT_INPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_EQ(attr.dims[2], 48u);
  ASSERT_EQ(rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
  EXPECT_EQ(attr.dims[2], 64u) << "the general query keeps the default shape";
  ASSERT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  rknn_output output{};
  output.want_float = 1;
  ASSERT_EQ(rknn_outputs_get(context, 1, &output, nullptr), RKNN_SUCC);
  const auto* scores = static_cast<const float*>(output.buf);
  const std::vector<float> found(scores, scores + output.size / sizeof(float));
  rknn_outputs_release(context, 1, &output);

  auto session = runtime::Session::open(bytes, nullptr);
  ASSERT_TRUE(session);
  ASSERT_TRUE((*session)->choose_program(1));
  EXPECT_FALSE((*session)->choose_program(2));
  ASSERT_TRUE((*session)->set_input(
      0, {.dtype = DType::Float32, .data = picture.data(), .bytes = input.size, .layout = ir::Layout::NHWC}));
  ASSERT_TRUE((*session)->run());
  const ir::TensorData expected = (*session)->output(0);
  EXPECT_EQ(std::vector<float>(expected.view().values<float>().begin(), expected.view().values<float>().end()), found);

  attr.fmt = RKNN_TENSOR_NCHW;
  attr.dims[1] = 3;
  attr.dims[2] = attr.dims[3] = 64;
  EXPECT_EQ(rknn_set_input_shape(context, &attr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(rknn_outputs_get(context, 1, &output, nullptr), RKNN_ERR_FAIL) << "results of other shapes are void";
  rknn_destroy(context);
}

TEST_F(CApi, StaticModelsHaveNoSetsOfShapes) {
  rknn_tensor_attr attr{};
  EXPECT_EQ(rknn_query(context, RKNN_QUERY_CURRENT_OUTPUT_ATTR, &attr, sizeof attr), RKNN_ERR_MODEL_INVALID);
  EXPECT_EQ(rknn_set_input_shapes(context, 1, &attr), RKNN_ERR_MODEL_INVALID);
  EXPECT_EQ(rknn_set_input_shape(context, &attr), RKNN_ERR_MODEL_INVALID);
  EXPECT_EQ(rknn_set_input_shape(context, nullptr), RKNN_ERR_PARAM_INVALID);
}

}  // namespace
}  // namespace orknn
