// Recurrent layers. Plain float LSTMs become one LSTM of ours; projections, clipped cells, layer norms and integer states are
// unrolled.
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
enum Gate : size_t { Input, Forget, Cell, Output };

struct LstmOptions {
  Activation activation = Activation::Tanh;
  double cell_clip = 0, projection_clip = 0;  // 0 = none
  bool reverse = false;
};

struct Sequence {
  TensorId all;          // [time, batch, units]
  TensorId state, cell;  // the last ones, [batch, units]
};

TensorId clipped(Layer& l, TensorId x, double limit) {
  return limit > 0 ? l.emit("Clip", {x, l.add_scalar("min", -limit), l.add_scalar("max", limit)}) : x;
}

Result<const char*> activation_name(Activation a) {
  switch (a) {
    case Activation::Tanh: return "Tanh";
    case Activation::Relu: return "Relu";
    default:
      return unsupported("the activation of the cell is not supported")
          .expected("TANH or RELU")
          .found(std::to_string(static_cast<int>(a)));
  }
}

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
    if (!part) return invalid_model("input " + std::to_string(i) + " is missing");
    parts.push_back(coupled ? l.emit("Neg", {part}) : part);
  }
  return l.unsqueeze(l.concat(std::move(parts), 0), {0});
}

Result<Sequence> one_lstm(Layer& l, TensorId x, const LstmInputs& in, const LstmOptions& options) {
  static constexpr Gate kOrder[] = {Input, Output, Forget, Cell};
  ORKNN_TRY_ASSIGN(const TensorId w, stacked(l, in.weights, false, kOrder, in));
  ORKNN_TRY_ASSIGN(const TensorId r, stacked(l, in.recurrent, false, kOrder, in));
  ORKNN_TRY_ASSIGN(const TensorId b, stacked(l, in.bias, true, kOrder, in));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(b, "to size the layer"));
  ORKNN_TRY_ASSIGN(const TensorId h, l.real(in.state));
  ORKNN_TRY_ASSIGN(const TensorId c, l.real(in.cell));
  if (dims.size() != 2 || dims[1] % 4 != 0) return invalid_model("the biases do not fit four gates").found(to_string(dims));
  const TensorId no_bias = l.emit("Expand", {l.add_scalar("zero", 0), l.add_ints("shape", dims)});
  std::vector<TensorId> inputs{x, w, r, l.concat({b, no_bias}, 1), TensorId{}, l.unsqueeze(h, {0}), l.unsqueeze(c, {0})};
  if (has_any(l, in.peephole, 3)) {
    std::vector<TensorId> parts;
    const bool coupled = !l.has_input(in.weights);
    for (size_t k : {size_t{0}, size_t{2}, size_t{1}}) {  // input, output, forget
      ORKNN_TRY_ASSIGN(const TensorId part, l.real(in.peephole + (k == 0 && coupled ? 1 : k)));
      parts.push_back(k == 0 && coupled ? l.emit("Neg", {part}) : part);
    }
    inputs.push_back(l.unsqueeze(l.concat(std::move(parts), 0), {0}));
  }
  ORKNN_TRY_ASSIGN(const char* function, activation_name(options.activation));
  Attributes attributes{{"hidden_size", dims[1] / 4}, {"direction", std::string(options.reverse ? "reverse" : "forward")}};
  if (options.activation != Activation::Tanh)
    attributes.set("activations", std::vector<std::string>{"Sigmoid", function, function});
  const std::vector<TensorId> y = l.emit_all("LSTM", std::move(inputs), std::move(attributes), 3);
  return Sequence{l.squeeze(y[0], {1}), l.squeeze(y[1], {0}), l.squeeze(y[2], {0})};
}

// --- step by step

Result<int64_t> step_count(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to walk through its steps"));
  if (dims.size() != 3)
    return invalid_model("the input of the sequence has the wrong number of dimensions").expected("3").found(to_string(dims));
  if (dims[0] < 1 || dims[0] > kMaxSteps)
    return unsupported("the sequence is too long to be unrolled")
        .expected("at most " + std::to_string(kMaxSteps) + " steps")
        .found(std::to_string(dims[0]));
  ORKNN_TRY(l.builder().count_lowered(static_cast<size_t>(dims[0]) * kOperatorsPerStep));
  return dims[0];
}

