// Contexts that are in use while the process forks.
#include "runtime/context.h"

#include <atomic>
#include <string_view>
#include <thread>

#include "forked_child.h"
#include "format/rknn_file.h"
#include "format_sample.h"
#include "openrknn.h"

namespace orknn::runtime {
namespace {
using ContextFork = tests::ForkTest;

rknn_context make_context() {
  std::vector<std::byte> bytes = *format::write_rknn_to_memory(format::sample_model());
  rknn_context context = 0;
  return rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr) == RKNN_SUCC ? context : 0;
}

// What becomes of a context in a child: it runs, or is refused with a reason; afterwards another one runs.
enum Outcome { kRan, kRefused, kNoReason, kNoOther };
Outcome use_in_child(rknn_context context) {
  const int code = rknn_run(context, nullptr);
  const bool has_reason = std::string_view(orknn_last_error()).find("when this process was forked") != std::string_view::npos;
  if (code != RKNN_SUCC && !(code == RKNN_ERR_CTX_INVALID && has_reason)) return kNoReason;
  if (rknn_destroy(context) != RKNN_SUCC) return kNoOther;
  const rknn_context other = make_context();
  if (!other || rknn_run(other, nullptr) != RKNN_SUCC || rknn_destroy(other) != RKNN_SUCC) return kNoOther;
  return code == RKNN_SUCC ? kRan : kRefused;
}

TEST_F(ContextFork, AContextThatIsInUseNeverHangsTheChild) {
  const rknn_context context = make_context();
  ASSERT_NE(context, 0u) << orknn_last_error();
  std::jthread busy([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  });
  for (int i = 0; i < 40; ++i) {
    const int outcome = tests::exit_code_of_child([&] { return use_in_child(context); });
    ASSERT_TRUE(outcome == kRan || outcome == kRefused) << outcome;
  }
  busy.request_stop();
  busy.join();
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
}

TEST_F(ContextFork, AContextInTheMiddleOfACallIsRefused) {
  const rknn_context context = make_context();
  ASSERT_NE(context, 0u) << orknn_last_error();
  {
    const std::shared_ptr<Context> held = find_context(context);
    const CallLock call(held->mutex);
    ASSERT_TRUE(call);
    EXPECT_EQ(tests::exit_code_of_child([&] { return use_in_child(context); }), kRefused);
  }
  EXPECT_EQ(tests::exit_code_of_child([&] { return use_in_child(context); }), kRan);
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
}

}  // namespace
}  // namespace orknn::runtime
