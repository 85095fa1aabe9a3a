// Pooling, MediaPipe's pooling that remembers places and its inverse, resizing and other operators on pictures.
#include <algorithm>

#include "import/lower/functions.h"
#include "import/lower/one_hot.h"
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// `make` builds the pool of a channels-first picture. Real numbers even for integers: the neighbours of a pool are real, and the
// layout changes around it can cancel.
template <class Make>
Result<TensorId> pool(Layer& l, TensorId x, Make make) {
  ORKNN_TRY_ASSIGN(const Window window, l.window({.strides = {2, 1}, .kernel = {4, 3}}));
  return in_channels_first(l, {}, x, [&](TensorId first) { return l.activate_by(make(first, window.attributes()), 5); });
}

Result<TensorId> average_pool(Layer& l, TensorId x) {
  return pool(l, x, [&](TensorId first, const Attributes& window) { return l.emit("AveragePool", {first}, window); });
}
Result<TensorId> max_pool(Layer& l, TensorId x) {
  return pool(l, x, [&](TensorId first, const Attributes& window) { return l.emit("MaxPool", {first}, window); });
}
// The root of the mean of squares.
Result<TensorId> l2_pool(Layer& l, TensorId x) {
  return pool(l, x, [&](TensorId first, const Attributes& window) {
    return l.unary("Sqrt", l.emit("AveragePool", {square(l, first)}, window));
  });
}

Result<TensorId> lrn(Layer& l, TensorId x) {
  const Table& o = l.options();
  return local_response_normalization(l, x, o.number<int32_t>(0), o.number<float>(1), o.number<float>(2), o.number<float>(3));
}

Result<TensorId> resize_to_input(Layer& l, TensorId x, std::string mode, unsigned align_corners, unsigned half_pixel) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> size, l.ints(1, "to resize to it"));
  return resize(l, x, size, {std::move(mode), l.options().flag(align_corners), l.options().flag(half_pixel)});
}
Result<TensorId> resize_bilinear(Layer& l, TensorId x) { return resize_to_input(l, x, "linear", 2, 3); }
Result<TensorId> resize_nearest(Layer& l, TensorId x) { return resize_to_input(l, x, "nearest", 0, 1); }

Result<TensorId> space_to_channels(Layer& l, TensorId x) { return space_to_depth(l, {}, x, l.options().number<int32_t>(0)); }
Result<TensorId> channels_to_space(Layer& l, TensorId x) { return depth_to_space(l, {}, x, l.options().number<int32_t>(0)); }

// --- MediaPipe's. Options: padding, stride width, stride height, filter width, filter height, activation.

Result<Window> custom_window(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> fields, l.custom_fields(6));
  constexpr int64_t kSame = 1, kValid = 2;  // numbers of TfLitePadding
  if (fields[0] != kSame && fields[0] != kValid)
    return invalid_model("the padding is unknown").expected("1 (SAME) or 2 (VALID)").found(std::to_string(fields[0]));
  if (fields[5] != 0)
    return unsupported("a fused activation of the custom operator is not supported").found(std::to_string(fields[5]));
  Window w{.kernel = {fields[4], fields[3]},
           .strides = {fields[2], fields[1]},
           .padding = fields[0] == kSame ? Window::Padding::Same : Window::Padding::Valid};
  ORKNN_TRY(w.check());
  return w;
}

// Where each window begins along an axis, shaped to broadcast over [N, C, H, W].
TensorId window_starts(Layer& l, const Window& w, size_t axis, int64_t extent, int64_t windows) {
  const int64_t padding = std::max<int64_t>((windows - 1) * w.strides[axis] + w.kernel[axis] - extent, 0) / 2;
  const TensorId steps = positions(l, windows, 0, axis == 0 ? 2 : 1);
  return l.sub(l.mul(steps, static_cast<double>(w.strides[axis])), static_cast<double>(padding));
}

