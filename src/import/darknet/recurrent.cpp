// Recurrent sections: rnn, gru, lstm, crnn, conv_lstm, history. A run is one step that begins with an empty state, as Darknet's
// first step after loading does.
#include "import/lower/recurrent.h"

#include <map>

#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
constexpr int64_t kMaxOutputs = int64_t{1} << 24;

// The inner layers of a section by their names.
using InnerLayers = std::map<std::string, Parameters, std::less<>>;

Result<TensorId> empty_state(Layer& l, Dims dims) {
  l.build().has_state = true;
  return l.invent("state", std::move(dims), Fill::Zeros);
}

// How the names of inner layers end.
char letter_of(LstmGate gate) { return "iofg"[static_cast<size_t>(gate)]; }

TensorId sigmoid(Layer& l, TensorId x) { return l.unary("Sigmoid", x); }

// --- of rows

struct Rows {
  TensorId x;
  int64_t batch = 1, inputs = 0, outputs = 0;
  bool batch_normalize = false;
};

Result<Rows> rows_of(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.rows(previous));
  return Rows{in.x, in.dims[0], in.dims[1], l.integer("output", 1, 1, kMaxOutputs), l.flag("batch_normalize")};
}

// The numbers of connected layers in the order of the file; those whose names begin with `from_input` read the input.
Result<InnerLayers> take_rows(Layer& l, const Rows& r, char from_input, const std::vector<std::string>& names) {
  InnerLayers inner;
  for (const std::string& name : names) {
    const int64_t inputs = name[0] == from_input ? r.inputs : r.outputs;
    ORKNN_TRY_ASSIGN(inner[name], take_connected(l, inputs, r.outputs, r.batch_normalize, name + "_"));
  }
  return inner;
}

Result<TensorId> rnn(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Rows r, rows_of(l, previous));
  const int64_t hidden = l.integer("hidden", 1, 1, kMaxOutputs), kind = l.integer("logistic", 0, 0, 2);
  const std::string activation = l.text("activation", "logistic");
  ORKNN_TRY_ASSIGN(const Parameters input, take_connected(l, r.inputs, hidden, r.batch_normalize, "input_"));
  ORKNN_TRY_ASSIGN(const Parameters self, take_connected(l, hidden, hidden, r.batch_normalize, "self_"));
  ORKNN_TRY_ASSIGN(const Parameters output, take_connected(l, hidden, r.outputs, r.batch_normalize, "output_"));
  ORKNN_TRY_ASSIGN(const TensorId state, empty_state(l, {r.batch, hidden}));
  const TensorId from_input = connect(l, r.x, input, activation);
  const TensorId from_state = connect(l, state, self, kind == 2 ? "loggy" : kind == 1 ? "logistic" : activation);
  return connect(l, l.add(from_input, from_state), output, activation);
}

Result<TensorId> gru(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Rows r, rows_of(l, previous));
  std::vector<std::string> names{"input_z", "input_r", "input_h", "state_z", "state_r", "state_h"};
  if (!l.build().weights.is_fork()) std::rotate(names.begin(), names.begin() + 3, names.end());
  ORKNN_TRY_ASSIGN(const InnerLayers inner, take_rows(l, r, 'i', names));
  ORKNN_TRY_ASSIGN(const TensorId state, empty_state(l, {r.batch, r.outputs}));
  const auto gate = [&](const char* name, TensorId from) {
    const TensorId from_input = connect(l, r.x, inner.at(std::string("input_") + name), "linear");
    return l.add(from_input, connect(l, from, inner.at(std::string("state_") + name), "linear"));
  };
  const TensorId update = sigmoid(l, gate("z", state)), reset = sigmoid(l, gate("r", state));
  const TensorId candidate = l.unary(l.flag("tanh") ? "Tanh" : "Sigmoid", gate("h", l.mul(reset, state)));
  const TensorId fresh = l.mul(l.sub(l.add_scalar("one", 1), update), candidate);
  return l.add(l.mul(update, state), fresh);
}

Result<TensorId> lstm(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Rows r, rows_of(l, previous));
  // w: from the state, u: from the input
  const std::vector<std::string> names = l.build().weights.is_fork()
                                             ? std::vector<std::string>{"wf", "wi", "wg", "wo", "uf", "ui", "ug", "uo"}
                                             : std::vector<std::string>{"wi", "wf", "wo", "wg", "ui", "uf", "uo", "ug"};
  ORKNN_TRY_ASSIGN(const InnerLayers inner, take_rows(l, r, 'u', names));
  ORKNN_TRY_ASSIGN(const TensorId state, empty_state(l, {r.batch, r.outputs}));
  const auto sum = [&](LstmGate gate, TensorId) {
    const TensorId from_state = connect(l, state, inner.at({'w', letter_of(gate)}), "linear");
    return l.add(from_state, connect(l, r.x, inner.at({'u', letter_of(gate)}), "linear"));
  };
  ORKNN_TRY_ASSIGN(const LstmStep step, lstm_step(l, {}, {.sum = sum}));  // a forget gate would keep nothing of an empty cell
  return step.hidden;
}

