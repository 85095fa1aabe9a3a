// Pooling of TensorFlow, its gradient as decoders use it, patches of pictures, and grey-scale morphology.
#include <algorithm>

#include "import/lower/one_hot.h"
#include "import/lower/strided_slice.h"
#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
struct Pool {
  PictureFormat format;
  Window window;
};

Result<Pool> pool_of(Layer& l, TensorId x, size_t spatial, const std::vector<int64_t>& kernel,
                     const std::vector<int64_t>& strides) {
  Pool p;
  ORKNN_TRY_ASSIGN(p.format, data_format_of(l, spatial));
  ORKNN_TRY_ASSIGN(p.window.kernel, spatial_entries(p.format, kernel, "ksize"));
  ORKNN_TRY_ASSIGN(p.window.strides, spatial_entries(p.format, strides, "strides"));
  ORKNN_TRY_ASSIGN(p.window, with_padding(l, p.format, std::move(p.window), spatial_extents(l, p.format, x)));
  return p;
}

// Windows over the channels of a channels-last value.
Result<TensorId> pool_channels(Layer& l, TensorId x, int64_t size, int64_t stride) {
  ORKNN_TRY_ASSIGN(Dims grouped, l.need_dims(x, "to pool its channels"));
  if (size < 1 || size != stride || grouped.empty() || grouped.back() % size != 0)
    return unsupported("channels are pooled in whole groups only")
        .found("size " + std::to_string(size) + ", stride " + std::to_string(stride));
  grouped.back() /= size;
  grouped.push_back(size);
  return l.reduce("ReduceMax", l.reshape(x, grouped), {-1}, false);
}

Result<TensorId> pool(Layer& l, TensorId x, const char* op, size_t spatial, const std::vector<int64_t>& kernel,
                      const std::vector<int64_t>& strides) {
  ORKNN_TRY_ASSIGN(const Pool p, pool_of(l, x, spatial, kernel, strides));
  return in_channels_first(l, p.format, x, [&](TensorId first) { return l.emit(op, {first}, p.window.attributes()); });
}

template <size_t Spatial>
Result<TensorId> average_pool(Layer& l, TensorId x) {  // padding does not count
  return pool(l, x, "AveragePool", Spatial, l.ints_or("ksize"), l.ints_or("strides"));
}
Result<TensorId> max_pool_3d(Layer& l, TensorId x) { return pool(l, x, "MaxPool", 3, l.ints_or("ksize"), l.ints_or("strides")); }
// The newer form has window and strides as inputs.
Result<TensorId> max_pool(Layer& l, TensorId x) {
  auto kernel = l.ints_or("ksize"), strides = l.ints_or("strides");
  if (l.operand_count() > 1) {
    ORKNN_TRY_ASSIGN(kernel, l.ints(1, "to pool"));
    ORKNN_TRY_ASSIGN(strides, l.ints(2, "to pool"));
  }
  const bool is_over_channels = kernel.size() == 4 && strides.size() == 4 && kernel[0] == 1 && kernel[1] == 1 && kernel[2] == 1 &&
                                kernel[3] > 1 && l.string_or("data_format", "NHWC") == "NHWC";
  return is_over_channels ? pool_channels(l, x, kernel[3], strides[3]) : pool(l, x, "MaxPool", 2, kernel, strides);
}

// Ours gives positions in [batch, channel, height, width]; theirs count in [height, width, channel].
Result<std::vector<TensorId>> max_pool_with_argmax(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Pool p, pool_of(l, x, 2, l.ints_or("ksize"), l.ints_or("strides")));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to number the positions"));
  ORKNN_TRY_ASSIGN(const TensorId first, to_channels_first(l, p.format, x));
  if (dims[1] * dims[2] * dims[3] == 0) return shape_mismatch("the value has the wrong shape").found(to_string(dims));
  const auto results = l.emit_all("MaxPool", {first}, p.window.attributes(), 2);
  const int64_t pixels = dims[1] * dims[2], channels = dims[3];
  const TensorId pixel = l.binary("Mod", results[1], l.add_int_scalar("pixels", pixels));
  TensorId index =
      l.add(l.mul(from_channels_first(l, p.format, pixel), l.add_int_scalar("channels", channels)), positions(l, channels));
  if (l.bool_or("include_batch_in_index", false) && dims[0] > 1)
    index = l.add(index, l.mul(positions(l, dims[0], 0, 4), l.add_int_scalar("elements", pixels * channels)));
  return std::vector{from_channels_first(l, p.format, results[0]), l.cast(index, l.dtype_or("Targmax", DType::Int64))};
}

