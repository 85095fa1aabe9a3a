// RKNN_FLAG_SHARE_WEIGHT_MEM: two models of the same weights, held in memory once.
#pragma once

#include "format/program.h"

namespace orknn::runtime {

// Lets the constants of `model` that `donor` has too refer to the donor's bytes. An error when it has none of them: the models
// have nothing in common.
Status share_weights(const format::Model& donor, format::Model& model);

}  // namespace orknn::runtime
