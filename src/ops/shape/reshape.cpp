// The same elements under another shape.
#include <algorithm>

#include "ops/support/copies.h"
#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Product of `total` over product of `others`, cancelling equal symbols first. An error when both are numbers that do not divide.
Result<Dim> remaining_extent(Shape total, Shape others) {
  for (auto it = others.begin(); it != others.end();) {
    const auto same = std::find(total.begin(), total.end(), *it);
    if (same == total.end() || *it == Dim(0)) {
      ++it;
      continue;
    }
    total.erase(same);
    it = others.erase(it);
  }
  Dim number = 1, divisor = 1, symbols = 1, symbol_divisor = 1;
  for (const Dim& d : total) (d.is_known() ? number : symbols) = (d.is_known() ? number : symbols) * d;
  for (const Dim& d : others) (d.is_known() ? divisor : symbol_divisor) = (d.is_known() ? divisor : symbol_divisor) * d;
  if (!number.is_known() || !divisor.is_known()) return Dim();
  if (divisor.value() == 0) return shape_mismatch("an extent of the new shape is undetermined because another one is 0");
  const bool divides = number.value() % divisor.value() == 0;
  const bool numbers_only = symbols == Dim(1) && symbol_divisor == Dim(1);
  if (numbers_only && !divides)
    return shape_mismatch("the number of elements does not fit the new shape")
        .expected("a multiple of " + divisor.to_string())
        .found(number.to_string());
  if (divides) return number / divisor * symbols / symbol_divisor;
  return number * symbols / (divisor * symbol_divisor);
}

// The new shape for `target`, the content of the shape input; x is null when its rank is unknown.
Result<Shape> new_shape(const Shape* x, const std::vector<Dim>& target, bool allow_zero) {
  Shape out(target.size());
  std::optional<size_t> open;  // position of -1
  size_t unknown = 0, last_unknown = 0;
  bool has_zero = false;
  for (size_t i = 0; i < target.size(); ++i) {
    const Dim& d = target[i];
    if (d.is_known() && d.value() < -1)
      return invalid_model("illegal extent in the new shape").expected("-1 or more").found(d.to_string());
    if (d == Dim(-1)) {
      if (open) return invalid_model("more than one extent of the new shape is -1");
      open = i;
    } else if (d != Dim(0) || allow_zero) {
      out[i] = d;
    } else if (x) {
      if (i >= x->size())
        return invalid_model("extent " + std::to_string(i) + " of the new shape is 0, but the input has fewer axes")
            .found(to_string(*x));
      out[i] = (*x)[i];
    }
    has_zero |= out[i] == Dim(0);
    if (!out[i].is_known()) {
      ++unknown;
      last_unknown = i;
    }
  }
  if (!x) return out;
  // One unknown extent follows from the number of elements even when it was not written as -1.
  if (!open && unknown == 1 && !has_zero && is_static(*x)) open = last_unknown;
  if (open) {
    Shape others = out;
    others.erase(others.begin() + static_cast<int64_t>(*open));
    ORKNN_TRY_ASSIGN(out[*open], remaining_extent(*x, std::move(others)));
    return out;
  }
  const std::optional<Dims> from = to_dims(*x), to = to_dims(out);
  if (from && to) {
    ORKNN_TRY_ASSIGN(const int64_t has, checked_element_count(*from, INT64_MAX));
    ORKNN_TRY_ASSIGN(const int64_t wants, checked_element_count(*to, INT64_MAX));
    if (has != wants)
      return shape_mismatch("the new shape has another number of elements")
          .expected(std::to_string(has) + " as in " + to_string(*x))
          .found(std::to_string(wants) + " in " + to_string(out));
  }
  return out;
}

Status infer_reshape(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "the new shape"));
  const std::optional<std::vector<Dim>> target = c.content(1);
  if (!target) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(Shape out, new_shape(c.shape(0), *target, c.get_int("allowzero") != 0));
  c.set_output(0, c.dtype(0), std::move(out));
  if (auto content = small_content(c, 0)) c.set_content(0, std::move(*content));
  return {};
}

