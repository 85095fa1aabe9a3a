// Means of integers: sums in int64 and one rounding, in the output converter or, where data and result have the same parameters,
// in the pooling unit.
#include "ops/support/pooling.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Up to 2^16 differences below 2^17 are summed.
constexpr int64_t kMaxFactor = int64_t{1} << 28;

Status check_taps(int64_t taps) {
  return taps <= int64_t{1} << 14 ? Status() : unsupported("the window is too large").found(std::to_string(taps) + " elements");
}
StageLimits window_limits(int64_t taps) { return {.multipliers = taps, .max_factor = kMaxFactor}; }

// The attributes are valid for windows over data of `rank` axes.
Status check_window(const InferContext& c, size_t rank) {
  ORKNN_TRY_ASSIGN(const Window window, read_window(c, rank - 2));
  ORKNN_TRY(check_taps(window.taps()));
  return c.get_int("same_scale") != 0 ? Status() : check_output_stage(c, 1, window_limits(window.taps()));
}

Status infer_window(InferContext& c) {
  if (!is_npu_integer(c.dtype(0)))
    return invalid_model("the data has an unsupported type")
        .expected("int8, uint8 or int16")
        .found(std::string(dtype_name(c.dtype(0))));
  ORKNN_TRY_ASSIGN(DType type, output_stage_type(c, 1));
  if (c.get_int("same_scale") != 0) type = c.dtype(0);
  ORKNN_TRY(read_zero_point(c, "x_zero_point").status());
  ORKNN_TRY_ASSIGN(auto shape, infer_pool(c));
  if (c.shape(0)) ORKNN_TRY(check_window(c, c.shape(0)->size()));
  c.set_output(0, type, std::move(shape));
  return {};
}

// Calls store(place, sum, taps) with the sum of the centred elements of every window.
template <class Store>
void sum_windows(RunContext& c, const PoolShape& s, int64_t zero, Store&& store) {
  const TensorView x = c.input(0);
  const int64_t input_plane = element_count(s.input), output_plane = element_count(s.output);
  const Dims strides = strides_of(s.input);
  visit_npu_integer(x.dtype, [&]<class T>(TypeTag<T>) {
    for_each_plane(c.pool, s.planes(), [&](int64_t plane) {
      const T* from = x.as<T>() + plane * input_plane;
      for_each_window(s, [&](int64_t o, const Taps& taps) {
        int64_t sum = 0;
        for_each_tap(s, taps, strides, [&](int64_t position) { sum += from[position] - zero; });
        store(plane * output_plane + o, sum, taps);
      });
    });
  });
}

// The pooling unit divides by the number of elements of the whole window, of which those outside are zeros.
Status run_same_scale(RunContext& c, const PoolShape& s, int64_t zero) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, s.output_dims()));
  const int64_t count = s.window.taps();
  const bool ties_to_even = is_power_of_two_window(s.window.kernel);
  sum_windows(c, s, zero, [&](int64_t place, int64_t sum, const Taps&) {
    const int64_t q = window_mean(sum + zero * count, count, ties_to_even);
    visit_npu_integer(y.dtype, [&]<class Y>(TypeTag<Y>) { y.as<Y>()[place] = static_cast<Y>(q); });
  });
  return {};
}

// Multiplier k belongs to windows with k + 1 elements; a single one to all windows.
Status run_window(RunContext& c) {
  ORKNN_TRY_ASSIGN(const PoolShape s, pool_shape(c, c.input(0).dims));
  ORKNN_TRY_ASSIGN(const int64_t zero, read_zero_point(c, "x_zero_point"));
  ORKNN_TRY(check_taps(s.window.taps()));
  if (c.get_int("same_scale") != 0) return run_same_scale(c, s, zero);
  ORKNN_TRY_ASSIGN(const OutputStage stage, read_output_stage(c, 1, window_limits(s.window.taps())));
  const bool include_pad = c.get_int("count_include_pad") != 0;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, stage.dtype, s.output_dims()));
  sum_windows(c, s, zero, [&](int64_t place, int64_t sum, const Taps& taps) {
    const int64_t count = std::max<int64_t>(include_pad ? taps.with_padding : taps.inside, 1);
    const int32_t q = stage.finish(sum, stage.factor.size() == 1 ? 0 : static_cast<size_t>(count - 1));
    visit_npu_integer(y.dtype, [&]<class Y>(TypeTag<Y>) { y.as<Y>()[place] = static_cast<Y>(q); });
  });
  return {};
}

// Axes [first, last) are averaged away, their extents become 1.
struct Span {
  int64_t outer = 1, reduced = 1, inner = 1;
  Dims output;
};
Status check_axes(const NodeReader& c, int64_t rank) {
  const int64_t first = c.get_int("first_axis"), last = c.get_int("end_axis");
  if (first >= 0 && last > first && last <= rank) return {};
  return invalid_model("the reduced axes are out of range")
      .expected("inside 0 to " + std::to_string(rank))
      .found(std::to_string(first) + " to " + std::to_string(last));
}

