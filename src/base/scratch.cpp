#include "base/scratch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>

namespace orknn {
namespace {
constexpr size_t kSmallest = 64, kLargest = size_t{1} << 20, kMostKept = size_t{4} << 20;
constexpr size_t kClasses = std::countr_zero(kLargest / kSmallest) + 1;  // powers of two

size_t class_of(size_t bytes) { return static_cast<size_t>(std::bit_width((std::max(bytes, kSmallest) - 1) / kSmallest)); }
size_t class_bytes(size_t number) { return kSmallest << number; }

// The blocks that a thread keeps: lists through their first bytes.
struct Kept {
  struct Block {
    Block* next;
  };
  std::array<Block*, kClasses> first{};
  size_t bytes = 0;
  ~Kept();
};

// Objects that end after the thread's own blocks, in its last moments, find nothing kept and keep nothing.
thread_local bool has_ended = false;
thread_local Kept kept;

Kept::~Kept() {
  has_ended = true;
  for (Block* block : first)
    while (block) ::operator delete(std::exchange(block, block->next));
}
}  // namespace

void* take_scratch(size_t bytes) {
  if (bytes > kLargest) return ::operator new(bytes);
  const size_t number = class_of(bytes);
  if (has_ended || !kept.first[number]) return ::operator new(class_bytes(number));
  Kept::Block* block = std::exchange(kept.first[number], kept.first[number]->next);
  kept.bytes -= class_bytes(number);
  return block;
}

void return_scratch(void* block, size_t bytes) noexcept {
  const size_t number = bytes > kLargest ? kClasses : class_of(bytes);
  if (number == kClasses || has_ended || kept.bytes + class_bytes(number) > kMostKept) return ::operator delete(block);
  kept.first[number] = new (block) Kept::Block{kept.first[number]};
  kept.bytes += class_bytes(number);
}

}  // namespace orknn
