// LSTM with optional peepholes. Gates are stored in the order input, output, forget, cell; peepholes input, output, forget.
#include <algorithm>

#include "ops/support/recurrent.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr std::string_view kDefaults[] = {"Sigmoid", "Tanh", "Tanh"};

Status infer(InferContext& c) { return infer_recurrent(c, 4, kDefaults, true); }

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const RecurrentShape s, recurrent_shape(c, 4));
  ORKNN_TRY_ASSIGN(const std::vector<Activation> functions, read_activations(c, kDefaults));
  const int64_t n = s.hidden;
  const RecurrentWeights r(to_doubles(c.input(2)), n);
  const auto or_zeros = [&](size_t slot, int64_t count) {
    return c.has_input(slot) ? to_doubles(c.input(slot)) : std::vector<double>(static_cast<size_t>(count));
  };
  const std::vector<double> bias = or_zeros(3, 8 * s.directions * n), peepholes = or_zeros(7, 3 * s.directions * n);
  const double clip = read_clip(c);
  const bool coupled = c.get_int("input_forget") != 0;
  return run_recurrent(c, s, true, [&](const CellStep& step) {
    const Activation* f = functions.data() + step.direction * 3;
    const double *rb = bias.data() + (step.direction * 8 + 4) * n, *p = peepholes.data() + step.direction * 3 * n;
    const int64_t row = step.direction * 4 * n;
    const auto gate = [&](int64_t which, int64_t i, double peephole) {
      const double sum = step.gates[which * n + i] + r.dot(row + which * n + i, step.hidden) + rb[which * n + i] + peephole;
      return std::clamp(sum, -clip, clip);
    };
    std::vector<double> next(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const double old = step.cell[i];
      const double input = f[0](gate(0, i, p[i] * old));
      const double forget = coupled ? 1 - input : f[0](gate(2, i, p[2 * n + i] * old));
      const double cell = forget * old + input * f[1](gate(3, i, 0));
      const double output = f[0](gate(1, i, p[n + i] * cell));
      step.cell[i] = cell;
      next[static_cast<size_t>(i)] = output * f[2](cell);
    }
    std::copy(next.begin(), next.end(), step.hidden);
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  return recurrent_cost(node, inputs, 4);
}

std::vector<AttributeDef> attributes() {
  std::vector<AttributeDef> list = recurrent_attributes();
  list.push_back(attr_int("input_forget", 0));
  return list;
}
}  // namespace

std::span<const OpDef> lstm() {
  static const OpDef def{.name = "LSTM",
                         .summary = "long short-term memory layer",
                         .inputs = {3, 8},
                         .outputs = {0, 3},
                         .attributes = attributes(),
                         .infer = infer,
                         .run = run,
                         .cost = cost,
                         .engine = Engine::Recurrent,
                         .npu = {.form = NpuForm::Recurrent, .listed_as = "exLSTM"}};
  return {&def, 1};
}
}  // namespace orknn::ops
