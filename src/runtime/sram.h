// The SRAM of simulated chips: who holds how much of it. Results never depend on that.
#pragma once

#include <cstdint>

#include "platform/platforms.h"

namespace orknn::runtime {

// What nobody holds; 0 for chips without SRAM for activations.
uint64_t free_sram(const platform::Platform& chip);

// SRAM that is given back when the object ends.
class SramShare {
 public:
  SramShare() = default;
  // As much of `bytes`, rounded up to whole granules, as is free.
  SramShare(const platform::Platform& chip, uint64_t bytes);
  ~SramShare();
  SramShare(SramShare&& other) noexcept;
  SramShare& operator=(SramShare&& other) noexcept;
  // What was free when the share was taken, the share included.
  uint64_t found_free() const { return found_free_; }

 private:
  const platform::Platform* chip_ = nullptr;
  uint64_t bytes_ = 0, found_free_ = 0;
};

}  // namespace orknn::runtime
