// Greatest value of each window, with the positions of those values as an optional second output.
#include <limits>

#include "ops/support/copies.h"
#include "ops/support/pooling.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  if (c.dtype(0) == DType::Bool) return invalid_model("input 0 has the wrong type").expected("a numeric type").found("bool");
  ORKNN_TRY_ASSIGN(const std::optional<Shape> shape, infer_pool(c));
  c.set_output(0, c.dtype(0), shape);
  c.set_output(1, DType::Int64, shape);
  return {};
}

// storage_order 1 numbers the positions of a plane with the first spatial axis running fastest.
Dims index_strides(const PoolShape& s, bool column_major) {
  if (!column_major) return strides_of(s.input);
  Dims strides(s.input.size(), 1);
  for (size_t i = 1; i < strides.size(); ++i) strides[i] = strides[i - 1] * s.input[i - 1];
  return strides;
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const PoolShape s, pool_shape(c, x.dims));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, s.output_dims()));
  int64_t* indices = nullptr;
  if (c.has_output(1)) {
    ORKNN_TRY_ASSIGN(const MutableTensorView i, c.output(1, DType::Int64, s.output_dims()));
    indices = i.as<int64_t>();
  }
  const int64_t input_plane = element_count(s.input), output_plane = element_count(s.output);
  const Dims strides = strides_of(s.input), numbering = index_strides(s, c.get_int("storage_order") != 0);
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      for_each_plane(c.pool, s.planes(), [&](int64_t plane) {
        const T* from = x.as<T>() + plane * input_plane;
        for_each_window(s, [&](int64_t o, const Taps& taps) {
          const int64_t to = plane * output_plane + o, known = plane * output_plane + taps.same_as;
          if (taps.same_as >= 0) {
            y.as<T>()[to] = y.as<T>()[known];
            if (indices) indices[to] = indices[known];
            return;
          }
          T best = std::numeric_limits<T>::lowest();
          int64_t where = -1;
          for_each_tap(s, taps, strides, [&](int64_t position) {
            if (where >= 0 && !(from[position] > best)) return;
            best = from[position];
            where = position;
          });
          y.as<T>()[to] = best;
          if (!indices) return;
          int64_t number = plane * input_plane;
          for (size_t i = 0; i < strides.size() && where >= 0; ++i) number += where / strides[i] % s.input[i] * numbering[i];
          indices[to] = where >= 0 ? number : -1;
        });
      });
    }
  });
  return {};
}

std::vector<AttributeDef> attributes() {
  std::vector<AttributeDef> list = pool_attributes();
  list.push_back(attr_int("storage_order", 0));
  return list;
}
}  // namespace

std::span<const OpDef> max_pool() {
  static const OpDef def{.name = "MaxPool",
                         .summary = "greatest value of each window",
                         .outputs = {1, 2},
                         .attributes = attributes(),
                         .infer = infer,
                         .run = run,
                         .quant = QuantRule::SameScale,
                         .cost = pool_cost,
                         .engine = Engine::Pool,
                         .pattern = Pattern::Window,
                         .samples_apart = true,
                         .takes_largest = true,
                         .copied_input = copies_unit_window,
                         .npu = {.form = NpuForm::MaxPool},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
