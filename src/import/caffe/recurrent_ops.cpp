// Recurrent layers: LSTM and RNN of BVLC's Caffe, whose second bottom tells where sequences go on, and Lstm of the warpctc fork.
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

Result<Sequence> sequence_of(Layer& l, const Message& p) {
  Sequence s;
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.bottom(), "to read the sequence"));
  if (dims.size() < 2)
    return unsupported("a sequence needs steps and a batch").expected("at least 2 axes").found(to_string(dims));
  ORKNN_TRY_ASSIGN(s.outputs, p.get_int("num_output", 0));
  if (s.outputs < 1 || s.outputs > (1 << 20))
    return invalid_model("'num_output' is out of range").found(std::to_string(s.outputs));
  s.steps = dims[0];
  s.batch = dims.size() == 2 ? 1 : dims[1];
  const size_t first = dims.size() == 2 ? 1 : 2;
  ORKNN_TRY_ASSIGN(s.inputs, checked_element_count(std::span(dims).subspan(first)));
  if (s.steps < 1) return unsupported("the sequence is empty").found(to_string(dims));
  s.x = l.reshape(l.bottom(), {s.steps, s.batch, s.inputs});
  return s;
}

// The four gates in the order of ours: input, output, forget, cell; Caffe has input, forget, output, cell.
TensorId in_our_order(Layer& l, TensorId gates, int64_t outputs, int64_t inputs) {
  const TensorId ordered =
      l.emit("Gather", {l.reshape(gates, {4, outputs, inputs}), l.add_ints("order", {0, 2, 1, 3})}, {{"axis", int64_t{0}}});
  return l.reshape(ordered, {1, 4 * outputs, inputs});
}

struct Gates {
  TensorId from_input, from_state, bias;
};

Result<TensorId> lstm_node(Layer& l, const Sequence& s, const Gates& g) {
  const TensorId bias = l.reshape(in_our_order(l, g.bias, s.outputs, 1), {1, 4 * s.outputs});
  const TensorId zeros = l.add_constant("no_bias", TensorData::zeros(DType::Float32, {1, 4 * s.outputs}));
  const TensorId y =
      l.emit("LSTM",
             {s.x, in_our_order(l, g.from_input, s.outputs, s.inputs), in_our_order(l, g.from_state, s.outputs, s.outputs),
              l.emit("Concat", {bias, zeros}, {{"axis", int64_t{1}}})},
             {{"hidden_size", s.outputs}});
  return l.reshape(y, {s.steps, s.batch, s.outputs});
}

TensorId step_of(Layer& l, TensorId x, int64_t step, Dims dims) {
  return l.reshape(l.slice(x, 0, step, step + 1), std::move(dims));
}

// What the input contributes to all steps at once: [T,N,rows of the weights].
TensorId projected(Layer& l, const Sequence& s, TensorId weight, TensorId bias, int64_t rows) {
  const TensorId flat = l.reshape(s.x, {s.steps * s.batch, s.inputs});
  return l.reshape(l.emit("Gemm", {flat, weight, bias}, {{"transB", int64_t{1}}}), {s.steps, s.batch, rows});
}

struct State {
  TensorId hidden, cell;  // none at the beginning of a run without exposed states
};

// One step after the other; `markers` [T,N] is 0 where a new sequence begins and the state is forgotten.
Result<std::vector<TensorId>> unrolled_lstm(Layer& l, const Sequence& s, TensorId contributions, TensorId from_state,
                                            TensorId markers, State& state) {
  if (s.steps > kMaxSteps)
    return unsupported("the sequence is too long to unroll")
        .expected("at most " + std::to_string(kMaxSteps) + " steps")
        .found(std::to_string(s.steps));
  const TensorId recurrent = l.transpose(from_state, {1, 0});
  std::vector<TensorId> results;
  for (int64_t t = 0; t < s.steps; ++t) {
    const TensorId marker = step_of(l, markers, t, {s.batch, 1});
    TensorId sums = step_of(l, contributions, t, {s.batch, 4 * s.outputs});
    if (state.hidden) sums = l.emit("Add", {sums, l.emit("MatMul", {l.emit("Mul", {state.hidden, marker}), recurrent})});
    const auto gate = [&](int64_t i, const char* op) {
      return l.emit(op, {l.slice(sums, 1, i * s.outputs, (i + 1) * s.outputs)});
    };
    TensorId cell = l.emit("Mul", {gate(0, "Sigmoid"), gate(3, "Tanh")});
    if (state.cell) cell = l.emit("Add", {l.emit("Mul", {l.emit("Mul", {gate(1, "Sigmoid"), state.cell}), marker}), cell});
    state.cell = cell;
    state.hidden = l.emit("Mul", {gate(2, "Sigmoid"), l.emit("Tanh", {cell})});
    results.push_back(state.hidden);
  }
  return results;
}

