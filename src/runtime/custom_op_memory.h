// Memory with a file descriptor, which programs import into other devices' address spaces.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace orknn::runtime {

class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // At least `bytes`; contents, address and descriptor change when it has to grow.
  Status reserve(size_t bytes);
  std::byte* data() const { return data_; }
  int fd() const { return fd_; }

 private:
  void release();
  int fd_ = -1;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace orknn::runtime
