#include "import/onnx/graph_builder.h"

#include <algorithm>

#include "base/refusal.h"
#include "import/onnx/layer.h"
#include "ir/custom_op.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "ops/custom_ops.h"

namespace orknn::importer::onnx {
using namespace ir;

namespace {
constexpr int kMaxFunctionDepth = 32;
// The shape rule of a loop may visit its body more than once, so nesting multiplies the work of whoever infers shapes.
constexpr int kMaxBodyDepth = 8;
// Functions that call functions and loops in loops can multiply: a small file must not become a graph that fills the memory.
constexpr size_t kMaxInlinedNodes = 200'000;

bool is_standard(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }
std::string op_name(std::string_view domain, std::string_view op) {
  return is_standard(domain) ? std::string(op) : std::string(domain) + ":" + std::string(op);
}

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload) {
  std::string key(is_standard(domain) ? "" : domain);
  return key.append(1, '\0').append(name).append(1, '\0').append(overload);
}

// Optional outputs that nothing reads are dropped for these, so that they are not computed either.
bool has_optional_outputs(std::string_view op) {
  static constexpr std::string_view kOps[] = {"BatchNormalization",
                                              "Dropout",
                                              "MaxPool",
                                              "LayerNormalization",
                                              "LSTM",
                                              "GRU",
                                              "RNN",
                                              "Attention",
                                              "Unique",
                                              "SimplifiedLayerNormalization",
                                              "SkipLayerNormalization",
                                              "SkipSimplifiedLayerNormalization",
                                              "SoftmaxCrossEntropyLoss"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Names a nested graph takes from the graphs around it.
void add_free_names(const GraphProto& graph, std::vector<std::string_view>& names) {
  std::unordered_set<std::string_view> own;
  for (const ValueInfoProto& v : graph.inputs) own.insert(v.name);
  for (const TensorProto& t : graph.initializers) own.insert(t.name);
  for (const SparseTensorProto& t : graph.sparse_initializers) own.insert(t.values.name);
  for (const NodeProto& n : graph.nodes) own.insert(n.outputs.begin(), n.outputs.end());
  std::vector<std::string_view> used;
  for (const NodeProto& n : graph.nodes) {
    used.insert(used.end(), n.inputs.begin(), n.inputs.end());
    for (const AttributeProto& a : n.attributes)
      if (a.graph) add_free_names(*a.graph, used);
  }
  for (const ValueInfoProto& v : graph.outputs) used.push_back(v.name);
  for (std::string_view name : used)
    if (!name.empty() && !own.contains(name)) names.push_back(name);
}

std::vector<std::string_view> names_read(const NodeProto& node) {
  std::vector<std::string_view> names;
  for (std::string_view name : node.inputs)
    if (!name.empty()) names.push_back(name);
  for (const AttributeProto& a : node.attributes)
    if (a.graph) add_free_names(*a.graph, names);
  return names;
}

std::string first_output(const NodeProto& node) {
  for (std::string_view name : node.outputs)
    if (!name.empty()) return std::string(name);
  return {};
}

}  // namespace

OpSets op_sets_of(const std::vector<OperatorSetProto>& imports) {
  OpSets sets;
  for (const OperatorSetProto& o : imports) {
    int64_t& version = sets[is_standard(o.domain) ? std::string_view() : o.domain];
    version = std::max(version, o.version);
  }
  return sets;
}

bool is_constant_node(const NodeProto& node) { return is_standard(node.domain) && node.op_type == "Constant"; }

GraphBuilder::GraphBuilder(const ModelProto& model, TensorReader& tensors, const OpSet& ops)
    : model_(model), tensors_(tensors), ops_(ops), op_sets_(op_sets_of(model.op_sets)) {
  op_sets_.try_emplace("", 1);  // files older than the field
  for (const FunctionProto& f : model.functions) functions_.emplace(function_key(f.domain, f.name, f.overload), &f);
}

// --- inputs of the graph

std::optional<Shape> GraphBuilder::shape_of(const TypeProto& type) const {
  if (!type.has_shape) return std::nullopt;
  Shape shape;
  for (const DimProto& d : type.shape) {
    if (d.kind == DimProto::Kind::Value && d.value >= 0) {
      shape.emplace_back(d.value);
    } else if (d.kind == DimProto::Kind::Parameter && !d.parameter.empty()) {
      const auto known = symbols_.find(d.parameter);
      shape.push_back(known != symbols_.end() ? Dim(known->second) : Dim::symbol(std::string(d.parameter)));
    } else {
      shape.emplace_back();
    }
  }
  return shape;
}

Result<Port> GraphBuilder::port_of(const ValueInfoProto& info) {
  const auto problem = [&](Status status) {
    return Status::error(status.code(), "input '" + std::string(info.name) + "': " + status.message());
  };
  if (info.type.kind != TypeProto::Kind::Tensor) {
    if (info.type.kind == TypeProto::Kind::None) return problem(invalid_model("it has no type"));
    return problem(unsupported("only tensors can be inputs, not sequences, maps, optional or sparse values"));
  }
  const auto dtype = to_dtype(info.type.element_type);
  if (!dtype) return problem(dtype.status());
  return Port{std::string(info.name), *dtype, shape_of(info.type), {}};
}

// Types of tensors inside of the model that become inputs: from running the shape rules up to them, or else from what the file
// says about them.
Status GraphBuilder::guess_inner_ports(std::vector<Port>& inner) {
  ImportOptions up_to_here;
  for (const Port& p : inner) up_to_here.outputs.emplace_back(p.name);
  GraphBuilder front(model_, tensors_, ops_);
  auto built = front.build(up_to_here);
  if (!built && !is_refusal(built.status())) return built.status();
  if (built) {
    if (Status s = infer_shapes(*built, ops_); !s && !is_refusal(s)) return s;  // what could not be settled stays unknown
    for (size_t i = 0; i < inner.size(); ++i) {
      const Tensor& t = built->tensor(built->outputs()[i]);
      inner[i].dtype = t.dtype;
      inner[i].shape = t.shape;
    }
  }
  for (Port& p : inner) {
    if (p.dtype != DType::Undefined) continue;
    for (const auto* list : {&model_.graph.value_info, &model_.graph.outputs})
      for (const ValueInfoProto& v : *list)
        if (v.name == p.name && v.type.kind == TypeProto::Kind::Tensor)
          if (const auto dtype = to_dtype(v.type.element_type)) p.dtype = *dtype;
    if (p.dtype != DType::Undefined) continue;
    p.dtype = DType::Float32;
    warnings_.push_back("the type of '" + std::string(p.name) + "' is not known; float32 is assumed");
  }
  return {};
}

Result<std::vector<Port>> GraphBuilder::ports(const ImportOptions& options) {
  const GraphProto& g = model_.graph;
  Names constants;
  for (const TensorProto& t : g.initializers) constants.insert(t.name);
  for (const SparseTensorProto& t : g.sparse_initializers) constants.insert(t.values.name);
  std::vector<const ValueInfoProto*> own;
  for (const ValueInfoProto& v : g.inputs)
    if (!constants.contains(v.name)) own.push_back(&v);

  const size_t count = options.inputs.empty() ? own.size() : options.inputs.size();
  for (size_t i = 0; i < options.inputs.size(); ++i)
    if (std::find(options.inputs.begin(), options.inputs.begin() + static_cast<std::ptrdiff_t>(i), options.inputs[i]) !=
        options.inputs.begin() + static_cast<std::ptrdiff_t>(i))
      return invalid_argument("'" + options.inputs[i] + "' is listed twice in inputs=" + quoted_list(options.inputs));

  Names produced;
  for (const NodeProto& n : g.nodes) produced.insert(n.outputs.begin(), n.outputs.end());
  std::vector<Port> list(count), inner;
  std::vector<size_t> inner_at;
  for (size_t i = 0; i < count; ++i) {
    const auto declared = std::find_if(own.begin(), own.end(), [&](const ValueInfoProto* v) {
      return options.inputs.empty() ? v == own[i] : v->name == options.inputs[i];
    });
    if (declared != own.end()) {
      ORKNN_TRY_ASSIGN(list[i], port_of(**declared));
    } else if (constants.contains(options.inputs[i]) || produced.contains(options.inputs[i])) {
      list[i].name = options.inputs[i];
      inner.push_back(list[i]);
      inner_at.push_back(i);
    } else {
      for (const ValueInfoProto* port : own) produced.insert(port->name);
      return no_such_tensor(options.inputs[i], "inputs", options.inputs, produced);
    }
  }
  if (!inner.empty()) {
    ORKNN_TRY(guess_inner_ports(inner));
    for (size_t k = 0; k < inner.size(); ++k) list[inner_at[k]] = inner[k];
  }

  ORKNN_TRY_ASSIGN(symbols_, apply_sizes(list, options));
  return list;
}

// --- order

Result<GraphBuilder::Plan> GraphBuilder::plan(const std::vector<NodeProto>& nodes, const std::vector<std::string_view>& outputs,
                                              const Names& stops) const {
  std::vector<LayerNames> layers;
  for (const NodeProto& n : nodes) layers.push_back({names_read(n), {n.outputs.begin(), n.outputs.end()}});
  ORKNN_TRY_ASSIGN(LayerPlan order, plan_layers(layers, outputs, stops));
  Plan result;
  result.read = std::move(order.read);
  for (size_t i : order.layers) result.nodes.push_back(&nodes[i]);
  return result;
}

// --- names

void GraphBuilder::add_initializers(Scope& scope, const GraphProto& graph) {
  for (const TensorProto& t : graph.initializers)
    if (scope.defined.insert(t.name).second) scope.initializers.emplace(t.name, &t);
  for (const SparseTensorProto& t : graph.sparse_initializers)
    if (scope.defined.insert(t.values.name).second) scope.sparse_initializers.emplace(t.values.name, &t);
}

template <class Proto>
Result<TensorData> GraphBuilder::read(const Proto& tensor) {
  if (const auto known = values_read_.find(&tensor); known != values_read_.end()) return known->second;
  ORKNN_TRY_ASSIGN(TensorData value, tensors_.read(tensor));
  values_read_.emplace(&tensor, value);
  return value;
}

Result<bool> GraphBuilder::find(Scope& scope, std::string_view name, TensorId& id) {
  if (const auto it = scope.values.find(name); it != scope.values.end()) {
    id = it->second;
    return true;
  }
  const auto dense = scope.initializers.find(name);
  const auto sparse = scope.sparse_initializers.find(name);
  if (dense != scope.initializers.end() || sparse != scope.sparse_initializers.end()) {
    auto value = dense != scope.initializers.end() ? read(*dense->second) : read(*sparse->second);
    if (!value) return Status(value.status()).node(name, "initializer");
    id = scope.graph.add_constant(scope.prefix + std::string(name), std::move(*value));
    scope.values.emplace(name, id);
    return true;
  }
  if (!scope.outer) return false;
  TensorId outside;
  ORKNN_TRY_ASSIGN(const bool found, find(*scope.outer, name, outside));
  if (!found) return false;
  if (&scope.graph == &scope.outer->graph) {
    id = outside;
  } else if (outside) {
    const Tensor& t = scope.outer->graph.tensor(outside);
    if (t.is_constant()) {
      id = scope.graph.add_constant(t.name, t.constant);  // shares the bytes
    } else {
      id = scope.graph.add_tensor(t.name, t.dtype, t.shape);
      scope.captures.push_back({outside, id});
    }
  }
  scope.values.emplace(name, id);
  return true;
}

Result<TensorId> GraphBuilder::lookup(Scope& scope, std::string_view name) {
  if (name.empty()) return TensorId{};
  TensorId id;
  ORKNN_TRY_ASSIGN(const bool found, find(scope, name, id));
  if (!found) return invalid_model("tensor '" + std::string(name) + "' is read but nothing produces it");
  return id;
}

// --- attributes

std::vector<AttributeProto> GraphBuilder::resolved_attributes(const Scope& scope, const NodeProto& node) const {
  std::vector<AttributeProto> list;
  for (const AttributeProto& a : node.attributes) {
    if (a.reference.empty()) {
      list.push_back(a);
      continue;
    }
    if (!scope.arguments) continue;
    const auto it = scope.arguments->find(a.reference);
    if (it == scope.arguments->end()) continue;  // not given: the op's own default holds
    list.push_back(it->second);
    list.back().name = a.name;
  }
  return list;
}

Result<Attribute> GraphBuilder::to_attribute(const AttributeProto& a) {
  switch (a.type) {
    case AttributeType::Float: return Attribute(static_cast<double>(a.f));
    case AttributeType::Int: return Attribute(a.i);
    case AttributeType::String: return Attribute(std::string(a.s));
    case AttributeType::Floats: return Attribute(std::vector<double>(a.floats.begin(), a.floats.end()));
    case AttributeType::Ints: return Attribute(a.ints);
    case AttributeType::Strings: return Attribute(std::vector<std::string>(a.strings.begin(), a.strings.end()));
    case AttributeType::Tensor: {
      if (!a.tensor) break;
      ORKNN_TRY_ASSIGN(TensorData value, read(*a.tensor));
      return Attribute(std::move(value));
    }
    case AttributeType::SparseTensor: {
      if (!a.sparse_tensor) break;
      ORKNN_TRY_ASSIGN(TensorData value, read(*a.sparse_tensor));
      return Attribute(std::move(value));
    }
    default: break;
  }
  return unsupported("attribute '" + std::string(a.name) + "' has a type that is not supported")
      .found("type " + std::to_string(static_cast<int>(a.type)));
}

Result<TensorData> GraphBuilder::constant_value(const Scope& scope, const NodeProto& node) {
  for (const AttributeProto& a : resolved_attributes(scope, node)) {
    if ((a.name == "value" && a.type == AttributeType::Tensor) ||
        (a.name == "sparse_value" && a.type == AttributeType::SparseTensor)) {
      ORKNN_TRY_ASSIGN(const Attribute value, to_attribute(a));
      return std::get<TensorData>(value);
    }
    if (a.name == "value_float") return TensorData::scalar<float>(a.f);
    if (a.name == "value_int") return TensorData::scalar<int64_t>(a.i);
    if (a.name == "value_floats") return TensorData::from<float>({static_cast<int64_t>(a.floats.size())}, a.floats);
    if (a.name == "value_ints") return TensorData::vector(a.ints);
    if (a.name == "value_string" || a.name == "value_strings") return unsupported("string tensors are not supported");
  }
  return invalid_model("the constant has no value");
}

const FunctionProto* GraphBuilder::find_function(const NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto it = functions_.find(function_key(node.domain, node.op_type, node.overload));
  return it == functions_.end() ? nullptr : it->second;
}

// --- nodes

Status GraphBuilder::build_nodes(Scope& scope, const Plan& plan) {
  for (const NodeProto* node : plan.nodes) ORKNN_TRY(declare(scope, *node, plan));
  for (const NodeProto* node : plan.nodes) {
    if (is_constant_node(*node)) continue;
    if (scope.function_depth > 0) ORKNN_TRY(count_inlined(1));
    if (Status s = translate(scope, *node); !s)
      problems_.add(s.node(scope.prefix + (node->name.empty() ? first_output(*node) : std::string(node->name)),
                           op_name(node->domain, node->op_type)));
  }
  return {};
}

Status GraphBuilder::count_inlined(size_t nodes) {
  inlined_nodes_ += nodes;
  if (inlined_nodes_ <= kMaxInlinedNodes) return {};
  return unsupported("the model's functions and loops have too many nodes when inlined")
      .expected("at most " + std::to_string(kMaxInlinedNodes));
}

void GraphBuilder::copy(Graph& graph, TensorId from, TensorId to, std::string name, std::vector<std::string> origin) {
  if (const Sequences::Tensors* sequence = sequences_.find(graph, from)) return sequences_.set(graph, to, *sequence);
  Node node;
  node.op = "Identity";
  node.name = std::move(name);
  node.origin = std::move(origin);
  node.inputs = {from};
  node.outputs = {to};
  infer_added_node(graph, ops_, graph.add_node(std::move(node)));
}

// Makes the tensors of a node's outputs; constants get their value at once.
Status GraphBuilder::declare(Scope& scope, const NodeProto& node, const Plan& plan) {
  const bool is_constant = is_constant_node(node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string_view name = node.outputs[i];
    if (name.empty() || scope.cut.contains(name)) continue;
    if (!plan.read.contains(name) && has_optional_outputs(node.op_type) && !find_function(node)) continue;
    if (!scope.defined.insert(name).second)
      return invalid_model("tensor '" + std::string(name) + "' is produced twice").node(node.name, node.op_type);
    const auto bound = scope.values.find(name);  // output of a function: the caller has made the tensor
    if (!is_constant) {
      if (bound == scope.values.end()) scope.values.emplace(name, scope.graph.add_tensor(scope.prefix + std::string(name)));
      continue;
    }
    auto value = constant_value(scope, node);
    if (!value) {
      problems_.add(Status(value.status()).node(scope.prefix + std::string(node.name.empty() ? name : node.name), "Constant"));
      value = TensorData::scalar<float>(0);  // stands in, so that only the cause is reported
    }
    const std::string full_name = scope.prefix + std::string(name);
    const TensorId id = scope.graph.add_constant(full_name, std::move(*value));
    if (bound == scope.values.end())
      scope.values.emplace(name, id);
    else
      copy(scope.graph, id, bound->second, full_name, {full_name});
  }
  return {};
}

Status GraphBuilder::translate(Scope& scope, const NodeProto& proto) {
  // Declared by the user: such an operator goes by its type, whatever its domain, and before a function of the model.
  const OpDef* custom = ops_.find(custom_name(proto.op_type));
  const bool is_builtin = is_standard(proto.domain) || custom;
  Node node;
  node.op = is_builtin ? std::string(proto.op_type) : op_name(proto.domain, proto.op_type);
  node.name = scope.prefix + (proto.name.empty() ? first_output(proto) : std::string(proto.name));
  node.origin = {node.name};
  if (const FunctionProto* function = custom ? nullptr : find_function(proto))
    return inline_function(scope, proto, *function, node.name);

  for (std::string_view name : proto.inputs) {
    ORKNN_TRY_ASSIGN(const TensorId id, lookup(scope, name));
    node.inputs.push_back(id);
  }
  while (!node.inputs.empty() && !node.inputs.back()) node.inputs.pop_back();
  for (std::string_view name : proto.outputs) {
    const auto it = scope.values.find(name);
    if (scope.cut.contains(name))
      node.outputs.push_back(scope.graph.add_tensor(std::string(name)));  // computed, but not read
    else
      node.outputs.push_back(name.empty() || it == scope.values.end() ? TensorId{} : it->second);
  }
  while (!node.outputs.empty() && !node.outputs.back()) node.outputs.pop_back();

  const std::vector<AttributeProto> attributes = resolved_attributes(scope, proto);
  if (must_inline_bodies(scope, proto)) return inline_bodies(scope, node, attributes);
  std::vector<Body> bodies;
  for (const AttributeProto& a : attributes) {
    if (a.type == AttributeType::Graph && a.graph) {
      ORKNN_TRY_ASSIGN(Body body, build_body(scope, a, node.name));
      bodies.push_back(std::move(body));
      continue;
    }
    auto value = to_attribute(a);
    if (!value) return value.status();
    node.attributes.set(std::string(a.name), std::move(*value));
  }
  ORKNN_TRY(attach_bodies(scope, node, std::move(bodies)));
  if (custom && !ops::has_builtin_meaning(*custom)) return add_custom(scope, std::move(node), proto);
  node.attributes.erase("consumed_inputs");  // a memory hint of the first opsets

  const auto version = scope.op_sets.find(is_builtin ? std::string_view() : proto.domain);
  Layer layer(scope.graph, ops_, std::move(node), version == scope.op_sets.end() ? 1 : version->second);
  ORKNN_TRY_ASSIGN(const std::optional<Sequences::Tensors> results, sequences_.apply(layer));
  if (!results) return add(layer);
  layer.replace_by(*results);
  return {};
}

// Keeps a node for the user's functions, with what they may ask about it.
Status GraphBuilder::add_custom(Scope& scope, Node node, const NodeProto& proto) {
  for (const auto& [name, value] : node.attributes)
    if (kind_of(value) == AttributeKind::Graph)
      return unsupported("a custom operator cannot have a graph as attribute").found("'" + name + "'");
  const auto texts = [](const auto& names) { return std::vector<std::string>(names.begin(), names.end()); };
  node.op = custom_name(proto.op_type);
  if (!proto.domain.empty()) node.attributes.set(std::string(kSourceDomain), std::string(proto.domain));
  node.attributes.set(std::string(kSourceInputs), texts(proto.inputs));
  node.attributes.set(std::string(kSourceOutputs), texts(proto.outputs));
  infer_added_node(scope.graph, ops_, scope.graph.add_node(std::move(node)));
  return {};
}

Status GraphBuilder::inline_function(Scope& scope, const NodeProto& node, const FunctionProto& function,
                                     const std::string& name) {
  if (scope.function_depth >= kMaxFunctionDepth)
    return invalid_model("functions call each other too deeply")
        .expected("at most " + std::to_string(kMaxFunctionDepth) + " levels");
  Arguments arguments;
  for (const AttributeProto& a : function.defaults) arguments.insert_or_assign(a.name, a);
  for (AttributeProto& a : resolved_attributes(scope, node)) {
    if (a.graph) return unsupported("a graph cannot be handed to a function");
    arguments.insert_or_assign(a.name, std::move(a));
  }
  OpSets op_sets = op_sets_of(function.op_sets);
  for (const auto& [domain, version] : op_sets_) op_sets.try_emplace(domain, version);
  Scope inner{.graph = scope.graph,
              .op_sets = op_sets,
              .arguments = &arguments,
              .prefix = name + "/",
              .function_depth = scope.function_depth + 1,
              .body_depth = scope.body_depth};
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    TensorId id;
    if (i < node.inputs.size()) {
      ORKNN_TRY_ASSIGN(id, lookup(scope, node.inputs[i]));
    }
    if (!inner.defined.insert(function.inputs[i]).second)
      return invalid_model("function input '" + std::string(function.inputs[i]) + "' is listed twice");
    inner.values.emplace(function.inputs[i], id);
  }
  if (node.inputs.size() > function.inputs.size())
    return invalid_model("wrong number of inputs")
        .expected("at most " + std::to_string(function.inputs.size()))
        .found(std::to_string(node.inputs.size()));
  if (node.outputs.size() > function.outputs.size())
    return invalid_model("wrong number of outputs")
        .expected("at most " + std::to_string(function.outputs.size()))
        .found(std::to_string(node.outputs.size()));

  std::vector<std::string_view> wanted;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) wanted.push_back(function.outputs[i]);
  ORKNN_TRY_ASSIGN(const Plan steps, plan(function.nodes, wanted, inner.defined));
  // Results go straight into the caller's tensors; one that is an input, or handed out twice, is copied.
  Names made;
  for (const NodeProto* n : steps.nodes) made.insert(n->outputs.begin(), n->outputs.end());
  std::vector<std::pair<std::string_view, TensorId>> copies;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto target = scope.values.find(node.outputs[i]);
    if (node.outputs[i].empty() || target == scope.values.end()) continue;
    if (!made.contains(function.outputs[i]) || !inner.values.emplace(function.outputs[i], target->second).second)
      copies.emplace_back(function.outputs[i], target->second);
  }
  ORKNN_TRY(build_nodes(inner, steps));
  for (const auto& [from, to] : copies) {
    ORKNN_TRY_ASSIGN(const TensorId source, lookup(inner, from));
    if (!source) return invalid_model("function output '" + std::string(from) + "' is an input that was not given");
    copy(scope.graph, source, to, inner.prefix + std::string(from), {name});
  }
  return {};
}

