// A new file that takes its name when it is complete: the mechanism of write_file_atomically (files.h).
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace orknn {

// Closes a file descriptor when it leaves scope.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  // Closes it now; false with errno when the system reports that something written to it was lost.
  bool close();

 private:
  int fd_;
};

// An empty, writable file in a folder, with the mode that an ordinary open gives (0666 less the umask, which is applied by the
// system: asking for the umask would change it for other threads). Unless it became something, it vanishes with this object.
// Messages of errors are the system's reasons.
class ScratchFile {
 public:
  // Without a name where the system has such files, so that it vanishes even when the process is killed; otherwise with one.
  static Result<ScratchFile> create(const std::string& folder);
  static Result<ScratchFile> create_named(const std::string& folder);
  ScratchFile(ScratchFile&& other) noexcept
      : file_(std::move(other.file_)), folder_(std::move(other.folder_)), name_(std::exchange(other.name_, {})) {}
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile();
  int descriptor() const { return file_.get(); }
  // Gives the file its name, in the same folder; a file that has this name is replaced. The descriptor is closed.
  Status become(const std::string& path);

 private:
  ScratchFile(Descriptor file, std::string folder, std::string name)
      : file_(std::move(file)), folder_(std::move(folder)), name_(std::move(name)) {}
  Descriptor file_;
  std::string folder_;
  std::string name_;  // path of the file, empty while it is nameless
};

}  // namespace orknn
