// Gemm: alpha * A' B' + beta * C, where ' is an optional transposition and C broadcasts to the result.
#include <cmath>

#include "ops/support/floating.h"
#include "ops/support/matrix.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_same_type(c, 0, 1));
  ORKNN_TRY(require_same_type(c, 0, 2));
  if (c.dtype(0) == DType::Bool) return invalid_model("input 0 has the wrong type").expected("a numeric type").found("bool");
  ORKNN_TRY(require_rank(c, 0, 2));
  ORKNN_TRY(require_rank(c, 1, 2));
  Shape out(2);
  const bool flip_a = c.get_int("transA") != 0, flip_b = c.get_int("transB") != 0;
  if (c.shape(0)) out[0] = (*c.shape(0))[flip_a ? 1 : 0];
  if (c.shape(1)) out[1] = (*c.shape(1))[flip_b ? 0 : 1];
  if (c.shape(0) && c.shape(1)) {
    const Dim &a = (*c.shape(0))[flip_a ? 0 : 1], &b = (*c.shape(1))[flip_b ? 1 : 0];
    if (a.is_known() && b.is_known() && a.value() != b.value())
      return shape_mismatch("inner extents of the product differ").expected(a.to_string()).found(b.to_string());
  }
  if (const Shape* bias = c.shape(2)) {
    const size_t skip = 2 - std::min<size_t>(bias->size(), 2);
    bool fits = bias->size() <= 2;
    for (size_t i = 0; fits && i < bias->size(); ++i) {
      const Dim &have = (*bias)[i], &want = out[i + skip];
      fits = !have.is_known() || !want.is_known() || have.value() == 1 || have.value() == want.value();
    }
    if (!fits) return shape_mismatch("C does not broadcast to the result").expected(to_string(out)).found(to_string(*bias));
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView a = c.input(0), b = c.input(1);
  const bool flip_a = c.get_int("transA") != 0, flip_b = c.get_int("transB") != 0;
  const int64_t rows = a.dims[flip_a ? 1 : 0], depth = a.dims[flip_a ? 0 : 1], columns = b.dims[flip_b ? 0 : 1];
  const double alpha = c.get_float("alpha"), beta = c.get_float("beta");
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, a.dtype, Dims{rows, columns}));
  int64_t row_stride = 0, column_stride = 0;
  if (c.has_input(2)) {
    const std::span<const int64_t> dims = c.input(2).dims;
    if (!dims.empty() && dims.back() != 1) column_stride = 1;
    if (dims.size() == 2 && dims[0] != 1) row_stride = dims[1];
  }
  visit_dtype(a.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16> && !std::is_same_v<T, bool>) {
      const std::vector<T> a_copy = flip_a ? transposed(a.as<T>(), depth, rows) : std::vector<T>();
      const std::vector<T> b_copy = flip_b ? transposed(b.as<T>(), columns, depth) : std::vector<T>();
      const T* bias = c.has_input(2) ? c.input(2).as<T>() : nullptr;
      multiply<ProductSum<T>>(c.pool, rows, depth, columns, flip_a ? a_copy.data() : a.as<T>(),
                              flip_b ? b_copy.data() : b.as<T>(), [&](int64_t row, auto sums) {
                                for (int64_t j = 0; j < columns; ++j) {
                                  const auto sum = sums[static_cast<size_t>(j)];
                                  const T extra = bias ? bias[row * row_stride + j * column_stride] : T{};
                                  T& to = y.as<T>()[row * columns + j];
                                  if constexpr (std::is_integral_v<T>) {
                                    if (alpha == 1 && beta == 1) {
                                      to = static_cast<T>(sum + static_cast<uint64_t>(extra));
                                    } else {  // factors of integers go through double, as the sum would in a float implementation
                                      const double value =
                                          alpha * static_cast<double>(static_cast<T>(sum)) + beta * static_cast<double>(extra);
                                      to = std::abs(value) < 9e18 ? static_cast<T>(static_cast<int64_t>(value)) : T{};
                                    }
                                  } else {
                                    to = static_cast<T>(alpha * sum + (bias ? beta * static_cast<double>(extra) : 0.0));
                                  }
                                }
                              });
    }
  });
  return {};
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  return {.macs = inputs[0].size() == 2 ? element_count(outputs[0]) * inputs[0][node.get_int("transA") != 0 ? 0 : 1] : 0};
}
}  // namespace

std::span<const OpDef> gemm() {
  static const OpDef def{
      .name = "Gemm",
      .summary = "alpha * A B + beta * C",
      .inputs = {2, 3},
      .attributes = {attr_float("alpha", 1.0), attr_float("beta", 1.0), attr_int("transA", 0), attr_int("transB", 0)},
      .infer = infer,
      .run = run,
      .quant = QuantRule::Compute,
      .cost = cost,
      .engine = Engine::MatMul,
      .pattern = Pattern::Product,
      .weights = Weights::Matrix,
      .npu = {.form = NpuForm::FullyConnected, .listed_as = "Conv", .takes_tail = true}};
  return {&def, 1};
}
}  // namespace orknn::ops
