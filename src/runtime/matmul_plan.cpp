#include "runtime/matmul_plan.h"

#include <algorithm>
#include <cstring>

#include "runtime/configuration.h"

namespace orknn::runtime {
namespace {
using platform::Platform;

constexpr MatmulType kTypes[] = {
    {RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, DType::Float16, DType::Float16, DType::Float32},
    {RKNN_INT8_MM_INT8_TO_INT32, DType::Int8, DType::Int8, DType::Int32},
    {RKNN_INT8_MM_INT8_TO_INT8, DType::Int8, DType::Int8, DType::Int8},
    {RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16, DType::Float16, DType::Float16, DType::Float16},
    {RKNN_FLOAT16_MM_INT8_TO_FLOAT32, DType::Float16, DType::Int8, DType::Float32},
    {RKNN_FLOAT16_MM_INT8_TO_FLOAT16, DType::Float16, DType::Int8, DType::Float16},
    {RKNN_FLOAT16_MM_INT4_TO_FLOAT32, DType::Float16, DType::Int4, DType::Float32},
    {RKNN_FLOAT16_MM_INT4_TO_FLOAT16, DType::Float16, DType::Int4, DType::Float16},
    {RKNN_INT8_MM_INT8_TO_FLOAT32, DType::Int8, DType::Int8, DType::Float32},
    {RKNN_INT4_MM_INT4_TO_INT16, DType::Int4, DType::Int4, DType::Int16},
    {RKNN_INT8_MM_INT4_TO_INT32, DType::Int8, DType::Int4, DType::Int32},
    {RKNN_FLOAT16_MM_INT4_TO_BFLOAT16, DType::Float16, DType::Int4, DType::BFloat16},
    {RKNN_INT8_MM_INT4_TO_FLOAT16, DType::Int8, DType::Int4, DType::Float16},
};

constexpr int kResultBytes = 16;  // of a block of native results
constexpr int kInt4Row = 32;      // native blocks of 4-bit operands
constexpr int kInt4Columns = 64;

struct Extents {
  int64_t depth, columns;
};

// [block_depth, block_columns] of a native right operand. With operands of different types that of the result decides.
Extents right_block(const Platform& chip, const MatmulType& type) {
  DType decides = type.right;
  if (type.left != type.right) decides = is_float(type.result) ? DType::Float16 : DType::Int8;
  if (decides == DType::Int4) return {kInt4Row, kInt4Columns};
  const platform::ChannelAlignment& align = decides == DType::Int8 ? chip.align_int8 : chip.align_half;
  return {align.conv_in, align.conv_out};
}

int64_t left_block(const Platform& chip, DType type) {
  if (type == DType::Int4) return kInt4Row;
  return type == DType::Int8 ? chip.c2_int8 : chip.c2_half;
}

// Multiples of depth and columns follow the type of A.
Extents multiples(const platform::MatMulLimits& m, DType left) {
  if (left == DType::Int4) return {m.inner_multiple_int4, m.columns_multiple_int4};
  if (left == DType::Int8) return {m.inner_multiple_int8, m.columns_multiple_int8};
  return {m.inner_multiple_half, m.columns_multiple_half};
}

rknn_tensor_type public_matrix_type(DType type) {
  switch (type) {
    case DType::Float16: return RKNN_TENSOR_FLOAT16;
    case DType::BFloat16: return RKNN_TENSOR_BFLOAT16;
    case DType::Int4: return RKNN_TENSOR_INT4;
    case DType::Int8: return RKNN_TENSOR_INT8;
    case DType::Int16: return RKNN_TENSOR_INT16;
    case DType::Int32: return RKNN_TENSOR_INT32;
    default: return RKNN_TENSOR_FLOAT32;
  }
}

rknn_matmul_tensor_attr attribute(const char* name, DType type, std::initializer_list<int64_t> dims, int64_t elements) {
  rknn_matmul_tensor_attr attr{};
  std::strcpy(attr.name, name);
  for (int64_t d : dims) attr.dims[attr.n_dims++] = static_cast<uint32_t>(d);
  attr.size = static_cast<uint32_t>(matrix_bytes(type, elements, static_cast<int64_t>(dtype_bytes(type))));
  attr.type = public_matrix_type(type);
  return attr;
}

rknn_matmul_tensor_attr attribute(const char* name, DType type, const sim::RowLayout& l, bool native) {
  if (!native) return attribute(name, type, {l.rows, l.columns}, l.elements());
  return attribute(name, type, {sim::blocks_of(l.columns, l.block), l.rows, l.block}, l.elements());
}

std::string text(int64_t n) { return std::to_string(n); }

Status check_extent(const char* name, int64_t value, int64_t multiple, int64_t most, const Platform& chip) {
  if (value % multiple != 0)
    return invalid_argument(std::string(name) + " is not aligned for " + std::string(chip.name))
        .expected("a multiple of " + text(multiple))
        .found(text(value))
        .hint("pad the matrices with zeros");
  if (most > 0 && value > most)
    return invalid_argument(std::string(name) + " is too large for " + std::string(chip.name))
        .expected("at most " + text(most))
        .found(text(value))
        .hint("divide the product into several");
  return {};
}

Status check_range(const char* field, int value, int most) {
  if (value >= 0 && value <= most) return {};
  return invalid_argument(std::string("unknown ") + field).expected("0 to " + text(most)).found(text(value));
}
}  // namespace

// A computer counts as a chip that has everything.
MatmulChip matmul_chip() {
  if (const Platform* chosen = configured_chip()) return {chosen, true};
  const std::span<const Platform> all = platform::all();
  return {&*std::max_element(all.begin(), all.end(), [](const Platform& a, const Platform& b) { return a.cores < b.cores; }),
          false};
}

const MatmulType* find_matmul_type(int32_t value) {
  const auto it = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const MatmulType& t) { return t.value == value; });
  return it == std::end(kTypes) ? nullptr : it;
}

