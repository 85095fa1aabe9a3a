// Resizing, cropping and colour conversion of pictures. TensorFlow's pictures are always channels last here.
#include <algorithm>
#include <cmath>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
struct Resizing {
  TensorId x;
  Dims dims;              // of x
  int64_t height, width;  // wanted
  bool align_corners, half_pixel_centers;
};

Result<Resizing> resizing_of(Layer& layer) {
  Resizing r;
  ORKNN_TRY_ASSIGN(r.x, layer.input(0));
  ORKNN_TRY_ASSIGN(r.dims, layer.need_dims(r.x, "to resize it"));
  if (r.dims.size() != 4) return shape_mismatch("the value has the wrong rank").expected("4").found(to_string(r.dims));
  ORKNN_TRY_ASSIGN(const auto size, layer.ints(1, "to size the result"));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    return invalid_model("the size must be a height and a width").found(to_string(size));
  r.height = size[0];
  r.width = size[1];
  r.align_corners = layer.bool_or("align_corners", false);
  r.half_pixel_centers = layer.bool_or("half_pixel_centers", false);
  return r;
}

Status lower_resize(Layer& layer) {
  ORKNN_TRY_ASSIGN(Resizing r, resizing_of(layer));
  const bool nearest = layer.op() == "ResizeNearestNeighbor", cubic = layer.op() == "ResizeBicubic";
  if (!nearest) r.x = layer.cast(r.x, DType::Float32);
  Attributes attributes{{"mode", std::string(nearest ? "nearest"
                                             : cubic ? "cubic"
                                                     : "linear")},
                        {"coordinate_transformation_mode", std::string(r.align_corners        ? "align_corners"
                                                                       : r.half_pixel_centers ? "half_pixel"
                                                                                              : "asymmetric")}};
  // Nearest: positions are cut off, except between aligned corners, where they are rounded. With half pixel centers theirs is
  // floor((i + 0.5) * scale), which is our position rounded half up.
  if (nearest)
    attributes.set("nearest_mode", std::string(r.align_corners || r.half_pixel_centers ? "round_prefer_ceil" : "floor"));
  if (cubic) {
    attributes.set("cubic_coeff_a", r.half_pixel_centers ? -0.5 : -0.75);
    attributes.set("exclude_outside", int64_t{r.half_pixel_centers});
  }
  ORKNN_TRY_ASSIGN(const TensorId first, layer.channels_first(r.x));
  const TensorId y = layer.emit("Resize", {first, {}, {}, layer.add_ints("sizes", {r.dims[0], r.dims[3], r.height, r.width})},
                                std::move(attributes));
  ORKNN_TRY_ASSIGN(const TensorId result, layer.channels_last(y));
  layer.set(result);
  return {};
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

// The average over the area each target pixel covers: a matrix product per axis.
Status lower_resize_area(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Resizing r, resizing_of(layer));
  constexpr int64_t kMost = 1 << 24;
  if (r.dims[1] < 1 || r.dims[2] < 1 || r.dims[1] > kMost / r.height || r.dims[2] > kMost / r.width)
    return unsupported("the picture is too large or empty").found(to_string(r.dims));
  ORKNN_TRY_ASSIGN(const TensorId first, layer.channels_first(layer.cast(r.x, DType::Float32)));
  const TensorId rows = layer.add_constant("rows", area_matrix(r.dims[1], r.height, r.align_corners));
  const TensorId columns =
      layer.transpose(layer.add_constant("columns", area_matrix(r.dims[2], r.width, r.align_corners)), {1, 0});
  const TensorId y = layer.emit("MatMul", {layer.emit("MatMul", {rows, first}), columns});
  ORKNN_TRY_ASSIGN(const TensorId result, layer.channels_last(y));
  layer.set(result);
  return {};
}

