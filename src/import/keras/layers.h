// What each Keras layer computes when a model is used, as nodes of TensorFlow.
#pragma once

#include <string>
#include <vector>

#include "import/keras/graph_writer.h"

namespace orknn::importer::keras {

// One call of a layer.
struct LayerCall {
  GraphWriter& graph;
  const Json& layer;  // with class_name and config
  const Json& config;
  std::string path;  // of the layer; its weights are there, and below it
  const Weights& weights;
  std::vector<Tensor> inputs;
  int64_t batch = 1;    // samples of the model's inputs
  int generation = 3;   // of Keras
  Json arguments = {};  // of the call, where the file states them (Keras 3): "args" and "kwargs"

  const Tensor& input() const { return inputs.front(); }
  // The weight that the layer made in place `index`.
  Result<Weight> weight(size_t index, std::string_view below = {}) const;
  bool channels_last() const { return config["data_format"].string("channels_last") != "channels_first"; }
};

bool is_known_layer(const Json& layer);
Result<Tensor> lower_layer(LayerCall& call);

// Shared with functions of the same meaning.
Result<Tensor> softmax(GraphWriter& g, const Tensor& x, int64_t axis);
// By name, or by the description of a layer.
Result<Tensor> activated(LayerCall& call, const Tensor& x, const Json& activation);

}  // namespace orknn::importer::keras
