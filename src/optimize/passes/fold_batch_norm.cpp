// Multiplies an inference BatchNormalization into the weights next to it.
//
// Before: %c = Conv(%x, %w) ; %y = BatchNormalization(%c, ...)       After: %y = Conv(%x, %w', %b')
// Before: %n = BatchNormalization(%x, ...) ; %y = Conv(%n, %w)       After: %y = Conv(%x, %w', %b')
// Legal: statistics and weights are constant and the tensor between has no other reader; ahead of a Conv also no padding (padded
// zeros would be normalized too). ConvTranspose, Gemm and MatMul likewise. A lone BatchNormalization stays.
#include <algorithm>
#include <cmath>

#include "optimize/linear.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

bool all_finite(const std::vector<double>& v) {
  return std::ranges::all_of(v, [](double x) { return std::isfinite(x); });
}

Rewrite fold_batch_norm_rule(const Graph& g, const Node& bn) {
  if (!bn.tail.empty() || bn.attributes.int_or("training_mode", 0) || !only_first_output(g, bn)) return no_match();
  std::vector<double> parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    const TensorData* c = g.constant(bn.input(i + 1));
    if (!c) return no_match();
    parameters[i] = to_doubles(c->view());
    if (parameters[i].size() != parameters[0].size()) return no_match();
  }
  const auto& [gamma, beta, mean, variance] = parameters;
  const double epsilon = bn.attributes.float_or("epsilon", 1e-5);
  std::vector<double> scale, shift;
  for (size_t i = 0; i < gamma.size(); ++i) {
    scale.push_back(gamma[i] / std::sqrt(variance[i] + epsilon));
    shift.push_back(beta[i] - mean[i] * scale[i]);
  }
  if (!all_finite(scale) || !all_finite(shift)) return no_match();
  const auto channels = static_cast<int64_t>(scale.size());

  if (const Node* before = g.producer_node(bn.input(0)); before && read_once(g, bn.input(0))) {
    const auto linear = linear_of(g, *before);
    if (linear && linear->channel_axis == 1 && linear->out_channels == channels && linear->can_have_bias) {
      Patch patch(g);
      Node outputs = bn;
      outputs.outputs.resize(1);
      Node fused = scale_output(patch, g, *linear, scale, shift, outputs);
      replace_node(g, patch, bn, std::move(fused), {before});
      return rewrite(std::move(patch));
    }
  }
  const Node* after = only_reader(g, bn.output(0));
  if (!after || after->input(0) != bn.output(0)) return no_match();
  const auto linear = linear_of(g, *after);
  if (!linear || linear->is_padded || linear->input_axis != 1 || linear->in_channels != channels || !linear->can_have_bias)
    return no_match();
  Patch patch(g);
  Node fused = scale_input(patch, g, *linear, bn.input(0), scale, shift);
  replace_node(g, patch, *after, std::move(fused), {&bn});
  return rewrite(std::move(patch));
}
}  // namespace

Pass fold_batch_norm() {
  return {.name = "fold_batch_norm",
          .summary = "BatchNormalization into the weights before or after it",
          .min_level = 1,
          .rule = fold_batch_norm_rule,
          .roots = {"BatchNormalization"}};
}
}  // namespace orknn::optimize
