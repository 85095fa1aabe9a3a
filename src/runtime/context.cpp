#include "runtime/context.h"

#include <utility>

namespace orknn::runtime {
namespace {
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

Context::~Context() { background.reset(); }

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

void take_sram(Context& context, uint64_t internal_bytes, bool shared) {
  const platform::Platform& chip = *context.chip;
  if (!chip.features.sram_for_internal) return;
  if (shared) {  // the same bytes as others, of which it takes none away
    context.sram_bytes = static_cast<uint64_t>(chip.sram_bytes);
    return;
  }
  context.sram = SramShare(chip, internal_bytes);
  context.sram_bytes = context.sram.found_free();
}

}  // namespace orknn::runtime
