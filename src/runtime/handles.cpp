#include "runtime/handles.h"

#include <unordered_map>

namespace orknn::runtime {
namespace {
struct Table {
  BriefMutex mutex;
  std::unordered_map<rknn_context, std::shared_ptr<HandleObject>> objects;
  rknn_context next = 1;
};

// Never destroyed: programs call rknn_destroy from their own static destructors.
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}
ORKNN_MAKE_AT_LOAD(table);
}  // namespace

rknn_context publish(std::shared_ptr<HandleObject> object) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  while (t.next == 0 || t.objects.contains(t.next)) ++t.next;
  t.objects.emplace(t.next, std::move(object));
  return t.next++;
}

std::shared_ptr<HandleObject> find_object(rknn_context handle) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto it = t.objects.find(handle);
  return it == t.objects.end() ? nullptr : it->second;
}

bool unpublish(rknn_context handle, const HandleObject& object) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto it = t.objects.find(handle);
  if (it == t.objects.end() || it->second.get() != &object) return false;
  t.objects.erase(it);
  return true;
}

}  // namespace orknn::runtime
