// How files describe the calls of layers and functions.
#pragma once

#include "import/keras/json_tree.h"

namespace orknn::importer::keras {

// A tensor as Keras 2 states it, ["layer", 0, 0]: layer, call of it, result of that.
bool is_reference(const Json& value);
// A tensor that is stored with its values.
bool is_constant(const Json& value);
// The tensors that an argument holds at any depth, in their order, those with keys in the order of these: references and
// constants; limited in depth.
std::vector<const Json*> references_in(const Json& argument);
// Whether a call is described as Keras 3 does it, by "args" and "kwargs".
bool is_modern_call(const Json& stated);
// A call in this form: the list of tensors of Keras 2, or its map of them, is brought into it.
Json call_of(const Json& layer, const Json& stated);
// Whether a description is that of a function, not of the layer of the same name.
bool is_function(const Json& layer);
// What its row is called: the class of a layer or of a function of keras.ops, of those of TensorFlow the last part of the name
// (math.add and __operators__.add are the same).
std::string kind_of(const Json& layer);

}  // namespace orknn::importer::keras
