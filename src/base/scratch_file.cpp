#include "base/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace orknn {
namespace {
constexpr mode_t kMode = 0666;  // less the umask

Status system_error() { return io_error(std::strerror(errno)); }

// Calls `make` with temporary names of the folder until one is free. Empty with errno when none can be made.
template <class Make>
std::string with_free_name(const std::string& folder, Make&& make) {
  constexpr int kAttempts = 1000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = folder + "/.openrknn." + std::to_string(::getpid()) + "." + std::to_string(attempt);
    if (make(name.c_str())) return name;
    if (errno != EEXIST) break;
  }
  return {};
}
}  // namespace

Descriptor::~Descriptor() { close(); }

bool Descriptor::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || ::close(fd) == 0;
}

Result<ScratchFile> ScratchFile::create(const std::string& folder) {
  // A nameless file gets its name through /proc.
  if (::access("/proc/self/fd", F_OK) == 0) {
    Descriptor file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode));
    if (file.get() >= 0) return ScratchFile(std::move(file), folder, "");
  }
  return create_named(folder);
}

Result<ScratchFile> ScratchFile::create_named(const std::string& folder) {
  int fd = -1;
  std::string name = with_free_name(folder, [&](const char* path) {
    fd = ::open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
    return fd >= 0;
  });
  if (name.empty()) return system_error();
  return ScratchFile(Descriptor(fd), folder, std::move(name));
}

ScratchFile::~ScratchFile() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

Status ScratchFile::become(const std::string& path) {
  if (name_.empty()) {
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor());
    const auto link = [&](const char* name) { return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0; };
    if (link(path.c_str())) return file_.close() ? Status() : system_error();
    if (errno != EEXIST) return system_error();
    name_ = with_free_name(folder_, link);  // only a rename replaces a file
    if (name_.empty()) return system_error();
  }
  if (!file_.close() || std::rename(name_.c_str(), path.c_str()) != 0) return system_error();
  name_.clear();
  return {};
}

}  // namespace orknn
