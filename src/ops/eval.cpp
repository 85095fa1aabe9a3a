#include "ops/eval.h"

#include <new>

#include "base/memory.h"
#include "ir/infer.h"
#include "ops/support/scratch_dims.h"

namespace orknn::ops {
namespace {
using namespace ir;

// A tensor larger than the machine's memory can only come from a model whose stated shapes are wrong.
Status check_memory(int64_t elements, DType dtype) {
  const double bytes = static_cast<double>(elements) * static_cast<double>(dtype_bytes(dtype));
  if (bytes <= static_cast<double>(machine_memory())) return {};
  return Status::error(Code::OutOfMemory, "a result is larger than the memory of this machine")
      .found(std::to_string(static_cast<int64_t>(bytes)) + " bytes");
}

bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

// Inputs and outputs as values; outputs are allocated as the kernel asks for them.
class ValueContext : public RunContext {
 public:
  ValueContext(const Node& node, const OpDef& def, const OpSet& ops, ThreadPool& pool, std::span<const TensorData> inputs)
      : RunContext(node, def, ops, pool), inputs_(inputs), outputs_(node.outputs.size()) {}
  size_t input_count() const override { return inputs_.size(); }
  bool has_input(size_t i) const override { return i < inputs_.size() && inputs_[i].has_value(); }
  TensorView input(size_t i) const override { return inputs_[i].view(); }
  size_t output_count() const override { return outputs_.size(); }
  bool has_output(size_t i) const override { return i < outputs_.size() && node().outputs[i]; }
  Result<MutableTensorView> output(size_t i, DType dtype, std::span<const int64_t> dims) override {
    ORKNN_ASSERT(i < outputs_.size(), "a kernel only asks for outputs the node has");
    const Result<int64_t> n = checked_element_count(dims);
    if (!n) return n.status();
    ORKNN_TRY(check_memory(*n, dtype));
    outputs_[i] = TensorData::allocate(dtype, Dims(dims.begin(), dims.end()));
    return MutableTensorView{dtype, outputs_[i].dims(), outputs_[i].mutable_data()};
  }
  Status set_output(size_t i, const TensorData& value) override {
    outputs_[i] = value;
    return {};
  }
  std::vector<TensorData>& outputs() { return outputs_; }

 private:
  std::span<const TensorData> inputs_;
  std::vector<TensorData> outputs_;
};

// Copies a finished value into output i of `context`, converting float32 to the declared half type.
Status deliver(RunContext& context, size_t i, const TensorData& value, DType declared) {
  if (value.dtype() == declared) return context.set_output(i, value);
  ORKNN_TRY_ASSIGN(const MutableTensorView out, context.output(i, declared, value.dims()));
  convert_elements(value.view(), out);
  return {};
}

// Applies the tail of `node` to `value`. Operands come from `context`; half operands are widened.
Status apply_tail(const Node& node, const RunContext& context, TensorData& value) {
  for (const TailStep& step : node.tail) {
    Node single;
    single.op = step.op;
    single.name = node.name;
    single.attributes = step.attributes;
    single.outputs = {TensorId{0}};
    std::vector<TensorData> inputs{value};
    if (step.operand >= 0) {
      const TensorView v = context.input(static_cast<size_t>(step.operand));
      TensorData operand = is_half(v.dtype) ? convert(v, DType::Float32)
                                            : TensorData::wrap(v.dtype, Dims(v.dims.begin(), v.dims.end()), v.data, nullptr);
      inputs.insert(step.operand_first ? inputs.begin() : inputs.end(), std::move(operand));
    }
    single.inputs.assign(inputs.size(), TensorId{0});
    ORKNN_TRY_ASSIGN(auto results, eval_node(single, context.ops, inputs, context.pool));
    value = std::move(results[0]);
  }
  return {};
}

}  // namespace

// Wide copies of inputs, and results that are narrowed or changed by a tail before they are handed over.
class WideValues {
 public:
  struct Value {
    DType dtype = DType::Undefined;  // Undefined = there is none in this call
    ScratchDims dims;
    AlignedBytes bytes;

