#include "base/repeated_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>

namespace orknn {
namespace {
// Long enough that mapping it again and again costs few calls, short enough to cost nothing.
constexpr size_t kPatternBytes = size_t{4} << 20;

// The file that holds the pattern, open for as long as the process lives; -1 when there is none.
int pattern_file() {
  static const int file = [] {
    const int fd = memfd_create("openrknn-stand-in", MFD_CLOEXEC);
    if (fd < 0) return -1;
    if (ftruncate(fd, static_cast<off_t>(kPatternBytes)) != 0) return close(fd), -1;
    void* block = mmap(nullptr, kPatternBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (block == MAP_FAILED) return close(fd), -1;
    uint32_t state = 0x9e3779b9u;
    auto* values = static_cast<float*>(block);
    for (size_t i = 0; i < kPatternBytes / sizeof(float); ++i) {
      state = state * 1664525u + 1013904223u;
      values[i] = (static_cast<float>(state >> 9) + 1.0f) * (1.0f / (1u << 27));
    }
    munmap(block, kPatternBytes);
    return fd;
  }();
  return file;
}
}  // namespace

std::shared_ptr<const void> repeated_floats(size_t bytes, size_t start) {
  const int file = pattern_file();
  const size_t offset = start * 64 % kPatternBytes;
  if (file < 0 || bytes > SIZE_MAX / 2) return nullptr;
  const size_t copies = (offset + bytes + kPatternBytes - 1) / kPatternBytes + (bytes == 0), length = copies * kPatternBytes;
  void* block = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(block);
  for (size_t i = 0; i < copies; ++i)
    if (mmap(begin + i * kPatternBytes, kPatternBytes, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
      return munmap(block, length), nullptr;
  return std::shared_ptr<const void>(begin + offset, [block, length](const void*) { munmap(block, length); });
}

}  // namespace orknn