// Positions along one axis for every box, in pixels: [boxes, size].
TensorId box_positions(Layer& layer, TensorId boxes, int64_t low, int64_t high, int64_t extent, int64_t size) {
  const auto column = [&](int64_t i) { return layer.slice(boxes, {i}, {i + 1}, {1}); };
  const TensorId begin = column(low), end = column(high);
  const double last = static_cast<double>(extent - 1);
  if (size == 1) {
    const TensorId middle = layer.emit("Mul", {layer.emit("Add", {begin, end}), layer.add_scalar("half", 0.5 * last)});
    return middle;
  }
  std::vector<float> steps(static_cast<size_t>(size));
  for (size_t i = 0; i < steps.size(); ++i)
    steps[i] = static_cast<float>(static_cast<double>(i) * last / static_cast<double>(size - 1));
  const TensorId offsets = layer.add_constant("steps", TensorData::from<float>({1, size}, steps));
  return layer.emit("Add", {layer.emit("Mul", {begin, layer.add_scalar("last", last)}),
                            layer.emit("Mul", {layer.emit("Sub", {end, begin}), offsets})});
}

// Boxes cut out of pictures and resized: sampled on a grid per box, with a fixed value outside of the picture.
Status lower_crop_and_resize(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId image, layer.input(0));
  ORKNN_TRY_ASSIGN(TensorId boxes, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId numbers, layer.input(2));
  ORKNN_TRY_ASSIGN(const auto size, layer.ints(3, "to size the result"));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(image, "to cut boxes out of it"));
  constexpr int64_t kMost = 1 << 20;
  if (dims.size() != 4 || dims[1] < 1 || dims[2] < 1)
    return shape_mismatch("the picture has the wrong shape").found(to_string(dims));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMost || size[1] > kMost)
    return invalid_model("crop_size must be a height and a width").found(to_string(size));
  const std::string_view method = layer.string_or("method", "bilinear");
  if (method != "bilinear" && method != "nearest")
    return unsupported("the method is not supported").expected("bilinear or nearest").found(std::string(method));
  image = layer.cast(image, DType::Float32);
  boxes = layer.cast(boxes, DType::Float32);
  const TensorId y = box_positions(layer, boxes, 0, 2, dims[1], size[0]), x = box_positions(layer, boxes, 1, 3, dims[2], size[1]);
  // To the range [-1, 1] between the first and the last pixel.
  const auto normalized = [&](TensorId position, int64_t extent) {
    if (extent == 1) return layer.emit("Mul", {position, layer.add_scalar("nothing", 0)});
    return layer.emit("Sub", {layer.emit("Mul", {position, layer.add_scalar("scale", 2.0 / static_cast<double>(extent - 1))}),
                              layer.add_scalar("one", 1)});
  };
  const TensorId rows = layer.unsqueeze(normalized(y, dims[1]), {2, 3}),
                 columns = layer.unsqueeze(normalized(x, dims[2]), {1, 3});
  const TensorId ones_h = layer.add_constant(
      "ones_h",
      convert(TensorData::from<int64_t>({1, size[0], 1, 1}, std::vector<int64_t>(static_cast<size_t>(size[0]), 1)).view(),
              DType::Float32));
  const TensorId ones_w = layer.add_constant(
      "ones_w",
      convert(TensorData::from<int64_t>({1, 1, size[1], 1}, std::vector<int64_t>(static_cast<size_t>(size[1]), 1)).view(),
              DType::Float32));
  const TensorId grid = layer.concat({layer.emit("Mul", {columns, ones_h}), layer.emit("Mul", {rows, ones_w})}, 3);
  const TensorId chosen = layer.emit("Gather", {image, numbers}, {{"axis", int64_t{0}}});
  ORKNN_TRY_ASSIGN(const TensorId first, layer.channels_first(chosen));
  const TensorId sampled = layer.emit("GridSample", {first, grid},
                                      {{"mode", std::string(method == "nearest" ? "nearest" : "linear")},
                                       {"padding_mode", std::string("border")},
                                       {"align_corners", int64_t{1}}});
  const auto inside = [&](TensorId position, int64_t extent) {
    const TensorId low = layer.emit("GreaterOrEqual", {position, layer.add_scalar("first", 0)});
    return layer.emit("And",
                      {low, layer.emit("LessOrEqual", {position, layer.add_scalar("last", static_cast<double>(extent - 1))})});
  };
  const TensorId seen =
      layer.emit("And", {layer.unsqueeze(inside(y, dims[1]), {1, 3}), layer.unsqueeze(inside(x, dims[2]), {1, 2})});
  const TensorId result =
      layer.emit("Where", {seen, sampled, layer.add_scalar("outside", layer.float_or("extrapolation_value", 0))});
  ORKNN_TRY_ASSIGN(const TensorId last, layer.channels_last(result));
  layer.set(last);
  return {};
}

