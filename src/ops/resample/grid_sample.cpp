// Samples a tensor at given coordinates, and makes such coordinates from an affine transformation.
#include <algorithm>
#include <cmath>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

enum class Mode { Linear, Nearest, Cubic };
enum class Padding { Zeros, Border, Reflection };

Result<Mode> mode_of(const NodeReader& c) {
  const std::string& mode = c.get_string("mode");
  if (mode == "linear" || mode == "bilinear") return Mode::Linear;
  if (mode == "nearest") return Mode::Nearest;
  if (mode == "cubic" || mode == "bicubic") return Mode::Cubic;
  return unsupported("unknown interpolation mode").expected("linear, nearest or cubic").found(mode);
}

Result<Padding> padding_of(const NodeReader& c) {
  const std::string& mode = c.get_string("padding_mode");
  if (mode == "zeros") return Padding::Zeros;
  if (mode == "border") return Padding::Border;
  if (mode == "reflection") return Padding::Reflection;
  return unsupported("unknown padding mode").expected("zeros, border or reflection").found(mode);
}

// A point has 4^axes taps at most; this keeps that small.
constexpr size_t kMaxAxes = 6;

Status check_shapes(const Shape& x, const Shape& grid) {
  if (x.size() < 3 || x.size() > kMaxAxes + 2 || grid.size() != x.size())
    return shape_mismatch("data and grid do not fit together")
        .expected("[N,C,...] and [N,...,axes] of the same rank")
        .found(to_string(x) + " and " + to_string(grid));
  const auto axes = static_cast<int64_t>(x.size()) - 2;
  if (grid.back().is_known() && grid.back().value() != axes)
    return shape_mismatch("the grid needs one coordinate per axis").expected(std::to_string(axes)).found(grid.back().to_string());
  if (x[0].is_known() && grid[0].is_known() && x[0] != grid[0])
    return shape_mismatch("data and grid differ in batch").expected(x[0].to_string()).found(grid[0].to_string());
  return {};
}

Status infer_sample(InferContext& c) {
  ORKNN_TRY(mode_of(c).status());
  ORKNN_TRY(padding_of(c).status());
  if (!is_float(c.dtype(1))) return invalid_model("the grid must be floats").found(std::string(dtype_name(c.dtype(1))));
  const Shape *x = c.shape(0), *grid = c.shape(1);
  if (!x || !grid) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY(check_shapes(*x, *grid));
  Shape out = {(*x)[0].is_known() ? (*x)[0] : (*grid)[0], (*x)[1]};
  out.insert(out.end(), grid->begin() + 1, grid->end() - 1);
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

// Mirrors x at both bounds until it lies between them.
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  double phase = std::fmod(std::abs(x - low), 2 * range);
  if (phase > range) phase = 2 * range - phase;
  return low + phase;
}

// One axis of the source with everything that maps a coordinate to taps.
struct Axis {
  int64_t extent = 1, stride = 1;
  double low = 0, high = 0;  // where reflection happens
};

// Element that position `at` refers to, -1 for a zero.
int64_t element_at(Padding padding, const Axis& axis, int64_t at) {
  if (at >= 0 && at < axis.extent) return at;
  switch (padding) {
    case Padding::Zeros: return -1;
    case Padding::Border: return at < 0 ? 0 : axis.extent - 1;
    case Padding::Reflection: break;
  }
  return std::clamp<int64_t>(static_cast<int64_t>(reflected(static_cast<double>(at), axis.low, axis.high)), 0, axis.extent - 1);
}

struct Tap {
  int64_t offset;
  double weight;
};

double cubic_weight(double distance) {
  constexpr double a = -0.75;
  const double s = std::abs(distance);
  if (s <= 1) return ((a + 2) * s - (a + 3)) * s * s + 1;
  if (s < 2) return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
  return 0;
}

