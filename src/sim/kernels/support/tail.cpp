#include "sim/kernels/support/tail.h"

#include <algorithm>
#include <limits>

#include "ops/facts.h"

namespace orknn::sim::kernels {

std::optional<Storage> storage_of(DType dtype) {
  if (dtype == DType::Float32) return Storage::Float;
  if (dtype == DType::Float16) return Storage::Half;
  return std::nullopt;
}

std::optional<Step> unary_step(std::string_view op, const ir::Attributes& attributes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (ops::facts_of(op).bounds == ir::Bounds::Given)
    return Step{.fn = Fn::Clip,
                .a = static_cast<float>(attributes.float_or("min", -kInfinity)),
                .b = static_cast<float>(attributes.float_or("max", kInfinity))};
  const ir::OpDef& def = ops::facts_of(op);
  const auto parameter = [&](std::string_view name) {
    return name.empty() ? 0.0f : static_cast<float>(def.float_of(attributes, name));
  };
  Step step{.fn = Fn::Called, .a = parameter(def.scalar.a), .b = parameter(def.scalar.b), .call = def.scalar.call};
  const auto* name = std::ranges::find(kVectorOperators, op);
  if (name != std::end(kVectorOperators)) step.fn = static_cast<Fn>(name - std::begin(kVectorOperators));
  if (step.fn == Fn::Gelu && attributes.string_or("approximate", "none") == "tanh") step.fn = Fn::GeluTanh;
  return step.fn != Fn::Called || step.call ? std::optional(step) : std::nullopt;
}

std::optional<Fn> binary_function(std::string_view op, bool swapped) {
  switch (ops::facts_of(op).arithmetic) {
    case ir::Arithmetic::Add: return Fn::Add;
    case ir::Arithmetic::Mul: return Fn::Multiply;
    case ir::Arithmetic::Sub: return swapped ? Fn::SubtractFrom : Fn::Subtract;
    case ir::Arithmetic::Div: return swapped ? Fn::DivideInto : Fn::Divide;
    case ir::Arithmetic::Max: return Fn::Max;
    case ir::Arithmetic::Min: return Fn::Min;
    case ir::Arithmetic::None: break;
  }
  return op == "PRelu" && !swapped ? std::optional(Fn::PRelu) : std::nullopt;
}

namespace {
// How an operand's axes [begin, end) follow the result's: all of them (true), none (false), or mixed (nothing).
std::optional<bool> follows(std::span<const int64_t> operand, std::span<const int64_t> result, size_t begin, size_t end) {
  bool all = true, none = true;
  for (size_t i = begin; i < end; ++i) {
    if (result[i] == 1) continue;
    (operand[i] == result[i] ? none : all) = false;
  }
  if (none) return false;
  return all ? std::optional(true) : std::nullopt;
}
}  // namespace

std::optional<TailPlan> TailPlan::create(const KernelQuery& query, MatrixView view) {
  TailPlan plan;
  const ir::Dims& result = query.outputs[0].dims;
  for (const ir::TailStep& tail : query.node.tail) {
    Step step;
    if (tail.operand < 0) {
      const std::optional<Step> function = unary_step(tail.op, tail.attributes);
      if (!function) return std::nullopt;
      step = *function;
    } else {
      const std::optional<Fn> fn = binary_function(tail.op, tail.operand_first);
      const OperandFacts& operand = query.inputs[static_cast<size_t>(tail.operand)];
      const std::optional<Storage> storage = storage_of(operand.dtype);
      if (!fn || !storage || operand.dims.size() > result.size()) return std::nullopt;
      step.fn = *fn;
      step.storage = *storage;
      ir::Dims dims(result.size() - operand.dims.size(), 1);
      dims.insert(dims.end(), operand.dims.begin(), operand.dims.end());
      const auto batch = follows(dims, result, 0, view.row_axis);
      const auto row = follows(dims, result, view.row_axis, view.column_axis);
      const auto column = follows(dims, result, view.column_axis, result.size());
      if (!batch || !row || !column) return std::nullopt;
      const auto count = [&](size_t begin, size_t end) { return ir::element_count(std::span(dims).subspan(begin, end - begin)); };
      const int64_t columns = count(view.column_axis, dims.size());
      step.column_stride = *column ? 1 : 0;
      step.row_stride = *row ? columns : 0;
      step.batch_stride = *batch ? columns * count(view.row_axis, view.column_axis) : 0;
    }
    plan.steps_.push_back(step);
    plan.operands_.push_back(tail.operand);
  }
  return plan;
}

StepList TailPlan::bind(std::span<const ir::TensorView> inputs) const {
  StepList steps;
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps.push_back(steps_[i]);
    if (operands_[i] >= 0) steps.back().operand = inputs[static_cast<size_t>(operands_[i])].data;
  }
  return steps;
}

Clamp take_clamp(StepList& steps) {
  Clamp clamp;
  if (steps.empty()) return clamp;
  const Step& first = steps.front();
  if (first.fn == Fn::Relu)
    clamp = {true, 0.0f, std::numeric_limits<float>::infinity()};
  else if (first.fn == Fn::Clip)
    clamp = {true, first.a, first.b};
  if (clamp.active) steps.pop_front();
  return clamp;
}

}  // namespace orknn::sim::kernels
