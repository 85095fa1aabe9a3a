// Recurrent layers. Plain float LSTMs become one LSTM of ours; projections, clipped cells, layer norms and integer states are
// written out step by step.
#include "import/lower/recurrent.h"

#include <algorithm>
#include <array>

#include "import/tflite/graph_builder.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// Sequences longer than this are not unrolled: every step becomes some twenty nodes.
constexpr int64_t kMaxSteps = 4096;
// A step counts as this many operators against the limit of a model.
constexpr size_t kOperatorsPerStep = 10;

// Where a direction of an LSTM finds its inputs. Gates go input, forget, cell, output; peepholes have no cell gate.
struct LstmInputs {
  size_t weights = 1, recurrent = 5, peephole = 9, bias = 12, projection = 16, projection_bias = 17, state = 18, cell = 19;
  size_t norm = 0, auxiliary = 0;  // first of four; 0 = none
};
enum Gate : size_t { Input, Forget, Candidate, Output };

struct LstmOptions {
  Activation activation = Activation::Tanh;
  double cell_clip = 0, projection_clip = 0;  // 0 = none
  bool reverse = false;
};

struct Sequence {
  TensorId all;          // [time, batch, units]
  TensorId state, cell;  // the last ones, [batch, units]
};

TensorId clip_to(Layer& l, TensorId x, double limit) { return limit > 0 ? l.clip(x, -limit, limit) : x; }

// --- an LSTM of ours: [1, 4 * units, n] in the order input, output, forget, cell

bool has_any(Layer& l, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i)
    if (l.has_input(i)) return true;
  return false;
}

Result<TensorId> stacked(Layer& l, size_t first, bool is_bias, std::span<const Gate> order, const LstmInputs& in) {
  std::vector<TensorId> parts;
  for (Gate gate : order) {
    // Without an input gate it is what the forget gate leaves: sigmoid(-x) = 1 - sigmoid(x).
    const bool coupled = gate == Input && !l.has_input(in.weights);
    const size_t i = first + (coupled ? Forget : gate);
    TensorId part;
    if (is_bias) {
      ORKNN_TRY_ASSIGN(part, l.bias(i, 0, in.weights + (coupled ? Forget : gate)));
    } else {
      ORKNN_TRY_ASSIGN(part, l.weights(i, {0, 1}));
    }
    if (!part) return missing_input(i, l.operand_count());
    parts.push_back(coupled ? l.unary("Neg", part) : part);
  }
  return l.concat(std::move(parts), 0);
}

Result<Sequence> one_lstm(Layer& l, TensorId x, const LstmInputs& in, const LstmOptions& options) {
  static constexpr Gate kOrder[] = {Input, Output, Forget, Candidate};
  RecurrentWeights w;
  ORKNN_TRY_ASSIGN(w.input, stacked(l, in.weights, false, kOrder, in));
  ORKNN_TRY_ASSIGN(w.state, stacked(l, in.recurrent, false, kOrder, in));
  ORKNN_TRY_ASSIGN(w.input_bias, stacked(l, in.bias, true, kOrder, in));
  ORKNN_TRY_ASSIGN(const TensorId h, l.real(in.state));
  ORKNN_TRY_ASSIGN(const TensorId c, l.real(in.cell));
  if (has_any(l, in.peephole, 3)) {
    std::vector<TensorId> parts;
    const bool coupled = !l.has_input(in.weights);
    for (size_t k : {size_t{0}, size_t{2}, size_t{1}}) {  // input, output, forget
      ORKNN_TRY_ASSIGN(const TensorId part, l.real(in.peephole + (k == 0 && coupled ? 1 : k)));
      parts.push_back(k == 0 && coupled ? l.unary("Neg", part) : part);
    }
    w.peepholes = l.concat(std::move(parts), 0);
  }
  RecurrentLayers layers{.is_backward = options.reverse, .weights = {w}, .states = {l.unsqueeze(h, {0}), l.unsqueeze(c, {0})}};
  if (options.activation == Activation::Relu) layers.activations = {"Sigmoid", "Relu", "Relu"};
  if (options.activation != Activation::Relu && options.activation != Activation::Tanh)
    return unsupported("the activation of the cell is not supported")
        .expected("TANH or RELU")
        .found(std::to_string(static_cast<int>(options.activation)));
  ORKNN_TRY_ASSIGN(const RecurrentResult made, run_recurrent(l, x, layers));
  return Sequence{made.sequence, l.squeeze(made.states[0], {0}), l.squeeze(made.states[1], {0})};
}

