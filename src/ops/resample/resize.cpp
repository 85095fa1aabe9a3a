// Resamples axes to new extents: nearest, linear or cubic, in every coordinate convention of ONNX. Each axis is described
// by taps (source positions and weights per output position) and the axes are processed one after the other.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ops/support/copies.h"
#include "ops/support/movement.h"
#include "ops/support/operands.h"
#include "ops/support/resampling.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status check_nearest_mode(const NodeReader& c) {
  const std::string& mode = c.get_string("nearest_mode");
  if (mode == "round_prefer_floor" || mode == "round_prefer_ceil" || mode == "floor" || mode == "ceil") return {};
  return unsupported("unknown nearest mode").expected("round_prefer_floor, round_prefer_ceil, floor or ceil").found(mode);
}

bool has_elements(const InferContext& c, size_t i) {
  const Shape* s = c.shape(i);
  return c.has_input(i) && !(s && s->size() == 1 && s->front() == Dim(0));
}

Status infer(InferContext& c) {
  ORKNN_TRY(resize_mode(c).status());
  ORKNN_TRY(resize_coordinates(c).status());
  ORKNN_TRY(check_nearest_mode(c));
  ORKNN_TRY_ASSIGN(const AspectPolicy policy, aspect_policy(c));
  ORKNN_TRY(require_integer(c, 3, "sizes"));
  const bool has_scales = has_elements(c, 2), has_sizes = has_elements(c, 3);
  if (has_scales == has_sizes) return invalid_model("either scales or sizes must be given");
  if (has_scales && !is_float(c.dtype(2)))
    return invalid_model("scales must be floats").found(std::string(dtype_name(c.dtype(2))));
  if (has_elements(c, 1) && !is_float(c.dtype(1)))
    return invalid_model("roi must be floats").found(std::string(dtype_name(c.dtype(1))));
  const Shape* x = c.shape(0);
  if (!x) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(const std::vector<size_t> axes, resized_axes(c, x->size()));
  Shape out = *x, extents;
  for (const size_t axis : axes) {
    extents.push_back((*x)[axis]);
    out[axis] = Dim();
  }
  if (*resize_coordinates(c) == ResizeCoordinates::CropAndResize) {
    const std::optional<int64_t> entries = c.has_input(1) ? known_count(c, 1) : 0;
    if (entries) ORKNN_TRY(check_roi(*entries, axes.size()));
  }
  const std::optional<Dims> known = to_dims(extents);
  if (has_sizes) {
    const auto content = c.content(3);
    const auto sizes = c.ints(3);
    if (content && content->size() != axes.size())
      return invalid_model("one size per axis is needed")
          .expected(std::to_string(axes.size()))
          .found(std::to_string(content->size()));
    if (known && sizes) {
      ORKNN_TRY_ASSIGN(const auto targets, resize_targets(*known, *sizes, policy));
      for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = targets[i].extent;
    } else if (content && policy == AspectPolicy::Stretch) {
      for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = (*content)[i];
    }
  } else if (const TensorData* constant = c.constant(2)) {
    const std::vector<double> scales = to_doubles(constant->view());
    if (scales.size() != axes.size())
      return invalid_model("one scale per axis is needed")
          .expected(std::to_string(axes.size()))
          .found(std::to_string(scales.size()));
    for (size_t i = 0; i < axes.size(); ++i) {
      if (extents[i].is_known()) {
        ORKNN_TRY_ASSIGN(const ResizeTarget t, scaled_extent(extents[i].value(), static_cast<float>(scales[i])));
        out[axes[i]] = t.extent;
      } else if (scales[i] >= 1 && scales[i] < 1e6 && scales[i] == std::floor(scales[i])) {
        out[axes[i]] = extents[i] * Dim(static_cast<int64_t>(scales[i]));
      }
    }
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

// Replaces axis `axis` of `from` by the weighted sums that `taps` describe.
template <class T>
void resample_axis(std::span<const int64_t> dims, size_t axis, const ResizeTaps& taps, const T* from, T* to, int64_t extent,
                   ThreadPool& pool) {
  const int64_t outer = extent_product(dims, 0, axis), old_extent = dims[axis],
                inner = extent_product(dims, axis + 1, dims.size());
  const int64_t work = std::max<int64_t>(1, inner * static_cast<int64_t>(taps.width));
  pool.parallel_for(outer * extent, std::max<int64_t>(1, (1 << 15) / work), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t* positions = taps.positions.data() + static_cast<size_t>(n % extent) * taps.width;
      const float* weights = taps.weights.data() + static_cast<size_t>(n % extent) * taps.width;
      const T* source = from + n / extent * old_extent * inner;
      T* target = to + n * inner;
      if (inner == 1) {
        T sum = 0;
        for (size_t k = 0; k < taps.width; ++k) sum += static_cast<T>(weights[k]) * source[positions[k]];
        *target = sum;
        continue;
      }
      std::fill(target, target + inner, T{0});
      for (size_t k = 0; k < taps.width; ++k) {
        if (weights[k] == 0.0f) continue;
        const T weight = static_cast<T>(weights[k]);
        const T* row = source + positions[k] * inner;
        for (int64_t i = 0; i < inner; ++i) target[i] += weight * row[i];
      }
    }
  });
}