// --- control flow

// `graph` is the body's own, or the one around it.
Result<GraphBuilder::Scope> GraphBuilder::body_scope(Scope& outer, Graph& graph) const {
  if (outer.body_depth >= kMaxBodyDepth)
    return unsupported("control flow is nested too deeply").expected("at most " + std::to_string(kMaxBodyDepth) + " levels");
  return Scope{.graph = graph,
               .op_sets = outer.op_sets,
               .outer = &outer,
               .arguments = outer.arguments,
               .function_depth = outer.function_depth,
               .body_depth = outer.body_depth + 1};
}

Result<std::vector<const ValueInfoProto*>> GraphBuilder::body_inputs(const GraphProto& body) const {
  Names constants, listed;
  if (model_.ir_version < 4)  // initializers had to be listed as inputs, too
    for (const TensorProto& t : body.initializers) constants.insert(t.name);
  std::vector<const ValueInfoProto*> inputs;
  for (const ValueInfoProto& v : body.inputs) {
    if (constants.contains(v.name)) continue;
    if (!listed.insert(v.name).second) return invalid_model("body input '" + std::string(v.name) + "' is listed twice");
    inputs.push_back(&v);
  }
  return inputs;
}

Result<GraphBuilder::Body> GraphBuilder::build_body(Scope& outer, const AttributeProto& attribute, const std::string& node_name) {
  const GraphProto& proto = *attribute.graph;
  Body body{std::string(attribute.name), std::make_shared<Graph>(), {}};
  body.graph->name = proto.name.empty() ? node_name + "/" + body.attribute : std::string(proto.name);
  ORKNN_TRY_ASSIGN(Scope scope, body_scope(outer, *body.graph));
  ORKNN_TRY_ASSIGN(const std::vector<const ValueInfoProto*> inputs, body_inputs(proto));
  for (const ValueInfoProto* v : inputs) {
    scope.defined.insert(v->name);
    // The type is a hint for upgrades; the real one comes from the node's inputs.
    const auto dtype = v->type.kind == TypeProto::Kind::Tensor ? to_dtype(v->type.element_type) : Result<DType>(DType::Undefined);
    const TensorId id = body.graph->add_tensor(std::string(v->name), dtype ? *dtype : DType::Undefined, shape_of(v->type));
    scope.values.emplace(v->name, id);
    body.graph->inputs().push_back(id);
  }
  add_initializers(scope, proto);
  std::vector<std::string_view> outputs;
  for (const ValueInfoProto& v : proto.outputs) outputs.push_back(v.name);
  Names given;
  for (const auto& [name, id] : scope.values) given.insert(name);
  ORKNN_TRY_ASSIGN(const Plan steps, plan(proto.nodes, outputs, given));
  ORKNN_TRY(build_nodes(scope, steps));
  for (std::string_view name : outputs) {
    ORKNN_TRY_ASSIGN(const TensorId id, lookup(scope, name));
    if (!id) return invalid_model("a body output has no name");
    if (sequences_.contains(*body.graph, id))
      return unsupported("a body that returns a sequence of tensors is not supported").found("'" + std::string(name) + "'");
    body.graph->outputs().push_back(id);
  }
  body.captures = std::move(scope.captures);
  return body;
}

