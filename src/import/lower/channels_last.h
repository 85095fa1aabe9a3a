// Layers on pictures as TensorFlow and its relatives have them: channels last, or first where a layer says so. Around our
// operators, which have them first, axes are moved there and back.
#pragma once

#include "import/lower/window.h"

namespace orknn::importer {

// The order of axes of a picture.
struct PictureFormat {
  bool channels_last = true;
  size_t spatial = 2;                                                  // number of spatial axes
  size_t axis(size_t i) const { return i + (channels_last ? 1 : 2); }  // of the i-th spatial axis
  size_t channel_axis() const { return channels_last ? spatial + 1 : 1; }
};

// To our order of axes; another rank than the format's is an error.
Result<ir::TensorId> to_channels_first(Emitter& e, const PictureFormat& format, ir::TensorId x);
// Back. The rank is known to be right even where inference could not tell it.
ir::TensorId from_channels_first(Emitter& e, const PictureFormat& format, ir::TensorId x);
// What `make` builds from the picture in our order, in the format's order.
template <class Make>
Result<ir::TensorId> in_channels_first(Emitter& e, const PictureFormat& format, ir::TensorId x, Make make) {
  ORKNN_TRY_ASSIGN(const ir::TensorId first, to_channels_first(e, format, x));
  ORKNN_TRY_ASSIGN(const ir::TensorId y, Result<ir::TensorId>(make(first)));
  return from_channels_first(e, format, y);
}
// Nothing where an extent is not known.
std::vector<std::optional<int64_t>> spatial_extents(const Emitter& e, const PictureFormat& format, ir::TensorId x);
std::optional<int64_t> channels_of(const Emitter& e, const PictureFormat& format, ir::TensorId x);
// A vector with one value per channel, shaped to broadcast over a picture of this format.
ir::TensorId along_channels(Emitter& e, const PictureFormat& format, ir::TensorId values);

// Filters stored with the spatial axes first, [spatial..., in, out], in our order: the last two axes swapped and first.
ir::TensorId filters_first(Emitter& e, ir::TensorId weights, size_t spatial);
// The same of depthwise ones, [spatial..., channels, multiplier] of these extents: [channels * multiplier, 1, spatial...].
ir::TensorId depthwise_filters_first(Emitter& e, ir::TensorId weights, const ir::Dims& dims);

// --- channels first. A window that states its kernel states all attributes; otherwise those are left out that the weights or
// our defaults tell.
// Weights in our order, [out, in / groups, spatial...]; how many groups there are follows from the channels of the picture, or
// from `channels` where its shape does not tell. `bias` may be absent.
Result<ir::TensorId> convolution(Emitter& e, ir::TensorId x, ir::TensorId weights, ir::TensorId bias, const Window& window,
                                 std::optional<int64_t> channels = {});
// The transposed convolution whose result has `wanted` elements along each spatial axis: the padding is that of the forward
// convolution of such a picture. What is never written is zero. Weights [in, out / groups, spatial...].
Result<ir::TensorId> transposed_convolution(Emitter& e, ir::TensorId x, ir::TensorId weights, ir::TensorId bias, Window window,
                                            const std::vector<int64_t>& wanted, int64_t groups = 1);

// --- channels last
struct Resizing {
  std::string mode = "linear";  // nearest, linear or cubic
  bool align_corners = false, half_pixel_centers = false;
};
// `size` is height and width.
Result<ir::TensorId> resize(Emitter& e, ir::TensorId x, const std::vector<int64_t>& size, const Resizing& how);
// Over `radius` channels to each side; alpha is not divided by their number.
Result<ir::TensorId> local_response_normalization(Emitter& e, ir::TensorId x, int64_t radius, double bias, double alpha,
                                                  double beta);

}  // namespace orknn::importer
