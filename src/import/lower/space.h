// Elements moved between the spatial axes, the channels and the batch of pictures, and the dilated convolutions that older graphs
// write with them.
#pragma once

#include <unordered_map>

#include "import/lower/channels_last.h"

namespace orknn::importer {

Result<ir::TensorId> space_to_depth(Emitter& e, const PictureFormat& format, ir::TensorId x, int64_t block);
Result<ir::TensorId> depth_to_space(Emitter& e, const PictureFormat& format, ir::TensorId x, int64_t block);

// Blocks of the axes after the batch, and what is padded before they are cut or cropped after they are joined.
struct Blocks {
  std::vector<int64_t> block, begin, end;
};
// `sides` are rows of (begin, end).
Result<Blocks> blocks_of(std::vector<int64_t> block, const std::vector<int64_t>& sides);

// What space_to_batch made, by tensor, and from what.
struct CutIntoBatch {
  ir::TensorId source;
  Blocks blocks;
};
using CutTensors = std::unordered_map<int32_t, CutIntoBatch>;

// Pads with `outside`. The result is recorded in `cut`.
Result<ir::TensorId> space_to_batch(Emitter& e, ir::TensorId x, const Blocks& blocks, double outside, CutTensors& cut);
// The inverse. An undilated convolution between the two, with element-wise steps after it, becomes a dilated convolution with the
// padding of the first and the crops of the second.
Result<ir::TensorId> batch_to_space(Emitter& e, ir::TensorId x, const Blocks& blocks, const CutTensors& cut);

}  // namespace orknn::importer
