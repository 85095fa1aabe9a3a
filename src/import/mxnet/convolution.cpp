// Convolutions, transposed ones, and those that read at computed places.
#include <algorithm>

#include "import/lower/window.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// The extents of the kernel: stated, or those of the weights.
Result<std::vector<int64_t>> kernel_of(Layer& l, size_t weight_at) {
  std::vector<int64_t> kernel = l.integers("kernel");
  const int64_t channels_last = l.is_channels_last() ? 1 : 0;
  if (const auto dims = l.dims_of(l.input(weight_at)); kernel.empty() && dims && dims->size() > 2)
    kernel.assign(dims->begin() + 2 - channels_last, dims->end() - channels_last);
  if (kernel.empty() || kernel.size() > 3 || std::ranges::any_of(kernel, [](int64_t k) { return k < 1; }) ||
      !checked_element_count(kernel, 1 << 24))
    return invalid_model("illegal kernel").expected("one to three positive extents").found(to_string(kernel));
  return kernel;
}

// `x` has its channels first.
Result<Filter> filter_of(Layer& l, TensorId x, size_t weight_at, bool is_transposed) {
  Filter f{.groups = l.integer("num_group", 1)};
  if (f.groups < 1) return invalid_model("illegal num_group").found(std::to_string(f.groups));
  ORKNN_TRY_ASSIGN(f.window.kernel, kernel_of(l, weight_at));
  const std::vector<int64_t>& kernel = f.window.kernel;
  f.window.strides = l.window("stride", kernel.size(), 1, 1);
  f.window.dilations = l.window("dilate", kernel.size(), 1, 1);
  f.window.pads_begin = f.window.pads_end = l.window("pad", kernel.size(), 0, 0);
  const int64_t filters = l.integer("num_filter", 0), channels = l.extent_of(x, 1);
  std::optional<Dims> dims;
  int64_t fan_in = 1;
  if (channels > 0 && filters > 0) {  // [out, h, w, in] with channels last
    dims = is_transposed ? Dims{channels, filters / f.groups} : Dims{filters, channels / f.groups};
    dims->insert(dims->end() - (l.is_channels_last() ? 1 : 0), kernel.begin(), kernel.end());
    const Dims summed{channels / f.groups, element_count(kernel)};
    fan_in = checked_element_count(summed) ? element_count(summed) : 1;
  }
  const DType dtype = l.dtype_of(x);
  ORKNN_TRY_ASSIGN(f.weights, l.parameter(weight_at, "weight", dims, Fill::Random, dtype, fan_in));
  ORKNN_TRY_ASSIGN(f.weights, l.to_channels_first(f.weights));
  if (!l.flag("no_bias", is_transposed)) {
    ORKNN_TRY_ASSIGN(f.bias, l.vector(weight_at + 1, "bias", filters, Fill::Zeros, dtype));
  }
  return f;
}
}  // namespace

Result<TensorId> convolution(Layer& l, TensorId data) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.to_channels_first(data));
  ORKNN_TRY_ASSIGN(const Filter f, filter_of(l, x, 1, false));
  return l.to_layout(l.emit("Conv", f.inputs(x), f.attributes()));
}

namespace {
Result<TensorId> deconvolution(Layer& l, TensorId data) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.to_channels_first(data));
  ORKNN_TRY_ASSIGN(Filter f, filter_of(l, x, 1, true));
  const size_t n = f.window.kernel.size();
  const std::vector<int64_t> target = l.window("target_shape", n, 0, 0);
  std::vector<int64_t> adjust = l.window("adj", n, 0, 0);
  if (std::ranges::any_of(target, [](int64_t t) { return t != 0; })) {  // then padding and adjustment follow from it
    ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to reach the target shape", n + 2));
    for (size_t i = 0; i < n; ++i) {
      const int64_t surplus = f.window.strides[i] * (in[i + 2] - 1) + f.window.reach(i) - target[i];
      if (surplus < 0)
        return invalid_model("the target shape cannot be reached")
            .expected("at most " + std::to_string(surplus + target[i]))
            .found(std::to_string(target[i]));
      adjust[i] = surplus % 2;
      f.window.pads_begin[i] = f.window.pads_end[i] = (surplus + 1) / 2;
    }
  }
  Attributes attributes = f.attributes();
  attributes.set("output_padding", adjust);
  return l.to_layout(l.emit("ConvTranspose", f.inputs(x), std::move(attributes)));
}

