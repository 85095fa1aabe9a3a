// quantized_hybrid_level: a fixed part of the layers stays in float, those first whose values 8 bits describe worst. Cheaper than
// auto_hybrid, which computes networks to find the fewest layers.
#pragma once

#include <string>
#include <vector>

#include "quantize/calibrate.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {

struct LevelChoice {
  LayerNames float_layers;
  std::string summary;  // a sentence; empty at level 0
};

// `level` 0 to 3; `bits` of the integers. A layer's figure is the noise of rounding by the size of its values, both as
// calibration saw them.
LevelChoice layers_of_level(const ir::Graph& graph, const quantize::LayerForms& forms,
                            const quantize::TensorStatistics& statistics, int level, int bits);

}  // namespace orknn::toolkit
