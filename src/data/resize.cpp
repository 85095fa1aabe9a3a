#include "data/resize.h"

#include <algorithm>
#include <cmath>

namespace orknn::data {
namespace {

constexpr int kOne = 2048;  // weights have 11 bits

// Where one output row or column comes from: `low` and the one after it (kept inside), each with its weight.
struct Tap {
  int64_t low = 0, high = 0;
  int low_weight = kOne, high_weight = 0;
};

// `edge_is_whole`: beyond the border the outermost sample counts fully; else both taps read it, which rounds differently. OpenCV
// does the former for columns and the latter for rows.
std::vector<Tap> make_taps(int64_t from, int64_t to, bool edge_is_whole) {
  std::vector<Tap> taps(static_cast<size_t>(to));
  const double scale = 1.0 / (static_cast<double>(to) / static_cast<double>(from));
  for (int64_t i = 0; i < to; ++i) {
    auto fraction = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
    int64_t low = static_cast<int64_t>(std::floor(fraction));
    fraction -= static_cast<float>(low);
    if (edge_is_whole && (low < 0 || low >= from - 1)) fraction = 0;
    const auto weight = [](float w) { return static_cast<int>(std::lrint(w * static_cast<float>(kOne))); };
    taps[static_cast<size_t>(i)] = {std::clamp<int64_t>(low, 0, from - 1), std::clamp<int64_t>(low + 1, 0, from - 1),
                                    weight(1.0f - fraction), weight(fraction)};
  }
  return taps;
}

// Halving both extents: the mean of four pixels.
void halve(const Picture& from, Picture& to) {
  const int64_t stride = from.width * from.channels, channels = from.channels;
  for (int64_t y = 0; y < to.height; ++y) {
    const uint8_t* in = from.pixels.data() + 2 * y * stride;
    uint8_t* out = to.pixels.data() + y * to.width * channels;
    for (int64_t x = 0; x < to.width; ++x, in += 2 * channels)
      for (int64_t c = 0; c < channels; ++c)
        *out++ = static_cast<uint8_t>((in[c] + in[c + channels] + in[c + stride] + in[c + stride + channels] + 2) >> 2);
  }
}

void scale_row(const uint8_t* in, int channels, std::span<const Tap> taps, int32_t* out) {
  for (const Tap& tap : taps) {
    const uint8_t* low = in + tap.low * channels;
    const uint8_t* high = in + tap.high * channels;
    for (int c = 0; c < channels; ++c) *out++ = low[c] * tap.low_weight + high[c] * tap.high_weight;
  }
}

// The shifts in between lose bits on purpose: OpenCV's do.
void blend_rows(const int32_t* low, const int32_t* high, const Tap& tap, size_t count, uint8_t* out) {
  const int32_t low_weight = tap.low_weight, high_weight = tap.high_weight;
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<uint8_t>(((low_weight * (low[i] >> 4) >> 16) + (high_weight * (high[i] >> 4) >> 16) + 2) >> 2);
}
}  // namespace

Picture resize_linear(const Picture& from, int64_t height, int64_t width) {
  ORKNN_ASSERT(height > 0 && width > 0, "the new size is at least 1 x 1");
  ORKNN_ASSERT(from.pixels.size() == static_cast<size_t>(from.height * from.width * from.channels) && !from.pixels.empty(),
               "the picture has its pixels");
  if (from.height == height && from.width == width) return from;
  Picture to{height, width, from.channels, std::vector<uint8_t>(static_cast<size_t>(height * width * from.channels)),
             from.remark};
  if (from.height == 2 * height && from.width == 2 * width) {
    halve(from, to);
    return to;
  }
  const std::vector<Tap> columns = make_taps(from.width, width, true), rows = make_taps(from.height, height, false);
  const size_t count = static_cast<size_t>(width * from.channels);
  // The scaled forms of the last two input rows; neighbouring output rows share them.
  std::vector<int32_t> scaled[2] = {std::vector<int32_t>(count), std::vector<int32_t>(count)};
  int64_t held[2] = {-1, -1};
  const auto row = [&](int64_t y, int64_t keep) -> const int32_t* {
    for (size_t i : {size_t{0}, size_t{1}})
      if (held[i] == y) return scaled[i].data();
    const size_t slot = held[0] == keep ? 1 : 0;
    scale_row(from.pixels.data() + y * from.width * from.channels, static_cast<int>(from.channels), columns, scaled[slot].data());
    held[slot] = y;
    return scaled[slot].data();
  };
  for (int64_t y = 0; y < height; ++y) {
    const Tap& tap = rows[static_cast<size_t>(y)];
    const int32_t* low = row(tap.low, tap.high);
    const int32_t* high = row(tap.high, tap.low);
    blend_rows(low, high, tap, count, to.pixels.data() + static_cast<size_t>(y) * count);
  }
  return to;
}

}  // namespace orknn::data
