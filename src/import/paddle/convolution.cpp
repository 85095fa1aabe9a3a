// Convolutions and pooling.
#include "import/lower/adaptive_pool.h"
#include "import/lower/window.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
// Strides, dilations and padding of a layer with `spatial` axes. `paddings` holds one number per axis, or the two of each, or
// those of all axes of the picture.
Result<Window> window_of(const Layer& l, size_t spatial) {
  Window w;
  w.strides = l.integers("strides");
  w.dilations = l.integers("dilations");
  const std::string algorithm = l.text("padding_algorithm", "EXPLICIT");
  if (algorithm == "SAME") {
    w.padding = Window::Padding::Same;
    w.dilations.clear();  // Paddle leaves them out of account then
    return w;
  }
  if (algorithm == "VALID") {
    w.padding = Window::Padding::Valid;
    return w;
  }
  std::vector<int64_t> pads = l.integers("paddings");
  if (pads.size() == 2 * (spatial + 2)) {
    const auto begin = pads.begin() + (l.format(spatial).channels_last ? 2 : 4);
    pads = {begin, begin + static_cast<ptrdiff_t>(2 * spatial)};
  }
  if (pads.empty()) pads.assign(spatial, 0);
  if (pads.size() != spatial && pads.size() != 2 * spatial)
    return invalid_model("illegal paddings")
        .expected(std::to_string(spatial) + " or " + std::to_string(2 * spatial) + " numbers")
        .found(to_string(pads));
  const bool is_pair = pads.size() == 2 * spatial;
  for (size_t i = 0; i < spatial; ++i) {
    w.pads_begin.push_back(pads[is_pair ? 2 * i : i]);
    w.pads_end.push_back(pads[is_pair ? 2 * i + 1 : i]);
  }
  return w;
}

// The layer's filter, with the kernel of the weights; all lists have one entry per spatial axis.
Result<Filter> filter_of(Layer& l, TensorId filter, TensorId bias, size_t spatial) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(filter, "to find the kernel", spatial + 2));
  ORKNN_TRY_ASSIGN(Window w, window_of(l, spatial));
  w.kernel.assign(dims.begin() + 2, dims.end());
  if (w.strides.empty()) w.strides.assign(spatial, 1);
  if (w.dilations.empty()) w.dilations.assign(spatial, 1);
  if (w.strides.size() != spatial || w.dilations.size() != spatial)
    return invalid_model("strides and dilations do not fit the kernel")
        .found(to_string(w.strides) + ", " + to_string(w.dilations));
  ORKNN_TRY(w.check());
  return Filter{filter, bias, std::move(w), std::max<int64_t>(l.integer("groups", 1), 1)};
}

template <size_t Spatial>
Result<TensorId> conv(Layer& l, TensorId x, TensorId weights) {
  ORKNN_TRY_ASSIGN(const Filter f, filter_of(l, weights, l.input(2), Spatial));
  return in_channels_first(l, l.format(Spatial), x,
                           [&](TensorId first) { return l.emit("Conv", f.inputs(first), f.attributes()); });
}

template <size_t Spatial>
Result<TensorId> conv_transpose(Layer& l, TensorId x, TensorId weights) {
  ORKNN_TRY_ASSIGN(Filter f, filter_of(l, weights, l.input(3), Spatial));
  Window& w = f.window;
  ORKNN_TRY_ASSIGN(const TensorId first, to_channels_first(l, l.format(Spatial), x));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> wanted, l.ints(2, "output_size", "to reach the output size"));
  std::vector<int64_t> beyond = l.integers("output_padding");
  if (!wanted.empty() || w.padding == Window::Padding::Same) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(first, "to reach the output size"));
    if (!wanted.empty() && wanted.size() != Spatial) return invalid_model("illegal output_size").found(to_string(wanted));
    beyond.clear();
    if (w.padding == Window::Padding::Same) {  // as the forward convolution of the result would be padded
      w.padding = Window::Padding::Explicit;
      for (size_t i = 0; i < Spatial; ++i) {
        const int64_t all = same_padding(dims[i + 2] * w.strides[i], w.reach(i), w.strides[i]);
        w.pads_begin.push_back(all / 2);
        w.pads_end.push_back(all - all / 2);
      }
    }
    for (size_t i = 0; i < Spatial && !wanted.empty(); ++i) {
      const int64_t pads = w.padding == Window::Padding::Valid ? 0 : w.pads_begin[i] + w.pads_end[i];
      beyond.push_back(wanted[i] - ((dims[i + 2] - 1) * w.strides[i] - pads + w.reach(i)));
      if (beyond.back() < 0 || beyond.back() >= std::max(w.strides[i], w.dilations[i]))
        return invalid_model("the output size cannot be reached").found(to_string(wanted));
    }
  }
  Attributes attributes = f.attributes();
  if (beyond.size() == Spatial) attributes.set("output_padding", beyond);
  return from_channels_first(l, l.format(Spatial), l.emit("ConvTranspose", f.inputs(first), std::move(attributes)));
}

