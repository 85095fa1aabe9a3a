// Pooling of TensorFlow, its gradient as decoders use it, and grey-scale morphology.
#include <algorithm>

#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
struct Pool {
  DataFormat format;
  std::vector<int64_t> kernel, strides;
  Padding padding;
  Attributes attributes;
};

Result<Pool> pool_of(Layer& layer, TensorId x, size_t spatial, const std::vector<int64_t>& kernel,
                     const std::vector<int64_t>& strides) {
  Pool p;
  ORKNN_TRY_ASSIGN(p.format, data_format_of(layer, spatial));
  ORKNN_TRY_ASSIGN(p.kernel, spatial_entries(p.format, kernel, "ksize"));
  ORKNN_TRY_ASSIGN(p.strides, spatial_entries(p.format, strides, "strides"));
  ORKNN_TRY_ASSIGN(p.padding, padding_of(layer, p.format, spatial_extents(layer, p.format, x), p.kernel, p.strides));
  p.attributes = {{"kernel_shape", p.kernel}, {"strides", p.strides}};
  set_padding(p.attributes, p.padding);
  return p;
}

Result<std::vector<int64_t>> list_of(Layer& layer, std::string_view attribute, size_t input) {
  if (layer.input_count() > input) return layer.ints(input, "to pool");
  return layer.ints_or(attribute);
}

// Windows over the channels of a channels-last value: a picture whose only row are the channels.
Result<TensorId> pool_channels(Layer& layer, TensorId x, int64_t size, int64_t stride) {
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to pool its channels"));
  if (size < 1 || stride < 1 || size != stride || dims.empty() || dims.back() % size != 0)
    return unsupported("channels are pooled in whole groups only")
        .found("size " + std::to_string(size) + ", stride " + std::to_string(stride));
  Dims grouped = dims;
  grouped.back() /= size;
  grouped.push_back(size);
  return layer.emit("ReduceMax", {layer.reshape(x, grouped), layer.add_ints("axes", {-1})}, {{"keepdims", int64_t{0}}});
}

Status lower_pool(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const size_t spatial = layer.op().ends_with("3D") ? 3 : 2;
  ORKNN_TRY_ASSIGN(const auto kernel, list_of(layer, "ksize", 1));
  ORKNN_TRY_ASSIGN(const auto strides, list_of(layer, "strides", 2));
  const bool is_max = layer.op().starts_with("Max");
  if (is_max && spatial == 2 && kernel.size() == 4 && strides.size() == 4 && kernel[0] == 1 && kernel[1] == 1 && kernel[2] == 1 &&
      kernel[3] > 1 && layer.string_or("data_format", "NHWC") == "NHWC") {
    ORKNN_TRY_ASSIGN(const TensorId y, pool_channels(layer, x, kernel[3], strides[3]));
    layer.set(y);
    return {};
  }
  ORKNN_TRY_ASSIGN(const Pool pool, pool_of(layer, x, spatial, kernel, strides));
  ORKNN_TRY_ASSIGN(const TensorId data, to_channels_first(layer, pool.format, x));
  const TensorId y =
      layer.emit(is_max ? "MaxPool" : "AveragePool", {data}, pool.attributes);  // padding does not count in averages
  ORKNN_TRY_ASSIGN(const TensorId result, from_channels_first(layer, pool.format, y));
  layer.set(result);
  return {};
}

// Ours gives positions in [batch, channel, height, width]; theirs count in [height, width, channel].
Status lower_max_pool_with_argmax(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const Pool pool, pool_of(layer, x, 2, layer.ints_or("ksize"), layer.ints_or("strides")));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to number the positions"));
  ORKNN_TRY_ASSIGN(const TensorId data, to_channels_first(layer, pool.format, x));
  const auto results = layer.emit_all("MaxPool", {data}, pool.attributes, 2);
  ORKNN_TRY_ASSIGN(const TensorId values, from_channels_first(layer, pool.format, results[0]));
  layer.set(0, values);
  if (dims.size() != 4 || dims[1] * dims[2] * dims[3] == 0)
    return shape_mismatch("the value has the wrong shape").found(to_string(dims));
  const int64_t pixels = dims[1] * dims[2], channels = dims[3];
  std::vector<int64_t> numbers(static_cast<size_t>(channels));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  const TensorId pixel = layer.emit("Mod", {results[1], layer.add_int_scalar("pixels", pixels)});
  ORKNN_TRY_ASSIGN(const TensorId last, from_channels_first(layer, pool.format, pixel));
  TensorId index = layer.emit(
      "Add", {layer.emit("Mul", {last, layer.add_int_scalar("channels", channels)}), layer.add_ints("channel", numbers)});
  if (layer.bool_or("include_batch_in_index", false) && dims[0] > 1) {
    std::vector<int64_t> starts(static_cast<size_t>(dims[0]));
    for (size_t i = 0; i < starts.size(); ++i) starts[i] = static_cast<int64_t>(i) * pixels * channels;
    index = layer.emit("Add", {index, layer.reshape(layer.add_ints("batch", starts), {-1, 1, 1, 1})});
  }
  layer.set(1, layer.cast(index, layer.dtype_or("Targmax", DType::Int64)));
  return {};
}

