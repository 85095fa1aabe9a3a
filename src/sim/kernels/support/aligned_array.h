// Memory of kernels, aligned to a cache line: weights in the order in which a core reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/memory.h"

namespace orknn::sim::kernels {

// Memory that holds the same bytes as `fresh` and was made from the same constant, `source`, where anyone still has such; else
// `fresh` itself, which is remembered as long as anyone has it.
std::shared_ptr<void> shared_packing(const void* source, std::shared_ptr<void> fresh, size_t bytes);

template <class T>
class AlignedArray {
 public:
  // False when memory is short.
  bool allocate(int64_t count) {
    bytes_ = static_cast<size_t>(count > 0 ? count : 1) * sizeof(T);
    AlignedPtr<T> fresh(static_cast<T*>(allocate_aligned(bytes_)));
    data_ = std::move(fresh);
    return data_ != nullptr;
  }
  T* data() const { return data_.get(); }
  // Said of packed weights once they are complete, after which they do not change: models that share a constant, and the sets of
  // shapes of one model, pack it alike and hold the result once.
  void share(const void* source) { data_ = std::static_pointer_cast<T>(shared_packing(source, std::move(data_), bytes_)); }

 private:
  std::shared_ptr<T> data_;
  size_t bytes_ = 0;
};
using AlignedFloats = AlignedArray<float>;
using AlignedDwords = AlignedArray<int32_t>;

}  // namespace orknn::sim::kernels
