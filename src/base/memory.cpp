#include "base/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace orknn {
namespace {
constexpr size_t kLine = 64, kLargePage = size_t{2} << 20, kLargeBlock = 2 * kLargePage;
}

void* allocate_aligned(size_t bytes) noexcept {
  const size_t alignment = bytes >= kLargeBlock ? kLargePage : kLine;
  if (bytes > SIZE_MAX - alignment) return nullptr;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, rounded ? rounded : alignment);
  if (block && alignment == kLargePage) madvise(block, rounded, MADV_HUGEPAGE);  // only a wish
  return block;
}

void free_aligned(void* block) noexcept { std::free(block); }

}  // namespace orknn
