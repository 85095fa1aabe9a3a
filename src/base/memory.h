// Blocks of memory aligned to a cache line. Large ones ask the system for large pages: networks stride through tensors
// and weights, and translating addresses page by page costs more than the memory itself.
#pragma once

#include <cstddef>
#include <memory>

namespace orknn {

// Bytes of memory this machine has. Nothing larger is ever asked for: it can only come from a file that lies about its sizes.
size_t machine_memory() noexcept;

// Uninitialized; nullptr when memory is short.
void* allocate_aligned(size_t bytes) noexcept;
void free_aligned(void* block) noexcept;

struct AlignedDelete {
  void operator()(void* block) const noexcept { free_aligned(block); }
};
template <class T>
using AlignedPtr = std::unique_ptr<T, AlignedDelete>;

// A block that grows where it has to; contents undefined.
class AlignedBytes {
 public:
  // False when memory is short; the old bytes are gone then.
  bool reserve(size_t bytes) {
    if (bytes <= size_) return true;
    clear();
    data_.reset(static_cast<std::byte*>(allocate_aligned(bytes)));
    if (data_) size_ = bytes;
    return data_ != nullptr;
  }
  std::byte* data() const { return data_.get(); }
  void clear() {
    data_.reset();
    size_ = 0;
  }

 private:
  AlignedPtr<std::byte> data_;
  size_t size_ = 0;
};

}  // namespace orknn
