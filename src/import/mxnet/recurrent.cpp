// The fused recurrent layer: several levels, one or two directions, all parameters in one vector (first every weight by level and
// direction, then every bias). And sequences of different length in one batch: masking, the last element, reversal.
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
struct Mode {
  std::string_view name, op, activation;
  std::vector<int64_t> gates;  // our order of MXNet's gates
};
const Mode* find_mode(std::string_view name) {
  static const Mode modes[] = {
      {"rnn_relu", "RNN", "Relu", {0}},
      {"rnn_tanh", "RNN", "Tanh", {0}},
      {"lstm", "LSTM", "", {0, 3, 1, 2}},  // i, f, c, o -> i, o, f, c
      {"gru", "GRU", "", {1, 0, 2}},       // r, z, n -> z, r, n
  };
  for (const Mode& m : modes)
    if (m.name == name) return &m;
  return nullptr;
}

class Recurrent {
 public:
  Recurrent(Layer& layer, const Mode& mode, const Dims& data, int64_t hidden, int64_t levels, int64_t directions)
      : l(layer),
        mode_(mode),
        batch_(data[1]),
        features_(data[2]),
        hidden_(hidden),
        levels_(levels),
        directions_(directions),
        gates_(static_cast<int64_t>(mode.gates.size())) {}

  int64_t width_of(int64_t level) const { return level == 0 ? features_ : hidden_ * directions_; }
  // Elements of all weights.
  int64_t weight_count() const {
    int64_t count = 0;
    for (int64_t level = 0; level < levels_; ++level) count += directions_ * gates_ * hidden_ * (width_of(level) + hidden_);
    return count;
  }
  int64_t parameter_count() const { return weight_count() + levels_ * directions_ * 2 * gates_ * hidden_; }

  std::vector<TensorId> run(TensorId x, TensorId parameters, TensorId state, TensorId cell, TensorId lengths) {
    std::vector<TensorId> last_states, last_cells;
    int64_t weight_at = 0, bias_at = weight_count();
    for (int64_t level = 0; level < levels_; ++level) {
      const int64_t width = width_of(level);
      std::vector<TensorId> inner, recurrent, biases;
      for (int64_t d = 0; d < directions_; ++d) {
        inner.push_back(block(parameters, weight_at, width));
        recurrent.push_back(block(parameters, weight_at, hidden_));
        const TensorId first = block(parameters, bias_at, 1), second = block(parameters, bias_at, 1);
        biases.push_back(l.reshape(l.concat({first, second}, 1), {1, 2 * gates_ * hidden_}));
      }
      const auto first_state = [&](TensorId all) {
        return all ? l.slice(all, 0, level * directions_, (level + 1) * directions_) : TensorId{};
      };
      std::vector<TensorId> inputs{x,       l.concat(inner, 0), l.concat(recurrent, 0), l.concat(biases, 0),
                                   lengths, first_state(state)};
      if (mode_.op == "LSTM") inputs.push_back(first_state(cell));
      Attributes attributes{{"hidden_size", hidden_}, {"direction", std::string(directions_ == 2 ? "bidirectional" : "forward")}};
      if (mode_.op == "GRU") attributes.set("linear_before_reset", int64_t{1});
      if (!mode_.activation.empty())
        attributes.set("activations", std::vector<std::string>(static_cast<size_t>(directions_), std::string(mode_.activation)));
      const auto results =
          l.emit_all(std::string(mode_.op), std::move(inputs), std::move(attributes), mode_.op == "LSTM" ? 3 : 2);
      // [time, direction, batch, hidden] -> [time, batch, direction * hidden]
      x = directions_ == 1 ? l.squeeze(results[0], {1}) : l.reshape(l.transpose(results[0], {0, 2, 1, 3}), {0, 0, -1});
      last_states.push_back(results[1]);
      if (mode_.op == "LSTM") last_cells.push_back(results[2]);
    }
    std::vector<TensorId> results{x, l.concat(last_states, 0)};
    if (!last_cells.empty()) results.push_back(l.concat(last_cells, 0));
    return results;
  }

 private:
  // The next [gates * hidden, width] of the vector with its gates in our order, as [1, gates * hidden, width].
  TensorId block(TensorId parameters, int64_t& at, int64_t width) {
    const int64_t count = gates_ * hidden_ * width;
    TensorId part = l.reshape(l.slice(parameters, 0, at, at + count), {gates_, hidden_, width});
    at += count;
    if (gates_ > 1) part = l.gather(part, l.add_ints("gates", mode_.gates), 0);
    return l.reshape(part, {1, gates_ * hidden_, width});
  }

  Layer& l;
  const Mode& mode_;
  int64_t batch_, features_, hidden_, levels_, directions_, gates_;
};

// A state whose batch was unknown when the symbol was made has 1 there.
Result<TensorId> full_state(Layer& l, TensorId state, int64_t rows, int64_t batch, int64_t hidden) {
  if (!state) return state;
  const Dims wanted{rows, batch, hidden};
  if (const auto dims = l.dims_of(state); dims && *dims != wanted) {
    if (!broadcast(*dims, wanted) || dims->size() > 3)
      return shape_mismatch("the state does not fit the layer").expected(to_string(wanted)).found(to_string(*dims));
    return l.expand(state, wanted);
  }
  return state;
}

