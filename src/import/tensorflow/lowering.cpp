#include "import/tensorflow/lowering.h"

#include <algorithm>

#include "import/tensorflow/tensors.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// A bound for hostile graphs: functions that call each other over and over, loops that never end.
constexpr size_t kMaxLowered = 200000;

const RowTable<Layer>& table() {
  static const RowTable<Layer> rows{elementwise_rows(), convolution_rows(), pooling_rows(),   normalization_rows(),
                                    image_rows(),       matrix_rows(),      reduction_rows(), shape_rows(),
                                    indexing_rows(),    generator_rows(),   quantized_rows(), recurrent_rows(),
                                    detection_rows(),   list_rows(),        signal_rows()};
  return rows;
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// Nodes at which data enters the graph.
bool is_source(std::string_view op) {
  return is_one_of(op, {"Placeholder", "PlaceholderV2", "IteratorGetNext", "QueueDequeueV2", "QueueDequeueManyV2"});
}
bool is_call(std::string_view op) {
  return is_one_of(op, {"PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "XlaLaunch"});
}
bool is_if(std::string_view op) { return is_one_of(op, {"If", "StatelessIf", "Case", "StatelessCase"}); }
bool is_while(std::string_view op) { return is_one_of(op, {"While", "StatelessWhile"}); }
// Nodes that hand on their first input as it is.
bool passes_through(std::string_view op) {
  return is_one_of(op, {"Identity", "IdentityN", "RefIdentity", "Snapshot", "DeepCopy", "Copy", "CopyHost", "EnsureShape",
                        "PlaceholderWithDefault", "XlaSharding"}) ||
         is_one_of(op, {"StopGradient", "PreventGradient", "CheckNumerics", "CheckNumericsV2", "Print", "DebugIdentity",
                        "DebugIdentityV2", "Dropout"}) ||
         is_one_of(op, {"LoopCond", "NextIteration", "RefNextIteration", "Enter", "RefEnter", "Switch", "RefSwitch"});
}
// Nodes that are not outputs of the model although nothing reads them.
bool is_no_result(std::string_view op) {
  return is_source(op) ||
         is_one_of(op, {"NoOp", "Assert", "Const", "PlaceholderWithDefault", "PrintV2", "ControlTrigger", "SaveV2",
                        "MergeV2Checkpoints", "ScalarSummary", "HistogramSummary", "ImageSummary", "TensorSummary",
                        "TensorSummaryV2", "MergeSummary", "TensorArrayCloseV3", "TensorArrayCloseV2", "TensorArrayClose"});
}
// Nodes whose results all count, not only the first.
bool has_many_results(std::string_view op) {
  return is_one_of(op, {"Split", "SplitV", "Unpack", "TopK", "TopKV2", "IdentityN", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
                        "CombinedNonMaxSuppression"});
}
}  // namespace

Lowering::Lowering(const GraphDef& graph, std::shared_ptr<const void> keeper, const OpSet& ops) : graph_(graph), network_(ops) {
  import_.keeper = std::move(keeper);
  for (const FunctionDef& f : graph.functions) functions_.emplace(f.name, &f);
}

// --- ports

// An output of a node, which has at least as many from now on.
Value& Lowering::output_of(NodeState& state, int32_t output) {
  const auto index = static_cast<size_t>(output);
  if (state.outputs.size() <= index) state.outputs.resize(index + 1);
  return state.outputs[index];
}

Result<Reference> Lowering::named(const std::string& name, std::string_view list, std::span<const std::string> names) const {
  const Reference r = root_scope_->resolve(name);
  if (r.node >= 0 && !r.is_control()) return r;
  std::vector<std::string_view> known;
  for (const NodeDef& node : root_scope_->nodes) known.push_back(node.name);
  return no_such_tensor(name, list, names, known);
}

std::vector<int32_t> Lowering::reachable(std::span<const Reference> from) const {
  std::vector<int32_t> pending, found;
  std::vector<char> seen(root_scope_->nodes.size(), 0);
  for (const Reference& r : from) pending.push_back(r.node);
  while (!pending.empty()) {
    const int32_t index = pending.back();
    pending.pop_back();
    if (index < 0 || seen[static_cast<size_t>(index)]) continue;
    seen[static_cast<size_t>(index)] = 1;
    found.push_back(index);
    for (const Reference& r : root_scope_->inputs_of(index))
      if (!r.is_control()) pending.push_back(r.node);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Type and shape of a port as far as the node at which it stands tells.
Status Lowering::add_port(const Reference& reference, std::string name) {
  const NodeDef& node = root_scope_->node(reference.node);
  const Layer layer(import_, network_.graph, network_.ops, node, nullptr, std::string(node.name), {});
  const auto output = static_cast<size_t>(reference.output);
  Port port;
  port.name = std::move(name);
  for (std::string_view key : {"dtype", "DstT", "out_type", "output_type", "T"})
    if (const AttributeValue a = layer.attribute(key); a.kind == AttributeValue::Kind::Type) {
      port.dtype = to_dtype(a.number);
      break;
    }
  if (const auto types = parse_type_list(layer.attribute("output_types")); types && output < types->size())
    port.dtype = to_dtype((*types)[output]);
  if (port.dtype == DType::Undefined) port.dtype = DType::Float32;
  Bytes shape;
  bool is_stated = false;
  if (const AttributeValue a = layer.attribute("shape"); a.kind == AttributeValue::Kind::Shape) {
    shape = a.message;
    is_stated = true;
  }
  for (std::string_view key : {"output_shapes", "_output_shapes"})
    if (const auto shapes = parse_shape_list(layer.attribute(key)); !is_stated && shapes && output < shapes->size()) {
      shape = (*shapes)[output];
      is_stated = true;
    }
  if (is_stated) {
    auto parsed = parse_shape(shape);
    if (!parsed) return Status(parsed.status()).node(node.name, node.op);
    port.shape = *std::move(parsed);
  }
  // Before version 24 an empty shape meant one that is not known.
  constexpr int64_t kScalarsSince = 24;
  if (port.shape && port.shape->empty() && graph_.producer < kScalarsSince && node.op == "Placeholder") port.shape.reset();
  ports_.push_back(std::move(port));
  port_references_.push_back(reference);
  return {};
}

std::vector<std::vector<int32_t>> Lowering::readers_of_nodes() const {
  std::vector<std::vector<int32_t>> readers(root_scope_->nodes.size());
  for (size_t i = 0; i < root_scope_->inputs.size(); ++i)
    for (const Reference& r : root_scope_->inputs[i])
      if (!r.is_control() && r.node >= 0) readers[static_cast<size_t>(r.node)].push_back(static_cast<int32_t>(i));
  return readers;
}

// Whether a value reaches, through operators that keep its rank, one that works on batches of pictures.
bool Lowering::feeds_pictures(const Reference& from) const {
  const auto is_of_pictures = [](std::string_view op) {
    return is_one_of(op, {"Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool", "FusedBatchNorm", "FusedBatchNormV2",
                          "FusedBatchNormV3", "LRN", "SpaceToDepth", "DepthToSpace"});
  };
  const auto keeps_rank = [](std::string_view op) {
    return is_one_of(op, {"Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "BiasAdd", "Relu", "Relu6", "Cast",
                          "FakeQuantWithMinMaxVars"}) ||
           is_one_of(op, {"Identity", "PlaceholderWithDefault", "Pad", "PadV2", "MirrorPad", "Reverse", "ReverseV2", "Split",
                          "Concat", "ConcatV2"});
  };
  const auto readers = readers_of_nodes();
  std::vector<char> seen(readers.size(), 0);
  for (std::vector<int32_t> pending{from.node}; !pending.empty();) {
    const auto at = static_cast<size_t>(pending.back());
    pending.pop_back();
    if (std::exchange(seen[at], 1)) continue;
    for (int32_t reader : readers[at]) {
      const std::string_view op = root_scope_->node(reader).op;
      if (is_of_pictures(op)) return true;
      if (keeps_rank(op)) pending.push_back(reader);
    }
  }
  return false;
}

// Whether a conditional reads the value to choose its branch: such a value is a single number.
bool Lowering::is_predicate(const Reference& from) const {
  const auto readers = readers_of_nodes();
  std::vector<char> seen(readers.size(), 0);
  for (std::vector<Reference> pending{from}; !pending.empty();) {
    const Reference at = pending.back();
    pending.pop_back();
    if (std::exchange(seen[static_cast<size_t>(at.node)], 1)) continue;
    for (int32_t reader : readers[static_cast<size_t>(at.node)]) {
      const std::string_view op = control_op(root_scope_->node(reader).op);
      if ((op == "Switch" && root_scope_->data_input(reader, 1) == at) || (is_if(op) && root_scope_->data_input(reader, 0) == at))
        return true;
      if ((op == "Identity" || op == "LogicalNot") && root_scope_->data_input(reader, 0) == at) pending.push_back({reader, 0});
    }
  }
  return false;
}

// Where an input that the user names begins: at the result of the named layer, unless the size only fits what the layer reads.
// Scripts name the first layer of a network and give the size of the picture; the channels of constant weights tell.
Reference Lowering::port_for(const Reference& named, const Dims& size) {
  const NodeDef& node = root_scope_->node(named.node);
  const bool depthwise = node.op == "DepthwiseConv2dNative", matrix = node.op == "MatMul";
  if (size.empty() || named.output != 0 || !(depthwise || matrix || node.op == "Conv2D")) return named;
  const auto layer_of = [&](int32_t index) {
    const NodeDef& n = root_scope_->node(index);
    return Layer(import_, network_.graph, network_.ops, n, nullptr, std::string(n.name), {});
  };
  if (layer_of(named.node).attribute("data_format").text == "NCHW") return named;
  Reference weights = root_scope_->data_input(named.node, 1);
  while (weights.node >= 0 && root_scope_->node(weights.node).op == "Identity")
    weights = root_scope_->data_input(weights.node, 0);
  if (weights.node < 0 || root_scope_->node(weights.node).op != "Const") return named;
  const auto value = read_tensor(layer_of(weights.node).attribute("value").message, nullptr);
  if (!value || value->dims.size() != (matrix ? 2u : 4u)) return named;
  const int64_t inputs = value->dims[value->dims.size() - 2], last = value->dims.back();
  const int64_t outputs = depthwise ? inputs * last : last;
  const Reference data = root_scope_->data_input(named.node, 0);
  return size.back() == inputs && size.back() != outputs && data.node >= 0 ? data : named;
}

Status Lowering::find_outputs(const ImportOptions& options) {
  const auto name_of = [&](const Reference& r) {
    return std::string(root_scope_->node(r.node).name) + ":" + std::to_string(r.output);
  };
  for (const std::string& name : options.outputs) {
    ORKNN_TRY_ASSIGN(const Reference r, named(name, "outputs", options.outputs));
    outputs_.emplace_back(name_of(r), r);
  }
  if (!outputs_.empty()) return {};
  // What nothing reads.
  std::vector<char> is_read(root_scope_->nodes.size(), 0);
  for (const auto& inputs : root_scope_->inputs)
    for (const Reference& r : inputs)
      if (!r.is_control() && r.node >= 0) is_read[static_cast<size_t>(r.node)] = 1;
  for (size_t i = 0; i < is_read.size(); ++i) {
    const NodeDef& node = root_scope_->nodes[i];
    if (is_read[i] || is_no_result(node.op)) continue;
    const Reference first{static_cast<int32_t>(i), 0};
    outputs_.emplace_back(name_of(first), first);
  }
  if (!outputs_.empty()) return {};
  // Where every node is read by another, there is a cycle: following it finds which.
  for (size_t i = 0; i < root_scope_->nodes.size(); ++i)
    if (!is_no_result(root_scope_->nodes[i].op)) ORKNN_TRY(get(root_, {static_cast<int32_t>(i), 0}).status());
  return invalid_model("the graph has no outputs").hint("name them with 'outputs'");
}

Status Lowering::find_inputs(const ImportOptions& options) {
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    const std::string& name = options.inputs[i];
    ORKNN_TRY_ASSIGN(const Reference stated, named(name, "inputs", options.inputs));
    const Reference r = port_for(stated, i < options.input_size_list.size() ? options.input_size_list[i] : Dims());
    if (std::find(port_references_.begin(), port_references_.end(), r) != port_references_.end())
      return invalid_argument("'" + name + "' is listed twice in inputs");
    ORKNN_TRY(add_port(r, std::string(root_scope_->node(r.node).name) + ":" + std::to_string(r.output)));
  }
  if (options.inputs.empty()) {
    std::vector<Reference> wanted;
    for (const auto& output : outputs_) wanted.push_back(output.second);
    std::map<int32_t, int32_t> most;  // the outputs in use of nodes with several
    const std::vector<int32_t> nodes = reachable(wanted);
    for (const Reference& r : wanted) most[r.node] = std::max(most[r.node], r.output);
    for (int32_t index : nodes)
      for (const Reference& r : root_scope_->inputs_of(index))
        if (!r.is_control() && r.node >= 0) most[r.node] = std::max(most[r.node], r.output);
    for (int32_t index : nodes) {
      const NodeDef& node = root_scope_->node(index);
      if (!is_source(node.op) || options.feeds.contains(std::string(node.name)) ||
          options.feeds.contains(std::string(node.name) + ":0"))
        continue;
      const Layer layer(import_, network_.graph, network_.ops, node, nullptr, std::string(node.name), {});
      const auto types = parse_type_list(layer.attribute("output_types"));
      const int32_t outputs = types && !types->empty() ? static_cast<int32_t>(types->size()) : 1;
      for (int32_t k = 0; k <= std::min(most[index], outputs - 1); ++k)
        ORKNN_TRY(add_port({index, k}, std::string(node.name) + ":" + std::to_string(k)));
    }
  }
  for (size_t i = 0; i < ports_.size() && i < options.input_size_list.size(); ++i)
    if (!ports_[i].shape && options.input_size_list[i].size() == 3 && feeds_pictures(port_references_[i]))
      ports_[i].shape = Shape(4);  // scripts of the first toolkit leave out the batch
  for (size_t i = options.input_size_list.size(); takes_one_sample_ && i < ports_.size(); ++i)
    if (ports_[i].shape && !ports_[i].shape->empty() && !ports_[i].shape->front().is_known() &&
        std::all_of(ports_[i].shape->begin() + 1, ports_[i].shape->end(), [](const Dim& d) { return d.is_known(); }))
      ports_[i].shape->front() = 1;
  auto symbols = apply_sizes(ports_, options);
  if (!symbols) return symbols.status();
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (!ports_[i].shape && !ports_[i].value.has_value()) {
      if (!is_predicate(port_references_[i]))
        return invalid_argument("the number of dimensions of input '" + ports_[i].name +
                                "' is not known: the file does not state it")
            .hint("give the input shapes with " + options.sizes_option +
                  " ([] for a single number), or cut the model with 'inputs'");
      ports_[i].shape = Shape{};
    }
    network_.add_input(ports_[i]);
    const TensorId id = network_.find(ports_[i].name);
    named_.emplace(id.index, 1);
    if (ports_[i].shape && ports_[i].shape->size() == 4)
      network_.graph.tensor(id).layout = options.input_is_nchw ? Layout::NCHW : Layout::NHWC;
    output_of(root_.states[port_references_[i].node], port_references_[i].output) = id;
  }
  std::vector<std::string> feeds;
  for (const auto& feed : options.feeds) feeds.push_back(feed.first);
  for (const auto& [name, value] : options.feeds) {
    ORKNN_TRY_ASSIGN(const Reference r, named(name, "predef_file", feeds));
    Value& fed = output_of(root_.states[r.node], r.output);
    const Layer layer(import_, network_.graph, network_.ops, root_scope_->node(r.node), nullptr, name, {});
    const DType dtype = layer.dtype_or("dtype", value.dtype());
    if (!fed.is_set())
      fed = network_.graph.add_constant(
          name, dtype == value.dtype() || dtype == DType::Undefined ? value : convert(value.view(), dtype));
  }
  return {};
}

Result<Graph> Lowering::run(const ImportOptions& options) {
  ORKNN_TRY_ASSIGN(Scope scope, Scope::of_graph(graph_.nodes, functions_));
  root_scope_ = std::make_unique<Scope>(std::move(scope));
  root_.scope = root_scope_.get();
  ORKNN_TRY(find_outputs(options));
  ORKNN_TRY(find_inputs(options));
  std::vector<std::string> names;
  const auto bind = [&](const std::string& name, const Value& value) {
    if (value.failed) return;
    if (!value.tensor || import_.complex_tensors.contains(value.tensor.index))
      return network_.report(
          unsupported("output '" + name + "' is a list of tensors or complex").hint("name other outputs with 'outputs'"));
    network_.bind(name, value.tensor, name.substr(0, name.rfind(':')));
    names.push_back(name);
  };
  for (const auto& [name, reference] : outputs_) {
    ORKNN_TRY_ASSIGN(const Value value, get(root_, reference));
    bind(name, value);
    // No outputs are named: nodes with several results give all of them.
    const std::string_view op = root_scope_->node(reference.node).op;
    if (options.outputs.empty() &&
        (has_many_results(op) || is_call(op) || is_if(op) || is_while(op) || functions_.contains(op))) {
      const std::vector<Value> all = root_.states[reference.node].outputs;
      for (size_t k = 1; k < all.size(); ++k)
        if (all[k].tensor) bind(std::string(root_scope_->node(reference.node).name) + ":" + std::to_string(k), all[k]);
    }
  }
  ORKNN_TRY_ASSIGN(Graph graph, network_.finish(names));
  for (const auto& ids : {graph.inputs(), graph.outputs()})
    for (TensorId id : ids)
      if (const auto& shape = graph.tensor(id).shape; shape && shape->size() == 4 && graph.tensor(id).layout == Layout::Undefined)
        graph.tensor(id).layout = Layout::NHWC;
  return graph;
}

// --- evaluation

const Value* Lowering::find(Frame& frame, const Reference& reference) const {
  static const Value nothing = Value::failure();
  if (reference.node == Reference::kArgument) {
    const auto i = static_cast<size_t>(reference.output);
    return i < frame.arguments.size() ? &frame.arguments[i] : &nothing;
  }
  const auto it = frame.states.find(reference.node);
  if (it == frame.states.end()) return nullptr;
  const auto output = static_cast<size_t>(reference.output);
  if (output < it->second.outputs.size() && it->second.outputs[output].is_set()) return &it->second.outputs[output];
  return it->second.is_done ? &nothing : nullptr;
}

Result<Value> Lowering::get(Frame& frame, const Reference& reference) {
  ORKNN_TRY(settle(frame, reference));
  const Value* value = find(frame, reference);
  ORKNN_ASSERT(value, "a settled value is there");
  // A node that was lowered but has fewer outputs than somebody reads; one that failed was reported.
  if (value->failed && network_.is_clean() && reference.node >= 0)
    return invalid_model("output " + std::to_string(reference.output) + " of node '" +
                         std::string(frame.scope->node(reference.node).name) + "' does not exist or is not supported")
        .node(frame.scope->node(reference.node).name, frame.scope->node(reference.node).op);
  return *value;
}

Status Lowering::settle(Frame& frame, const Reference& wanted) {
  if (wanted.node == Reference::kMissing) return internal_error("a reference to nothing was followed");
  if (wanted.node == Reference::kArgument || find(frame, wanted)) return {};
  std::vector<int32_t> stack{wanted.node};
  while (!stack.empty()) {
    const int32_t index = stack.back();
    NodeState& state = frame.states[index];
    if (state.is_done) {
      stack.pop_back();
      continue;
    }
    state.is_active = true;
    ORKNN_TRY_ASSIGN(const Reference next, next_requirement(frame, index, state));
    if (next.node >= 0) {
      const auto required = frame.states.find(next.node);
      if (required != frame.states.end() && required->second.is_active && !required->second.is_done)
        return invalid_model("the graph has a cycle: the node depends on itself")
            .node(frame.scope->node(next.node).name, frame.scope->node(next.node).op);
      stack.push_back(next.node);
      continue;
    }
    ORKNN_TRY(lower(frame, index, state));
    state.is_done = true;
    stack.pop_back();
  }
  return {};
}

// The next value this node has to wait for; kMissing when it can be lowered.
Result<Reference> Lowering::next_requirement(Frame& frame, int32_t index, NodeState& state) {
  Scope& scope = *frame.scope;
  const std::string_view op = control_op(scope.node(index).op);
  const auto waits = [&](const Reference& r) { return r.node >= 0 && !find(frame, r); };
  // These look outside of the frame themselves. A constant of the outermost frame waits for what damage may have made it read.
  if ((op == "Const" && frame.outer) || op == "Enter" || scope.loop_of_exit(index)) return Reference{};
  if (op == "Switch") {
    const Reference data = scope.data_input(index, 0);
    return waits(data) ? data : Reference{};
  }
  if (op == "Merge") {
    const auto choice = scope.choice(index);
    if (!choice) return Reference{};  // reported when it is lowered
    if (waits(choice->predicate)) return choice->predicate;
    const Value* predicate = find(frame, choice->predicate);
    const auto truth = predicate ? constant_truth(*predicate) : std::nullopt;
    for (const bool branch : {true, false}) {
      const Reference r = scope.data_input(index, branch ? choice->when_true : choice->when_false);
      if ((!truth || *truth == branch) && waits(r)) return r;
    }
    return Reference{};
  }
  const auto& inputs = scope.inputs_of(index);
  for (; state.next_input < inputs.size(); ++state.next_input)
    if (const Reference& r = inputs[state.next_input]; !r.is_control() && waits(r)) return r;
  return Reference{};
}

// Records the outputs of a node and gives the tensors its name.
void Lowering::finish(Frame& frame, int32_t index, NodeState& state, std::vector<Value> outputs) {
  const NodeDef& node = frame.scope->node(index);
  if (state.outputs.size() < outputs.size()) state.outputs.resize(outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (state.outputs[k].is_set()) continue;  // the model was cut here
    state.outputs[k] = std::move(outputs[k]);
    const TensorId id = state.outputs[k].tensor;
    if (id && named_.emplace(id.index, 1).second)
      network_.graph.rename_tensor(id, frame.prefix + std::string(node.name) + ":" + std::to_string(k));
  }
}

Status Lowering::lower(Frame& frame, int32_t index, NodeState& state) {
  Scope& scope = *frame.scope;
  const NodeDef& node = scope.node(index);
  if (++lowered_ > kMaxLowered)
    return unsupported("the graph grows too large when its functions and loops are expanded")
        .node(node.name, node.op)
        .expected("at most " + std::to_string(kMaxLowered) + " nodes");
  const std::string_view op = control_op(node.op);
  const auto fail_outputs = [&] {
    state.outputs.resize(std::max<size_t>(state.outputs.size(), 1));
    for (Value& v : state.outputs)
      if (!v.is_set()) v = Value::failure();
  };
  const auto failed = [&](Status status) -> Status {
    if (lowered_ > kMaxLowered) return status;  // nothing after it can be lowered either
    network_.report(status.node(frame.prefix + std::string(node.name), node.op));
    fail_outputs();
    return {};
  };
  if (op == "Const" && frame.outer) {  // constants are the same in every iteration of a loop
    ORKNN_TRY_ASSIGN(Value value, get(*frame.outer, {index, 0}));
    state.outputs = {std::move(value)};
    return {};
  }
  if (op == "Enter") {
    const Reference source = scope.data_input(index, 0);
    if (!frame.outer || source.node == Reference::kMissing) return failed(invalid_model("a loop is entered that has no end"));
    ORKNN_TRY_ASSIGN(Value value, get(*frame.outer, source));
    state.outputs = {std::move(value)};
    return {};
  }
  if (const LoopFrame* loop = scope.loop_of_exit(index)) {
    if (const Status status = run_loop(frame, *loop); !status) return failed(status);
    return {};
  }
  if (op == "Merge") {
    if (scope.is_loop_merge(index)) return failed(invalid_model("a loop variable is read outside of its loop"));
    if (const Status status = lower_merge(frame, index, state); !status) return failed(status);
    return {};
  }

  std::vector<Value> inputs;
  bool has_failed_input = false;
  for (const Reference& r : scope.inputs_of(index)) {
    if (r.is_control()) continue;
    if (r.node == Reference::kMissing)
      return failed(invalid_model("input " + std::to_string(inputs.size()) + " is not in the graph")
                        .found("'" + std::string(node.inputs[static_cast<size_t>(&r - scope.inputs_of(index).data())]) + "'"));
    if (op == "Switch" && inputs.size() == 1) break;  // the predicate is of no interest here
    const Value* value = find(frame, r);
    ORKNN_ASSERT(value, "inputs are settled before their readers");
    if (value->failed && network_.is_clean())
      return failed(invalid_model("input " + std::to_string(inputs.size()) + " does not exist or is not supported")
                        .found("output " + std::to_string(r.output) + " of '" +
                               std::string(r.node >= 0 ? scope.node(r.node).name : "an argument") + "'"));
    has_failed_input |= value->failed;
    inputs.push_back(*value);
  }
  const bool is_function = functions_.contains(node.op);
  const bool is_known = is_function || op == "Const" || passes_through(node.op) || is_call(node.op) || is_if(node.op) ||
                        is_while(node.op) || table().find(node.op);
  if (is_known && has_failed_input) {
    fail_outputs();
    return {};
  }
  if (const Status status = lower_plain(frame, index, state, std::move(inputs)); !status) return failed(status);
  return {};
}

Status Lowering::lower_plain(Frame& frame, int32_t index, NodeState& state, std::vector<Value> inputs) {
  const NodeDef& node = frame.scope->node(index);
  const std::string_view op = control_op(node.op);
  if (passes_through(node.op) && !functions_.contains(node.op)) {
    if (inputs.empty()) return invalid_model("inputs are missing").expected("1").found("0");
    if (op == "IdentityN") {
      finish(frame, index, state, std::move(inputs));
      return {};
    }
    std::vector<Value> outputs{inputs[0]};
    if (op == "Switch") outputs.push_back(inputs[0]);
    finish(frame, index, state, std::move(outputs));
    return {};
  }
  Layer layer(import_, network_.graph, network_.ops, node, frame.call, frame.prefix + std::string(node.name), std::move(inputs));
  if (op == "Const") {
    const AttributeValue value = layer.attribute("value");
    if (value.kind != AttributeValue::Kind::Tensor) return invalid_model("a constant has no value");
    ORKNN_TRY_ASSIGN(TensorValue tensor, read_tensor(value.message, import_.keeper));
    const bool is_fill = tensor.data.dims() != tensor.dims;
    TensorId id = layer.add_constant("value", std::move(tensor.data));
    if (is_fill) id = layer.emit("Expand", {id, layer.add_ints("shape", tensor.dims)});
    finish(frame, index, state, {id});
    return {};
  }
  if (functions_.contains(node.op) || is_call(node.op) || is_if(node.op) || is_while(node.op)) {
    auto outputs = is_if(node.op)      ? lower_if(frame, node, layer)
                   : is_while(node.op) ? lower_while(frame, node, layer)
                                       : lower_call(frame, node, layer);
    if (!outputs) return outputs.status();
    finish(frame, index, state, *std::move(outputs));
    return {};
  }
  if (const Row* row = table().find(node.op)) {
    layer.join_float_types();
    ORKNN_TRY_ASSIGN(std::vector<Value> outputs, (*row)(layer));
    finish(frame, index, state, std::move(outputs));
    return {};
  }
  if (const Refusal* refusal = find_refusal(node.op)) {
    Status status = unsupported(std::string(refusal->reason));
    if (!refusal->hint.empty()) status.hint(std::string(refusal->hint));
    return status;
  }
  // An input of the model has the outputs it was given; a reader of another one says so.
  if (is_source(node.op) && !state.outputs.empty()) return {};
  if (is_source(node.op))
    return invalid_argument("the graph needs this input").hint("name it in 'inputs', or cut the model after it");
  return unsupported("the operator is not supported").hint("cut the model before it with 'outputs'");
}

}  // namespace orknn::importer::tensorflow
