// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss over scores [N, C, d...] and class numbers [N, d...].
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/support/floating.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status check_class(int64_t label, int64_t classes, const int64_t* ignored) {
  if ((label >= 0 && label < classes) || (ignored && label == *ignored)) return {};
  return invalid_argument("a class is out of range").expected("0 to " + std::to_string(classes - 1)).found(std::to_string(label));
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  if (c.dtype(1) != DType::Int32 && c.dtype(1) != DType::Int64)
    return invalid_model("input 1 has the wrong type").expected("int32 or int64").found(std::string(dtype_name(c.dtype(1))));
  ORKNN_TRY(require_same_type(c, 0, 2));
  ORKNN_TRY(require_rank(c, 2, 1));
  const std::string& reduction = c.get_string("reduction");
  if (reduction != "none" && reduction != "mean" && reduction != "sum")
    return invalid_model("unknown reduction").expected("none, mean or sum").found(reduction);
  if (c.shape(0) && c.shape(0)->size() < 2)
    return shape_mismatch("input 0 has the wrong rank").expected("2 or more").found(to_string(*c.shape(0)));
  if (const Shape* x = c.shape(0)) {
    Shape positions = *x;
    positions.erase(positions.begin() + 1);
    ORKNN_TRY(require_shape(c, 1, "target", positions));
    ORKNN_TRY(require_shape(c, 2, "weight", {(*x)[1]}));
    if (const TensorData* target = c.constant(1); target && (*x)[1].is_known())
      for (const int64_t label : to_ints(target->view()))
        ORKNN_TRY(check_class(label, (*x)[1].value(), c.find<int64_t>("ignore_index")));
  }
  std::optional<Shape> loss = Shape();
  if (reduction == "none") {
    loss = c.input(1).shape;
    if (const Shape* x = c.shape(0)) {
      Shape positions = *x;
      positions.erase(positions.begin() + 1);
      if (!loss || loss->size() != positions.size()) loss = positions;
      for (size_t i = 0; i < positions.size(); ++i)
        if (!(*loss)[i].is_known()) (*loss)[i] = positions[i];
    }
  }
  c.set_output(0, c.dtype(0), std::move(loss));
  c.set_output(1, c.dtype(0), c.input(0).shape);
  return {};
}

// `log_probabilities` has the layout of input 0.
Status write_loss(RunContext& c, std::span<const double> log_probabilities) {
  const TensorView x = c.input(0), target = c.input(1);
  const int64_t batch = x.dims[0], classes = x.dims[1], inner = element_count(x.dims.subspan(2));
  Dims positions(x.dims.begin(), x.dims.end());
  positions.erase(positions.begin() + 1);
  if (!std::equal(positions.begin(), positions.end(), target.dims.begin(), target.dims.end()))
    return wrong_shape("target", to_string(positions), target.dims);
  std::vector<double> weights;
  if (c.has_input(2)) {
    if (c.input(2).dims[0] != classes) return wrong_shape("weight", "[" + std::to_string(classes) + "]", c.input(2).dims);
    weights = to_doubles(c.input(2));
  }
  const auto* ignored = c.find<int64_t>("ignore_index");
  const std::vector<int64_t> labels = to_ints(target);
  std::vector<double> losses(labels.size(), 0.0);
  double sum = 0, weight_sum = 0;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = static_cast<size_t>(n * inner + i);
      const int64_t label = labels[at];
      if (ignored && label == *ignored) continue;
      ORKNN_TRY(check_class(label, classes, nullptr));
      const double weight = weights.empty() ? 1 : weights[static_cast<size_t>(label)];
      losses[at] = -log_probabilities[static_cast<size_t>((n * classes + label) * inner + i)] * weight;
      sum += losses[at];
      weight_sum += weight;
    }
  const std::string& reduction = c.get_string("reduction");
  if (!c.has_output(0)) return {};
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, reduction == "none" ? positions : Dims{}));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    if (reduction == "none")
      std::transform(losses.begin(), losses.end(), y.as<T>(), [](double v) { return static_cast<T>(v); });
    else
      *y.as<T>() = static_cast<T>(reduction == "sum" ? sum : sum / weight_sum);
    return Status();
  });
}

Status run_likelihood(RunContext& c) { return write_loss(c, to_doubles(c.input(0))); }

Status run_cross_entropy(RunContext& c) {
  const TensorView x = c.input(0);
  const int64_t batch = x.dims[0], classes = x.dims[1], inner = element_count(x.dims.subspan(2));
  std::vector<double> values = to_doubles(x);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t i = 0; i < inner && classes > 0; ++i) {
      double* first = values.data() + n * classes * inner + i;
      double top = *first, sum = 0;
      for (int64_t k = 1; k < classes; ++k) top = std::max(top, first[k * inner]);
      for (int64_t k = 0; k < classes; ++k) sum += std::exp(first[k * inner] - top);
      for (int64_t k = 0; k < classes; ++k) first[k * inner] -= top + std::log(sum);
    }
  ORKNN_TRY(write_loss(c, values));
  if (!c.has_output(1)) return {};
  ORKNN_TRY_ASSIGN(const MutableTensorView log_prob, c.output(1, x.dtype, x.dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    std::transform(values.begin(), values.end(), log_prob.as<T>(), [](double v) { return static_cast<T>(v); });
    return Status();
  });
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims>) {
  return {.element_ops = 4 * element_count(inputs[0])};
}
}  // namespace

std::span<const OpDef> log_likelihood_loss() {
  static const OpDef defs[] = {
      {.name = "NegativeLogLikelihoodLoss",
       .summary = "negative log probability of the true classes",
       .inputs = {2, 3},
       .attributes = {attr_int("ignore_index"), attr_string("reduction", "mean")},
       .infer = infer,
       .run = run_likelihood,
       .cost = cost},
      {.name = "SoftmaxCrossEntropyLoss",
       .summary = "negative log softmax of the true classes",
       .inputs = {2, 3},
       .outputs = {1, 2},
       .attributes = {attr_int("ignore_index"), attr_string("reduction", "mean")},
       .infer = infer,
       .run = run_cross_entropy,
       .cost = cost},
  };
  return defs;
}
}  // namespace orknn::ops
