#include "silicon/drivers/kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include "silicon/drivers/abi.h"

namespace orknn::silicon {
namespace {

class LinuxKernel final : public Kernel {
 public:
  std::vector<std::string> list(const std::string& folder) override {
    std::vector<std::string> names;
    DIR* opened = ::opendir(folder.c_str());
    if (!opened) return names;
    while (const dirent* entry = ::readdir(opened))
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    ::closedir(opened);
    std::ranges::sort(names);
    return names;
  }
  std::string read(const std::string& path) override {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    char text[4096];
    const ssize_t bytes = ::read(file, text, sizeof text);
    ::close(file);
    return bytes > 0 ? std::string(text, static_cast<size_t>(bytes)) : std::string();
  }
  int open(const std::string& path) override {
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    return file < 0 ? -errno : file;
  }
  int control(int file, unsigned long request, void* argument) override {
    for (;;) {
      if (::ioctl(file, request, argument) >= 0) return 0;
      if (errno != EINTR && errno != EAGAIN) return -errno;
    }
  }
  int64_t monotonic_ns() override {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  void close(int file) override { ::close(file); }
  std::byte* map(int file, uint64_t offset, uint64_t bytes) override {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
  }
  void unmap(std::byte* memory, uint64_t bytes) override { ::munmap(memory, bytes); }
};
}  // namespace

Kernel& linux_kernel() {
  static LinuxKernel kernel;
  return kernel;
}

Status kernel_error(const char* call, const std::string& device, int code) {
  const Code kind = code == -ENOMEM ? Code::OutOfMemory : Code::Fail;
  return Status::error(kind,
                       std::string(call) + " of " + device + ": " + std::error_code(-code, std::generic_category()).message());
}

Result<std::unique_ptr<DeviceFile>> DeviceFile::open(Kernel& kernel, std::string path) {
  const int file = kernel.open(path);
  if (file < 0) return kernel_error("opening", path, file);
  return std::unique_ptr<DeviceFile>(new DeviceFile(kernel, std::move(path), file));
}

DeviceFile::~DeviceFile() { kernel_.close(file_); }

DeviceFile::Identity DeviceFile::identity() const {
  char name[64] = {}, date[64] = {}, description[128] = {};
  abi::DrmVersion v;
  v.name = name;
  v.name_bytes = sizeof name;
  v.date = date;
  v.date_bytes = sizeof date;
  v.description = description;
  v.description_bytes = sizeof description;
  if (control(abi::kDrmVersion, v) != 0) return {};
  // The kernel states whole lengths and writes what fits.
  return {.name = std::string(name, std::min(v.name_bytes, sizeof name)),
          .version = std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch),
          .date = std::string(date, std::min(v.date_bytes, sizeof date)),
          .description = std::string(description, std::min(v.description_bytes, sizeof description))};
}

std::string DeviceFile::driver_line() const {
  const Identity i = identity();
  std::string line = i.name + " " + i.version;
  for (const std::string& more : {i.date, i.description})
    if (!more.empty()) line += ", " + more;
  return line;
}

}  // namespace orknn::silicon
