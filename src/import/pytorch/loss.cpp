// Losses. They belong to training, but some networks compute one as a score.
#include <numbers>

#include "import/lower/one_hot.h"
#include "import/pytorch/operators.h"
#include "import/pytorch/reduction.h"

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
  x = c.as_float(x), target = c.as_float(target);
  const TensorId rest = c.unary("Softplus", c.unary("Neg", c.unary("Abs", x)));
  if (!c.has("pos_weight")) return reduced_loss(c, c.add(c.sub(c.unary("Relu", x), c.mul(x, target)), rest), weight);
  // (1 - target) * x + w * (max(-x, 0) + log(1 + exp(-|x|))), w = 1 + (pos_weight - 1) * target
  const TensorId positive = c.add(c.mul(c.sub(c.as("pos_weight", c.dtype_of(x)), 1), target), 1);
  const TensorId negative = c.mul(c.sub(c.scalar_like(x, 1), target), x);
  return reduced_loss(c, c.add(negative, c.mul(positive, c.add(c.unary("Relu", c.unary("Neg", x)), rest))), weight);
}
Result<TensorId> divergence(Call& c, TensorId x, TensorId target) {
  x = c.as_float(x), target = c.as_float(target);
  if (c.flag("log_target")) return reduced_loss(c, c.mul(c.unary("Exp", target), c.sub(target, x)));
  const TensorId value = c.mul(target, c.sub(c.unary("Log", target), x));
  return reduced_loss(c, c.where(c.with_scalar("Greater", target, 0), value, c.scalar_like(x, 0)));
}
// --- classes
std::string reduction_name(Call& c) {
  const int64_t reduction = c.integer("reduction");
  return reduction == 0 ? "none" : reduction == 1 ? "mean" : "sum";
}
// The loss of the classes that `target` numbers, for scores [N, C, ...] or [C].
template <OpName Op>
Result<TensorId> loss_of_classes(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(TensorId target, c.as_index("target"));
  if (c.rank() == 1) {  // one example
    x = c.unsqueeze(x, {0});
    target = c.reshape(target, {1});
  }
  std::vector<TensorId> inputs{c.as_float(x), target};
  if (c.has("weight")) inputs.push_back(c.tensor("weight"));
  const TensorId loss =
      c.emit(Op.string(), std::move(inputs), {{"reduction", reduction_name(c)}, {"ignore_index", c.integer("ignore_index")}});
  return c.rank() == 1 && c.integer("reduction") == 0 ? c.reshape(loss, {}) : loss;
}
// The cross entropy of scores and probabilities of the classes, of which `axis` is the axis. `counted`: examples that count, or
// none for all.
Result<TensorId> loss_of_probabilities(Call& c, TensorId x, TensorId target, int64_t axis, TensorId counted = {}) {
  TensorId likelihood = c.mul(c.emit("LogSoftmax", {x}, {{"axis", axis}}), target);
  if (c.has("weight")) {
    ir::Dims along(static_cast<size_t>(c.rank()), 1);
    along[static_cast<size_t>(axis)] = c.dims()[static_cast<size_t>(axis)];
    likelihood = c.mul(likelihood, c.reshape(c.as("weight", c.dtype_of(x)), along));
  }
  TensorId loss = c.unary("Neg", c.reduce("ReduceSum", likelihood, {axis}, false));
  if (!counted) {
    if (c.integer("reduction") != 1) return reduced_loss(c, loss);
    const double examples = static_cast<double>(ir::element_count(c.dims())) / static_cast<double>(c.dims()[axis]);
    ORKNN_TRY_ASSIGN(const auto axes, Emitter::axes_of({}, c.rank() - 1));
    return c.div(c.reduce("ReduceSum", loss, axes, false), examples);
  }
  counted = c.cast(counted, c.dtype_of(x));
  loss = c.mul(loss, counted);
  if (c.integer("reduction") != 1) return reduced_loss(c, loss);
  ORKNN_TRY_ASSIGN(const auto axes, Emitter::axes_of({}, c.rank() - 1));
  return c.div(c.reduce("ReduceSum", loss, axes, false), c.reduce("ReduceSum", counted, axes, false));
}
Result<TensorId> cross_entropy(Call& c, TensorId x) {
  const double smoothing = c.number("label_smoothing");
  const int64_t axis = c.rank() == 1 ? 0 : 1;
  if (c.rank() == 0) return invalid_model("scores without classes have no cross entropy");
  const int64_t classes = c.dims()[axis];
  const bool are_probabilities = c.rank("target") == c.rank() && c.dims("target") == c.dims() && is_float(c.dtype("target"));
  if (!are_probabilities && smoothing == 0) return loss_of_classes<"SoftmaxCrossEntropyLoss">(c, x);
  x = c.as_float(x);
  const auto smoothed = [&](TensorId target) {
    return smoothing == 0 ? target : c.add(c.mul(target, 1 - smoothing), smoothing / static_cast<double>(classes));
  };
  if (are_probabilities) return loss_of_probabilities(c, x, smoothed(c.as("target", c.dtype_of(x))), axis);
  if (c.has("weight")) return unsupported("label_smoothing together with weights of classes is not supported");
  ORKNN_TRY_ASSIGN(const TensorId target, c.as_index("target"));
  ORKNN_TRY_ASSIGN(const TensorId chosen, one_hot(c, target, classes, axis, c.scalar_like(x, 1), c.scalar_like(x, 0)));
  const TensorId counted = not_equal(c, target, c.int_scalar(c.integer("ignore_index"), c.dtype_of(target)));
  return loss_of_probabilities(c, x, smoothed(chosen), axis, counted);
}

