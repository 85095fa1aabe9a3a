// A Keras model as a list of calls of layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/keras/weights.h"
#include "import/lower/network.h"

namespace orknn::importer::keras {

struct Model {
  Json description;  // class_name and config, of a Sequential or a model of connected layers
  Weights weights;
  std::string version;  // of Keras

  int generation() const { return version.starts_with("2") || version.starts_with("1") ? 2 : 3; }
};

// One call of a layer.
struct Call {
  const Json* layer = nullptr;       // with class_name and config
  std::string path;                  // of the layer; its weights are there, and below it
  std::vector<std::string> inputs;   // the tensors that its arguments hold, in their order
  std::vector<std::string> outputs;  // as many as are read, at least one
  Json arguments = {};               // as Keras 3 states them, "args" and "kwargs"; null: the inputs alone
};

// Models in models are taken apart: their calls stand beside the others.
struct FlatModel {
  std::vector<Call> calls;  // in an order of execution
  std::vector<Port> inputs;
  std::vector<std::string> outputs;
};
Result<FlatModel> flatten(const Json& model, int generation);
// The same of a model inside a layer: its layers are below `path`, and it is called with these tensors.
Result<FlatModel> flatten_inner(const Json& model, int generation, const std::string& path,
                                const std::vector<std::string>& inputs);

}  // namespace orknn::importer::keras