// One axis after the other, in type T; the result is left in `values`.
template <class T>
void resample(Dims dims, const std::vector<ResizeAxis>& axes, const std::vector<ResizeTaps>& taps, std::span<const int64_t> out,
              std::vector<T>& values, ThreadPool& pool) {
  // Shrinking axes first, then enlarging ones from the last on: the least work, most of it on contiguous rows.
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto enlarges = [&](size_t i) { return axes[i].to >= axes[i].from; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return enlarges(a) != enlarges(b) ? enlarges(b) : enlarges(a) && axes[a].axis > axes[b].axis;
  });
  for (const size_t i : order) {
    if (taps[i].identity) continue;
    const size_t axis = axes[i].axis;
    Dims next = dims;
    next[axis] = out[axis];
    std::vector<T> result(static_cast<size_t>(element_count(next)));
    resample_axis(dims, axis, taps[i], values.data(), result.data(), out[axis], pool);
    values = std::move(result);
    dims = std::move(next);
  }
}

// Writes one value at every output element that is outside the source along some axis.
void write_outside(const MutableTensorView& y, const std::vector<ResizeAxis>& axes, std::span<const std::vector<bool>> outside,
                   const TensorData& value) {
  const size_t bytes = dtype_bytes(y.dtype);
  const Dims strides = strides_of(y.dims);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t inner = strides[axes[i].axis], extent = axes[i].to, outer = extent_product(y.dims, 0, axes[i].axis);
    for (int64_t n = 0; n < outer * extent; ++n)
      if (!outside[i].empty() && outside[i][static_cast<size_t>(n % extent)])
        fill_elements(offset_by(y.data, n * inner, bytes), inner, value.data(), bytes);
  }
}

Status run_nearest(RunContext& c, const TensorView& x, const MutableTensorView& y, const ResizePlan& plan) {
  const std::string& nearest = c.get_string("nearest_mode");
  const size_t rank = x.dims.size();
  // Source offset of each output position, per axis.
  const Dims strides = strides_of(x.dims);
  std::vector<std::vector<int64_t>> offsets(rank);
  std::vector<std::vector<bool>> outside(plan.axes.size());
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const ResizeAxis& a = plan.axes[i];
    for (int64_t n = 0; n < a.to; ++n) {
      const float at = source_coordinate(plan.coordinates, a, n);
      offsets[a.axis].push_back(nearest_position(nearest, at, a.from) * strides[a.axis]);
      if (plan.coordinates == ResizeCoordinates::CropAndResize)
        outside[i].push_back(!(at >= 0 && at <= static_cast<float>(a.from - 1)));
    }
  }
  for (size_t i = 0; i < rank; ++i)
    if (offsets[i].empty())
      for (int64_t n = 0; n < y.dims[i]; ++n) offsets[i].push_back(n * strides[i]);
  const int64_t columns = y.dims.back(), rows = y.count() / columns;
  const std::vector<int64_t>& last = offsets.back();
  bool doubles = columns % 2 == 0;
  for (int64_t k = 0; k < columns && doubles; ++k) doubles = last[static_cast<size_t>(k)] == k / 2;
  visit_element_bytes(x.dtype, [&]<class T>(TypeTag<T>) {
    c.pool.parallel_for(rows, std::max<int64_t>(1, (1 << 14) / columns), [&](int64_t begin, int64_t end) {
      int64_t previous = -1;
      for (int64_t row = begin; row < end; ++row) {
        int64_t rest = row, from = 0;
        for (size_t i = rank - 1; i-- > 0; rest /= y.dims[i]) from += offsets[i][static_cast<size_t>(rest % y.dims[i])];
        const T* source = x.as<T>() + from;
        T* target = y.as<T>() + row * columns;
        if (from == previous) {  // enlarging repeats rows
          std::copy_n(target - columns, columns, target);
        } else if (doubles) {
          for (int64_t k = 0; k < columns / 2; ++k) target[2 * k] = target[2 * k + 1] = source[k];
        } else {
          for (int64_t k = 0; k < columns; ++k) target[k] = source[last[static_cast<size_t>(k)]];
        }
        previous = from;
      }
    });
  });
  if (plan.coordinates == ResizeCoordinates::CropAndResize)
    write_outside(y, plan.axes, outside, convert(TensorData::scalar(c.get_float("extrapolation_value")).view(), y.dtype));
  return {};
}