// Walks through time, forwards or backwards: body(t) gives the output of step t.
template <class Body>
Result<TensorId> walk(Layer& l, int64_t steps, bool reverse, Body body) {
  std::vector<TensorId> results(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = reverse ? steps - 1 - k : k;
    ORKNN_TRY_ASSIGN(const TensorId y, body(t));
    results[static_cast<size_t>(t)] = l.unsqueeze(y, {0});
  }
  return l.concat(std::move(results), 0);
}

Result<Sequence> unrolled_lstm(Layer& l, TensorId x, TensorId auxiliary, const LstmInputs& in, const LstmOptions& options) {
  const bool coupled = !l.has_input(in.weights), normed = in.norm && has_any(l, in.norm, 4);
  std::vector<Gate> gates;
  if (!coupled) gates.push_back(Input);
  gates.insert(gates.end(), {Forget, Cell, Output});
  // All gates in one product.
  const auto joined = [&](size_t first) -> Result<TensorId> {
    std::vector<TensorId> parts;
    for (Gate g : gates) {
      ORKNN_TRY_ASSIGN(const TensorId part, l.weights(first + g, {1, 0}));
      parts.push_back(part);
    }
    return l.concat(std::move(parts), 1);
  };
  ORKNN_TRY_ASSIGN(const int64_t steps, step_count(l, x));
  ORKNN_TRY_ASSIGN(const TensorId w, joined(in.weights));
  ORKNN_TRY_ASSIGN(const TensorId r, joined(in.recurrent));
  std::array<TensorId, 4> biases, norms, peepholes;
  for (Gate g : gates) {
    ORKNN_TRY_ASSIGN(biases[g], l.bias(in.bias + g, 0, in.weights + g));
    if (normed) {
      ORKNN_TRY_ASSIGN(norms[g], l.real(in.norm + g));
    }
  }
  if (has_any(l, in.peephole, 3))
    for (Gate g : gates) {
      if (g == Cell) continue;
      ORKNN_TRY_ASSIGN(peepholes[g], l.real(in.peephole + (g == Output ? size_t{2} : size_t{g})));
    }
  TensorId driven = l.emit("MatMul", {x, w});
  if (auxiliary && in.auxiliary && l.has_input(in.auxiliary + Forget)) {
    ORKNN_TRY_ASSIGN(const TensorId extra, joined(in.auxiliary));
    driven = l.emit("Add", {driven, l.emit("MatMul", {auxiliary, extra})});
  }
  TensorId projection, projection_bias;
  if (l.has_input(in.projection)) {
    ORKNN_TRY_ASSIGN(projection, l.weights(in.projection, {1, 0}));
    ORKNN_TRY_ASSIGN(projection_bias, l.bias(in.projection_bias, 0, in.projection));
  }
  // What is projected has number formats of its own.
  constexpr size_t kHiddenFormat = 4;
  const Numbers<int32_t>& inner = l.op().intermediates;
  const bool has_hidden_format = projection && inner.size() > kHiddenFormat && inner[kHiddenFormat] >= 0;

  Sequence s;
  ORKNN_TRY_ASSIGN(s.state, l.real(in.state));
  ORKNN_TRY_ASSIGN(s.cell, l.real(in.cell));
  const TensorId one = l.add_scalar("one", 1);
  ORKNN_TRY_ASSIGN(s.all, walk(l, steps, options.reverse, [&](int64_t t) -> Result<TensorId> {
                     const TensorId now = l.emit("Gather", {driven, l.add_int_scalar("step", t)}, {{"axis", int64_t{0}}});
                     const TensorId sum = l.emit("Add", {now, l.emit("MatMul", {s.state, r})});
                     const std::vector<TensorId> parts =
                         l.emit_all("Split", {sum}, {{"axis", int64_t{-1}}, {"num_outputs", static_cast<int64_t>(gates.size())}},
                                    gates.size());
                     const auto drive = [&](Gate gate, TensorId cell) {
                       TensorId z = parts[gate - (coupled ? 1 : 0)];
                       if (peepholes[gate]) z = l.emit("Add", {z, l.emit("Mul", {cell, peepholes[gate]})});
                       if (normed && norms[gate])
                         z = l.emit("LayerNormalization", {z, norms[gate]}, {{"axis", int64_t{-1}}, {"epsilon", 1e-8}});
                       return biases[gate] ? l.emit("Add", {z, biases[gate]}) : z;
                     };
                     const TensorId forget = l.emit("Sigmoid", {drive(Forget, s.cell)});
                     const TensorId input = coupled ? l.emit("Sub", {one, forget}) : l.emit("Sigmoid", {drive(Input, s.cell)});
                     ORKNN_TRY_ASSIGN(const TensorId candidate, l.activate(drive(Cell, s.cell), options.activation));
                     TensorId cell = l.emit("Add", {l.emit("Mul", {forget, s.cell}), l.emit("Mul", {input, candidate})});
                     cell = clipped(l, cell, options.cell_clip);
                     ORKNN_TRY_ASSIGN(s.cell, l.round_to(cell, l.input_index(in.cell)));
                     const TensorId output = l.emit("Sigmoid", {drive(Output, s.cell)});
                     ORKNN_TRY_ASSIGN(const TensorId active, l.activate(s.cell, options.activation));
                     TensorId h = l.emit("Mul", {output, active});
                     if (projection) {
                       if (has_hidden_format) {
                         ORKNN_TRY_ASSIGN(h, l.round_to(h, static_cast<size_t>(inner[kHiddenFormat])));
                       }
                       h = l.emit("MatMul", {h, projection});
                       if (projection_bias) h = l.emit("Add", {h, projection_bias});
                       h = clipped(l, h, options.projection_clip);
                     }
                     ORKNN_TRY_ASSIGN(s.state, l.round_to(h, l.input_index(in.state)));
                     return s.state;
                   }));
  return s;
}

