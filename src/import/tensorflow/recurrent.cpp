// Recurrent cells and blocks that TensorFlow has as one operator.
#include <algorithm>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// What an LSTM block reads besides its sequence and states.
struct LstmBlock {
  TensorId weights, peephole_i, peephole_f, peephole_o, bias;
  double forget_bias = 1, cell_clip = 0;
  bool has_peepholes = false, forgets_third = true;  // gate order i, c, f, o; otherwise i, f, c, o
  int64_t units = 0;
};

Result<LstmBlock> lstm_block(Layer& layer, size_t first) {
  LstmBlock b;
  ORKNN_TRY_ASSIGN(b.weights, layer.input(first));
  ORKNN_TRY_ASSIGN(b.peephole_i, layer.input(first + 1));
  ORKNN_TRY_ASSIGN(b.peephole_f, layer.input(first + 2));
  ORKNN_TRY_ASSIGN(b.peephole_o, layer.input(first + 3));
  ORKNN_TRY_ASSIGN(b.bias, layer.input(first + 4));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(b.weights, "to know the number of units"));
  if (dims.size() != 2 || dims[1] < 4 || dims[1] % 4 != 0)
    return shape_mismatch("the weights have the wrong shape").expected("[inputs + units, 4 * units]").found(to_string(dims));
  const bool is_second = layer.op().ends_with("V2");
  b.units = dims[1] / 4;
  b.forget_bias = is_second ? 0 : layer.float_or("forget_bias", 1);
  b.cell_clip = layer.float_or("cell_clip", is_second ? 0 : 3);
  b.has_peepholes = layer.bool_or("use_peephole", false);
  b.forgets_third = !is_second;
  return b;
}

// All that a step answers with, in the order of the operator's outputs.
struct LstmStep {
  TensorId i, cs, f, o, ci, co, h;
};

LstmStep lstm_step(Layer& layer, const LstmBlock& b, TensorId x, TensorId cell, TensorId hidden) {
  const TensorId gates = layer.emit("Add", {layer.emit("MatMul", {layer.concat({x, hidden}, 1), b.weights}), b.bias});
  const auto parts =
      layer.emit_all("Split", {gates, layer.add_ints("sizes", std::vector<int64_t>(4, b.units))}, {{"axis", int64_t{1}}}, 4);
  TensorId i = parts[0], c = parts[b.forgets_third ? 1 : 2], f = parts[b.forgets_third ? 2 : 1], o = parts[3];
  const auto peep = [&](TensorId gate, TensorId weight, TensorId state) {
    return b.has_peepholes ? layer.emit("Add", {gate, layer.emit("Mul", {state, weight})}) : gate;
  };
  LstmStep s;
  s.i = layer.emit("Sigmoid", {peep(i, b.peephole_i, cell)});
  if (b.forget_bias != 0) f = layer.emit("Add", {f, layer.constant_like(f, "forget_bias", b.forget_bias)});
  s.f = layer.emit("Sigmoid", {peep(f, b.peephole_f, cell)});
  s.ci = layer.emit("Tanh", {c});
  s.cs = layer.emit("Add", {layer.emit("Mul", {s.ci, s.i}), layer.emit("Mul", {cell, s.f})});
  if (b.cell_clip > 0)
    s.cs = layer.emit("Clip",
                      {s.cs, layer.constant_like(s.cs, "low", -b.cell_clip), layer.constant_like(s.cs, "high", b.cell_clip)});
  s.o = layer.emit("Sigmoid", {peep(o, b.peephole_o, s.cs)});
  s.co = layer.emit("Tanh", {s.cs});
  s.h = layer.emit("Mul", {s.co, s.o});
  return s;
}

Status lower_lstm_cell(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId cell, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId hidden, layer.input(2));
  ORKNN_TRY_ASSIGN(const LstmBlock b, lstm_block(layer, 3));
  const LstmStep s = lstm_step(layer, b, x, cell, hidden);
  for (TensorId id : {s.i, s.cs, s.f, s.o, s.ci, s.co, s.h}) layer.set(id);
  return {};
}

// Without clipped cells the sequence of hidden states is what our LSTM computes; weights are cut and reordered as constants.
TensorId whole_lstm(Layer& layer, const LstmBlock& b, TensorId x, TensorId cell, TensorId hidden, int64_t inputs) {
  const int64_t n = b.units;
  const auto gate = [&](TensorId w, int64_t axis, int64_t k) { return layer.slice(w, {k * n}, {(k + 1) * n}, {axis}); };
  const int64_t c = b.forgets_third ? 1 : 2, f = b.forgets_third ? 2 : 1;
  const auto reordered = [&](TensorId w, int64_t axis, TensorId forget) {
    return layer.concat({gate(w, axis, 0), gate(w, axis, 3), forget, gate(w, axis, c)}, axis);
  };
  const auto weights = [&](int64_t begin, int64_t end) {
    const TensorId rows = layer.slice(b.weights, {begin}, {end}, {0});
    return layer.unsqueeze(layer.transpose(reordered(rows, 1, gate(rows, 1, f)), {1, 0}), {0});
  };
  TensorId forget = gate(b.bias, 0, f);
  if (b.forget_bias != 0) forget = layer.emit("Add", {forget, layer.constant_like(b.bias, "forget_bias", b.forget_bias)});
  const TensorId zeros = layer.emit("Expand", {layer.constant_like(b.bias, "zero", 0), layer.add_ints("size", {4 * n})});
  const TensorId bias = layer.unsqueeze(layer.concat({reordered(b.bias, 0, forget), zeros}, 0), {0});
  std::vector<TensorId> all{x,  weights(0, inputs),           weights(inputs, inputs + n), bias,
                            {}, layer.unsqueeze(hidden, {0}), layer.unsqueeze(cell, {0})};
  if (b.has_peepholes) all.push_back(layer.unsqueeze(layer.concat({b.peephole_i, b.peephole_o, b.peephole_f}, 0), {0}));
  return layer.squeeze(layer.emit("LSTM", std::move(all), {{"hidden_size", n}}), {1});
}