// Each gradient goes to where the maximum of its window stood: max-unpooling. Windows that overlap add up.
Result<TensorId> max_pool_grad(Layer& l, TensorId x, TensorId, TensorId gradient) {
  ORKNN_TRY_ASSIGN(const Pool p, pool_of(l, x, 2, l.ints_or("ksize"), l.ints_or("strides")));
  ORKNN_TRY_ASSIGN(const TensorId data, to_channels_first(l, p.format, x));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(data, "to size the result"));
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(dims, int64_t{1} << 31));
  return in_channels_first(l, p.format, gradient, [&](TensorId values) {
    const TensorId indices = l.emit_all("MaxPool", {data}, p.window.attributes(), 2)[1];
    const TensorId zeros = l.expand(l.scalar_like(values, 0, "zero"), Dims{count});
    const TensorId sums = l.emit("ScatterElements", {zeros, l.reshape(indices, {-1}), l.reshape(values, {-1})},
                                 {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
    return l.reshape(sums, dims);
  });
}

// One shifted copy of a channels-last picture per element of the window, by rows; padded by `outside`.
Result<std::vector<TensorId>> taps_of(Layer& l, TensorId x, const std::vector<int64_t>& size, TensorId outside) {
  const PictureFormat format;
  Window w{.kernel = size};
  ORKNN_TRY_ASSIGN(w.strides, spatial_entries(format, l.ints_or("strides"), "strides"));
  ORKNN_TRY_ASSIGN(w.dilations, spatial_entries(format, l.ints_or("rates", {1, 1, 1, 1}), "rates"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to slide over it", 4));
  constexpr int64_t kMostTaps = 1024;
  if (size[0] < 1 || size[1] < 1 || size[0] > kMostTaps || size[1] > kMostTaps || size[0] * size[1] > kMostTaps)
    return unsupported("the window is too large").found(to_string(size));
  ORKNN_TRY_ASSIGN(w, with_padding(l, format, std::move(w), {dims[1], dims[2]}));
  const auto &begin = w.pads_begin, &end = w.pads_end;
  const int64_t height = dims[1] + begin[0] + end[0] - w.reach(0) + 1, width = dims[2] + begin[1] + end[1] - w.reach(1) + 1;
  if (height < 1 || width < 1) return shape_mismatch("the window is larger than the picture").found(to_string(size));
  const TensorId padded = pad(l, x, {0, begin[0], begin[1], 0, 0, end[0], end[1], 0}, outside);
  std::vector<TensorId> taps;
  for (int64_t i = 0; i < size[0]; ++i)
    for (int64_t j = 0; j < size[1]; ++j) {
      const int64_t top = i * w.dilations[0], left = j * w.dilations[1];
      taps.push_back(l.slice(padded, {top, left}, {top + height, left + width}, {1, 2}, w.strides));
    }
  return taps;
}

// Every window as a row of channels, ordered [row, column, channel].
Result<TensorId> patches(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto size, spatial_entries({}, l.ints_or("ksizes"), "ksizes"));
  ORKNN_TRY_ASSIGN(auto taps, taps_of(l, x, size, {}));
  return l.concat(std::move(taps), 3);
}

// Dilation2D: the largest of value plus filter over a window; Erosion2D: the smallest of value minus filter, mirrored.
template <bool Erodes>
Result<TensorId> morphology(Layer& l, TensorId x, TensorId filter) {
  ORKNN_TRY_ASSIGN(const Dims size, l.need_dims(filter, "to slide it", 3));
  ORKNN_TRY_ASSIGN(auto taps, taps_of(l, x, {size[0], size[1]}, l.scalar_like(x, Erodes ? 3.0e38 : -3.0e38, "outside")));
  for (size_t i = 0; i < taps.size(); ++i) {
    const auto at = static_cast<int64_t>(Erodes ? taps.size() - 1 - i : i), row = at / size[1], column = at % size[1];
    const TensorId weight = l.squeeze(l.slice(filter, {row, column}, {row + 1, column + 1}, {0, 1}), {0, 1});
    taps[i] = l.binary(Erodes ? "Sub" : "Add", taps[i], weight);
  }
  return l.emit(Erodes ? "Min" : "Max", std::move(taps));
}
}  // namespace

std::span<const Row> pooling_rows() {
  static const Row rows[] = {
      {"MaxPool|MaxPoolV2", max_pool},
      {"MaxPool3D", max_pool_3d},
      {"AvgPool", average_pool<2>},
      {"AvgPool3D", average_pool<3>},
      {"MaxPoolWithArgmax", max_pool_with_argmax},
      {"MaxPoolGrad", max_pool_grad},
      {"ExtractImagePatches", patches},
      {"Dilation2D", morphology<false>},
      {"Erosion2D", morphology<true>},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
