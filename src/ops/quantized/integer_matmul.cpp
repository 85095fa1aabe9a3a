// Matrix products of 8-bit integers: MatMulInteger (int32 result), QLinearMatMul (quantized result).
#include <algorithm>

#include "ops/support/matrix.h"
#include "ops/support/quantization.h"

namespace orknn::ops {
namespace {
using namespace ir;

bool is_byte(DType t) { return t == DType::Int8 || t == DType::UInt8; }

// Parameters of the left operand are per row: a vector means one entry per row.
Dims row_dims(std::span<const int64_t> dims) {
  if (dims.size() == 1 && dims[0] != 1) return {dims[0], 1};
  return Dims(dims.begin(), dims.end());
}

// x minus its zero points, widened. Sums are formed modulo 2^32, which is what int32 accumulators do.
Result<std::vector<uint32_t>> centred(RunContext& c, size_t input, size_t zero_input, bool per_row) {
  const TensorView x = c.input(input);
  std::vector<uint32_t> out(static_cast<size_t>(x.count()));
  const std::vector<int32_t> zeros = read_zero_points(c, zero_input);
  Dims zero_dims;
  if (c.has_input(zero_input)) zero_dims.assign(c.input(zero_input).dims.begin(), c.input(zero_input).dims.end());
  if (zeros.size() == 1)
    zero_dims.clear();
  else if (per_row)
    zero_dims = row_dims(zero_dims);
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({x.dims, zero_dims}));
  if (!std::ranges::equal(plan.dims(), x.dims))
    return shape_mismatch("zero points do not fit the matrix").expected(to_string(x.dims)).found(to_string(zero_dims));
  visit_integer(x.dtype, [&]<class T>(TypeTag<T>) {
    map_rows(c.pool, plan, x.as<T>(), zeros.data(), out.data(),
             [](T v, int32_t z) { return static_cast<uint32_t>(static_cast<int32_t>(v) - z); });
  });
  return out;
}

Result<std::vector<int32_t>> product(RunContext& c, const MatMulShape& s, size_t a, size_t a_zero, size_t b, size_t b_zero) {
  ORKNN_TRY_ASSIGN(const std::vector<uint32_t> left, centred(c, a, a_zero, true));
  ORKNN_TRY_ASSIGN(const std::vector<uint32_t> right, centred(c, b, b_zero, false));
  std::vector<int32_t> out(static_cast<size_t>(element_count(s.output)));
  for (size_t i = 0; i < s.a_offsets.size(); ++i) {
    int32_t* to = out.data() + static_cast<int64_t>(i) * s.rows * s.columns;
    multiply<uint32_t>(c.pool, s.rows, s.depth, s.columns, left.data() + s.a_offsets[i], right.data() + s.b_offsets[i],
                       [&](int64_t row, std::span<const uint32_t> sums) {
                         for (size_t j = 0; j < sums.size(); ++j)
                           to[row * s.columns + static_cast<int64_t>(j)] = static_cast<int32_t>(sums[j]);
                       });
  }
  return out;
}

Status set_product(InferContext& c, size_t a, size_t b, DType type) {
  std::optional<Shape> shape;
  if (c.shape(a) && c.shape(b)) {
    ORKNN_TRY_ASSIGN(shape, matmul_output(*c.shape(a), *c.shape(b)));
  }
  c.set_output(0, type, std::move(shape));
  return {};
}

// Zero points belong to the whole matrix, or to each row of the left and each column of the right one.
Status check_zero_point(const InferContext& c, size_t matrix, size_t zero, bool per_row) {
  const auto x = c.shape(matrix) ? to_dims(*c.shape(matrix)) : std::nullopt;
  const auto given = c.shape(zero) ? to_dims(*c.shape(zero)) : std::nullopt;
  if (!x || !given || element_count(*given) == 1) return {};
  const Dims dims = per_row ? row_dims(*given) : *given;
  const auto plan = Broadcast::plan({*x, dims});
  if (plan && std::ranges::equal(plan->dims(), *x)) return {};
  return shape_mismatch("zero points do not fit the matrix").expected(to_string(*x)).found(to_string(*given));
}

Status infer_integer(InferContext& c) {
  for (size_t i = 0; i < 2; ++i) {
    ORKNN_TRY(check_type(c, i, is_byte, "int8 or uint8"));
    if (c.has_input(i + 2) && c.dtype(i + 2) != c.dtype(i)) return invalid_model("a zero point has the type of its matrix");
  }
  ORKNN_TRY(check_zero_point(c, 0, 2, true));
  ORKNN_TRY(check_zero_point(c, 1, 3, false));
  return set_product(c, 0, 1, DType::Int32);
}

Status run_integer(RunContext& c) {
  ORKNN_TRY_ASSIGN(const MatMulShape s, matmul_shape(c.input(0).dims, c.input(1).dims));
  ORKNN_TRY_ASSIGN(const std::vector<int32_t> sums, product(c, s, 0, 2, 1, 3));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Int32, s.output));
  std::copy(sums.begin(), sums.end(), y.as<int32_t>());
  return {};
}

