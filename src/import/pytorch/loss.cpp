// Losses. They belong to training, but some networks compute one as a score.
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

// The values themselves (0), their mean (1) or their sum (2), weighted when the loss has weights.
Result<TensorId> reduced_loss(Call& c, TensorId x, TensorId weight = {}) {
  if (weight) x = c.mul(x, weight);
  const int64_t reduction = c.integer("reduction");
  if (reduction == 0) return x;
  ORKNN_TRY_ASSIGN(const auto axes, Emitter::axes_of({}, c.rank_of(x).value_or(0)));
  return c.reduce(reduction == 1 ? "ReduceMean" : "ReduceSum", x, axes, false);
}
TensorId distance_to_target(Call& c, TensorId x, TensorId target) {
  return c.unary("Abs", c.sub(c.as_float(x), c.as_float(target)));
}

Result<TensorId> mse_loss(Call& c, TensorId x, TensorId target) {
  return reduced_loss(c, squared_difference(c, c.as_float(x), c.as_float(target)));
}
Result<TensorId> l1_loss(Call& c, TensorId x, TensorId target) { return reduced_loss(c, distance_to_target(c, x, target)); }

// A parabola up to `limit`, a line of slope `slope` beyond it.
Result<TensorId> bent_loss(Call& c, TensorId size, double limit, double slope) {
  if (!(limit > 0)) return reduced_loss(c, size);
  const TensorId parabola = c.mul(square(c, size), 0.5 * slope / limit), line = c.mul(c.sub(size, 0.5 * limit), slope);
  return reduced_loss(c, c.where(c.with_scalar("Less", size, limit), parabola, line));
}
Result<TensorId> smooth_l1_loss(Call& c, TensorId x, TensorId target) {
  return bent_loss(c, distance_to_target(c, x, target), c.number("beta"), 1);
}
Result<TensorId> huber_loss(Call& c, TensorId x, TensorId target) {
  return bent_loss(c, distance_to_target(c, x, target), c.number("delta"), c.number("delta"));
}

Result<TensorId> binary_cross_entropy(Call& c, TensorId p, TensorId target, TensorId weight) {
  p = c.as_float(p), target = c.as_float(target);
  const auto log = [&](TensorId x) { return c.with_scalar("Max", c.unary("Log", x), -100); };  // PyTorch's bound
  const TensorId one = c.scalar_like(p, 1);
  const TensorId likelihood = c.add(c.mul(target, log(p)), c.mul(c.sub(one, target), log(c.sub(one, p))));
  return reduced_loss(c, c.unary("Neg", likelihood), weight);
}
// max(x, 0) - x * target + log(1 + exp(-|x|))
Result<TensorId> cross_entropy_of_scores(Call& c, TensorId x, TensorId target, TensorId weight) {
  if (c.has("pos_weight")) return unsupported("weights of positive examples are not supported");
  x = c.as_float(x);
  const TensorId rest = c.unary("Softplus", c.unary("Neg", c.unary("Abs", x)));
  return reduced_loss(c, c.add(c.sub(c.unary("Relu", x), c.mul(x, c.as_float(target))), rest), weight);
}
Result<TensorId> divergence(Call& c, TensorId x, TensorId target) {
  x = c.as_float(x), target = c.as_float(target);
  if (c.flag("log_target")) return reduced_loss(c, c.mul(c.unary("Exp", target), c.sub(target, x)));
  const TensorId value = c.mul(target, c.sub(c.unary("Log", target), x));
  return reduced_loss(c, c.where(c.with_scalar("Greater", target, 0), value, c.scalar_like(x, 0)));
}
}  // namespace

std::span<const Row> loss_rows() {
  static const Row rows[] = {
      {"mse_loss(Tensor self, Tensor target, int reduction=1)", mse_loss},
      {"l1_loss(Tensor self, Tensor target, int reduction=1)", l1_loss},
      {"smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.)", smooth_l1_loss},
      {"huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.)", huber_loss},
      {"binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1)", binary_cross_entropy},
      {"binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
       "reduction=1)",
       cross_entropy_of_scores},
      {"kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False)", divergence},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