// --- step by step

Status count_steps(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to walk through its steps", 3));
  return l.builder().count_lowered(static_cast<size_t>(std::min(dims[0], kMaxSteps)) * kOperatorsPerStep);
}

// What the steps of an unrolled LSTM share.
struct LstmCell {
  std::vector<Gate> gates;  // without an input gate when it is coupled to the forget gate
  TensorId driven, recurrent;
  std::array<TensorId, 4> biases, norms, peepholes;
  TensorId projection, projection_bias;
  std::optional<size_t> hidden_format;  // tensor whose number format what is projected has

  bool is_coupled() const { return gates.size() < 4; }
};

// All gates in one product.
Result<TensorId> joined_weights(Layer& l, const std::vector<Gate>& gates, size_t first) {
  std::vector<TensorId> parts;
  for (Gate g : gates) {
    ORKNN_TRY_ASSIGN(const TensorId part, l.weights(first + g, {1, 0}));
    parts.push_back(part);
  }
  return l.concat(std::move(parts), 1);
}

Result<LstmCell> lstm_cell(Layer& l, TensorId x, TensorId auxiliary, const LstmInputs& in) {
  LstmCell c;
  if (l.has_input(in.weights)) c.gates.push_back(Input);
  c.gates.insert(c.gates.end(), {Forget, Candidate, Output});
  ORKNN_TRY_ASSIGN(const TensorId w, joined_weights(l, c.gates, in.weights));
  ORKNN_TRY_ASSIGN(c.recurrent, joined_weights(l, c.gates, in.recurrent));
  const bool is_normed = in.norm && has_any(l, in.norm, 4), has_peepholes = has_any(l, in.peephole, 3);
  for (Gate g : c.gates) {
    ORKNN_TRY_ASSIGN(c.biases[g], l.bias(in.bias + g, 0, in.weights + g));
    if (is_normed) {
      ORKNN_TRY_ASSIGN(c.norms[g], l.real(in.norm + g));
    }
    if (has_peepholes && g != Candidate) {
      ORKNN_TRY_ASSIGN(c.peepholes[g], l.real(in.peephole + (g == Output ? size_t{2} : size_t{g})));
    }
  }
  c.driven = l.matmul(x, w);
  if (auxiliary && in.auxiliary && l.has_input(in.auxiliary + Forget)) {
    ORKNN_TRY_ASSIGN(const TensorId extra, joined_weights(l, c.gates, in.auxiliary));
    c.driven = l.add(c.driven, l.matmul(auxiliary, extra));
  }
  if (!l.has_input(in.projection)) return c;
  ORKNN_TRY_ASSIGN(c.projection, l.weights(in.projection, {1, 0}));
  ORKNN_TRY_ASSIGN(c.projection_bias, l.bias(in.projection_bias, 0, in.projection));
  constexpr size_t kHiddenFormat = 4;
  const Numbers<int32_t>& inner = l.op().intermediates;
  if (inner.size() > kHiddenFormat && inner[kHiddenFormat] >= 0) c.hidden_format = static_cast<size_t>(inner[kHiddenFormat]);
  return c;
}

