#include "runtime/context.h"

namespace orknn::runtime {
namespace {
struct Table {
  BriefMutex mutex;
  std::unordered_map<rknn_context, std::shared_ptr<Context>> contexts;
  rknn_context next = 1;
};

// Never destroyed: programs call rknn_destroy from their own static destructors.
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}
}  // namespace

rknn_context publish(std::shared_ptr<Context> context) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  while (t.next == 0 || t.contexts.contains(t.next)) ++t.next;
  t.contexts.emplace(t.next, std::move(context));
  return t.next++;
}

std::shared_ptr<Context> find_context(rknn_context handle) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto it = t.contexts.find(handle);
  return it == t.contexts.end() ? nullptr : it->second;
}

bool destroy_context(rknn_context handle) {
  std::shared_ptr<Context> context;
  {
    Table& t = table();
    const std::lock_guard lock(t.mutex);
    const auto it = t.contexts.find(handle);
    if (it == t.contexts.end()) return false;
    context = std::move(it->second);
    t.contexts.erase(it);
  }
  const CallLock lock(context->mutex);
  if (!lock) return true;  // what the thread that a fork left behind was using stays where it is
  context->destroyed = true;
  context->session.reset();
  context->buffers.clear();
  return true;
}

}  // namespace orknn::runtime
