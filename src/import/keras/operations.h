// The functions of keras.ops in functional models: what `x * 2 + y` and `ops.mean(x)` are stored as. They have no weights, and
// their arguments are tensors or numbers in any order.
#pragma once

#include "import/keras/layers.h"

namespace orknn::importer::keras {

// A tensor as Keras 2 states it, ["layer", 0, 0], with named arguments of the call after it.
bool is_reference(const Json& value);
// One as Keras 3 states it.
bool is_tensor(const Json& value);
// The named arguments of a call in either form.
const Json& named_arguments(const Json& call);
// Whether a description is that of a function, not of the layer of the same name.
bool is_operation(const Json& layer);
bool is_known_operation(const Json& layer);
// What it is called in reports.
std::string operation_name(const Json& layer);
// A call as Keras 3 states it: "args" and "kwargs". Those of Keras 2's functions are brought into this form.
Json call_of(const Json& layer, const Json& call);
Result<Tensor> lower_operation(LayerCall& call);

}  // namespace orknn::importer::keras
