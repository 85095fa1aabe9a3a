// Lets one allocation of the test program fail: operator new throws, aligned_alloc returns nothing.
#pragma once

#include <cstdint>

namespace orknn::tests {

// Counts the allocations of all threads while it lives. One at a time.
class FailingAllocation {
 public:
  static constexpr int64_t kNone = -1;
  // The allocation of this number fails, counted from 0; kNone: they are only counted.
  explicit FailingAllocation(int64_t number);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  int64_t counted() const;
};

}  // namespace orknn::tests
