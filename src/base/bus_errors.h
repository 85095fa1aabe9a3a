// Reading a mapped file beyond the end that it has by now raises SIGBUS, which ends a process. No check beforehand helps against
// a file that is shortened during the read.
#pragma once

#include <cstddef>

namespace orknn {

// While one lives, a page of its range that the file has lost reads as zeros, and the loss is remembered: whoever read the range
// asks is_damaged() before using what came of it.
//
// The first guard installs a handler for SIGBUS. Signals that concern no guarded range go to the handler that was there before,
// or have the effect that they had without one.
class BusErrorGuard {
 public:
  // `data` is the beginning of a mapping.
  BusErrorGuard(const std::byte* data, size_t bytes);
  ~BusErrorGuard();
  BusErrorGuard(const BusErrorGuard&) = delete;
  BusErrorGuard& operator=(const BusErrorGuard&) = delete;
  bool is_damaged() const;

 private:
  struct Range;
  friend struct BusErrors;
  Range* range_;
};

}  // namespace orknn
