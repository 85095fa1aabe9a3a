#include "runtime/context.h"

namespace orknn::runtime {

bool destroy_context(rknn_context handle) {
  const std::shared_ptr<Context> context = take_handle<Context>(handle);
  if (!context) return false;
  const std::lock_guard lock(context->mutex);
  context->destroyed = true;
  context->session.reset();
  context->buffers.clear();
  return true;
}

}  // namespace orknn::runtime
