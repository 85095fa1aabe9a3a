#include "sim/kernels/support/tail.h"

#include <cmath>
#include <limits>

namespace orknn::sim::kernels {

std::optional<Storage> storage_of(DType dtype) {
  if (dtype == DType::Float32) return Storage::Float;
  if (dtype == DType::Float16) return Storage::Half;
  return std::nullopt;
}

std::optional<FnCall> unary_function(std::string_view op, const ir::Attributes& attributes) {
  const auto f = [&](std::string_view name, double fallback) { return static_cast<float>(attributes.float_or(name, fallback)); };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (op == "Relu") return FnCall{Fn::Relu};
  if (op == "Clip") return FnCall{Fn::Clip, f("min", -kInfinity), f("max", kInfinity)};
  if (op == "LeakyRelu") return FnCall{Fn::LeakyRelu, f("alpha", 0.01)};
  if (op == "Sigmoid") return FnCall{Fn::Sigmoid};
  if (op == "Swish") return FnCall{Fn::Swish, f("alpha", 1.0)};
  if (op == "HardSwish") return FnCall{Fn::HardSwish};
  if (op == "HardSigmoid") return FnCall{Fn::HardSigmoid, f("alpha", 0.2), f("beta", 0.5)};
  if (op == "Tanh") return FnCall{Fn::Tanh};
  if (op == "Gelu") return FnCall{attributes.string_or("approximate", "none") == "tanh" ? Fn::GeluTanh : Fn::Gelu};
  if (op == "Mish") return FnCall{Fn::Mish};
  if (op == "Elu") return FnCall{Fn::Elu, f("alpha", 1.0)};
  if (op == "Selu") return FnCall{Fn::Selu, f("alpha", 1.67326319217681884765625), f("gamma", 1.05070102214813232421875)};
  if (op == "Celu") return FnCall{Fn::Celu, f("alpha", 1.0)};
  if (op == "Softplus") return FnCall{Fn::Softplus};
  if (op == "Softsign") return FnCall{Fn::Softsign};
  if (op == "ThresholdedRelu") return FnCall{Fn::ThresholdedRelu, f("alpha", 1.0)};
  if (op == "Exp") return FnCall{Fn::Exp};
  if (op == "Log") return FnCall{Fn::Log};
  if (op == "Sqrt") return FnCall{Fn::Sqrt};
  if (op == "Reciprocal") return FnCall{Fn::Reciprocal};
  if (op == "Neg") return FnCall{Fn::Negate};
  if (op == "Abs") return FnCall{Fn::Abs};
  if (op == "Erf") return FnCall{Fn::Erf};
  if (op == "Floor") return FnCall{Fn::Floor};
  if (op == "Ceil") return FnCall{Fn::Ceil};
  if (op == "Round") return FnCall{Fn::Round};
  if (op == "Sin") return FnCall{Fn::Sin};
  if (op == "Cos") return FnCall{Fn::Cos};
  if (op == "Sign") return FnCall{Fn::Sign};
  if (op == "Identity") return FnCall{Fn::Identity};
  return std::nullopt;
}

std::optional<Fn> binary_function(std::string_view op, bool swapped) {
  if (op == "Add") return Fn::Add;
  if (op == "Mul") return Fn::Multiply;
  if (op == "Sub") return swapped ? Fn::SubtractFrom : Fn::Subtract;
  if (op == "Div") return swapped ? Fn::DivideInto : Fn::Divide;
  if (op == "Max") return Fn::Max;
  if (op == "Min") return Fn::Min;
  if (op == "PRelu" && !swapped) return Fn::PRelu;
  return std::nullopt;
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
      const std::optional<FnCall> call = unary_function(tail.op, tail.attributes);
      if (!call) return std::nullopt;
      step.fn = call->fn;
      step.a = call->a;
      step.b = call->b;
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

std::vector<Step> TailPlan::bind(std::span<const ir::TensorView> inputs) const {
  std::vector<Step> steps = steps_;
  for (size_t i = 0; i < steps.size(); ++i)
    if (operands_[i] >= 0) steps[i].operand = inputs[static_cast<size_t>(operands_[i])].data;
  return steps;
}

Clamp take_clamp(std::vector<Step>& steps) {
  Clamp clamp;
  if (steps.empty()) return clamp;
  const Step& first = steps.front();
  if (first.fn == Fn::Relu)
    clamp = {true, 0.0f, std::numeric_limits<float>::infinity()};
  else if (first.fn == Fn::Clip)
    clamp = {true, first.a, first.b};
  if (clamp.active) steps.erase(steps.begin());
  return clamp;
}

}  // namespace orknn::sim::kernels
