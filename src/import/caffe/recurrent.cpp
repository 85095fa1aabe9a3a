// Recurrent layers: LSTM and RNN of BVLC's Caffe, whose second bottom tells where sequences go on, and Lstm of the warpctc fork.
#include "import/lower/recurrent.h"

#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
// Sequences with markers are unrolled; more steps than this would become an unreasonable graph.
constexpr int64_t kMaxSteps = 1024;

struct Sequence {
  TensorId x;  // [T,N,I]
  int64_t steps = 0, batch = 0, inputs = 0, outputs = 0;
};

Result<Sequence> sequence_of(Layer& l, TensorId x, const Parameters& p) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to read the sequence"));
  if (dims.size() < 2)
    return unsupported("a sequence needs steps and a batch").expected("at least 2 axes").found(to_string(dims));
  if (dims[0] < 1) return unsupported("the sequence is empty").found(to_string(dims));
  Sequence s{.steps = dims[0], .batch = dims.size() == 2 ? 1 : dims[1], .outputs = p.integer("num_output", 0, 1, 1 << 20)};
  ORKNN_TRY_ASSIGN(s.inputs, checked_element_count(std::span(dims).subspan(dims.size() == 2 ? 1 : 2)));
  s.x = l.reshape(x, {s.steps, s.batch, s.inputs});
  return s;
}

Result<TensorId> matrix(Layer& l, size_t blob, std::string_view role, int64_t rows, int64_t columns) {
  return l.blob(blob, {role, {rows, columns}, Fill::Random, columns});
}
Result<TensorId> vector(Layer& l, size_t blob, std::string_view role, int64_t count) {
  return l.blob(blob, {role, {count}, Fill::Zeros});
}

struct Gates {
  TensorId from_input, bias, from_state;
};

// Sequences without markers; Caffe's gates are input, forget, output, cell.
Result<TensorId> lstm_layer(Layer& l, const Sequence& s, const Gates& g) {
  RecurrentLayers layers{.order = kGatesIfoc, .states = {TensorId{}, TensorId{}}};
  layers.weights.push_back({.input = g.from_input, .state = g.from_state, .input_bias = g.bias});
  ORKNN_TRY_ASSIGN(const RecurrentResult made, run_recurrent(l, s.x, layers));
  return made.sequence;
}

// What the input contributes to all steps at once: [T,N,rows of the weights].
TensorId projected(Layer& l, const Sequence& s, TensorId weight, TensorId bias, int64_t rows) {
  return l.reshape(l.linear(l.reshape(s.x, {s.steps * s.batch, s.inputs}), weight, bias), {s.steps, s.batch, rows});
}

// Unrolls: `step` makes the new hidden state from what the input contributes to the step and the marker [N,1], which is 0 where a
// new sequence begins and the state is forgotten. Returns the hidden states, [T,N,O].
template <class MarkedStep>
Result<TensorId> unrolled_by(Layer& l, const Sequence& s, TensorId contributions, TensorId markers, MarkedStep&& step) {
  const TensorId all_markers = l.reshape(markers, {s.steps, s.batch, 1});
  int64_t t = 0;
  return unrolled(
      l, contributions, false,
      [&](TensorId now) -> Result<TensorId> {
        const TensorId marker = l.reshape(l.slice(all_markers, 0, t, t + 1), {s.batch, 1});
        ++t;
        return step(now, marker);
      },
      kMaxSteps);
}

// The state is none at the beginning of a run without exposed states.
Result<TensorId> unrolled_lstm(Layer& l, const Sequence& s, TensorId contributions, TensorId from_state, TensorId markers,
                               LstmState& state) {
  const TensorId recurrent = l.transpose(from_state, {1, 0});
  return unrolled_by(l, s, contributions, markers, [&](TensorId sums, TensorId marker) {
    if (state.hidden) sums = l.add(sums, l.matmul(l.mul(state.hidden, marker), recurrent));
    const TensorId kept = state.cell ? l.mul(state.cell, marker) : TensorId{};
    state = lstm_step(l, sums, kept, kGatesIfoc, s.outputs);
    return state.hidden;
  });
}

// The bottoms after x and the markers: a static input, and the states when they are exposed.
struct Extras {
  bool has_static = false, exposed = false;
  size_t first_state = 2;
};
Result<Extras> extras_of(Operands bottoms, const Parameters& p, size_t states) {
  Extras e{.exposed = p.flag("expose_hidden", false)};
  const size_t plain = 2 + (e.exposed ? states : 0);
  if (bottoms.size() < plain || bottoms.size() > plain + 1) return wrong_input_count(bottoms.size(), plain, plain + 1);
  e.has_static = bottoms.size() == plain + 1;
  e.first_state = e.has_static ? 3 : 2;
  return e;
}

// Adds what the static bottom, if there is one, contributes to every step.
Result<TensorId> with_static(Layer& l, const Sequence& s, const Extras& e, Operands bottoms, TensorId contributions,
                             int64_t rows) {
  if (!e.has_static) return contributions;
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(bottoms[2], "to read the static input"));
  if (dims.size() < 2 || dims[0] != s.batch)
    return shape_mismatch("the static input does not fit")
        .expected("a batch of " + std::to_string(s.batch))
        .found(to_string(dims));
  ORKNN_TRY_ASSIGN(const int64_t inputs, checked_element_count(std::span(dims).subspan(1)));
  ORKNN_TRY_ASSIGN(const TensorId weight, matrix(l, 2, "static_weight", rows, inputs));
  const TensorId fixed = l.linear(l.reshape(bottoms[2], {s.batch, inputs}), weight);
  return l.add(contributions, l.reshape(fixed, {1, s.batch, rows}));
}

