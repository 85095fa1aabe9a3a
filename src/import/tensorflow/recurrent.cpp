// Recurrent cells and blocks that TensorFlow has as one operator.
#include <algorithm>

#include "import/lower/strided_slice.h"
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

Result<LstmBlock> lstm_block(Layer& l, size_t first) {
  LstmBlock b;
  ORKNN_TRY_ASSIGN(b.weights, l.operand(first));
  ORKNN_TRY_ASSIGN(b.peephole_i, l.operand(first + 1));
  ORKNN_TRY_ASSIGN(b.peephole_f, l.operand(first + 2));
  ORKNN_TRY_ASSIGN(b.peephole_o, l.operand(first + 3));
  ORKNN_TRY_ASSIGN(b.bias, l.operand(first + 4));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(b.weights, "to know the number of units"));
  if (dims.size() != 2 || dims[1] < 4 || dims[1] % 4 != 0)
    return shape_mismatch("the weights have the wrong shape").expected("[inputs + units, 4 * units]").found(to_string(dims));
  const bool is_second = l.op().ends_with("V2");
  b.units = dims[1] / 4;
  b.forget_bias = is_second ? 0 : l.float_or("forget_bias", 1);
  b.cell_clip = l.float_or("cell_clip", is_second ? 0 : 3);
  b.has_peepholes = l.bool_or("use_peephole", false);
  b.forgets_third = !is_second;
  return b;
}

// All that a step makes, in the order of the operator's outputs.
struct LstmStep {
  TensorId i, cs, f, o, ci, co, h;
  std::vector<TensorId> all() const { return {i, cs, f, o, ci, co, h}; }
};

LstmStep lstm_step(Layer& l, const LstmBlock& b, TensorId x, TensorId cell, TensorId hidden) {
  const TensorId gates = l.add(l.matmul(l.concat({x, hidden}, 1), b.weights), b.bias);
  const auto parts = l.split(gates, 1, std::vector<int64_t>(4, b.units));
  const TensorId c = parts[b.forgets_third ? 1 : 2], f = parts[b.forgets_third ? 2 : 1];
  const auto gate = [&](TensorId sum, TensorId peephole, TensorId state) {
    return l.unary("Sigmoid", b.has_peepholes ? l.add(sum, l.mul(state, peephole)) : sum);
  };
  LstmStep s;
  s.i = gate(parts[0], b.peephole_i, cell);
  s.f = gate(b.forget_bias != 0 ? l.add(f, b.forget_bias) : f, b.peephole_f, cell);
  s.ci = l.unary("Tanh", c);
  s.cs = l.add(l.mul(s.ci, s.i), l.mul(cell, s.f));
  if (b.cell_clip > 0) s.cs = l.clip(s.cs, -b.cell_clip, b.cell_clip);
  s.o = gate(parts[3], b.peephole_o, s.cs);
  s.co = l.unary("Tanh", s.cs);
  s.h = l.mul(s.co, s.o);
  return s;
}

Result<std::vector<TensorId>> lstm_cell(Layer& l, TensorId x, TensorId cell, TensorId hidden) {
  ORKNN_TRY_ASSIGN(const LstmBlock b, lstm_block(l, 3));
  return lstm_step(l, b, x, cell, hidden).all();
}

