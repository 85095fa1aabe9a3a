// Recurrent layers and cells. PyTorch's gates come in another order than ours.
#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

enum class Cell { Lstm, Gru, Tanh, Relu };
int64_t gate_count(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

// Blocks of rows of a weight or bias, in our order: LSTM i, o, f, c out of i, f, c, o; GRU z, r, h out of r, z, h.
TensorId reordered(Call& c, TensorId x, Cell cell, int64_t hidden) {
  if (cell != Cell::Lstm && cell != Cell::Gru) return x;
  static constexpr int64_t kLstm[] = {0, 3, 1, 2}, kGru[] = {1, 0, 2};
  std::vector<TensorId> parts;
  for (int64_t g = 0; g < gate_count(cell); ++g) {
    const int64_t from = cell == Cell::Lstm ? kLstm[g] : kGru[g];
    parts.push_back(c.slice(x, 0, from * hidden, (from + 1) * hidden));
  }
  return c.concat(std::move(parts), 0);
}

bool is_zero(Call& c, TensorId x) {
  const ir::Node* node = c.graph().producer_node(x);
  while (node && node->op == "Slice") {
    x = node->inputs[0];
    node = c.graph().producer_node(x);
  }
  const ir::TensorData* value = c.constant_of(x);
  if (!value && node && node->op == "ConstantOfShape")
    value = node->attributes.get<ir::TensorData>("value");  // a large one is not computed while importing
  if (!value) return node && node->op == "ConstantOfShape";
  const std::vector<double> all = ir::to_doubles(value->view());
  return std::all_of(all.begin(), all.end(), [](double v) { return v == 0; });
}

// An LSTM with a projection P is a plain one of the states before it, with the recurrent weights R*P, and P applied to what it
// gives. Only the first state has no such form: it enters as further features of the first step of each direction, which R
// weighs.
TensorId with_first_state(Call& c, TensorId x, TensorId state, const Dims& dims) {
  const auto state_dims = c.dims_of(state);
  if (!state_dims) return x;
  std::vector<TensorId> features{x};
  for (int64_t d = 0; d < (*state_dims)[0]; ++d) {
    const TensorId first = c.slice(state, 0, d, d + 1);
    if (dims[0] == 1) {
      features.push_back(first);
      continue;
    }
    const TensorId others = c.full(Dims{dims[0] - 1, (*state_dims)[1], (*state_dims)[2]}, 0, c.dtype_of(x));
    features.push_back(d == 0 ? c.concat({first, others}, 0) : c.concat({others, first}, 0));
  }
  return c.concat(std::move(features), 2);
}

Result<Value> layer(Call& c, Cell cell) {
  const bool has_biases = c.flag("has_biases"), bidirectional = c.flag("bidirectional"), batch_first = c.flag("batch_first");
  const int64_t layers = c.integer("num_layers"), directions = bidirectional ? 2 : 1;
  if (c.flag("train") && c.number("dropout") != 0 && layers > 1) c.warn_of_training("the dropout between layers");
  const auto& params = c.items("params");
  std::vector<Value> states;
  if (cell == Cell::Lstm)
    states = c.items("hx");
  else
    states = {c.value("hx")};
  if (states.size() != (cell == Cell::Lstm ? 2u : 1u)) return invalid_model("a recurrent layer has the wrong number of states");
  if (layers < 1 || layers > 1000)
    return invalid_model("a recurrent layer has an illegal number of layers").found(std::to_string(layers));
  const size_t plain = has_biases ? 4 : 2;
  const bool is_projected = cell == Cell::Lstm && params.size() == (plain + 1) * static_cast<size_t>(layers * directions);
  const size_t per_layer = is_projected ? plain + 1 : plain;
  if (params.size() != per_layer * static_cast<size_t>(layers * directions))
    return c.fail("a recurrent layer has an unexpected number of weights")
        .expected(std::to_string(per_layer) + " per layer and direction")
        .found(std::to_string(params.size()));
  const auto is_tensor = [](const Value& v) { return v.is_tensor(); };
  if (!std::all_of(params.begin(), params.end(), is_tensor) || !std::all_of(states.begin(), states.end(), is_tensor))
    return invalid_model("a weight or state of a recurrent layer is missing");
  const bool lacks_batch = c.rank("input") == 2;
  if (c.rank("input") != 3 && !lacks_batch)
    return invalid_model("a recurrent layer needs [time, batch, features]").found(ir::to_string(c.dims("input")));
  TensorId x = c.tensor("input");
  if (lacks_batch) {
    x = c.unsqueeze(x, {1});
    for (Value& s : states) {
      ORKNN_TRY_ASSIGN(s, c.made(c.unsqueeze(s.tensor().id, {1})));
    }
  } else if (batch_first) {
    x = c.transpose(x, {1, 0, 2});
  }
  for (const Value& s : states)
    if (s.tensor().dims.size() != 3 || s.tensor().dims[0] != layers * directions)
      return invalid_model("a state of a recurrent layer has the wrong shape").found(ir::to_string(s.tensor().dims));
  std::vector<TensorId> final_states[2];
  for (int64_t l = 0; l < layers; ++l) {
    std::vector<TensorId> weights, recurrences, biases, projections;
    int64_t hidden = 0;
    std::vector<TensorId> layer_states;
    for (const Value& s : states)
      layer_states.push_back(layers == 1 ? s.tensor().id : c.slice(s.tensor().id, 0, l * directions, (l + 1) * directions));
    const auto sequence_dims = c.dims_of(x);
    if (!sequence_dims) return c.made(x);
    if (is_projected && !is_zero(c, layer_states[0])) x = with_first_state(c, x, layer_states[0], *sequence_dims);
    for (int64_t d = 0; d < directions; ++d) {
      const size_t at = static_cast<size_t>(l * directions + d) * per_layer;
      const TensorValue &w = params[at].tensor(), &r = params[at + 1].tensor();
      if (w.dims.size() != 2 || r.dims.size() != 2) return invalid_model("a weight of a recurrent layer is no matrix");
      hidden = is_projected ? r.dims[0] / gate_count(cell) : r.dims[1];
      if (hidden < 1 || r.dims[0] != hidden * gate_count(cell) || w.dims[0] != r.dims[0])
        return invalid_model("the weights of a recurrent layer do not fit each other")
            .found(ir::to_string(w.dims) + " and " + ir::to_string(r.dims));
      TensorId weight = reordered(c, w.id, cell, hidden), recurrence = reordered(c, r.id, cell, hidden);
      if (is_projected) {
        const TensorValue& p = params[at + plain].tensor();
        if (p.dims != Dims{r.dims[1], hidden})
          return invalid_model("the projection of a recurrent layer does not fit its weights")
              .expected(ir::to_string(Dims{r.dims[1], hidden}))
              .found(ir::to_string(p.dims));
        if (!is_zero(c, layer_states[0])) {
          std::vector<TensorId> wide{weight, recurrence};
          if (directions == 2) wide.insert(d == 0 ? wide.end() : wide.begin() + 1, c.full(r.dims, 0, c.dtype_of(recurrence)));
          weight = c.concat(std::move(wide), 1);
        }
        recurrence = c.matmul(recurrence, p.id);
        projections.push_back(c.unsqueeze(c.swap_axes(p.id, 0, 1), {0}));
      }
      weights.push_back(c.unsqueeze(weight, {0}));
      recurrences.push_back(c.unsqueeze(recurrence, {0}));
      if (has_biases) {
        const TensorId both = c.concat(
            {reordered(c, params[at + 2].tensor().id, cell, hidden), reordered(c, params[at + 3].tensor().id, cell, hidden)}, 0);
        biases.push_back(c.unsqueeze(both, {0}));
      }
    }
    std::vector<TensorId> inputs{x, c.concat(std::move(weights), 0), c.concat(std::move(recurrences), 0),
                                 has_biases ? c.concat(std::move(biases), 0) : TensorId{}, TensorId{}};
    if (is_projected) layer_states[0] = c.full(Dims{directions, (*sequence_dims)[1], hidden}, 0, c.dtype_of(x));
    inputs.insert(inputs.end(), layer_states.begin(), layer_states.end());
    ir::Attributes attributes{{"hidden_size", hidden}, {"direction", std::string(bidirectional ? "bidirectional" : "forward")}};
    if (cell == Cell::Gru) attributes.set("linear_before_reset", int64_t{1});
    if (cell == Cell::Relu) attributes.set("activations", std::vector<std::string>(static_cast<size_t>(directions), "Relu"));
    const size_t outputs = cell == Cell::Lstm ? 3 : 2;
    auto made = c.emit_all(cell == Cell::Lstm  ? "LSTM"
                           : cell == Cell::Gru ? "GRU"
                                               : "RNN",
                           std::move(inputs), std::move(attributes), outputs);
    if (is_projected) {
      const TensorId projection = c.concat(std::move(projections), 0);  // [directions, hidden, size]
      for (size_t i = 0; i < 2; ++i) made[i] = c.matmul(made[i], projection);
    }
    for (size_t i = 1; i < outputs; ++i) final_states[i - 1].push_back(made[i]);
    // [time, directions, batch, hidden] becomes [time, batch, directions * hidden].
    const auto steps = c.dims_of(made[0]);
    if (!steps) return c.made(made[0]);
    x = c.reshape(c.transpose(made[0], {0, 2, 1, 3}), {(*steps)[0], (*steps)[2], directions * (*steps)[3]});
  }
  if (lacks_batch)
    x = c.squeeze(x, {1});
  else if (batch_first)
    x = c.transpose(x, {1, 0, 2});
  std::vector<Value> results;
  ORKNN_TRY_ASSIGN(const Value sequence, c.made(x));
  results.push_back(sequence);
  for (auto& list : final_states) {
    if (list.empty()) continue;
    TensorId state = c.concat(std::move(list), 0);
    if (lacks_batch) state = c.squeeze(state, {1});
    ORKNN_TRY_ASSIGN(const Value v, c.made(state));
    results.push_back(v);
  }
  return c.tuple(std::move(results));
}
template <Cell Kind>
Result<Value> layer_of(Call& c) {
  return layer(c, Kind);
}
Result<Value> packed(Call& c) {
  return c.fail("recurrent layers over packed sequences are not supported").hint("pass padded sequences of one length");
}

// --- cells: one step
TensorId gates_of(Call& c, TensorId x, std::string_view weight, std::string_view bias) {
  const TensorId y = c.matmul(x, c.swap_axes(c.tensor(weight), 0, 1));
  return c.has(bias) ? c.add(y, c.tensor(bias)) : y;
}
// Gates are chunks of the last axis.
TensorId gate(Call& c, TensorId all, int64_t number, int64_t hidden) {
  return c.slice(all, -1, number * hidden, (number + 1) * hidden);
}

Result<int64_t> hidden_size(Call& c, int64_t gates) {
  const Dims &w = c.dims("w_ih"), &r = c.dims("w_hh");
  if (w.size() != 2 || r.size() != 2 || w[0] != r[0] || r[0] != gates * r[1])
    return invalid_model("the weights of a recurrent cell do not fit each other")
        .found(ir::to_string(w) + " and " + ir::to_string(r));
  return r[1];
}
Result<Value> lstm_cell(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t hidden, hidden_size(c, 4));
  const auto& hx = c.items("hx");
  if (hx.size() != 2 || !hx[0].is_tensor() || !hx[1].is_tensor()) return invalid_model("an LSTM cell has two states");
  const TensorId all = c.add(gates_of(c, c.tensor("input"), "w_ih", "b_ih"), gates_of(c, hx[0].tensor().id, "w_hh", "b_hh"));
  const TensorId i = c.emit("Sigmoid", {gate(c, all, 0, hidden)}), f = c.emit("Sigmoid", {gate(c, all, 1, hidden)});
  const TensorId g = c.emit("Tanh", {gate(c, all, 2, hidden)}), o = c.emit("Sigmoid", {gate(c, all, 3, hidden)});
  const TensorId cell = c.add(c.mul(f, hx[1].tensor().id), c.mul(i, g));
  ORKNN_TRY_ASSIGN(const Value h, c.made(c.mul(o, c.emit("Tanh", {cell}))));
  ORKNN_TRY_ASSIGN(const Value s, c.made(cell));
  return c.tuple({h, s});
}
Result<Value> gru_cell(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t hidden, hidden_size(c, 3));
  const TensorId h = c.tensor("hx");
  const TensorId from_input = gates_of(c, c.tensor("input"), "w_ih", "b_ih"), from_state = gates_of(c, h, "w_hh", "b_hh");
  const auto both = [&](int64_t number) {
    return c.emit("Sigmoid", {c.add(gate(c, from_input, number, hidden), gate(c, from_state, number, hidden))});
  };
  const TensorId reset = both(0), update = both(1);
  const TensorId fresh = c.emit("Tanh", {c.add(gate(c, from_input, 2, hidden), c.mul(reset, gate(c, from_state, 2, hidden)))});
  return c.made(c.add(fresh, c.mul(update, c.sub(h, fresh))));
}
template <OpName Activation>
Result<Value> plain_cell(Call& c) {
  ORKNN_TRY(hidden_size(c, 1).status());
  return c.made(c.emit(Activation.string(),
                       {c.add(gates_of(c, c.tensor("input"), "w_ih", "b_ih"), gates_of(c, c.tensor("hx"), "w_hh", "b_hh"))}));
}