// Blobs: input weights, bias, (static weights,) recurrent weights.
Result<std::vector<TensorId>> lstm(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("recurrent_param");
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, bottoms[0], p));
  const int64_t rows = 4 * s.outputs;
  const bool has_markers = bottoms.size() > 1;
  Extras e;
  if (has_markers) {
    ORKNN_TRY_ASSIGN(e, extras_of(bottoms, p, 2));
  }
  Gates g;
  ORKNN_TRY_ASSIGN(g.from_input, matrix(l, 0, "weight", rows, s.inputs));
  ORKNN_TRY_ASSIGN(g.bias, vector(l, 1, "bias", rows));
  ORKNN_TRY_ASSIGN(g.from_state, matrix(l, e.has_static ? 3 : 2, "recurrent_weight", rows, s.outputs));
  if (!has_markers) {
    ORKNN_TRY_ASSIGN(const TensorId y, lstm_layer(l, s, g));
    return std::vector{y};
  }
  ORKNN_TRY_ASSIGN(const TensorId contributions,
                   with_static(l, s, e, bottoms, projected(l, s, g.from_input, g.bias, rows), rows));
  const Dims state_dims{s.batch, s.outputs}, result_dims{1, s.batch, s.outputs};
  LstmState state;
  if (e.exposed) state = {l.reshape(bottoms[e.first_state], state_dims), l.reshape(bottoms[e.first_state + 1], state_dims)};
  ORKNN_TRY_ASSIGN(const TensorId y, unrolled_lstm(l, s, contributions, g.from_state, bottoms[1], state));
  if (!e.exposed || l.top_count() < 3) return std::vector{y};
  return std::vector{y, l.reshape(state.hidden, result_dims), l.reshape(state.cell, result_dims)};
}

// h = tanh(W x + b + R h), o = tanh(V h + c). Blobs: W, b, (static weights,) R, V, c.
Result<std::vector<TensorId>> rnn(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("recurrent_param");
  ORKNN_TRY_ASSIGN(const Extras e, extras_of(bottoms, p, 1));
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, bottoms[0], p));
  const size_t next = e.has_static ? 3 : 2;
  ORKNN_TRY_ASSIGN(const TensorId weight, matrix(l, 0, "weight", s.outputs, s.inputs));
  ORKNN_TRY_ASSIGN(const TensorId bias, vector(l, 1, "bias", s.outputs));
  ORKNN_TRY_ASSIGN(const TensorId contributions,
                   with_static(l, s, e, bottoms, projected(l, s, weight, bias, s.outputs), s.outputs));
  ORKNN_TRY_ASSIGN(const TensorId from_state, matrix(l, next, "recurrent_weight", s.outputs, s.outputs));
  ORKNN_TRY_ASSIGN(const TensorId output_weight, matrix(l, next + 1, "output_weight", s.outputs, s.outputs));
  ORKNN_TRY_ASSIGN(const TensorId output_bias, vector(l, next + 2, "output_bias", s.outputs));
  const TensorId recurrent = l.transpose(from_state, {1, 0});
  TensorId hidden;
  if (e.exposed) hidden = l.reshape(bottoms[e.first_state], {s.batch, s.outputs});
  ORKNN_TRY_ASSIGN(const TensorId states, unrolled_by(l, s, contributions, bottoms[1], [&](TensorId sum, TensorId marker) {
                     if (hidden) sum = l.add(sum, l.matmul(l.mul(hidden, marker), recurrent));
                     hidden = l.unary("Tanh", sum);
                     return hidden;
                   }));
  const TensorId rows = l.reshape(states, {s.steps * s.batch, s.outputs});
  const TensorId y = l.reshape(l.unary("Tanh", l.linear(rows, output_weight, output_bias)), {s.steps, s.batch, s.outputs});
  if (!e.exposed || l.top_count() < 2) return std::vector{y};
  return std::vector{y, l.reshape(hidden, {1, s.batch, s.outputs})};
}

// Blobs: input weights, recurrent weights, bias. An optional second bottom marks where sequences begin.
Result<TensorId> warpctc_lstm(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters(l.parameters("lstm_param").is_empty() ? "recurrent_param" : "lstm_param");
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, bottoms[0], p));
  const int64_t rows = 4 * s.outputs;
  Gates g;
  ORKNN_TRY_ASSIGN(g.from_input, matrix(l, 0, "weight", rows, s.inputs));
  ORKNN_TRY_ASSIGN(g.from_state, matrix(l, 1, "recurrent_weight", rows, s.outputs));
  ORKNN_TRY_ASSIGN(g.bias, vector(l, 2, "bias", rows));
  TensorId y;
  if (bottoms.size() == 1) {
    ORKNN_TRY_ASSIGN(y, lstm_layer(l, s, g));
  } else {
    LstmState state;
    const TensorId contributions = projected(l, s, g.from_input, g.bias, rows);
    ORKNN_TRY_ASSIGN(y, unrolled_lstm(l, s, contributions, g.from_state, bottoms[1], state));
  }
  return l.rank_of(bottoms[0]) == 2 ? l.reshape(y, {s.steps, s.outputs}) : y;
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static const Row rows[] = {
      {"LSTM", lstm, {.inputs = {1, 5}}}, {"RNN", rnn, {.inputs = {2, 4}}}, {"Lstm", warpctc_lstm, kOneOrTwo}};
  return rows;
}

}  // namespace orknn::importer::caffe
