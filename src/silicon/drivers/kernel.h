// The system calls that the drivers need, so that tests can put a kernel of their own in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace orknn::silicon {

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Names in a folder, sorted; none when it is missing.
  virtual std::vector<std::string> list(const std::string& folder) = 0;
  // Contents of a small file; empty when it is missing.
  virtual std::string read(const std::string& path) = 0;
  // These three return a negative errno on failure. Interrupted calls are repeated.
  virtual int open(const std::string& path) = 0;
  virtual int control(int file, unsigned long request, void* argument) = 0;
  virtual int64_t monotonic_ns() = 0;
  virtual void close(int file) = 0;
  // nullptr on failure.
  virtual std::byte* map(int file, uint64_t offset, uint64_t bytes) = 0;
  virtual void unmap(std::byte* memory, uint64_t bytes) = 0;
};
Kernel& linux_kernel();

// What a failed call means: "SUBMIT of /dev/accel/accel0: Connection timed out".
Status kernel_error(const char* call, const std::string& device, int code);

// Closes the file at the end of its life.
class DeviceFile {
 public:
  static Result<std::unique_ptr<DeviceFile>> open(Kernel& kernel, std::string path);
  ~DeviceFile();
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  Kernel& kernel() const { return kernel_; }
  const std::string& path() const { return path_; }
  // 0 or a negative errno.
  template <class T>
  int control(unsigned long request, T& argument) const {
    return kernel_.control(file_, request, &argument);
  }
  std::byte* map(uint64_t offset, uint64_t bytes) const { return kernel_.map(file_, offset, bytes); }
  // Name of the driver, as DRM devices state it; empty for others.
  std::string driver() const { return identity().name; }
  // The same with version, date and description, on one line.
  std::string driver_line() const;

 private:
  struct Identity {
    std::string name, version, date, description;
  };
  Identity identity() const;
  DeviceFile(Kernel& kernel, std::string path, int file) : kernel_(kernel), path_(std::move(path)), file_(file) {}
  Kernel& kernel_;
  std::string path_;
  int file_ = -1;
};

}  // namespace orknn::silicon
