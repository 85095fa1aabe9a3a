// Contexts of the C API: duplicates, runs in the background, cores, shared weights and SRAM, and many threads.
#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "base/log.h"
#include "capi_models.h"
#include "rknn_custom_op.h"
#include "runtime/context.h"
#include "runtime/cores.h"
#include "temporary_folder.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" size_t __sanitizer_get_current_allocated_bytes();  // gcc installs no header that declares it
#endif

namespace orknn::tests {
namespace {
using runtime::CoreLease;
using namespace std::chrono_literals;

std::vector<uint8_t> run_once(TestContext& context, const std::vector<float>& input) {
  context.set_input(input, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  return context.output(true);
}

std::vector<float> numbers(size_t count, float first) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i % 13) * 0.125f;
  return values;
}

// 4 MB of weights, a few KB of activations.
const std::vector<std::byte>& heavy_model() {
  static const std::vector<std::byte> bytes = [] {
    format::Model m = capi_model(R"(graph "g" (%x: float32[1,1024]) -> (%y) {
  %w: float32[1,1] = const {0}
  %a: float32[1,1024] = MatMul(%x, %w)
  %y: float32[1,1024] = Sigmoid(%a)
})");
    ir::TensorData w = ir::TensorData::allocate(DType::Float32, {1024, 1024});
    auto* values = static_cast<float*>(w.mutable_data());
    for (int i = 0; i < 1024 * 1024; ++i) values[i] = static_cast<float>(i % 31) * 1e-3f;
    ir::Graph& g = m.programs[0].graph;
    g.tensor(g.find_tensor("w")).constant = w;
    g.tensor(g.find_tensor("w")).shape = ir::Shape{1024, 1024};
    m.float_dtype = "float32";
    return bytes_of(m);
  }();
  return bytes;
}

size_t heap_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return __sanitizer_get_current_allocated_bytes();  // their allocators do not take from the C library's heap
#else
  malloc_trim(0);
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

// Memory of the process that is its own, from the system's view. The sanitizers keep what was freed, for a while: 0, so that what
// is allocated alone counts.
size_t resident_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
#endif
}

TEST(CApiDuplicate, SharesWeightsAndGivesTheSameBytes) {
  TestContext first(heavy_model());
  const std::vector<float> input = numbers(1024, 0.5f);
  const std::vector<uint8_t> expected = run_once(first, input);
  rknn_context from = first, second = 0, third = 0;
  ASSERT_EQ(rknn_dup_context(&from, &third), RKNN_SUCC);  // whatever the first one allocates for good
  const size_t before = heap_bytes(), resident = resident_bytes();
  ASSERT_EQ(rknn_dup_context(&from, &second), RKNN_SUCC) << orknn_last_error();
  rknn_input data{};
  data.buf = const_cast<float*>(input.data());
  data.size = 4096;
  ASSERT_EQ(rknn_inputs_set(second, 1, &data), RKNN_SUCC);
  ASSERT_EQ(rknn_run(second, nullptr), RKNN_SUCC);
  EXPECT_LT(heap_bytes(), before + (256 << 10)) << "only activations";
  EXPECT_LT(resident_bytes(), resident + (1 << 20));
  EXPECT_EQ(rknn_destroy(from), RKNN_SUCC);
  float out[1024];
  rknn_output given{};
  given.want_float = given.is_prealloc = 1;
  given.buf = out;
  given.size = sizeof out;
  ASSERT_EQ(rknn_run(second, nullptr), RKNN_SUCC) << "the source may go first";
  ASSERT_EQ(rknn_outputs_get(second, 1, &given, nullptr), RKNN_SUCC);
  EXPECT_EQ(std::memcmp(out, expected.data(), sizeof out), 0);
  rknn_destroy(second);
  rknn_destroy(third);
}

