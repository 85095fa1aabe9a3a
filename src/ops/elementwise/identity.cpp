// Ops that pass their input on: Identity, and Dropout, which does so unless it is asked to train.
#include <algorithm>
#include <cstring>

#include "ops/support/copies.h"
#include "ops/support/elementwise.h"
#include "ops/support/operands.h"
#include "ops/support/random.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer_identity(InferContext& c) {
  ORKNN_TRY(same_as_input(c));
  fold_content(c, [](std::span<const Dim> x) { return x[0]; });
  return {};
}
Status run_identity(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  std::memcpy(y.data, x.data, x.bytes());
  return {};
}

Status check_ratio(double ratio) {
  if (ratio >= 0 && ratio < 1) return {};
  return invalid_model("the ratio is out of range").expected("at least 0 and below 1").found(std::to_string(ratio));
}

Status infer_dropout(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return is_float(t); }, "a floating-point type"));
  if (c.has_input(1))
    ORKNN_TRY(check_type(
        c, 1, [](DType t) { return is_float(t); }, "a floating-point type"));
  if (c.has_input(2))
    ORKNN_TRY(check_type(
        c, 2, [](DType t) { return t == DType::Bool; }, "bool"));
  ORKNN_TRY(require_one_value(c, 1, "the ratio"));
  ORKNN_TRY(require_one_value(c, 2, "training_mode"));
  if (const TensorData* ratio = c.constant(1); ratio && scalar_of(c, 2).value_or(0) != 0)
    ORKNN_TRY(check_ratio(to_doubles(ratio->view())[0]));
  c.set_output(0, c.dtype(0), c.input(0).shape);
  c.set_output(1, DType::Bool, c.input(0).shape);
  return {};
}
Status run_dropout(RunContext& c) {
  const TensorView x = c.input(0);
  double ratio = 0.5;
  bool training = false;
  if (c.has_input(1)) {
    if (c.input(1).count() != 1) return shape_mismatch("the ratio is one value");
    ratio = to_doubles(c.input(1))[0];
  }
  if (c.has_input(2)) {
    if (c.input(2).count() != 1) return shape_mismatch("training_mode is one value");
    training = c.input(2).as<bool>()[0];
  }
  if (training) ORKNN_TRY(check_ratio(ratio));
  const bool drop = training && ratio > 0;
  const Random random(static_cast<uint64_t>(c.node().attributes.int_or("seed", 0)));
  const auto kept = [&](int64_t i) { return !drop || random.uniform(static_cast<uint64_t>(i)) >= ratio; };
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  if (!drop)
    std::memcpy(y.data, x.data, x.bytes());
  else
    visit_real(x.dtype, [&]<class T>(TypeTag<T>) {
      for (int64_t i = 0; i < x.count(); ++i) y.as<T>()[i] = kept(i) ? static_cast<T>(x.as<T>()[i] / (1 - ratio)) : T(0);
    });
  if (!c.has_output(1)) return {};
  ORKNN_TRY_ASSIGN(const MutableTensorView mask, c.output(1, DType::Bool, x.dims));
  for (int64_t i = 0; i < x.count(); ++i) mask.as<bool>()[i] = kept(i);
  return {};
}

int copied_by_dropout(const InferContext& c) {
  const bool trains = c.node().has_input(2) && scalar_of(c, 2) != 0.0;
  return trains ? kNoCopy : 0;
}
}  // namespace

std::span<const OpDef> identity() {
  static const OpDef defs[] = {
      {.name = "Identity",
       .summary = "a copy",
       .infer = infer_identity,
       .run = run_identity,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::Pointwise,
       .scales_through = true,
       .copied_input = copies_always,
       .cpu = {CpuList::LargeChips}},
      {.name = "Dropout",
       .summary = "a copy at inference; random zeros when training",
       .inputs = {1, 3},
       .outputs = {1, 2},
       .attributes = {attr_int("seed")},
       .infer = infer_dropout,
       .run = run_dropout,
       .engine = Engine::Move,
       .scales_through = true,
       .copied_input = copied_by_dropout},
  };
  return defs;
}
}  // namespace orknn::ops
