// The Python objects that a saved model of TensorFlow 2 was made from, as far as they say which variable has which value.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "import/tensorflow/parse.h"

namespace orknn::importer::tensorflow {

// Names of values in the files of variables, by the variable's node.
using ValueNames = std::map<std::string, std::string, std::less<>>;

// Of the variables that functions called by the graph were made with. `stored_objects`: the objects as the files of variables
// state them (VariableBundle::objects). Nothing for files without objects.
Result<ValueNames> names_by_objects(const GraphDef& graph, Bytes saved_model, Bytes stored_objects);

}  // namespace orknn::importer::tensorflow