// --- margins
Result<TensorId> soft_margin_loss(Call& c, TensorId x, TensorId target) {
  return reduced_loss(c, c.unary("Softplus", c.unary("Neg", c.mul(c.as_float(x), c.as_float(target)))));
}
Result<TensorId> margin_ranking_loss(Call& c, TensorId a, TensorId b, TensorId target) {
  return reduced_loss(c, c.unary("Relu", c.sub(c.scalar_like(a, c.number("margin")), c.mul(target, c.sub(a, b)))));
}
// `similar` where the target is 1, `different` where it is -1; both where it is neither.
TensorId loss_of_pairs(Call& c, TensorId target, TensorId similar, TensorId different) {
  const TensorId zero = c.scalar_like(similar, 0);
  return c.add(c.where(c.with_scalar("Equal", target, 1), zero, different),
               c.where(c.with_scalar("Equal", target, -1), zero, similar));
}
Result<TensorId> hinge_embedding_loss(Call& c, TensorId x, TensorId target) {
  x = c.as_float(x);
  return reduced_loss(c, loss_of_pairs(c, target, x, c.unary("Relu", c.sub(c.scalar_like(x, c.number("margin")), x))));
}
Result<TensorId> cosine_embedding_loss(Call& c, TensorId a, TensorId b, TensorId target) {
  a = c.as_float(a), b = c.as_float(b);
  const std::vector<int64_t> axis{c.rank("target")};  // the one after those of the target
  const auto dot = [&](TensorId u, TensorId v) { return c.reduce("ReduceSum", c.mul(u, v), axis, false); };
  const auto size = [&](TensorId v) { return c.add(dot(v, v), 1e-12); };  // PyTorch's term
  const TensorId cosine = c.div(dot(a, b), c.unary("Sqrt", c.mul(size(a), size(b))));
  const TensorId zero = c.scalar_like(cosine, 0);
  const TensorId similar = c.where(c.with_scalar("Equal", target, 1), c.sub(c.scalar_like(cosine, 1), cosine), zero);
  const TensorId different =
      c.where(c.with_scalar("Equal", target, -1), c.unary("Relu", c.sub(cosine, c.number("margin"))), zero);
  return reduced_loss(c, c.add(similar, different));
}
Result<TensorId> triplet_margin_loss(Call& c, TensorId anchor, TensorId positive, TensorId negative) {
  const auto distance = [&](TensorId a, TensorId b) {
    const TensorId difference = c.add(c.sub(c.as_float(a), c.as_float(b)), c.number("eps"));
    return norm(c, difference, c.number("p"), {{c.rank_of(difference).value_or(1) - 1}, false});
  };
  TensorId to_negative = distance(anchor, negative);
  if (c.flag("swap")) to_negative = c.binary("Min", to_negative, distance(positive, negative));
  return reduced_loss(c, c.unary("Relu", c.add(c.sub(distance(anchor, positive), to_negative), c.number("margin"))));
}
Result<TensorId> poisson_nll_loss(Call& c, TensorId x, TensorId target) {
  x = c.as_float(x), target = c.as_float(target);
  TensorId loss = c.flag("log_input") ? c.sub(c.unary("Exp", x), c.mul(target, x))
                                      : c.sub(x, c.mul(target, c.unary("Log", c.add(x, c.number("eps")))));
  if (c.flag("full")) {  // Stirling's formula for log(target!)
    const TensorId factorial = c.add(c.sub(c.mul(target, c.unary("Log", target)), target),
                                     c.mul(c.unary("Log", c.mul(target, 2 * std::numbers::pi)), 0.5));
    loss = c.add(loss, c.where(c.with_scalar("Greater", target, 1), factorial, c.scalar_like(loss, 0)));
  }
  return reduced_loss(c, loss);
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
      {"nll_loss|nll_loss2d|nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100)",
       loss_of_classes<"NegativeLogLikelihoodLoss">},
      {"nll_loss_forward|nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index)",
       with_unused<loss_of_classes<"NegativeLogLikelihoodLoss">, 1>},
      {"cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float "
       "label_smoothing=0.)",
       cross_entropy},
      {"soft_margin_loss(Tensor self, Tensor target, int reduction=1)", soft_margin_loss},
      {"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1)", margin_ranking_loss},
      {"hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1)", hinge_embedding_loss},
      {"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1)",
       cosine_embedding_loss},
      {"triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=1e-06, bool "
       "swap=False, int reduction=1)",
       triplet_margin_loss},
      {"poisson_nll_loss(Tensor self, Tensor target, bool log_input, bool full, float eps, int reduction)", poisson_nll_loss},
      {"kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False)", divergence},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
