// Resamples axes to new extents: nearest, linear or cubic, in every coordinate convention of ONNX. Each axis is described
// by taps (source positions and weights per output position) and the axes are processed one after the other.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

enum class Mode { Nearest, Linear, Cubic };

Result<Mode> mode_of(const NodeReader& c) {
  const std::string& mode = c.get_string("mode");
  if (mode == "nearest") return Mode::Nearest;
  if (mode == "linear") return Mode::Linear;
  if (mode == "cubic") return Mode::Cubic;
  return unsupported("unknown interpolation mode").expected("nearest, linear or cubic").found(mode);
}

enum class Coordinates { HalfPixel, HalfPixelSymmetric, PytorchHalfPixel, AlignCorners, Asymmetric, TfHalfPixelForNn, CropAndResize };

Result<Coordinates> coordinates_of(const NodeReader& c) {
  const std::string& mode = c.get_string("coordinate_transformation_mode");
  if (mode == "half_pixel") return Coordinates::HalfPixel;
  if (mode == "half_pixel_symmetric") return Coordinates::HalfPixelSymmetric;
  if (mode == "pytorch_half_pixel") return Coordinates::PytorchHalfPixel;
  if (mode == "align_corners") return Coordinates::AlignCorners;
  if (mode == "asymmetric") return Coordinates::Asymmetric;
  if (mode == "tf_half_pixel_for_nn") return Coordinates::TfHalfPixelForNn;
  if (mode == "tf_crop_and_resize") return Coordinates::CropAndResize;
  return unsupported("unknown coordinate transformation").found(mode);
}

enum class Policy { Stretch, NotLarger, NotSmaller };

Result<Policy> policy_of(const NodeReader& c) {
  const std::string& policy = c.get_string("keep_aspect_ratio_policy");
  if (policy == "stretch") return Policy::Stretch;
  if (policy == "not_larger") return Policy::NotLarger;
  if (policy == "not_smaller") return Policy::NotSmaller;
  return unsupported("unknown aspect ratio policy").expected("stretch, not_larger or not_smaller").found(policy);
}

Status check_nearest_mode(const NodeReader& c) {
  const std::string& mode = c.get_string("nearest_mode");
  if (mode == "round_prefer_floor" || mode == "round_prefer_ceil" || mode == "floor" || mode == "ceil") return {};
  return unsupported("unknown nearest mode").expected("round_prefer_floor, round_prefer_ceil, floor or ceil").found(mode);
}

// The axes that scales, sizes and roi speak of, in their order.
Result<std::vector<size_t>> resized_axes(const NodeReader& c, size_t rank) {
  std::vector<size_t> axes;
  const auto* given = c.find<std::vector<int64_t>>("axes");
  if (given) ORKNN_TRY(distinct_axes(*given, static_cast<int64_t>(rank)).status());
  for (size_t i = 0; i < (given ? given->size() : rank); ++i)
    axes.push_back(given ? static_cast<size_t>(*normalize_axis((*given)[i], static_cast<int64_t>(rank))) : i);
  return axes;
}

// Extent and scale of one resized axis. Single precision throughout, as in the runtimes that exporters are tested with:
// a scale such as 1.1 then meets the whole numbers it is meant to meet.
struct Target {
  int64_t extent = 0;
  float scale = 1;
};

Result<Target> scaled(int64_t extent, float scale) {
  const float size = static_cast<float>(extent) * scale;
  if (!(scale > 0) || !(size < 1e12f)) return invalid_argument("illegal scale").found(std::to_string(scale));
  return Target{static_cast<int64_t>(size), scale};
}

Result<std::vector<Target>> targets_from_scales(std::span<const int64_t> extents, const std::vector<double>& scales) {
  if (scales.size() != extents.size())
    return invalid_argument("one scale per axis is needed").expected(std::to_string(extents.size())).found(std::to_string(scales.size()));
  std::vector<Target> out;
  for (size_t i = 0; i < extents.size(); ++i) {
    ORKNN_TRY_ASSIGN(const Target t, scaled(extents[i], static_cast<float>(scales[i])));
    out.push_back(t);
  }
  return out;
}