#define ORKNN_RECURRENT \
  "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)"
#define ORKNN_PACKED "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
#define ORKNN_CELL "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)"
}  // namespace

std::span<const Row> recurrent_rows() {
  static constexpr Row kRows[] = {
      {"lstm(Tensor input, Tensor[] hx, " ORKNN_RECURRENT, layer_of<Cell::Lstm>},
      {"gru(Tensor input, Tensor hx, " ORKNN_RECURRENT, layer_of<Cell::Gru>},
      {"rnn_tanh(Tensor input, Tensor hx, " ORKNN_RECURRENT, layer_of<Cell::Tanh>},
      {"rnn_relu(Tensor input, Tensor hx, " ORKNN_RECURRENT, layer_of<Cell::Relu>},
      {"lstm(Tensor data, Tensor batch_sizes, Tensor[] hx, " ORKNN_PACKED, packed},
      {"gru(Tensor data, Tensor batch_sizes, Tensor hx, " ORKNN_PACKED, packed},
      {"rnn_tanh(Tensor data, Tensor batch_sizes, Tensor hx, " ORKNN_PACKED, packed},
      {"rnn_relu(Tensor data, Tensor batch_sizes, Tensor hx, " ORKNN_PACKED, packed},
      {"_pack_padded_sequence(...)", packed},
      {"lstm_cell(Tensor input, Tensor[] hx, " ORKNN_CELL, lstm_cell},
      {"gru_cell(Tensor input, Tensor hx, " ORKNN_CELL, gru_cell},
      {"rnn_tanh_cell(Tensor input, Tensor hx, " ORKNN_CELL, plain_cell<"Tanh">},
      {"rnn_relu_cell(Tensor input, Tensor hx, " ORKNN_CELL, plain_cell<"Relu">},
  };
  return kRows;
}
#undef ORKNN_RECURRENT
#undef ORKNN_PACKED
#undef ORKNN_CELL

}  // namespace orknn::importer::pytorch
