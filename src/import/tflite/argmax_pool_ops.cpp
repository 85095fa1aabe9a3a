// MediaPipe's pooling that remembers places, and its inverse. Their options are C structures.
#include <algorithm>

#include "import/tflite/window.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// Numbers of TfLitePadding, which begin at 1.
constexpr int32_t kSame = 1, kValid = 2;

Result<Window> pool_window(Layer& l) {
  const auto bytes = l.op().custom_options;
  int32_t fields[6];  // padding, stride width, stride height, filter width, filter height, activation
  if (bytes.size() < sizeof fields)
    return invalid_model("the options of the custom operator are too short")
        .expected(std::to_string(sizeof fields) + " bytes")
        .found(std::to_string(bytes.size()));
  std::memcpy(fields, bytes.data(), sizeof fields);
  if (fields[0] != kSame && fields[0] != kValid)
    return invalid_model("the padding is unknown").expected("1 (SAME) or 2 (VALID)").found(std::to_string(fields[0]));
  if (fields[5] != 0)
    return unsupported("a fused activation of the custom operator is not supported").found(std::to_string(fields[5]));
  Window w{fields[0] == kSame ? Padding::Same : Padding::Valid, {fields[4], fields[3]}, {fields[2], fields[1]}, {}};
  ORKNN_TRY(w.check());
  return w;
}

int64_t padding_before(const Window& w, size_t axis, int64_t extent, int64_t windows) {
  return std::max<int64_t>((windows - 1) * w.strides[axis] + w.kernel[axis] - extent, 0) / 2;
}

// Where each window begins along an axis, shaped to broadcast over [N, C, H, W].
TensorId window_starts(Layer& l, const Window& w, size_t axis, int64_t extent, int64_t windows) {
  const int64_t first = -padding_before(w, axis, extent, windows), stride = w.strides[axis];
  const TensorId starts = l.emit("Range", {l.add_int_scalar("first", first), l.add_int_scalar("end", first + windows * stride),
                                           l.add_int_scalar("stride", stride)});
  return l.reshape(starts, axis == 0 ? std::vector<int64_t>{windows, 1} : std::vector<int64_t>{windows});
}

Result<TensorId> picture(Layer& l, size_t i) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(i));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to take it for a picture"));
  if (rank != 4) return invalid_model("the input has the wrong number of dimensions").expected("4").found(std::to_string(rank));
  return l.channels_first(x);
}

// The second output is the place of the maximum inside of its window, counted by rows, plus 0.1 so that cutting off is safe.
Status max_pool_with_argmax(Layer& l) {
  ORKNN_TRY_ASSIGN(const Window w, pool_window(l));
  ORKNN_TRY_ASSIGN(const TensorId x, picture(l, 0));
  const std::vector<TensorId> pooled = l.emit_all("MaxPool", {x}, w.attributes(), 2);
  ORKNN_TRY_ASSIGN(const TensorId y, l.channels_last(pooled[0]));
  ORKNN_TRY(l.set(0, y));
  if (!l.has_output(1)) return {};
  ORKNN_TRY_ASSIGN(const Dims from, l.need_dims(x, "to find places in it"));
  ORKNN_TRY_ASSIGN(const Dims to, l.need_dims(pooled[0], "to find places for it"));
  const TensorId width = l.add_int_scalar("width", from[3]);
  const TensorId column = l.emit("Mod", {pooled[1], width});
  const TensorId row = l.emit("Mod", {l.emit("Div", {pooled[1], width}), l.add_int_scalar("height", from[2])});
  const TensorId inner_row = l.emit("Sub", {row, window_starts(l, w, 0, from[2], to[2])});
  const TensorId inner_column = l.emit("Sub", {column, window_starts(l, w, 1, from[3], to[3])});
  const TensorId place = l.emit("Add", {l.emit("Mul", {inner_row, l.add_int_scalar("kernel_width", w.kernel[1])}), inner_column});
  ORKNN_TRY_ASSIGN(const TensorId last,
                   l.channels_last(l.emit("Add", {l.cast(place, DType::Float32), l.add_scalar("offset", 0.1)})));
  return l.set(1, last);
}

// Puts values back at the places that the pooling found; the output is the input times the window.
Status max_unpooling(Layer& l) {
  ORKNN_TRY_ASSIGN(const Window w, pool_window(l));
  ORKNN_TRY_ASSIGN(const TensorId x, picture(l, 0));
  ORKNN_TRY_ASSIGN(const TensorId places, picture(l, 1));
  ORKNN_TRY_ASSIGN(const Dims from, l.need_dims(x, "to find places for it"));
  const Dims to{from[0], from[1], from[2] * w.kernel[0], from[3] * w.kernel[1]};
  ORKNN_TRY(checked_element_count(to).status());
  const TensorId place = l.cast(places, DType::Int64), kernel_width = l.add_int_scalar("kernel_width", w.kernel[1]);
  const TensorId row = l.emit("Add", {l.emit("Div", {place, kernel_width}), window_starts(l, w, 0, to[2], from[2])});
  const TensorId column = l.emit("Add", {l.emit("Mod", {place, kernel_width}), window_starts(l, w, 1, to[3], from[3])});
  // Our indices count through the whole tensor.
  const TensorId planes = l.emit("Range", {l.add_int_scalar("first", 0), l.add_int_scalar("end", element_count(to)),
                                           l.add_int_scalar("plane", to[2] * to[3])});
  const TensorId plane = l.reshape(planes, {from[0], from[1], 1, 1});
  const TensorId index = l.emit("Add", {l.emit("Add", {l.emit("Mul", {row, l.add_int_scalar("width", to[3])}), column}), plane});
  const TensorId y =
      l.emit("MaxUnpool", {x, index, l.add_ints("shape", to)}, {{"kernel_shape", w.kernel}, {"strides", w.strides}});
  ORKNN_TRY_ASSIGN(const TensorId last, l.channels_last(y));
  return l.set(0, last);
}
}  // namespace

std::span<const Row> pool_custom_rows() {
  static constexpr Row rows[] = {
      {"MaxPoolingWithArgmax2D", max_pool_with_argmax},
      {"MaxUnpooling2D", max_unpooling},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