TensorId stacked(Layer& l, const std::vector<TensorId>& steps, int64_t batch, int64_t outputs) {
  std::vector<TensorId> parts;
  for (TensorId s : steps) parts.push_back(l.reshape(s, {1, batch, outputs}));
  return parts.size() == 1 ? parts[0] : l.emit("Concat", parts, {{"axis", int64_t{0}}});
}

// The bottoms behind x and the markers: a static input, and the states when they are exposed.
struct Extras {
  bool has_static = false, exposed = false;
  size_t first_state = 2;
};
Result<Extras> extras_of(const Layer& l, const Message& p, size_t states) {
  Extras e;
  ORKNN_TRY_ASSIGN(e.exposed, p.get_bool("expose_hidden", false));
  const size_t plain = 2 + (e.exposed ? states : 0);
  ORKNN_TRY(l.need_bottoms(plain, plain + 1));
  e.has_static = l.bottom_count() == plain + 1;
  e.first_state = e.has_static ? 3 : 2;
  return e;
}

// Adds what the static bottom contributes to every step.
Result<TensorId> with_static(Layer& l, const Sequence& s, TensorId contributions, size_t blob, int64_t rows) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.bottom(2), "to read the static input"));
  if (dims.size() < 2 || dims[0] != s.batch)
    return shape_mismatch("the static input does not fit")
        .expected("a batch of " + std::to_string(s.batch))
        .found(to_string(dims));
  ORKNN_TRY_ASSIGN(const int64_t inputs, checked_element_count(std::span(dims).subspan(1)));
  ORKNN_TRY_ASSIGN(const TensorId weight,
                   l.blob(blob, {.role = "static_weight", .dims = {rows, inputs}, .filling = Filling::Random, .fan_in = inputs}));
  const TensorId fixed = l.emit("Gemm", {l.reshape(l.bottom(2), {s.batch, inputs}), weight}, {{"transB", int64_t{1}}});
  return l.emit("Add", {contributions, l.reshape(fixed, {1, s.batch, rows})});
}

// Blobs: input weights, bias, (static weights,) recurrent weights.
Status lstm(Layer& l) {
  const Message& p = l.parameters("recurrent_param");
  ORKNN_TRY(l.need_bottoms(1, 5));
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, p));
  const int64_t rows = 4 * s.outputs;
  Gates g;
  ORKNN_TRY_ASSIGN(g.from_input,
                   l.blob(0, {.role = "weight", .dims = {rows, s.inputs}, .filling = Filling::Random, .fan_in = s.inputs}));
  ORKNN_TRY_ASSIGN(g.bias, l.blob(1, {.role = "bias", .dims = {rows}, .filling = Filling::Zeros}));
  if (l.bottom_count() == 1) {
    ORKNN_TRY_ASSIGN(
        g.from_state,
        l.blob(2, {.role = "recurrent_weight", .dims = {rows, s.outputs}, .filling = Filling::Random, .fan_in = s.outputs}));
    ORKNN_TRY_ASSIGN(const TensorId y, lstm_node(l, s, g));
    return l.set_top(y);
  }
  ORKNN_TRY_ASSIGN(const Extras e, extras_of(l, p, 2));
  TensorId contributions = projected(l, s, g.from_input, g.bias, rows);
  if (e.has_static) {
    ORKNN_TRY_ASSIGN(contributions, with_static(l, s, contributions, 2, rows));
  }
  ORKNN_TRY_ASSIGN(
      g.from_state,
      l.blob(e.has_static ? 3 : 2,
             {.role = "recurrent_weight", .dims = {rows, s.outputs}, .filling = Filling::Random, .fan_in = s.outputs}));
  State state;
  if (e.exposed)
    state = {l.reshape(l.bottom(e.first_state), {s.batch, s.outputs}),
             l.reshape(l.bottom(e.first_state + 1), {s.batch, s.outputs})};
  ORKNN_TRY_ASSIGN(const auto steps,
                   unrolled_lstm(l, s, contributions, g.from_state, l.reshape(l.bottom(1), {s.steps, s.batch}), state));
  ORKNN_TRY(l.set_top(stacked(l, steps, s.batch, s.outputs)));
  if (!e.exposed || l.top_count() < 3) return {};
  ORKNN_TRY(l.set_top(l.reshape(state.hidden, {1, s.batch, s.outputs}), 1));
  return l.set_top(l.reshape(state.cell, {1, s.batch, s.outputs}), 2);
}