    Result<MutableTensorView> reserve(DType type, std::span<const int64_t> extents) {
      ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(extents));
      ORKNN_TRY(check_memory(count, type));
      if (!bytes.reserve(std::max<size_t>(static_cast<size_t>(count) * dtype_bytes(type), 1))) throw std::bad_alloc();
      dtype = type;
      dims.assign(extents.begin(), extents.end());
      return MutableTensorView{dtype, dims, bytes.data()};
    }
    TensorView view() const { return {dtype, dims, bytes.data()}; }
  };
  std::vector<Value> inputs, outputs;
  std::vector<TensorData> handed_over;  // results that the kernel made itself

  void begin(size_t input_count, size_t output_count) {
    inputs.resize(std::max(inputs.size(), input_count));
    outputs.resize(std::max(outputs.size(), output_count));
    handed_over.assign(outputs.size(), {});
    for (std::vector<Value>* values : {&inputs, &outputs})
      for (Value& v : *values) v.dtype = DType::Undefined;
  }
  void end() {
    for (TensorData& value : handed_over) value = {};
  }
};

void WideValuesDelete::operator()(WideValues* values) const { delete values; }
WideValuesPtr make_wide_values() { return WideValuesPtr(new WideValues); }

namespace {
// What the kernel of a node sees in place of `outer`: its own inputs, halves as float32, and results in the types that it
// computes. At its end, be it that of a failure, `values` holds nothing that a kernel has handed over.
class WideContext final : public RunContext {
 public:
  WideContext(const Node& node, const OpDef& def, RunContext& outer, std::span<const DType> output_types, WideValues& values)
      : RunContext(node, def, outer.ops, outer.pool), outer_(outer), output_types_(output_types), values_(values) {
    values_.begin(node.own_input_count(), outer.output_count());
  }
  ~WideContext() override { values_.end(); }
  Status widen_inputs() {
    for (size_t i = 0; i < input_count(); ++i) {
      if (!has_input(i) || !is_half(outer_.input(i).dtype)) continue;
      const TensorView narrow = outer_.input(i);
      ORKNN_TRY_ASSIGN(const MutableTensorView wide, values_.inputs[i].reserve(DType::Float32, narrow.dims));
      convert_elements(narrow, wide);
    }
    return {};
  }
  size_t input_count() const override { return node().own_input_count(); }
  bool has_input(size_t i) const override { return i < input_count() && outer_.has_input(i); }
  TensorView input(size_t i) const override {
    const WideValues::Value& wide = values_.inputs[i];
    return wide.dtype == DType::Undefined ? outer_.input(i) : wide.view();
  }
  size_t output_count() const override { return outer_.output_count(); }
  bool has_output(size_t i) const override { return outer_.has_output(i); }
  Result<MutableTensorView> output(size_t i, DType dtype, std::span<const int64_t> dims) override {
    const bool final = dtype == output_types_[i] && (i > 0 || node().tail.empty());
    return final && outer_.has_output(i) ? outer_.output(i, dtype, dims) : values_.outputs[i].reserve(dtype, dims);
  }
  Status set_output(size_t i, const TensorData& value) override {
    values_.handed_over[i] = value;
    return {};
  }
  // After the kernel: applies the tail, narrows, and hands over what the kernel did not write to its place.
  Status deliver_results() {
    for (size_t i = 0; i < output_count(); ++i) {
      if (!has_output(i)) continue;
      const WideValues::Value& computed = values_.outputs[i];
      TensorData& value = values_.handed_over[i];
      if (i == 0 && !node().tail.empty()) {
        if (computed.dtype != DType::Undefined)
          value =
              TensorData::wrap(computed.dtype, Dims(computed.dims.begin(), computed.dims.end()), computed.bytes.data(), nullptr);
        if (value.has_value()) ORKNN_TRY(apply_tail(node(), outer_, value));
      }
      if (value.has_value()) {
        ORKNN_TRY(deliver(outer_, i, value, output_types_[i]));
      } else if (computed.dtype != DType::Undefined) {
        ORKNN_TRY_ASSIGN(const MutableTensorView to, outer_.output(i, output_types_[i], computed.dims));
        convert_elements(computed.view(), to);
      }
    }
    return {};
  }

 private:
  RunContext& outer_;
  std::span<const DType> output_types_;
  WideValues& values_;
};
}  // namespace

