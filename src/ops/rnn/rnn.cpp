// RNN: h = f(W x + R h + b).
#include <algorithm>

#include "ops/support/recurrent.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr std::string_view kDefaults[] = {"Tanh"};

Status infer(InferContext& c) { return infer_recurrent(c, 1, kDefaults, false); }

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const RecurrentShape s, recurrent_shape(c, 1));
  ORKNN_TRY_ASSIGN(const std::vector<Activation> f, read_activations(c, kDefaults));
  const RecurrentWeights r(to_doubles(c.input(2)), s.hidden);
  const std::vector<double> bias =
      c.has_input(3) ? to_doubles(c.input(3)) : std::vector<double>(static_cast<size_t>(2 * s.directions * s.hidden));
  const double clip = read_clip(c);
  return run_recurrent(c, s, false, [&](const CellStep& step) {
    const double* recurrent_bias = bias.data() + (step.direction * 2 + 1) * s.hidden;
    std::vector<double> next(static_cast<size_t>(s.hidden));
    for (int64_t i = 0; i < s.hidden; ++i) {
      const double sum = step.gates[i] + r.dot(step.direction * s.hidden + i, step.hidden) + recurrent_bias[i];
      next[static_cast<size_t>(i)] = f[static_cast<size_t>(step.direction)](std::clamp(sum, -clip, clip));
    }
    std::copy(next.begin(), next.end(), step.hidden);
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  return recurrent_cost(node, inputs, 1);
}
}  // namespace

std::span<const OpDef> rnn() {
  static const OpDef def{.name = "RNN",
                         .summary = "simple recurrent layer",
                         .inputs = {3, 6},
                         .outputs = {0, 2},
                         .attributes = recurrent_attributes(),
                         .infer = infer,
                         .run = run,
                         .cost = cost,
                         .engine = Engine::Recurrent};
  return {&def, 1};
}
}  // namespace orknn::ops