// As new_shape(), without allocating; nothing where an extent is 0 or an error must be told.
std::optional<ScratchDims> ordinary_shape(std::span<const int64_t> x, ScratchDims target, bool allow_zero) {
  int64_t* open = nullptr;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !allow_zero && i < x.size()) target[i] = x[i];
    if (target[i] == -1 && !open)
      open = &target[i];
    else if (target[i] < 1)
      return std::nullopt;
  }
  const int64_t count = element_count(x);
  if (open) {
    *open = 1;
    *open = count / element_count(target);
  }
  if (element_count(target) != count) return std::nullopt;
  return target;
}

Status run_reshape(RunContext& c) {
  const bool allow_zero = c.get_int("allowzero") != 0;
  if (const std::optional<ScratchDims> dims = ordinary_shape(c.input(0).dims, scratch_ints(c.input(1)), allow_zero))
    return copy_reshaped(c, *dims);
  const Shape x = to_shape(c.input(0).dims);
  ORKNN_TRY_ASSIGN(const Shape out, new_shape(&x, to_shape(to_ints(c.input(1))), allow_zero));
  const std::optional<Dims> dims = to_dims(out);
  if (!dims) return shape_mismatch("the new shape is too large");
  return copy_reshaped(c, *dims);
}

Result<Shape> flat_shape(const NodeReader& c, const Shape& x) {
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = c.get_int("axis");
  if (axis < -rank || axis > rank)
    return invalid_model("axis out of range")
        .expected("between " + std::to_string(-rank) + " and " + std::to_string(rank))
        .found(std::to_string(axis));
  if (axis < 0) axis += rank;
  Shape out{1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    Dim& d = out[i < axis ? 0 : 1];
    d = d * x[static_cast<size_t>(i)];
  }
  return out;
}

Status infer_flatten(InferContext& c) {
  if (!c.shape(0)) {
    c.set_output(0, c.dtype(0), Shape(2));
    return {};
  }
  ORKNN_TRY_ASSIGN(Shape out, flat_shape(c, *c.shape(0)));
  c.set_output(0, c.dtype(0), std::move(out));
  if (auto content = small_content(c, 0)) c.set_content(0, std::move(*content));
  return {};
}

Status run_flatten(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Shape out, flat_shape(c, to_shape(c.input(0).dims)));
  const std::optional<Dims> dims = to_dims(out);
  if (!dims) return shape_mismatch("the flattened shape is too large");
  return copy_reshaped(c, *dims);
}

BatchRule batch_rule_reshape(const NodeReader&, size_t, uint32_t) { return BatchRule::OfFirst; }
BatchRule batch_rule_flatten(const NodeReader& n, size_t, uint32_t) {
  return n.get_int("axis") == 1 ? BatchRule::OfFirst : BatchRule::Mixed;
}
}  // namespace

std::span<const OpDef> reshape() {
  static const OpDef defs[] = {
      {.name = "Reshape",
       .summary = "same elements, new shape",
       .inputs = {2, 2},
       .attributes = {attr_int("allowzero", 0)},
       .infer = infer_reshape,
       .run = run_reshape,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::View,
       .batch = batch_rule_reshape,
       .copied_input = copies_in_same_shape,
       .npu = {.form = NpuForm::Function},
       .cpu = {CpuList::AllChips}},
      {.name = "Flatten",
       .summary = "joins the axes before and from `axis` on into two",
       .attributes = {axes_of_input(attr_int("axis", 1))},
       .infer = infer_flatten,
       .run = run_flatten,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::View,
       .batch = batch_rule_flatten,
       .copied_input = copies_in_same_shape,
       .npu = {.form = NpuForm::Function, .listed_as = "Reshape"},
       .cpu = {CpuList::AllChips}},
  };
  return defs;
}
}  // namespace orknn::ops
