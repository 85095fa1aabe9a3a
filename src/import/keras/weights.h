// The weights of a Keras model, layer by layer, in the order in which the layer made them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/keras/hdf5.h"
#include "import/keras/json_tree.h"
#include "ir/tensor_data.h"

namespace orknn::importer::keras {

// float32, by the path of the layer: "conv1", "backbone/conv1", and of what is inside a layer, "lstm/cell".
using Weights = std::map<std::string, std::vector<ir::TensorData>, std::less<>>;

// Of a whole model in one HDF5 file (.h5): groups and names below model_weights.
Result<Weights> read_h5_weights(const Hdf5& file, const Json& model);
// Of the file model.weights.h5 in a .keras archive.
Result<Weights> read_archive_weights(const Hdf5& file, const Json& model);

// The layers of a model's description: a list in its config, or the config itself in files of early releases.
const std::vector<Json>& layers_of(const Json& model);
// A layer's name.
std::string name_of(const Json& layer);
bool is_model(const Json& layer);
// What a layer is called in an archive: its class in small letters with underscores.
std::string snake_case(const std::string& name);

}  // namespace orknn::importer::keras
