// Where buffers go in one arena. Planners are alternatives with one interface; plan_memory.h feeds them a program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace orknn::compile {

// A buffer that is written at step `first` and read for the last time at step `last` (inclusive). Steps count tasks in
// execution order; a buffer without readers has last == first.
struct BufferRequest {
  uint64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // one per request
  uint64_t total_bytes = 0;       // highest end
};

class MemoryPlanner {
 public:
  virtual ~MemoryPlanner() = default;
  // Requests are in the order of their `first`. Two requests whose steps overlap never share a byte.
  virtual MemoryPlan plan(std::span<const BufferRequest> requests) const = 0;
};

// Offsets are multiples of this.
constexpr uint64_t kBufferAlignment = 64;

// The vendor's rule: in execution order, each buffer takes the lowest offset where it fits, and gives it
// back after its last reader. No search for the optimum.
std::unique_ptr<MemoryPlanner> first_fit_planner();
// One buffer after the other, nothing shared: for debugging, every intermediate result survives.
std::unique_ptr<MemoryPlanner> linear_planner();

}  // namespace orknn::compile
