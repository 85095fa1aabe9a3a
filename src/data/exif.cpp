#include "data/exif.h"

#include <cstdint>

namespace orknn::data {
namespace {

constexpr uint32_t kOrientation = 0x0112;

class Tiff {
 public:
  explicit Tiff(std::span<const std::byte> bytes)
      : bytes_(bytes), little_(bytes.size() > 1 && bytes[0] == std::byte{'I'} && bytes[1] == std::byte{'I'}) {}

  bool holds(uint64_t offset, uint64_t count) const { return offset <= bytes_.size() && count <= bytes_.size() - offset; }
  std::optional<uint32_t> number(uint64_t offset, int count) const {
    if (!holds(offset, static_cast<uint64_t>(count))) return std::nullopt;
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) {
      const auto byte = static_cast<uint32_t>(bytes_[offset + static_cast<uint64_t>(i)]);
      value = little_ ? value | byte << (8 * i) : value << 8 | byte;
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool little_;
};

// How many rational numbers (8 bytes each) OpenCV reads for a tag; 0 for tags without.
int rational_count(uint32_t tag) {
  switch (tag) {
    case 0x011a:
    case 0x011b: return 1;  // resolution
    case 0x013e: return 2;  // white point
    case 0x0211: return 3;  // YCbCr coefficients
    case 0x013f:
    case 0x0214: return 6;  // primaries, reference black and white
    default: return 0;
  }
}

bool is_text(uint32_t tag) {  // description, make, model, software, date, copyright
  return tag == 0x010e || tag == 0x010f || tag == 0x0110 || tag == 0x0131 || tag == 0x0132 || tag == 0x8298;
}

// Whether the data of the entry at `offset` lies inside the structure, for the tags whose data is looked at.
bool entry_is_sound(const Tiff& tiff, uint64_t offset, uint32_t tag) {
  if (is_text(tag)) {
    const auto size = tiff.number(offset + 4, 4);
    if (!size) return false;
    const auto place = *size > 4 ? tiff.number(offset + 8, 4) : 8u;
    return place && tiff.holds(*place, *size);
  }
  if (const int count = rational_count(tag)) {
    const auto place = tiff.number(offset + 8, 4);
    return place && tiff.holds(*place, static_cast<uint64_t>(count) * 8);
  }
  if (tag == 0x0128 || tag == 0x0213) return tiff.holds(offset + 8, 2);  // units, positioning
  return true;
}
}  // namespace

std::optional<int> exif_orientation(std::span<const std::byte> bytes) {
  const Tiff tiff(bytes);
  if (tiff.number(2, 2) != 0x2au) return std::nullopt;
  const auto directory = tiff.number(4, 4);
  if (!directory) return std::nullopt;
  const auto count = tiff.number(*directory, 2);
  if (!count) return std::nullopt;
  for (uint32_t i = 0; i < *count; ++i) {
    const uint64_t entry = uint64_t{*directory} + 2 + uint64_t{i} * 12;
    const auto tag = tiff.number(entry, 2);
    if (!tag) return std::nullopt;
    if (*tag == kOrientation) {
      const auto value = tiff.number(entry + 8, 2);
      return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
    }
    if (!entry_is_sound(tiff, entry, *tag)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace orknn::data
