// Normalizations that plain and quantized layers share. All read argument `eps`.
#pragma once

#include "import/pytorch/call.h"

namespace orknn::importer::pytorch {

Result<ir::TensorId> group_norm_layer(Call& c, ir::TensorId x, ir::TensorId weight, ir::TensorId bias);
Result<ir::TensorId> layer_norm_layer(Call& c, ir::TensorId x, ir::TensorId weight, ir::TensorId bias);
Result<ir::TensorId> batch_norm_by_stored(Call& c, ir::TensorId x, ir::TensorId weight, ir::TensorId bias, ir::TensorId mean,
                                          ir::TensorId variance);
Result<ir::TensorId> instance_norm_by_own(Call& c, ir::TensorId x, ir::TensorId weight, ir::TensorId bias);

}  // namespace orknn::importer::pytorch
