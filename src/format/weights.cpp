#include "format/weights.h"

#include <cstring>

#include "base/checksum.h"
#include "format/bytes.h"

namespace orknn::format {

uint64_t WeightCollector::add(const ir::TensorData& value) {
  if (value.packed()) {
    const uint64_t integers = add(value.packed()->integers);
    add(value.packed()->scales);
    return integers;
  }
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(value.data()), value.bytes());
  if (bytes.empty()) return 0;
  // The same memory again (a constant shared by programs) needs no look at its content.
  const Memory memory(bytes.data(), bytes.size());
  if (const auto known = by_memory_.find(memory); known != by_memory_.end()) return known->second;
  return by_memory_[memory] = place(bytes, leaving_.contains(memory) ? left_out_ : kept_);
}

void WeightCollector::leave_out(const ir::TensorData& value) {
  if (value.packed()) return leave_out(value.packed()->integers);
  if (value.bytes()) leaving_.emplace(static_cast<const std::byte*>(value.data()), value.bytes());
}

uint64_t WeightCollector::place(std::span<const std::byte> bytes, Group& group) {
  const uint64_t sum = checksum64(bytes);
  if (seen_) seen_(bytes.size());
  const auto [begin, end] = group.by_checksum.equal_range(sum);
  for (auto it = begin; it != end; ++it) {
    const Piece& piece = group.pieces[it->second];
    if (piece.bytes.size() == bytes.size() && std::memcmp(piece.bytes.data(), bytes.data(), bytes.size()) == 0)
      return piece.offset;
  }
  group.by_checksum.emplace(sum, group.pieces.size());
  group.pieces.push_back({bytes, group.base + group.bytes});
  group.bytes += aligned(bytes.size());
  return group.pieces.back().offset;
}

Result<WeightSection::Place> WeightSection::find(uint64_t offset, uint64_t size) const {
  if (const auto other = outside.find(offset); other != outside.end() && other->second.bytes() == size)
    return Place{{static_cast<const std::byte*>(other->second.data()), size},
                 std::make_shared<const ir::TensorData>(other->second)};
  if (offset % kFileAlignment != 0 || offset > bytes.size() || size > bytes.size() - offset)
    return invalid_model("a constant is outside of the weight section");
  return Place{bytes.subspan(offset, size), keeper};
}

Result<ir::TensorData> WeightSection::tensor(DType dtype, ir::Dims dims, uint64_t offset) const {
  if (dtype_bytes(dtype) == 0) return invalid_model("a constant has an unknown element type");
  for (int64_t d : dims)
    if (d < 0) return invalid_model("a constant has a negative extent");
  ORKNN_TRY_ASSIGN(const int64_t elements, ir::checked_element_count(dims));
  const uint64_t size = static_cast<uint64_t>(elements) * dtype_bytes(dtype);
  ORKNN_TRY_ASSIGN(Place place, find(offset, size));
  if (dtype == DType::Bool) {
    // A bool with another value than 0 or 1 has no meaning in C++.
    for (std::byte b : place.bytes)
      if (b > std::byte{1}) return invalid_model("a bool constant holds something else than 0 and 1");
  }
  return ir::TensorData::wrap(dtype, std::move(dims), place.bytes.data(), std::move(place.keeper));
}

Result<ir::TensorData> WeightSection::packed_tensor(DType dtype, ir::Dims dims, const PackedPlace& place) const {
  if ((dtype != DType::Float16 && dtype != DType::Float32) || (place.type != DType::Int8 && place.type != DType::Int4))
    return invalid_model("a packed constant has an unknown element type");
  for (int64_t d : dims)
    if (d < 0) return invalid_model("a constant has a negative extent");
  ORKNN_TRY_ASSIGN(const int64_t elements, ir::checked_element_count(dims));
  ORKNN_TRY_ASSIGN(const ir::Dims blocks, ir::block_counts(dims, place.block));
  ORKNN_TRY_ASSIGN(const int64_t scales, ir::checked_element_count(blocks));
  auto form = std::make_shared<ir::PackedForm>();
  form->type = place.type;
  ORKNN_TRY_ASSIGN(form->integers,
                   tensor(DType::UInt8, {static_cast<int64_t>(ir::packed_integer_bytes(place.type, elements))}, place.integers));
  ORKNN_TRY_ASSIGN(form->scales, tensor(DType::Float32, {scales}, place.scales));
  form->dims = std::move(dims);
  form->block = place.block;
  return ir::unpack(std::move(form), dtype);
}

}  // namespace orknn::format
