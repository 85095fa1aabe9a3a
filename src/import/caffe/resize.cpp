// Layers that resample pictures: Interp, Resize, Resample.
#include <cmath>

#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
constexpr int64_t kMaxExtent = int64_t{1} << 20;

struct Size {
  int64_t height = 0, width = 0;
};

Attributes sampling(const char* mode, const char* places) {
  return {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(places)}};
}
Attributes nearest_floor() {
  Attributes attributes = sampling("nearest", "asymmetric");
  attributes.set("nearest_mode", std::string("floor"));
  return attributes;
}

Result<TensorId> resized(Layer& l, TensorId x, const Dims& dims, const Size& size, Attributes attributes) {
  if (size.height < 1 || size.width < 1 || size.height > kMaxExtent || size.width > kMaxExtent)
    return invalid_model("the new size is out of range").found(std::to_string(size.height) + "x" + std::to_string(size.width));
  if (size.height == dims[2] && size.width == dims[3]) return x;
  const TensorId sizes = l.add_ints("sizes", {dims[0], dims[1], size.height, size.width});
  return l.emit("Resize", {x, TensorId{}, TensorId{}, sizes}, std::move(attributes));
}

Result<Size> size_of(Layer& l, TensorId like) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(like, "to resample as it", 4));
  return Size{dims[2], dims[3]};
}

// DeepLab's layer: bilinear, corners aligned. Negative padding cuts the border off first.
Result<TensorId> interp(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("interp_param");
  TensorId x = bottoms[0];
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(x, "to resample it", 4));
  const int64_t before = p.integer("pad_beg", 0), after = p.integer("pad_end", 0);
  const int64_t zoom = p.integer("zoom_factor", 1, 1, 1024), shrink = p.integer("shrink_factor", 1, 1, kMaxExtent);
  if (before > 0 || after > 0 || before < -kMaxExtent || after < -kMaxExtent)
    return unsupported("Interp can only cut the border").expected("pad_beg and pad_end of at most 0");
  if (before < 0 || after < 0) {
    if (dims[2] + before + after < 1 || dims[3] + before + after < 1)
      return invalid_model("nothing is left of the picture").found(to_string(dims));
    x = l.slice(x, {-before, -before}, {dims[2] + after, dims[3] + after}, {2, 3});
    dims[2] += before + after;
    dims[3] += before + after;
  }
  if (bottoms.size() == 2) {
    ORKNN_TRY_ASSIGN(const Size size, size_of(l, bottoms[1]));
    return resized(l, x, dims, size, sampling("linear", "align_corners"));
  }
  const auto zoomed = [&](int64_t extent) { return (extent - 1) / shrink * zoom + 1; };
  const Size size{p.integer("height", zoomed(dims[2])), p.integer("width", zoomed(dims[3]))};
  return resized(l, x, dims, size, sampling("linear", "align_corners"));
}

// The new size: of the second bottom, stated, or from factors.
Result<Size> new_size(Layer& l, Operands bottoms, const Parameters& p, const Dims& dims) {
  if (bottoms.size() == 2) return size_of(l, bottoms[1]);
  double factor = 1;
  for (const char* name : {"factor", "scale", "zoom_factor"}) factor = p.number(name, factor);
  const double factor_h = p.number("out_height_scale", factor), factor_w = p.number("out_width_scale", factor);
  const double height = std::floor(static_cast<double>(dims[2]) * factor_h),
               width = std::floor(static_cast<double>(dims[3]) * factor_w);
  if (!(height >= 0 && height <= kMaxExtent && width >= 0 && width <= kMaxExtent))
    return invalid_model("the factor is out of range").found(std::to_string(factor_h) + ", " + std::to_string(factor_w));
  return Size{p.integer("height", static_cast<int64_t>(height)), p.integer("width", static_cast<int64_t>(width))};
}

// FlowNet's layer; pixel centers are aligned.
Result<TensorId> resample(Layer& l, Operands bottoms) {
  enum Kind { Nearest, Linear, Cubic };
  const Parameters p = l.parameters("resample_param");
  const size_t kind = p.choice("type", Linear, {"NEAREST", "LINEAR", "CUBIC"}, 1);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(bottoms[0], "to resample it", 4));
  ORKNN_TRY_ASSIGN(const Size size, new_size(l, bottoms, p, dims));
  if (kind == Nearest) return resized(l, bottoms[0], dims, size, nearest_floor());
  Attributes attributes = sampling(kind == Cubic ? "cubic" : "linear", "half_pixel");
  const bool shrinks = size.height < dims[2] || size.width < dims[3];
  attributes.set("antialias", int64_t{p.flag("antialias", true) && shrinks});
  return resized(l, bottoms[0], dims, size, std::move(attributes));
}

Result<TensorId> resize(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("resize_param");
  std::string type;
  for (const char* name : {"interp_mode", "type", "mode", "function_type", "intepolation_type", "interpolation_type"})
    type = p.word(name, type);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(bottoms[0], "to resample it", 4));
  ORKNN_TRY_ASSIGN(const Size size, new_size(l, bottoms, p, dims));
  const bool nearest = type.find("NEAREST") != std::string::npos || type.find("nearest") != std::string::npos;
  const char* places = p.flag("align_corners", false) ? "align_corners" : "asymmetric";
  return resized(l, bottoms[0], dims, size, nearest ? nearest_floor() : sampling("linear", places));
}
}  // namespace

std::span<const Row> resize_rows() {
  static const Row rows[] = {{"Interp", interp, kOneOrTwo}, {"Resample", resample, kOneOrTwo}, {"Resize", resize, kOneOrTwo}};
  return rows;
}

}  // namespace orknn::importer::caffe
