#include "failing_allocation.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> count{0}, failing{orknn::tests::FailingAllocation::kNone};

bool is_to_fail() {
  return counting.load(std::memory_order_relaxed) && count.fetch_add(1, std::memory_order_relaxed) == failing.load();
}

void* aligned_block(size_t alignment, size_t bytes) {
  void* block = nullptr;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  return is_to_fail() || ::posix_memalign(&block, alignment, bytes ? bytes : 1) != 0 ? nullptr : block;
}
}  // namespace

// The other forms of new and delete call these.
void* operator new(size_t bytes) {
  if (void* block = is_to_fail() ? nullptr : std::malloc(bytes ? bytes : 1)) return block;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  if (void* block = aligned_block(static_cast<size_t>(alignment), bytes)) return block;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return is_to_fail() ? nullptr : std::malloc(bytes ? bytes : 1);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return aligned_block(static_cast<size_t>(alignment), bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return aligned_block(alignment, bytes); }

namespace orknn::tests {

FailingAllocation::FailingAllocation(int64_t number) {
  count = 0;
  failing = number;
  counting = true;
}
FailingAllocation::~FailingAllocation() { counting = false; }
int64_t FailingAllocation::counted() const { return count; }

}  // namespace orknn::tests
