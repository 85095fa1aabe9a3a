#include "import/tflite/graph_builder.h"

#include <algorithm>
#include <cstring>

#include "import/tflite/tensors.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
constexpr size_t kMaxDepth = 16;         // of control flow inside of control flow
constexpr size_t kMaxLowered = 200'000;  // operators, unrolled ones included

const RowTable<Layer>& builtin_table() {
  static const RowTable<Layer> table{convolution_rows(), pooling_rows(),  elementwise_rows(), matrix_rows(),    reduction_rows(),
                                     shape_rows(),       indexing_rows(), recurrent_rows(),   detection_rows(), control_rows()};
  return table;
}
const RowTable<Layer>& custom_table() {
  static const RowTable<Layer> table{custom_convolution_rows(), custom_pooling_rows(), custom_detection_rows()};
  return table;
}

auto row_of(const Operator& op) { return (op.is_custom ? custom_table() : builtin_table()).find(op.name); }

bool has_effects(const Operator& op) { return op.outputs.empty() || op.name == "ASSIGN_VARIABLE" || op.name == "CALL_ONCE"; }

Status no_such_operator(const Operator& op) {
  Status s = unsupported(op.is_custom ? "the custom operator is not supported" : "the operator is not supported");
  if (op.is_custom && op.name.starts_with("Flex"))
    s.hint("convert the model with TFLITE_BUILTINS only, without SELECT_TF_OPS");
  else
    s.hint("cut the model before it with outputs=[...]");
  return s;
}

std::optional<QuantParams> label_of(const TensorInfo& info) {
  const Quantization& q = info.quantization;
  if (!info.is_quantized() || q.scale.size() != 1) return std::nullopt;
  QuantParams p;
  p.scale = {q.scale[0]};
  p.zero_point = {q.zero_point.empty() ? 0 : static_cast<int32_t>(q.zero_point[0])};
  return p;
}
}  // namespace

struct GraphBuilder::Ports {
  std::vector<size_t> inputs, outputs;  // tensors
};

GraphBuilder::GraphBuilder(const Model& model, const FlatFile& file, std::shared_ptr<const void> keeper, const OpSet& ops)
    : model_(model), file_(file), keeper_(std::move(keeper)), network_(ops) {}

std::string GraphBuilder::unique(std::string name) {
  int64_t& count = taken_[name];
  if (count++ == 0) return name;
  for (;; ++count) {
    std::string other = name + "_" + std::to_string(count - 1);
    if (taken_.try_emplace(other, 1).second) return other;
  }
}

Scope GraphBuilder::make_scope(const Subgraph& subgraph, std::string prefix, size_t depth) {
  Scope scope{subgraph, std::move(prefix), depth, {}, {}};
  scope.names.resize(subgraph.tensors.size());
  scope.values.resize(subgraph.tensors.size());
  return scope;
}

const std::string& GraphBuilder::name_of(Scope& scope, size_t tensor) {
  std::string& name = scope.names[tensor];
  if (name.empty()) {
    const std::string_view given = scope.subgraph.tensors[tensor].name;
    name = unique(scope.prefix + (given.empty() ? "tensor_" + std::to_string(tensor) : std::string(given)));
  }
  return name;
}

void GraphBuilder::warn_once(const std::string& text) {
  if (warned_.insert(text).second) network_.warnings.push_back(text);
}

