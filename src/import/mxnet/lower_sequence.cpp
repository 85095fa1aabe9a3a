// Sequences of different length in one batch: masking, the last element, reversal.
#include <numeric>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
struct Sequence {
  TensorId data, lengths;  // no lengths: every sequence is full
  Dims dims;
  int64_t axis = 0;  // of time; the batch is the other of the first two
};

Result<Sequence> sequence_of(Layer& l) {
  Sequence s;
  ORKNN_TRY_ASSIGN(s.data, l.need(0));
  ORKNN_TRY_ASSIGN(s.dims, l.need_dims(s.data, "to walk along time"));
  s.axis = l.integer("axis", 0);
  if (s.dims.size() < 2 || s.axis < 0 || s.axis > 1)
    return unsupported("time must be axis 0 or 1 of data with a batch")
        .found("axis " + std::to_string(s.axis) + " of " + to_string(s.dims));
  if (l.flag("use_sequence_length", false)) {
    ORKNN_TRY_ASSIGN(s.lengths, l.need(1));
    s.lengths = l.cast(s.lengths, DType::Int64);
  }
  return s;
}

Status sequence_mask(Layer& l) {
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l));
  if (!s.lengths) {
    l.set_output(l.unary("Identity", s.data));
    return {};
  }
  std::vector<int64_t> positions(static_cast<size_t>(s.dims[static_cast<size_t>(s.axis)]));
  std::iota(positions.begin(), positions.end(), int64_t{0});
  std::vector<int64_t> time_shape(s.dims.size(), 1), batch_shape(s.dims.size(), 1);
  time_shape[static_cast<size_t>(s.axis)] = -1;
  batch_shape[static_cast<size_t>(1 - s.axis)] = -1;
  const TensorId inside =
      l.binary("Less", l.reshape(l.add_ints("positions", positions), time_shape), l.reshape(s.lengths, batch_shape));
  l.set_output(l.emit("Where", {inside, s.data, l.add_scalar("value", l.number("value", 0.0), l.dtype_of(s.data))}));
  return {};
}

Status sequence_last(Layer& l) {
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l));
  if (!s.lengths) {
    l.set_output(l.gather_rows(s.data, l.add_int_scalar("last", s.dims[static_cast<size_t>(s.axis)] - 1), s.axis));
    return {};
  }
  Dims shape(s.dims.size(), 1), wide = s.dims;
  shape[static_cast<size_t>(1 - s.axis)] = -1;
  wide[static_cast<size_t>(s.axis)] = 1;
  const TensorId last = l.expand(l.reshape(l.with_scalar("Sub", s.lengths, 1.0), shape), wide);
  l.set_output(l.squeeze(l.emit("GatherElements", {s.data, last}, {{"axis", s.axis}}), {s.axis}));
  return {};
}

Status sequence_reverse(Layer& l) {
  ORKNN_TRY_ASSIGN(const Sequence s, sequence_of(l));
  if (!s.lengths)
    l.set_output(l.slice(s.data, s.axis, INT64_MAX, INT64_MIN, -1));
  else
    l.set_output(l.emit("ReverseSequence", {s.data, s.lengths}, {{"time_axis", s.axis}, {"batch_axis", 1 - s.axis}}));
  return {};
}
}  // namespace

std::span<const Row> sequence_rows() {
  static const Row rows[] = {
      {"SequenceMask", sequence_mask}, {"SequenceLast", sequence_last}, {"SequenceReverse", sequence_reverse}};
  return rows;
}

}  // namespace orknn::importer::mxnet