TEST(CApiDuplicate, Refusals) {
  TestContext context(heavy_model()), dry(heavy_model(), RKNN_FLAG_COLLECT_MODEL_INFO_ONLY);
  rknn_context from = context, to = 7, info = dry, none = 0;
  EXPECT_EQ(rknn_dup_context(nullptr, &to), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_dup_context(&from, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_dup_context(&none, &to), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_dup_context(&info, &to), RKNN_ERR_FAIL);
  EXPECT_EQ(to, 7u);
}

TEST(CApiShare, WeightsOfAnotherModel) {
  const std::vector<std::byte> same = heavy_model();
  TestContext donor(same);
  const std::vector<uint8_t> expected = run_once(donor, numbers(1024, 1.f));
  rknn_init_extend extend;
  std::memset(&extend, 0xdb, sizeof extend);  // the guide's sample leaves the rest uninitialized
  extend.ctx = donor;
  const TemporaryFolder folder;
  const std::string path = folder.file("capi_share.rknn");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(same.data()), static_cast<std::streamsize>(same.size()));
  rknn_context shared = 0;
  ASSERT_EQ(rknn_init(&shared, const_cast<char*>(path.c_str()), 0, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend), RKNN_SUCC)
      << orknn_last_error();
  EXPECT_EQ(rknn_destroy(shared), RKNN_SUCC);
  {
    TestContext sharing(same, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend);
    rknn_destroy(donor);
    EXPECT_EQ(run_once(sharing, numbers(1024, 1.f)), expected) << "the donor may go first";
  }
  std::string other;
  for (int i = 0; i < 64; ++i) other += (i ? "," : "") + std::to_string(i);
  TestContext again(same);
  extend.ctx = again;
  const std::vector<std::byte> stranger = bytes_of(capi_model(
      "graph \"g\" (%x: float32[64]) -> (%y) {\n  %w: float32[64] = const {" + other + "}\n  %y: float32[64] = Add(%x, %w)\n}"));
  rknn_context none = 0;
  EXPECT_EQ(rknn_init(&none, const_cast<std::byte*>(stranger.data()), static_cast<uint32_t>(stranger.size()),
                      RKNN_FLAG_SHARE_WEIGHT_MEM, &extend),
            RKNN_ERR_MODEL_INVALID);
}

// Two sizes of one network; the second file leaves out the weights of its convolution.
format::Model conv_model(int64_t size, float first_weight = 0.25f) {
  const std::string plane = "," + std::to_string(size) + "," + std::to_string(size) + "]";
  format::Model m = capi_model("graph \"g\" (%x: float32[1,4" + plane + ") -> (%y) {\n" +
                               "  %w: float32[1] = const {0}\n  %b: float32[8] = const {1, 2, 3, 4, 5, 6, 7, 8}\n" +
                               "  %y: float32[1,8" + plane + " = Conv(%x, %w, %b) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n}");
  ir::TensorData w = ir::TensorData::allocate(DType::Float32, {8, 4, 3, 3});
  auto* values = static_cast<float*>(w.mutable_data());
  for (int i = 0; i < 8 * 4 * 9; ++i) values[i] = first_weight + static_cast<float>(i % 7) * 0.125f;
  ir::Graph& g = m.programs[0].graph;
  g.tensor(g.find_tensor("w")).constant = w;
  g.tensor(g.find_tensor("w")).shape = ir::Shape{8, 4, 3, 3};
  m.programs[0].tasks[0].engine = ir::Engine::Conv;
  m.float_dtype = "float32";
  return m;
}

