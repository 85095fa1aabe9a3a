// The functions of keras.ops in functional models: what `x * 2 + y` and `ops.mean(x)` are stored as. They have no weights, and
// their arguments are tensors or numbers in any order.
#pragma once

#include "import/keras/layers.h"

namespace orknn::importer::keras {

// Whether a description is that of a function, not of the layer of the same name.
bool is_operation(const Json& layer);
bool is_known_operation(const std::string& class_name);
Result<Tensor> lower_operation(LayerCall& call);

}  // namespace orknn::importer::keras
