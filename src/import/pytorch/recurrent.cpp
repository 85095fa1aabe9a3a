// Recurrent layers and cells.
#include "import/lower/recurrent.h"

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

// The weights of every layer and direction: of input and state, their biases, the projection.
Result<std::vector<RecurrentWeights>> weights_of(Call& c, Cell cell, size_t count) {
  const bool has_biases = c.flag("has_biases");
  ORKNN_TRY_ASSIGN(const auto params, c.tensors("params"));
  const size_t plain = has_biases ? 4 : 2;
  const bool is_projected = cell == Cell::Lstm && params.size() == (plain + 1) * count;
  const size_t each = is_projected ? plain + 1 : plain;
  if (params.size() != each * count)
    return unsupported("a recurrent layer has an unexpected number of weights")
        .expected(std::to_string(each) + " per layer and direction")
        .found(std::to_string(params.size()));
  std::vector<RecurrentWeights> weights;
  for (size_t at = 0; at < params.size(); at += each) {
    RecurrentWeights& w = weights.emplace_back();
    w.input = params[at];
    w.state = params[at + 1];
    if (has_biases) w.input_bias = params[at + 2], w.state_bias = params[at + 3];
    if (is_projected) w.projection = params[at + plain];
  }
  return weights;
}

template <Cell Kind>
Result<std::vector<TensorId>> layer(Call& c) {
  const int64_t layers = c.integer("num_layers"), directions = c.flag("bidirectional") ? 2 : 1;
  if (c.flag("train") && c.number("dropout") != 0 && layers > 1) c.warn_of_training("the dropout between layers");
  if (layers < 1 || layers > 1000)
    return invalid_model("a recurrent layer has an illegal number of layers").found(std::to_string(layers));
  RecurrentLayers all{.cell = Kind, .order = usual_order(Kind), .directions = directions};
  ORKNN_TRY_ASSIGN(all.weights, weights_of(c, Kind, static_cast<size_t>(layers * directions)));
  const std::vector<Value> states = Kind == Cell::Lstm ? c.items("hx") : std::vector<Value>{c.value("hx")};
  const bool lacks_batch = c.rank("input") == 2;
  if (c.rank("input") != 3 && !lacks_batch)
    return invalid_model("a recurrent layer needs [time, batch, features]").found(ir::to_string(c.dims("input")));
  for (const Value& s : states) {
    if (!s.is_tensor()) return invalid_model("a weight or state of a recurrent layer is missing");
    if (s.tensor().dims.size() != (lacks_batch ? 2u : 3u) || s.tensor().dims[0] != layers * directions)
      return invalid_model("a state of a recurrent layer has the wrong shape").found(ir::to_string(s.tensor().dims));
    all.states.push_back(lacks_batch ? c.unsqueeze(s.tensor().id, {1}) : s.tensor().id);
  }
  const bool batch_first = c.flag("batch_first") && !lacks_batch;
  const TensorId x = c.tensor("input");
  ORKNN_TRY_ASSIGN(RecurrentResult y, run_recurrent(c,
                                                    lacks_batch   ? c.unsqueeze(x, {1})
                                                    : batch_first ? c.transpose(x, {1, 0, 2})
                                                                  : x,
                                                    all));
  std::vector<TensorId> results{batch_first ? c.transpose(y.sequence, {1, 0, 2}) : y.sequence};
  results.insert(results.end(), y.states.begin(), y.states.end());
  if (lacks_batch)
    for (TensorId& id : results) id = c.squeeze(id, {1});
  return results;
}
Status packed(Call&) {
  return unsupported("recurrent layers over packed sequences are not supported").hint("pass padded sequences of one length");
}

// --- cells: one step
TensorId gates_of(Call& c, TensorId x, std::string_view weight, std::string_view bias) {
  const TensorId y = c.matmul(x, c.swap_axes(c.tensor(weight), 0, 1));
  return c.has(bias) ? c.add(y, c.tensor(bias)) : y;
}
TensorId from_input(Call& c) { return gates_of(c, c.tensor("input"), "w_ih", "b_ih"); }
TensorId from_state(Call& c, TensorId h) { return gates_of(c, h, "w_hh", "b_hh"); }

Result<int64_t> units_of_cell(Call& c, Cell cell) {
  const Dims &w = c.dims("w_ih"), &r = c.dims("w_hh");
  if (w.size() != 2 || r.size() != 2 || w[0] != r[0] || r[0] != gate_count(cell) * r[1])
    return invalid_model("the weights of a recurrent cell do not fit each other")
        .found(ir::to_string(w) + " and " + ir::to_string(r));
  return r[1];
}
Result<std::vector<TensorId>> lstm_cell(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t units, units_of_cell(c, Cell::Lstm));
  ORKNN_TRY_ASSIGN(const auto hx, c.tensors("hx"));
  if (hx.size() != 2) return invalid_model("an LSTM cell has two states");
  const LstmState s = lstm_step(c, c.add(from_input(c), from_state(c, hx[0])), hx[1], kGatesIfco, units);
  return std::vector<TensorId>{s.hidden, s.cell};
}
Result<TensorId> gru_cell(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t units, units_of_cell(c, Cell::Gru));
  const TensorId h = c.tensor("hx");
  return gru_step(c, from_input(c), from_state(c, h), h, kGatesRzh, units);
}
template <OpName Activation>
Result<TensorId> plain_cell(Call& c) {
  ORKNN_TRY(units_of_cell(c, Cell::Tanh).status());
  return c.unary(Activation.chars, c.add(from_input(c), from_state(c, c.tensor("hx"))));
}

#define ORKNN_RECURRENT \
  "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)"
#define ORKNN_PACKED "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
#define ORKNN_CELL "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)"
}  // namespace

std::span<const Row> recurrent_rows() {
  static const Row rows[] = {
      {"lstm(Tensor input, Tensor[] hx, " ORKNN_RECURRENT, layer<Cell::Lstm>},
      {"gru(Tensor input, Tensor hx, " ORKNN_RECURRENT, layer<Cell::Gru>},
      {"rnn_tanh(Tensor input, Tensor hx, " ORKNN_RECURRENT, layer<Cell::Tanh>},
      {"rnn_relu(Tensor input, Tensor hx, " ORKNN_RECURRENT, layer<Cell::Relu>},
      {"lstm(Tensor data, Tensor batch_sizes, Tensor[] hx, " ORKNN_PACKED, packed},
      {"gru|rnn_tanh|rnn_relu(Tensor data, Tensor batch_sizes, Tensor hx, " ORKNN_PACKED, packed},
      {"_pack_padded_sequence(...)", packed},
      {"lstm_cell(Tensor input, Tensor[] hx, " ORKNN_CELL, lstm_cell},
      {"gru_cell(Tensor input, Tensor hx, " ORKNN_CELL, gru_cell},
      {"rnn_tanh_cell(Tensor input, Tensor hx, " ORKNN_CELL, plain_cell<"Tanh">},
      {"rnn_relu_cell(Tensor input, Tensor hx, " ORKNN_CELL, plain_cell<"Relu">},
  };
  return rows;
}
#undef ORKNN_RECURRENT
#undef ORKNN_PACKED
#undef ORKNN_CELL

}  // namespace orknn::importer::pytorch
