// Losses. They belong to training, but some networks compute one as a score.
#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

// The values themselves (0), their mean (1) or their sum (2).
Result<Value> reduced(Call& c, TensorId x) {
  const auto dims = c.dims_of(x);
  if (!dims) return c.made(x);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < dims->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  const int64_t reduction = c.integer("reduction");
  if (reduction == 0) return c.made(x);
  return c.made(c.reduce(reduction == 1 ? "ReduceMean" : "ReduceSum", x, axes, false));
}
TensorId difference(Call& c) { return c.sub(c.as_float("self"), c.as_float("target")); }

Result<Value> squared(Call& c) {
  const TensorId d = difference(c);
  return reduced(c, c.mul(d, d));
}
Result<Value> absolute(Call& c) { return reduced(c, c.emit("Abs", {difference(c)})); }

// A parabola up to `limit`, a line of slope `slope` beyond it.
Result<Value> bent(Call& c, double limit, double slope) {
  const TensorId size = c.emit("Abs", {difference(c)});
  const DType t = c.dtype_of(size);
  if (!(limit > 0)) return reduced(c, size);
  const TensorId parabola = c.mul(c.mul(size, size), c.scalar(0.5 * slope / limit, t));
  const TensorId line = c.mul(c.sub(size, c.scalar(0.5 * limit, t)), c.scalar(slope, t));
  return reduced(c, c.where(c.emit("Less", {size, c.scalar(limit, t)}), parabola, line));
}
Result<Value> smooth(Call& c) { return bent(c, c.number("beta"), 1); }
Result<Value> huber(Call& c) { return bent(c, c.number("delta"), c.number("delta")); }

Result<Value> weighted(Call& c, TensorId loss) { return reduced(c, c.has("weight") ? c.mul(loss, c.tensor("weight")) : loss); }

Result<Value> cross_entropy_of_two(Call& c) {
  const TensorId p = c.as_float("self"), target = c.as_float("target");
  const DType t = c.dtype_of(p);
  const auto log = [&](TensorId x) { return c.emit("Max", {c.emit("Log", {x}), c.scalar(-100, t)}); };  // PyTorch's bound
  const TensorId one = c.scalar(1, t);
  return weighted(c, c.emit("Neg", {c.add(c.mul(target, log(p)), c.mul(c.sub(one, target), log(c.sub(one, p))))}));
}
// max(x, 0) - x * target + log(1 + exp(-|x|))
Result<Value> cross_entropy_of_scores(Call& c) {
  if (c.has("pos_weight")) return c.fail("weights of positive examples are not supported");
  const TensorId x = c.as_float("self");
  const TensorId rest = c.emit("Softplus", {c.emit("Neg", {c.emit("Abs", {x})})});
  return weighted(c, c.add(c.sub(c.emit("Relu", {x}), c.mul(x, c.as_float("target"))), rest));
}
Result<Value> divergence(Call& c) {
  const TensorId x = c.as_float("self"), target = c.as_float("target");
  const DType t = c.dtype_of(x);
  const TensorId log = c.flag("log_target") ? target : c.emit("Log", {target});
  const TensorId weight = c.flag("log_target") ? c.emit("Exp", {target}) : target;
  const TensorId value = c.mul(weight, c.sub(log, x));
  return reduced(c, c.flag("log_target") ? value : c.where(c.emit("Greater", {target, c.scalar(0, t)}), value, c.scalar(0, t)));
}
}  // namespace

std::span<const Row> loss_rows() {
  static constexpr Row kRows[] = {
      {"mse_loss(Tensor self, Tensor target, int reduction=1)", squared},
      {"l1_loss(Tensor self, Tensor target, int reduction=1)", absolute},
      {"smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.)", smooth},
      {"huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.)", huber},
      {"binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1)", cross_entropy_of_two},
      {"binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
       "reduction=1)",
       cross_entropy_of_scores},
      {"kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False)", divergence},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
