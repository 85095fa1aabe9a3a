// Turns each index into a row with one marked position.
#include <cmath>

#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Position of the new axis in the output, which has one axis more than the indices.
Result<size_t> new_axis(const NodeReader& c, size_t index_rank) {
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(index_rank) + 1));
  return static_cast<size_t>(axis);
}

Result<int64_t> depth_of(const TensorView& t) {
  const std::vector<double> values = to_doubles(t);
  if (values.size() != 1) return invalid_model("depth must be one number").found(std::to_string(values.size()) + " numbers");
  if (!(values[0] >= 0 && values[0] <= 1e12)) return invalid_model("illegal depth").found(std::to_string(values[0]));
  return static_cast<int64_t>(values[0]);
}

Status infer(InferContext& c) {
  const Shape* indices = c.shape(0);
  ORKNN_TRY(require_one_value(c, 1, "depth"));
  if (const Shape* values = c.shape(2); values && (values->size() != 1 || !require_shape(c, 2, "values", {2})))
    return shape_mismatch("values must be the pair (off, on)").found(to_string(*values));
  if (!indices) {
    c.set_output(0, c.dtype(2), std::nullopt);
    return {};
  }
  Dim depth;
  if (const TensorData* value = c.constant(1)) {
    ORKNN_TRY_ASSIGN(depth, depth_of(value->view()));
  } else if (const auto content = c.content(1); content && content->size() == 1) {
    depth = content->front();
  }
  if (depth.is_known() && depth.value() < 0) return invalid_model("illegal depth").found(depth.to_string());
  ORKNN_TRY_ASSIGN(const size_t axis, new_axis(c, indices->size()));
  Shape out = *indices;
  out.insert(out.begin() + static_cast<int64_t>(axis), depth);
  c.set_output(0, c.dtype(2), std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView indices = c.input(0), values = c.input(2);
  ORKNN_TRY_ASSIGN(const int64_t depth, depth_of(c.input(1)));
  ORKNN_TRY_ASSIGN(const size_t axis, new_axis(c, indices.dims.size()));
  if (values.count() != 2) return shape_mismatch("values must be the pair (off, on)").found(to_string(values.dims));
  Dims dims(indices.dims.begin(), indices.dims.end());
  dims.insert(dims.begin() + static_cast<int64_t>(axis), depth);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, values.dtype, dims));
  const size_t bytes = dtype_bytes(values.dtype);
  fill_elements(y.data, y.count(), values.data, bytes);
  const void* on = offset_by(values.data, 1, bytes);
  const int64_t inner = extent_product(indices.dims, axis, indices.dims.size());
  const std::vector<double> picks = to_doubles(indices);
  for (size_t n = 0; n < picks.size(); ++n) {
    const double at = std::trunc(picks[n] < 0 ? picks[n] + static_cast<double>(depth) : picks[n]);
    if (!(at >= 0 && at < static_cast<double>(depth))) continue;  // an index outside of the axis marks nothing
    const int64_t outer = static_cast<int64_t>(n) / inner, rest = static_cast<int64_t>(n) % inner;
    fill_elements(offset_by(y.data, (outer * depth + static_cast<int64_t>(at)) * inner + rest, bytes), 1, on, bytes);
  }
  return {};
}
}  // namespace

std::span<const OpDef> one_hot() {
  static const OpDef def{.name = "OneHot",
                         .summary = "marks one position per index",
                         .inputs = {3, 3},
                         .attributes = {axes_of_output(attr_int("axis", -1))},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::Integer,
                         .exact_inputs = input_slots({1}),
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