Result<Sequence> steps_of_lstm(Layer& l, TensorId x, TensorId auxiliary, const LstmInputs& in, const LstmOptions& options) {
  ORKNN_TRY(count_steps(l, x));
  ORKNN_TRY_ASSIGN(const LstmCell c, lstm_cell(l, x, auxiliary, in));
  Sequence s;
  ORKNN_TRY_ASSIGN(s.state, l.real(in.state));
  ORKNN_TRY_ASSIGN(s.cell, l.real(in.cell));
  const auto step = [&](TensorId driven) -> Result<TensorId> {
    const auto parts = l.emit_all("Split", {l.add(driven, l.matmul(s.state, c.recurrent))},
                                  {{"axis", int64_t{-1}}, {"num_outputs", std::ssize(c.gates)}}, c.gates.size());
    const auto sum = [&](LstmGate which, TensorId seen) {
      const Gate gate = std::array{Input, Output, Forget, Candidate}[static_cast<size_t>(which)];
      TensorId z = parts[gate - (c.is_coupled() ? 1 : 0)];
      if (c.peepholes[gate]) z = l.add(z, l.mul(seen, c.peepholes[gate]));
      if (c.norms[gate]) z = l.emit("LayerNormalization", {z, c.norms[gate]}, {{"axis", int64_t{-1}}, {"epsilon", 1e-8}});
      return c.biases[gate] ? l.add(z, c.biases[gate]) : z;
    };
    const auto kept = [&](TensorId cell) { return l.round_to(clip_to(l, cell, options.cell_clip), l.input_index(in.cell)); };
    const auto content = [&](TensorId z) { return l.activate(z, options.activation); };
    ORKNN_TRY_ASSIGN(const LstmStep made,
                     lstm_step(l, s.cell, {.sum = sum, .content = content, .kept = kept, .is_coupled = c.is_coupled()}));
    s.cell = made.cell;
    TensorId h = made.hidden;
    if (c.hidden_format) {
      ORKNN_TRY_ASSIGN(h, l.round_to(h, *c.hidden_format));
    }
    if (c.projection) {
      h = l.matmul(h, c.projection);
      h = clip_to(l, c.projection_bias ? l.add(h, c.projection_bias) : h, options.projection_clip);
    }
    ORKNN_TRY_ASSIGN(s.state, l.round_to(h, l.input_index(in.state)));
    return s.state;
  };
  ORKNN_TRY_ASSIGN(s.all, unrolled(l, c.driven, options.reverse, step, kMaxSteps));
  return s;
}

Result<Sequence> lstm(Layer& l, TensorId x, TensorId auxiliary, const LstmInputs& in, const LstmOptions& options) {
  for (size_t i : {in.weights + Forget, in.weights + Candidate, in.weights + Output, in.state, in.cell})
    if (!l.has_input(i)) return missing_input(i, l.operand_count());
  const bool plain = !(options.cell_clip > 0) && !l.has_input(in.projection) && !(in.norm && has_any(l, in.norm, 4)) &&
                     !auxiliary && has_any(l, in.bias, 4) && !l.input_info(in.state).is_quantized() &&
                     !l.input_info(in.cell).is_quantized();
  return plain ? one_lstm(l, x, in, options) : steps_of_lstm(l, x, auxiliary, in, options);
}

// --- the operators

// Time first; the batch comes first in most files.
Result<TensorId> time_first(Layer& l, size_t i, bool time_major) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(i));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to walk through its steps"));
  if (rank != 3)
    return invalid_model("the input of the sequence has the wrong number of dimensions")
        .expected("3")
        .found(std::to_string(rank));
  return time_major ? x : l.transpose(x, {1, 0, 2});
}
TensorId given_order(Layer& l, TensorId y, bool time_major) { return time_major ? y : l.transpose(y, {1, 0, 2}); }

// Both directions as one output or two.
std::vector<TensorId> both_directions(Layer& l, TensorId forward, TensorId backward, bool merge, bool time_major) {
  if (merge) return {given_order(l, l.concat({forward, backward}, 2), time_major)};
  return {given_order(l, forward, time_major), given_order(l, backward, time_major)};
}

Status keep_states(Layer& l, const LstmInputs& in, const Sequence& s) {
  ORKNN_TRY(l.set_variable(in.state, s.state));
  return l.set_variable(in.cell, s.cell);
}

LstmOptions lstm_options(Layer& l) {
  return {l.activation(0), l.options().number<float>(1), l.options().number<float>(2), false};
}

Result<TensorId> unidirectional_lstm(Layer& l) {
  const Table& o = l.options();
  if (o.flag(5)) return unsupported("diagonal recurrent weights are not supported");
  LstmInputs in;
  if (l.operand_count() > 20) in.norm = 20;
  ORKNN_TRY_ASSIGN(const TensorId x, time_first(l, 0, o.flag(3)));
  ORKNN_TRY_ASSIGN(const Sequence s, lstm(l, x, {}, in, lstm_options(l)));
  ORKNN_TRY(keep_states(l, in, s));
  return given_order(l, s.all, o.flag(3));
}

