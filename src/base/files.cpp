#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "base/forks.h"
#include "base/scratch_file.h"

namespace orknn {
namespace {
std::string reason() { return std::strerror(errno); }

class BufferedFileWriter final : public FileWriter {
 public:
  BufferedFileWriter(int fd, const std::string& path) : fd_(fd), path_(path) { buffer_.reserve(kBufferBytes); }
  Status write(std::span<const std::byte> bytes) override {
    if (buffer_.size() + bytes.size() <= kBufferBytes) {
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
      return {};
    }
    ORKNN_TRY(flush());
    return write_through(bytes);
  }
  Status flush() {
    Status s = write_through(buffer_);
    buffer_.clear();
    return s;
  }

 private:
  static constexpr size_t kBufferBytes = 1 << 16;
  Status write_through(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return io_error("cannot write '" + path_ + "': " + reason()).hint("check free space and permissions");
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return {};
  }
  int fd_;
  const std::string& path_;
  std::vector<std::byte> buffer_;
};

// Every live mapping by its first byte: only their pages may be given back.
struct Mappings {
  struct Mapping {
    size_t bytes;
    std::weak_ptr<const MappedFile> file;
  };
  BriefMutex mutex;
  std::map<const std::byte*, Mapping> ranges;
  size_t copied_bytes = 0;

  // The one that holds all of these bytes; the caller has the mutex.
  const Mapping* find(std::span<const std::byte> bytes) const {
    auto it = ranges.upper_bound(bytes.data());
    if (it == ranges.begin()) return nullptr;
    --it;
    return bytes.data() + bytes.size() <= it->first + it->second.bytes ? &it->second : nullptr;
  }
};
Mappings& mappings() {
  static Mappings& all = *new Mappings;  // outlives every static object that holds a file
  return all;
}
ORKNN_MAKE_AT_LOAD(mappings);

Status shortened(const std::string& path, size_t expected, size_t found) {
  return io_error("'" + path + "' was shortened while it was in use")
      .expected(std::to_string(expected) + " bytes")
      .found(std::to_string(found))
      .hint("load the model again once the file is complete");
}

// Fills `to` from the beginning of the file.
Status read_all(int fd, const std::string& path, std::span<std::byte> to) {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t n = ::read(fd, to.data() + done, to.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("cannot read '" + path + "': " + reason());
    if (n == 0) return shortened(path, to.size(), done);
    done += static_cast<size_t>(n);
  }
  return {};
}
}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a named pipe is refused below, not waited for
  if (file.get() < 0) {
    const Code code = errno == ENOENT ? Code::NotFound : Code::Io;
    return Status::error(code, "cannot open '" + path + "': " + reason());
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return io_error("cannot read '" + path + "': " + reason());
  if (!S_ISREG(info.st_mode))
    return io_error("cannot read '" + path + "': it is " + (S_ISDIR(info.st_mode) ? "a folder" : "not a regular file"));
  std::shared_ptr<MappedFile> opened(new MappedFile);
  std::error_code problem;
  opened->path_ = std::filesystem::absolute(path, problem).string();
  opened->device_ = info.st_dev;
  opened->number_ = info.st_ino;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(std::move(opened));
  Mappings& all = mappings();
  {
    const std::lock_guard lock(all.mutex);
    opened->copied_ = size <= kCopiedBytes - all.copied_bytes;
    if (opened->copied_) all.copied_bytes += size;
  }
  opened->size_ = size;
  void* address = opened->copied_ ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                  : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return io_error("cannot map '" + path + "': " + reason());
  opened->data_ = static_cast<const std::byte*>(address);
  if (opened->copied_) {
    ORKNN_TRY(read_all(file.get(), path, {static_cast<std::byte*>(address), size}));
    return std::shared_ptr<const MappedFile>(std::move(opened));
  }
  opened->guard_ = std::make_unique<BusErrorGuard>(opened->data_, size);
  const std::lock_guard lock(all.mutex);
  all.ranges[opened->data_] = {size, opened};
  return std::shared_ptr<const MappedFile>(std::move(opened));
}

std::shared_ptr<const MappedFile> MappedFile::holding(const void* address) {
  const std::lock_guard lock(mappings().mutex);
  const Mappings::Mapping* mapping = mappings().find({static_cast<const std::byte*>(address), 1});
  return mapping ? mapping->file.lock() : nullptr;
}

Status MappedFile::check() const {
  struct stat info {};
  if (guard_ && guard_->is_damaged())
    return io_error("'" + path_ + "' was shortened while it was read").hint("load the model again once the file is complete");
  // A file that lost its name keeps its bytes; no other process can shorten it any more.
  if (copied_ || ::stat(path_.c_str(), &info) != 0 || info.st_dev != device_ || info.st_ino != number_) return {};
  const auto now = static_cast<size_t>(info.st_size);
  return now < size_ ? shortened(path_, size_, now) : Status();
}

MappedFile::~MappedFile() {
  guard_.reset();
  const std::lock_guard lock(mappings().mutex);
  if (copied_) mappings().copied_bytes -= size_;
  if (!data_) return;
  mappings().ranges.erase(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void release_mapped_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin >= end) return;
  const std::lock_guard lock(mappings().mutex);
  if (mappings().find(bytes)) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void copy_and_release(std::span<const std::byte> from, void* to) {
  constexpr size_t kPortion = size_t{4} << 20;
  for (size_t at = 0; at < from.size(); at += kPortion) {
    const auto portion = from.subspan(at, std::min(kPortion, from.size() - at));
    std::memcpy(static_cast<std::byte*>(to) + at, portion.data(), portion.size());
    release_mapped_pages(portion);
  }
}

Status write_file_atomically(const std::string& given_path, const std::function<Status(FileWriter&)>& fill) {
  // A link is written through, and nothing but a regular file is ever replaced.
  std::string path = given_path;
  constexpr int kMostLinks = 40;
  std::error_code problem;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, problem); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, problem);
    path = target.is_absolute() ? target.string() : directory_of(path) + "/" + target.string();
  }
  struct stat info {};
  const bool replaces = ::lstat(path.c_str(), &info) == 0;
  if (replaces && !S_ISREG(info.st_mode))
    return io_error("cannot write '" + given_path + "': it is " + (S_ISDIR(info.st_mode) ? "a folder" : "not a regular file"));
  auto file = ScratchFile::create(directory_of(path));
  if (!file)
    return io_error("cannot create a file beside '" + path + "': " + file.status().message())
        .hint("check that the folder exists and is writable");
  BufferedFileWriter writer(file->descriptor(), path);
  ORKNN_TRY(fill(writer));
  ORKNN_TRY(writer.flush());
  if (replaces && ::fchmod(file->descriptor(), info.st_mode & 0777) != 0)
    return io_error("cannot set the mode of '" + path + "': " + reason());
  if (Status s = file->become(path); !s) return io_error("cannot write '" + path + "': " + s.message());
  return {};
}

std::string file_stem(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const size_t dot = name.find_last_of('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace orknn