Result<TensorId> deformable_conv(Layer& l, TensorId x, TensorId offset, TensorId weights) {
  ORKNN_TRY_ASSIGN(const Filter f, filter_of(l, weights, {}, 2));
  Attributes attributes = f.attributes();
  attributes.set("offset_group", std::max<int64_t>(l.integer("deformable_groups", 1), 1));
  std::vector<TensorId> inputs{x, weights, offset};
  if (const TensorId mask = l.input(3)) inputs.insert(inputs.end(), {TensorId{}, mask});
  return l.emit("DeformConv", inputs, std::move(attributes));
}

// --- pooling
template <size_t Spatial>
Result<TensorId> pool_first(Layer& l, TensorId x) {
  const bool is_max = l.text("pooling_type", "max") == "max";
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> kernel, l.ints(1, "kernel_size", "to place the windows"));
  if (l.flag("global_pooling", false)) return l.unary(is_max ? "GlobalMaxPool" : "GlobalAveragePool", x);
  if (kernel.size() != Spatial)
    return invalid_model("illegal kernel_size").expected(std::to_string(Spatial) + " numbers").found(to_string(kernel));
  if (l.flag("adaptive", false)) {
    if (!is_max) return adaptive_average_pool(l, x, kernel);
    ORKNN_TRY_ASSIGN(const PooledMax pooled, adaptive_max_pool(l, x, kernel));
    return pooled.values;
  }
  ORKNN_TRY_ASSIGN(Window w, window_of(l, Spatial));
  w.kernel = kernel;
  w.dilations.clear();
  w.ceil = l.flag("ceil_mode", false);
  w.counts_padding = !is_max && !l.flag("exclusive", true);
  ORKNN_TRY(w.check());
  return l.emit(is_max ? "MaxPool" : "AveragePool", {x}, w.attributes());
}
template <size_t Spatial>
Result<TensorId> pool(Layer& l, TensorId x) {
  return in_channels_first(l, l.format(Spatial), x, [&](TensorId first) { return pool_first<Spatial>(l, first); });
}

Result<std::vector<TensorId>> max_pool_with_index(Layer& l, TensorId x) {
  const std::vector<int64_t> kernel = l.integers("kernel_size");
  if (kernel.size() != 2) return invalid_model("illegal kernel_size").expected("2 numbers").found(to_string(kernel));
  PooledMax pooled;
  if (l.flag("global_pooling", false) || l.flag("adaptive", false)) {
    const std::vector<int64_t> one{1, 1};
    ORKNN_TRY_ASSIGN(pooled, adaptive_max_pool(l, x, l.flag("adaptive", false) ? kernel : one));
  } else {
    ORKNN_TRY_ASSIGN(Window w, window_of(l, 2));
    w.kernel = kernel;
    w.dilations.clear();
    w.ceil = l.flag("ceil_mode", false);
    ORKNN_TRY(w.check());
    ORKNN_TRY_ASSIGN(pooled, max_pool_with_positions(l, x, w.attributes()));
  }
  return std::vector<TensorId>{pooled.values, pooled.positions ? l.cast(pooled.positions, DType::Int32) : TensorId{}};
}

// Columns of windows.
Result<TensorId> unfold(Layer& l, TensorId x) {
  const std::vector<int64_t> kernel = l.integers("kernel_sizes");
  std::vector<int64_t> pads = l.integers("paddings");
  if (pads.size() == 2) pads = {pads[0], pads[1], pads[0], pads[1]};
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to unfold it"));
  if (kernel.size() != 2 || pads.size() != 4 || dims.size() != 4)
    return invalid_model("illegal windows").found(to_string(kernel));
  Window w{.kernel = kernel, .strides = l.integers("strides"), .dilations = l.integers("dilations")};
  w.pads_begin = {pads[0], pads[1]};
  w.pads_end = {pads[2], pads[3]};
  ORKNN_TRY(w.check());
  ORKNN_TRY_ASSIGN(const TensorId columns, window_elements(l, x, dims[1], w));
  return l.reshape(columns, {0, dims[1] * kernel[0] * kernel[1], -1});
}
}  // namespace

std::span<const Row> convolution_rows() {
  static const Row rows[] = {
      {"conv2d|depthwise_conv2d", conv<2>},
      {"conv3d", conv<3>},
      {"conv2d_transpose|depthwise_conv2d_transpose", conv_transpose<2>},
      {"conv3d_transpose", conv_transpose<3>},
      {"deformable_conv", deformable_conv},
      {"pool2d", pool<2>},
      {"pool3d", pool<3>},
      {"max_pool2d_with_index", max_pool_with_index},
      {"unfold", unfold},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
