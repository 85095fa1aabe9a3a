// Recurrent sections: rnn, gru, lstm, crnn, conv_lstm, history. A run is one step that begins with an empty state, as Darknet's
// first step after loading does.
#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
constexpr int64_t kMaxOutputs = int64_t{1} << 24;

TensorId add(Layer& l, TensorId a, TensorId b) { return l.emit("Add", {a, b}); }
TensorId mul(Layer& l, TensorId a, TensorId b) { return l.emit("Mul", {a, b}); }
TensorId sigmoid(Layer& l, TensorId x) { return l.emit("Sigmoid", {x}); }
TensorId tanh(Layer& l, TensorId x) { return l.emit("Tanh", {x}); }

Result<TensorId> empty_state(Layer& l, Dims dims) {
  l.build().has_state = true;
  ORKNN_TRY_ASSIGN(TensorData zeros, l.build().weights.invent("state", std::move(dims), Filling::Zeros));
  return l.add_constant("state", std::move(zeros));
}

struct Rows {
  TensorId x;
  int64_t batch = 1, inputs = 0, outputs = 0;
  bool batch_normalize = false;
};

Result<Rows> rows_of(Layer& l) {
  Rows r;
  ORKNN_TRY_ASSIGN(r.x, l.as_rows(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(r.x, "to read the weights"));
  r.batch = dims[0];
  r.inputs = dims[1];
  ORKNN_TRY_ASSIGN(r.outputs, l.get_int("output", 1, 1, kMaxOutputs));
  r.batch_normalize = l.get_flag("batch_normalize");
  return r;
}

Status rnn(Layer& l) {
  ORKNN_TRY_ASSIGN(const Rows r, rows_of(l));
  ORKNN_TRY_ASSIGN(const int64_t hidden, l.get_int("hidden", 1, 1, kMaxOutputs));
  ORKNN_TRY_ASSIGN(const int64_t kind, l.get_int("logistic", 0, 0, 2));
  const std::string activation = l.get_string("activation", "logistic");
  ORKNN_TRY_ASSIGN(const Parameters input, take_connected(l, r.inputs, hidden, r.batch_normalize, "input_"));
  ORKNN_TRY_ASSIGN(const Parameters self, take_connected(l, hidden, hidden, r.batch_normalize, "self_"));
  ORKNN_TRY_ASSIGN(const Parameters output, take_connected(l, hidden, r.outputs, r.batch_normalize, "output_"));
  ORKNN_TRY_ASSIGN(const TensorId state, empty_state(l, {r.batch, hidden}));
  ORKNN_TRY_ASSIGN(const TensorId from_input, connect(l, r.x, input, activation));
  ORKNN_TRY_ASSIGN(const TensorId from_state, connect(l, state, self, kind == 2 ? "loggy" : kind == 1 ? "logistic" : activation));
  ORKNN_TRY_ASSIGN(const TensorId y, connect(l, add(l, from_input, from_state), output, activation));
  return l.hand_on(y);
}

Status gru(Layer& l) {
  ORKNN_TRY_ASSIGN(const Rows r, rows_of(l));
  Parameters input_z, input_r, input_h, state_z, state_r, state_h;
  const auto take_inputs = [&]() -> Status {
    ORKNN_TRY_ASSIGN(input_z, take_connected(l, r.inputs, r.outputs, r.batch_normalize, "input_z_"));
    ORKNN_TRY_ASSIGN(input_r, take_connected(l, r.inputs, r.outputs, r.batch_normalize, "input_r_"));
    ORKNN_TRY_ASSIGN(input_h, take_connected(l, r.inputs, r.outputs, r.batch_normalize, "input_h_"));
    return {};
  };
  const auto take_states = [&]() -> Status {
    ORKNN_TRY_ASSIGN(state_z, take_connected(l, r.outputs, r.outputs, r.batch_normalize, "state_z_"));
    ORKNN_TRY_ASSIGN(state_r, take_connected(l, r.outputs, r.outputs, r.batch_normalize, "state_r_"));
    ORKNN_TRY_ASSIGN(state_h, take_connected(l, r.outputs, r.outputs, r.batch_normalize, "state_h_"));
    return {};
  };
  if (l.build().weights.is_fork()) {
    ORKNN_TRY(take_inputs());
    ORKNN_TRY(take_states());
  } else {
    ORKNN_TRY(take_states());
    ORKNN_TRY(take_inputs());
  }
  ORKNN_TRY_ASSIGN(const TensorId state, empty_state(l, {r.batch, r.outputs}));
  const auto gate = [&](const Parameters& input, const Parameters& recurrent, TensorId from) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const TensorId a, connect(l, r.x, input, "linear"));
    ORKNN_TRY_ASSIGN(const TensorId b, connect(l, from, recurrent, "linear"));
    return add(l, a, b);
  };
  ORKNN_TRY_ASSIGN(TensorId update, gate(input_z, state_z, state));
  update = sigmoid(l, update);
  ORKNN_TRY_ASSIGN(const TensorId reset, gate(input_r, state_r, state));
  ORKNN_TRY_ASSIGN(TensorId candidate, gate(input_h, state_h, mul(l, sigmoid(l, reset), state)));
  candidate = l.get_flag("tanh") ? tanh(l, candidate) : sigmoid(l, candidate);
  const TensorId fresh = mul(l, l.emit("Sub", {l.add_scalar("one", 1), update}), candidate);
  return l.hand_on(add(l, mul(l, update, state), fresh));
}

