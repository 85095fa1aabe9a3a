// Our own additions to the C API.
#include "base/forks.h"
#include "base/version.h"
#include "runtime/c_call.h"
#include "runtime/thread_count.h"

namespace orknn::runtime {
namespace {
BriefMutex& mutex() {
  static BriefMutex& instance = *new BriefMutex;
  return instance;
}
std::shared_ptr<ThreadPool>& pool() {
  static std::shared_ptr<ThreadPool>* const instance = new std::shared_ptr<ThreadPool>;  // contexts may outlive static objects
  return *instance;
}
}  // namespace

std::shared_ptr<ThreadPool> configured_pool() {
  const std::lock_guard lock(mutex());
  return pool();
}
}  // namespace orknn::runtime

using namespace orknn::runtime;

const char* orknn_last_error(void) { return last_error().c_str(); }

const char* orknn_version(void) {
  static const std::string text(orknn::version());
  return text.c_str();
}

int orknn_set_thread_count(int threads) {
  return c_call("orknn_set_thread_count", [&] {
    if (threads < 0 || threads > 1024)
      return fail(RKNN_ERR_PARAM_INVALID, "orknn_set_thread_count", "expected 0 to 1024, found " + std::to_string(threads));
    auto fresh = threads == 0 ? nullptr : std::make_shared<orknn::ThreadPool>(threads);
    const std::lock_guard lock(mutex());
    pool() = std::move(fresh);
    return RKNN_SUCC;
  });
}