// Multiplies the taps gathered so far by those of one more axis at coordinate g (-1 to 1 across the axis).
void add_axis(std::vector<Tap>& taps, Mode mode, Padding padding, bool align_corners, const Axis& axis, double g) {
  const auto extent = static_cast<double>(axis.extent);
  double x = align_corners ? (g + 1) / 2 * (extent - 1) : ((g + 1) * extent - 1) / 2;
  if (!std::isfinite(x)) x = padding == Padding::Zeros ? -8.0 : 0.0;
  // A cubic filter reaches beyond the border, so there only its taps are clamped.
  if (padding == Padding::Border && mode != Mode::Cubic) x = std::clamp(x, 0.0, extent - 1);
  if (padding == Padding::Reflection && (x < axis.low || x > axis.high)) x = reflected(x, axis.low, axis.high);
  x = std::clamp(x, -8.0, extent + 8);  // further out is as far out
  const double base = mode == Mode::Nearest ? std::nearbyint(x) : std::floor(x);
  const auto position = static_cast<int64_t>(base);
  const int first = mode == Mode::Cubic ? -1 : 0, last = mode == Mode::Cubic ? 2 : mode == Mode::Linear ? 1 : 0;
  std::vector<Tap> joined;
  for (const Tap& tap : taps)
    for (int k = first; k <= last; ++k) {
      const int64_t element = element_at(padding, axis, position + k);
      const double distance = k - (x - base);
      const double weight = mode == Mode::Nearest ? 1 : mode == Mode::Cubic ? cubic_weight(distance) : 1 - std::abs(distance);
      if (element >= 0 && weight != 0) joined.push_back({tap.offset + element * axis.stride, tap.weight * weight});
    }
  taps = std::move(joined);
}

Status run_sample(RunContext& c) {
  const TensorView x = c.input(0), grid = c.input(1);
  ORKNN_TRY_ASSIGN(const Mode mode, mode_of(c));
  ORKNN_TRY_ASSIGN(const Padding padding, padding_of(c));
  ORKNN_TRY(check_shapes(to_shape(x.dims), to_shape(grid.dims)));
  const bool align_corners = c.get_int("align_corners") != 0;
  const size_t axis_count = x.dims.size() - 2;
  Dims dims = {x.dims[0], x.dims[1]};
  dims.insert(dims.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  if (y.count() == 0) return {};
  const Dims strides = strides_of(x.dims);
  std::vector<Axis> axes;
  for (size_t i = 0; i < axis_count; ++i) {
    const int64_t extent = x.dims[i + 2];
    if (extent == 0) return shape_mismatch("the input is empty, there is nothing to sample").found(to_string(x.dims));
    const auto last = static_cast<double>(extent - 1);
    axes.push_back({extent, strides[i + 2], align_corners ? 0.0 : -0.5, align_corners ? last : last + 0.5});
  }
  const std::vector<double> coordinates = to_doubles(grid);
  const int64_t channels = x.dims[1], points = extent_product(dims, 2, dims.size()), plane = strides[1];
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    c.pool.parallel_for(x.dims[0] * points, std::max<int64_t>(1, (1 << 12) / channels), [&](int64_t begin, int64_t end) {
      std::vector<Tap> taps;
      for (int64_t n = begin; n < end; ++n) {
        taps.assign(1, {0, 1.0});
        // The last coordinate belongs to the first axis.
        for (size_t i = 0; i < axis_count; ++i)
          add_axis(taps, mode, padding, align_corners, axes[i],
                   coordinates[static_cast<size_t>(n) * axis_count + (axis_count - 1 - i)]);
        const int64_t batch = n / points;
        const T* from = x.as<T>() + batch * channels * plane;
        T* to = y.as<T>() + batch * channels * points + n % points;
        for (int64_t k = 0; k < channels; ++k) {
          double sum = 0;
          for (const Tap& tap : taps) sum += tap.weight * static_cast<double>(from[k * plane + tap.offset]);
          if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
            sum = std::clamp(std::nearbyint(sum), static_cast<double>(std::numeric_limits<T>::min()),
                             static_cast<double>(std::numeric_limits<T>::max()));
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>)
            to[k * points] =
                sum >= static_cast<double>(std::numeric_limits<T>::max()) ? std::numeric_limits<T>::max() : static_cast<T>(sum);
          else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
            to[k * points] = T(static_cast<float>(sum));
          else
            to[k * points] = static_cast<T>(sum);
        }
      }
    });
  });
  return {};
}