// --- of pictures

// Options the inner convolutions share; filters of the result.
Convolution inner_convolution(Layer& l, std::string_view default_activation) {
  Convolution c = convolution_options(l, 3, default_activation);
  c.filters = l.integer("output", 1, 1, kMaxOutputs);
  return c;
}

// An all-zero state of the size of `like`.
Result<TensorId> empty_pictures(Layer& l, TensorId like, int64_t channels) {
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(like, "to make an empty state"));
  dims[1] = channels;
  return empty_state(l, std::move(dims));
}

Result<TensorId> crnn(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const Convolution outer = inner_convolution(l, "logistic");
  Convolution inner = outer;
  inner.filters = l.integer("hidden", 1, 1, kMaxOutputs);
  ORKNN_TRY_ASSIGN(const Parameters input, take_convolution(l, inner, in.dims[1], "input_"));
  ORKNN_TRY_ASSIGN(const Parameters self, take_convolution(l, inner, inner.filters, "self_"));
  ORKNN_TRY_ASSIGN(const Parameters output, take_convolution(l, outer, inner.filters, "output_"));
  const TensorId from_input = convolve(l, in.x, inner, input);
  ORKNN_TRY_ASSIGN(const TensorId state, empty_pictures(l, from_input, inner.filters));
  return convolve(l, l.add(from_input, convolve(l, state, inner, self)), outer, output);
}

// v: from the cell, w: from the state, u: from the input. Those of the forget gate work on an empty cell only, but their place in
// the file counts.
Result<InnerLayers> take_conv_lstm(Layer& l, const Convolution& c, int64_t channels, bool peephole, bool bottleneck) {
  std::vector<std::string> names;
  if (peephole) names = {"vf", "vi", "vo"};
  names.push_back("wf");
  if (!bottleneck) names.insert(names.end(), {"wi", "wg", "wo"});
  names.insert(names.end(), {"uf", "ui", "ug", "uo"});
  InnerLayers inner;
  for (const std::string& name : names) {
    const int64_t inputs = name[0] == 'u' ? channels : name[0] == 'w' && bottleneck ? 2 * c.filters : c.filters;
    ORKNN_TRY_ASSIGN(inner[name], take_convolution(l, c, inputs, name + "_"));
  }
  return inner;
}

Result<TensorId> conv_lstm(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const Convolution c = inner_convolution(l, "linear");
  const bool peephole = l.flag("peephole"), bottleneck = l.flag("bottleneck");
  const std::string activation = l.text("lstm_activation", "tanh");
  const int64_t outputs = c.filters;
  if (bottleneck && in.dims[1] != outputs)
    return invalid_model("conv_lstm with bottleneck must keep the number of channels")
        .expected(std::to_string(in.dims[1]))
        .found(std::to_string(outputs));
  ORKNN_TRY_ASSIGN(const InnerLayers inner, take_conv_lstm(l, c, in.dims[1], peephole, bottleneck));

  TensorId x = in.x;
  if (bottleneck) {
    ORKNN_TRY_ASSIGN(const TensorId before, empty_pictures(l, x, outputs));
    x = activate(l, convolve(l, l.concat({before, x}, 1), c, inner.at("wf")), activation);
  }
  const TensorId input_part = convolve(l, x, c, inner.at("ui"));
  ORKNN_TRY_ASSIGN(const TensorId state, empty_pictures(l, input_part, outputs));
  const auto sum = [&](LstmGate gate, TensorId cell) {
    TensorId total = gate == LstmGate::Input ? input_part : convolve(l, x, c, inner.at({'u', letter_of(gate)}));
    if (!bottleneck) total = l.add(convolve(l, state, c, inner.at({'w', letter_of(gate)})), total);
    if (!peephole || gate == LstmGate::Content) return total;
    return l.add(total, convolve(l, cell ? cell : state, c, inner.at({'v', letter_of(gate)})));
  };
  const auto content = [&](TensorId x) { return activate(l, x, activation); };
  ORKNN_TRY_ASSIGN(const LstmStep step, lstm_step(l, {}, {.sum = sum, .content = content}));
  const TensorId y = step.hidden;
  if (!bottleneck || !l.flag("shortcut") || outputs < 2) return y;
  const int64_t half = outputs / 2;  // of the channels go around the cell
  return l.add(y, l.emit("Pad", {l.slice(x, 1, 0, half), l.add_ints("pads", {0, 0, 0, 0, 0, outputs - half, 0, 0})}));
}

// The pictures before this one, of which there are none.
Result<TensorId> history(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const int64_t size = l.integer("history_size", 4, 1, 1024);
  if (size == 1) return in.x;
  ORKNN_TRY_ASSIGN(const TensorId past, empty_pictures(l, in.x, in.dims[1] * (size - 1)));
  return l.concat({in.x, past}, 1);
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static const Row rows[] = {
      {"rnn", rnn}, {"gru", gru}, {"lstm", lstm}, {"crnn", crnn}, {"conv_lstm", conv_lstm}, {"history", history},
  };
  return rows;
}

}  // namespace orknn::importer::darknet