Status check_reduced(int64_t values) {
  if (values <= int64_t{1} << 16) return {};
  return unsupported("too many values are averaged").expected("at most 65536").found(std::to_string(values));
}

Result<Span> span_of(const NodeReader& c, std::span<const int64_t> dims) {
  const int64_t rank = static_cast<int64_t>(dims.size()), first = c.get_int("first_axis"), last = c.get_int("end_axis");
  ORKNN_TRY(check_axes(c, rank));
  Span s;
  s.output.assign(dims.begin(), dims.end());
  for (int64_t i = 0; i < rank; ++i) {
    (i < first ? s.outer : i < last ? s.reduced : s.inner) *= dims[static_cast<size_t>(i)];
    if (i >= first && i < last) s.output[static_cast<size_t>(i)] = 1;
  }
  return s;
}

Status infer_reduce(InferContext& c) {
  if (!is_npu_integer(c.dtype(0)))
    return invalid_model("the data has an unsupported type")
        .expected("int8, uint8 or int16")
        .found(std::string(dtype_name(c.dtype(0))));
  ORKNN_TRY_ASSIGN(const DType type, output_stage_type(c, 1));
  ORKNN_TRY(check_output_stage(c, 1, {.max_factor = kMaxFactor}));
  ORKNN_TRY(read_zero_point(c, "x_zero_point").status());
  std::optional<Shape> shape;
  if (const Shape* x = c.shape(0)) {
    ORKNN_TRY(check_axes(c, static_cast<int64_t>(x->size())));
    shape = *x;
    Dim reduced = 1;
    for (int64_t i = c.get_int("first_axis"); i < c.get_int("end_axis"); ++i)
      reduced = reduced * std::exchange((*shape)[static_cast<size_t>(i)], Dim(1));
    if (reduced.is_known()) ORKNN_TRY(check_reduced(reduced.value()));
  }
  c.set_output(0, type, std::move(shape));
  return {};
}

Status run_reduce(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const Span s, span_of(c, x.dims));
  ORKNN_TRY_ASSIGN(const OutputStage stage, read_output_stage(c, 1, {.max_factor = kMaxFactor}));
  ORKNN_TRY_ASSIGN(const int64_t zero, read_zero_point(c, "x_zero_point"));
  ORKNN_TRY(check_reduced(s.reduced));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, stage.dtype, s.output));
  visit_npu_integer(x.dtype, [&]<class T>(TypeTag<T>) {
    visit_npu_integer(y.dtype, [&]<class Y>(TypeTag<Y>) {
      c.pool.parallel_for(s.outer * s.inner, 64, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const T* from = x.as<T>() + item / s.inner * s.reduced * s.inner + item % s.inner;
          int64_t sum = 0;
          for (int64_t i = 0; i < s.reduced; ++i) sum += from[i * s.inner] - zero;
          y.as<Y>()[item] = static_cast<Y>(stage.finish(sum));
        }
      });
    });
  });
  return {};
}

// With same_scale the result has the parameters of the data, and the attributes of the output converter mean nothing.
std::vector<AttributeDef> window_attributes() {
  std::vector<AttributeDef> list = pool_attributes();
  list.insert(list.end(), {attr_int("count_include_pad", 0), attr_int("x_zero_point", 0), attr_int("same_scale", 0)});
  list = output_stage_attributes(std::move(list));
  for (AttributeDef& a : list) {
    if (a.name == "multiplier" || a.name == "shift") a = attr_ints(a.name, {});
    if (a.name == "low" || a.name == "high") a = attr_int(a.name, 0);
  }
  return list;
}

BatchRule batch_rule_reduce(const NodeReader& n, size_t, uint32_t) {
  return n.get_int("first_axis") > 0 ? BatchRule::OfFirst : BatchRule::Mixed;
}
}  // namespace

std::span<const OpDef> int_mean() {
  static const OpDef defs[] = {
      {.name = "int:AveragePool",
       .summary = "mean of each window of integers",
       .inputs = {1, 2},
       .attributes = window_attributes(),
       .infer = infer_window,
       .run = run_window,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .cost = pool_cost,
       .engine = Engine::Pool,
       .pattern = Pattern::Window,
       .samples_apart = true,
       .integer_form_of = "AveragePool",
       .table_input = 1},
      {.name = "int:ReduceMean",
       .summary = "mean of integers over neighbouring axes",
       .inputs = {1, 2},
       .attributes = output_stage_attributes(
           {attr_int("x_zero_point", 0), required(attr_int("first_axis")), required(attr_int("end_axis"))}),
       .infer = infer_reduce,
       .run = run_reduce,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .engine = Engine::Pool,
       .batch = batch_rule_reduce,
       .integer_form_of = "ReduceMean",
       .table_input = 1,
       .fused_names_op = true},
  };
  return defs;
}
}  // namespace orknn::ops