// Each gradient goes to where the maximum of its window stood: max-unpooling. Windows that overlap add up.
Status lower_max_pool_grad(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId gradient, layer.input(2));
  ORKNN_TRY_ASSIGN(const Pool pool, pool_of(layer, x, 2, layer.ints_or("ksize"), layer.ints_or("strides")));
  ORKNN_TRY_ASSIGN(const TensorId data, to_channels_first(layer, pool.format, x));
  ORKNN_TRY_ASSIGN(const TensorId values, to_channels_first(layer, pool.format, gradient));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(data, "to size the result"));
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(dims, int64_t{1} << 31));
  const TensorId indices = layer.emit_all("MaxPool", {data}, pool.attributes, 2)[1];
  const TensorId zeros = layer.emit("Expand", {layer.constant_like(values, "zero", 0), layer.add_ints("count", {count})});
  const TensorId sums = layer.emit("ScatterElements", {zeros, layer.reshape(indices, {-1}), layer.reshape(values, {-1})},
                                   {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  ORKNN_TRY_ASSIGN(const TensorId result, from_channels_first(layer, pool.format, layer.reshape(sums, dims)));
  layer.set(result);
  return {};
}

// Dilation2D: the largest of value plus filter over a window; Erosion2D: the smallest of value minus filter, mirrored. One
// shifted copy per element of the filter.
Status lower_morphology(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId filter, layer.input(1));
  const bool erodes = layer.op() == "Erosion2D";
  const DataFormat format{true, 2};
  ORKNN_TRY_ASSIGN(const auto strides, spatial_entries(format, layer.ints_or("strides"), "strides"));
  ORKNN_TRY_ASSIGN(const auto rates, spatial_entries(format, layer.ints_or("rates"), "rates"));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to slide over it"));
  ORKNN_TRY_ASSIGN(const Dims size, layer.need_dims(filter, "to slide it"));
  if (dims.size() != 4 || size.size() != 3) return shape_mismatch("the value has the wrong rank").found(to_string(dims));
  constexpr int64_t kMostTaps = 1024;
  if (size[0] < 1 || size[1] < 1 || size[0] > kMostTaps || size[1] > kMostTaps || size[0] * size[1] > kMostTaps)
    return unsupported("the filter is too large").found(to_string(size));
  const std::vector<int64_t> spread{(size[0] - 1) * rates[0] + 1, (size[1] - 1) * rates[1] + 1};
  ORKNN_TRY_ASSIGN(const Padding padding, padding_of(layer, format, {dims[1], dims[2]}, spread, strides));
  const TensorId outside = layer.constant_like(x, "outside", erodes ? 3.0e38 : -3.0e38);
  const TensorId padded = layer.emit(
      "Pad",
      {x, layer.add_ints("pads", {0, padding.begin[0], padding.begin[1], 0, 0, padding.end[0], padding.end[1], 0}), outside});
  const int64_t height = dims[1] + padding.begin[0] + padding.end[0], width = dims[2] + padding.begin[1] + padding.end[1];
  if (height < spread[0] || width < spread[1])
    return shape_mismatch("the filter is larger than the picture").found(to_string(size));
  std::vector<TensorId> taps;
  for (int64_t i = 0; i < size[0]; ++i)
    for (int64_t j = 0; j < size[1]; ++j) {
      const int64_t top = i * rates[0], left = j * rates[1];
      const TensorId shifted = layer.slice(padded, {top, left}, {top + height - spread[0] + 1, left + width - spread[1] + 1},
                                           {1, 2}, {strides[0], strides[1]});
      const int64_t row = erodes ? size[0] - 1 - i : i, column = erodes ? size[1] - 1 - j : j;
      const TensorId weight = layer.squeeze(layer.slice(filter, {row, column}, {row + 1, column + 1}, {0, 1}), {0, 1});
      taps.push_back(layer.emit(erodes ? "Sub" : "Add", {shifted, weight}));
    }
  layer.set(layer.emit(erodes ? "Min" : "Max", std::move(taps)));
  return {};
}
}  // namespace

std::span<const Row> pooling_rows() {
  static constexpr Row kRows[] = {
      {"MaxPool", lower_pool},
      {"MaxPoolV2", lower_pool},
      {"MaxPool3D", lower_pool},
      {"AvgPool", lower_pool},
      {"AvgPool3D", lower_pool},
      {"MaxPoolWithArgmax", lower_max_pool_with_argmax},
      {"MaxPoolGrad", lower_max_pool_grad},
      {"Dilation2D", lower_morphology},
      {"Erosion2D", lower_morphology},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
