#include "import/wire/stored.h"

#include <algorithm>

#include "base/assert.h"
#include "base/files.h"

namespace orknn::importer::wire {
using ir::TensorData;

Status Cursor::problem(std::string message) const {
  return invalid_model(std::move(message) + " at offset " + std::to_string(at_) + " of the " + std::string(file_));
}

Result<std::span<const std::byte>> Cursor::take(uint64_t count) {
  if (left() < count)
    return problem("the file is cut short").expected(std::to_string(count) + " more bytes").found(std::to_string(left()));
  const auto taken = bytes_.subspan(at_, static_cast<size_t>(count));
  at_ += taken.size();
  return taken;
}

TensorData stored_tensor(DType dtype, ir::Dims dims, std::span<const std::byte> bytes,
                         const std::shared_ptr<const void>& keeper) {
  // A bool that is neither 0 nor 1 must not reach C++ code as a bool.
  const bool is_odd = dtype == DType::Bool && std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (!is_odd && keeper && !bytes.empty() && reinterpret_cast<uintptr_t>(bytes.data()) % dtype_bytes(dtype) == 0)
    return TensorData::wrap(dtype, std::move(dims), bytes.data(), keeper);
  TensorData copy = TensorData::allocate(dtype, std::move(dims));
  ORKNN_ASSERT(copy.bytes() == bytes.size(), "callers compare the size of what is stored with the shape");
  auto* out = static_cast<std::byte*>(copy.mutable_data());
  if (is_odd)
    std::ranges::transform(bytes, out, [](std::byte b) { return std::byte{b != std::byte{0}}; });
  else
    copy_and_release(bytes, out);
  return copy;
}

Result<uint64_t> StoredList::count() const {
  uint64_t count = 0;
  ORKNN_TRY(for_each([&](uint64_t) { ++count; }));
  return count;
}

Status StoredList::store(std::byte* to) const {
  const size_t size = dtype_bytes(dtype);
  return for_each([&](uint64_t bits) {
    if (dtype == DType::Bool) bits = bits != 0;
    for (size_t i = 0; i < size; ++i) *to++ = static_cast<std::byte>(bits >> (8 * i));
  });
}

}  // namespace orknn::importer::wire