Result<std::vector<Target>> targets_from_sizes(std::span<const int64_t> extents, const std::vector<int64_t>& sizes, Policy policy) {
  if (sizes.size() != extents.size())
    return invalid_argument("one size per axis is needed").expected(std::to_string(extents.size())).found(std::to_string(sizes.size()));
  std::vector<Target> out;
  float common = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (sizes[i] < 0 || (extents[i] == 0 && sizes[i] > 0)) return invalid_argument("illegal size").found(std::to_string(sizes[i]) + " from extent " + std::to_string(extents[i]));
    const float scale = extents[i] == 0 ? 1.0f : static_cast<float>(sizes[i]) / static_cast<float>(extents[i]);
    out.push_back({sizes[i], scale});
    common = i == 0 ? scale : policy == Policy::NotLarger ? std::min(common, scale) : std::max(common, scale);
  }
  if (policy == Policy::Stretch) return out;
  for (size_t i = 0; i < extents.size(); ++i) {
    const float size = std::floor(static_cast<float>(extents[i]) * common + 0.5f);
    if (!(size < 1e12f)) return invalid_argument("illegal size").found(std::to_string(size));
    out[i] = {static_cast<int64_t>(size), common};
  }
  return out;
}

bool has_elements(const InferContext& c, size_t i) {
  const Shape* s = c.shape(i);
  return c.has_input(i) && !(s && s->size() == 1 && s->front() == Dim(0));
}