Status lstm(Layer& l) {
  ORKNN_TRY_ASSIGN(const Rows r, rows_of(l));
  Parameters f[2], i[2], g[2], o[2];  // [0] recurrent, [1] from the input
  const bool fork = l.build().weights.is_fork();
  for (int k = 0; k < 2; ++k) {
    const int64_t inputs = k == 0 ? r.outputs : r.inputs;
    const std::string prefix = k == 0 ? "w" : "u";
    const auto next = [&](Parameters& p, const char* gate) -> Status {
      ORKNN_TRY_ASSIGN(p, take_connected(l, inputs, r.outputs, r.batch_normalize, prefix + gate + "_"));
      return {};
    };
    if (fork) {
      ORKNN_TRY(next(f[k], "f"));
      ORKNN_TRY(next(i[k], "i"));
      ORKNN_TRY(next(g[k], "g"));
      ORKNN_TRY(next(o[k], "o"));
    } else {
      ORKNN_TRY(next(i[k], "i"));
      ORKNN_TRY(next(f[k], "f"));
      ORKNN_TRY(next(o[k], "o"));
      ORKNN_TRY(next(g[k], "g"));
    }
  }
  ORKNN_TRY_ASSIGN(const TensorId state, empty_state(l, {r.batch, r.outputs}));
  const auto gate = [&](const Parameters* p) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const TensorId a, connect(l, state, p[0], "linear"));
    ORKNN_TRY_ASSIGN(const TensorId b, connect(l, r.x, p[1], "linear"));
    return add(l, a, b);
  };
  ORKNN_TRY_ASSIGN(const TensorId input_gate, gate(i));
  ORKNN_TRY_ASSIGN(const TensorId candidate, gate(g));
  ORKNN_TRY_ASSIGN(const TensorId output_gate, gate(o));
  // The forget gate keeps nothing of an empty cell.
  const TensorId cell = mul(l, sigmoid(l, input_gate), tanh(l, candidate));
  return l.hand_on(mul(l, tanh(l, cell), sigmoid(l, output_gate)));
}

struct Pictures {
  TensorId x;
  Dims dims;
  Convolution convolution;  // options the inner convolutions share; filters of the result
};

Result<Pictures> pictures_of(Layer& l, std::string_view default_activation) {
  Pictures p;
  ORKNN_TRY_ASSIGN(p.x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(p.dims, l.need_dims(p.x, "to read the weights"));
  ORKNN_TRY_ASSIGN(p.convolution, convolution_options(l, 3, default_activation));
  ORKNN_TRY_ASSIGN(p.convolution.filters, l.get_int("output", 1, 1, kMaxOutputs));
  return p;
}

// An all-zero state of the size a convolution of `x` gives.
Result<TensorId> empty_pictures(Layer& l, TensorId like, int64_t channels) {
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(like, "to make an empty state"));
  dims[1] = channels;
  return empty_state(l, std::move(dims));
}

Status crnn(Layer& l) {
  ORKNN_TRY_ASSIGN(const Pictures p, pictures_of(l, "logistic"));
  ORKNN_TRY_ASSIGN(const int64_t hidden, l.get_int("hidden", 1, 1, kMaxOutputs));
  Convolution inner = p.convolution;
  inner.filters = hidden;
  ORKNN_TRY_ASSIGN(const Parameters input, take_convolution(l, inner, p.dims[1], "input_"));
  ORKNN_TRY_ASSIGN(const Parameters self, take_convolution(l, inner, hidden, "self_"));
  ORKNN_TRY_ASSIGN(const Parameters output, take_convolution(l, p.convolution, hidden, "output_"));
  ORKNN_TRY_ASSIGN(const TensorId from_input, convolve(l, p.x, inner, input));
  ORKNN_TRY_ASSIGN(const TensorId state, empty_pictures(l, from_input, hidden));
  ORKNN_TRY_ASSIGN(const TensorId from_state, convolve(l, state, inner, self));
  ORKNN_TRY_ASSIGN(const TensorId y, convolve(l, add(l, from_input, from_state), p.convolution, output));
  return l.hand_on(y);
}

