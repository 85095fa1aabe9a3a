// A reader of FlatBuffers over mapped bytes. Nothing is copied and nothing is believed: every read is checked against the file,
// and a read that leaves it gives the default and is remembered as damage, which whoever reads asks for when done.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orknn::importer::tflite {
static_assert(std::endian::native == std::endian::little, "FlatBuffers are little-endian");

// The bytes of a file and the first damage found in them.
class FlatFile {
 public:
  explicit FlatFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  FlatFile(const FlatFile&) = delete;
  FlatFile& operator=(const FlatFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const Status& damage() const { return damage_; }
  // True when the file has `size` bytes at `at`; remembers damage otherwise.
  bool check(uint64_t at, uint64_t size, std::string_view what) const;
  void fail(uint64_t at, std::string_view what) const;
  // Only for a place that was checked.
  template <class T>
  T load(uint64_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  mutable Status damage_;
};

// Numbers in the file, checked when the view was made.
template <class T>
class Numbers {
 public:
  Numbers() = default;
  Numbers(const std::byte* first, size_t count) : first_(first), count_(count) {}
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  T operator[](size_t i) const {
    ORKNN_ASSERT(i < count_, "index inside of the vector");
    T value;
    std::memcpy(&value, first_ + i * sizeof(T), sizeof value);
    return value;
  }
  std::span<const std::byte> bytes() const { return {first_, count_ * sizeof(T)}; }
  std::vector<int64_t> to_ints() const {
    std::vector<int64_t> out(count_);
    for (size_t i = 0; i < count_; ++i) out[i] = static_cast<int64_t>((*this)[i]);
    return out;
  }

 private:
  const std::byte* first_ = nullptr;
  size_t count_ = 0;
};

class Tables;

// A table; a default one has no fields. Fields go by their id in the schema.
class Table {
 public:
  Table() = default;
  // The table at an offset of the file; without fields, and damage remembered, when it does not fit.
  Table(const FlatFile& file, uint64_t at);

  bool exists() const { return file_ != nullptr; }
  bool has(unsigned id) const { return field(id, 1) != 0; }
  template <class T>
  T number(unsigned id, T fallback = {}) const {
    const uint64_t at = field(id, sizeof(T));
    return at ? file_->load<T>(at) : fallback;
  }
  bool flag(unsigned id, bool fallback = false) const { return number<uint8_t>(id, fallback) != 0; }
  Table table(unsigned id) const;
  std::string_view text(unsigned id) const;
  template <class T>
  Numbers<T> numbers(unsigned id) const {
    uint64_t first = 0;
    const size_t count = vector(id, sizeof(T), first);
    return count ? Numbers<T>(file_->bytes().data() + first, count) : Numbers<T>();
  }
  Tables tables(unsigned id) const;

 private:
  // Where a field of `size` bytes lies; 0 when the table has none.
  uint64_t field(unsigned id, uint64_t size) const;
  // Where the thing lies that a field refers to; 0 when the table has none.
  uint64_t target(unsigned id) const;
  // The elements of a vector; their number, and where they begin.
  size_t vector(unsigned id, uint64_t element_bytes, uint64_t& first) const;

  const FlatFile* file_ = nullptr;
  uint64_t at_ = 0, vtable_ = 0;
  uint16_t vtable_bytes_ = 0, object_bytes_ = 0;
};

// A vector of tables.
class Tables {
 public:
  Tables() = default;
  Tables(const FlatFile& file, uint64_t first, size_t count) : file_(&file), first_(first), count_(count) {}
  size_t size() const { return count_; }
  Table operator[](size_t i) const;

 private:
  const FlatFile* file_ = nullptr;
  uint64_t first_ = 0;
  size_t count_ = 0;
};

Table root_table(const FlatFile& file);

}  // namespace orknn::importer::tflite
