#include "quantize/forms/lowering.h"

#include <algorithm>

#include "base/refusal.h"

namespace orknn::quantize {
using namespace ir;

Lowering::Lowering(const Graph& graph, const OpSet& ops, const Plan& plan)
    : in_(graph), ops_(ops), plan_(plan), versions_(graph.tensor_count()) {
  out_.name = graph.name;
}

TensorData Lowering::integers(TensorId t, Dims dims, std::span<const double> reals) const {
  std::vector<int64_t> values;
  for (double v : reals) values.push_back(quantized(v, t));
  return integer_tensor(type(t), std::move(dims), values);
}

Result<TensorData> Lowering::table_of(const Functions& f, TensorId x, TensorId y) const {
  const int64_t entries = type(x) == DType::Int16 ? 65536 : 256;
  std::vector<double> reals(static_cast<size_t>(entries));
  for (int64_t i = 0; i < entries; ++i)
    reals[static_cast<size_t>(i)] = static_cast<double>(i + dtype_min(type(x)) - zero(x)) * scale(x);
  ORKNN_TRY_ASSIGN(const std::vector<double> values, f(reals));
  return integers(y, {entries}, values);
}

Result<Outcome> outcome_of(Status problem) {
  if (!is_refusal(problem)) return problem;
  return Outcome::stays_float(problem.message());
}

Outcome Lowering::scale_too_small(TensorId t) const {
  return Outcome::stays_float("the scale of '" + in_.tensor(t).name + "' is too small for its inputs");
}

TensorId Lowering::declare(TensorId old, const std::string& name, bool integer) {
  const Tensor& source = in_.tensor(old);
  const TensorId t = out_.add_tensor(name, integer ? type(old) : source.dtype, source.shape);
  out_.tensor(t).layout = source.layout;
  out_.tensor(t).quant = integer ? parameters(old) : source.quant;  // what integers mean stays where they stay
  return t;
}

TensorId Lowering::convert(const std::string& op, TensorId old, TensorId from, const std::string& name, bool to_integer) {
  Node n;
  n.op = op;
  n.name = name;
  n.inputs = {from, constant(name + "/scale", TensorData::scalar<float>(parameters(old)->scale[0])),
              constant(name + "/zero_point", integer_tensor(type(old), {}, {zero(old)}))};
  n.outputs = {declare(old, name, to_integer)};
  n.origin = {in_.tensor(old).name};
  const TensorId made = n.outputs[0];
  out_.add_node(std::move(n));
  return made;
}

TensorId Lowering::real(TensorId old) {
  if (!old) return {};
  Versions& v = versions(old);
  if (v.real) return v.real;
  const Tensor& source = in_.tensor(old);
  if (source.is_constant()) return v.real = constant(source.name, source.constant);
  ORKNN_ASSERT(v.integer, "a tensor is made before it is read");
  return v.real = convert("DequantizeLinear", old, v.integer, source.name + "_float", false);
}

TensorId Lowering::integer(TensorId old) {
  Versions& v = versions(old);
  if (!v.integer)
    v.integer = convert("QuantizeLinear", old, v.real, in_.tensor(old).name + "_" + std::string(dtype_name(type(old))), true);
  return v.integer;
}

TensorId Lowering::primary(TensorId old) { return versions(old).integer ? versions(old).integer : real(old); }

void Lowering::add_input(TensorId t) {
  const auto users = in_.users(t);
  const bool integer = parameters(t) && (plan_.integer_inputs ||
                                         std::ranges::any_of(users, [&](NodeId u) { return plan_.form(u).form != Form::Float; }));
  const TensorId made = declare(t, in_.tensor(t).name, integer);
  (integer ? versions(t).integer : versions(t).real) = made;
  out_.inputs().push_back(made);
}

void Lowering::copy_node(const Node& n) {
  Node copy = n;
  for (TensorId& t : copy.inputs) t = real(t);
  for (TensorId& t : copy.outputs) {
    if (!t) continue;
    const TensorId made = declare(t, in_.tensor(t).name, false);
    versions(t).real = made;
    t = made;
  }
  out_.add_node(std::move(copy));
}

void Lowering::add_layer(const Node& n, std::string op, std::vector<TensorId> inputs, Attributes attributes) {
  Node made;
  made.op = std::move(op);
  made.name = n.name;
  made.origin = n.origin;
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  made.inputs = std::move(inputs);
  made.attributes = std::move(attributes);
  for (TensorId t : n.outputs) {
    TensorId created;
    if (t) versions(t).integer = created = declare(t, in_.tensor(t).name, true);
    made.outputs.push_back(created);
  }
  out_.add_node(std::move(made));
}

void Lowering::quantize_as(TensorId x, TensorId y) {
  versions(y).integer = convert("QuantizeLinear", y, real(x), in_.tensor(y).name, true);
}

}  // namespace orknn::quantize
