#include "ops/custom_ops.h"

#include "ir/custom_op.h"
#include "ir/verify.h"

namespace orknn::ops {
using namespace ir;

struct CustomOps::Definition : OpDef {
  CustomOp op;
  std::string text;  // holds OpDef::name

  static const CustomOp& of(const NodeReader& reader) { return static_cast<const Definition&>(reader.def()).op; }
};

namespace {
bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

// What the user says about the results of one call, checked.
Result<std::vector<CustomTensor>> results_of(const CustomOp& op, const Node& node, std::span<const CustomTensor> inputs) {
  ORKNN_TRY_ASSIGN(std::vector<CustomTensor> outputs, op.infer(node, inputs));
  if (outputs.size() < node.outputs.size())
    return invalid_argument("shape_infer of '" + op.type + "' gives too few results")
        .expected(std::to_string(node.outputs.size()))
        .found(std::to_string(outputs.size()));
  for (const CustomTensor& t : outputs)
    if (t.dtype == DType::Undefined || !checked_element_count(t.dims))
      return invalid_argument("shape_infer of '" + op.type + "' gives a shape or type that no tensor has")
          .found(to_string(t.dims));
  return outputs;
}

Status infer_custom(InferContext& c, const CustomOp& op) {
  std::vector<CustomTensor> inputs(c.input_count());
  DType half = DType::Undefined;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!c.has_input(i)) continue;
    const std::optional<Dims> dims = c.shape(i) ? to_dims(*c.shape(i)) : std::nullopt;
    if (!dims)
      return unsupported("the shape of input " + std::to_string(i) + " is not known, shape_infer needs it")
          .hint("give the shapes of the model's inputs with input_size_list");
    if (is_half(c.dtype(i))) half = c.dtype(i);
    inputs[i] = {is_half(c.dtype(i)) ? DType::Float32 : c.dtype(i), *dims};
  }
  ORKNN_TRY_ASSIGN(const std::vector<CustomTensor> outputs, results_of(op, c.node(), inputs));
  for (size_t i = 0; i < c.output_count(); ++i) {
    const bool narrow = half != DType::Undefined && outputs[i].dtype == DType::Float32;
    c.set_output(i, narrow ? half : outputs[i].dtype, to_shape(outputs[i].dims));
  }
  return {};
}

Status run_custom(RunContext& c, const CustomOp& op) {
  if (!op.compute)
    return unsupported("the operator '" + op.type + "' was registered without compute, so that nothing can compute it here")
        .hint("give its class a method compute(self, node, inputs)");
  std::vector<TensorData> inputs(c.input_count());
  std::vector<CustomTensor> facts(c.input_count());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!c.has_input(i)) continue;
    const TensorView v = c.input(i);
    facts[i] = {v.dtype, Dims(v.dims.begin(), v.dims.end())};
    inputs[i] = TensorData::wrap(v.dtype, facts[i].dims, v.data, nullptr);
  }
  ORKNN_TRY_ASSIGN(const std::vector<CustomTensor> promised, results_of(op, c.node(), facts));
  ORKNN_TRY_ASSIGN(const std::vector<TensorData> values, op.compute(c.node(), inputs));
  if (values.size() < c.output_count())
    return invalid_argument("compute of '" + op.type + "' gives too few results")
        .expected(std::to_string(c.output_count()))
        .found(std::to_string(values.size()));
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (!c.has_output(i)) continue;
    if (values[i].dims() != promised[i].dims)
      return invalid_argument("result " + std::to_string(i) + " of '" + op.type + "' has another shape than shape_infer says")
          .expected(to_string(promised[i].dims))
          .found(to_string(values[i].dims()));
    ORKNN_TRY_ASSIGN(const MutableTensorView out, c.output(i, promised[i].dtype, promised[i].dims));
    convert_elements(values[i].view(), out);
  }
  return {};
}

Status refuse(const CustomOp& op) {
  if (op.type.empty()) return invalid_argument("a custom operator has no op_type");
  if (!op.infer && op.compute)
    return invalid_argument("the custom operator '" + op.type + "' has compute but no shape_infer")
        .hint("give its class a method shape_infer(self, node, in_shapes, in_dtypes)");
  if (!op.infer && !builtin_ops().find(op.type))
    return invalid_argument("the custom operator '" + op.type + "' has no shape_infer, and no built-in operator has this name")
        .hint("give its class the methods shape_infer and compute");
  return {};
}