Result<Value*> GraphBuilder::value(Scope& scope, size_t tensor) {
  Value& known = scope.values[tensor];
  if (known.stored || !known.resource.empty()) return &known;
  const TensorInfo& info = scope.subgraph.tensors[tensor];
  const std::string& name = name_of(scope, tensor);
  if (info.is_variable) {
    ORKNN_TRY_ASSIGN(Dims dims, stated_dims(info));
    ORKNN_TRY(checked_element_count(dims).status());
    const auto label = label_of(info);
    Emitter emitter(network_.graph, network_.ops, name, {name});
    const TensorId start =
        emitter.add_scalar("start", label ? label->zero_point[0] : 0, to_dtype(info.type));  // the number that stands for 0
    bind(scope, tensor, emitter.emit("Expand", {start, emitter.add_ints("shape", dims)}), name);
    warn_once("the model keeps state between calls (variable tensor '" + name +
              "'): every call here starts from its initial value");
    return &scope.values[tensor];
  }
  const auto key = std::pair(&scope.subgraph, tensor);
  if (const auto it = constants_.find(key); it != constants_.end()) return &it->second;
  Dims dims = info.shape.to_ints();
  if (info.data.empty() && (dims.empty() || std::find(dims.begin(), dims.end(), 0) == dims.end()))
    return invalid_model("tensor '" + name + "' is read but nothing before it produces it");
  ORKNN_TRY_ASSIGN(TensorData data, read_constant(info, keeper_));
  ORKNN_TRY(file_.damage());
  network_.bind(name, network_.graph.add_constant(name, std::move(data)), name);
  return &constants_.emplace(key, Value::of_stored(network_.find(name))).first->second;
}

void GraphBuilder::bind(Scope& scope, size_t tensor, TensorId stored, std::string_view layer) {
  const std::string& name = name_of(scope, tensor);
  network_.bind(name, stored, layer);
  const TensorId id = network_.find(name);
  if (auto label = label_of(scope.subgraph.tensors[tensor])) network_.graph.tensor(id).quant = std::move(label);
  scope.values[tensor] = Value::of_stored(id);
}

std::vector<char> GraphBuilder::needed_operators(const Subgraph& subgraph, std::span<const size_t> outputs,
                                                 const std::unordered_set<size_t>& stops) const {
  std::vector<char> wanted(subgraph.tensors.size(), 0), needed(subgraph.operators.size(), 0);
  for (size_t t : outputs) wanted[t] = !stops.contains(t);
  for (size_t i = subgraph.operators.size(); i-- > 0;) {
    const Operator& op = subgraph.operators[i];
    bool is_needed = has_effects(op);
    for (size_t k = 0; k < op.outputs.size(); ++k) is_needed |= op.outputs[k] >= 0 && wanted[static_cast<size_t>(op.outputs[k])];
    for (size_t k = 0; k < op.inputs.size(); ++k)  // operators change their variables
      is_needed |= op.inputs[k] >= 0 && subgraph.tensors[static_cast<size_t>(op.inputs[k])].is_variable &&
                   wanted[static_cast<size_t>(op.inputs[k])];
    if (!is_needed) continue;
    needed[i] = 1;
    for (size_t k = 0; k < op.inputs.size(); ++k)
      if (op.inputs[k] >= 0 && !stops.contains(static_cast<size_t>(op.inputs[k]))) wanted[static_cast<size_t>(op.inputs[k])] = 1;
  }
  return needed;
}

Status GraphBuilder::count_lowered(size_t operators) {
  lowered_ += operators;
  if (lowered_ <= kMaxLowered) return {};
  return unsupported("the model becomes too large when its loops and sequences are unrolled")
      .expected("at most " + std::to_string(kMaxLowered) + " operators");
}

Status GraphBuilder::lower(Scope& scope, const Operator& op, size_t index) {
  std::string name;
  for (size_t i = 0; i < op.outputs.size() && name.empty(); ++i)
    if (op.outputs[i] >= 0) name = name_of(scope, static_cast<size_t>(op.outputs[i]));
  if (name.empty()) name = scope.prefix + std::string(op.name) + "_" + std::to_string(index);
  const auto run = [&]() -> Status {
    ORKNN_TRY(count_lowered(1));
    const auto row = row_of(op);
    if (!row) return no_such_operator(op);
    Layer layer(*this, scope, op, name);
    const auto outputs = (*row)(layer);
    if (!file_.damage().is_ok()) return file_.damage();
    if (!outputs) return outputs.status();
    for (size_t i = 0; i < outputs->size(); ++i) ORKNN_TRY(layer.set(i, (*outputs)[i]));
    return {};
  };
  Status s = run();
  return s.node(name, op.name);
}

