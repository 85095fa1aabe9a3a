// Depthwise convolution of floats with channels in the lanes: what its kernels for rows and for maps in blocks share.
#pragma once

#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim::kernels {

struct DepthwiseLanes {
  Window window;
  int64_t channels = 0, blocks = 0;  // blocks of kLaneChannels channels
  int64_t pitch = 0;                 // pixels from row to row of what is read
  std::vector<int64_t> offsets;      // per tap, in floats
  AlignedFloats weights;             // [block][tap][kLaneChannels]
  AlignedFloats bias;                // [block][kLaneChannels]

  // False for other nodes, for few channels, and for windows that would need a buffer out of proportion to the data.
  static bool accepts(const KernelQuery& query);
  // For a node that accepts() takes; `row_pixels` becomes the pitch, 0 = that of padded rows.
  Status take(const KernelQuery& query, int64_t row_pixels);
  // Rows of results whose padded input fits `bytes`, as even as possible; at least four where there are so many.
  int64_t band_rows(int64_t bytes) const;
  // `rows` rows of results of a block; where they lie and what they read is left to the caller.
  DepthwisePixels pixels(int64_t block, int64_t rows, const Clamp& clamp) const;
};
// Offsets of `columns` columns of a window's taps, in floats.
std::vector<int64_t> tap_offsets(const Window& window, int64_t columns, int64_t pitch);

}  // namespace orknn::sim::kernels