// A node under the name of the built-in operator.
Node renamed(const Node& node, const OpDef& builtin) {
  Node copy = node;
  copy.op = builtin.name;
  for (std::string_view name : {kSourceDomain, kSourceInputs, kSourceOutputs}) copy.attributes.erase(std::string(name));
  return copy;
}

class RenamedContext final : public RunContext {
 public:
  RenamedContext(const Node& node, const OpDef& def, RunContext& outer)
      : RunContext(node, def, outer.ops, outer.pool), outer_(outer) {}
  size_t input_count() const override { return outer_.input_count(); }
  bool has_input(size_t i) const override { return outer_.has_input(i); }
  TensorView input(size_t i) const override { return outer_.input(i); }
  size_t output_count() const override { return outer_.output_count(); }
  bool has_output(size_t i) const override { return outer_.has_output(i); }
  Result<MutableTensorView> output(size_t i, DType dtype, std::span<const int64_t> dims) override {
    return outer_.output(i, dtype, dims);
  }
  Status set_output(size_t i, const TensorData& value) override { return outer_.set_output(i, value); }

 private:
  RunContext& outer_;
};
}  // namespace

const OpDef* builtin_of(std::string_view custom_op) {
  return is_custom(custom_op) ? builtin_ops().find(custom_type(custom_op)) : nullptr;
}

Status infer_as_builtin(InferContext& c) {
  const OpDef& builtin = *builtin_of(c.node().op);
  const Node node = renamed(c.node(), builtin);
  ORKNN_TRY(verify_node(node, builtin));
  std::vector<TensorFacts> inputs;
  for (size_t i = 0; i < c.input_count(); ++i) inputs.push_back(c.input(i));
  InferContext inner(node, builtin, c.ops, std::move(inputs), c.output_count());
  ORKNN_TRY(builtin.infer(inner));
  for (size_t i = 0; i < c.output_count(); ++i) {
    c.set_output(i, inner.output(i).dtype, inner.output(i).shape);
    if (inner.output(i).content) c.set_content(i, *inner.output(i).content);
  }
  return {};
}

Status run_as_builtin(RunContext& c) {
  const OpDef& builtin = *builtin_of(c.node().op);
  const Node node = renamed(c.node(), builtin);
  ORKNN_TRY(verify_node(node, builtin));
  RenamedContext inner(node, builtin, c);
  return builtin.run(inner);
}

CustomOps::~CustomOps() = default;

Result<std::shared_ptr<const CustomOps>> CustomOps::with(const std::shared_ptr<const CustomOps>& before, CustomOp op) {
  ORKNN_TRY(refuse(op));
  const std::shared_ptr<CustomOps> made(new CustomOps());
  if (before) made->ops_ = before->ops_;
  std::erase_if(made->ops_, [&](const CustomOp& other) { return other.type == op.type; });
  made->ops_.push_back(std::move(op));
  made->set_ = builtin_ops();
  for (const CustomOp& each : made->ops_) made->define(each);
  return std::shared_ptr<const CustomOps>(made);
}

void CustomOps::define(const CustomOp& op) {
  auto def = std::make_unique<Definition>();
  def->op = op;
  def->text = custom_name(op.type);
  def->name = def->text;
  def->summary = "an operator of the user's own";
  if (op.infer) {
    def->inputs = {0, Arity::kMany};
    def->outputs = {1, Arity::kMany};
    def->infer = [](InferContext& c) { return infer_custom(c, Definition::of(c)); };
    def->run = [](RunContext& c) { return run_custom(c, Definition::of(c)); };
    def->deterministic = op.compute != nullptr;
  } else {
    const OpDef& builtin = *builtin_ops().find(op.type);
    def->inputs = builtin.inputs;
    def->outputs = builtin.outputs;
    def->attributes = builtin.attributes;
    def->infer = &infer_as_builtin;
    def->run = &run_as_builtin;
    def->deterministic = false;  // it is the device's business, so it stays
  }
  set_.add({static_cast<const OpDef*>(def.get()), 1});
  definitions_.push_back(std::move(def));
}

}  // namespace orknn::ops
