// OPENRKNN_CHECK=1: every mistake gives one line that names the call and the fix; right programs give none.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "capi_models.h"
#include "rknn_matmul_api.h"
#include "runtime/checker.h"

namespace orknn::tests {
namespace {

class CApiChecker : public testing::Test {
 protected:
  void SetUp() override {
    // The first call sets the library's own sink.
    orknn_set_platform(nullptr);
    runtime::set_checking(true);
    set_log_sink([this](LogLevel, std::string_view tag, std::string_view line) {
      const std::lock_guard lock(mutex);
      if (tag == "OPENRKNN_CHECK") reports.emplace_back(line);
    });
  }
  void TearDown() override {
    set_log_sink({});
    runtime::set_checking(false);
  }
  // The one report since the last call.
  std::string report() {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(reports.size(), 1u);
    std::string text;
    for (const std::string& line : reports) text += line;
    reports.clear();
    return text;
  }
  static bool says(const std::string& text, const std::string& call, const std::string& problem, const std::string& fix) {
    return text.starts_with(call + ": ") && text.find(problem) != std::string::npos &&
           text.find("Fix: ", text.find(problem)) != std::string::npos && text.find(fix) != std::string::npos;
  }
  std::mutex mutex;
  std::vector<std::string> reports;
};

TEST_F(CApiChecker, ForgottenSync) {
  TestContext context(bytes_of(int8_model(4, 2, 16)),
                      RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE | RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE);
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR), out = context.attr(RKNN_QUERY_OUTPUT_ATTR);
  in.type = RKNN_TENSOR_UINT8;
  TestMemory input(context, in.size_with_stride), output(context, out.size);
  ASSERT_EQ(rknn_set_io_mem(context, input, &in), RKNN_SUCC);
  ASSERT_EQ(rknn_set_io_mem(context, output, &out), RKNN_SUCC);
  input.data()[0] = 1;
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  std::string text = report();
  EXPECT_TRUE(says(text, "rknn_run", "input 'x' was written and not synchronized", "RKNN_MEMORY_SYNC_TO_DEVICE")) << text;
  ASSERT_EQ(rknn_mem_sync(context, input, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  text = report();
  EXPECT_TRUE(says(text, "rknn_run", "output 'y' were not synchronized", "RKNN_MEMORY_SYNC_FROM_DEVICE")) << text;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(rknn_mem_sync(context, output, RKNN_MEMORY_SYNC_FROM_DEVICE), RKNN_SUCC);
    input.data()[0] = static_cast<uint8_t>(i + 5);
    ASSERT_EQ(rknn_mem_sync(context, input, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  }
  EXPECT_TRUE(reports.empty()) << "a right program";
}

TEST_F(CApiChecker, UseAfterDestroyAndDoubleRelease) {
  TestContext context(bytes_of(int8_model(4, 2, 16)));
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR);
  in.type = RKNN_TENSOR_UINT8;
  rknn_tensor_mem* mem = rknn_create_mem(context, in.size_with_stride);
  ASSERT_EQ(rknn_set_io_mem(context, mem, &in), RKNN_SUCC);
  ASSERT_EQ(rknn_destroy_mem(context, mem), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  std::string text = report();
  EXPECT_TRUE(says(text, "rknn_run", "memory was destroyed", "after the last use")) << text;
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_ERR_PARAM_INVALID);
  text = report();
  EXPECT_TRUE(says(text, "rknn_destroy_mem", "was destroyed before", "once")) << text;
  EXPECT_EQ(rknn_mem_sync(context, mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  text = report();
  EXPECT_TRUE(says(text, "rknn_mem_sync", "memory was destroyed", "after the last use")) << text;
  rknn_output out{};
  ASSERT_EQ(rknn_outputs_get(context, 1, &out, nullptr), RKNN_SUCC) << orknn_last_error();
  rknn_output copy = out, none{};
  EXPECT_EQ(rknn_outputs_release(context, 1, &out), RKNN_SUCC);
  EXPECT_EQ(rknn_outputs_release(context, 1, &none), RKNN_SUCC) << "an entry that was never filled is no mistake";
  EXPECT_EQ(rknn_outputs_release(context, 1, &copy), RKNN_SUCC);
  text = report();
  EXPECT_TRUE(says(text, "rknn_outputs_release", "released before", "once")) << text;
}

TEST_F(CApiChecker, WrongSizes) {
  TestContext context(bytes_of(int8_model(4, 2, 16)));
  rknn_tensor_attr in = context.attr(RKNN_QUERY_INPUT_ATTR);
  in.type = RKNN_TENSOR_UINT8;
  rknn_tensor_mem* mem = rknn_create_mem(context, 4096);
  static_cast<uint8_t*>(mem->virt_addr)[4096] = 1;  // one past the end
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_SUCC);
  std::string text = report();
  EXPECT_TRUE(says(text, "rknn_destroy_mem", "wrote past the end of a block of 4096 bytes", "size_with_stride")) << text;
  mem = rknn_create_mem(context, 4096);
  rknn_tensor_mem* beyond = rknn_create_mem_from_fd(context, mem->fd, mem->virt_addr, 4096, 8192);
  EXPECT_EQ(rknn_set_io_mem(context, beyond, &in), RKNN_ERR_PARAM_INVALID);
  text = report();
  EXPECT_TRUE(says(text, "rknn_set_io_mem", "describes 12288 bytes of a block of 4096", "offset inside")) << text;
  rknn_destroy_mem(context, beyond);
  rknn_destroy_mem(context, mem);
  const int fd = memfd_create("small", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 100), 0);
  std::vector<uint8_t> bytes(4096);
  rknn_tensor_mem* foreign = rknn_create_mem_from_fd(context, fd, bytes.data(), 4096, 0);
  EXPECT_EQ(rknn_set_io_mem(context, foreign, &in), RKNN_SUCC);
  text = report();
  EXPECT_TRUE(says(text, "rknn_set_io_mem", "offset + size is 4096, the descriptor has 100 bytes", "offset inside")) << text;
  EXPECT_EQ(rknn_destroy_mem(context, foreign), RKNN_SUCC);
  close(fd);
  uint8_t pixels[200] = {};
  rknn_input input{};
  input.buf = pixels;
  input.size = sizeof pixels;
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  EXPECT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC);
  text = report();
  EXPECT_TRUE(says(text, "rknn_inputs_set", "size is 200 bytes, the model reads 128", "bytes of `type`")) << text;
}

TEST_F(CApiChecker, MatricesOfTheMatmulApi) {
  rknn_matmul_info info{};
  info.M = 4;
  info.K = info.N = 64;
  info.type = RKNN_INT8_MM_INT8_TO_INT32;
  for (const bool native : {false, true}) {
    info.AC_layout = info.B_layout = native ? RKNN_MM_LAYOUT_NATIVE : RKNN_MM_LAYOUT_NORM;
    rknn_matmul_ctx ctx = 0;
    rknn_matmul_io_attr io{};
    ASSERT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC) << orknn_last_error();
    rknn_tensor_mem *a = rknn_create_mem(ctx, io.A.size), *b = rknn_create_mem(ctx, io.B.size);
    const TestMemory c(ctx, io.C.size);
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, a, &io.A), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, b, &io.B), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, c, &io.C), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_run(ctx), RKNN_SUCC);
    EXPECT_TRUE(reports.empty());
    static_cast<int8_t*>(b->virt_addr)[5] = 3;
    ASSERT_EQ(rknn_matmul_run(ctx), RKNN_SUCC);
    if (native) {
      EXPECT_TRUE(reports.empty()) << "native operands are read by the run";
    } else {
      const std::string text = report();
      EXPECT_TRUE(says(text, "rknn_matmul_run", "contents of B have changed", "call rknn_matmul_set_io_mem after")) << text;
    }
    EXPECT_EQ(rknn_destroy_mem(ctx, a), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, b, &io.B), RKNN_SUCC);
    ASSERT_EQ(rknn_matmul_run(ctx), RKNN_SUCC);
    if (native) {
      const std::string text = report();
      EXPECT_TRUE(says(text, "rknn_matmul_run", "was destroyed", "only after the last use")) << text;
    }
    EXPECT_TRUE(reports.empty()) << "what was copied may go";
    rknn_destroy_mem(ctx, b);
    EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  }
}

TEST_F(CApiChecker, CallsThatMeet) {
  TestContext context(bytes_of(chain_model(40, 200'000)));
  const uint64_t before = runtime::reported_mistakes();
  // Both go on until they have met: a busy machine may run either of them alone for long.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto goes_on = [&] { return runtime::reported_mistakes() == before && std::chrono::steady_clock::now() < end; };
  std::thread other([&] {
    while (goes_on()) EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  });
  rknn_input_output_num number{};
  while (goes_on()) EXPECT_EQ(rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number), RKNN_SUCC);
  other.join();
  const std::lock_guard lock(mutex);
  ASSERT_FALSE(reports.empty());
  // The other call is unnamed when the two meet before it has begun its work.
  EXPECT_TRUE(says(reports[0], "rknn_query", "another thread is inside of rknn_run", "rknn_dup_context") ||
              says(reports[0], "rknn_run", "another thread is inside of rknn_query", "rknn_dup_context") ||
              says(reports[0], "rknn_query", "another thread is inside of a call", "rknn_dup_context") ||
              says(reports[0], "rknn_run", "another thread is inside of a call", "rknn_dup_context"))
      << reports[0];
}

}  // namespace
}  // namespace orknn::tests