Status GraphBuilder::lower_all(Scope& scope, const std::vector<char>& needed) {
  const Subgraph& g = scope.subgraph;
  for (size_t i = 0; i < g.operators.size(); ++i) {
    if (!needed[i]) continue;
    const Operator& op = g.operators[i];
    bool blocked = false;  // by a problem already reported
    for (size_t k = 0; k < op.inputs.size(); ++k)
      blocked |= op.inputs[k] >= 0 && scope.values[static_cast<size_t>(op.inputs[k])].failed;
    if (!blocked || !row_of(op)) {
      const Status s = lower(scope, op, i);
      if (s) continue;
      if (scope.depth > 0 || lowered_ > kMaxLowered) return s;
      network_.report(s);
    }
    for (size_t k = 0; k < op.outputs.size(); ++k)
      if (op.outputs[k] >= 0) scope.values[static_cast<size_t>(op.outputs[k])].failed = true;
  }
  return {};
}

Result<std::vector<Value>> GraphBuilder::run_subgraph(int64_t index, const std::vector<Value>& arguments, Scope& caller,
                                                      const std::string& label) {
  if (index < 0 || static_cast<size_t>(index) >= model_.subgraphs.size())
    return invalid_model("there is no such subgraph")
        .expected("below " + std::to_string(model_.subgraphs.size()))
        .found(std::to_string(index));
  if (caller.depth >= kMaxDepth)
    return unsupported("subgraphs call each other too deeply").expected("at most " + std::to_string(kMaxDepth) + " levels");
  const Subgraph& g = model_.subgraphs[static_cast<size_t>(index)];
  if (arguments.size() != g.inputs.size())
    return invalid_model("subgraph " + std::to_string(index) + " gets the wrong number of inputs")
        .expected(std::to_string(g.inputs.size()))
        .found(std::to_string(arguments.size()));
  Scope scope = make_scope(g, label + "/", caller.depth + 1);
  std::unordered_set<size_t> stops;
  for (size_t i = 0; i < arguments.size(); ++i) {
    scope.values[static_cast<size_t>(g.inputs[i])] = arguments[i];
    stops.insert(static_cast<size_t>(g.inputs[i]));
  }
  std::vector<size_t> outputs;
  for (size_t i = 0; i < g.outputs.size(); ++i) outputs.push_back(static_cast<size_t>(g.outputs[i]));
  ORKNN_TRY(lower_all(scope, needed_operators(g, outputs, stops)));
  std::vector<Value> results;
  for (size_t t : outputs) {
    ORKNN_TRY_ASSIGN(const Value* v, value(scope, t));
    results.push_back(*v);
  }
  return results;
}

Result<size_t> GraphBuilder::find_tensor(const Scope& scope, const std::string& name, std::string_view list,
                                         std::span<const std::string> names) const {
  for (size_t t = 0; t < scope.names.size(); ++t)
    if (scope.names[t] == name) return t;
  for (const SignatureName& s : model_.signature)
    if (s.name == name && s.is_output == (list == "outputs")) return size_t{s.tensor};
  return no_such_tensor(name, list, names);
}

Result<GraphBuilder::Ports> GraphBuilder::find_ports(Scope& scope, const ImportOptions& options) {
  Ports ports;
  for (const std::string& name : options.inputs) {
    ORKNN_TRY_ASSIGN(const size_t t, find_tensor(scope, name, "inputs", options.inputs));
    ports.inputs.push_back(t);
  }
  for (const std::string& name : options.outputs) {
    ORKNN_TRY_ASSIGN(const size_t t, find_tensor(scope, name, "outputs", options.outputs));
    ports.outputs.push_back(t);
  }
  const Subgraph& g = scope.subgraph;
  for (size_t i = 0; options.inputs.empty() && i < g.inputs.size(); ++i) ports.inputs.push_back(static_cast<size_t>(g.inputs[i]));
  for (size_t i = 0; options.outputs.empty() && i < g.outputs.size(); ++i)
    ports.outputs.push_back(static_cast<size_t>(g.outputs[i]));
  if (ports.outputs.empty()) return invalid_model("the model has no outputs");
  std::unordered_set<size_t> seen;
  for (size_t t : ports.inputs)
    if (!seen.insert(t).second) return invalid_model("tensor '" + scope.names[t] + "' is an input twice");
  return ports;
}