Result<Sequence> lstm(Layer& l, TensorId x, TensorId auxiliary, const LstmInputs& in, const LstmOptions& options) {
  for (size_t i : {in.weights + Forget, in.weights + Cell, in.weights + Output, in.state, in.cell})
    if (!l.has_input(i))
      return invalid_model("input " + std::to_string(i) + " is missing").found(std::to_string(l.input_count()) + " inputs");
  const bool plain = !(options.cell_clip > 0) && !l.has_input(in.projection) && !(in.norm && has_any(l, in.norm, 4)) &&
                     !auxiliary && has_any(l, in.bias, 4) && !l.input_info(in.state).is_quantized() &&
                     !l.input_info(in.cell).is_quantized();
  return plain ? one_lstm(l, x, in, options) : unrolled_lstm(l, x, auxiliary, in, options);
}

// --- the operators

// Time first; the batch comes first in most files.
Result<TensorId> time_first(Layer& l, size_t i, bool time_major) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(i));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to walk through its steps"));
  if (rank != 3)
    return invalid_model("the input of the sequence has the wrong number of dimensions")
        .expected("3")
        .found(std::to_string(rank));
  return time_major ? x : l.transpose(x, {1, 0, 2});
}
TensorId given_order(Layer& l, TensorId y, bool time_major) { return time_major ? y : l.transpose(y, {1, 0, 2}); }

Status unidirectional_lstm(Layer& l) {
  const Table& o = l.options();
  if (o.flag(5)) return unsupported("diagonal recurrent weights are not supported");
  LstmInputs in;
  if (l.input_count() > 20) in.norm = 20;
  const bool time_major = o.flag(3);
  ORKNN_TRY_ASSIGN(const TensorId x, time_first(l, 0, time_major));
  ORKNN_TRY_ASSIGN(const Sequence s, lstm(l, x, {}, in, {l.activation(0), o.number<float>(1), o.number<float>(2), false}));
  ORKNN_TRY(l.set_variable(in.state, s.state));
  ORKNN_TRY(l.set_variable(in.cell, s.cell));
  return l.set(0, given_order(l, s.all, time_major));
}