Result<std::vector<TensorId>> rnn(Layer& l, TensorId x) {
  const std::string name = l.text("mode", "");
  const Mode* mode = find_mode(name);
  if (!mode) return unsupported("unknown mode").expected("rnn_relu, rnn_tanh, lstm or gru").found(name);
  if (l.has("projection_size")) return unsupported("a projected LSTM (projection_size)").hint("train without projection");
  if (l.has("lstm_state_clip_min") || l.has("lstm_state_clip_max"))
    return unsupported("clipped LSTM states (lstm_state_clip_min, lstm_state_clip_max)");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to lay out the parameters"));
  if (dims.size() != 3) return shape_mismatch("the data must be [time, batch, features]").found(to_string(dims));
  const int64_t hidden = l.integer("state_size", 0), levels = l.integer("num_layers", 1),
                directions = l.flag("bidirectional", false) ? 2 : 1;
  if (hidden < 1 || hidden > 1 << 16 || levels < 1 || levels > 256 || dims[2] > 1 << 20)
    return invalid_model("absurd sizes")
        .expected("state_size of 1 to 65536, num_layers of 1 to 256")
        .found(std::to_string(hidden) + ", " + std::to_string(levels));
  Recurrent layer(l, *mode, dims, hidden, levels, directions);
  const DType dtype = l.dtype_of(x);
  ORKNN_TRY_ASSIGN(TensorId parameters, l.parameter(1, "parameters", Dims{layer.parameter_count()}, Fill::Random, dtype, hidden));
  ORKNN_TRY_ASSIGN(const Dims have, l.need_dims(parameters, "to take it apart"));
  if (element_count(have) != layer.parameter_count())
    return shape_mismatch("the parameter vector does not fit the layer")
        .expected(std::to_string(layer.parameter_count()) + " elements")
        .found(to_string(have));
  parameters = l.reshape(parameters, {-1});
  const bool is_lstm = mode->op == "LSTM";
  ORKNN_TRY_ASSIGN(const TensorId state, full_state(l, l.input(2), levels * directions, dims[1], hidden));
  ORKNN_TRY_ASSIGN(const TensorId cell, full_state(l, is_lstm ? l.input(3) : TensorId{}, levels * directions, dims[1], hidden));
  TensorId lengths;
  if (l.flag("use_sequence_length", false)) {
    ORKNN_TRY_ASSIGN(lengths, l.operand(is_lstm ? 4 : 3));
    lengths = l.cast(lengths, DType::Int32);
  }
  return layer.run(x, parameters, state, cell, lengths);
}

// --- sequences of different length

struct Sequence {
  TensorId lengths;  // none: every sequence is full
  Dims dims;
  int64_t axis = 0;  // of time; the batch is the other of the first two
};

Result<Sequence> sequence_of(Layer& l, TensorId x) {
  Sequence s;
  ORKNN_TRY_ASSIGN(s.dims, l.need_dims(x, "to walk along time"));
  s.axis = l.integer("axis", 0);
  if (s.dims.size() < 2 || s.axis < 0 || s.axis > 1)
    return unsupported("time must be axis 0 or 1 of data with a batch")
        .found("axis " + std::to_string(s.axis) + " of " + to_string(s.dims));
  if (l.flag("use_sequence_length", false)) {
    ORKNN_TRY_ASSIGN(s.lengths, l.operand(1));
    s.lengths = l.cast(s.lengths, DType::Int64);
  }
  return s;
}

// One value per sequence, along the axis of the batch.
TensorId along_batch(Layer& l, TensorId values, const Sequence& s) {
  std::vector<int64_t> shape(s.dims.size(), 1);
  shape[static_cast<size_t>(1 - s.axis)] = -1;
  return l.reshape(values, shape);
}

Result<TensorId> sequence_mask(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, x));
  if (!s.lengths) return x;
  const TensorId position = l.positions(s.dims[static_cast<size_t>(s.axis)], s.dims.size(), s.axis);
  return l.where(l.binary("Less", position, along_batch(l, s.lengths, s)), x, l.scalar_like(x, l.number("value", 0.0)));
}

Result<TensorId> sequence_last(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, x));
  Dims one_step = s.dims;
  const int64_t length = std::exchange(one_step[static_cast<size_t>(s.axis)], 1);
  if (!s.lengths) return l.gather(x, l.add_int_scalar("last", length - 1), s.axis);
  const TensorId last = l.expand(along_batch(l, l.sub(s.lengths, 1.0), s), one_step);
  return l.squeeze(l.gather_elements(x, last, s.axis), {s.axis});
}

Result<TensorId> sequence_reverse(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l, x));
  if (!s.lengths) return l.reverse(x, {s.axis});
  return l.emit("ReverseSequence", {x, s.lengths}, {{"time_axis", s.axis}, {"batch_axis", 1 - s.axis}});
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static const Row rows[] = {
      {"RNN", rnn},
      {"SequenceMask", sequence_mask},
      {"SequenceLast", sequence_last},
      {"SequenceReverse", sequence_reverse},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