sim::RightLayout native_right_layout(const Platform& chip, const MatmulType& type, int64_t depth, int64_t columns) {
  const Extents block = right_block(chip, type);
  const int64_t segment = chip.mat_mul.inner_segment;
  return {.depth = depth,
          .columns = columns,
          .row_major = false,
          .block_columns = block.columns,
          .block_depth = block.depth,
          .segment = depth > segment ? segment : 0,
          .high_nibble_first = true};
}

Result<MatmulPlan> MatmulPlan::create(const rknn_matmul_info& info, std::span<const rknn_matmul_shape> shapes) {
  MatmulPlan plan;
  plan.chip_ = matmul_chip();
  if (!plan.chip().features.matmul_api)
    return Status::error(Code::PlatformMismatch, std::string(plan.chip().name) + " has no matmul API")
        .hint("choose another chip with orknn_set_platform or OPENRKNN_PLATFORM");
  plan.info_ = info;
  plan.type_ = find_matmul_type(static_cast<int32_t>(number(info.type)));
  plan.shapes_.assign(shapes.begin(), shapes.end());
  if (Status s = plan.check(); !s) return s;
  return plan;
}

Status MatmulPlan::check() const {
  for (const rknn_matmul_shape& s : shapes_)
    if (s.M < 1 || s.K < 1 || s.N < 1)
      return invalid_argument("M, K and N must be positive").found(text(s.M) + ", " + text(s.K) + ", " + text(s.N));
  if (Status s = check_type(); !s) return s;
  if (Status s = check_choices(); !s) return s;
  for (const rknn_matmul_shape& shape : shapes_) {
    if (Status s = check_extents(shape); !s) return s;
    if (Status s = check_quantization(shape); !s) return s;
    if (Status s = check_sizes(shape); !s) return s;
    if (info_.B_layout != RKNN_MM_LAYOUT_TP_NORM && (shape.K != shapes_[0].K || shape.N != shapes_[0].N))
      return invalid_argument("K and N differ between the shapes")
          .expected("K " + text(shapes_[0].K) + " and N " + text(shapes_[0].N))
          .found(text(shape.K) + " and " + text(shape.N))
          .hint("only B_layout RKNN_MM_LAYOUT_TP_NORM lets them vary");
  }
  return {};
}

Status MatmulPlan::check_type() const {
  const int32_t value = static_cast<int32_t>(number(info_.type));
  const std::vector<int>& offered = chip().mat_mul.types;
  if (type_ && (!chip_.is_limited || std::find(offered.begin(), offered.end(), value) != offered.end())) return {};
  std::string list;
  for (int type : offered) list += (list.empty() ? "" : ", ") + text(type);
  return invalid_argument("unsupported dtype: matmul type " + text(value) +
                          (type_ ? " is not available on " + std::string(chip().name) : " is unknown"))
      .expected(chip_.is_limited ? list : "1 to 12 or 15");
}

Status MatmulPlan::check_choices() const {
  if (Status s = check_range("B_layout", info_.B_layout, RKNN_MM_LAYOUT_TP_NORM); !s) return s;
  if (Status s = check_range("AC_layout", info_.AC_layout, RKNN_MM_LAYOUT_NATIVE); !s) return s;
  if (Status s = check_range("B_quant_type", info_.B_quant_type, RKNN_QUANT_TYPE_PER_GROUP_ASYM); !s) return s;
  if (Status s = check_range("AC_quant_type", info_.AC_quant_type, RKNN_QUANT_TYPE_PER_LAYER_ASYM); !s) return s;
  if (info_.iommu_domain_id < 0) return invalid_argument("iommu_domain_id is negative").found(text(info_.iommu_domain_id));
  if (info_.B_layout == RKNN_MM_LAYOUT_TP_NORM && !chip().mat_mul.transposed_normal)
    return invalid_argument("B_layout RKNN_MM_LAYOUT_TP_NORM is not available on " + std::string(chip().name))
        .hint("use RKNN_MM_LAYOUT_NORM or RKNN_MM_LAYOUT_NATIVE");
  return {};
}

