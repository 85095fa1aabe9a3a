// Recurrent cells and blocks that TensorFlow has as one operator.
#include "import/lower/recurrent.h"

#include <algorithm>
#include <array>

#include "import/lower/strided_slice.h"
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// What an LSTM block reads besides its sequence and states.
struct LstmBlock {
  TensorId weights, bias;
  std::array<TensorId, 4> peepholes;  // of our gates; none without, the contents have none
  double forget_bias = 1, cell_clip = 0;
  GateOrder order;
  int64_t units = 0;
};

Result<LstmBlock> lstm_block(Layer& l, size_t first) {
  LstmBlock b;
  ORKNN_TRY_ASSIGN(b.weights, l.operand(first));
  ORKNN_TRY_ASSIGN(b.bias, l.operand(first + 4));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(b.weights, "to know the number of units"));
  if (dims.size() != 2 || dims[1] < 4 || dims[1] % 4 != 0)
    return shape_mismatch("the weights have the wrong shape").expected("[inputs + units, 4 * units]").found(to_string(dims));
  const bool is_second = l.op().ends_with("V2");
  b.units = dims[1] / 4;
  b.forget_bias = is_second ? 0 : l.float_or("forget_bias", 1);
  b.cell_clip = l.float_or("cell_clip", is_second ? 0 : 3);
  b.order = is_second ? GateOrder(kGatesIfco) : GateOrder(kGatesIcfo);
  if (l.bool_or("use_peephole", false)) {
    ORKNN_TRY_ASSIGN(b.peepholes[0], l.operand(first + 1));
    ORKNN_TRY_ASSIGN(b.peepholes[2], l.operand(first + 2));
    ORKNN_TRY_ASSIGN(b.peepholes[1], l.operand(first + 3));
  }
  return b;
}

Result<LstmStep> lstm_step(Layer& l, const LstmBlock& b, TensorId x, TensorId cell, TensorId hidden) {
  const TensorId sums = l.add(l.matmul(l.concat({x, hidden}, 1), b.weights), b.bias);
  const auto parts = l.split(sums, 1, std::vector<int64_t>(4, b.units));
  const auto sum = [&](LstmGate gate, TensorId seen) {
    TensorId part = parts[static_cast<size_t>(b.order[static_cast<size_t>(gate)])];
    if (gate == LstmGate::Forget && b.forget_bias != 0) part = l.add(part, b.forget_bias);
    const TensorId peephole = b.peepholes[static_cast<size_t>(gate)];
    return peephole ? l.add(part, l.mul(seen, peephole)) : part;
  };
  const auto clipped = [&](TensorId c) { return b.cell_clip > 0 ? l.clip(c, -b.cell_clip, b.cell_clip) : c; };
  return importer::lstm_step(l, cell, {.sum = sum, .kept = clipped});
}
// In the order of the operators' outputs.
std::vector<TensorId> all_of(const LstmStep& s) { return {s.input, s.cell, s.forget, s.output, s.fresh, s.shown, s.hidden}; }

Result<std::vector<TensorId>> lstm_cell(Layer& l, TensorId x, TensorId cell, TensorId hidden) {
  ORKNN_TRY_ASSIGN(const LstmBlock b, lstm_block(l, 3));
  ORKNN_TRY_ASSIGN(const LstmStep step, lstm_step(l, b, x, cell, hidden));
  return all_of(step);
}

// Without clipped cells the sequence of hidden states is what our LSTM computes.
Result<TensorId> whole_lstm(Layer& l, const LstmBlock& b, TensorId x, TensorId cell, TensorId hidden, int64_t inputs) {
  const auto weights = [&](int64_t begin, int64_t end) { return l.transpose(l.slice(b.weights, 0, begin, end), {1, 0}); };
  RecurrentWeights w{.input = weights(0, inputs), .state = weights(inputs, inputs + b.units), .input_bias = b.bias};
  if (b.forget_bias != 0) {
    std::vector<float> raised(static_cast<size_t>(4 * b.units), 0.0f);
    std::fill_n(raised.begin() + b.order[2] * b.units, b.units, static_cast<float>(b.forget_bias));
    const TensorId more = l.add_constant("forget_bias", TensorData::from<float>({4 * b.units}, raised));
    w.input_bias = l.add(b.bias, l.cast(more, l.dtype_of(b.bias)));
  }
  if (b.peepholes[0]) w.peepholes = l.concat({b.peepholes.begin(), b.peepholes.begin() + 3}, 0);
  const RecurrentLayers layers{.order = b.order, .weights = {w}, .states = {l.unsqueeze(hidden, {0}), l.unsqueeze(cell, {0})}};
  ORKNN_TRY_ASSIGN(const RecurrentResult made, run_recurrent(l, x, layers));
  return made.sequence;
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
    ORKNN_TRY_ASSIGN(const LstmStep s, lstm_step(l, b, l.squeeze(l.slice(x, 0, t, t + 1), {0}), c, h));
    c = s.cell;
    h = s.hidden;
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(all_of(s)[k]);
  }
  std::vector<TensorId> outputs;
  for (auto& row : rows) outputs.push_back(pad(l, l.stack(std::move(row), 0), {0, 0, 0, dims[0] - steps, 0, 0}));
  const auto weight_dims = l.dims_of(b.weights);
  if (b.cell_clip <= 0 && weight_dims && (*weight_dims)[0] == dims[2] + b.units && steps == dims[0]) {
    ORKNN_TRY_ASSIGN(outputs[6], whole_lstm(l, b, x, cell, hidden, dims[2]));
  }
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