// h = tanh(W x + b + R h), o = tanh(V h + c). Blobs: W, b, (static weights,) R, V, c.
Status rnn(Layer& l) {
  const Message& p = l.parameters("recurrent_param");
  ORKNN_TRY_ASSIGN(const Extras e, extras_of(l, p, 1));
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, p));
  if (s.steps > kMaxSteps)
    return unsupported("the sequence is too long to unroll")
        .expected("at most " + std::to_string(kMaxSteps) + " steps")
        .found(std::to_string(s.steps));
  ORKNN_TRY_ASSIGN(const TensorId weight,
                   l.blob(0, {.role = "weight", .dims = {s.outputs, s.inputs}, .filling = Filling::Random, .fan_in = s.inputs}));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.blob(1, {.role = "bias", .dims = {s.outputs}, .filling = Filling::Zeros}));
  TensorId contributions = projected(l, s, weight, bias, s.outputs);
  if (e.has_static) {
    ORKNN_TRY_ASSIGN(contributions, with_static(l, s, contributions, 2, s.outputs));
  }
  const size_t next = e.has_static ? 3 : 2;
  const Dims square{s.outputs, s.outputs};
  ORKNN_TRY_ASSIGN(const TensorId recurrent,
                   l.blob(next, {.role = "recurrent_weight", .dims = square, .filling = Filling::Random, .fan_in = s.outputs}));
  ORKNN_TRY_ASSIGN(const TensorId output_weight,
                   l.blob(next + 1, {.role = "output_weight", .dims = square, .filling = Filling::Random, .fan_in = s.outputs}));
  ORKNN_TRY_ASSIGN(const TensorId output_bias,
                   l.blob(next + 2, {.role = "output_bias", .dims = {s.outputs}, .filling = Filling::Zeros}));
  const TensorId markers = l.reshape(l.bottom(1), {s.steps, s.batch}), turned = l.transpose(recurrent, {1, 0});
  TensorId hidden;
  if (e.exposed) hidden = l.reshape(l.bottom(e.first_state), {s.batch, s.outputs});
  std::vector<TensorId> steps;
  for (int64_t t = 0; t < s.steps; ++t) {
    TensorId sum = step_of(l, contributions, t, {s.batch, s.outputs});
    if (hidden)
      sum = l.emit("Add", {sum, l.emit("MatMul", {l.emit("Mul", {hidden, step_of(l, markers, t, {s.batch, 1})}), turned})});
    hidden = l.emit("Tanh", {sum});
    steps.push_back(hidden);
  }
  const TensorId all = l.reshape(stacked(l, steps, s.batch, s.outputs), {s.steps * s.batch, s.outputs});
  ORKNN_TRY(l.set_top(l.reshape(l.emit("Tanh", {l.emit("Gemm", {all, output_weight, output_bias}, {{"transB", int64_t{1}}})}),
                                {s.steps, s.batch, s.outputs})));
  if (!e.exposed || l.top_count() < 2) return {};
  return l.set_top(l.reshape(hidden, {1, s.batch, s.outputs}), 1);
}

// Blobs: input weights, recurrent weights, bias. An optional second bottom marks where sequences begin.
Status warpctc_lstm(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 2));
  const Message& p = l.parameters("lstm_param").fields().empty() ? l.parameters("recurrent_param") : l.parameters("lstm_param");
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, p));
  const int64_t rows = 4 * s.outputs;
  Gates g;
  ORKNN_TRY_ASSIGN(g.from_input,
                   l.blob(0, {.role = "weight", .dims = {rows, s.inputs}, .filling = Filling::Random, .fan_in = s.inputs}));
  ORKNN_TRY_ASSIGN(
      g.from_state,
      l.blob(1, {.role = "recurrent_weight", .dims = {rows, s.outputs}, .filling = Filling::Random, .fan_in = s.outputs}));
  ORKNN_TRY_ASSIGN(g.bias, l.blob(2, {.role = "bias", .dims = {rows}, .filling = Filling::Zeros}));
  TensorId y;
  if (l.bottom_count() == 1) {
    ORKNN_TRY_ASSIGN(y, lstm_node(l, s, g));
  } else {
    State state;
    ORKNN_TRY_ASSIGN(const auto steps, unrolled_lstm(l, s, projected(l, s, g.from_input, g.bias, rows), g.from_state,
                                                     l.reshape(l.bottom(1), {s.steps, s.batch}), state));
    y = stacked(l, steps, s.batch, s.outputs);
  }
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to shape the result"));
  return l.set_top(rank == 2 ? l.reshape(y, {s.steps, s.outputs}) : y);
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static constexpr Row kRows[] = {{"LSTM", lstm}, {"RNN", rnn}, {"Lstm", warpctc_lstm}};
  return kRows;
}

}  // namespace orknn::importer::caffe
