// Little-endian encoding into a growing buffer and checked decoding from an untrusted one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace orknn::format {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read in place");

// Everything in the file that is mapped in place starts at a multiple of this.
inline constexpr uint64_t kFileAlignment = 64;
constexpr uint64_t aligned(uint64_t n) { return (n + kFileAlignment - 1) / kFileAlignment * kFileAlignment; }

class ByteWriter {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    raw(&value, sizeof value);
  }
  void raw(const void* data, size_t bytes) {
    const size_t at = bytes_.size();
    bytes_.resize(at + bytes);
    if (bytes) std::memcpy(bytes_.data() + at, data, bytes);
  }
  void raw(std::string_view s) { raw(s.data(), s.size()); }
  void count(size_t n) { put(static_cast<uint32_t>(n)); }
  void text(std::string_view s) {
    count(s.size());
    raw(s);
  }
  template <class T>
  void list(const std::vector<T>& values) {
    count(values.size());
    for (const T& v : values) put(v);
  }
  void pad() { bytes_.resize(aligned(bytes_.size())); }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads past the end give zeros and set failed(), which the caller checks before it uses what was read.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    T value{};
    if (left() < sizeof value)
      fail();
    else
      std::memcpy(&value, bytes_.data() + position_, sizeof value), position_ += sizeof value;
    return value;
  }
  // Number of items that follow, each at least `item_bytes` long: never more than the rest of the buffer can hold.
  uint32_t count(size_t item_bytes) {
    const auto n = get<uint32_t>();
    if (n > left() / item_bytes) fail();
    return failed_ ? 0 : n;
  }
  std::string text() {
    const uint32_t n = count(1);
    std::string s(reinterpret_cast<const char*>(bytes_.data() + position_), n);
    position_ += n;
    return s;
  }
  template <class T>
  std::vector<T> list() {
    std::vector<T> values(count(sizeof(T)));
    for (T& v : values) v = get<T>();
    return values;
  }
  void fail() {
    failed_ = true;
    position_ = bytes_.size();
  }
  void skip(size_t bytes) {
    if (bytes > left())
      fail();
    else
      position_ += bytes;
  }
  bool failed() const { return failed_; }
  size_t left() const { return bytes_.size() - position_; }
  std::span<const std::byte> rest() const { return bytes_.subspan(position_); }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace orknn::format
