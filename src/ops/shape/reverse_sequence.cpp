// Reverses the first elements of each sequence of a batch; the rest stays.
#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status check_axes(const NodeReader& c, size_t rank) {
  const int64_t batch = c.get_int("batch_axis"), time = c.get_int("time_axis");
  if (rank < 2) return shape_mismatch("at least two axes are needed");
  if (batch == time || (batch != 0 && batch != 1) || (time != 0 && time != 1))
    return invalid_model("batch_axis and time_axis must be 0 and 1 in some order")
        .found(std::to_string(batch) + " and " + std::to_string(time));
  return {};
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "sequence lengths"));
  if (const Shape* x = c.shape(0)) {
    ORKNN_TRY(check_axes(c, x->size()));
    ORKNN_TRY(require_shape(c, 1, "sequence_lens", {(*x)[static_cast<size_t>(c.get_int("batch_axis"))]}));
    ORKNN_TRY(require_values(c, 1, "sequence length", 0, (*x)[static_cast<size_t>(c.get_int("time_axis"))]));
  }
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY(check_axes(c, x.dims.size()));
  const auto batch_axis = static_cast<size_t>(c.get_int("batch_axis")), time_axis = static_cast<size_t>(c.get_int("time_axis"));
  const int64_t batches = x.dims[batch_axis], times = x.dims[time_axis];
  const ScratchDims lengths = scratch_ints(c.input(1));
  if (static_cast<int64_t>(lengths.size()) != batches)
    return shape_mismatch("one length per batch entry is needed")
        .expected(std::to_string(batches))
        .found(std::to_string(lengths.size()));
  for (int64_t length : lengths)
    if (length < 0 || length > times)
      return invalid_argument("sequence length out of range")
          .expected("0 to " + std::to_string(times))
          .found(std::to_string(length));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  const ScratchDims strides = scratch_strides(x.dims);
  const size_t bytes = dtype_bytes(x.dtype);
  const int64_t inner = extent_product(x.dims, 2, x.dims.size()), step = strides[time_axis];
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)], at = b * strides[batch_axis];
    if (length > 0)
      copy_strided({{length, -step, step}, {inner, 1, 1}}, offset_by(x.data, at + (length - 1) * step, bytes),
                   offset_by(y.data, at, bytes), bytes, c.pool);
    const int64_t rest = at + length * step;
    copy_strided({{times - length, step, step}, {inner, 1, 1}}, offset_by(x.data, rest, bytes), offset_by(y.data, rest, bytes),
                 bytes, c.pool);
  }
  return {};
}
}  // namespace

std::span<const OpDef> reverse_sequence() {
  static const OpDef def{.name = "ReverseSequence",
                         .summary = "reverses the start of each sequence",
                         .inputs = {2, 2},
                         .attributes = {axes_of_input(attr_int("batch_axis", 1)), axes_of_input(attr_int("time_axis", 0))},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::SameScale,
                         .pattern = Pattern::Move,
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
