// The handles that the C API gives out. Contexts of models and of matrix products share one number space, so that memory can be
// made for either and neither is taken for the other.
#pragma once

#include <memory>

#include "base/forks.h"
#include "runtime/public_api.h"

namespace orknn::runtime {

// What a handle refers to. Every call on it holds `mutex`.
struct HandleObject {
  CallMutex mutex;
  bool destroyed = false;  // a call that waited for the lock finds out by this
  virtual ~HandleObject() = default;
};

// Never 0.
rknn_context publish(std::shared_ptr<HandleObject> object);
// Nothing for 0, unknown and destroyed handles.
std::shared_ptr<HandleObject> find_object(rknn_context handle);
// Takes the handle out of the table if it refers to `object`. False when another thread was faster.
bool unpublish(rknn_context handle, const HandleObject& object);

// The object of a handle if it is a T.
template <class T>
std::shared_ptr<T> find_handle(rknn_context handle) {
  return std::dynamic_pointer_cast<T>(find_object(handle));
}

// Takes the handle of a T out of the table; the caller ends what it refers to. Nothing when there is none.
template <class T>
std::shared_ptr<T> take_handle(rknn_context handle) {
  std::shared_ptr<T> object = find_handle<T>(handle);
  return object && unpublish(handle, *object) ? object : nullptr;
}

}  // namespace orknn::runtime