Result<std::vector<TensorId>> bidirectional_lstm(Layer& l) {
  const Table& o = l.options();
  const bool time_major = o.flag(4, true), merge = o.flag(3);
  LstmInputs forward, backward{18, 22, 26, 29, 33, 34, 37, 38, 0, 0};
  forward.state = 35, forward.cell = 36;
  ORKNN_TRY_ASSIGN(const TensorId x, time_first(l, 0, time_major));
  TensorId auxiliary, backward_x = x;
  if (l.has_input(39)) {
    ORKNN_TRY_ASSIGN(const TensorId extra, time_first(l, 39, time_major));
    // Without weights of its own the second input is what the backward direction reads.
    if (l.has_input(40 + Forget)) {
      auxiliary = extra;
      forward.auxiliary = 40, backward.auxiliary = 44;
    } else {
      backward_x = extra;
    }
  }
  LstmOptions options = lstm_options(l);
  ORKNN_TRY_ASSIGN(const Sequence f, lstm(l, x, auxiliary, forward, options));
  options.reverse = true;
  ORKNN_TRY_ASSIGN(const Sequence b, lstm(l, backward_x, auxiliary, backward, options));
  ORKNN_TRY(keep_states(l, forward, f));
  ORKNN_TRY(keep_states(l, backward, b));
  return both_directions(l, f.all, b.all, merge, time_major);
}

// One step on [batch, inputs], with all gates in one matrix: input, candidate, forget, output.
Result<std::vector<TensorId>> basic_lstm_step(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId h, l.real(1));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(2, {0, 1}));
  ORKNN_TRY_ASSIGN(const TensorId b, l.bias(3, 0, 2));
  ORKNN_TRY_ASSIGN(const TensorId c, l.real(4));
  const TensorId together = l.concat({x, h}, 1);
  const TensorId gates = l.linear(together, w, b);
  const std::vector<TensorId> part = l.emit_all("Split", {gates}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{4}}}, 4);
  const auto sum = [&](LstmGate gate, TensorId) { return part[static_cast<size_t>(kGatesIcfo[static_cast<size_t>(gate)])]; };
  ORKNN_TRY_ASSIGN(const LstmStep step, lstm_step(l, c, {.sum = sum}));
  ORKNN_TRY(l.set_variable(1, step.hidden));
  ORKNN_TRY(l.set_variable(4, step.cell));
  return std::vector{step.hidden, step.cell, together, gates};
}

Result<std::vector<TensorId>> lstm_operator(Layer& l) {
  if (l.options().number<int8_t>(3) == 1) return basic_lstm_step(l);
  LstmInputs in;
  if (l.operand_count() > 20) in.norm = 20;
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const Sequence s, lstm(l, l.unsqueeze(x, {0}), {}, in, lstm_options(l)));
  ORKNN_TRY(keep_states(l, in, s));
  if (l.output_count() == 4) return std::vector{TensorId{}, s.state, s.cell, s.state};  // the oldest form has a scratch in front
  return std::vector{s.state};
}

// Where a direction of an RNN finds weights, recurrent weights and bias, its state, and the weights of a second input.
struct RnnInputs {
  size_t first = 1, state = 4, auxiliary = 0;
};

// x [time, batch, inputs]
Result<Sequence> rnn(Layer& l, TensorId x, TensorId auxiliary, const RnnInputs& in, Activation activation, bool reverse) {
  if (!l.has_input(in.state)) return missing_input(in.state, l.operand_count());
  ORKNN_TRY(count_steps(l, x));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(in.first, {1, 0}));
  ORKNN_TRY_ASSIGN(const TensorId r, l.weights(in.first + 1, {1, 0}));
  ORKNN_TRY_ASSIGN(const TensorId b, l.bias(in.first + 2, 0, in.first));
  Sequence s;
  ORKNN_TRY_ASSIGN(s.state, l.real(in.state));
  TensorId driven = l.matmul(x, w);
  if (auxiliary) {
    ORKNN_TRY_ASSIGN(const TensorId extra, l.weights(in.auxiliary, {1, 0}));
    driven = l.add(driven, l.matmul(auxiliary, extra));
  }
  if (b) driven = l.add(driven, b);
  const auto step = [&](TensorId now) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const TensorId h, l.activate(l.add(now, l.matmul(s.state, r)), activation));
    ORKNN_TRY_ASSIGN(s.state, l.round_to(h, l.input_index(in.state)));
    return s.state;
  };
  ORKNN_TRY_ASSIGN(s.all, unrolled(l, driven, reverse, step, kMaxSteps));
  ORKNN_TRY(l.set_variable(in.state, s.state));
  return s;
}

