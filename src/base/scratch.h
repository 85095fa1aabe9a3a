// Working memory of functions that are called over and over with the same sizes, such as kernels in the runs of a model: a
// Scratch is a vector whose memory the thread keeps when the vector ends, so that the next one takes nothing from the system.
#pragma once

#include <cstddef>
#include <vector>

namespace orknn {

// At least `bytes`, aligned for any ordinary type; throws std::bad_alloc. A thread keeps blocks of up to 1 MiB, 4 MiB in all.
void* take_scratch(size_t bytes);
// Of the same number of bytes; on any thread.
void return_scratch(void* block, size_t bytes) noexcept;

template <class T>
struct ScratchAllocator {
  using value_type = T;
  ScratchAllocator() = default;
  template <class Other>
  ScratchAllocator(const ScratchAllocator<Other>&) {}
  T* allocate(size_t count) { return static_cast<T*>(take_scratch(count * sizeof(T))); }
  void deallocate(T* block, size_t count) noexcept { return_scratch(block, count * sizeof(T)); }
  friend bool operator==(const ScratchAllocator&, const ScratchAllocator&) { return true; }
};

template <class T>
using Scratch = std::vector<T, ScratchAllocator<T>>;

}  // namespace orknn