Status run_node(const Node& node, const OpDef& def, RunContext& context, std::span<const DType> output_types, WideValues* wide) {
  const size_t own = node.own_input_count();
  bool widen = false;
  if (def.widen_half) {
    for (size_t i = 0; i < own; ++i) widen |= context.has_input(i) && is_half(context.input(i).dtype);
    for (DType t : output_types) widen |= is_half(t);
  }
  if (!widen && node.tail.empty()) return def.run(context);

  WideValues for_this_call;
  WideValues& values = wide ? *wide : for_this_call;
  WideContext inner(node, def, context, output_types, values);
  if (widen) ORKNN_TRY(inner.widen_inputs());
  ORKNN_TRY(def.run(inner));
  return inner.deliver_results();
}

Result<std::vector<TensorData>> eval_node(const Node& node, const OpSet& ops, std::span<const TensorData> inputs,
                                          ThreadPool& pool) {
  const OpDef* def = ops.find(node.op);
  if (!def) return unsupported("operator is not known").node(node.name, node.op);
  std::vector<TensorFacts> facts;
  for (const TensorData& t : inputs) {
    TensorFacts f;
    if (t.has_value()) {
      f.dtype = t.dtype();
      f.shape = to_shape(t.dims());
      f.constant = &t;
    }
    facts.push_back(std::move(f));
  }
  ORKNN_TRY_ASSIGN(const auto inferred, infer_node(node, ops, std::move(facts)));
  std::vector<DType> types;
  for (const TensorFacts& f : inferred) types.push_back(f.dtype);
  ValueContext context(node, *def, ops, pool, inputs);
  Status status;
  try {
    status = run_node(node, *def, context, types);
  } catch (const std::bad_alloc&) {
    status = Status::error(Code::OutOfMemory, "not enough memory to compute this node");
  }
  if (!status) return status.node(node.name, node.op);
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorData& value = context.outputs()[i];
    if (!node.outputs[i] || !value.has_value()) continue;
    const std::optional<Dims> promised = inferred[i].shape ? to_dims(*inferred[i].shape) : std::nullopt;
    if (value.dtype() != types[i] || (promised && *promised != value.dims()))
      return internal_error("the kernel's result differs from the shape rule")
          .expected(std::string(dtype_name(types[i])) + (inferred[i].shape ? to_string(*inferred[i].shape) : ""))
          .found(std::string(dtype_name(value.dtype())) + to_string(value.dims()))
          .node(node.name, node.op);
  }
  return std::move(context.outputs());
}

Result<std::vector<TensorData>> eval_graph(const Graph& graph, const OpSet& ops, std::span<const TensorData> inputs,
                                           const EvalOptions& options) {
  if (inputs.size() != graph.inputs().size())
    return invalid_argument("wrong number of inputs")
        .expected(std::to_string(graph.inputs().size()))
        .found(std::to_string(inputs.size()));
  ThreadPool& pool = options.pool ? *options.pool : ThreadPool::shared();
  std::vector<TensorData> values(graph.tensor_count());
  std::vector<size_t> readers(graph.tensor_count(), 0);
  for (size_t i = 0; i < graph.tensor_count(); ++i) readers[i] = graph.reader_count(TensorId{static_cast<int32_t>(i)});
  for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(graph.inputs()[i].index)] = inputs[i];
  const auto value_of = [&](TensorId id) -> TensorData {
    if (!id) return {};
    const TensorData* constant = graph.constant(id);
    return constant ? *constant : values[static_cast<size_t>(id.index)];
  };
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    std::vector<TensorData> arguments;
    for (TensorId t : n.inputs) arguments.push_back(value_of(t));
    ORKNN_TRY_ASSIGN(std::vector<TensorData> results, eval_node(n, ops, arguments, pool));
    arguments.clear();
    for (TensorId t : n.inputs)
      if (t && --readers[static_cast<size_t>(t.index)] == 0) values[static_cast<size_t>(t.index)] = {};
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorId t = n.outputs[i];
      if (!t) continue;
      if (options.observe) options.observe(t, results[i]);
      if (readers[static_cast<size_t>(t.index)] > 0) values[static_cast<size_t>(t.index)] = std::move(results[i]);
    }
  }
  std::vector<TensorData> out;
  for (TensorId t : graph.outputs()) out.push_back(value_of(t));
  return out;
}

}  // namespace orknn::ops
