#include "runtime/custom_op_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace orknn::runtime {

SharedMemory::~SharedMemory() { release(); }

void SharedMemory::release() {
  if (data_) munmap(data_, bytes_);
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  data_ = nullptr;
  bytes_ = 0;
}

Status SharedMemory::reserve(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes <= bytes_) return {};
  release();
  const auto failed = [&] {
    release();
    return Status::error(Code::OutOfMemory, "no memory for a custom operator (" + std::to_string(bytes) + " bytes)");
  };
  fd_ = memfd_create("rknn_custom_op", MFD_CLOEXEC);
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return failed();
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) return failed();
  data_ = static_cast<std::byte*>(mapped);
  bytes_ = bytes;
  return {};
}

}  // namespace orknn::runtime
