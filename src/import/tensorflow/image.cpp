// Resizing, cropping and colour conversion of pictures. TensorFlow's pictures are always channels last here.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
Result<TensorId> resized(Layer& l, TensorId x, std::string mode) {
  ORKNN_TRY_ASSIGN(const auto size, l.ints(1, "to size the result"));
  return resize(l, x, size, {std::move(mode), l.bool_or("align_corners", false), l.bool_or("half_pixel_centers", false)});
}
Result<TensorId> resize_bilinear(Layer& l, TensorId x) { return resized(l, x, "linear"); }
Result<TensorId> resize_nearest(Layer& l, TensorId x) { return resized(l, x, "nearest"); }
Result<TensorId> resize_bicubic(Layer& l, TensorId x) { return resized(l, x, "cubic"); }

// A matrix product for each axis of the picture. `matrix(from, axis)` says what each of the `from` source elements counts for
// each target element.
template <class Matrix>
Result<TensorId> resize_by_matrices(Layer& l, TensorId x, const std::vector<int64_t>& size, Matrix&& matrix) {
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    return invalid_model("the new size is impossible").expected("height and width").found(to_string(size));
  return in_channels_first(l, {}, l.cast(x, DType::Float32), [&](TensorId first) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(first, "to resize it"));
    constexpr int64_t kMost = 1 << 24;
    if (dims[2] < 1 || dims[3] < 1 || dims[2] > kMost / size[0] || dims[3] > kMost / size[1])
      return unsupported("the picture is too large or empty").found(to_string(dims));
    const TensorId rows = l.add_constant("rows", matrix(dims[2], 0)), columns = l.add_constant("columns", matrix(dims[3], 1));
    return l.matmul(l.matmul(rows, first), l.transpose(columns, {1, 0}));
  });
}

// How much of each source element lies under each target element, as a matrix [to, from] whose rows add up to 1.
TensorData area_matrix(int64_t from, int64_t to, bool align_corners) {
  const double scale = align_corners && to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1)
                                               : static_cast<double>(from) / static_cast<double>(to);
  std::vector<float> weights(static_cast<size_t>(from * to), 0.0f);
  for (int64_t i = 0; i < to; ++i) {
    const double begin = static_cast<double>(i) * scale, end = static_cast<double>(i + 1) * scale;
    double sum = 0;
    std::vector<double> row(static_cast<size_t>(from), 0.0);
    for (auto j = static_cast<int64_t>(std::floor(begin)); j < static_cast<int64_t>(std::ceil(end)); ++j) {
      const double covered = std::min(end, static_cast<double>(j + 1)) - std::max(begin, static_cast<double>(j));
      row[static_cast<size_t>(std::clamp<int64_t>(j, 0, from - 1))] += covered;
      sum += covered;
    }
    for (int64_t j = 0; j < from && sum > 0; ++j)
      weights[static_cast<size_t>(i * from + j)] = static_cast<float>(row[static_cast<size_t>(j)] / sum);
  }
  return TensorData::from<float>({to, from}, weights);
}

// The average over the area each target pixel covers.
Result<TensorId> resize_area(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto size, l.ints(1, "to size the result"));
  const bool align_corners = l.bool_or("align_corners", false);
  return resize_by_matrices(l, x, size, [&](int64_t from, size_t axis) { return area_matrix(from, size[axis], align_corners); });
}

// --- resizing with a kernel
struct Kernel {
  std::string_view name;
  double radius;
  double (*weight)(double distance);
};
template <int Radius>
double lanczos(double x) {
  if (x > Radius) return 0;
  const double angle = std::numbers::pi * x;
  return x <= 1e-3 ? 1 : Radius * std::sin(angle) * std::sin(angle / Radius) / (angle * angle);
}
double gaussian(double x) { return x >= 1.5 ? 0 : std::exp(-2 * x * x); }
double box(double x) { return x < 0.5 ? 1 : x == 0.5 ? 0.5 : 0; }
double triangle(double x) { return x < 1 ? 1 - x : 0; }
double keys_cubic(double x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : (1.5 * x - 2.5) * x * x + 1;
}
double mitchell_cubic(double x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-7.0 / 18 * x + 2) * x - 10.0 / 3) * x + 16.0 / 9 : (7.0 / 6 * x - 2) * x * x + 8.0 / 9;
}
constexpr Kernel kKernels[] = {{"lanczos1", 1, lanczos<1>},
                               {"lanczos3", 3, lanczos<3>},
                               {"lanczos5", 5, lanczos<5>},
                               {"gaussian", 1.5, gaussian},
                               {"box", 1, box},
                               {"triangle", 1, triangle},
                               {"keyscubic", 2, keys_cubic},
                               {"mitchellcubic", 2, mitchell_cubic}};