Status run_filtered(RunContext& c, const TensorView& x, const MutableTensorView& y, const ResizePlan& plan) {
  std::vector<ResizeTaps> taps;
  std::vector<std::vector<bool>> outside;
  for (const ResizeAxis& axis : plan.axes) {
    ORKNN_TRY_ASSIGN(ResizeTaps made, resize_taps(plan.filter, plan.coordinates, axis));
    taps.push_back(std::move(made));
    outside.push_back(taps.back().outside);
  }
  const Dims dims(x.dims.begin(), x.dims.end());
  if (x.dtype == DType::Float32 || x.dtype == DType::Float16 || x.dtype == DType::BFloat16) {
    std::vector<float> values(static_cast<size_t>(x.count()));
    convert_elements(x, {DType::Float32, dims, values.data()});
    resample(dims, plan.axes, taps, y.dims, values, c.pool);
    convert_elements({DType::Float32, y.dims, values.data()}, y);
  } else {
    std::vector<double> values = to_doubles(x);
    resample(dims, plan.axes, taps, y.dims, values, c.pool);
    // Integers take the nearest value that fits; a cubic filter can overshoot the type.
    if (is_integer(y.dtype)) {
      const auto low = static_cast<double>(dtype_min(y.dtype)), high = static_cast<double>(dtype_max(y.dtype));
      for (double& v : values) v = std::clamp(std::nearbyint(v), low, high);
    }
    convert_elements({DType::Float64, y.dims, values.data()}, y);
  }
  if (plan.coordinates == ResizeCoordinates::CropAndResize)
    write_outside(y, plan.axes, outside, convert(TensorData::scalar(c.get_float("extrapolation_value")).view(), y.dtype));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const auto input = [&](size_t i) { return c.has_input(i) ? std::optional(c.input(i)) : std::nullopt; };
  ORKNN_TRY_ASSIGN(const ResizePlan plan, plan_resize(c, x.dims, {input(1), input(2), input(3)}));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, plan.dims));
  if (y.count() == 0) return {};
  if (x.count() == 0) return shape_mismatch("a tensor without elements cannot be enlarged").found(to_string(x.dims));
  if (x.dims.empty()) {
    std::memcpy(y.data, x.data, x.bytes());
    return {};
  }
  return plan.mode == ResizeMode::Nearest ? run_nearest(c, x, y, plan) : run_filtered(c, x, y, plan);
}

// Equal extents with a scale such as 1.01 still move the sample points.
int copied(const InferContext& c) {
  const std::string& mode = c.get_string("coordinate_transformation_mode");
  if (mode == "tf_crop_and_resize" || mode == "tf_half_pixel_for_nn" || !keeps_shape(c, 0)) return kNoCopy;
  if (!c.node().has_input(2)) return 0;
  const TensorData* scales = c.constant(2);
  return scales && (scales->count() == 0 || splat_of(c, 2) == 1.0) ? 0 : kNoCopy;
}
}  // namespace

std::span<const OpDef> resize() {
  static const OpDef def{
      .name = "Resize",
      .summary = "resamples axes to new extents",
      .inputs = {1, 4},
      .attributes = {attr_int("antialias", 0), axes_of_input(attr_ints("axes")),
                     attr_string("coordinate_transformation_mode", "half_pixel"), attr_float("cubic_coeff_a", -0.75),
                     attr_int("exclude_outside", 0), attr_float("extrapolation_value", 0.0),
                     attr_string("keep_aspect_ratio_policy", "stretch"), attr_string("mode", "nearest"),
                     attr_string("nearest_mode", "round_prefer_floor")},
      .infer = infer,
      .run = run,
      .widen_half = false,
      .quant = QuantRule::Resample,
      .engine = Engine::Move,
      .axes = AxisNames::ListAttribute,
      .exact_inputs = input_slots({1, 2}),
      .copied_input = copied,
      .npu = {.form = NpuForm::Resize},
      .cpu = {CpuList::LargeChips, CpuLimit::Interpolation}};
  return {&def, 1};
}
}  // namespace orknn::ops
