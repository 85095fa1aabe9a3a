// Binary files that hold numbers one after the other, and the elements of tensors as files store them.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "import/wire/reader.h"
#include "ir/tensor_data.h"

namespace orknn::importer::wire {

// Reads little-endian numbers in their order. `file` names the file in messages.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}
  size_t left() const { return bytes_.size() - at_; }
  Status problem(std::string message) const;
  Result<std::span<const std::byte>> take(uint64_t count);
  template <class T>
  Result<T> read() {
    ORKNN_TRY_ASSIGN(const auto taken, take(sizeof(T)));
    T value;
    std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_;
  size_t at_ = 0;
};

// A tensor of stored elements; `bytes` holds all of `dims` and nothing else. It points into the file, which `keeper` keeps
// mapped, where alignment allows for it, else it is a copy. A stored bool is true unless it is 0.
ir::TensorData stored_tensor(DType dtype, ir::Dims dims, std::span<const std::byte> bytes,
                             const std::shared_ptr<const void>& keeper);

// The values of a tensor in a repeated field of a message, in any number of pieces: floats and doubles as they are, other types
// as varints.
struct StoredList {
  std::span<const std::byte> message;
  uint32_t number;
  DType dtype;

  // Calls f(uint64_t bits) for each value.
  template <class F>
  Status for_each(F&& f) const {
    return for_each_field(message, [&](const Field& field) -> Status {
      if (field.number != number) return {};
      if (dtype == DType::Float32) return for_each_fixed<uint32_t>(field, f);
      if (dtype == DType::Float64) return for_each_fixed<uint64_t>(field, f);
      return for_each_varint(field, f);
    });
  }
  Result<uint64_t> count() const;
  Status store(std::byte* to) const;  // where there is room for count() values
};

}  // namespace orknn::importer::wire
