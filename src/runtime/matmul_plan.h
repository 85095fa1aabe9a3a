// What a rknn_matmul_info asks for: element types, layouts on the chip, limits, attributes of the three matrices.
#pragma once

#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "platform/platforms.h"
#include "runtime/public_api.h"
#include "sim/matrix_layout.h"

namespace orknn::runtime {

struct MatmulType {
  rknn_matmul_type value;
  DType left, right, result;  // of A, B and C
};
// Nothing for numbers that are no rknn_matmul_type.
const MatmulType* find_matmul_type(int32_t value);

// Values of rknn_matmul_quant_type.
constexpr bool is_per_channel(int scheme) {
  return scheme == RKNN_QUANT_TYPE_PER_CHANNEL_SYM || scheme == RKNN_QUANT_TYPE_PER_CHANNEL_ASYM;
}
constexpr bool is_per_group(int scheme) {
  return scheme == RKNN_QUANT_TYPE_PER_GROUP_SYM || scheme == RKNN_QUANT_TYPE_PER_GROUP_ASYM;
}
constexpr bool is_symmetric(int scheme) { return scheme % 2 == 0; }

// The chip that products made from now on are for.
struct MatmulChip {
  const platform::Platform* platform = nullptr;
  // False when none was chosen: `platform` then gives layouts and alignments, and its other limits do not count.
  bool is_limited = false;
};
MatmulChip matmul_chip();

// The native layout of a right operand, in which long depths are stored in segments.
sim::RightLayout native_right_layout(const platform::Platform& chip, const MatmulType& type, int64_t depth, int64_t columns);

// Bytes of so many elements; those of 4 bits are stored two per byte.
constexpr int64_t matrix_bytes(DType type, int64_t elements, int64_t element_bytes) {
  return type == DType::Int4 ? (elements + 1) / 2 : elements * element_bytes;
}

class MatmulPlan {
 public:
  // InvalidArgument for what the chip does not do, in the order of docs/errors.md; PlatformMismatch for chips without the API.
  static Result<MatmulPlan> create(const rknn_matmul_info& info, std::span<const rknn_matmul_shape> shapes);

  const platform::Platform& chip() const { return *chip_.platform; }
  const MatmulType& type() const { return *type_; }
  const rknn_matmul_info& info() const { return info_; }
  const std::vector<rknn_matmul_shape>& shapes() const { return shapes_; }
  // The largest of all shapes: quantization parameters of B are given for these.
  int64_t most_depth() const;
  int64_t most_columns() const;

  // Depth that shares scales: the whole one unless B is quantized per group.
  int64_t group(const rknn_matmul_shape& shape) const { return is_per_group(info_.B_quant_type) ? info_.group_size : shape.K; }
  sim::RowLayout left(const rknn_matmul_shape& shape) const;
  sim::RightLayout right(const rknn_matmul_shape& shape) const;
  sim::RowLayout result(const rknn_matmul_shape& shape) const;
  rknn_matmul_io_attr attributes(const rknn_matmul_shape& shape) const;

 private:
  Status check() const;
  Status check_type() const;
  Status check_choices() const;
  Status check_extents(const rknn_matmul_shape& shape) const;
  Status check_quantization(const rknn_matmul_shape& shape) const;
  Status check_sizes(const rknn_matmul_shape& shape) const;

  MatmulChip chip_;
  const MatmulType* type_ = nullptr;
  rknn_matmul_info info_{};
  std::vector<rknn_matmul_shape> shapes_;
};

}  // namespace orknn::runtime
