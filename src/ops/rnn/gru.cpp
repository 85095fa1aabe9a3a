// GRU: h = (1 - z) h' + z h with an update gate z, a reset gate r and a candidate h'. Gates are stored in the order z, r, h.
#include <algorithm>

#include "ops/support/recurrent.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr std::string_view kDefaults[] = {"Sigmoid", "Tanh"};

Status infer(InferContext& c) { return infer_recurrent(c, 3, kDefaults, false); }

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const RecurrentShape s, recurrent_shape(c, 3));
  ORKNN_TRY_ASSIGN(const std::vector<Activation> functions, read_activations(c, kDefaults));
  const int64_t n = s.hidden;
  const RecurrentWeights r(to_doubles(c.input(2)), n);
  const std::vector<double> bias =
      c.has_input(3) ? to_doubles(c.input(3)) : std::vector<double>(static_cast<size_t>(6 * s.directions * n));
  const double clip = read_clip(c);
  const bool reset_after = c.get_int("linear_before_reset") != 0;
  return run_recurrent(c, s, false, [&](const CellStep& step) {
    const Activation &f = functions[static_cast<size_t>(step.direction * 2)],
                     &g = functions[static_cast<size_t>(step.direction * 2 + 1)];
    const double* rb = bias.data() + (step.direction * 6 + 3) * n;
    const int64_t row = step.direction * 3 * n;
    const auto bounded = [clip](double v) { return std::clamp(v, -clip, clip); };
    std::vector<double> update(static_cast<size_t>(n)), reset(update.size()), candidate(update.size());
    for (int64_t i = 0; i < n; ++i) {
      const auto k = static_cast<size_t>(i);
      update[k] = f(bounded(step.gates[i] + r.dot(row + i, step.hidden) + rb[i]));
      reset[k] = f(bounded(step.gates[n + i] + r.dot(row + n + i, step.hidden) + rb[n + i]));
    }
    std::vector<double> kept(step.hidden, step.hidden + n);
    if (!reset_after)
      for (size_t k = 0; k < kept.size(); ++k) kept[k] *= reset[k];
    for (int64_t i = 0; i < n; ++i) {
      const auto k = static_cast<size_t>(i);
      double recurrent = r.dot(row + 2 * n + i, kept.data()) + rb[2 * n + i];
      if (reset_after) recurrent *= reset[k];
      candidate[k] = g(bounded(step.gates[2 * n + i] + recurrent));
    }
    for (size_t k = 0; k < candidate.size(); ++k) step.hidden[k] = (1 - update[k]) * candidate[k] + update[k] * step.hidden[k];
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  return recurrent_cost(node, inputs, 3);
}

std::vector<AttributeDef> attributes() {
  std::vector<AttributeDef> list = recurrent_attributes();
  list.push_back(attr_int("linear_before_reset", 0));
  return list;
}
}  // namespace

std::span<const OpDef> gru() {
  static const OpDef def{.name = "GRU",
                         .summary = "gated recurrent layer",
                         .inputs = {3, 6},
                         .outputs = {0, 2},
                         .attributes = attributes(),
                         .infer = infer,
                         .run = run,
                         .cost = cost,
                         .engine = Engine::Recurrent,
                         .npu = {.form = NpuForm::RecurrentFloat, .listed_as = "exGRU"},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
