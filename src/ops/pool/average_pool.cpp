// AveragePool and LpPool: a sum over each window and one function of it.
#include <cmath>

#include "ops/support/copies.h"
#include "ops/support/floating.h"
#include "ops/support/pooling.h"

namespace orknn::ops {
namespace {
using namespace ir;

// add(sum, x) gathers, finish(sum, taps) makes the result.
template <class Add, class Finish>
Status run_sum(RunContext& c, Add&& add, Finish&& finish) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const PoolShape s, pool_shape(c, x.dims));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, s.output_dims()));
  const int64_t input_plane = element_count(s.input), output_plane = element_count(s.output);
  const Dims strides = strides_of(s.input);
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    for_each_plane(c.pool, s.planes(), [&](int64_t plane) {
      const T* from = x.as<T>() + plane * input_plane;
      for_each_window(s, [&](int64_t o, const Taps& taps) {
        T& result = y.as<T>()[plane * output_plane + o];
        if (taps.same_as >= 0) {
          result = y.as<T>()[plane * output_plane + taps.same_as];
          return;
        }
        double sum = 0;
        for_each_tap(s, taps, strides, [&](int64_t position) { add(sum, static_cast<double>(from[position])); });
        result = static_cast<T>(finish(sum, taps));
      });
    });
    return Status();
  });
}

Status run_average(RunContext& c) {
  const bool include_pad = c.get_int("count_include_pad") != 0;
  return run_sum(
      c, [](double& sum, double v) { sum += v; },
      [&](double sum, const Taps& taps) {
        const int64_t count = include_pad ? taps.with_padding : taps.inside;
        return count > 0 ? sum / static_cast<double>(count) : 0.0;
      });
}

Status infer_lp(InferContext& c) {
  ORKNN_TRY(check_norm_order(c));
  return infer_float_pool(c);
}

Status run_lp(RunContext& c) {
  const auto p = static_cast<double>(c.get_int("p"));
  return run_sum(
      c, [p](double& sum, double v) { sum += std::pow(std::abs(v), p); },
      [p](double sum, const Taps&) { return std::pow(sum, 1 / p); });
}

std::vector<AttributeDef> with(AttributeDef extra) {
  std::vector<AttributeDef> list = pool_attributes();
  list.push_back(std::move(extra));
  return list;
}
}  // namespace

std::span<const OpDef> average_pool() {
  static const OpDef defs[] = {
      {.name = "AveragePool",
       .summary = "mean of each window",
       .attributes = with(attr_int("count_include_pad", 0)),
       .infer = infer_float_pool,
       .run = run_average,
       .quant = QuantRule::Average,
       .cost = pool_cost,
       .engine = Engine::Pool,
       .pattern = Pattern::Window,
       .samples_apart = true,
       .keeps_range = true,
       .copied_input = copies_unit_window,
       .npu = {.form = NpuForm::AveragePool},
       .cpu = {CpuList::LargeChips}},
      {.name = "LpPool",
       .summary = "p-norm of each window",
       .attributes = with(attr_int("p", 2)),
       .infer = infer_lp,
       .run = run_lp,
       .cost = pool_cost,
       .engine = Engine::Pool,
       .pattern = Pattern::Window,
       .samples_apart = true},
  };
  return defs;
}
}  // namespace orknn::ops
