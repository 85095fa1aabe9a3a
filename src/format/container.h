// Byte layout of the container, shared by reader and writer (docs/rknn_format.md 1 and 3).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/checksum.h"
#include "base/threads.h"
#include "format/bytes.h"

namespace orknn::format {

inline constexpr std::string_view kMagic = "RKNN";
inline constexpr uint64_t kContainerVersion = 6;
inline constexpr size_t kHeaderBytes = 64;

// Our own sections start with this, at the first multiple of 64 after the JSON text.
inline constexpr std::string_view kTrailerMagic = "ORKNNSEC";
inline constexpr uint32_t kTrailerVersion = 4;
inline constexpr uint32_t kArithmeticVersion = 4;  // the first with the stages of ops/support/requantize.h
inline constexpr size_t kTrailerHeaderBytes = 64;
inline constexpr size_t kTrailerChecksumOffset = 32;  // of the checksum that covers the trailer itself

enum class SectionKind : uint32_t { ModelFacts = 1, Program = 2, Weights = 3, CodedWeights = 4, LeftOutWeights = 5, Streams = 6 };

struct Section {
  SectionKind kind{};
  uint64_t offset = 0, bytes = 0, checksum = 0;  // from the start of the file; multiples of 64
};
inline constexpr size_t kSectionEntryBytes = 32;
inline constexpr uint32_t kMaxSections = 4096;

// Long ranges are summed in chunks of this size, so that all cores can work on one, and the sums are summed again.
inline constexpr uint64_t kChunkBytes = 1 << 20;

class RangeChecksum {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (pending_.empty() && bytes.size() >= kChunkBytes) {
        sums_.put(checksum64(bytes.first(kChunkBytes)));
        bytes = bytes.subspan(kChunkBytes);
        continue;
      }
      const size_t n = std::min<size_t>(bytes.size(), kChunkBytes - pending_.size());
      pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n));
      bytes = bytes.subspan(n);
      if (pending_.size() == kChunkBytes) flush();
    }
  }
  uint64_t finish() {
    if (!pending_.empty()) flush();
    return checksum64(sums_.bytes());
  }

 private:
  void flush() {
    sums_.put(checksum64(pending_));
    pending_.clear();
  }
  std::vector<std::byte> pending_;
  ByteWriter sums_;
};

}  // namespace orknn::format