// Where the scales of both matrices and of the product, and its zero point, stand for each of its elements. shape_of(input)
// gives their shapes.
template <class ShapeOf>
Result<Broadcast> plan_scales(std::span<const int64_t> product, const ShapeOf& shape_of) {
  const auto dims_of = [&](size_t input, bool per_row) {
    const Dims dims = shape_of(input);
    return element_count(dims) == 1 ? Dims{} : per_row ? row_dims(dims) : dims;
  };
  ORKNN_TRY_ASSIGN(Broadcast plan,
                   Broadcast::plan({product, dims_of(1, true), dims_of(4, false), dims_of(6, true), dims_of(7, true)}));
  if (!std::ranges::equal(plan.dims(), product))
    return shape_mismatch("scales do not fit the product").expected(to_string(product)).found(to_string(plan.dims()));
  return plan;
}

// What is known of them fits the product, which is set.
Status check_scales(const InferContext& c) {
  const auto known = [&](size_t i) { return c.shape(i) ? to_dims(*c.shape(i)) : std::nullopt; };
  const std::optional<Dims> product = c.output(0).shape ? to_dims(*c.output(0).shape) : std::nullopt;
  for (const size_t i : {1, 4, 6, 7})
    if (!product || !known(i)) return {};
  return plan_scales(*product, [&](size_t i) { return *known(i); }).status();
}

Status infer_quantized(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_byte, "int8 or uint8"));
  ORKNN_TRY(check_type(c, 3, is_byte, "int8 or uint8"));
  ORKNN_TRY(check_type(c, 7, is_byte, "int8 or uint8"));
  ORKNN_TRY(check_scale(c, 1, c.dtype(0)));
  ORKNN_TRY(check_scale(c, 4, c.dtype(3)));
  ORKNN_TRY(check_scale(c, 6, c.dtype(7)));
  ORKNN_TRY(check_zero_point(c, 0, 2, true));
  ORKNN_TRY(check_zero_point(c, 3, 5, false));
  ORKNN_TRY(set_product(c, 0, 3, c.dtype(7)));
  return check_scales(c);
}

Status run_quantized(RunContext& c) {
  ORKNN_TRY_ASSIGN(const MatMulShape s, matmul_shape(c.input(0).dims, c.input(3).dims));
  ORKNN_TRY_ASSIGN(const std::vector<int32_t> sums, product(c, s, 0, 2, 3, 5));
  const DType type = c.input(7).dtype;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, s.output));
  const std::vector<float> a_scale = read_scales(c, 1), b_scale = read_scales(c, 4), y_scale = read_scales(c, 6);
  const std::vector<int32_t> y_zero = read_zero_points(c, 7);
  ORKNN_TRY_ASSIGN(const Broadcast plan,
                   plan_scales(s.output, [&](size_t i) { return Dims(c.input(i).dims.begin(), c.input(i).dims.end()); }));
  const auto low = static_cast<int32_t>(dtype_min(type)), high = static_cast<int32_t>(dtype_max(type));
  visit_integer(type, [&]<class T>(TypeTag<T>) {
    plan.for_rows(c.pool, [&](int64_t out, const int64_t* in, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const auto at = [&](size_t k) { return static_cast<size_t>(in[k] + i * plan.step(k)); };
        const float factor = a_scale[at(1)] * b_scale[at(2)] / y_scale[at(3)];
        const float value = static_cast<float>(sums[at(0)]) * factor;
        y.as<T>()[out + i] = static_cast<T>(saturate(static_cast<double>(value), y_zero[at(4)], low, high));
      }
    });
  });
  return {};
}

template <size_t a>
OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  return {.macs = inputs[a].empty() ? 0 : element_count(outputs[0]) * inputs[a].back()};
}
}  // namespace

std::span<const OpDef> integer_matmul() {
  static const OpDef defs[] = {
      {.name = "MatMulInteger",
       .summary = "product of 8-bit matrices in int32",
       .inputs = {2, 4},
       .infer = infer_integer,
       .run = run_integer,
       .cost = cost<0>,
       .engine = Engine::MatMul},
      {.name = "QLinearMatMul",
       .summary = "product of quantized matrices, quantized again",
       .inputs = {8, 8},
       .infer = infer_quantized,
       .run = run_quantized,
       .cost = cost<0>,
       .engine = Engine::MatMul,
       .exact_inputs = input_slots({1, 4, 6})},
  };
  return defs;
}
}  // namespace orknn::ops
