#include "import/tflite/flexbuffer.h"

#include <bit>
#include <cstring>

#include "base/half.h"

namespace orknn::importer::tflite {
namespace {
// A type byte holds the type above two bits for the width of what it refers to.
enum : unsigned {
  kInt = 1,
  kUInt = 2,
  kFloat = 3,
  kIndirectInt = 6,
  kIndirectUInt = 7,
  kIndirectFloat = 8,
  kMap = 9,
  kBool = 26
};
unsigned type_of(uint64_t packed) { return static_cast<unsigned>(packed >> 2); }
uint64_t width_of(uint64_t packed) { return uint64_t{1} << (packed & 3); }
}  // namespace

std::optional<uint64_t> FlexMap::read(uint64_t at, uint64_t width) const {
  if (width != 1 && width != 2 && width != 4 && width != 8) return std::nullopt;
  if (at > bytes_.size() || width > bytes_.size() - at) return std::nullopt;
  uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + at, width);
  return value;
}

std::optional<uint64_t> FlexMap::follow(uint64_t at, uint64_t width) const {
  const auto distance = read(at, width);
  return distance && *distance <= at ? std::optional(at - *distance) : std::nullopt;
}

// The last byte is the width of the root, the one before its type; the root lies before them. A map is a vector of values with
// the place of its keys, the width of these and the number of entries in front, and a type byte per entry after them.
FlexMap::FlexMap(std::span<const std::byte> bytes) : bytes_(bytes) {
  if (bytes.size() < 3) return;
  const auto width = std::to_integer<uint64_t>(bytes[bytes.size() - 1]),
             packed = std::to_integer<uint64_t>(bytes[bytes.size() - 2]);
  if (type_of(packed) != kMap || width > bytes.size() - 2) return;
  const auto values = follow(bytes.size() - 2 - width, width);
  width_ = width_of(packed);
  if (!values || *values < 3 * width_) return;
  values_ = *values;
  const auto count = read(values_ - width_, width_), key_width = read(values_ - 2 * width_, width_),
             keys = follow(values_ - 3 * width_, width_);
  if (!count || !key_width || !keys || *count > bytes.size()) return;
  count_ = *count;
  key_width_ = *key_width;
  keys_ = *keys;
  is_map_ = true;
}

std::optional<double> FlexMap::value(uint64_t at, uint64_t width, unsigned type) const {
  const auto raw = read(at, width);
  if (!raw) return std::nullopt;
  const auto shift = 64 - 8 * width;
  switch (type) {
    case kInt:
    case kIndirectInt: return static_cast<double>(static_cast<int64_t>(*raw << shift) >> shift);
    case kUInt:
    case kIndirectUInt:
    case kBool: return static_cast<double>(*raw);
    case kFloat:
    case kIndirectFloat:
      if (width == 8) return std::bit_cast<double>(*raw);
      if (width == 4) return double{std::bit_cast<float>(static_cast<uint32_t>(*raw))};
      if (width == 2) return double{half_to_float(static_cast<uint16_t>(*raw))};
      return std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<double> FlexMap::number(std::string_view key) const {
  for (uint64_t i = 0; is_map_ && i < count_; ++i) {
    const auto name = follow(keys_ + i * key_width_, key_width_);
    if (!name || *name > bytes_.size()) return std::nullopt;
    if (key.size() >= bytes_.size() - *name) continue;
    const auto* text = reinterpret_cast<const char*>(bytes_.data()) + *name;
    if (std::string_view(text, key.size()) != key || text[key.size()] != '\0') continue;
    const uint64_t at = values_ + i * width_;
    const auto packed = read(values_ + count_ * width_ + i, 1);
    if (!packed) return std::nullopt;
    const unsigned type = type_of(*packed);
    if (type != kIndirectInt && type != kIndirectUInt && type != kIndirectFloat) return value(at, width_, type);
    const auto target = follow(at, width_);
    return target ? value(*target, width_of(*packed), type) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace orknn::importer::tflite
