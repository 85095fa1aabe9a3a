// Joins tensors along an axis.
#include "ops/support/copies.h"
#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  std::optional<Shape> out;
  bool complete = true;
  size_t axis = 0;
  for (size_t n = 0; n < c.input_count(); ++n) {
    if (!c.has_input(n)) return invalid_model("input " + std::to_string(n) + " is absent");
    if (c.dtype(n) != c.dtype(0))
      return invalid_model("inputs to join differ in type")
          .expected(std::string(dtype_name(c.dtype(0))))
          .found(std::string(dtype_name(c.dtype(n))));
    const Shape* x = c.shape(n);
    if (!x) {
      complete = false;
      continue;
    }
    if (!out) {
      ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
      axis = static_cast<size_t>(normalized);
      out = *x;
      continue;
    }
    if (x->size() != out->size())
      return shape_mismatch("inputs to join differ in rank").expected(to_string(*out)).found(to_string(*x));
    for (size_t i = 0; i < x->size(); ++i) {
      Dim& have = (*out)[i];
      const Dim& here = (*x)[i];
      if (i == axis)
        have = have + here;
      else if (!have.is_known() && (here.is_known() || have.is_anonymous()))
        have = here;
      else if (have.is_known() && here.is_known() && have.value() != here.value())
        return shape_mismatch("inputs to join differ outside of axis " + std::to_string(axis))
            .expected(to_string(*c.shape(0)))
            .found(to_string(*x));
    }
  }
  if (!complete && out) (*out)[axis] = Dim();
  c.set_output(0, c.dtype(0), out);
  if (!complete || out->size() != 1) return {};
  std::vector<Dim> joined;
  for (size_t n = 0; n < c.input_count(); ++n) {
    const auto content = small_content(c, n);
    if (!content) return {};
    joined.insert(joined.end(), content->begin(), content->end());
  }
  c.set_content(0, std::move(joined));
  return {};
}

Status run(RunContext& c) {
  const TensorView first = c.input(0);
  ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(c.get_int("axis"), first.rank()));
  const auto axis = static_cast<size_t>(normalized);
  ScratchDims dims = scratch_dims(first.dims);
  for (size_t n = 1; n < c.input_count(); ++n) {
    const TensorView x = c.input(n);
    if (x.dtype != first.dtype || x.rank() != first.rank()) return shape_mismatch("inputs to join differ in type or rank");
    for (size_t i = 0; i < dims.size(); ++i)
      if (i != axis && x.dims[i] != dims[i])
        return shape_mismatch("inputs to join differ outside of axis " + std::to_string(axis))
            .expected(to_string(first.dims))
            .found(to_string(x.dims));
    if (__builtin_add_overflow(dims[axis], x.dims[axis], &dims[axis])) return shape_mismatch("the joined tensor is too large");
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, first.dtype, dims));
  const size_t bytes = dtype_bytes(first.dtype);
  const int64_t outer = extent_product(dims, 0, axis), inner = extent_product(dims, axis + 1, dims.size());
  int64_t at = 0;
  for (size_t n = 0; n < c.input_count(); ++n) {
    const TensorView x = c.input(n);
    const int64_t run = x.dims[axis] * inner;
    copy_strided({{outer, run, dims[axis] * inner}, {run, 1, 1}}, x.data, offset_by(y.data, at, bytes), bytes, c.pool);
    at += run;
  }
  return {};
}
}  // namespace

std::span<const OpDef> concat() {
  static const OpDef def{.name = "Concat",
                         .summary = "joins tensors along an axis",
                         .inputs = {1, Arity::kMany},
                         .attributes = {required(axes_of_input(attr_int("axis")))},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::SharedScale,
                         .engine = Engine::Move,
                         .pattern = Pattern::Move,
                         .axes = AxisNames::Attribute,
                         .parts = Parts::Joined,
                         .copied_input = copies_single_input,
                         .npu = {.form = NpuForm::Function},
                         .cpu = {CpuList::AllChips, CpuLimit::FourDimensions}};
  return {&def, 1};
}
}  // namespace orknn::ops