Result<Graph> GraphBuilder::build(const ImportOptions& options) {
  const Subgraph& g = model_.subgraphs[0];
  Scope scope = make_scope(g, "", 0);
  // Inputs and outputs come first in the choice of names.
  for (const Numbers<int32_t>& list : {g.inputs, g.outputs})
    for (size_t i = 0; i < list.size(); ++i) {
      const auto t = static_cast<size_t>(list[i]);
      if (!scope.names[t].empty()) continue;
      std::string_view given = g.tensors[t].name;
      for (const SignatureName& s : model_.signature)
        if (given.empty() && s.tensor == t) given = s.name;
      scope.names[t] = given.empty() ? std::string() : unique(std::string(given));
    }
  for (size_t t = 0; t < g.tensors.size(); ++t) name_of(scope, t);
  ORKNN_TRY_ASSIGN(const Ports ports, find_ports(scope, options));
  network_.graph.name = std::string(g.name.empty() ? "main" : g.name);

  std::vector<Port> inputs;
  for (size_t t : ports.inputs) {
    const TensorInfo& info = g.tensors[t];
    Port p{scope.names[t], to_dtype(info.type), Shape(), {}};
    if (p.dtype == DType::Undefined)
      return unsupported("input '" + p.name + "' has an element type that is not supported").found(element_type_name(info.type));
    for (int64_t d : info.shape.to_ints()) p.shape->push_back(d < 0 ? Dim() : Dim(d));
    if (info.type == ElementType::Complex64 || info.type == ElementType::Complex128) p.shape->push_back(Dim(2));
    inputs.push_back(std::move(p));
  }
  ORKNN_TRY(apply_sizes(inputs, options).status());
  std::unordered_set<size_t> stops(ports.inputs.begin(), ports.inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Dims known;
    for (const Dim& d : *inputs[i].shape) {
      if (!d.is_known() || d.value() <= 0) return invalid_input_shape(*inputs[i].shape, i);
      known.push_back(d.value());
    }
    if (!checked_element_count(known)) return invalid_input_shape(*inputs[i].shape, i);
    network_.add_input(inputs[i]);
    const size_t t = ports.inputs[i];
    const TensorId id = network_.find(inputs[i].name);
    scope.values[t].stored = id;
    Tensor& tensor = network_.graph.tensor(id);
    tensor.quant = label_of(g.tensors[t]);
    if (known.size() == 4) tensor.layout = options.input_is_nchw ? Layout::NCHW : Layout::NHWC;
  }

  if (const Status s = lower_all(scope, needed_operators(g, ports.outputs, stops)); !s) network_.report(s);
  std::vector<std::string> outputs;
  for (size_t t : ports.outputs) {
    outputs.push_back(scope.names[t]);
    if (scope.values[t].failed) continue;  // reported already
    const auto v = value(scope, t);
    if (!v)
      network_.report(v.status());
    else if (!(*v)->stored)
      network_.report(unsupported("output '" + scope.names[t] + "' is a handle, not a tensor"));
  }
  ORKNN_TRY_ASSIGN(Graph graph, network_.finish(outputs));
  for (size_t i = 0; i < ports.outputs.size(); ++i) {
    Tensor& tensor = graph.tensor(graph.outputs()[i]);
    tensor.quant = label_of(g.tensors[ports.outputs[i]]);
    if (tensor.shape && tensor.shape->size() == 4) tensor.layout = Layout::NHWC;
  }
  return graph;
}

}  // namespace orknn::importer::tflite
