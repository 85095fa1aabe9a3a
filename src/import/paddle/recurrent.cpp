#include "import/lower/recurrent.h"

#include <algorithm>

#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
// [time, batch, features]. Weights come first, those of the input and of the state for each layer and direction, then biases
// alike.
Result<std::vector<TensorId>> rnn(Layer& l, TensorId x) {
  RecurrentLayers layers;
  layers.directions = l.flag("is_bidirec", false) ? 2 : 1;
  ORKNN_TRY_ASSIGN(layers.cell, cell_of_mode(l.text("mode", "RNN_TANH")));
  layers.order = usual_order(layers.cell);
  ORKNN_TRY_ASSIGN(layers.states, l.list(1));
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> weights, l.list(2));
  const int64_t cells = std::clamp<int64_t>(l.integer("num_layers", 1), 0, 1000) * layers.directions;
  if (cells < 1 || std::ssize(weights) != 4 * cells)
    return invalid_model("the layer has the wrong number of weights")
        .expected(std::to_string(4 * cells))
        .found(std::to_string(weights.size()));
  for (size_t i = 0; i < static_cast<size_t>(cells); ++i) {
    const size_t biases = 2 * static_cast<size_t>(cells);
    layers.weights.push_back({.input = weights[2 * i],
                              .state = weights[2 * i + 1],
                              .input_bias = weights[biases + 2 * i],
                              .state_bias = weights[biases + 2 * i + 1]});
  }
  if (const TensorId lengths = l.input(3)) layers.lengths = l.cast(lengths, DType::Int32);
  ORKNN_TRY_ASSIGN(const RecurrentResult result, run_recurrent(l, x, layers));
  std::vector<TensorId> outputs{result.sequence};
  if (l.op().outputs.size() > 2) {
    outputs.insert(outputs.end(), l.op().outputs[1].size(), TensorId{});  // state of the dropout
    for (size_t i = 0; i < l.op().outputs[2].size(); ++i)
      outputs.push_back(i < result.states.size() ? result.states[i] : TensorId{});
  }
  return outputs;
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static const Row rows[] = {{"rnn", rnn}};
  return rows;
}

}  // namespace orknn::importer::paddle
