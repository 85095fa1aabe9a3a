// Convolutions by their weights and geometry, for plain layers and for those with packed weights.
#pragma once

#include "import/pytorch/call.h"

namespace orknn::importer::pytorch {

// Lists have one entry, or one per spatial axis.
struct ConvolutionGeometry {
  std::vector<int64_t> stride{1}, padding{0}, dilation{1}, output_padding{0};
  int64_t groups = 1;
  bool transposed = false;
  bool is_same = false;  // as much padding as keeps the extents, the odd element at the end, instead of `padding`
};
// `bias` may be none. Weights [out, in / groups, ...], transposed ones [in, out / groups, ...].
Result<ir::TensorId> convolved(Call& c, ir::TensorId x, ir::TensorId weight, ir::TensorId bias, ConvolutionGeometry geometry);

// For a layer on pictures that found none: when `t` is an input of the model whose size the user gave without the batch, as
// scripts for the first toolkit do, the import begins again with it, and the status says so.
Status ask_for_batch(Call& c, const TensorValue& t);

}  // namespace orknn::importer::pytorch
