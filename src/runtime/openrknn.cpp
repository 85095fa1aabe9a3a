// Our own additions to the C API.
#include <cstdlib>
#include <optional>

#include "base/forks.h"
#include "base/log.h"
#include "base/version.h"
#include "runtime/c_call.h"
#include "runtime/configuration.h"
#include "runtime/context.h"
#include "runtime/trace.h"

namespace orknn::runtime {
namespace {
struct Configuration {
  BriefMutex mutex;
  std::shared_ptr<ThreadPool> pool;
  std::optional<const platform::Platform*> chip;  // nothing = the environment was not read yet
};

// Never destroyed: contexts may outlive static objects.
Configuration& configuration() {
  static Configuration* const instance = new Configuration;
  return *instance;
}
ORKNN_MAKE_AT_LOAD(configuration);

const platform::Platform* chip_of_environment() {
  const char* name = std::getenv("OPENRKNN_PLATFORM");
  if (!name || !*name) return nullptr;
  const platform::Platform* chip = platform::find(name);
  if (!chip) log(LogLevel::Warn, "", "OPENRKNN_PLATFORM=" + std::string(name) + " is not a known chip and is ignored!");
  return chip;
}
}  // namespace

std::shared_ptr<ThreadPool> configured_pool() {
  Configuration& c = configuration();
  const std::lock_guard lock(c.mutex);
  return c.pool;
}

const platform::Platform* configured_chip() {
  Configuration& c = configuration();
  {
    const std::lock_guard lock(c.mutex);
    if (c.chip) return *c.chip;
  }
  const platform::Platform* chip = chip_of_environment();
  const std::lock_guard lock(c.mutex);
  if (!c.chip) c.chip = chip;
  return *c.chip;
}
}  // namespace orknn::runtime

using namespace orknn::runtime;

const char* orknn_last_error(void) { return last_error().c_str(); }

const char* orknn_context_error(rknn_context context) {
  const std::shared_ptr<Context> found = find_context(context);
  if (!found) return "";
  if (outer_call(*found)) return last_error().c_str();  // a callback of the context's operators asks about its own call
  const orknn::CallLock lock(found->mutex);
  if (!lock || (found->background && found->background->is_lost())) return "";
  found->finish_pending_run();
  return found->error.c_str();
}

const char* orknn_version(void) {
  static const std::string text(orknn::version());
  return text.c_str();
}

int orknn_set_thread_count(int threads) {
  return c_call("orknn_set_thread_count", [&] {
    if (threads < 0 || threads > 1024)
      return fail(RKNN_ERR_PARAM_INVALID, "orknn_set_thread_count", "expected 0 to 1024, found " + std::to_string(threads));
    auto fresh = threads == 0 ? nullptr : std::make_shared<orknn::ThreadPool>(threads);
    Configuration& c = configuration();
    const std::lock_guard lock(c.mutex);
    c.pool = std::move(fresh);
    return RKNN_SUCC;
  });
}

int orknn_set_platform(const char* name) {
  return c_call("orknn_set_platform", [&] {
    const orknn::platform::Platform* chip = nullptr;
    if (name && *name) {
      const auto found = orknn::platform::get(name);
      if (!found) return fail(RKNN_ERR_PARAM_INVALID, "orknn_set_platform", found.status().to_string());
      chip = *found;
    }
    Configuration& c = configuration();
    const std::lock_guard lock(c.mutex);
    c.chip = chip;
    return RKNN_SUCC;
  });
}

int orknn_trace_start(const char* path) {
  return c_call("orknn_trace_start", [&] {
    if (!path) return fail(RKNN_ERR_PARAM_INVALID, "orknn_trace_start", "path is NULL");
    const orknn::Status s = start_trace(path);
    return s ? RKNN_SUCC : fail("orknn_trace_start", s);
  });
}

int orknn_trace_stop(void) {
  return c_call("orknn_trace_stop", [&] {
    const orknn::Status s = stop_trace();
    return s ? RKNN_SUCC : fail("orknn_trace_stop", s);
  });
}
