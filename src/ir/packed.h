// Constants made from small integers: value = integer * scale. Files hold the integers; layers see the values.
#pragma once

#include <memory>
#include <span>

#include "ir/tensor_data.h"

namespace orknn::ir {

struct PackedForm {
  DType type = DType::Int8;  // or Int4
  Dims dims;
  Dims block;           // per axis: how many neighbours share a scale, from 1 to the axis' extent
  TensorData integers;  // bytes: an int8 each, or two int4 with the first in the low half
  TensorData scales;    // float32, one per block, row-major

  uint64_t bytes() const { return integers.bytes() + scales.bytes(); }
};

// Number of blocks along each axis; an error when `block` does not fit the extents.
Result<Dims> block_counts(std::span<const int64_t> dims, std::span<const int64_t> block);
// Bytes that `count` integers take.
uint64_t packed_integer_bytes(DType type, int64_t count);

// Integers one per byte, in the order of the elements.
std::shared_ptr<const PackedForm> pack(DType type, Dims dims, Dims block, std::span<const int8_t> integers,
                                       std::span<const float> scales);
// The values in float32 or float16; they remember `form`. Every value is float(integer) * scale, rounded to half at the end.
TensorData unpack(std::shared_ptr<const PackedForm> form, DType type);

// Bytes a file needs for a constant.
inline uint64_t stored_bytes(const TensorData& value) { return value.packed() ? value.packed()->bytes() : value.bytes(); }

}  // namespace orknn::ir
