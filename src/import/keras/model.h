// A Keras model as a TensorFlow graph.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "import/keras/weights.h"

namespace orknn::importer::keras {

struct Model {
  Json description;  // class_name and config, of a Sequential or a model of connected layers
  Weights weights;
  std::string version;  // of Keras

  int generation() const { return version.starts_with("2") || version.starts_with("1") ? 2 : 3; }
};

struct TfGraph {
  std::vector<std::byte> bytes;               // a GraphDef
  std::vector<std::string> outputs;           // tensors, in the order of the model
  std::map<std::string, std::string> layers;  // the tensor that each layer's first call gives
  std::vector<std::string> warnings;          // what the graph leaves out
};

// Reports every layer that is not supported at once.
Result<TfGraph> to_tensorflow(const Model& model);

}  // namespace orknn::importer::keras
