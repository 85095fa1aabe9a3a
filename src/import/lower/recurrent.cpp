#include "import/lower/recurrent.h"

#include <algorithm>
#include <cctype>

namespace orknn::importer {
using namespace ir;

int64_t gate_count(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

GateOrder usual_order(Cell cell) {
  return cell == Cell::Lstm ? GateOrder(kGatesIfco) : cell == Cell::Gru ? GateOrder(kGatesRzh) : GateOrder();
}

Result<Cell> cell_of_mode(std::string mode) {
  for (char& c : mode) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (mode == "lstm") return Cell::Lstm;
  if (mode == "gru") return Cell::Gru;
  if (mode == "rnn_tanh") return Cell::Tanh;
  if (mode == "rnn_relu") return Cell::Relu;
  return unsupported("unknown mode").expected("lstm, gru, rnn_tanh or rnn_relu").found("'" + mode + "'");
}

TensorId in_our_order(Emitter& e, TensorId x, GateOrder order, int64_t units, int64_t axis) {
  if (order.empty()) return x;
  std::vector<TensorId> parts;
  for (int64_t block : order) parts.push_back(e.slice(x, axis, block * units, (block + 1) * units));
  return e.concat(std::move(parts), axis);
}

namespace {
// Whether a first state is known to be zeros; large ones and parts of them are not computed while importing.
bool is_zero(Emitter& e, TensorId x) {
  const Node* node = e.graph().producer_node(x);
  while (node && node->op == "Slice") {
    x = node->inputs[0];
    node = e.graph().producer_node(x);
  }
  const TensorData* value = e.constant_of(x);
  if (!value && node && node->op == "ConstantOfShape") value = node->attributes.get<TensorData>("value");
  if (!value) return node && node->op == "ConstantOfShape";
  return std::ranges::all_of(to_doubles(value->view()), [](double v) { return v == 0; });
}

// An LSTM with a projection P is a plain one of the states before it, with the recurrent weights R*P, and P applied to what it
// gives. Only the first state has no such form: it enters as further features of the first step of each direction, which R
// weighs.
TensorId with_first_state(Emitter& e, TensorId x, TensorId state, int64_t steps, const Dims& state_dims) {
  std::vector<TensorId> features{x};
  for (int64_t d = 0; d < state_dims[0]; ++d) {
    const TensorId first = e.slice(state, 0, d, d + 1);
    if (steps == 1) {
      features.push_back(first);
      continue;
    }
    const TensorId others = e.full(Dims{steps - 1, state_dims[1], state_dims[2]}, 0, e.dtype_of(x));
    features.push_back(d == 0 ? e.concat({first, others}, 0) : e.concat({others, first}, 0));
  }
  return e.concat(std::move(features), 2);
}

Result<int64_t> units_of(Emitter& e, Cell cell, const RecurrentWeights& w) {
  ORKNN_TRY_ASSIGN(const Dims input, e.need_dims(w.input, "to read the weights"));
  ORKNN_TRY_ASSIGN(const Dims state, e.need_dims(w.state, "to read the weights"));
  if (input.size() != 2 || state.size() != 2) return invalid_model("a weight of a recurrent layer is not a matrix");
  const int64_t gates = gate_count(cell), units = w.projection ? state[0] / gates : state[1];
  if (units < 1 || state[0] != units * gates || input[0] != state[0])
    return invalid_model("the weights of a recurrent layer do not fit each other")
        .found(to_string(input) + " and " + to_string(state));
  if (!w.projection) return units;
  ORKNN_TRY_ASSIGN(const Dims projection, e.need_dims(w.projection, "to read the weights"));
  if (projection != Dims{state[1], units})
    return invalid_model("the projection of a recurrent layer does not fit its weights")
        .expected(to_string(Dims{state[1], units}))
        .found(to_string(projection));
  return units;
}

// The weights of a layer's directions as our operators take them.
struct Joined {
  std::vector<TensorId> inputs, states, biases, projections, peepholes;
  int64_t units = 0;
};

// `weighs_first`: the first state of every direction follows the features, see with_first_state.
Status add_direction(Emitter& e, const RecurrentLayers& layers, const RecurrentWeights& w, size_t direction, bool weighs_first,
                     Joined& joined) {
  ORKNN_TRY_ASSIGN(const int64_t units, units_of(e, layers.cell, w));
  joined.units = units;
  const auto ordered = [&](TensorId x) { return in_our_order(e, x, layers.order, units); };
  TensorId input = ordered(w.input), state = ordered(w.state);
  if (w.projection) {
    if (weighs_first) {
      std::vector<TensorId> wide{input, state};
      if (layers.directions == 2)
        wide.insert(direction == 0 ? wide.end() : wide.begin() + 1, e.full(*e.dims_of(w.state), 0, e.dtype_of(state)));
      input = e.concat(std::move(wide), 1);
    }
    state = e.matmul(state, w.projection);
    joined.projections.push_back(e.unsqueeze(e.swap_axes(w.projection, 0, 1), {0}));
  }
  joined.inputs.push_back(e.unsqueeze(input, {0}));
  joined.states.push_back(e.unsqueeze(state, {0}));
  if (w.peepholes) joined.peepholes.push_back(e.unsqueeze(w.peepholes, {0}));
  if (!w.input_bias && !w.state_bias) return {};
  const auto bias = [&](TensorId b) {
    return b ? ordered(b) : e.full(Dims{units * gate_count(layers.cell)}, 0, e.dtype_of(state));
  };
  joined.biases.push_back(e.unsqueeze(e.concat({bias(w.input_bias), bias(w.state_bias)}, 0), {0}));
  return {};
}

Attributes attributes_of(const RecurrentLayers& layers, int64_t units) {
  const char* const direction = layers.directions == 2 ? "bidirectional" : layers.is_backward ? "reverse" : "forward";
  Attributes a{{"hidden_size", units}, {"direction", std::string(direction)}};
  if (layers.cell == Cell::Gru) a.set("linear_before_reset", int64_t{!layers.resets_first});
  if (layers.cell == Cell::Relu) a.set("activations", std::vector<std::string>(static_cast<size_t>(layers.directions), "Relu"));
  if (!layers.activations.empty()) a.set("activations", layers.activations);
  if (!layers.alphas.empty()) a.set("activation_alpha", layers.alphas);
  return a;
}

Result<RecurrentResult> run_layer(Emitter& e, TensorId x, const RecurrentLayers& layers,
                                  std::span<const RecurrentWeights> weights, std::vector<TensorId> states) {
  const bool is_projected = static_cast<bool>(weights[0].projection);
  const bool weighs_first = is_projected && states[0] && !is_zero(e, states[0]);
  Dims dims;
  if (is_projected) {
    ORKNN_TRY_ASSIGN(dims, e.need_dims(x, "to run a projected layer"));
  }
  if (weighs_first) {
    ORKNN_TRY_ASSIGN(const Dims state_dims, e.need_dims(states[0], "to run a projected layer"));
    if (dims.size() != 3 || state_dims.size() != 3 || state_dims[1] != dims[1])
      return shape_mismatch("a state of a recurrent layer has the wrong shape").found(to_string(state_dims));
    x = with_first_state(e, x, states[0], dims[0], state_dims);
  }
  Joined joined;
  for (size_t d = 0; d < weights.size(); ++d) ORKNN_TRY(add_direction(e, layers, weights[d], d, weighs_first, joined));
  const bool has_biases = joined.biases.size() == weights.size();
  if (is_projected && states[0]) states[0] = e.full(Dims{layers.directions, dims[1], joined.units}, 0, e.dtype_of(x));
  std::vector<TensorId> inputs{x, e.concat(std::move(joined.inputs), 0), e.concat(std::move(joined.states), 0),
                               has_biases ? e.concat(std::move(joined.biases), 0) : TensorId{}, layers.lengths};
  inputs.insert(inputs.end(), states.begin(), states.end());
  if (!joined.peepholes.empty()) inputs.push_back(e.concat(std::move(joined.peepholes), 0));
  const std::string op = layers.cell == Cell::Lstm ? "LSTM" : layers.cell == Cell::Gru ? "GRU" : "RNN";
  auto made = e.emit_all(op, std::move(inputs), attributes_of(layers, joined.units), layers.cell == Cell::Lstm ? 3 : 2);
  if (is_projected) {
    const TensorId projection = e.concat(std::move(joined.projections), 0);  // [directions, units, size]
    for (size_t i = 0; i < 2; ++i) made[i] = e.matmul(made[i], projection);
  }
  // [time, directions, batch, units] becomes [time, batch, directions * units].
  return RecurrentResult{e.reshape(e.transpose(made[0], {0, 2, 1, 3}), {0, 0, -1}), {made.begin() + 1, made.end()}};
}
}  // namespace

Result<RecurrentResult> run_recurrent(Emitter& e, TensorId x, const RecurrentLayers& layers) {
  const auto directions = static_cast<size_t>(layers.directions);
  const size_t count = layers.weights.size() / directions;
  ORKNN_ASSERT(count > 0, "a layer has weights");
  if (const size_t expected = layers.cell == Cell::Lstm ? 2 : 1; layers.states.size() != expected)
    return invalid_model("a recurrent layer has the wrong number of states")
        .expected(std::to_string(expected))
        .found(std::to_string(layers.states.size()));
  std::vector<TensorId> last[2];
  for (size_t l = 0; l < count; ++l) {
    std::vector<TensorId> first;
    for (TensorId s : layers.states)
      first.push_back(
          !s || count == 1 ? s : e.slice(s, 0, static_cast<int64_t>(l * directions), static_cast<int64_t>((l + 1) * directions)));
    ORKNN_TRY_ASSIGN(const RecurrentResult made,
                     run_layer(e, x, layers, std::span(layers.weights).subspan(l * directions, directions), std::move(first)));
    x = made.sequence;
    for (size_t i = 0; i < made.states.size(); ++i) last[i].push_back(made.states[i]);
  }
  RecurrentResult result{x, {}};
  for (auto& states : last)
    if (!states.empty()) result.states.push_back(e.concat(std::move(states), 0));
  return result;
}

Result<LstmStep> lstm_step(Emitter& e, TensorId cell, const LstmRule& rule) {
  const auto content = [&](TensorId x) -> Result<TensorId> { return rule.content ? rule.content(x) : e.unary("Tanh", x); };
  const auto gate = [&](LstmGate which, TensorId seen) -> Result<TensorId> {
    const TensorId sum = rule.sum(which, seen);
    return rule.gate ? rule.gate(sum) : e.unary("Sigmoid", sum);
  };
  LstmStep s;
  ORKNN_TRY_ASSIGN(s.fresh, content(rule.sum(LstmGate::Content, cell)));
  if (rule.is_coupled) {
    ORKNN_TRY_ASSIGN(s.forget, gate(LstmGate::Forget, cell));
    s.input = e.sub(e.scalar_like(s.forget, 1, "one"), s.forget);
  } else {
    ORKNN_TRY_ASSIGN(s.input, gate(LstmGate::Input, cell));
  }
  s.cell = e.mul(s.input, s.fresh);
  if (cell && !s.forget) {
    ORKNN_TRY_ASSIGN(s.forget, gate(LstmGate::Forget, cell));
  }
  if (cell) s.cell = e.add(e.mul(s.forget, cell), s.cell);
  if (rule.kept) {
    ORKNN_TRY_ASSIGN(s.cell, rule.kept(s.cell));
  }
  ORKNN_TRY_ASSIGN(s.shown, content(s.cell));
  ORKNN_TRY_ASSIGN(s.output, gate(LstmGate::Output, s.cell));
  s.hidden = e.mul(s.output, s.shown);
  return s;
}

LstmState lstm_step(Emitter& e, TensorId sums, TensorId cell, GateOrder order, int64_t units, const StepFunctions& functions) {
  const auto applied = [&](const std::string& op, std::optional<double> alpha) {
    return [&e, &op, alpha](TensorId x) { return e.emit(op, {x}, alpha ? Attributes{{"alpha", *alpha}} : Attributes{}); };
  };
  const auto part = [&](LstmGate gate, TensorId) {
    const int64_t begin = order[static_cast<size_t>(gate)] * units;
    return e.slice(sums, functions.axis, begin, begin + units);
  };
  const auto step = lstm_step(e, cell,
                              {.sum = part,
                               .gate = applied(functions.gate, functions.gate_alpha),
                               .content = applied(functions.content, functions.content_alpha)});
  return {step->hidden, step->cell};
}

TensorId gru_step(Emitter& e, TensorId from_input, TensorId from_state, TensorId hidden, GateOrder order, int64_t units) {
  const auto part = [&](TensorId x, size_t number) { return e.slice(x, -1, order[number] * units, (order[number] + 1) * units); };
  const auto gate = [&](size_t number) { return e.unary("Sigmoid", e.add(part(from_input, number), part(from_state, number))); };
  const TensorId update = gate(0), reset = gate(1);
  const TensorId fresh = e.unary("Tanh", e.add(part(from_input, 2), e.mul(reset, part(from_state, 2))));
  return e.add(fresh, e.mul(update, e.sub(hidden, fresh)));
}

Result<TensorId> unrolled(Emitter& e, TensorId x, bool is_reversed, const Step& step, int64_t max_steps) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to write out the steps"));
  if (dims.empty() || dims[0] < 1 || dims[0] > max_steps)
    return unsupported("the sequence is empty or too long to be unrolled")
        .expected("1 to " + std::to_string(max_steps) + " steps")
        .found(to_string(dims));
  std::vector<TensorId> results(static_cast<size_t>(dims[0]));
  for (int64_t k = 0; k < dims[0]; ++k) {
    const int64_t t = is_reversed ? dims[0] - 1 - k : k;
    ORKNN_TRY_ASSIGN(results[t], step(e.squeeze(e.slice(x, 0, t, t + 1), {0})));
  }
  return e.stack(std::move(results), 0);
}

}  // namespace orknn::importer
