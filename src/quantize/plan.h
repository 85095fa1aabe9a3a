// What was decided about a network before it becomes one of integers: each fact once.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "quantize/layer_forms.h"
#include "quantize/weights.h"

namespace orknn::quantize {

// Constant weights of a convolution or product as integers.
struct LayerWeights {
  QuantizedWeights rounded;
  std::optional<int64_t> axis;  // of the output channels, where each has a scale of its own
  std::vector<double> bias;     // in real numbers; empty = none
  std::vector<double> shift;    // what rounding took from the mean of each output channel; empty = not known
};

struct Plan {
  std::vector<std::optional<ir::QuantParams>> tensors;  // by tensor index; nothing = stays in float
  std::vector<DType> types;                             // by tensor index: of its integers
  LayerForms forms;                                     // what each layer becomes
  std::map<int32_t, LayerWeights> weights;              // by node index
  bool integer_inputs = false;                          // inputs with parameters are integers, whoever reads them

  LayerForm& form(ir::NodeId id) { return forms[id]; }
  const LayerForm& form(ir::NodeId id) const { return forms[id]; }
  const std::optional<ir::QuantParams>& parameters(ir::TensorId t) const { return tensors[static_cast<size_t>(t.index)]; }
  DType type(ir::TensorId t) const { return types[static_cast<size_t>(t.index)]; }
};

}  // namespace orknn::quantize
