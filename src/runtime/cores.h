// The cores of the simulated NPU. A core is a set of threads that computes one run at a time; runs on different cores go on at
// once. Waiting runs get their cores in the order of priority, then of arrival.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/threads.h"
#include "platform/platforms.h"

namespace orknn::runtime {

struct CoreRequest {
  uint32_t mask = 0;  // the cores the run needs, all of them; 0 = any one
  int priority = 0;   // 0 comes first
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;  // for the wait
  std::function<bool()> stop = nullptr;  // asked several times a second during the wait: true = give up
};

// Holds cores until it is destroyed.
class CoreLease {
 public:
  // Waits until the cores are free; nothing when the deadline passed or the request was given up. A run inside of another one (a
  // custom operator that runs a model) shares the cores of that.
  static std::optional<CoreLease> take(const platform::Platform& chip, const CoreRequest& request);
  ~CoreLease();
  CoreLease(CoreLease&& other) noexcept;
  CoreLease& operator=(CoreLease&&) = delete;

  uint32_t mask() const { return mask_; }
  // All threads while the rest of the chip is idle, else those of the cores.
  ThreadPool& pool() const { return *pool_; }

 private:
  CoreLease() = default;
  struct Board* board_ = nullptr;  // nullptr = nothing to give back
  uint32_t mask_ = 0;
  ThreadPool* pool_ = nullptr;
};

// Runs that wait for cores of the chip.
int waiting_runs(const platform::Platform& chip);

}  // namespace orknn::runtime