// --- computed places

// The older operator reads nothing but zeros where a place lies left of or above the data, and repeats the last row and column to
// the right and below, instead of fading out. The data gets that row and column, and the mask returned switches places off.
Result<TensorId> fit_to_first_version(Layer& l, TensorId& x, Window& w, TensorId offsets, int64_t groups) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to find its border"));
  ORKNN_TRY_ASSIGN(const Dims places, l.need_dims(offsets, "to find the border"));
  const int64_t taps = w.kernel[0] * w.kernel[1];
  if (in.size() != 4 || places.size() != 4 || places[1] != 2 * taps * groups)
    return shape_mismatch("the offsets do not fit the kernel")
        .expected(std::to_string(2 * taps * groups) + " channels")
        .found(to_string(places));
  const int64_t height = places[2], width = places[3];
  const auto count = checked_element_count(Dims{taps, height, width}, int64_t{1} << 24);
  if (!count) return unsupported("the deformable convolution is too large").found(to_string(places));
  const TensorId split = l.reshape(offsets, {places[0], groups, taps, 2, height, width});
  const auto inside = [&](size_t axis) {
    std::vector<float> grid;
    grid.reserve(static_cast<size_t>(*count));
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t r = 0; r < height; ++r)
        for (int64_t c = 0; c < width; ++c)
          grid.push_back(static_cast<float>((axis == 0 ? r : c) * w.strides[axis] - w.pads_begin[axis] +
                                            (axis == 0 ? t / w.kernel[1] : t % w.kernel[1]) * w.dilations[axis]));
    const auto at = static_cast<int64_t>(axis);
    const TensorId place =
        l.add(l.slice(split, 3, at, at + 1), l.cast(l.floats("grid", {1, 1, taps, 1, height, width}, grid), l.dtype_of(offsets)));
    return l.binary("And", l.with_scalar("GreaterOrEqual", place, 0.0),
                    l.with_scalar("Less", place, static_cast<double>(in[axis + 2])));
  };
  const TensorId mask = l.cast(l.binary("And", inside(0), inside(1)), l.dtype_of(x));
  x = l.emit("Pad", {x, l.add_ints("pads", {0, 0, 0, 0, 0, 0, 1, 1})}, {{"mode", std::string("edge")}});
  for (int64_t& pad : w.pads_end) --pad;
  return l.reshape(mask, {places[0], groups * taps, height, width});
}

Result<TensorId> deformable(Layer& l, TensorId data, TensorId offsets, TensorId mask) {
  ORKNN_TRY_ASSIGN(TensorId x, l.to_channels_first(data));
  ORKNN_TRY_ASSIGN(Filter f, filter_of(l, x, mask ? 3 : 2, false));
  const int64_t groups = l.integer("num_deformable_group", 1);
  if (f.window.kernel.size() != 2 || groups < 1 || groups > 4096 || !checked_element_count(f.window.kernel, 1 << 16))
    return invalid_model("illegal kernel or num_deformable_group").found(to_string(f.window.kernel));
  if (!mask) {
    ORKNN_TRY_ASSIGN(mask, fit_to_first_version(l, x, f.window, offsets, groups));
  }
  Attributes attributes = f.attributes();
  attributes.set("offset_group", groups);
  return l.emit("DeformConv", {x, f.weights, offsets, f.bias, mask}, std::move(attributes));
}
Result<TensorId> deformable_convolution(Layer& l, TensorId x, TensorId offsets) { return deformable(l, x, offsets, {}); }
}  // namespace

std::span<const Row> convolution_rows() {
  static const Row rows[] = {
      {"Convolution|Convolution_v1", convolution},
      {"Deconvolution", deconvolution},
      {"_contrib_DeformableConvolution", deformable_convolution},
      {"_contrib_ModulatedDeformableConvolution", deformable},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
