#include "compile/memory_planner.h"

#include <algorithm>
#include <map>

namespace orknn::compile {
namespace {

uint64_t aligned(uint64_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

class FirstFitPlanner final : public MemoryPlanner {
 public:
  MemoryPlan plan(std::span<const BufferRequest> requests) const override {
    MemoryPlan result;
    result.offsets.reserve(requests.size());
    struct Occupied {
      uint64_t end;
      int64_t last;
    };
    std::map<uint64_t, Occupied> live;         // by offset
    std::multimap<int64_t, uint64_t> by_last;  // last step -> offset
    for (const BufferRequest& r : requests) {
      while (!by_last.empty() && by_last.begin()->first < r.first) {
        live.erase(by_last.begin()->second);
        by_last.erase(by_last.begin());
      }
      if (r.bytes == 0) {  // needs no room, and must not hide a neighbour at the same offset
        result.offsets.push_back(0);
        continue;
      }
      uint64_t offset = 0;
      for (const auto& [start, occupied] : live) {
        if (offset + r.bytes <= start) break;
        offset = std::max(offset, aligned(occupied.end));
      }
      live[offset] = {offset + r.bytes, r.last};
      by_last.emplace(r.last, offset);
      result.offsets.push_back(offset);
      result.total_bytes = std::max(result.total_bytes, offset + r.bytes);
    }
    return result;
  }
};

class LinearPlanner final : public MemoryPlanner {
 public:
  MemoryPlan plan(std::span<const BufferRequest> requests) const override {
    MemoryPlan result;
    for (const BufferRequest& r : requests) {
      const uint64_t offset = aligned(result.total_bytes);
      result.offsets.push_back(offset);
      result.total_bytes = offset + r.bytes;
    }
    return result;
  }
};
}  // namespace

std::unique_ptr<MemoryPlanner> first_fit_planner() { return std::make_unique<FirstFitPlanner>(); }
std::unique_ptr<MemoryPlanner> linear_planner() { return std::make_unique<LinearPlanner>(); }

}  // namespace orknn::compile
