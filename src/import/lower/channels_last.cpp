#include "import/lower/channels_last.h"

#include <algorithm>
#include <cmath>

namespace orknn::importer {
using namespace ir;

Result<TensorId> to_channels_first(Emitter& e, const PictureFormat& format, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(x, "to find its channels"));
  if (rank != static_cast<int64_t>(format.spatial) + 2)
    return shape_mismatch("the value has the wrong rank")
        .expected(std::to_string(format.spatial + 2))
        .found(std::to_string(rank));
  return format.channels_last ? e.channels_first(x) : Result<TensorId>(x);
}

TensorId from_channels_first(Emitter& e, const PictureFormat& format, TensorId x) {
  if (!format.channels_last) return x;
  std::vector<int64_t> permutation{0};
  for (size_t i = 0; i < format.spatial; ++i) permutation.push_back(static_cast<int64_t>(i) + 2);
  permutation.push_back(1);
  return e.transpose(x, std::move(permutation));
}

std::vector<std::optional<int64_t>> spatial_extents(const Emitter& e, const PictureFormat& format, TensorId x) {
  std::vector<std::optional<int64_t>> extents(format.spatial);
  const Shape* shape = e.shape_of(x);
  if (!shape || shape->size() != format.spatial + 2) return extents;
  for (size_t i = 0; i < format.spatial; ++i)
    if (const Dim& d = (*shape)[format.axis(i)]; d.is_known()) extents[i] = d.value();
  return extents;
}

std::optional<int64_t> channels_of(const Emitter& e, const PictureFormat& format, TensorId x) {
  const Shape* shape = e.shape_of(x);
  if (!shape || shape->size() != format.spatial + 2 || !(*shape)[format.channel_axis()].is_known()) return std::nullopt;
  return (*shape)[format.channel_axis()].value();
}

TensorId along_channels(Emitter& e, const PictureFormat& format, TensorId values) {
  if (format.channels_last) return values;
  std::vector<int64_t> shape(format.spatial + 1, 1);
  shape[0] = -1;
  return e.reshape(values, std::move(shape));
}

namespace {
// The last two axes first, in this order, then the spatial ones.
TensorId last_two_first(Emitter& e, TensorId weights, size_t spatial, bool swapped) {
  const auto n = static_cast<int64_t>(spatial);
  std::vector<int64_t> permutation{swapped ? n + 1 : n, swapped ? n : n + 1};
  for (int64_t i = 0; i < n; ++i) permutation.push_back(i);
  return e.transpose(weights, std::move(permutation));
}
}  // namespace

TensorId filters_first(Emitter& e, TensorId weights, size_t spatial) { return last_two_first(e, weights, spatial, true); }
TensorId depthwise_filters_first(Emitter& e, TensorId weights, const Dims& dims) {
  const size_t spatial = dims.size() - 2;
  const std::vector<int64_t> shape = joined({dims[spatial] * dims[spatial + 1], 1}, {dims.begin(), dims.end() - 2});
  return e.reshape(last_two_first(e, weights, spatial, false), shape);
}

Result<TensorId> convolution(Emitter& e, TensorId x, TensorId weights, TensorId bias, const Window& window,
                             std::optional<int64_t> channels) {
  ORKNN_TRY(window.check());
  ORKNN_TRY_ASSIGN(const Dims kernel, e.need_dims(weights, "to convolve with it"));
  const PictureFormat ours{false, kernel.size() - 2};
  const int64_t in = kernel[1], all = channels_of(e, ours, x).value_or(channels.value_or(in));
  if (in < 1 || all < in || all % in != 0 || kernel[0] % (all / in) != 0)
    return shape_mismatch("the weights do not fit the channels")
        .expected(std::to_string(all) + " input channels")
        .found(std::to_string(in));
  Attributes attributes = window.attributes();
  if (all != in || !window.kernel.empty()) attributes.set("group", all / in);
  return e.emit("Conv", Filter{weights, bias}.inputs(x), std::move(attributes));
}

