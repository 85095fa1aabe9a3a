// Matrix products as the chip computes them on integers. Inputs: a, b, int32 bias per column, addend, table; the last three are
// optional.
#include "ops/support/matrix.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr size_t kBias = 2, kAddend = 3, kTable = 4;

Status infer(InferContext& c) {
  for (size_t i : {size_t{0}, size_t{1}, kAddend})
    if (c.has_input(i) && !is_npu_integer(c.dtype(i)))
      return invalid_model("input " + std::to_string(i) + " has an unsupported type")
          .expected("int8, uint8 or int16")
          .found(std::string(dtype_name(c.dtype(i))));
  if (c.has_input(kBias) && c.dtype(kBias) != DType::Int32)
    return invalid_model("the bias is not int32").found(std::string(dtype_name(c.dtype(kBias))));
  ORKNN_TRY_ASSIGN(const DType type, output_stage_type(c, kTable));
  std::optional<Shape> shape;
  if (c.shape(0) && c.shape(1)) {
    ORKNN_TRY_ASSIGN(shape, matmul_output(*c.shape(0), *c.shape(1)));
  }
  if (shape && !shape->empty()) ORKNN_TRY(check_count(c, kBias, "the bias", {shape->back()}));
  if (shape) ORKNN_TRY(check_count(c, kAddend, "the added tensor", *shape));
  ORKNN_TRY(read_zero_point(c, "x_zero_point").status());
  // A vector on the right is a single column.
  const Shape* b = c.shape(1);
  const Dim columns = !b ? Dim() : b->size() > 1 ? b->back() : Dim(1);
  if (columns.is_known()) {
    ORKNN_TRY(read_weight_zero_points(c, columns.value()).status());
    ORKNN_TRY(check_output_stage(c, kTable, product_limits(c.dtype(0), c.dtype(1), columns.value())));
  }
  c.set_output(0, type, std::move(shape));
  return {};
}

// Sum is uint32_t or uint64_t: unsigned, so that wrapping is defined.
template <class Sum>
Status run_in(RunContext& c) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const MatMulShape s, matmul_shape(a.dims, b.dims));
  ORKNN_TRY_ASSIGN(const OutputStage stage, read_output_stage(c, kTable, product_limits(a.dtype, b.dtype, s.columns)));
  ORKNN_TRY_ASSIGN(const int64_t a_zero, read_zero_point(c, "x_zero_point"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> b_zero, read_weight_zero_points(c, s.columns));
  if (c.has_input(kBias) && c.input(kBias).count() != s.columns)
    return shape_mismatch("the bias does not have one value per column")
        .expected(std::to_string(s.columns))
        .found(std::to_string(c.input(kBias).count()));
  if (c.has_input(kAddend) && c.input(kAddend).count() != element_count(s.output))
    return shape_mismatch("the added tensor differs in shape from the result")
        .expected(to_string(s.output))
        .found(to_string(c.input(kAddend).dims));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, stage.dtype, s.output));
  const int32_t* bias = c.has_input(kBias) ? c.input(kBias).as<int32_t>() : nullptr;

  // Centred copies: sums of products of differences.
  std::vector<Sum> left(static_cast<size_t>(a.count())), right(static_cast<size_t>(b.count()));
  visit_npu_integer(a.dtype, [&]<class T>(TypeTag<T>) {
    for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<Sum>(a.as<T>()[i]) - static_cast<Sum>(a_zero);
  });
  visit_npu_integer(b.dtype, [&]<class T>(TypeTag<T>) {
    for (size_t i = 0; i < right.size(); ++i)
      right[i] =
          static_cast<Sum>(b.as<T>()[i]) - static_cast<Sum>(b_zero[b_zero.size() == 1 ? 0 : i % static_cast<size_t>(s.columns)]);
  });
  for (size_t m = 0; m < s.a_offsets.size(); ++m) {
    const int64_t base = static_cast<int64_t>(m) * s.rows * s.columns;
    multiply<Sum>(c.pool, s.rows, s.depth, s.columns, left.data() + s.a_offsets[m], right.data() + s.b_offsets[m],
                  [&](int64_t row, std::span<const Sum> sums) {
                    const int64_t start = base + row * s.columns;
                    for (size_t j = 0; j < sums.size(); ++j) {
                      int64_t v = stage.scaled(with_bias(sums[j], bias ? bias[j] : 0), static_cast<int64_t>(j));
                      if (c.has_input(kAddend))
                        visit_npu_integer(c.input(kAddend).dtype, [&]<class B>(TypeTag<B>) {
                          v = stage.with_operand(v, c.input(kAddend).as<B>()[start + static_cast<int64_t>(j)]);
                        });
                      const int32_t q = stage.finish(v);
                      visit_npu_integer(
                          y.dtype, [&]<class Y>(TypeTag<Y>) { y.as<Y>()[start + static_cast<int64_t>(j)] = static_cast<Y>(q); });
                    }
                  });
  }
  return {};
}

Status run(RunContext& c) {
  return has_wide_sums(c.input(0).dtype, c.input(1).dtype) ? run_in<uint64_t>(c) : run_in<uint32_t>(c);
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  return {.macs = inputs[0].empty() ? 0 : element_count(outputs[0]) * inputs[0].back()};
}
}  // namespace

std::span<const OpDef> int_matmul() {
  static const OpDef defs[] = {
      {.name = "int:MatMul",
       .summary = "matrix product of integers with the chip's output converter",
       .inputs = {2, 5},
       .attributes = product_stage_attributes({attr_int("x_zero_point", 0), attr_ints("w_zero_point", {0})}),
       .infer = infer,
       .run = run,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .cost = cost,
       .engine = Engine::MatMul,
       .pattern = Pattern::Product,
       .addend_input = 3,
       .integer_form_of = "MatMul",
       .table_input = 4},
  };
  return defs;
}
}  // namespace orknn::ops