Status bidirectional_lstm(Layer& l) {
  const Table& o = l.options();
  const bool time_major = o.flag(4, true), merge = o.flag(3);
  LstmInputs forward, backward;
  forward.state = 35, forward.cell = 36;
  backward = {18, 22, 26, 29, 33, 34, 37, 38, 0, 0};
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
  LstmOptions options{l.activation(0), o.number<float>(1), o.number<float>(2), false};
  ORKNN_TRY_ASSIGN(const Sequence f, lstm(l, x, auxiliary, forward, options));
  options.reverse = true;
  ORKNN_TRY_ASSIGN(const Sequence b, lstm(l, backward_x, auxiliary, backward, options));
  for (const auto& [in, s] : {std::pair(&forward, &f), std::pair(&backward, &b)}) {
    ORKNN_TRY(l.set_variable(in->state, s->state));
    ORKNN_TRY(l.set_variable(in->cell, s->cell));
  }
  if (merge) return l.set(0, given_order(l, l.concat({f.all, b.all}, 2), time_major));
  ORKNN_TRY(l.set(0, given_order(l, f.all, time_major)));
  return l.set(1, given_order(l, b.all, time_major));
}

// One step on [batch, inputs], with all gates in one matrix: input, candidate, forget, output.
Status basic_lstm_step(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId h, l.real(1));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(2, {0, 1}));
  ORKNN_TRY_ASSIGN(const TensorId b, l.bias(3, 0, 2));
  ORKNN_TRY_ASSIGN(const TensorId c, l.real(4));
  const TensorId together = l.concat({x, h}, 1);
  std::vector<TensorId> inputs{together, w};
  if (b) inputs.push_back(b);
  const TensorId gates = l.emit("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
  const std::vector<TensorId> part = l.emit_all("Split", {gates}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{4}}}, 4);
  const TensorId added = l.emit("Mul", {l.emit("Sigmoid", {part[0]}), l.emit("Tanh", {part[1]})});
  const TensorId cell = l.emit("Add", {added, l.emit("Mul", {l.emit("Sigmoid", {part[2]}), c})});
  const TensorId out = l.emit("Mul", {l.emit("Sigmoid", {part[3]}), l.emit("Tanh", {cell})});
  ORKNN_TRY(l.set_variable(1, out));
  ORKNN_TRY(l.set_variable(4, cell));
  ORKNN_TRY(l.set(0, out));
  ORKNN_TRY(l.set(1, cell));
  ORKNN_TRY(l.set(2, together));
  return l.set(3, gates);
}

Status lstm_step(Layer& l) {
  const Table& o = l.options();
  if (o.number<int8_t>(3) == 1) return basic_lstm_step(l);
  LstmInputs in;
  if (l.input_count() > 20) in.norm = 20;
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const Sequence s,
                   lstm(l, l.unsqueeze(x, {0}), {}, in, {l.activation(0), o.number<float>(1), o.number<float>(2), false}));
  ORKNN_TRY(l.set_variable(in.state, s.state));
  ORKNN_TRY(l.set_variable(in.cell, s.cell));
  if (l.output_count() == 4) {  // the oldest form: scratch, state, cell, output
    ORKNN_TRY(l.set(1, s.state));
    ORKNN_TRY(l.set(2, s.cell));
    return l.set(3, s.state);
  }
  return l.set(0, s.state);
}

// x [time, batch, inputs]; the four inputs from `first` on are weights, recurrent weights, bias and state.
Result<Sequence> rnn(Layer& l, TensorId x, TensorId auxiliary, size_t auxiliary_weights, size_t first, size_t state,
                     Activation activation, bool reverse) {
  ORKNN_TRY_ASSIGN(const int64_t steps, step_count(l, x));
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(first, {1, 0}));
  ORKNN_TRY_ASSIGN(const TensorId r, l.weights(first + 1, {1, 0}));
  ORKNN_TRY_ASSIGN(const TensorId b, l.bias(first + 2, 0, first));
  Sequence s;
  ORKNN_TRY_ASSIGN(s.state, l.real(state));
  TensorId driven = l.emit("MatMul", {x, w});
  if (auxiliary) {
    ORKNN_TRY_ASSIGN(const TensorId extra, l.weights(auxiliary_weights, {1, 0}));
    driven = l.emit("Add", {driven, l.emit("MatMul", {auxiliary, extra})});
  }
  if (b) driven = l.emit("Add", {driven, b});
  ORKNN_TRY_ASSIGN(
      s.all, walk(l, steps, reverse, [&](int64_t t) -> Result<TensorId> {
        const TensorId now = l.emit("Gather", {driven, l.add_int_scalar("step", t)}, {{"axis", int64_t{0}}});
        ORKNN_TRY_ASSIGN(const TensorId h, l.activate(l.emit("Add", {now, l.emit("MatMul", {s.state, r})}), activation));
        ORKNN_TRY_ASSIGN(s.state, l.round_to(h, l.input_index(state)));
        return s.state;
      }));
  return s;
}