Result<TensorId> transposed_convolution(Emitter& e, TensorId x, TensorId weights, TensorId bias, Window window,
                                        const std::vector<int64_t>& wanted, int64_t groups) {
  ORKNN_TRY(window.check());
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to size the transposed convolution"));
  ORKNN_TRY_ASSIGN(const Dims kernel, e.need_dims(weights, "to size the transposed convolution"));
  const size_t axes = wanted.size();
  if (std::ranges::any_of(wanted, [](int64_t extent) { return extent < 1 || extent > INT32_MAX; }))
    return invalid_model("the stated output shape is impossible").found(to_string(wanted));
  if (std::ranges::any_of(dims, [](int64_t d) { return d < 1; }))
    return shape_mismatch("the value is empty").found(to_string(dims));
  const bool states_all = !window.kernel.empty();
  window.kernel.assign(kernel.begin() + 2, kernel.end());
  window = with_explicit_padding(std::move(window), {wanted.begin(), wanted.end()});
  window.padding = Window::Padding::Explicit;
  window.pads_begin.resize(axes, 0);
  window.pads_end.resize(axes, 0);
  // What the strided steps reach from the padded start is cut, or completed by output_padding or by zeros at the end.
  std::vector<int64_t> missing(axes, 0), pads(2 * (axes + 2), 0);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reached = (dims[i + 2] - 1) * window.strides[i] + window.reach(i) - window.pads_begin[i];
    window.pads_end[i] = std::max<int64_t>(reached - wanted[i], 0);
    const int64_t lacks = std::max<int64_t>(wanted[i] - reached, 0);
    const bool is_padded = lacks >= std::max(window.strides[i], window.dilations[i]) || reached < 1;
    (is_padded ? pads[axes + 4 + i] : missing[i]) = lacks;
    if (is_padded && bias)
      return unsupported("the stated output shape is larger than the transposed convolution reaches")
          .expected("less than " + std::to_string(reached + window.strides[i]))
          .found(std::to_string(wanted[i]));
  }
  if (!states_all) window.kernel.clear();
  Attributes attributes = window.attributes();
  if (groups != 1 || states_all) attributes.set("group", groups);
  attributes.set("output_padding", missing);
  const TensorId y = e.emit("ConvTranspose", Filter{weights, bias}.inputs(x), std::move(attributes));
  return std::ranges::any_of(pads, [](int64_t n) { return n > 0; }) ? e.emit("Pad", {y, e.add_ints("pads", pads)}) : y;
}

namespace {
// Nearest neighbours between aligned corners with positions shifted by half before they are scaled: no mode of ours.
TensorId pick_nearest(Emitter& e, TensorId x, int64_t axis, int64_t from, int64_t to) {
  const float scale = static_cast<float>(to > 1 ? from - 1 : from) / static_cast<float>(to > 1 ? to - 1 : to);
  std::vector<int64_t> picked;
  for (int64_t i = 0; i < to; ++i)
    picked.push_back(std::clamp<int64_t>(std::lround((static_cast<float>(i) + 0.5f) * scale), 0, from - 1));
  return e.gather(x, e.add_ints("picked", picked), axis);
}
}  // namespace

Result<TensorId> resize(Emitter& e, TensorId x, const std::vector<int64_t>& size, const Resizing& how) {
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMaxWindow || size[1] > kMaxWindow)
    return invalid_model("the new size is impossible").expected("height and width").found(to_string(size));
  const bool is_nearest = how.mode == "nearest";
  return in_channels_first(e, {}, is_nearest ? x : e.cast(x, DType::Float32), [&](TensorId first) -> Result<TensorId> {
    if (is_nearest && how.align_corners && how.half_pixel_centers) {
      ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(first, "to pick its elements"));
      return pick_nearest(e, pick_nearest(e, first, 2, dims[2], size[0]), 3, dims[3], size[1]);
    }
    const Shape& shape = *e.shape_of(first);
    if (!shape[0].is_known() || !shape[1].is_known())
      return unsupported("the batch and channels must be known to resize").hint("give the input shapes with input_size_list");
    Attributes attributes{{"mode", how.mode},
                          {"coordinate_transformation_mode", std::string(how.align_corners        ? "align_corners"
                                                                         : how.half_pixel_centers ? "half_pixel"
                                                                                                  : "asymmetric")}};
    // Without either flag positions are cut off. With half pixel centers theirs is floor((i + 0.5) * scale), which is our
    // position rounded half up.
    if (is_nearest)
      attributes.set("nearest_mode", std::string(how.align_corners || how.half_pixel_centers ? "round_prefer_ceil" : "floor"));
    if (how.mode == "cubic") {
      attributes.set("cubic_coeff_a", how.half_pixel_centers ? -0.5 : -0.75);
      attributes.set("exclude_outside", int64_t{how.half_pixel_centers});
    }
    const TensorId sizes = e.add_ints("sizes", {shape[0].value(), shape[1].value(), size[0], size[1]});
    return e.emit("Resize", {first, {}, {}, sizes}, std::move(attributes));
  });
}

Result<TensorId> local_response_normalization(Emitter& e, TensorId x, int64_t radius, double bias, double alpha, double beta) {
  if (radius < 0 || radius > kMaxWindow) return invalid_model("the radius is out of range").found(std::to_string(radius));
  const int64_t size = 2 * radius + 1;
  const Attributes attributes{
      {"size", size}, {"bias", bias}, {"alpha", alpha * static_cast<double>(size)}, {"beta", beta}};  // ours divides alpha
  return in_channels_first(e, {}, x, [&](TensorId first) { return e.emit("LRN", {first}, attributes); });
}

}  // namespace orknn::importer
