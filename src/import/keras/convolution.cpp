// Convolutions over one, two or three axes. Weights are stored spatial axes first, whatever the data format.
#include <algorithm>

#include "import/keras/layer.h"
#include "import/lower/strided_slice.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
// What the layer states of its window over pictures of this format, around a kernel of these extents.
Result<Window> window_of(Layer& l, const PictureFormat& format, TensorId x, std::vector<int64_t> kernel) {
  Window w{.kernel = std::move(kernel)};
  for (const auto& [list, key] : {std::pair(&w.strides, "strides"), std::pair(&w.dilations, "dilation_rate")}) {
    *list = l.config[key].integers(format.spatial);
    if (list->empty()) list->assign(format.spatial, 1);
    if (list->size() != format.spatial)
      return invalid_model("the layer has the wrong number of " + std::string(key)).expected(std::to_string(format.spatial));
  }
  ORKNN_TRY(w.check());
  const std::string padding = l.text("padding", "valid");
  if (padding == "same") {
    w.padding = Window::Padding::Same;
    return with_explicit_padding(std::move(w), spatial_extents(l, format, x));
  }
  if (padding != "valid" && padding != "causal")
    return invalid_model("the padding is not known").expected("valid, same or causal").found(padding);
  w.pads_begin.assign(format.spatial, 0);
  w.pads_end.assign(format.spatial, 0);
  if (padding == "causal") w.pads_begin[0] = w.reach(0) - 1;
  return w;
}

// The extents of a weight of `spatial` + 2 axes.
Result<Dims> filter_dims(Layer& l, TensorId weights, size_t spatial) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(weights, "to convolve with it"));
  if (dims.size() == spatial + 2 && std::ranges::all_of(dims, [](int64_t d) { return d > 0; })) return dims;
  return shape_mismatch("the kernel has the wrong shape").expected("rank " + std::to_string(spatial + 2)).found(to_string(dims));
}

Result<TensorId> finished(Layer& l, const PictureFormat& format, TensorId y, size_t bias_index) {
  if (l.flag("use_bias", true)) {
    ORKNN_TRY_ASSIGN(const TensorId bias, l.weight(bias_index));
    y = l.add(y, along_channels(l, format, bias));
  }
  return with_activation(l, y);
}

template <size_t Spatial>
Result<TensorId> conv(Layer& l, TensorId x) {
  const PictureFormat format = l.format(Spatial);
  ORKNN_TRY_ASSIGN(const TensorId kernel, l.weight(0));
  ORKNN_TRY_ASSIGN(const Dims dims, filter_dims(l, kernel, Spatial));
  ORKNN_TRY_ASSIGN(const Window window, window_of(l, format, x, {dims.begin(), dims.end() - 2}));
  ORKNN_TRY_ASSIGN(const TensorId y, in_channels_first(l, format, x, [&](TensorId first) {
                     return convolution(l, first, filters_first(l, kernel, Spatial), {}, window);
                   }));
  return finished(l, format, y, 1);
}

// Filters of their own for each channel, then, if it is separable, a product over channels.
template <size_t Spatial, bool IsSeparable>
Result<TensorId> depthwise(Layer& l, TensorId x) {
  const PictureFormat format = l.format(Spatial);
  ORKNN_TRY_ASSIGN(const TensorId kernel, l.weight(0));
  ORKNN_TRY_ASSIGN(const Dims dims, filter_dims(l, kernel, Spatial));
  if (channels_of(l, format, x).value_or(dims[Spatial]) != dims[Spatial])
    return shape_mismatch("the kernel does not fit the channels").found(to_string(dims));
  ORKNN_TRY_ASSIGN(const Window window, window_of(l, format, x, {dims.begin(), dims.end() - 2}));
  TensorId point;
  if (IsSeparable) {
    ORKNN_TRY_ASSIGN(point, l.weight(1));
    ORKNN_TRY(filter_dims(l, point, Spatial).status());
  }
  ORKNN_TRY_ASSIGN(const TensorId y, in_channels_first(l, format, x, [&](TensorId first) -> Result<TensorId> {
                     ORKNN_TRY_ASSIGN(const TensorId each,
                                      convolution(l, first, depthwise_filters_first(l, kernel, dims), {}, window, dims[Spatial]));
                     if (!IsSeparable) return each;
                     return convolution(l, each, filters_first(l, point, Spatial), {}, {});
                   }));
  return finished(l, format, y, IsSeparable ? 2 : 1);
}