Status rnn_step(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  if (!l.has_input(4)) return invalid_model("input 4 is missing");
  ORKNN_TRY_ASSIGN(const Sequence s, rnn(l, l.unsqueeze(x, {0}), {}, 0, 1, 4, l.activation(0), false));
  ORKNN_TRY(l.set_variable(4, s.state));
  return l.set(0, s.state);
}

Status unidirectional_rnn(Layer& l) {
  const bool time_major = l.options().flag(0);
  if (!l.has_input(4)) return invalid_model("input 4 is missing");
  ORKNN_TRY_ASSIGN(const TensorId x, time_first(l, 0, time_major));
  ORKNN_TRY_ASSIGN(const Sequence s, rnn(l, x, {}, 0, 1, 4, l.activation(1), false));
  ORKNN_TRY(l.set_variable(4, s.state));
  return l.set(0, given_order(l, s.all, time_major));
}

Status bidirectional_rnn(Layer& l) {
  const bool time_major = l.options().flag(0), merge = l.options().flag(2);
  if (!l.has_input(4) || !l.has_input(8)) return invalid_model("a state is missing").expected("inputs 4 and 8");
  ORKNN_TRY_ASSIGN(const TensorId x, time_first(l, 0, time_major));
  TensorId auxiliary, backward_x = x;
  if (l.has_input(9)) {
    ORKNN_TRY_ASSIGN(const TensorId extra, time_first(l, 9, time_major));
    (l.has_input(10) ? auxiliary : backward_x) = extra;
  }
  ORKNN_TRY_ASSIGN(const Sequence f, rnn(l, x, auxiliary, 10, 1, 4, l.activation(1), false));
  ORKNN_TRY_ASSIGN(const Sequence b, rnn(l, backward_x, auxiliary, 11, 5, 8, l.activation(1), true));
  ORKNN_TRY(l.set_variable(4, f.state));
  ORKNN_TRY(l.set_variable(8, b.state));
  if (merge) return l.set(0, given_order(l, l.concat({f.all, b.all}, 2), time_major));
  ORKNN_TRY(l.set(0, given_order(l, f.all, time_major)));
  return l.set(1, given_order(l, b.all, time_major));
}

// Two stages: features of the input join the memory of earlier ones, then each filter weighs its memory. Filters come in groups
// of `rank`, which are summed.
Status svdf(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
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
  TensorId fresh = l.emit("Gemm", {x, features}, {{"transB", int64_t{1}}});
  ORKNN_TRY_ASSIGN(fresh, l.round_to(fresh, l.input_index(4)));
  fresh = l.reshape(fresh, {batch, filters, 1});
  TensorId kept = fresh;
  if (length > 1) {
    const TensorId before = l.slice(l.reshape(memory, {batch, filters, length}), {1}, {INT64_MAX}, {2});
    kept = l.concat({before, fresh}, 2);
  }
  ORKNN_TRY(l.set_variable(4, l.reshape(kept, {batch, filters * length})));
  const TensorId weighed =
      l.emit("ReduceSum", {l.emit("Mul", {kept, over_time}), l.add_ints("axes", {2})}, {{"keepdims", int64_t{0}}});
  TensorId y = weighed;
  if (rank > 1)
    y = l.emit("ReduceSum", {l.reshape(weighed, {batch, filters / rank, rank}), l.add_ints("axes", {2})},
               {{"keepdims", int64_t{0}}});
  if (bias) y = l.emit("Add", {y, bias});
  ORKNN_TRY_ASSIGN(const TensorId active, l.activate(y, l.activation(1)));
  return l.set(0, active);
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static constexpr Row rows[] = {
      {"LSTM", lstm_step},
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
