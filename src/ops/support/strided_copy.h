// A copy between strided places that is planned once and done often; doing it allocates nothing.
#pragma once

#include "ops/support/movement.h"

namespace orknn::ops {

// What copy_strided() does.
class StridedCopy {
 public:
  StridedCopy(CopyAxes axes, size_t element_bytes);
  void run(const void* from, void* to, ThreadPool& pool) const;

 private:
  enum class Way : uint8_t;
  template <size_t Bytes>
  void copy_tiles(const std::byte* from, std::byte* to, ThreadPool& pool) const;
  template <size_t Bytes>
  void copy_elements(const std::byte* from, std::byte* to, ThreadPool& pool) const;
  void copy_runs(const std::byte* from, std::byte* to, ThreadPool& pool) const;

  Way way_{};
  int64_t bytes_;  // of an element, or of a short run that moves as one
  CopyAxis inner_, across_;
  CopyAxes outer_;
};

}  // namespace orknn::ops