// Without clipped cells the sequence of hidden states is what our LSTM computes; weights are cut and reordered as constants.
TensorId whole_lstm(Layer& l, const LstmBlock& b, TensorId x, TensorId cell, TensorId hidden, int64_t inputs) {
  const int64_t n = b.units, c = b.forgets_third ? 1 : 2, f = b.forgets_third ? 2 : 1;
  const auto gate = [&](TensorId w, int64_t axis, int64_t k) { return l.slice(w, axis, k * n, (k + 1) * n); };
  const auto reordered = [&](TensorId w, int64_t axis, TensorId forget) {
    return l.concat({gate(w, axis, 0), gate(w, axis, 3), forget, gate(w, axis, c)}, axis);
  };
  const auto weights = [&](int64_t begin, int64_t end) {
    const TensorId rows = l.slice(b.weights, 0, begin, end);
    return l.unsqueeze(l.transpose(reordered(rows, 1, gate(rows, 1, f)), {1, 0}), {0});
  };
  TensorId forget = gate(b.bias, 0, f);
  if (b.forget_bias != 0) forget = l.add(forget, b.forget_bias);
  const TensorId zeros = l.full(Dims{4 * n}, 0, l.dtype_of(b.bias));
  const TensorId bias = l.unsqueeze(l.concat({reordered(b.bias, 0, forget), zeros}, 0), {0});
  std::vector<TensorId> all{x,  weights(0, inputs),       weights(inputs, inputs + n), bias,
                            {}, l.unsqueeze(hidden, {0}), l.unsqueeze(cell, {0})};
  if (b.has_peepholes) all.push_back(l.unsqueeze(l.concat({b.peephole_i, b.peephole_o, b.peephole_f}, 0), {0}));
  return l.squeeze(l.emit("LSTM", std::move(all), {{"hidden_size", n}}), {1});
}

// The last output is the sequence most graphs read; the others show the gates of every step.
Result<std::vector<TensorId>> block_lstm(Layer& l, TensorId limit, TensorId x, TensorId cell, TensorId hidden) {
  ORKNN_TRY_ASSIGN(const LstmBlock b, lstm_block(l, 4));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to unroll the sequence", 3));
  constexpr int64_t kMostSteps = 4096;
  int64_t steps = dims[0];
  if (const TensorData* value = l.constant_of(limit); value && value->count() == 1 && !is_float(value->dtype()))
    steps = std::clamp<int64_t>(to_ints(value->view())[0], 0, dims[0]);
  if (steps < 1 || steps > kMostSteps)
    return unsupported("the sequence is empty or too long")
        .expected("1 to " + std::to_string(kMostSteps) + " steps")
        .found(std::to_string(steps));
  std::vector<std::vector<TensorId>> rows(7);
  TensorId c = cell, h = hidden;
  for (int64_t t = 0; t < steps; ++t) {
    const LstmStep s = lstm_step(l, b, l.squeeze(l.slice(x, 0, t, t + 1), {0}), c, h);
    c = s.cs;
    h = s.h;
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(s.all()[k]);
  }
  std::vector<TensorId> outputs;
  for (auto& row : rows) outputs.push_back(pad(l, l.stack(std::move(row), 0), {0, 0, 0, dims[0] - steps, 0, 0}));
  const auto weight_dims = l.dims_of(b.weights);
  if (b.cell_clip <= 0 && weight_dims && (*weight_dims)[0] == dims[2] + b.units && steps == dims[0])
    outputs[6] = whole_lstm(l, b, x, cell, hidden, dims[2]);
  return outputs;
}

// Outputs r, u, c, h.
Result<std::vector<TensorId>> gru_cell(Layer& l, TensorId x, TensorId h, TensorId w_ru, TensorId w_c, TensorId b_ru,
                                       TensorId b_c) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(w_c, "to know the number of units"));
  if (dims.size() != 2 || dims[1] < 1) return shape_mismatch("the weights have the wrong shape").found(to_string(dims));
  const auto driven = [&](TensorId state, TensorId w, TensorId b) { return l.add(l.matmul(l.concat({x, state}, 1), w), b); };
  const auto parts = l.split(l.unary("Sigmoid", driven(h, w_ru, b_ru)), 1, {dims[1], dims[1]});
  const TensorId r = parts[0], u = parts[1], candidate = l.unary("Tanh", driven(l.mul(r, h), w_c, b_c));
  const TensorId next = l.add(l.mul(u, h), l.mul(l.sub(l.scalar_like(x, 1), u), candidate));
  return std::vector{r, u, candidate, next};
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static const Row rows[] = {
      {"LSTMBlockCell", lstm_cell},
      {"BlockLSTM|BlockLSTMV2", block_lstm},
      {"GRUBlockCell", gru_cell},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