TensorId channel(Layer& layer, TensorId x, int64_t i) { return layer.slice(x, {i}, {i + 1}, {-1}); }

// Hue, saturation and value of red, green and blue; hue in [0, 1).
Status lower_rgb_to_hsv(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const TensorId r = channel(layer, x, 0), g = channel(layer, x, 1), b = channel(layer, x, 2);
  const TensorId zero = layer.constant_like(x, "zero", 0), one = layer.constant_like(x, "one", 1);
  const TensorId value = layer.emit("Max", {r, g, b}), range = layer.emit("Sub", {value, layer.emit("Min", {r, g, b})});
  const auto or_one = [&](TensorId v) { return layer.emit("Where", {layer.emit("Equal", {v, zero}), one, v}); };
  const TensorId saturation = layer.emit("Div", {range, or_one(value)});
  const TensorId unit = layer.emit("Div", {layer.constant_like(x, "sixth", 1.0 / 6.0), or_one(range)});
  const auto sector = [&](TensorId a, TensorId c, double start) {
    return layer.emit("Add", {layer.emit("Mul", {unit, layer.emit("Sub", {a, c})}), layer.constant_like(x, "start", start)});
  };
  const TensorId among_gb =
      layer.emit("Where", {layer.emit("Equal", {g, value}), sector(b, r, 2.0 / 6.0), sector(r, g, 4.0 / 6.0)});
  const TensorId any = layer.emit("Where", {layer.emit("Equal", {r, value}), sector(g, b, 0), among_gb});
  const TensorId positive = layer.emit("Where", {layer.emit("Less", {any, zero}), layer.emit("Add", {any, one}), any});
  const TensorId hue = layer.emit("Where", {layer.emit("Greater", {range, zero}), positive, zero});
  layer.set(layer.concat({hue, saturation, value}, -1));
  return {};
}

Status lower_hsv_to_rgb(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const TensorId h = layer.emit("Mul", {channel(layer, x, 0), layer.constant_like(x, "six", 6)}), s = channel(layer, x, 1),
                 v = channel(layer, x, 2);
  const TensorId zero = layer.constant_like(x, "zero", 0), one = layer.constant_like(x, "one", 1);
  const auto shifted = [&](double n) { return layer.emit("Abs", {layer.emit("Sub", {h, layer.constant_like(x, "center", n)})}); };
  const auto clipped = [&](TensorId t) { return layer.emit("Clip", {t, zero, one}); };
  const TensorId two = layer.constant_like(x, "two", 2);
  const TensorId red = clipped(layer.emit("Sub", {shifted(3), one})), green = clipped(layer.emit("Sub", {two, shifted(2)})),
                 blue = clipped(layer.emit("Sub", {two, shifted(4)}));
  const auto mixed = [&](TensorId c) {
    return layer.emit("Mul", {v, layer.emit("Add", {layer.emit("Sub", {one, s}), layer.emit("Mul", {s, c})})});
  };
  layer.set(layer.concat({mixed(red), mixed(green), mixed(blue)}, -1));
  return {};
}

// (x - mean of the picture's channel) * factor + mean.
Status lower_adjust_contrast(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId factor, layer.input(1));
  const TensorId mean = layer.emit("ReduceMean", {x, layer.add_ints("axes", {-3, -2})}, {{"keepdims", int64_t{1}}});
  layer.set(layer.emit("Add", {layer.emit("Mul", {layer.emit("Sub", {x, mean}), factor}), mean}));
  return {};
}
}  // namespace

std::span<const Row> image_rows() {
  static constexpr Row kRows[] = {
      {"ResizeBilinear", lower_resize},  {"ResizeNearestNeighbor", lower_resize},     {"ResizeBicubic", lower_resize},
      {"ResizeArea", lower_resize_area}, {"CropAndResize", lower_crop_and_resize},    {"RGBToHSV", lower_rgb_to_hsv},
      {"HSVToRGB", lower_hsv_to_rgb},    {"AdjustContrastv2", lower_adjust_contrast},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