// A sequence cannot go into a graph of its own, nor come out of it.
bool GraphBuilder::must_inline_bodies(const Scope& scope, const NodeProto& node) const {
  if (!is_standard(node.domain)) return false;
  if (node.op_type == "SequenceMap") return true;
  if (node.op_type != "Loop" && node.op_type != "If") return false;
  const auto hands_out_sequence = [](const AttributeProto& a) {
    return a.graph && std::ranges::any_of(a.graph->outputs,
                                          [](const ValueInfoProto& v) { return v.type.kind == TypeProto::Kind::Sequence; });
  };
  const auto is_sequence = [&](std::string_view name) {
    const Scope* holder = &scope;
    while (holder && !holder->values.contains(name)) holder = holder->outer;
    return holder && sequences_.contains(holder->graph, holder->values.at(name));
  };
  return std::ranges::any_of(node.attributes, hands_out_sequence) || std::ranges::any_of(names_read(node), is_sequence);
}

// Every body of a node takes the same captures in the same order, after its own inputs.
Status GraphBuilder::attach_bodies(Scope& scope, Node& node, std::vector<Body> bodies) {
  if (bodies.empty()) return {};
  std::vector<TensorId> captured;
  for (const Body& b : bodies)
    for (const Scope::Capture& c : b.captures)
      if (std::find(captured.begin(), captured.end(), c.outside) == captured.end()) captured.push_back(c.outside);
  for (Body& b : bodies) {
    for (TensorId outside : captured) {
      const auto own =
          std::find_if(b.captures.begin(), b.captures.end(), [&](const Scope::Capture& c) { return c.outside == outside; });
      const Tensor& t = scope.graph.tensor(outside);
      b.graph->inputs().push_back(own != b.captures.end() ? own->inside : b.graph->add_tensor(t.name, t.dtype, t.shape));
    }
    if (problems_.is_empty()) ORKNN_TRY(verify(*b.graph, ops_, Stage::Imported));
    node.attributes.set(b.attribute, std::shared_ptr<const Graph>(std::move(b.graph)));
  }
  if (node.op == "Loop" && node.inputs.size() < 2) node.inputs.resize(2);
  node.inputs.insert(node.inputs.end(), captured.begin(), captured.end());
  if (node.op == "Loop" || node.op == "Scan") node.attributes.set("captures", static_cast<int64_t>(captured.size()));
  return {};
}