// What each source element counts for each target element, as a matrix [to, from]. Target elements whose center is outside
// the source are 0. Places are computed in float32 as in TensorFlow: it decides whether an element at a kernel's border counts.
TensorData kernel_matrix(const Kernel& kernel, int64_t from, int64_t to, float scale, float translation, bool antialias) {
  const float step = 1 / scale, stretch = antialias ? std::max(step, 1.0f) : 1.0f, shrink = 1 / stretch;
  const float reach = static_cast<float>(kernel.radius) * stretch, last = static_cast<float>(from - 1);
  std::vector<float> weights(static_cast<size_t>(from * to), 0.0f);
  for (int64_t i = 0; i < to; ++i) {
    const float center = (static_cast<float>(i) + 0.5f) * step - step * translation;
    if (!(center >= 0 && center <= static_cast<float>(from))) continue;
    const auto begin = static_cast<int64_t>(std::clamp(std::ceil(center - reach - 0.5f), 0.0f, last));
    const auto end = static_cast<int64_t>(std::clamp(std::floor(center + reach - 0.5f), 0.0f, last));
    std::vector<double> row;
    for (int64_t j = begin; j <= end; ++j)
      row.push_back(kernel.weight(std::fabs((static_cast<float>(j) + 0.5f - center) * shrink)));
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    if (std::fabs(sum) < 1000 * static_cast<double>(std::numeric_limits<float>::min())) continue;
    for (int64_t j = begin; j <= end; ++j)
      weights[static_cast<size_t>(i * from + j)] = static_cast<float>(row[static_cast<size_t>(j - begin)] / sum);
  }
  return TensorData::from<float>({to, from}, weights);
}

// tf.image.resize with antialias, or with a kernel that has no operator of its own.
Result<TensorId> scale_and_translate(Layer& l, TensorId x, TensorId, TensorId scales, TensorId shifts) {
  ORKNN_TRY_ASSIGN(const auto size, l.ints(1, "to size the result"));
  ORKNN_TRY_ASSIGN(const auto scale, l.need_doubles(scales, "to compute the weights of the resize"));
  ORKNN_TRY_ASSIGN(const auto shift, l.need_doubles(shifts, "to compute the weights of the resize"));
  const std::string_view name = l.string_or("kernel_type", "lanczos3");
  const auto kernel = std::ranges::find(kKernels, name, &Kernel::name);
  if (kernel == std::end(kKernels)) return unsupported("the kernel is not supported").found(std::string(name));
  if (scale.size() != 2 || shift.size() != 2 || !(scale[0] > 0) || !(scale[1] > 0))
    return invalid_model("the scale is impossible").found(std::to_string(scale.size()) + " and " + std::to_string(shift.size()));
  return resize_by_matrices(l, x, size, [&](int64_t from, size_t axis) {
    return kernel_matrix(*kernel, from, size[axis], static_cast<float>(scale[axis]), static_cast<float>(shift[axis]),
                         l.bool_or("antialias", true));
  });
}

// Positions along one axis for every box, in pixels: [boxes, size].
TensorId box_positions(Layer& l, TensorId boxes, int64_t low, int64_t extent, int64_t size) {
  const TensorId begin = l.slice(boxes, 1, low, low + 1), end = l.slice(boxes, 1, low + 2, low + 3);
  const double last = static_cast<double>(extent - 1);
  if (size == 1) return l.mul(l.add(begin, end), 0.5 * last);
  std::vector<float> steps(static_cast<size_t>(size));
  for (size_t i = 0; i < steps.size(); ++i)
    steps[i] = static_cast<float>(static_cast<double>(i) * last / static_cast<double>(size - 1));
  const TensorId offsets = l.add_constant("steps", TensorData::from<float>({1, size}, steps));
  return l.add(l.mul(begin, last), l.mul(l.sub(end, begin), offsets));
}

// Boxes cut out of pictures and resized: sampled on a grid per box, with a fixed value outside of the picture.
Result<TensorId> crop_and_resize(Layer& l, TensorId image, TensorId boxes, TensorId numbers) {
  ORKNN_TRY_ASSIGN(const auto size, l.ints(3, "to size the result"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(image, "to cut boxes out of it"));
  if (dims.size() != 4 || dims[1] < 1 || dims[2] < 1)
    return shape_mismatch("the picture has the wrong shape").found(to_string(dims));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMaxWindow || size[1] > kMaxWindow)
    return invalid_model("crop_size must be a height and a width").found(to_string(size));
  const std::string_view method = l.string_or("method", "bilinear");
  if (method != "bilinear" && method != "nearest")
    return unsupported("the method is not supported").expected("bilinear or nearest").found(std::string(method));
  boxes = l.cast(boxes, DType::Float32);
  const TensorId y = box_positions(l, boxes, 0, dims[1], size[0]), x = box_positions(l, boxes, 1, dims[2], size[1]);
  // To the range [-1, 1] between the first and the last pixel.
  const auto normalized = [&](TensorId position, int64_t extent) {
    return extent == 1 ? l.mul(position, 0.0) : l.sub(l.mul(position, 2.0 / static_cast<double>(extent - 1)), 1.0);
  };
  const TensorId rows = l.unsqueeze(normalized(y, dims[1]), {2, 3}), columns = l.unsqueeze(normalized(x, dims[2]), {1, 3});
  const TensorId grid = l.concat({l.mul(columns, l.full(Dims{1, size[0], 1, 1}, 1, DType::Float32)),
                                  l.mul(rows, l.full(Dims{1, 1, size[1], 1}, 1, DType::Float32))},
                                 3);
  const auto inside = [&](TensorId position, int64_t extent) {
    return l.binary("And", l.with_scalar("GreaterOrEqual", position, 0),
                    l.with_scalar("LessOrEqual", position, static_cast<double>(extent - 1)));
  };
  const TensorId seen = l.binary("And", l.unsqueeze(inside(y, dims[1]), {1, 3}), l.unsqueeze(inside(x, dims[2]), {1, 2}));
  return in_channels_first(l, {}, l.gather(l.cast(image, DType::Float32), numbers, 0), [&](TensorId first) {
    const TensorId sampled = l.emit("GridSample", {first, grid},
                                    {{"mode", std::string(method == "nearest" ? "nearest" : "linear")},
                                     {"padding_mode", std::string("border")},
                                     {"align_corners", int64_t{1}}});
    return l.where(seen, sampled, l.add_scalar("outside", l.float_or("extrapolation_value", 0)));
  });
}

