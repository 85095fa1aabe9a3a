// Sections that pool: maxpool, avgpool, local_avgpool, and the blur of layers with antialiasing.
#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
Window pooling_window(Layer& l) {
  const int64_t stride = l.integer("stride", 1, 1, kMaxSize);
  const int64_t stride_x = l.integer("stride_x", stride, 1, kMaxSize), stride_y = l.integer("stride_y", stride, 1, kMaxSize);
  const int64_t size = l.integer("size", stride, 1, kMaxSize);
  // Counts both sides together; the side before gets the smaller half.
  const int64_t padding = l.integer("padding", size - 1, 0, kMaxSize);
  return square_window(size, stride_y, stride_x, padding / 2, padding - padding / 2);
}

// The greatest of the channels that are `out_channels` apart.
TensorId maxpool_depth(Layer& l, TensorId x, const Dims& dims) {
  const int64_t out_channels = l.integer("out_channels", 1, 1, std::max<int64_t>(dims[1], 1));
  const int64_t groups = (dims[1] + out_channels - 1) / out_channels, missing = groups * out_channels - dims[1];
  if (missing)
    x = l.emit("Pad", {x, l.add_ints("pads", {0, 0, 0, 0, 0, missing, 0, 0}), l.add_scalar("lowest", -3.402823466e38)});
  const TensorId split = l.reshape(x, {dims[0], groups, out_channels, dims[2], dims[3]});
  return l.activated(l.reduce("ReduceMax", split, {1}, false));
}

Result<TensorId> maxpool(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  if (l.flag("maxpool_depth")) return maxpool_depth(l, in.x, in.dims);
  Window w = pooling_window(l);
  const int64_t antialiasing = l.integer("antialiasing", 0, 0, 2);
  const std::vector<int64_t> strides = w.strides;
  if (antialiasing) w.strides = {1, 1};
  const TensorId y = l.emit("MaxPool", {in.x}, w.attributes());
  if (!antialiasing) return l.activated(y);
  ORKNN_TRY_ASSIGN(const TensorId blurred, blur(l, y, in.dims[1], antialiasing, strides[1], strides[0]));
  return l.activated(blurred);
}

Result<TensorId> local_avgpool(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  return l.activated(l.emit("AveragePool", {in.x}, pooling_window(l).attributes()));
}

Result<TensorId> avgpool(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  return l.activated(l.unary("GlobalAveragePool", in.x));
}
}  // namespace

std::span<const Row> pooling_rows() {
  static const Row rows[] = {{"maxpool|max", maxpool}, {"local_avgpool|local_avg", local_avgpool}, {"avgpool|avg", avgpool}};
  return rows;
}

Result<TensorId> blur(Layer& l, TensorId x, int64_t channels, int64_t kind, int64_t stride_x, int64_t stride_y) {
  const int64_t size = kind == 2 ? 2 : 3, pad = kind == 2 ? 0 : 1;
  const float binomial[] = {1 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 4 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 1 / 16.f};
  ORKNN_TRY_ASSIGN(TensorData weight, l.build().weights.invent("blur", {channels, 1, size, size}, Fill::Zeros));
  float* to = static_cast<float*>(weight.mutable_data());
  for (int64_t i = 0; i < weight.count(); ++i) to[i] = kind == 2 ? 0.25f : binomial[i % 9];
  Attributes attributes = square_window(size, stride_y, stride_x, pad, pad).attributes();
  attributes.set("group", channels);
  return l.emit("Conv", {x, l.add_constant("blur", std::move(weight))}, std::move(attributes));
}

}  // namespace orknn::importer::darknet
