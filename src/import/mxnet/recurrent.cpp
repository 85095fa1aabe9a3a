// The fused recurrent layer: several levels, one or two directions, all parameters in one vector. And sequences of different
// length in one batch: masking, the last element, reversal.
#include "import/lower/recurrent.h"

#include <algorithm>

#include "import/lower/one_hot.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// The parameter vector: first every weight by level and direction, then every bias.
struct Parameters {
  int64_t features, hidden, levels, directions, gates;

  int64_t width_of(int64_t level) const { return level == 0 ? features : hidden * directions; }
  int64_t weight_count() const {
    int64_t count = 0;
    for (int64_t level = 0; level < levels; ++level) count += directions * gates * hidden * (width_of(level) + hidden);
    return count;
  }
  int64_t count() const { return weight_count() + levels * directions * 2 * gates * hidden; }
  std::vector<RecurrentWeights> taken_apart(Layer& l, TensorId vector) const {
    int64_t at = 0;
    const auto next = [&](std::vector<int64_t> shape) {
      const int64_t begin = at;
      at += element_count(shape);
      return l.reshape(l.slice(vector, 0, begin, at), std::move(shape));
    };
    std::vector<RecurrentWeights> weights(static_cast<size_t>(levels * directions));
    const int64_t rows = gates * hidden;
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i].input = next({rows, width_of(static_cast<int64_t>(i) / directions)});
      weights[i].state = next({rows, hidden});
    }
    for (RecurrentWeights& w : weights) {
      w.input_bias = next({rows});
      w.state_bias = next({rows});
    }
    return weights;
  }
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
  ORKNN_TRY_ASSIGN(const Cell cell, cell_of_mode(l.text("mode", "")));
  if (l.has("projection_size"))
    return unsupported("an LSTM with projection_size is not supported").hint("train without projection");
  if (l.has("lstm_state_clip_min") || l.has("lstm_state_clip_max"))
    return unsupported("clipped LSTM states (lstm_state_clip_min, lstm_state_clip_max)");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to lay out the parameters", 3));
  const int64_t hidden = l.integer("state_size", 0), levels = l.integer("num_layers", 1),
                directions = l.flag("bidirectional", false) ? 2 : 1;
  if (hidden < 1 || hidden > 1 << 16 || levels < 1 || levels > 256 || dims[2] > 1 << 20)
    return invalid_model("the sizes are too large")
        .expected("state_size of 1 to 65536, num_layers of 1 to 256")
        .found(std::to_string(hidden) + ", " + std::to_string(levels));
  const Parameters layout{dims[2], hidden, levels, directions, gate_count(cell)};
  ORKNN_TRY_ASSIGN(const TensorId parameters, l.vector(1, "parameters", layout.count(), Fill::Random, l.dtype_of(x), hidden));
  ORKNN_TRY_ASSIGN(const Dims have, l.need_dims(parameters, "to take it apart"));
  if (element_count(have) != layout.count())
    return shape_mismatch("the parameter vector does not fit the layer")
        .expected(std::to_string(layout.count()) + " elements")
        .found(to_string(have));
  const bool is_lstm = cell == Cell::Lstm;
  RecurrentLayers layers{.cell = cell, .order = usual_order(cell), .directions = directions};
  layers.weights = layout.taken_apart(l, l.reshape(parameters, {-1}));
  for (size_t i = 2; i < (is_lstm ? 4u : 3u); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId state, full_state(l, l.input(i), levels * directions, dims[1], hidden));
    layers.states.push_back(state);
  }
  if (l.flag("use_sequence_length", false)) {
    ORKNN_TRY_ASSIGN(const TensorId lengths, l.operand(is_lstm ? 4 : 3));
    layers.lengths = l.cast(lengths, DType::Int32);
  }
  ORKNN_TRY_ASSIGN(RecurrentResult result, run_recurrent(l, x, layers));
  result.states.insert(result.states.begin(), result.sequence);
  return std::move(result.states);
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
  const TensorId position = positions(l, s.dims[static_cast<size_t>(s.axis)], s.axis, std::ssize(s.dims));
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