TensorId channel(Emitter& e, TensorId x, int64_t i) { return e.slice(x, -1, i, i + 1); }

// Hue, saturation and value of red, green and blue; hue in [0, 1).
TensorId rgb_to_hsv(Emitter& e, TensorId x) {
  const TensorId r = channel(e, x, 0), g = channel(e, x, 1), b = channel(e, x, 2);
  const TensorId zero = e.scalar_like(x, 0), one = e.scalar_like(x, 1);
  const TensorId value = e.emit("Max", {r, g, b}), range = e.sub(value, e.emit("Min", {r, g, b}));
  const auto or_one = [&](TensorId v) { return e.where(e.binary("Equal", v, zero), one, v); };
  const TensorId saturation = e.div(range, or_one(value));
  const TensorId unit = e.div(e.scalar_like(x, 1.0 / 6.0), or_one(range));
  const auto sector = [&](TensorId a, TensorId c, double start) { return e.add(e.mul(unit, e.sub(a, c)), start); };
  const TensorId among_gb = e.where(e.binary("Equal", g, value), sector(b, r, 2.0 / 6.0), sector(r, g, 4.0 / 6.0));
  const TensorId any = e.where(e.binary("Equal", r, value), sector(g, b, 0), among_gb);
  const TensorId positive = e.where(e.binary("Less", any, zero), e.add(any, one), any);
  return e.concat({e.where(e.binary("Greater", range, zero), positive, zero), saturation, value}, -1);
}

TensorId hsv_to_rgb(Emitter& e, TensorId x) {
  const TensorId h = e.mul(channel(e, x, 0), 6.0), s = channel(e, x, 1), v = channel(e, x, 2), two = e.scalar_like(x, 2);
  const auto distance = [&](double center) { return e.unary("Abs", e.sub(h, center)); };
  const auto mixed = [&](TensorId share) {
    return e.mul(v, e.add(e.sub(e.scalar_like(x, 1), s), e.mul(s, e.clip(share, 0, 1))));
  };
  return e.concat({mixed(e.sub(distance(3), 1.0)), mixed(e.sub(two, distance(2))), mixed(e.sub(two, distance(4)))}, -1);
}

TensorId adjust_hue(Emitter& e, TensorId x, TensorId turn) {
  const TensorId hsv = rgb_to_hsv(e, x), hue = e.add(channel(e, hsv, 0), turn);
  return hsv_to_rgb(e, e.concat({e.sub(hue, e.unary("Floor", hue)), e.slice(hsv, -1, 1, 3)}, -1));
}
TensorId adjust_saturation(Emitter& e, TensorId x, TensorId factor) {
  const TensorId hsv = rgb_to_hsv(e, x), saturation = e.clip(e.mul(channel(e, hsv, 1), factor), 0, 1);
  return hsv_to_rgb(e, e.concat({channel(e, hsv, 0), saturation, channel(e, hsv, 2)}, -1));
}

// (x - mean of the picture's channel) * factor + mean.
TensorId adjust_contrast(Emitter& e, TensorId x, TensorId factor) {
  const TensorId mean = e.reduce("ReduceMean", x, {-3, -2}, true);
  return e.add(e.mul(e.sub(x, mean), factor), mean);
}
}  // namespace

std::span<const Row> image_rows() {
  static const Row rows[] = {
      {"ResizeBilinear", resize_bilinear},
      {"ResizeNearestNeighbor", resize_nearest},
      {"ResizeBicubic", resize_bicubic},
      {"ResizeArea", resize_area},
      {"ScaleAndTranslate", scale_and_translate},
      {"CropAndResize", crop_and_resize},
      {"RGBToHSV", rgb_to_hsv},
      {"HSVToRGB", hsv_to_rgb},
      {"AdjustContrastv2", adjust_contrast},
      {"AdjustHue", adjust_hue},
      {"AdjustSaturation", adjust_saturation},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
