// Cuts a tensor into parts along an axis, of given sizes or as equal as possible (the last one may be smaller).
#include <algorithm>

#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status check_count(const NodeReader& c, size_t outputs, bool has_sizes) {
  const int64_t* count = c.find<int64_t>("num_outputs");
  if (count && has_sizes) return invalid_model("part sizes and num_outputs exclude each other");
  if (count && *count != static_cast<int64_t>(outputs))
    return invalid_model("num_outputs differs from the number of outputs")
        .expected(std::to_string(outputs))
        .found(std::to_string(*count));
  return {};
}

ScratchDims even_sizes(int64_t extent, size_t parts) {
  const auto count = static_cast<int64_t>(parts);
  const int64_t part = extent / count + (extent % count != 0);
  ScratchDims sizes;
  sizes.reserve(parts);
  for (int64_t at = 0; sizes.size() < parts; at += sizes.back()) sizes.push_back(std::min(part, extent - at));
  return sizes;
}

Status check_sizes(std::span<const int64_t> sizes, size_t outputs, int64_t extent) {
  if (sizes.size() != outputs)
    return invalid_model("one part size per output is needed")
        .expected(std::to_string(outputs))
        .found(std::to_string(sizes.size()));
  int64_t sum = 0;
  for (int64_t size : sizes)
    if (size < 0 || __builtin_add_overflow(sum, size, &sum))
      return invalid_model("illegal part size").found(std::to_string(size));
  if (sum != extent)
    return shape_mismatch("the part sizes do not add up to the axis").expected(std::to_string(extent)).found(std::to_string(sum));
  return {};
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "part sizes"));
  const size_t parts = c.output_count();
  ORKNN_TRY(check_count(c, parts, c.has_input(1)));
  const Shape* x = c.shape(0);
  if (!x) {
    for (size_t i = 0; i < parts; ++i) c.set_output(i, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
  const auto axis = static_cast<size_t>(normalized);
  const Dim& extent = (*x)[axis];
  std::vector<Dim> sizes(parts);
  if (c.has_input(1)) {
    if (const auto given = c.content(1)) {
      if (given->size() != parts)
        return invalid_model("one part size per output is needed")
            .expected(std::to_string(parts))
            .found(std::to_string(given->size()));
      sizes = *given;
    }
    const auto known = to_dims(sizes);
    if (known && extent.is_known()) ORKNN_TRY(check_sizes(*known, parts, extent.value()));
  } else if (extent.is_known()) {
    sizes = to_shape(even_sizes(extent.value(), parts));
  } else if (parts == 1) {
    sizes[0] = extent;
  }
  for (size_t i = 0; i < parts; ++i) {
    Shape out = *x;
    out[axis] = sizes[i];
    c.set_output(i, c.dtype(0), std::move(out));
  }
  const auto content = small_content(c, 0);
  const auto known = to_dims(sizes);
  if (!content || !known || x->size() != 1) return {};
  int64_t at = 0;
  for (size_t i = 0; i < parts; at += (*known)[i++])
    c.set_content(i, {content->begin() + at, content->begin() + at + (*known)[i]});
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const size_t parts = c.output_count();
  ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(c.get_int("axis"), x.rank()));
  const auto axis = static_cast<size_t>(normalized);
  const ScratchDims sizes = c.has_input(1) ? scratch_ints(c.input(1)) : even_sizes(x.dims[axis], parts);
  ORKNN_TRY(check_sizes(sizes, parts, x.dims[axis]));
  const size_t bytes = dtype_bytes(x.dtype);
  const int64_t outer = extent_product(x.dims, 0, axis), inner = extent_product(x.dims, axis + 1, x.dims.size());
  int64_t at = 0;
  for (size_t i = 0; i < parts; ++i) {
    const int64_t run = sizes[i] * inner;
    if (c.has_output(i)) {
      ScratchDims dims = scratch_dims(x.dims);
      dims[axis] = sizes[i];
      ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(i, x.dtype, dims));
      copy_strided({{outer, x.dims[axis] * inner, run}, {run, 1, 1}}, offset_by(x.data, at, bytes), y.data, bytes, c.pool);
    }
    at += run;
  }
  return {};
}
}  // namespace

std::span<const OpDef> split() {
  static const OpDef def{.name = "Split",
                         .summary = "cuts a tensor into parts along an axis",
                         .inputs = {1, 2},
                         .outputs = {1, Arity::kMany},
                         .attributes = {axes_of_input(attr_int("axis", 0)), attr_int("num_outputs")},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::SameScale,
                         .engine = Engine::Move,
                         .pattern = Pattern::Move,
                         .axes = AxisNames::Attribute,
                         .parts = Parts::Divided,
                         .npu = {.form = NpuForm::Function},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