Status MatmulPlan::check_extents(const rknn_matmul_shape& shape) const {
  const platform::MatMulLimits& m = chip().mat_mul;
  const Extents multiple = multiples(m, type_->left);
  const int64_t most = type_->left == DType::Int4 ? m.max_columns_int4 : m.max_columns;
  if (Status s = check_extent("K", shape.K, multiple.depth, chip_.is_limited ? m.max_inner : 0, chip()); !s) return s;
  return check_extent("N", shape.N, multiple.columns, chip_.is_limited ? most : 0, chip());
}

Status MatmulPlan::check_quantization(const rknn_matmul_shape& shape) const {
  const MatmulType& type = *type_;
  const int scheme = info_.B_quant_type;
  // Several scales leave an integer result only where the runtime brings them to one.
  const bool by_channel =
      is_integer(type.right) && (type.left != type.right || type.result == DType::Int32 || type.result == DType::Int8);
  const bool by_group = is_integer(type.right) && is_float(type.result);
  const std::string name = "matmul type " + text(type.value);
  if (is_per_channel(scheme) && !by_channel)
    return invalid_argument(name + " does not allow quantization of B per channel").hint("quantize B per layer");
  if (!is_per_group(scheme)) return {};
  if (!by_group) return invalid_argument(name + " does not allow quantization of B per group").hint("quantize B per layer");
  if (info_.group_size < 1 || shape.K % info_.group_size != 0)
    return invalid_argument("group_size does not divide K")
        .expected("a divisor of " + text(shape.K))
        .found(text(info_.group_size));
  return {};
}

Status MatmulPlan::check_sizes(const rknn_matmul_shape& shape) const {
  const auto fits = [](DType type, int64_t elements) {
    return elements <= 2 * int64_t{UINT32_MAX} &&
           matrix_bytes(type, elements, static_cast<int64_t>(dtype_bytes(type))) <= int64_t{UINT32_MAX};
  };
  const char* large = !fits(type_->left, left(shape).elements())       ? "A"
                      : !fits(type_->right, right(shape).elements())   ? "B"
                      : !fits(type_->result, result(shape).elements()) ? "C"
                                                                       : nullptr;
  if (!large) return {};
  return invalid_argument(std::string(large) + " is too large").expected("at most 4294967295 bytes").hint("divide the product");
}

int64_t MatmulPlan::most_depth() const {
  return std::max_element(shapes_.begin(), shapes_.end(), [](const auto& a, const auto& b) { return a.K < b.K; })->K;
}

int64_t MatmulPlan::most_columns() const {
  return std::max_element(shapes_.begin(), shapes_.end(), [](const auto& a, const auto& b) { return a.N < b.N; })->N;
}

sim::RowLayout MatmulPlan::left(const rknn_matmul_shape& shape) const {
  const bool native = info_.AC_layout == RKNN_MM_LAYOUT_NATIVE;
  return {shape.M, shape.K, native ? left_block(chip(), type_->left) : shape.K};
}

sim::RowLayout MatmulPlan::result(const rknn_matmul_shape& shape) const {
  const bool native = info_.AC_layout == RKNN_MM_LAYOUT_NATIVE;
  return {shape.M, shape.N, native ? kResultBytes / static_cast<int64_t>(dtype_bytes(type_->result)) : shape.N};
}

sim::RightLayout MatmulPlan::right(const rknn_matmul_shape& shape) const {
  if (info_.B_layout == RKNN_MM_LAYOUT_NATIVE) return native_right_layout(chip(), *type_, shape.K, shape.N);
  if (info_.B_layout == RKNN_MM_LAYOUT_NORM) return {.depth = shape.K, .columns = shape.N};
  return {.depth = shape.K, .columns = shape.N, .row_major = false, .block_columns = shape.N, .block_depth = shape.K};
}

rknn_matmul_io_attr MatmulPlan::attributes(const rknn_matmul_shape& shape) const {
  const sim::RightLayout r = right(shape);
  const int64_t elements = r.elements();
  const bool native = info_.AC_layout == RKNN_MM_LAYOUT_NATIVE;
  rknn_matmul_io_attr attr{};
  attr.A = attribute("A", type_->left, left(shape), native);
  attr.C = attribute("C", type_->result, result(shape), native);
  if (info_.B_layout == RKNN_MM_LAYOUT_NORM)
    attr.B = attribute("B", type_->right, {shape.K, shape.N}, elements);
  else if (info_.B_layout == RKNN_MM_LAYOUT_TP_NORM)
    attr.B = attribute("B", type_->right, {shape.N, shape.K}, elements);
  else
    attr.B = attribute(
        "B", type_->right,
        {sim::blocks_of(shape.N, r.block_columns), sim::blocks_of(shape.K, r.block_depth), r.block_columns, r.block_depth},
        elements);
  return attr;
}

}  // namespace orknn::runtime
