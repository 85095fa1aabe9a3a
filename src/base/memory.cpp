#include "base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace orknn {
namespace {
constexpr size_t kLine = 64, kLargePage = size_t{2} << 20, kLargeBlock = 2 * kLargePage;
}

size_t machine_memory() noexcept {
  static const size_t bytes = [] {
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(size) : SIZE_MAX / 2;
  }();
  return bytes;
}
[[maybe_unused]] static const size_t machine_memory_at_load = machine_memory();

void* allocate_aligned(size_t bytes) noexcept {
  if (bytes > machine_memory()) return nullptr;
  const size_t alignment = bytes >= kLargeBlock ? kLargePage : kLine;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, rounded ? rounded : alignment);
  // Only a wish, and for whole large pages: the rest of the last one would take memory that nobody uses.
  if (block && alignment == kLargePage) madvise(block, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
  return block;
}

void free_aligned(void* block) noexcept { std::free(block); }

}  // namespace orknn