Status check_affine(const Shape& theta, const Shape& size) {
  if (size.size() != 4 && size.size() != 5)
    return shape_mismatch("the size must be [N,C,H,W] or [N,C,D,H,W]").found(std::to_string(size.size()) + " extents");
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  const auto fits = [](const Dim& d, int64_t v) { return !d.is_known() || d.value() == v; };
  if (theta.size() != 3 || !fits(theta[1], axes) || !fits(theta[2], axes + 1))
    return shape_mismatch("theta does not fit the size")
        .expected("[N," + std::to_string(axes) + "," + std::to_string(axes + 1) + "]")
        .found(to_string(theta));
  if (size[0].is_known() && !fits(theta[0], size[0].value()))
    return shape_mismatch("theta and size differ in batch").expected(size[0].to_string()).found(theta[0].to_string());
  return {};
}

Status infer_affine(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "the size"));
  if (!is_float(c.dtype(0))) return invalid_model("theta must be floats").found(std::string(dtype_name(c.dtype(0))));
  const auto size = c.content(1);
  if (!size) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  if (c.shape(0)) ORKNN_TRY(check_affine(*c.shape(0), *size));
  if (size->size() < 3) return shape_mismatch("the size must be [N,C,H,W] or [N,C,D,H,W]");
  for (const Dim& d : *size)
    if (d.is_known() && d.value() < 0) return invalid_model("negative extent in the size").found(to_string(*size));
  Shape out = {(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.push_back(static_cast<int64_t>(size->size()) - 2);
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run_affine(RunContext& c) {
  const TensorView theta = c.input(0);
  const std::vector<int64_t> size = to_ints(c.input(1));
  ORKNN_TRY(check_affine(to_shape(theta.dims), to_shape(size)));
  const size_t axes = size.size() - 2;
  Dims dims = {size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  dims.push_back(static_cast<int64_t>(axes));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, theta.dtype, dims));
  const bool align_corners = c.get_int("align_corners") != 0;
  const auto position = [&](int64_t at, int64_t extent) {
    const auto n = static_cast<double>(extent), i = static_cast<double>(at);
    if (!align_corners) return (2 * i + 1) / n - 1;
    return extent == 1 ? 0.0 : 2 * i / (n - 1) - 1;
  };
  const std::vector<double> matrix = to_doubles(theta);
  const int64_t points = extent_product(dims, 1, dims.size() - 1);
  visit_dtype(theta.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      T* to = y.as<T>();
      for (int64_t n = 0; n < size[0] * points; ++n) {
        double at[3] = {0, 0, 0};  // x, y, z: the last axis comes first
        int64_t rest = n;
        for (size_t i = 0; i < axes; ++i) {
          const int64_t extent = dims[axes - i];
          at[i] = position(rest % extent, extent);
          rest /= extent;
        }
        const double* m = matrix.data() + static_cast<size_t>(n / points) * axes * (axes + 1);
        for (size_t row = 0; row < axes; ++row) {
          double sum = m[row * (axes + 1) + axes];
          for (size_t k = 0; k < axes; ++k) sum += m[row * (axes + 1) + k] * at[k];
          *to++ = static_cast<T>(sum);
        }
      }
    }
  });
  return {};
}
}  // namespace

std::span<const OpDef> grid_sample() {
  static const OpDef defs[] = {
      {.name = "GridSample",
       .summary = "samples a tensor at given coordinates",
       .inputs = {2, 2},
       .attributes = {attr_int("align_corners", 0), attr_string("mode", "linear"), attr_string("padding_mode", "zeros")},
       .infer = infer_sample,
       .run = run_sample},
      {.name = "AffineGrid",
       .summary = "coordinates of an affine transformation",
       .inputs = {2, 2},
       .attributes = {attr_int("align_corners", 0)},
       .infer = infer_affine,
       .run = run_affine},
  };
  return defs;
}
}  // namespace orknn::ops