Result<TensorId> rnn_step(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Sequence s, rnn(l, l.unsqueeze(x, {0}), {}, {}, l.activation(0), false));
  return s.state;
}

Result<TensorId> unidirectional_rnn(Layer& l) {
  const bool time_major = l.options().flag(0);
  ORKNN_TRY_ASSIGN(const TensorId x, time_first(l, 0, time_major));
  ORKNN_TRY_ASSIGN(const Sequence s, rnn(l, x, {}, {}, l.activation(1), false));
  return given_order(l, s.all, time_major);
}

Result<std::vector<TensorId>> bidirectional_rnn(Layer& l) {
  const bool time_major = l.options().flag(0);
  ORKNN_TRY_ASSIGN(const TensorId x, time_first(l, 0, time_major));
  TensorId auxiliary, backward_x = x;
  if (l.has_input(9)) {
    ORKNN_TRY_ASSIGN(const TensorId extra, time_first(l, 9, time_major));
    (l.has_input(10) ? auxiliary : backward_x) = extra;
  }
  ORKNN_TRY_ASSIGN(const Sequence f, rnn(l, x, auxiliary, {1, 4, 10}, l.activation(1), false));
  ORKNN_TRY_ASSIGN(const Sequence b, rnn(l, backward_x, auxiliary, {5, 8, 11}, l.activation(1), true));
  return both_directions(l, f.all, b.all, l.options().flag(2), time_major);
}

// Two stages: features of the input join the memory of earlier ones, then each filter weighs its memory. Filters come in groups
// of `rank`, which are summed.
Result<TensorId> svdf(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId features, l.weights(1, {0, 1}));
  ORKNN_TRY_ASSIGN(const TensorId over_time, l.real(2));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(3, 0, 2));
  ORKNN_TRY_ASSIGN(const TensorId memory, l.real(4));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(over_time, "to size the memory"));
  ORKNN_TRY_ASSIGN(const Dims input, l.need_dims(x, "to size the memory"));
  const int64_t rank = l.options().number<int32_t>(0);
  if (dims.size() != 2 || input.size() != 2 || rank < 1 || dims[0] % rank != 0 || dims[1] < 1)
    return invalid_model("the filters do not fit the rank")
        .expected("a multiple of " + std::to_string(rank))
        .found(to_string(dims));
  const int64_t filters = dims[0], length = dims[1], batch = input[0];
  ORKNN_TRY_ASSIGN(TensorId fresh, l.round_to(l.linear(x, features), l.input_index(4)));
  fresh = l.reshape(fresh, {batch, filters, 1});
  TensorId kept = fresh;
  if (length > 1) kept = l.concat({l.slice(l.reshape(memory, {batch, filters, length}), 2, 1, INT64_MAX), fresh}, 2);
  ORKNN_TRY(l.set_variable(4, l.reshape(kept, {batch, filters * length})));
  TensorId y = l.reduce("ReduceSum", l.mul(kept, over_time), {2}, false);
  if (rank > 1) y = l.reduce("ReduceSum", l.reshape(y, {batch, filters / rank, rank}), {2}, false);
  return l.activate_by(bias ? l.add(y, bias) : y, 1);
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static const Row rows[] = {
      {"LSTM", lstm_operator},
      {"UNIDIRECTIONAL_SEQUENCE_LSTM", unidirectional_lstm},
      {"BIDIRECTIONAL_SEQUENCE_LSTM", bidirectional_lstm},
      {"RNN", rnn_step},
      {"UNIDIRECTIONAL_SEQUENCE_RNN", unidirectional_rnn},
      {"BIDIRECTIONAL_SEQUENCE_RNN", bidirectional_rnn},
      {"SVDF", svdf},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