// --- the whole

// A file that states other shapes for its outputs than its nodes compute was damaged or edited by hand. What is computed holds.
void GraphBuilder::remark_stated_outputs(const Graph& graph) {
  for (const ValueInfoProto& stated : model_.graph.outputs) {
    const TensorId id = graph.find_tensor(stated.name);
    const std::optional<Shape> said = shape_of(stated.type);
    if (!id || !said || !graph.tensor(id).shape) continue;
    const Shape& computed = *graph.tensor(id).shape;
    bool fits = said->size() == computed.size();
    for (size_t i = 0; fits && i < computed.size(); ++i)
      fits = !(*said)[i].is_known() || !computed[i].is_known() || (*said)[i].value() == computed[i].value();
    const auto is_scalar = [](const Shape& s) { return s.empty() || (s.size() == 1 && s[0].is_known() && s[0].value() == 1); };
    if (!fits && !(is_scalar(*said) && is_scalar(computed)))
      warnings_.push_back("the file states the shape " + to_string(*said) + " for output '" + std::string(stated.name) +
                          "', but its nodes compute " + to_string(computed));
  }
}

Result<Graph> GraphBuilder::build(const ImportOptions& options) {
  const GraphProto& proto = model_.graph;
  ORKNN_TRY_ASSIGN(std::vector<Port> inputs, ports(options));
  Graph graph;
  graph.name = std::string(proto.name);
  Scope scope{.graph = graph, .op_sets = op_sets_};
  Names given;
  for (Port& p : inputs) {
    if (p.name.empty() || !scope.defined.insert(p.name).second)
      return invalid_model("input '" + std::string(p.name) + "' is listed twice or has no name");
    given.insert(p.name);
    if (p.value.has_value()) {
      scope.values.emplace(p.name, graph.add_constant(std::string(p.name), std::move(p.value)));
      continue;
    }
    const TensorId id = graph.add_tensor(std::string(p.name), p.dtype, std::move(p.shape));
    scope.values.emplace(p.name, id);
    graph.inputs().push_back(id);
  }
  add_initializers(scope, proto);

  Names produced;
  for (const NodeProto& n : proto.nodes) produced.insert(n.outputs.begin(), n.outputs.end());
  std::vector<std::string_view> outputs;
  for (const ValueInfoProto& v : proto.outputs)
    if (options.outputs.empty()) outputs.push_back(v.name);
  for (const std::string& name : options.outputs) {
    if (name.empty() || (!produced.contains(name) && !scope.defined.contains(name))) {
      for (const ValueInfoProto& input : proto.inputs) produced.insert(input.name);
      return no_such_tensor(name, "outputs", options.outputs, produced);
    }
    outputs.push_back(name);
  }
  if (outputs.empty()) return invalid_model("the graph has no outputs");
  ORKNN_TRY_ASSIGN(const Plan steps, plan(proto.nodes, outputs, given));
  if (!options.inputs.empty())
    for (const ValueInfoProto& v : proto.inputs)
      if (steps.read.contains(v.name) && !scope.defined.contains(v.name))
        return invalid_argument("the outputs depend on input '" + std::string(v.name) +
                                "', which is not in inputs=" + quoted_list(options.inputs));
  if (!options.inputs.empty()) scope.cut = given;
  ORKNN_TRY(build_nodes(scope, steps));
  for (std::string_view name : outputs) {
    if (!problems_.is_empty()) break;
    ORKNN_TRY_ASSIGN(const TensorId id, lookup(scope, name));
    if (!id) return invalid_model("an output has no name");
    if (sequences_.contains(graph, id))
      return unsupported("output '" + std::string(name) + "' is a sequence of tensors")
          .hint("cut the model before it with 'outputs'");
    graph.outputs().push_back(id);
  }
  ORKNN_TRY(problems_.status());
  ORKNN_TRY(verify(graph, ops_, Stage::Imported));
  if (options.inputs.empty() && options.input_size_list.empty()) remark_stated_outputs(graph);  // other sizes give other shapes
  return graph;
}

}  // namespace orknn::importer::onnx