// Its result is (n - 1) * stride + kernel long, at least n * stride; with 'same' n * stride. `output_padding` states it
// otherwise.
template <size_t Spatial>
Result<TensorId> transposed(Layer& l, TensorId x) {
  const PictureFormat format = l.format(Spatial);
  ORKNN_TRY_ASSIGN(const TensorId kernel, l.weight(0));
  ORKNN_TRY_ASSIGN(const Dims dims, filter_dims(l, kernel, Spatial));
  ORKNN_TRY_ASSIGN(const Dims extents, l.need_dims(x, "to size the result", Spatial + 2));
  ORKNN_TRY_ASSIGN(Window window, window_of(l, format, {}, {dims.begin(), dims.end() - 2}));
  const bool is_same = window.padding == Window::Padding::Same;
  const std::vector<int64_t> more = l.config["output_padding"].integers(Spatial);
  std::vector<int64_t> wanted;
  for (size_t i = 0; i < Spatial; ++i) {
    const int64_t n = extents[format.axis(i)], stride = window.strides[i], reach = window.reach(i);
    if (more.size() == Spatial && more[i] >= 0 && more[i] < kMaxWindow)
      wanted.push_back((n - 1) * stride + reach - (is_same ? reach / 2 * 2 : 0) + more[i]);
    else
      wanted.push_back(n * stride + (is_same ? 0 : std::max<int64_t>(reach - stride, 0)));
    if (n > kMaxWindow || wanted[i] < 1 || wanted[i] > INT32_MAX)
      return invalid_model("the result has an impossible size").found(std::to_string(wanted[i]));
  }
  ORKNN_TRY_ASSIGN(const TensorId y, in_channels_first(l, format, x, [&](TensorId first) {
                     return transposed_convolution(l, first, filters_first(l, kernel, Spatial), {}, window, wanted);
                   }));
  return finished(l, format, y, 1);
}

// A kernel of its own for every place of the result, over the elements of the window there.
template <size_t Spatial>
Result<TensorId> locally_connected(Layer& l, TensorId x) {
  const PictureFormat format = l.format(Spatial);
  if (l.integer("implementation", 1) != 1) return unsupported("only implementation 1 is supported");
  ORKNN_TRY_ASSIGN(const Window window, window_of(l, format, x, l.config["kernel_size"].integers(Spatial)));
  ORKNN_TRY_ASSIGN(const TensorId kernel, l.weight(0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(kernel, "to weigh with it"));  // [places, elements * channels, filters]
  ORKNN_TRY_ASSIGN(const TensorId first, to_channels_first(l, format, x));
  ORKNN_TRY_ASSIGN(const Dims picture, l.need_dims(first, "to find its windows"));
  const int64_t elements = element_count(window.kernel), channels = picture[1];
  if (window.kernel.size() != Spatial || dims.size() != 3 || dims[1] != elements * channels)
    return shape_mismatch("the kernel has the wrong shape").found(to_string(dims));
  ORKNN_TRY_ASSIGN(const TensorId taken, window_elements(l, first, channels, window));
  ORKNN_TRY_ASSIGN(const Dims made, l.need_dims(taken, "to weigh it"));
  const std::vector<int64_t> places(made.begin() + 2, made.end());
  // [batch, channels, elements, places] to [places, batch, elements * channels] and back.
  TensorId y = l.transpose(l.reshape(taken, {made[0], channels, elements, dims[0]}), {3, 0, 2, 1});
  y = l.transpose(l.matmul(l.reshape(y, {dims[0], made[0], dims[1]}), kernel), {1, 2, 0});
  y = from_channels_first(l, format, l.reshape(y, joined({made[0], dims[2]}, places)));
  if (l.flag("use_bias", true)) {
    ORKNN_TRY_ASSIGN(const TensorId bias, l.weight(1));
    y = l.add(y, bias);
  }
  return with_activation(l, y);
}
}  // namespace

std::span<const Row> convolution_rows() {
  static const Row rows[] = {
      {"Conv1D|Convolution1D", conv<1>},
      {"Conv2D|Convolution2D", conv<2>},
      {"Conv3D|Convolution3D", conv<3>},
      {"Conv1DTranspose", transposed<1>},
      {"Conv2DTranspose", transposed<2>},
      {"Conv3DTranspose", transposed<3>},
      {"DepthwiseConv1D", depthwise<1, false>},
      {"DepthwiseConv2D", depthwise<2, false>},
      {"SeparableConv1D", depthwise<1, true>},
      {"SeparableConv2D", depthwise<2, true>},
      {"LocallyConnected1D", locally_connected<1>},
      {"LocallyConnected2D", locally_connected<2>},
  };
  return rows;
}

}  // namespace orknn::importer::keras