Status infer(InferContext& c) {
  ORKNN_TRY(mode_of(c).status());
  ORKNN_TRY(coordinates_of(c).status());
  ORKNN_TRY(check_nearest_mode(c));
  ORKNN_TRY_ASSIGN(const Policy policy, policy_of(c));
  ORKNN_TRY(require_integer(c, 3, "sizes"));
  const bool has_scales = has_elements(c, 2), has_sizes = has_elements(c, 3);
  if (has_scales == has_sizes) return invalid_model("either scales or sizes must be given");
  if (has_scales && !is_float(c.dtype(2))) return invalid_model("scales must be floats").found(std::string(dtype_name(c.dtype(2))));
  if (has_elements(c, 1) && !is_float(c.dtype(1))) return invalid_model("roi must be floats").found(std::string(dtype_name(c.dtype(1))));
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
  const std::optional<Dims> known = to_dims(extents);
  if (has_sizes) {
    const auto content = c.content(3);
    const auto sizes = c.ints(3);
    if (content && content->size() != axes.size())
      return invalid_model("one size per axis is needed").expected(std::to_string(axes.size())).found(std::to_string(content->size()));
    if (known && sizes) {
      ORKNN_TRY_ASSIGN(const auto targets, targets_from_sizes(*known, *sizes, policy));
      for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = targets[i].extent;
    } else if (content && policy == Policy::Stretch) {
      for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = (*content)[i];
    }
  } else if (const TensorData* constant = c.constant(2)) {
    const std::vector<double> scales = to_doubles(constant->view());
    if (scales.size() != axes.size())
      return invalid_model("one scale per axis is needed").expected(std::to_string(axes.size())).found(std::to_string(scales.size()));
    for (size_t i = 0; i < axes.size(); ++i) {
      if (extents[i].is_known()) {
        ORKNN_TRY_ASSIGN(const Target t, scaled(extents[i].value(), static_cast<float>(scales[i])));
        out[axes[i]] = t.extent;
      } else if (scales[i] >= 1 && scales[i] < 1e6 && scales[i] == std::floor(scales[i])) {
        out[axes[i]] = extents[i] * Dim(static_cast<int64_t>(scales[i]));
      }
    }
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

struct AxisSetup {
  int64_t from = 0, to = 0;  // extents
  float scale = 1, roi_start = 0, roi_end = 1;
};

float source_coordinate(Coordinates mode, const AxisSetup& a, int64_t position) {
  const auto x = static_cast<float>(position), from = static_cast<float>(a.from), to = static_cast<float>(a.to);
  switch (mode) {
    case Coordinates::HalfPixel: return (x + 0.5f) / a.scale - 0.5f;
    case Coordinates::HalfPixelSymmetric: {
      const float adjustment = to / (a.scale * from);
      return from / 2 * (1 - adjustment) + (x + 0.5f) / a.scale - 0.5f;
    }
    case Coordinates::PytorchHalfPixel: return a.to > 1 ? (x + 0.5f) / a.scale - 0.5f : 0.0f;
    case Coordinates::AlignCorners: {
      // The length asked for, which ONNX does not round before it aligns; equal to the real one where sizes are given.
      const float wanted = a.scale * from, length = std::abs(wanted - to) < 1e-3f ? to : wanted;
      return a.to == 1 ? 0.0f : x * (from - 1) / (length - 1);
    }
    case Coordinates::Asymmetric: return x / a.scale;
    case Coordinates::TfHalfPixelForNn: return (x + 0.5f) / a.scale;
    case Coordinates::CropAndResize:
      return a.to > 1 ? a.roi_start * (from - 1) + x * (a.roi_end - a.roi_start) * (from - 1) / (to - 1) : 0.5f * (a.roi_start + a.roi_end) * (from - 1);
  }
  return 0;
}

int64_t nearest_position(std::string_view mode, float at, int64_t extent) {
  float position = std::round(at);
  if (mode == "floor") position = std::floor(at);
  else if (mode == "ceil") position = std::ceil(at);
  else if (mode == "round_prefer_floor" && at - std::floor(at) == 0.5f) position = std::floor(at);
  else if (mode == "round_prefer_ceil" && at - std::floor(at) == 0.5f) position = std::ceil(at);
  const float last = static_cast<float>(extent - 1);
  return position >= last ? extent - 1 : position > 0 ? static_cast<int64_t>(position) : 0;
}

float linear_weight(float distance) { return std::max(0.0f, 1.0f - std::abs(distance)); }

float cubic_weight(float distance, float a) {
  const float s = std::abs(distance);
  if (s <= 1) return ((a + 2) * s - (a + 3)) * s * s + 1;
  if (s < 2) return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
  return 0;
}

// Source positions and weights of every output position of an axis; `width` of each, unused ones with weight 0.
struct Taps {
  size_t width = 1;
  std::vector<int64_t> positions;
  std::vector<float> weights;
  std::vector<bool> outside;  // the position takes the extrapolation value; empty = none does
  bool identity = false;
};

struct Filter {
  Mode mode = Mode::Linear;
  float cubic_a = -0.75f;
  bool antialias = false, exclude_outside = false;
};

Result<Taps> make_taps(const Filter& filter, Coordinates coordinates, const AxisSetup& a) {
  // Downsampling with antialias widens the filter by the inverse of the scale.
  const float stretch = filter.antialias ? std::min(a.scale, 1.0f) : 1.0f;
  const float reach = (filter.mode == Mode::Cubic ? 2.0f : 1.0f) / stretch;
  if (!(reach < 1e6f) || (reach + 1) * static_cast<float>(a.to) > 1e9f) return unsupported("the filter of an antialiased axis is too wide").found(std::to_string(reach));
  Taps taps;
  taps.width = static_cast<size_t>(2 * std::ceil(reach));
  taps.positions.assign(taps.width * static_cast<size_t>(a.to), 0);
  taps.weights.assign(taps.positions.size(), 0.0f);
  taps.identity = a.from == a.to;
  for (int64_t n = 0; n < a.to; ++n) {
    const float limit = 1e9f;  // far beyond any axis, safe to convert
    const float raw = source_coordinate(coordinates, a, n);
    const float at = std::isnan(raw) ? 0.0f : std::clamp(raw, -limit, limit);
    if (coordinates == Coordinates::CropAndResize) taps.outside.push_back(!(at >= 0 && at <= static_cast<float>(a.from - 1)));
    const float base = std::floor(at), fraction = at - base;
    const auto first = static_cast<int64_t>(base) - static_cast<int64_t>(std::ceil(reach)) + 1;
    int64_t* positions = taps.positions.data() + static_cast<size_t>(n) * taps.width;
    float* weights = taps.weights.data() + static_cast<size_t>(n) * taps.width;
    float total = 0;
    for (size_t k = 0; k < taps.width; ++k) {
      const int64_t position = first + static_cast<int64_t>(k);
      const float distance = (static_cast<float>(position - static_cast<int64_t>(base)) - fraction) * stretch;
      const bool inside = position >= 0 && position < a.from;
      positions[k] = std::clamp<int64_t>(position, 0, a.from - 1);
      weights[k] = filter.exclude_outside && !inside ? 0.0f : filter.mode == Mode::Cubic ? cubic_weight(distance, filter.cubic_a) : linear_weight(distance);
      total += weights[k];
    }
    if ((filter.exclude_outside || filter.antialias) && total != 0)
      for (size_t k = 0; k < taps.width; ++k) weights[k] /= total;
    taps.identity &= at == static_cast<float>(n) && (taps.outside.empty() || !taps.outside.back());
  }
  return taps;
}

// Replaces axis `axis` of `from` by the weighted sums that `taps` describe.
template <class T>
void resample_axis(std::span<const int64_t> dims, size_t axis, const Taps& taps, const T* from, T* to, int64_t extent, ThreadPool& pool) {
  const int64_t outer = extent_product(dims, 0, axis), old_extent = dims[axis], inner = extent_product(dims, axis + 1, dims.size());
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

// All axes in turn, in type T; the result is left in `values`.
template <class T>
void resample(Dims dims, const std::vector<size_t>& axes, const std::vector<Taps>& taps, std::span<const int64_t> out, std::vector<T>& values, ThreadPool& pool) {
  // Shrinking axes first, then enlarging ones from the last on: the least work, most of it on contiguous rows.
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto enlarges = [&](size_t i) { return out[axes[i]] >= dims[axes[i]]; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return enlarges(a) != enlarges(b) ? enlarges(b) : enlarges(a) && axes[a] > axes[b]; });
  for (const size_t i : order) {
    if (taps[i].identity) continue;
    const size_t axis = axes[i];
    Dims next = dims;
    next[axis] = out[axis];
    std::vector<T> result(static_cast<size_t>(element_count(next)));
    resample_axis(dims, axis, taps[i], values.data(), result.data(), out[axis], pool);
    values = std::move(result);
    dims = std::move(next);
  }
}

// Writes one value at every output element that lies outside of the source along some axis.
void write_outside(const MutableTensorView& y, const std::vector<size_t>& axes, std::span<const std::vector<bool>> outside, const TensorData& value) {
  const size_t bytes = dtype_bytes(y.dtype);
  const Dims strides = strides_of(y.dims);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t inner = strides[axes[i]], extent = y.dims[axes[i]], outer = extent_product(y.dims, 0, axes[i]);
    for (int64_t n = 0; n < outer * extent; ++n)
      if (!outside[i].empty() && outside[i][static_cast<size_t>(n % extent)]) fill_elements(offset_by(y.data, n * inner, bytes), inner, value.data(), bytes);
  }
}

Status run_nearest(RunContext& c, const TensorView& x, const MutableTensorView& y, const std::vector<size_t>& axes, const std::vector<AxisSetup>& setups, Coordinates coordinates) {
  const std::string& nearest = c.get_string("nearest_mode");
  const size_t rank = x.dims.size();
  // Source offset of each output position, per axis.
  const Dims strides = strides_of(x.dims);
  std::vector<std::vector<int64_t>> offsets(rank);
  std::vector<std::vector<bool>> outside(axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    for (int64_t n = 0; n < setups[i].to; ++n) {
      const float at = source_coordinate(coordinates, setups[i], n);
      offsets[axes[i]].push_back(nearest_position(nearest, at, setups[i].from) * strides[axes[i]]);
      if (coordinates == Coordinates::CropAndResize) outside[i].push_back(!(at >= 0 && at <= static_cast<float>(setups[i].from - 1)));
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
  if (coordinates == Coordinates::CropAndResize)
    write_outside(y, axes, outside, convert(TensorData::scalar(c.get_float("extrapolation_value")).view(), y.dtype));
  return {};
}

Status run_filtered(RunContext& c, const TensorView& x, const MutableTensorView& y, const std::vector<size_t>& axes, const std::vector<AxisSetup>& setups, const Filter& filter,
                    Coordinates coordinates) {
  std::vector<Taps> taps;
  std::vector<std::vector<bool>> outside;
  for (const AxisSetup& setup : setups) {
    ORKNN_TRY_ASSIGN(Taps made, make_taps(filter, coordinates, setup));
    taps.push_back(std::move(made));
    outside.push_back(taps.back().outside);
  }
  const Dims dims(x.dims.begin(), x.dims.end());
  if (x.dtype == DType::Float32) {
    std::vector<float> values(x.as<float>(), x.as<float>() + x.count());
    resample(dims, axes, taps, y.dims, values, c.pool);
    std::copy(values.begin(), values.end(), y.as<float>());
  } else {
    std::vector<double> values = to_doubles(x);
    resample(dims, axes, taps, y.dims, values, c.pool);
    // Integers take the nearest value that fits; a cubic filter can overshoot the type.
    if (is_integer(y.dtype)) {
      const auto low = static_cast<double>(dtype_min(y.dtype)), high = static_cast<double>(dtype_max(y.dtype));
      for (double& v : values) v = std::clamp(std::nearbyint(v), low, high);
    }
    convert_elements({DType::Float64, y.dims, values.data()}, y);
  }
  if (coordinates == Coordinates::CropAndResize)
    write_outside(y, axes, outside, convert(TensorData::scalar(c.get_float("extrapolation_value")).view(), y.dtype));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const Mode mode, mode_of(c));
  ORKNN_TRY_ASSIGN(const Coordinates coordinates, coordinates_of(c));
  ORKNN_TRY_ASSIGN(const Policy policy, policy_of(c));
  ORKNN_TRY_ASSIGN(const std::vector<size_t> axes, resized_axes(c, x.dims.size()));
  Dims extents, dims(x.dims.begin(), x.dims.end());
  for (const size_t axis : axes) extents.push_back(x.dims[axis]);
  std::vector<Target> targets;
  if (c.has_input(3) && c.input(3).count() > 0) {
    ORKNN_TRY_ASSIGN(targets, targets_from_sizes(extents, to_ints(c.input(3)), policy));
  } else if (c.has_input(2)) {
    ORKNN_TRY_ASSIGN(targets, targets_from_scales(extents, to_doubles(c.input(2))));
  } else {
    return invalid_argument("either scales or sizes must be given");
  }
  std::vector<double> roi;
  if (coordinates == Coordinates::CropAndResize) {
    if (c.has_input(1)) roi = to_doubles(c.input(1));
    if (roi.size() != 2 * axes.size()) return invalid_argument("roi needs two entries per axis").expected(std::to_string(2 * axes.size())).found(std::to_string(roi.size()));
  }
  std::vector<AxisSetup> setups;
  for (size_t i = 0; i < axes.size(); ++i) {
    dims[axes[i]] = targets[i].extent;
    setups.push_back({extents[i], targets[i].extent, targets[i].scale});
    if (roi.empty()) continue;
    setups[i].roi_start = static_cast<float>(roi[i]);
    setups[i].roi_end = static_cast<float>(roi[axes.size() + i]);
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  if (y.count() == 0) return {};
  if (x.count() == 0) return shape_mismatch("a tensor without elements cannot be enlarged").found(to_string(x.dims));
  if (x.dims.empty()) {
    std::memcpy(y.data, x.data, x.bytes());
    return {};
  }
  if (mode == Mode::Nearest) return run_nearest(c, x, y, axes, setups, coordinates);
  const Filter filter{mode, static_cast<float>(c.get_float("cubic_coeff_a")), c.get_int("antialias") != 0, c.get_int("exclude_outside") != 0};
  return run_filtered(c, x, y, axes, setups, filter, coordinates);
}
}  // namespace

std::span<const OpDef> resize() {
  static const OpDef def{.name = "Resize", .summary = "resamples axes to new extents", .inputs = {1, 4},
                         .attributes = {attr_int("antialias", 0), attr_ints("axes"), attr_string("coordinate_transformation_mode", "half_pixel"),
                                        attr_float("cubic_coeff_a", -0.75), attr_int("exclude_outside", 0), attr_float("extrapolation_value", 0.0),
                                        attr_string("keep_aspect_ratio_policy", "stretch"), attr_string("mode", "nearest"),
                                        attr_string("nearest_mode", "round_prefer_floor")},
                         .infer = infer, .run = run, .quant = QuantRule::SameScale, .engine = Engine::Move};
  return {&def, 1};
}
}  // namespace orknn::ops