// The second output is the place of the maximum inside of its window, counted by rows, plus 0.1 so that cutting off is safe.
Result<std::vector<TensorId>> max_pool_with_argmax(Layer& l, TensorId picture) {
  ORKNN_TRY_ASSIGN(const Window w, custom_window(l));
  ORKNN_TRY_ASSIGN(const TensorId x, to_channels_first(l, {}, picture));
  const std::vector<TensorId> pooled = l.emit_all("MaxPool", {x}, w.attributes(), 2);
  const TensorId y = from_channels_first(l, {}, pooled[0]);
  if (!l.has_output(1)) return std::vector{y};
  ORKNN_TRY_ASSIGN(const Dims from, l.need_dims(x, "to find places in it"));
  ORKNN_TRY_ASSIGN(const Dims to, l.need_dims(pooled[0], "to find places for it"));
  const TensorId width = l.add_int_scalar("width", from[3]), height = l.add_int_scalar("height", from[2]);
  const TensorId row = l.binary("Mod", l.div(pooled[1], width), height), column = l.binary("Mod", pooled[1], width);
  const TensorId inner_row = l.sub(row, window_starts(l, w, 0, from[2], to[2]));
  const TensorId inner_column = l.sub(column, window_starts(l, w, 1, from[3], to[3]));
  const TensorId place = l.add(l.mul(inner_row, l.add_int_scalar("kernel_width", w.kernel[1])), inner_column);
  return std::vector{y, from_channels_first(l, {}, l.add(l.cast(place, DType::Float32), 0.1))};
}

// Puts values back at the places that the pooling found; the output is the input times the window.
Result<TensorId> max_unpooling(Layer& l, TensorId picture, TensorId picture_of_places) {
  ORKNN_TRY_ASSIGN(const Window w, custom_window(l));
  ORKNN_TRY_ASSIGN(const TensorId places, to_channels_first(l, {}, picture_of_places));
  return in_channels_first(l, {}, picture, [&](TensorId x) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const Dims from, l.need_dims(x, "to find places for it"));
    const Dims to{from[0], from[1], from[2] * w.kernel[0], from[3] * w.kernel[1]};
    ORKNN_TRY(checked_element_count(to).status());
    const TensorId place = l.cast(places, DType::Int64), kernel_width = l.add_int_scalar("kernel_width", w.kernel[1]);
    const TensorId row = l.add(l.div(place, kernel_width), window_starts(l, w, 0, to[2], from[2]));
    const TensorId column = l.add(l.binary("Mod", place, kernel_width), window_starts(l, w, 1, to[3], from[3]));
    // Our indices count through the whole tensor.
    const TensorId planes = l.mul(positions(l, from[0] * from[1]), l.add_int_scalar("plane", to[2] * to[3]));
    const TensorId plane = l.reshape(planes, {from[0], from[1], 1, 1});
    const TensorId index = l.add(l.add(l.mul(row, l.add_int_scalar("width", to[3])), column), plane);
    return l.emit("MaxUnpool", {x, index, l.add_ints("shape", to)}, {{"kernel_shape", w.kernel}, {"strides", w.strides}});
  });
}
}  // namespace

std::span<const Row> pooling_rows() {
  static const Row rows[] = {
      {"AVERAGE_POOL_2D", average_pool},
      {"MAX_POOL_2D", max_pool},
      {"L2_POOL_2D", l2_pool},
      {"LOCAL_RESPONSE_NORMALIZATION", lrn},
      {"RESIZE_BILINEAR", resize_bilinear},
      {"RESIZE_NEAREST_NEIGHBOR", resize_nearest},
      {"SPACE_TO_DEPTH", moved<space_to_channels>},
      {"DEPTH_TO_SPACE", moved<channels_to_space>},
  };
  return rows;
}

std::span<const Row> custom_pooling_rows() {
  static const Row rows[] = {
      {"MaxPoolingWithArgmax2D", max_pool_with_argmax},
      {"MaxUnpooling2D", max_unpooling},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