TEST(CApiShare, WeightsThatTheFileLeavesOut) {
  const std::vector<std::byte> small = bytes_of(conv_model(4)), full = bytes_of(conv_model(6));
  format::Model shortened = conv_model(6);
  shortened.leaves_out_weights = true;
  const std::vector<std::byte> slave = bytes_of(shortened);
  EXPECT_LT(slave.size() + 1000, full.size());
  TestContext plain(full);
  const std::vector<float> input = numbers(4 * 36, 0.5f);
  const std::vector<uint8_t> expected = run_once(plain, input);

  rknn_context donor = 0;
  ASSERT_EQ(rknn_init(&donor, const_cast<std::byte*>(small.data()), static_cast<uint32_t>(small.size()), 0, nullptr), RKNN_SUCC);
  rknn_init_extend extend{};
  extend.ctx = donor;
  {
    TestContext sharing(slave, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend);
    EXPECT_EQ(run_once(sharing, input), expected);
    rknn_context from = sharing, copy = 0;
    ASSERT_EQ(rknn_dup_context(&from, &copy), RKNN_SUCC) << orknn_last_error();
    rknn_destroy(copy);
    rknn_destroy(donor);
    EXPECT_EQ(run_once(sharing, input), expected) << "the donor may go first";
  }

  const auto refused = [&](uint32_t flags, rknn_init_extend* e) {
    rknn_context none = 0;
    return rknn_init(&none, const_cast<std::byte*>(slave.data()), static_cast<uint32_t>(slave.size()), flags, e);
  };
  EXPECT_EQ(refused(0, nullptr), RKNN_ERR_MODEL_INVALID);
  EXPECT_NE(std::string(orknn_last_error()).find("RKNN_FLAG_SHARE_WEIGHT_MEM"), std::string::npos) << orknn_last_error();
  EXPECT_EQ(refused(RKNN_FLAG_SHARE_WEIGHT_MEM, nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(refused(RKNN_FLAG_SHARE_WEIGHT_MEM, &extend), RKNN_ERR_CTX_INVALID) << "the donor is gone";
  TestContext stranger(bytes_of(conv_model(4, 0.5f)));
  extend.ctx = stranger;
  EXPECT_EQ(refused(RKNN_FLAG_SHARE_WEIGHT_MEM, &extend), RKNN_ERR_MODEL_INVALID) << "other weights of the same shape";
}

// 1024 channels become as many, 4 MB of weights, on maps of different sizes: the second context adds its activations alone, not
// the form in which kernels read the weights.
TEST(CApiShare, WeightsAreInMemoryOnce) {
  const auto model = [](int64_t size, bool leaves_out_weights) {
    const std::string plane = "," + std::to_string(size) + "," + std::to_string(size) + "]";
    format::Model m = capi_model("graph \"g\" (%x: float32[1,1024" + plane + ") -> (%y) {\n  %w: float32[1] = const {0}\n" +
                                 "  %y: float32[1,1024" + plane + " = Conv(%x, %w) {kernel_shape=[1, 1]}\n}");
    ir::TensorData w = ir::TensorData::allocate(DType::Float32, {1024, 1024, 1, 1});
    auto* values = static_cast<float*>(w.mutable_data());
    for (int i = 0; i < 1024 * 1024; ++i) values[i] = static_cast<float>(i % 31) * 1e-3f;
    ir::Graph& g = m.programs[0].graph;
    g.tensor(g.find_tensor("w")).constant = w;
    g.tensor(g.find_tensor("w")).shape = ir::Shape{1024, 1024, 1, 1};
    m.programs[0].tasks[0].engine = ir::Engine::Conv;
    m.float_dtype = "float32";
    m.leaves_out_weights = leaves_out_weights;
    return bytes_of(m);
  };
  const std::vector<std::byte> full = model(4, false), larger = model(6, false), slave = model(6, true);
  const std::vector<float> input = numbers(1024 * 36, 0.5f);
  TestContext donor(full);
  run_once(donor, numbers(1024 * 16, 0.5f));
  rknn_init_extend extend{};
  extend.ctx = donor;
  const auto growth = [&](const std::vector<std::byte>& bytes, uint32_t flags, std::vector<uint8_t>& result) {
    const size_t heap = heap_bytes();
    TestContext context(bytes, flags, &extend);
    result = run_once(context, input);
    return heap_bytes() - heap;
  };
  std::vector<uint8_t> alone, sharing;
  EXPECT_GT(growth(larger, 0, alone), size_t{4} << 20);
  EXPECT_LT(growth(slave, RKNN_FLAG_SHARE_WEIGHT_MEM, sharing), size_t{2} << 20);
  EXPECT_EQ(sharing, alone);
}

TEST(CApiShare, Sram) {
  const std::vector<std::byte> model = bytes_of(chain_model(3, 50'000));
  const auto sizes = [](rknn_context context) {
    rknn_mem_size s{};
    EXPECT_EQ(rknn_query(context, RKNN_QUERY_MEM_SIZE, &s, sizeof s), RKNN_SUCC);
    return s;
  };
  TestContext plain(model);
  const uint32_t total = sizes(plain).total_sram_size;
  EXPECT_GT(total, 0u);
  EXPECT_EQ(sizes(plain).free_sram_size, total);
  {
    TestContext holder(model, RKNN_FLAG_ENABLE_SRAM), sharing(model, RKNN_FLAG_ENABLE_SRAM | RKNN_FLAG_SHARE_SRAM);
    EXPECT_LT(sizes(plain).free_sram_size, total - 300'000) << "another context holds its activations there";
    EXPECT_EQ(run_once(holder, numbers(50'000, 0.f)), run_once(plain, numbers(50'000, 0.f)));
  }
  EXPECT_EQ(sizes(plain).free_sram_size, total) << "and gives them back";
  rknn_tensor_mem* memory = rknn_create_mem2(plain, 100'000, RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM);
  ASSERT_NE(memory, nullptr) << orknn_last_error();
  EXPECT_EQ(sizes(plain).free_sram_size, total - 102'400) << "whole granules of 4 KB";
  rknn_tensor_mem* rest = rknn_create_mem2(plain, 2 * total, RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM);
  ASSERT_NE(rest, nullptr) << "what does not fit lies in DRAM";
  EXPECT_EQ(sizes(plain).free_sram_size, 0u);
  EXPECT_EQ(rknn_destroy_mem(plain, memory), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(plain, rest), RKNN_SUCC);
  EXPECT_EQ(sizes(plain).free_sram_size, total);
}

// Long enough to be seen going on (tens of milliseconds), short enough for a test.
constexpr int kSlowSteps = 240;
const std::vector<std::byte>& slow_model() {
  static const std::vector<std::byte> bytes = bytes_of(chain_model(kSlowSteps, 200'000));
  return bytes;
}

TEST(CApiBackground, NonBlockingRunsAreAwaited) {
  TestContext context(slow_model()), plain(slow_model());
  const std::vector<float> input = numbers(200'000, 0.25f);
  const std::vector<uint8_t> expected = run_once(plain, input);
  context.set_input(input, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  rknn_run_extend extend{};
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(extend.frame_id, 1u);
  ASSERT_EQ(rknn_wait(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(context.output(true), expected);
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_EQ(extend.frame_id, 2u);
  EXPECT_EQ(context.output(true), expected) << "fetching waits";
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC);  // the context is destroyed during the run
  EXPECT_EQ(rknn_wait(0, nullptr), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_wait(plain, nullptr), RKNN_SUCC) << "nothing to wait for";
}

TEST(CApiBackground, AsynchronousContextsHandOutTheFrameBefore) {
  TestContext context(bytes_of(chain_model(3, 100)), RKNN_FLAG_ASYNC_MASK), plain(bytes_of(chain_model(3, 100)));
  std::vector<std::vector<uint8_t>> expected;
  for (int frame = 1; frame <= 4; ++frame) {
    const std::vector<float> input = numbers(100, static_cast<float>(frame));
    expected.push_back(run_once(plain, input));
    uint64_t number = 0;
    context.set_input(input, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    const std::vector<uint8_t> found = context.output(true, &number);
    const int before = std::max(frame - 1, 1);  // the first has none before it
    EXPECT_EQ(number, static_cast<uint64_t>(before));
    EXPECT_EQ(found, expected[static_cast<size_t>(before - 1)]);
  }
}

TEST(CApiBackground, TimeLimits) {
  TestContext context(slow_model());
  rknn_run_extend extend{};
  extend.timeout_ms = 1;
  EXPECT_EQ(rknn_run(context, &extend), RKNN_ERR_TIMEOUT);
  EXPECT_STREQ(orknn_context_error(context), orknn_last_error());
  setenv("RKNN_MIN_TIMEOUT_MS", "60000", 1);
  EXPECT_EQ(rknn_run(context, &extend), RKNN_SUCC) << "the least time a run gets";
  unsetenv("RKNN_MIN_TIMEOUT_MS");
  extend.timeout_ms = 60'000;
  EXPECT_EQ(rknn_run(context, &extend), RKNN_SUCC) << orknn_last_error();
  extend.timeout_ms = 1;
  extend.non_block = 1;
  EXPECT_EQ(rknn_run(context, &extend), RKNN_SUCC);
  EXPECT_EQ(rknn_wait(context, nullptr), RKNN_ERR_TIMEOUT);
  EXPECT_NE(std::string(orknn_last_error()).find("time"), std::string::npos) << orknn_last_error();
}

// The run waits for a signal that never comes; whoever destroys the context does not.
TEST(CApiBackground, DestroyDoesNotWaitForAFence) {
  const int fence = eventfd(0, EFD_CLOEXEC);
  rknn_context context = 0;
  std::vector<std::byte> model = bytes_of(chain_model(3, 100));
  ASSERT_EQ(rknn_init(&context, model.data(), static_cast<uint32_t>(model.size()), RKNN_FLAG_FENCE_IN_OUTSIDE, nullptr),
            RKNN_SUCC);
  rknn_run_extend extend{};
  extend.fence_fd = fence;
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  // The same while another thread is inside of the run.
  ASSERT_EQ(rknn_init(&context, model.data(), static_cast<uint32_t>(model.size()), RKNN_FLAG_FENCE_IN_OUTSIDE, nullptr),
            RKNN_SUCC);
  extend.non_block = 0;
  int code = 0;
  std::thread runner([&] { code = rknn_run(context, &extend); });
  while (!runtime::find_context(context)->current_call) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  runner.join();
  EXPECT_EQ(code, RKNN_ERR_FAIL);
  close(fence);
}

TEST(CApiBackground, OutputsSayWhyABlockingRunFailed) {
  const int fence = eventfd(0, EFD_CLOEXEC);
  TestContext context(bytes_of(chain_model(3, 100)), RKNN_FLAG_FENCE_IN_OUTSIDE);
  rknn_run_extend extend{};
  extend.fence_fd = fence;
  extend.timeout_ms = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_ERR_TIMEOUT);
  rknn_output out{};
  EXPECT_EQ(rknn_outputs_get(context, 1, &out, nullptr), RKNN_ERR_FAIL);
  EXPECT_NE(std::string(orknn_last_error()).find("the run failed: rknn_run: the fence was not signalled in time"),
            std::string::npos)
      << orknn_last_error();
  close(fence);
}

TEST(CApiBackground, Fences) {
  TestContext context(bytes_of(chain_model(3, 100)), RKNN_FLAG_FENCE_IN_OUTSIDE | RKNN_FLAG_FENCE_OUT_OUTSIDE);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_PARAM_INVALID);
  rknn_run_extend extend{};
  extend.fence_fd = -1;
  EXPECT_EQ(rknn_run(context, &extend), RKNN_ERR_PARAM_INVALID);
  const int fence = eventfd(0, EFD_CLOEXEC);
  extend.fence_fd = fence;
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(context, &extend), RKNN_SUCC) << orknn_last_error();
  const int done = extend.fence_fd;
  ASSERT_GT(done, 2);
  ASSERT_NE(done, fence);
  pollfd waited{done, POLLIN, 0};
  EXPECT_EQ(poll(&waited, 1, 20), 0) << "the run waits for its fence";
  rknn_run_extend limit{};
  limit.timeout_ms = 1;
  EXPECT_EQ(rknn_wait(context, &limit), RKNN_ERR_TIMEOUT);
  const uint64_t one = 1;
  ASSERT_EQ(write(fence, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_EQ(poll(&waited, 1, 60'000), 1) << "and signals its own";
  EXPECT_EQ(rknn_wait(context, nullptr), RKNN_SUCC);
  close(done);
  uint64_t value = 0;
  ASSERT_EQ(read(fence, &value, sizeof value), static_cast<ssize_t>(sizeof value));
  extend.fence_fd = fence;
  extend.non_block = 0;
  extend.timeout_ms = 10;
  EXPECT_EQ(rknn_run(context, &extend), RKNN_ERR_TIMEOUT) << "nobody signals";
  close(extend.fence_fd);
  close(fence);
}

TEST(CApiCoresAtOnce, ThreeLeasesAtATimeAndTheRestByPriority) {
  const platform::Platform& chip = *platform::find("rk3588");
  auto zero = CoreLease::take(chip, {1});
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->mask(), 1u);
  // Each core from a thread of its own: a thread that holds cores does not wait for more.
  std::vector<int> order;
  std::mutex mutex;
  std::atomic<int> holding{0};
  std::atomic<bool> let_go{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      const auto lease = CoreLease::take(chip, {0});
      EXPECT_NE(lease->mask() & 6u, 0u) << "core 0 is taken";
      ++holding;
      while (!let_go) std::this_thread::sleep_for(1ms);
    });
  while (holding < 2) std::this_thread::sleep_for(1ms);
  const auto waiter = [&](int name, int priority, uint32_t mask) {
    const int before = runtime::waiting_runs(chip);
    threads.emplace_back([&, name, priority, mask] {
      const auto lease = CoreLease::take(chip, {mask, priority});
      const std::lock_guard lock(mutex);
      order.push_back(name);
    });
    while (runtime::waiting_runs(chip) == before) std::this_thread::sleep_for(1ms);
  };
  waiter(1, 2, 1);
  waiter(2, 1, 1);
  waiter(3, 0, 1);
  waiter(4, 0, 1);
  std::thread([&] {
    EXPECT_FALSE(CoreLease::take(chip, {1, 0, std::chrono::steady_clock::now() + 5ms})) << "the deadline passed";
  }).join();
  zero.reset();
  while (runtime::waiting_runs(chip) > 0) std::this_thread::sleep_for(1ms);
  let_go = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(order, (std::vector<int>{3, 4, 2, 1}));
}

// A custom operator in which three runs wait for each other: none gets past it unless all are under way at once.
struct Meeting {
  std::mutex mutex;
  std::condition_variable all_are_here;
  int present = 0;

  bool wait() {
    std::unique_lock lock(mutex);
    if (++present == 3) all_are_here.notify_all();
    return all_are_here.wait_for(lock, 60s, [&] { return present >= 3; });
  }
};
Meeting meeting;

int meet(rknn_custom_op_context*, rknn_custom_op_tensor* in, uint32_t, rknn_custom_op_tensor* out, uint32_t) {
  std::memcpy(out[0].mem.virt_addr, in[0].mem.virt_addr, out[0].attr.n_elems * sizeof(float));
  return meeting.wait() ? 0 : -1;
}

TEST(CApiCoresAtOnce, ThreeContextsOnThreeCores) {
  // The trace shows three runs that overlap, on a row each.
  const std::vector<std::byte> model = bytes_of(capi_model(R"(graph "g" (%x: float32[1000]) -> (%y) {
  %a: float32[1000] = Tanh(%x)
  %b: float32[1000] = "custom:cstMeet"(%a)
  %y: float32[1000] = Sigmoid(%b)
})"));
  rknn_custom_op op{};
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  std::strcpy(op.op_type, "cstMeet");
  op.compute = meet;
  std::vector<std::unique_ptr<TestContext>> contexts;
  const TemporaryFolder folder;
  const std::string path = folder.file("capi_trace.json");
  std::vector<std::vector<uint8_t>> results(3);
  const rknn_core_mask masks[] = {RKNN_NPU_CORE_0, RKNN_NPU_CORE_1, RKNN_NPU_CORE_2};
  for (rknn_core_mask mask : masks) {
    contexts.push_back(std::make_unique<TestContext>(model));
    ASSERT_EQ(rknn_register_custom_ops(*contexts.back(), &op, 1), RKNN_SUCC) << orknn_last_error();
    ASSERT_EQ(rknn_set_core_mask(*contexts.back(), mask), RKNN_SUCC);
  }
  const std::vector<float> input = numbers(1000, 0.5f);
  ASSERT_EQ(orknn_trace_stop(), RKNN_ERR_PARAM_INVALID);
  ASSERT_EQ(orknn_trace_start(nullptr), RKNN_ERR_PARAM_INVALID);
  ASSERT_EQ(orknn_trace_start(path.c_str()), RKNN_SUCC);
  ASSERT_EQ(orknn_trace_start(path.c_str()), RKNN_ERR_PARAM_INVALID);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) threads.emplace_back([&, i] { results[i] = run_once(*contexts[i], input); });
  for (std::thread& t : threads) t.join();
  ASSERT_EQ(orknn_trace_stop(), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  ASSERT_EQ(rknn_set_core_mask(*contexts[0], RKNN_NPU_CORE_0_1_2), RKNN_SUCC);
  EXPECT_EQ(run_once(*contexts[0], input), results[1]) << "bytes do not depend on the mask";

  std::ifstream file(path);
  std::string line;
  std::vector<std::pair<double, double>> runs(3, {0, 0});
  int layers = 0, calls = 0;
  while (std::getline(file, line)) {
    const auto field = [&](const std::string& name) {
      const size_t at = line.find("\"" + name + "\":");
      return at == std::string::npos ? -1.0 : std::strtod(line.c_str() + at + name.size() + 3, nullptr);
    };
    layers += line.find("\"cat\":\"npu\"") != std::string::npos && line.find("\"run ") == std::string::npos;
    calls += line.find("\"name\":\"rknn_run\"") != std::string::npos;
    if (line.find("\"name\":\"run 1\"") != std::string::npos)
      runs.at(static_cast<size_t>(field("tid"))) = {field("ts"), field("ts") + field("dur")};
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(layers, 3 * 3);
  for (size_t i = 0; i < 3; ++i)
    for (size_t k = 0; k < 3; ++k) EXPECT_LT(runs[i].first, runs[k].second) << "runs " << i << " and " << k << " overlap";
}

TEST(CApiCoresAtOnce, BatchCores) {
  TestContext batch(bytes_of(capi_model(R"(graph "g" (%x: float32[4,64]) -> (%y) {
  %y: float32[4,64] = Sigmoid(%x)
})"))),
      one(bytes_of(chain_model(3, 100, "rk3566")));
  const std::vector<uint8_t> expected = run_once(batch, numbers(256, 0.f));
  EXPECT_EQ(rknn_set_batch_core_num(batch, 0), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_batch_core_num(batch, 4), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_batch_core_num(one, 1), RKNN_ERR_TARGET_PLATFORM_UNMATCH);
  EXPECT_EQ(rknn_set_batch_core_num(batch, 3), RKNN_SUCC);
  EXPECT_EQ(run_once(batch, numbers(256, 0.f)), expected);
}

TEST(CApiPlatform, IsChosen) {
  EXPECT_EQ(orknn_set_platform("nochip"), RKNN_ERR_PARAM_INVALID);
  ASSERT_EQ(orknn_set_platform("rk3566"), RKNN_SUCC);
  const std::vector<std::byte> model = heavy_model();
  rknn_context context = 0;
  EXPECT_EQ(rknn_init(&context, const_cast<std::byte*>(model.data()), static_cast<uint32_t>(model.size()), 0, nullptr),
            RKNN_ERR_TARGET_PLATFORM_UNMATCH);
  EXPECT_EQ(context, 0u);
  ASSERT_EQ(orknn_set_platform("rv1106"), RKNN_SUCC);
  {
    TestContext small(bytes_of(chain_model(3, 100, "rv1106")));
    float data[100] = {};
    rknn_input input{};
    input.buf = data;
    input.size = sizeof data;
    EXPECT_EQ(rknn_inputs_set(small, 1, &input), RKNN_ERR_TARGET_PLATFORM_UNMATCH) << "zero-copy only";
    rknn_context from = small, to = 0;
    EXPECT_EQ(rknn_dup_context(&from, &to), RKNN_ERR_TARGET_PLATFORM_UNMATCH);
    EXPECT_EQ(rknn_run(small, nullptr), RKNN_SUCC);
    rknn_output output{};
    EXPECT_EQ(rknn_outputs_get(small, 1, &output, nullptr), RKNN_ERR_TARGET_PLATFORM_UNMATCH);
    EXPECT_EQ(rknn_outputs_release(small, 1, &output), RKNN_ERR_TARGET_PLATFORM_UNMATCH);
    rknn_tensor_attr attr{};
    EXPECT_EQ(rknn_set_input_shapes(small, 1, &attr), RKNN_ERR_TARGET_PLATFORM_UNMATCH);
    rknn_custom_op op{};
    EXPECT_EQ(rknn_register_custom_ops(small, &op, 1), RKNN_ERR_TARGET_PLATFORM_UNMATCH);
  }
  ASSERT_EQ(orknn_set_platform(nullptr), RKNN_SUCC);
  TestContext any(bytes_of(chain_model(3, 100, "rv1106")));
  run_once(any, numbers(100, 0.f));
}

// Every way to run gives the same bytes.
TEST(CApiContexts, SameBytesFromEveryWay) {
  const std::vector<std::byte> model = bytes_of(chain_model(5, 5000));
  const std::vector<float> input = numbers(5000, -1.f);
  TestContext plain(model);
  const std::vector<uint8_t> expected = run_once(plain, input);
  rknn_context from = plain, copy = 0;
  ASSERT_EQ(rknn_dup_context(&from, &copy), RKNN_SUCC);
  std::vector<rknn_context> ways{copy};
  TestContext cores(model), background(model), bound(model), low(model, RKNN_FLAG_PRIOR_LOW | RKNN_FLAG_ENABLE_SRAM);
  ASSERT_EQ(rknn_set_core_mask(cores, RKNN_NPU_CORE_ALL), RKNN_SUCC);
  EXPECT_EQ(run_once(cores, input), expected);
  EXPECT_EQ(run_once(low, input), expected);
  background.set_input(input, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  rknn_run_extend extend{};
  extend.non_block = 1;
  ASSERT_EQ(rknn_run(background, &extend), RKNN_SUCC);
  EXPECT_EQ(background.output(true), expected);
  rknn_tensor_attr in = bound.attr(RKNN_QUERY_NATIVE_INPUT_ATTR), out = bound.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR);
  in.type = out.type = RKNN_TENSOR_FLOAT32;
  TestMemory in_memory(bound, 20'000), out_memory(bound, 20'000);
  in_memory.fill(input);
  ASSERT_EQ(rknn_set_io_mem(bound, in_memory, &in), RKNN_SUCC);
  ASSERT_EQ(rknn_set_io_mem(bound, out_memory, &out), RKNN_SUCC);
  ASSERT_EQ(rknn_run(bound, nullptr), RKNN_SUCC);
  EXPECT_EQ(out_memory.bytes(20'000), expected);
  for (int threads : {1, 3}) {
    ASSERT_EQ(orknn_set_thread_count(threads), RKNN_SUCC);
    TestContext counted(model);
    EXPECT_EQ(run_once(counted, input), expected) << threads << " threads";
  }
  orknn_set_thread_count(0);
  rknn_destroy(copy);
}

// Threads that do everything with four contexts at once. CAPI_STRESS_CALLS says how many calls each makes.
TEST(CApiContexts, ManyThreadsMixAllCalls) {
  const char* wanted = std::getenv("CAPI_STRESS_CALLS");
  const int calls = wanted ? std::atoi(wanted) : 150;
  const std::vector<std::byte> model = bytes_of(chain_model(3, 300));
  const std::vector<float> input = numbers(300, 0.5f);
  TestContext plain(model);
  const std::vector<uint8_t> expected = run_once(plain, input);
  std::vector<std::unique_ptr<TestContext>> contexts;
  for (const uint32_t flags : {0u, static_cast<uint32_t>(RKNN_FLAG_ASYNC_MASK), static_cast<uint32_t>(RKNN_FLAG_PRIOR_LOW), 0u}) {
    contexts.push_back(std::make_unique<TestContext>(model, flags));
    contexts.back()->set_input(input, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
    ASSERT_EQ(rknn_run(*contexts.back(), nullptr), RKNN_SUCC);
  }
  std::atomic<int> wrong{0};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < calls; ++i) {
      const rknn_context c = *contexts[random() % contexts.size()];
      int code = RKNN_SUCC;
      switch (random() % 9) {
        case 0: code = rknn_run(c, nullptr); break;
        case 1: {
          rknn_run_extend extend{};
          extend.non_block = 1;
          code = rknn_run(c, &extend);
          break;
        }
        case 2: code = rknn_wait(c, nullptr); break;
        case 3: {
          rknn_input data{};
          data.buf = const_cast<float*>(input.data());
          data.size = 1200;
          code = rknn_inputs_set(c, 1, &data);
          break;
        }
        case 4: {
          rknn_output out{};
          out.want_float = 1;
          code = rknn_outputs_get(c, 1, &out, nullptr);
          if (code == RKNN_SUCC && std::memcmp(out.buf, expected.data(), expected.size()) != 0) ++wrong;
          rknn_outputs_release(c, 1, &out);
          break;
        }
        case 5: {
          rknn_tensor_mem* mem = rknn_create_mem(c, 64 + random() % 5000);
          code = mem ? rknn_mem_sync(c, mem, RKNN_MEMORY_SYNC_BIDIRECTIONAL) : -1;
          rknn_destroy_mem(c, mem);
          break;
        }
        case 6: {
          rknn_tensor_attr attr{};
          code = rknn_query(c, RKNN_QUERY_OUTPUT_ATTR, &attr, sizeof attr);
          break;
        }
        case 7: code = rknn_set_core_mask(c, static_cast<rknn_core_mask>(random() % 2 ? 1u << random() % 3 : 0u)); break;
        default: {
          rknn_context from = c, copy = 0;
          code = rknn_dup_context(&from, &copy);
          if (code == RKNN_SUCC) code = rknn_run(copy, nullptr);
          rknn_destroy(copy);
        }
      }
      if (code != RKNN_SUCC) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 16; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// ORKNN_CYCLES says how many contexts come and go.
TEST(CApiContexts, MemoryIsFlat) {
  const std::vector<std::byte> model = bytes_of(chain_model(3, 1000));
  const auto cycle = [&] {
    rknn_context context = 0, copy = 0;
    ASSERT_EQ(rknn_init(&context, const_cast<std::byte*>(model.data()), static_cast<uint32_t>(model.size()), 0, nullptr),
              RKNN_SUCC);
    rknn_tensor_mem* mem = rknn_create_mem(context, 4000);
    ASSERT_EQ(rknn_dup_context(&context, &copy), RKNN_SUCC);
    rknn_run_extend extend{};
    extend.non_block = 1;
    ASSERT_EQ(rknn_run(copy, &extend), RKNN_SUCC);
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
    rknn_output out{};
    ASSERT_EQ(rknn_outputs_get(context, 1, &out, nullptr), RKNN_SUCC);  // never released
    rknn_destroy(context);
    rknn_destroy(copy);
    rknn_destroy_mem(0, mem);
  };
  for (int i = 0; i < 100; ++i) cycle();
  const size_t before = heap_bytes(), resident = resident_bytes();
  const char* wanted = std::getenv("ORKNN_CYCLES");
  const int cycles = wanted ? std::atoi(wanted) : 400;
  for (int i = 0; i < cycles; ++i) cycle();
  RecordProperty("heap_growth", std::to_string(static_cast<int64_t>(heap_bytes()) - static_cast<int64_t>(before)));
  RecordProperty("resident_growth", std::to_string(static_cast<int64_t>(resident_bytes()) - static_cast<int64_t>(resident)));
  EXPECT_LT(heap_bytes(), before + (64 << 10));
  EXPECT_LT(resident_bytes(), resident + (4 << 20));
}

}  // namespace
}  // namespace orknn::tests
