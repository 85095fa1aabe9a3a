// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: one value per channel.
#include <cmath>
#include <limits>

#include "ops/support/copies.h"
#include "ops/support/floating.h"
#include "ops/support/pooling.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer_shape(InferContext& c) {
  std::optional<Shape> shape;
  if (const Shape* x = c.shape(0)) {
    if (x->size() < 2) return shape_mismatch("input 0 has the wrong rank").expected("2 or more").found(to_string(*x));
    shape = *x;
    std::fill(shape->begin() + 2, shape->end(), Dim(1));
  }
  c.set_output(0, c.dtype(0), std::move(shape));
  return {};
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  return infer_shape(c);
}

// Integers are what a quantized layer leaves.
Status infer_max(InferContext& c) {
  if (c.dtype(0) == DType::Bool) return invalid_model("input 0 has the wrong type").expected("a numeric type").found("bool");
  return infer_shape(c);
}

// reduce(values of one plane) -> double.
template <class Reduce>
Status run_global(RunContext& c, Reduce&& reduce) {
  const TensorView x = c.input(0);
  Dims dims(x.dims.begin(), x.dims.end());
  std::fill(dims.begin() + 2, dims.end(), 1);
  const int64_t plane_size = element_count(x.dims.subspan(2));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    for_each_plane(c.pool, dims[0] * dims[1], [&](int64_t plane) {
      y.as<T>()[plane] =
          static_cast<T>(reduce(std::span<const T>(x.as<T>() + plane * plane_size, static_cast<size_t>(plane_size))));
    });
    return Status();
  });
}

Status run_average(RunContext& c) {
  return run_global(c, [](auto values) {
    double sum = 0;
    for (auto v : values) sum += static_cast<double>(v);
    return sum / static_cast<double>(values.size());
  });
}

Status run_max(RunContext& c) {
  const TensorView x = c.input(0);
  Dims dims(x.dims.begin(), x.dims.end());
  std::fill(dims.begin() + 2, dims.end(), 1);
  const int64_t plane_size = element_count(x.dims.subspan(2));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      for_each_plane(c.pool, dims[0] * dims[1], [&](int64_t plane) {
        T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
        for (T v : std::span<const T>(x.as<T>() + plane * plane_size, static_cast<size_t>(plane_size)))
          if (v > best || v != v) best = v;
        y.as<T>()[plane] = best;
      });
    }
  });
  return {};
}

Status infer_lp(InferContext& c) {
  ORKNN_TRY(check_norm_order(c));
  return infer(c);
}

Status run_lp(RunContext& c) {
  const auto p = static_cast<double>(c.get_int("p"));
  return run_global(c, [p](auto values) {
    double sum = 0;
    for (auto v : values) sum += std::pow(std::abs(static_cast<double>(v)), p);
    return std::pow(sum, 1 / p);
  });
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims>) {
  return {.element_ops = element_count(inputs[0])};
}
}  // namespace

std::span<const OpDef> global_pool() {
  static const OpDef defs[] = {
      {.name = "GlobalAveragePool",
       .summary = "mean of each channel",
       .infer = infer,
       .run = run_average,
       .quant = QuantRule::Mean,
       .cost = cost,
       .engine = Engine::Pool,
       .pattern = Pattern::GlobalWindow,
       .total = Total::Mean,
       .samples_apart = true,
       .keeps_range = true,
       .copied_input = copies_in_same_shape,
       .npu = {.form = NpuForm::GlobalAveragePool}},
      {.name = "GlobalMaxPool",
       .summary = "greatest value of each channel",
       .infer = infer_max,
       .run = run_max,
       .quant = QuantRule::SameScale,
       .cost = cost,
       .engine = Engine::Pool,
       .pattern = Pattern::GlobalWindow,
       .total = Total::Max,
       .samples_apart = true,
       .takes_largest = true,
       .copied_input = copies_in_same_shape,
       .npu = {.form = NpuForm::GlobalMaxPool}},
      {.name = "GlobalLpPool",
       .summary = "p-norm of each channel",
       .attributes = {attr_int("p", 2)},
       .infer = infer_lp,
       .run = run_lp,
       .cost = cost,
       .engine = Engine::Pool,
       .pattern = Pattern::GlobalWindow,
       .samples_apart = true},
  };
  return defs;
}
}  // namespace orknn::ops
