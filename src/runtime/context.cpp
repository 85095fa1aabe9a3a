#include "runtime/context.h"

#include <algorithm>
#include <utility>

#include "runtime/perf_report.h"

namespace orknn::runtime {
namespace {
struct SramTable {
  BriefMutex mutex;
  std::unordered_map<const platform::Platform*, uint64_t> held;
};
SramTable& sram_table() {
  static SramTable* const instance = new SramTable;  // contexts may outlive static objects
  return *instance;
}
ORKNN_MAKE_AT_LOAD(sram_table);

uint64_t free_of(const SramTable& table, const platform::Platform& chip) {
  if (!chip.features.sram_for_internal) return 0;
  const auto total = static_cast<uint64_t>(chip.sram_bytes);
  const auto it = table.held.find(&chip);
  return total - (it == table.held.end() ? 0 : std::min(total, it->second));
}

thread_local const WorkForContext* innermost_work = nullptr;
}  // namespace

WorkForContext::WorkForContext(const Context& context, const char* function)
    : context_(context), function_(function), outer_(std::exchange(innermost_work, this)) {}
WorkForContext::~WorkForContext() { innermost_work = outer_; }

const char* outer_call(const Context& context) {
  for (const WorkForContext* w = innermost_work; w; w = w->outer_)
    if (&w->context_ == &context) return w->function_;
  return nullptr;
}

Context::~Context() {
  background.reset();
  if (!sram_held) return;
  SramTable& t = sram_table();
  const std::lock_guard lock(t.mutex);
  t.held[chip] -= sram_held;
}

bool Context::finish_pending_run(std::optional<std::chrono::steady_clock::time_point> deadline) {
  if (!background) return true;
  if (!background->wait(deadline)) return false;
  if (std::exchange(is_run_error_new, false)) error = run_error;
  return true;
}

void Context::forget_bindings() {
  bound.inputs.assign(session->inputs().size(), {});
  bound.outputs.assign(session->outputs().size(), {});
}

rknn_context publish_context(std::shared_ptr<Context> context) {
  Context& c = *context;
  const CallLock lock(c.mutex);  // it is not used before it knows its handle
  return c.handle = publish(std::move(context));
}

bool destroy_context(rknn_context handle) {
  const std::shared_ptr<Context> context = take_handle<Context>(handle);
  if (!context) return false;
  context->is_ending = true;
  const CallLock lock(context->mutex);
  if (!lock) return true;  // what the thread that a fork left behind was using stays where it is
  context->destroyed = true;
  context->background.reset();
  context->session.reset();
  context->bound = {};
  context->previous = {};
  context->model_keeper.reset();
  context->donor.reset();
  context->buffers.clear();
  return true;
}

uint64_t free_sram(const platform::Platform& chip) {
  SramTable& t = sram_table();
  const std::lock_guard lock(t.mutex);
  return free_of(t, chip);
}

void take_sram(Context& context, uint64_t internal_bytes, bool shared) {
  const platform::Platform& chip = *context.chip;
  if (!chip.features.sram_for_internal) return;
  SramTable& t = sram_table();
  const std::lock_guard lock(t.mutex);
  // Whoever shares uses the same bytes as others, and takes none away.
  context.sram_bytes = shared ? static_cast<uint64_t>(chip.sram_bytes) : free_of(t, chip);
  if (shared) return;
  context.sram_held = sram_block(internal_bytes, context.sram_bytes);
  t.held[&chip] += context.sram_held;
}

}  // namespace orknn::runtime
