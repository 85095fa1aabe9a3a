// Pictures in another size.
#include "import/keras/layer.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
// To height and width.
Result<TensorId> resized(Layer& l, TensorId x, const std::vector<int64_t>& size, const char* usual_way) {
  const std::string way = l.text("interpolation", usual_way);
  if (way != "nearest" && way != "bilinear" && way != "bicubic")
    return unsupported("this way to resize is not supported").expected("nearest, bilinear or bicubic").found(way);
  const Resizing how{.mode = way == "nearest" ? way : way == "bilinear" ? "linear" : "cubic", .half_pixel_centers = true};
  if (l.format(2).channels_last) return resize(l, x, size, how);
  ORKNN_TRY_ASSIGN(const TensorId y, resize(l, from_channels_first(l, {}, x), size, how));
  return to_channels_first(l, {}, y);
}

struct PictureSize {
  PictureFormat format;
  int64_t height = 0, width = 0;
};
Result<PictureSize> size_of(Layer& l, TensorId x) {
  const PictureFormat format = l.format(2);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to size the result", 4));
  return PictureSize{format, dims[format.axis(0)], dims[format.axis(1)]};
}

Result<TensorId> upsampling(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const PictureSize from, size_of(l, x));
  const std::vector<int64_t> factors = l.config["size"].integers(2);
  if (factors.size() != 2 || factors[0] < 1 || factors[1] < 1 || factors[0] > kMaxWindow || factors[1] > kMaxWindow)
    return invalid_model("the layer has no size").expected("two positive factors").found(to_string(factors));
  return resized(l, x, {from.height * factors[0], from.width * factors[1]}, "nearest");
}

Result<TensorId> cut_at_centre(Layer& l, const PictureSize& from, TensorId x, int64_t height, int64_t width) {
  const int64_t top = (from.height - height) / 2, left = (from.width - width) / 2;
  return l.slice(x, {top, left}, {top + height, left + width},
                 {static_cast<int64_t>(from.format.axis(0)), static_cast<int64_t>(from.format.axis(1))});
}

// With crop_to_aspect_ratio the largest part of the wanted shape, in the middle, is what is resized. RandomCrop does so when a
// model is used, but from Keras 3 on nothing.
Result<TensorId> resizing(Layer& l, TensorId x) {
  if (l.kind() == "RandomCrop" && l.generation() >= 3) return x;
  const int64_t height = l.integer("height", 0), width = l.integer("width", 0);
  if (l.flag("antialias", false)) return unsupported("Resizing with antialias is not supported");
  if (l.flag("pad_to_aspect_ratio", false)) return unsupported("Resizing with pad_to_aspect_ratio is not supported");
  if (height < 1 || width < 1 || height > kMaxWindow || width > kMaxWindow)
    return invalid_model("the layer has no size").found(std::to_string(height) + " x " + std::to_string(width));
  if (l.flag("crop_to_aspect_ratio", l.kind() == "RandomCrop")) {
    ORKNN_TRY_ASSIGN(const PictureSize from, size_of(l, x));
    const auto share = [](int64_t a, int64_t b, int64_t c) {
      return static_cast<int64_t>(static_cast<float>(a * b) / static_cast<float>(c));
    };
    const int64_t cut_height = std::min(from.height, share(from.width, height, width)),
                  cut_width = std::min(from.width, share(from.height, width, height));
    ORKNN_TRY_ASSIGN(x, cut_at_centre(l, from, x, cut_height, cut_width));
  }
  return resized(l, x, {height, width}, "bilinear");
}

// Smaller pictures are enlarged first, which is left to the user.
Result<TensorId> center_crop(Layer& l, TensorId x) {
  const int64_t height = l.integer("height", 0), width = l.integer("width", 0);
  ORKNN_TRY_ASSIGN(const PictureSize from, size_of(l, x));
  if (height < 1 || width < 1 || height > from.height || width > from.width)
    return unsupported("the picture is smaller than what is to be cut out of it")
        .expected("at least " + std::to_string(height) + " x " + std::to_string(width))
        .found(std::to_string(from.height) + " x " + std::to_string(from.width));
  return cut_at_centre(l, from, x, height, width);
}
}  // namespace

std::span<const Row> image_rows() {
  static const Row rows[] = {
      {"UpSampling2D", upsampling},
      {"Resizing|RandomCrop", resizing},
      {"CenterCrop", center_crop},
  };
  return rows;
}

}  // namespace orknn::importer::keras
