#include "sim/kernels/support/depthwise_lanes.h"

#include <algorithm>

namespace orknn::sim::kernels {
namespace {
constexpr int64_t kFewChannels = 8;  // fewer than these leave most lanes empty
}

bool DepthwiseLanes::accepts(const KernelQuery& q) {
  const std::optional<Window> w = depthwise_window(q);
  return w && q.outputs[0].dims[1] == q.inputs[0].dims[1] && q.inputs[0].dims[1] >= kFewChannels && w->suits_a_padded_copy();
}

Status DepthwiseLanes::take(const KernelQuery& q, int64_t row_pixels) {
  window = *depthwise_window(q);
  channels = q.outputs[0].dims[1];
  blocks = divide_up(channels, kLaneChannels);
  pitch = row_pixels ? row_pixels : padded_columns(window);
  offsets = tap_offsets(window, window.kernel[2], pitch);
  const int64_t taps = window.taps(), lanes = blocks * kLaneChannels;
  if (!weights.allocate(lanes * taps) || !bias.allocate(lanes)) return out_of_scratch(lanes * (taps + 1) * 4);
  std::fill_n(weights.data(), lanes * taps, 0.0f);
  std::fill_n(bias.data(), lanes, 0.0f);
  const ir::TensorData w = ir::convert(q.inputs[1].constant->view(), DType::Float32);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < taps; ++t)
      weights.data()[(c / kLaneChannels * taps + t) * kLaneChannels + c % kLaneChannels] = w.as<float>()[c * taps + t];
  if (q.node.has_input(2)) {
    const ir::TensorData b = ir::convert(q.inputs[2].constant->view(), DType::Float32);
    std::copy_n(b.as<float>(), channels, bias.data());
  }
  return {};
}

int64_t DepthwiseLanes::band_rows(int64_t bytes) const {
  const Window& w = window;
  const int64_t fitting = bytes / (pitch * kLaneChannels * 4) - (w.kernel[1] - 1) * w.dilation[1];
  const int64_t band = std::clamp<int64_t>(fitting / w.stride[1], std::min<int64_t>(4, w.out[1]), w.out[1]);
  return divide_up(w.out[1], divide_up(w.out[1], band));
}

DepthwisePixels DepthwiseLanes::pixels(int64_t block, int64_t rows, const Clamp& clamp) const {
  DepthwisePixels d;
  d.row_step = window.stride[1] * pitch * kLaneChannels;
  d.column_step = window.stride[2] * kLaneChannels;
  d.offsets = offsets.data();
  d.taps = window.taps();
  d.weights = weights.data() + block * d.taps * kLaneChannels;
  d.bias = bias.data() + block * kLaneChannels;
  d.rows = rows;
  d.columns = window.out[2];
  d.clamp = clamp.active;
  d.low = clamp.low;
  d.high = clamp.high;
  return d;
}

std::vector<int64_t> tap_offsets(const Window& w, int64_t columns, int64_t pitch) {
  std::vector<int64_t> offsets;
  for (int64_t y = 0; y < w.kernel[1]; ++y)
    for (int64_t x = 0; x < columns; ++x) offsets.push_back((y * w.dilation[1] * pitch + x * w.dilation[2]) * kLaneChannels);
  return offsets;
}

}  // namespace orknn::sim::kernels