// Inputs: number of steps, x [time, batch, inputs], cell, hidden, weights, peepholes, bias. The last output is the sequence most
// graphs read; the others show the gates of every step.
Status lower_block_lstm(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId cell, layer.input(2));
  ORKNN_TRY_ASSIGN(const TensorId hidden, layer.input(3));
  ORKNN_TRY_ASSIGN(const LstmBlock b, lstm_block(layer, 4));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to unroll the sequence"));
  if (dims.size() != 3)
    return shape_mismatch("the sequence has the wrong rank").expected("[time, batch, inputs]").found(to_string(dims));
  constexpr int64_t kMostSteps = 4096;
  int64_t steps = dims[0];
  if (const TensorData* limit = layer.constant_of(layer.value(0).tensor);
      limit && limit->count() == 1 && !is_float(limit->dtype()))
    steps = std::clamp<int64_t>(to_ints(limit->view())[0], 0, dims[0]);
  if (steps < 1 || steps > kMostSteps)
    return unsupported("the sequence is empty or too long")
        .expected("1 to " + std::to_string(kMostSteps) + " steps")
        .found(std::to_string(steps));
  std::vector<TensorId> rows[7];
  TensorId c = cell, h = hidden;
  for (int64_t t = 0; t < steps; ++t) {
    const LstmStep s = lstm_step(layer, b, layer.squeeze(layer.slice(x, {t}, {t + 1}, {0}), {0}), c, h);
    c = s.cs;
    h = s.h;
    const TensorId all[7] = {s.i, s.cs, s.f, s.o, s.ci, s.co, s.h};
    for (size_t k = 0; k < 7; ++k) rows[k].push_back(layer.unsqueeze(all[k], {0}));
  }
  const auto padded = [&](TensorId y) {
    if (steps == dims[0]) return y;
    return layer.emit("Pad", {y, layer.add_ints("pads", {0, 0, 0, dims[0] - steps, 0, 0})});
  };
  for (size_t k = 0; k < 7; ++k) layer.set(k, padded(layer.concat(std::move(rows[k]), 0)));
  const auto weight_dims = layer.dims_of(b.weights);
  if (b.cell_clip <= 0 && weight_dims && (*weight_dims)[0] == dims[2] + b.units && steps == dims[0])
    layer.set(6, whole_lstm(layer, b, x, cell, hidden, dims[2]));
  return {};
}

// Inputs x, h_prev, w_ru, w_c, b_ru, b_c; outputs r, u, c, h.
Status lower_gru_cell(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId h, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId w_ru, layer.input(2));
  ORKNN_TRY_ASSIGN(const TensorId w_c, layer.input(3));
  ORKNN_TRY_ASSIGN(const TensorId b_ru, layer.input(4));
  ORKNN_TRY_ASSIGN(const TensorId b_c, layer.input(5));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(w_c, "to know the number of units"));
  if (dims.size() != 2 || dims[1] < 1) return shape_mismatch("the weights have the wrong shape").found(to_string(dims));
  const TensorId gates =
      layer.emit("Sigmoid", {layer.emit("Add", {layer.emit("MatMul", {layer.concat({x, h}, 1), w_ru}), b_ru})});
  const auto parts = layer.emit_all("Split", {gates, layer.add_ints("sizes", {dims[1], dims[1]})}, {{"axis", int64_t{1}}}, 2);
  const TensorId candidate = layer.emit(
      "Tanh", {layer.emit("Add", {layer.emit("MatMul", {layer.concat({x, layer.emit("Mul", {parts[0], h})}, 1), w_c}), b_c})});
  const TensorId kept = layer.emit("Mul", {parts[1], h});
  const TensorId fresh = layer.emit("Mul", {layer.emit("Sub", {layer.constant_like(x, "one", 1), parts[1]}), candidate});
  for (TensorId id : {parts[0], parts[1], candidate, layer.emit("Add", {kept, fresh})}) layer.set(id);
  return {};
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static constexpr Row kRows[] = {
      {"LSTMBlockCell", lower_lstm_cell},
      {"BlockLSTM", lower_block_lstm},
      {"BlockLSTMV2", lower_block_lstm},
      {"GRUBlockCell", lower_gru_cell},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
