// Layers that resample pictures: Interp, Resize, Resample.
#include <cmath>

#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
constexpr int64_t kMaxExtent = int64_t{1} << 20;

Result<Dims> picture_dims(const Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(x, "to resample it"));
  if (dims.size() != 4) return unsupported("only pictures can be resampled").expected("4 axes").found(to_string(dims));
  return dims;
}

Status resized(Layer& l, TensorId x, const Dims& dims, int64_t height, int64_t width, Attributes attributes) {
  if (height < 1 || width < 1 || height > kMaxExtent || width > kMaxExtent)
    return invalid_model("the new size is out of range").found(std::to_string(height) + "x" + std::to_string(width));
  if (height == dims[2] && width == dims[3]) return l.set_top(x);
  return l.set_top(l.emit("Resize", {x, TensorId{}, TensorId{}, l.add_ints("sizes", {dims[0], dims[1], height, width})},
                          std::move(attributes)));
}

Attributes with_aligned_corners() {
  return {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("align_corners")}};
}
Attributes nearest_floor() {
  return {{"mode", std::string("nearest")},
          {"coordinate_transformation_mode", std::string("asymmetric")},
          {"nearest_mode", std::string("floor")}};
}

// DeepLab's layer: bilinear, corners aligned. Negative padding cuts the border off first.
Status interp(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 2));
  const Message& p = l.parameters("interp_param");
  TensorId x = l.bottom();
  ORKNN_TRY_ASSIGN(Dims dims, picture_dims(l, x));
  ORKNN_TRY_ASSIGN(const int64_t before, p.get_int("pad_beg", 0));
  ORKNN_TRY_ASSIGN(const int64_t after, p.get_int("pad_end", 0));
  ORKNN_TRY_ASSIGN(const int64_t zoom, p.get_int("zoom_factor", 1));
  ORKNN_TRY_ASSIGN(const int64_t shrink, p.get_int("shrink_factor", 1));
  if (before > 0 || after > 0 || before < -kMaxExtent || after < -kMaxExtent)
    return unsupported("Interp can only cut the border").expected("pad_beg and pad_end of at most 0");
  if (zoom < 1 || shrink < 1 || zoom > 1024 || shrink > kMaxExtent)
    return invalid_model("zoom_factor or shrink_factor is out of range");
  if (before < 0 || after < 0) {
    if (dims[2] + before + after < 1 || dims[3] + before + after < 1)
      return invalid_model("nothing is left of the picture").found(to_string(dims));
    x = l.emit("Slice", {x, l.add_ints("starts", {-before, -before}), l.add_ints("ends", {dims[2] + after, dims[3] + after}),
                         l.add_ints("axes", {2, 3})});
    dims[2] += before + after;
    dims[3] += before + after;
  }
  int64_t size[2];
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t shrunk = (dims[static_cast<size_t>(axis) + 2] - 1) / shrink + 1;
    size[axis] = shrunk + (shrunk - 1) * (zoom - 1);
  }
  if (l.bottom_count() == 2) {
    ORKNN_TRY_ASSIGN(const Dims like, picture_dims(l, l.bottom(1)));
    return resized(l, x, dims, like[2], like[3], with_aligned_corners());
  }
  ORKNN_TRY_ASSIGN(const int64_t height, p.get_int("height", size[0]));
  ORKNN_TRY_ASSIGN(const int64_t width, p.get_int("width", size[1]));
  return resized(l, x, dims, height, width, with_aligned_corners());
}

// The new size: of the second bottom, stated, or from factors.
struct Size {
  int64_t height = 0, width = 0;
};
Result<Size> size_of(const Layer& l, const Message& p, const Dims& dims) {
  if (l.bottom_count() == 2) {
    ORKNN_TRY_ASSIGN(const Dims like, picture_dims(l, l.bottom(1)));
    return Size{like[2], like[3]};
  }
  double factor = 1;
  for (const char* name : {"factor", "scale", "zoom_factor"}) {
    ORKNN_TRY_ASSIGN(factor, p.get_double(name, factor));
  }
  ORKNN_TRY_ASSIGN(const double factor_h, p.get_double("out_height_scale", factor));
  ORKNN_TRY_ASSIGN(const double factor_w, p.get_double("out_width_scale", factor));
  const double height = std::floor(static_cast<double>(dims[2]) * factor_h),
               width = std::floor(static_cast<double>(dims[3]) * factor_w);
  if (!(height >= 0 && height <= kMaxExtent && width >= 0 && width <= kMaxExtent))
    return invalid_model("the factor is out of range").found(std::to_string(factor_h) + ", " + std::to_string(factor_w));
  Size size;
  ORKNN_TRY_ASSIGN(size.height, p.get_int("height", static_cast<int64_t>(height)));
  ORKNN_TRY_ASSIGN(size.width, p.get_int("width", static_cast<int64_t>(width)));
  return size;
}

// FlowNet's layer; pixel centers are aligned.
Status resample(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 2));
  const Message& p = l.parameters("resample_param");
  ORKNN_TRY_ASSIGN(const std::string type, p.get_word("type", "LINEAR"));
  ORKNN_TRY_ASSIGN(const bool antialias, p.get_bool("antialias", true));
  ORKNN_TRY_ASSIGN(const Dims dims, picture_dims(l, l.bottom()));
  ORKNN_TRY_ASSIGN(const Size size, size_of(l, p, dims));
  if (type == "NEAREST" || type == "1") return resized(l, l.bottom(), dims, size.height, size.width, nearest_floor());
  const bool cubic = type == "CUBIC" || type == "3", linear = type == "LINEAR" || type == "2";
  if (!cubic && !linear) return unsupported("unknown kind of resampling").expected("NEAREST, LINEAR or CUBIC").found(type);
  const bool shrinks = size.height < dims[2] || size.width < dims[3];
  return resized(l, l.bottom(), dims, size.height, size.width,
                 {{"mode", std::string(cubic ? "cubic" : "linear")},
                  {"coordinate_transformation_mode", std::string("half_pixel")},
                  {"antialias", int64_t{antialias && shrinks}}});
}

Status resize(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 2));
  const Message& p = l.parameters("resize_param");
  std::string type;
  for (const char* name : {"interp_mode", "type", "mode", "function_type", "intepolation_type", "interpolation_type"})
    if (p.has(name)) {
      ORKNN_TRY_ASSIGN(type, p.get_word(name, ""));
    }
  ORKNN_TRY_ASSIGN(const Dims dims, picture_dims(l, l.bottom()));
  ORKNN_TRY_ASSIGN(const Size size, size_of(l, p, dims));
  const bool nearest = type.find("NEAREST") != std::string::npos || type.find("nearest") != std::string::npos;
  ORKNN_TRY_ASSIGN(const bool aligned, p.get_bool("align_corners", false));
  if (nearest) return resized(l, l.bottom(), dims, size.height, size.width, nearest_floor());
  if (aligned) return resized(l, l.bottom(), dims, size.height, size.width, with_aligned_corners());
  return resized(l, l.bottom(), dims, size.height, size.width,
                 {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("asymmetric")}});
}
}  // namespace

std::span<const Row> resize_rows() {
  static constexpr Row kRows[] = {{"Interp", interp}, {"Resample", resample}, {"Resize", resize}};
  return kRows;
}

}  // namespace orknn::importer::caffe
