// Options of custom operators in the FlexBuffers format: a map of names to numbers. Reads are checked, damage means "no such
// name".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace orknn::importer::tflite {

class FlexMap {
 public:
  explicit FlexMap(std::span<const std::byte> bytes);

  bool is_map() const { return is_map_; }
  // An integer, a float or a bool.
  std::optional<double> number(std::string_view key) const;

 private:
  // `width` bytes at `at` as an unsigned number; nothing when they are not there.
  std::optional<uint64_t> read(uint64_t at, uint64_t width) const;
  // What lies as far before `at` as the number there says.
  std::optional<uint64_t> follow(uint64_t at, uint64_t width) const;
  std::optional<double> value(uint64_t at, uint64_t width, unsigned type) const;

  std::span<const std::byte> bytes_;
  bool is_map_ = false;
  uint64_t values_ = 0, width_ = 0, count_ = 0;  // of the map
  uint64_t keys_ = 0, key_width_ = 0;
};

}  // namespace orknn::importer::tflite