Status conv_lstm(Layer& l) {
  ORKNN_TRY_ASSIGN(const Pictures p, pictures_of(l, "linear"));
  const Convolution& c = p.convolution;
  const bool peephole = l.get_flag("peephole"), bottleneck = l.get_flag("bottleneck");
  const std::string activation = l.get_string("lstm_activation", "tanh");
  const int64_t outputs = c.filters;
  if (bottleneck && p.dims[1] != outputs)
    return invalid_model("conv_lstm with bottleneck must keep the number of channels")
        .expected(std::to_string(p.dims[1]))
        .found(std::to_string(outputs));
  // The parameters of the forget gate work on an empty cell only, but their place in the file counts.
  Parameters vi, vo, wf, wi, wg, wo;
  if (peephole) {
    ORKNN_TRY(take_convolution(l, c, outputs, "vf_").status());
    ORKNN_TRY_ASSIGN(vi, take_convolution(l, c, outputs, "vi_"));
    ORKNN_TRY_ASSIGN(vo, take_convolution(l, c, outputs, "vo_"));
  }
  ORKNN_TRY_ASSIGN(wf, take_convolution(l, c, bottleneck ? 2 * outputs : outputs, "wf_"));
  if (!bottleneck) {
    ORKNN_TRY_ASSIGN(wi, take_convolution(l, c, outputs, "wi_"));
    ORKNN_TRY_ASSIGN(wg, take_convolution(l, c, outputs, "wg_"));
    ORKNN_TRY_ASSIGN(wo, take_convolution(l, c, outputs, "wo_"));
  }
  ORKNN_TRY(take_convolution(l, c, p.dims[1], "uf_").status());
  ORKNN_TRY_ASSIGN(const Parameters ui, take_convolution(l, c, p.dims[1], "ui_"));
  ORKNN_TRY_ASSIGN(const Parameters ug, take_convolution(l, c, p.dims[1], "ug_"));
  ORKNN_TRY_ASSIGN(const Parameters uo, take_convolution(l, c, p.dims[1], "uo_"));

  TensorId x = p.x;
  if (bottleneck) {
    ORKNN_TRY_ASSIGN(const TensorId before, empty_pictures(l, x, outputs));
    ORKNN_TRY_ASSIGN(x, convolve(l, l.emit("Concat", {before, x}, {{"axis", int64_t{1}}}), c, wf));
    ORKNN_TRY_ASSIGN(x, activate(l, x, activation));
  }
  ORKNN_TRY_ASSIGN(const TensorId input_part, convolve(l, x, c, ui));
  ORKNN_TRY_ASSIGN(const TensorId state, empty_pictures(l, input_part, outputs));
  const auto gate = [&](TensorId from_input, const Parameters& recurrent) -> Result<TensorId> {
    if (bottleneck) return from_input;
    ORKNN_TRY_ASSIGN(const TensorId from_state, convolve(l, state, c, recurrent));
    return add(l, from_state, from_input);
  };
  const auto with_cell = [&](TensorId sum, TensorId cell, const Parameters& parameters) -> Result<TensorId> {
    if (!peephole) return sum;
    ORKNN_TRY_ASSIGN(const TensorId from_cell, convolve(l, cell, c, parameters));
    return add(l, sum, from_cell);
  };
  ORKNN_TRY_ASSIGN(TensorId input_gate, gate(input_part, wi));
  ORKNN_TRY_ASSIGN(input_gate, with_cell(input_gate, state, vi));
  ORKNN_TRY_ASSIGN(const TensorId candidate_part, convolve(l, x, c, ug));
  ORKNN_TRY_ASSIGN(TensorId candidate, gate(candidate_part, wg));
  ORKNN_TRY_ASSIGN(candidate, activate(l, candidate, activation));
  const TensorId cell = mul(l, sigmoid(l, input_gate), candidate);
  ORKNN_TRY_ASSIGN(const TensorId output_part, convolve(l, x, c, uo));
  ORKNN_TRY_ASSIGN(TensorId output_gate, gate(output_part, wo));
  ORKNN_TRY_ASSIGN(output_gate, with_cell(output_gate, cell, vo));
  ORKNN_TRY_ASSIGN(const TensorId shown, activate(l, cell, activation));
  TensorId y = mul(l, shown, sigmoid(l, output_gate));
  if (bottleneck && l.get_flag("shortcut") && outputs > 1) {  // half of the channels go around the cell
    const int64_t half = outputs / 2;
    const TensorId part = l.emit("Slice", {x, l.add_ints("starts", {0}), l.add_ints("ends", {half}), l.add_ints("axes", {1})});
    y = add(l, y, l.emit("Pad", {part, l.add_ints("pads", {0, 0, 0, 0, 0, outputs - half, 0, 0})}));
  }
  return l.hand_on(y);
}

// The pictures before this one, of which there are none.
Status history(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to keep its history"));
  ORKNN_TRY_ASSIGN(const int64_t size, l.get_int("history_size", 4, 1, 1024));
  if (size == 1) return l.hand_on(x);
  ORKNN_TRY_ASSIGN(const TensorId past, empty_pictures(l, x, dims[1] * (size - 1)));
  return l.hand_on(l.emit("Concat", {x, past}, {{"axis", int64_t{1}}}));
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static constexpr Row kRows[] = {
      {"rnn", rnn}, {"gru", gru}, {"lstm", lstm}, {"crnn", crnn}, {"conv_lstm", conv_lstm}, {"history", history},
  };
  return kRows;
}

}  // namespace orknn::importer::darknet
