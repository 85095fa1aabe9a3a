#include "format/program_code.h"

#include <algorithm>
#include <map>

namespace orknn::format {
namespace {
using namespace ir;

// Graphs inside attributes of graphs, at most. Deeper nesting does not occur and would exhaust the stack.
constexpr int kMaxDepth = 32;
constexpr uint32_t kMaxRank = 64;

enum DimTag : uint8_t { kKnown = 0, kSymbol = 1, kUnknown = 2 };
enum TensorFlags : uint8_t { kHasShape = 1, kHasQuant = 2, kHasConstant = 4, kPacked = 8, kFixedPoint = 16 };

Status damaged(std::string what) { return invalid_model("the program in the file is damaged: " + std::move(what)); }

void put_tensor_data(const TensorData& value, WeightCollector& weights, ByteWriter& out) {
  out.put(value.dtype());
  out.list(value.dims());
  out.put(weights.add(value));
}

Result<TensorData> get_tensor_data(ByteReader& in, const WeightSection& weights) {
  const auto dtype = in.get<DType>();
  Dims dims = in.list<int64_t>();
  const auto offset = in.get<uint64_t>();
  if (in.failed() || dims.size() > kMaxRank) return damaged("a constant is cut off");
  return weights.tensor(dtype, std::move(dims), offset);
}

Result<TensorData> get_packed_tensor(ByteReader& in, const WeightSection& weights) {
  const auto dtype = in.get<DType>();
  Dims dims = in.list<int64_t>();
  WeightSection::PackedPlace place;
  place.type = in.get<DType>();
  place.block = in.list<int64_t>();
  place.integers = in.get<uint64_t>();
  place.scales = in.get<uint64_t>();
  if (in.failed() || dims.size() > kMaxRank) return damaged("a constant is cut off");
  return weights.packed_tensor(dtype, std::move(dims), place);
}

void put_ids(const std::vector<TensorId>& ids, ByteWriter& out) {
  out.count(ids.size());
  for (TensorId t : ids) out.put(t.index);
}

// Ids in [-1, tensors), or in [0, tensors) when an absent one makes no sense.
Result<std::vector<TensorId>> get_ids(ByteReader& in, size_t tensors, bool may_be_absent) {
  std::vector<TensorId> ids(in.count(sizeof(int32_t)));
  for (TensorId& t : ids) {
    t.index = in.get<int32_t>();
    if (t.index < (may_be_absent ? -1 : 0) || (t && static_cast<size_t>(t.index) >= tensors))
      return damaged("a tensor number is out of range");
  }
  return ids;
}

void put_graph(const Graph& g, WeightCollector& weights, ByteWriter& out);
Result<Graph> get_graph(ByteReader& in, const WeightSection& weights, int depth);

void put_attributes(const Attributes& attributes, WeightCollector& weights, ByteWriter& out) {
  out.count(attributes.size());
  for (const auto& [name, value] : attributes) {
    out.text(name);
    out.put(kind_of(value));
    switch (kind_of(value)) {
      case AttributeKind::Int: out.put(std::get<int64_t>(value)); break;
      case AttributeKind::Float: out.put(std::get<double>(value)); break;
      case AttributeKind::String: out.text(std::get<std::string>(value)); break;
      case AttributeKind::Ints: out.list(std::get<std::vector<int64_t>>(value)); break;
      case AttributeKind::Floats: out.list(std::get<std::vector<double>>(value)); break;
      case AttributeKind::Strings: {
        const auto& texts = std::get<std::vector<std::string>>(value);
        out.count(texts.size());
        for (const std::string& s : texts) out.text(s);
        break;
      }
      case AttributeKind::Tensor: put_tensor_data(std::get<TensorData>(value), weights, out); break;
      case AttributeKind::Graph: put_graph(*std::get<std::shared_ptr<const Graph>>(value), weights, out); break;
    }
  }
}

Result<Attributes> get_attributes(ByteReader& in, const WeightSection& weights, int depth) {
  Attributes attributes;
  const uint32_t n = in.count(5);
  for (uint32_t i = 0; i < n; ++i) {
    std::string name = in.text();
    const auto kind = in.get<AttributeKind>();
    if (in.failed() || attributes.has(name)) return damaged("an attribute is cut off or given twice");
    switch (kind) {
      case AttributeKind::Int: attributes.set(std::move(name), in.get<int64_t>()); break;
      case AttributeKind::Float: attributes.set(std::move(name), in.get<double>()); break;
      case AttributeKind::String: attributes.set(std::move(name), in.text()); break;
      case AttributeKind::Ints: attributes.set(std::move(name), in.list<int64_t>()); break;
      case AttributeKind::Floats: attributes.set(std::move(name), in.list<double>()); break;
      case AttributeKind::Strings: {
        std::vector<std::string> texts(in.count(4));
        for (std::string& s : texts) s = in.text();
        attributes.set(std::move(name), std::move(texts));
        break;
      }
      case AttributeKind::Tensor: {
        ORKNN_TRY_ASSIGN(TensorData value, get_tensor_data(in, weights));
        attributes.set(std::move(name), std::move(value));
        break;
      }
      case AttributeKind::Graph: {
        ORKNN_TRY_ASSIGN(Graph body, get_graph(in, weights, depth + 1));
        attributes.set(std::move(name), std::make_shared<const Graph>(std::move(body)));
        break;
      }
      default: return damaged("an attribute has an unknown kind");
    }
  }
  return attributes;
}

void put_tensor(const Tensor& t, WeightCollector& weights, ByteWriter& out) {
  out.text(t.name);
  out.put(t.dtype);
  out.put(t.layout);
  out.put(static_cast<uint8_t>((t.shape ? kHasShape : 0) | (t.quant ? kHasQuant : 0) | (t.is_constant() ? kHasConstant : 0) |
                               (t.constant.packed() ? kPacked : 0) | (t.quant && t.quant->fixed_point ? kFixedPoint : 0)));
  if (t.shape) {
    out.count(t.shape->size());
    for (const Dim& d : *t.shape) {
      out.put(d.is_known() ? kKnown : d.is_anonymous() ? kUnknown : kSymbol);
      if (d.is_known())
        out.put(d.value());
      else if (!d.is_anonymous())
        out.text(d.symbol());
    }
  }
  if (t.quant) {
    out.list(t.quant->scale);
    out.list(t.quant->zero_point);
    out.put(t.quant->axis);
    out.list(t.quant->min);
    out.list(t.quant->max);
  }
  if (t.constant.packed()) {
    const PackedForm& form = *t.constant.packed();
    out.put(t.constant.dtype());
    out.list(t.constant.dims());
    out.put(form.type);
    out.list(form.block);
    out.put(weights.add(form.integers));
    out.put(weights.add(form.scales));
  } else if (t.is_constant()) {
    put_tensor_data(t.constant, weights, out);
  }
}

Status get_tensor(ByteReader& in, const WeightSection& weights, Graph& g) {
  std::string name = in.text();
  const auto dtype = in.get<DType>();
  const auto layout = in.get<Layout>();
  const auto flags = in.get<uint8_t>();
  if (in.failed() || name.empty()) return damaged("a tensor has no name");
  if (dtype != DType::Undefined && dtype_bytes(dtype) == 0) return damaged("tensor '" + name + "' has an unknown element type");
  if (layout > Layout::NCHW) return damaged("tensor '" + name + "' has an unknown layout");
  const TensorId id = g.add_tensor(name, dtype);
  Tensor& t = g.tensor(id);
  if (t.name != name) return damaged("two tensors are called '" + name + "'");
  t.layout = layout;
  if (flags & kHasShape) {
    const uint32_t rank = in.count(1);
    if (rank > kMaxRank) return damaged("tensor '" + name + "' has too many axes");
    Shape shape;
    for (uint32_t i = 0; i < rank; ++i) {
      switch (in.get<DimTag>()) {
        case kKnown: {
          const auto extent = in.get<int64_t>();
          if (extent < 0) return damaged("tensor '" + name + "' has a negative extent");
          shape.push_back(extent);
          break;
        }
        case kSymbol: shape.push_back(Dim::symbol(in.text())); break;
        case kUnknown: shape.push_back(Dim()); break;
        default: return damaged("tensor '" + name + "' has a strange shape");
      }
    }
    t.shape = std::move(shape);
  }
  if (flags & kHasQuant) {
    QuantParams q;
    q.scale = in.list<float>();
    q.zero_point = in.list<int32_t>();
    q.axis = in.get<int32_t>();
    q.min = in.list<float>();
    q.max = in.list<float>();
    q.fixed_point = (flags & kFixedPoint) != 0;
    t.quant = std::move(q);
  }
  if (flags & kHasConstant) {
    ORKNN_TRY_ASSIGN(TensorData value, flags & kPacked ? get_packed_tensor(in, weights) : get_tensor_data(in, weights));
    if (value.dtype() != dtype || !t.shape || to_dims(*t.shape) != value.dims())
      return damaged("constant '" + name + "' differs from its tensor");
    t.constant = std::move(value);
  }
  return in.failed() ? damaged("tensor '" + name + "' is cut off") : Status();
}

void put_graph(const Graph& g, WeightCollector& weights, ByteWriter& out) {
  out.text(g.name);
  out.count(g.tensor_count());
  for (size_t i = 0; i < g.tensor_count(); ++i) put_tensor(g.tensor(TensorId{static_cast<int32_t>(i)}), weights, out);
  out.count(g.node_count());
  for (NodeId id : g.order()) {
    const Node& n = g.node(id);
    out.text(n.op);
    out.text(n.name);
    put_ids(n.inputs, out);
    put_ids(n.outputs, out);
    put_attributes(n.attributes, weights, out);
    out.count(n.tail.size());
    for (const TailStep& step : n.tail) {
      out.text(step.op);
      put_attributes(step.attributes, weights, out);
      out.put(step.operand);
      out.put(static_cast<uint8_t>(step.operand_first));
    }
    out.count(n.origin.size());
    for (const std::string& s : n.origin) out.text(s);
  }
  put_ids(g.inputs(), out);
  put_ids(g.outputs(), out);
}

Result<Node> get_node(ByteReader& in, const WeightSection& weights, size_t tensors, int depth) {
  Node n;
  n.op = in.text();
  n.name = in.text();
  ORKNN_TRY_ASSIGN(n.inputs, get_ids(in, tensors, true));
  ORKNN_TRY_ASSIGN(n.outputs, get_ids(in, tensors, true));
  ORKNN_TRY_ASSIGN(n.attributes, get_attributes(in, weights, depth));
  const uint32_t steps = in.count(13);
  size_t operands = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    TailStep step;
    step.op = in.text();
    ORKNN_TRY_ASSIGN(step.attributes, get_attributes(in, weights, depth));
    step.operand = in.get<int32_t>();
    step.operand_first = in.get<uint8_t>() != 0;
    operands += step.operand >= 0;
    n.tail.push_back(std::move(step));
  }
  n.origin.resize(in.count(4));
  for (std::string& s : n.origin) s = in.text();
  if (in.failed()) return damaged("a node is cut off");
  if (n.outputs.empty()) return damaged("node '" + n.name + "' has no output");
  if (operands > n.inputs.size()) return damaged("node '" + n.name + "' has fewer inputs than its fused steps need");
  for (const TailStep& step : n.tail) {
    if (step.operand < 0) continue;
    const auto i = static_cast<size_t>(step.operand);
    if (i < n.inputs.size() - operands || i >= n.inputs.size() || !n.inputs[i])
      return damaged("a fused step of node '" + n.name + "' names no operand");
  }
  return n;
}

// Every value that is read is a constant, a graph input or computed, and no more than one of them.
Status check_sources(const Graph& g) {
  const auto has_source = [&](TensorId t) { return g.is_constant(t) || g.is_input(t) || g.producer(t); };
  std::vector<TensorId> inputs = g.inputs();
  std::sort(inputs.begin(), inputs.end());
  if (std::adjacent_find(inputs.begin(), inputs.end()) != inputs.end()) return damaged("a graph input is listed twice");
  for (TensorId t : inputs)
    if (g.is_constant(t) || g.producer(t)) return damaged("graph input '" + g.tensor(t).name + "' has a second source");
  for (TensorId t : g.outputs())
    if (!has_source(t)) return damaged("graph output '" + g.tensor(t).name + "' has no source");
  if (g.has_cycle()) return damaged("the graph has a cycle");
  for (NodeId id : g.order())
    for (TensorId t : g.node(id).inputs)
      if (t && !has_source(t)) return damaged("tensor '" + g.tensor(t).name + "' has no source");
  return {};
}

Result<Graph> get_graph(ByteReader& in, const WeightSection& weights, int depth) {
  if (depth > kMaxDepth) return damaged("graphs are nested too deeply");
  Graph g;
  g.name = in.text();
  const uint32_t tensors = in.count(7);
  for (uint32_t i = 0; i < tensors; ++i) ORKNN_TRY(get_tensor(in, weights, g));
  const uint32_t nodes = in.count(28);
  for (uint32_t i = 0; i < nodes; ++i) {
    ORKNN_TRY_ASSIGN(Node n, get_node(in, weights, tensors, depth));
    std::vector<TensorId> outputs = n.outputs;
    std::sort(outputs.begin(), outputs.end());
    for (size_t k = 0; k < outputs.size(); ++k)
      if (outputs[k] && (g.producer(outputs[k]) || g.is_constant(outputs[k]) || (k > 0 && outputs[k] == outputs[k - 1])))
        return damaged("tensor '" + g.tensor(outputs[k]).name + "' is computed twice");
    g.add_node(std::move(n));
  }
  ORKNN_TRY_ASSIGN(g.inputs(), get_ids(in, tensors, false));
  ORKNN_TRY_ASSIGN(g.outputs(), get_ids(in, tensors, false));
  if (in.failed()) return damaged("a graph is cut off");
  ORKNN_TRY(check_sources(g));
  return g;
}

void put_ports(const std::vector<Port>& ports, ByteWriter& out) {
  out.count(ports.size());
  for (const Port& p : ports) {
    out.put(p.tensor.index);
    out.put(p.dtype);
    out.put(p.layout);
    out.list(p.mean);
    out.list(p.std);
  }
}

Result<std::vector<Port>> get_ports(ByteReader& in, const Graph& g) {
  std::vector<Port> ports(in.count(14));
  for (Port& p : ports) {
    p.tensor.index = in.get<int32_t>();
    p.dtype = in.get<DType>();
    p.layout = in.get<Layout>();
    p.mean = in.list<float>();
    p.std = in.list<float>();
    if (in.failed() || !p.tensor || static_cast<size_t>(p.tensor.index) >= g.tensor_count())
      return damaged("a port names no tensor");
    if (dtype_bytes(p.dtype) == 0 || p.layout > Layout::NCHW) return damaged("a port has an unknown type or layout");
  }
  return ports;
}
}  // namespace

void encode_program(const Program& program, WeightCollector& weights, ByteWriter& out) {
  out.text(program.label);
  put_graph(program.graph, weights, out);
  std::map<NodeId, int32_t> position;  // nodes are stored in execution order
  for (NodeId id : program.graph.order()) position.emplace(id, static_cast<int32_t>(position.size()));
  out.count(program.tasks.size());
  for (const Task& t : program.tasks) {
    const auto it = position.find(t.node);
    out.put(it == position.end() ? int32_t{-1} : it->second);
    out.put(t.device);
    out.put(t.engine);
    out.text(t.reason);
    out.put(t.core_mask);
    out.put(t.pieces);
    out.put(t.tiles);
    out.put(t.tiling.resident);
    for (uint32_t v :
         {t.tiling.rows, t.tiling.columns, t.tiling.kernels, t.tiling.channels, t.tiling.data_banks, t.tiling.weight_banks})
      out.put(v);
    out.put(t.sparsity);
    out.put(t.macs);
    out.put(t.predicted_cycles);
    out.put(t.array_cycles);
    out.put(t.ddr_cycles);
    out.put(t.read_bytes);
    out.put(t.write_bytes);
    out.put(t.read_again_bytes);
    out.put(t.weight_bytes);
    out.list(t.shared_cycles);
  }
  out.count(program.buffers.size());
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    Buffer b = program.buffers[i];
    if (const TensorData* constant = program.graph.constant(TensorId{static_cast<int32_t>(i)})) {
      b.place = Buffer::Place::Weights;
      b.offset = weights.add(*constant);
      b.bytes = std::max<uint64_t>(b.bytes, stored_bytes(*constant));
    }
    out.put(b.place);
    out.put(b.offset);
    out.put(b.bytes);
  }
  put_ports(program.inputs, out);
  put_ports(program.outputs, out);
  out.put(program.arena_bytes);
}

Result<Program> decode_program(ByteReader& in, const WeightSection& weights) {
  Program p;
  p.label = in.text();
  ORKNN_TRY_ASSIGN(p.graph, get_graph(in, weights, 0));
  p.tasks.resize(in.count(116));
  for (Task& t : p.tasks) {
    t.node.index = in.get<int32_t>();
    t.device = in.get<Device>();
    t.engine = in.get<Engine>();
    t.reason = in.text();
    t.core_mask = in.get<uint32_t>();
    t.pieces = in.get<uint32_t>();
    t.tiles = in.get<uint32_t>();
    t.tiling.resident = in.get<Tiling::Resident>();
    for (uint32_t* v :
         {&t.tiling.rows, &t.tiling.columns, &t.tiling.kernels, &t.tiling.channels, &t.tiling.data_banks, &t.tiling.weight_banks})
      *v = in.get<uint32_t>();
    t.sparsity = in.get<Sparsity>();
    t.macs = in.get<uint64_t>();
    t.predicted_cycles = in.get<uint64_t>();
    t.array_cycles = in.get<uint64_t>();
    t.ddr_cycles = in.get<uint64_t>();
    t.read_bytes = in.get<uint64_t>();
    t.write_bytes = in.get<uint64_t>();
    t.read_again_bytes = in.get<uint64_t>();
    t.weight_bytes = in.get<uint64_t>();
    t.shared_cycles = in.list<uint64_t>();
    if (in.failed() || !p.graph.is_alive(t.node) || t.device > Device::Custom || t.engine > Engine::Recurrent ||
        t.tiling.resident > Tiling::Resident::Weights || t.sparsity > Sparsity::Both)
      return damaged("a task is malformed");
  }
  p.buffers.resize(in.count(17));
  for (Buffer& b : p.buffers) {
    b.place = in.get<Buffer::Place>();
    b.offset = in.get<uint64_t>();
    b.bytes = in.get<uint64_t>();
    if (b.place > Buffer::Place::Weights) return damaged("a buffer has an unknown place");
  }
  ORKNN_TRY_ASSIGN(p.inputs, get_ports(in, p.graph));
  ORKNN_TRY_ASSIGN(p.outputs, get_ports(in, p.graph));
  p.arena_bytes = in.get<uint64_t>();
  if (in.failed()) return damaged("it is cut off");
  if (p.tasks.size() != p.graph.node_count() || p.buffers.size() != p.graph.tensor_count())
    return damaged("tasks or buffers are missing");
  return p;
}

void encode_model_facts(const Model& model, ByteWriter& out) {
  for (const std::string* s : {&model.name, &model.target_platform, &model.source_framework, &model.toolkit_version,
                               &model.custom_string, &model.float_dtype})
    out.text(*s);
  out.list(model.sync_uids);
}

Result<Model> decode_model_facts(ByteReader& in) {
  Model model;
  for (std::string* s : {&model.name, &model.target_platform, &model.source_framework, &model.toolkit_version,
                         &model.custom_string, &model.float_dtype})
    *s = in.text();
  // Older files end here, with up to 63 bytes that fill the section.
  if (in.left() >= sizeof(uint32_t)) model.sync_uids = in.list<uint32_t>();
  if (in.failed()) return damaged("what it says about the model is cut off");
  return model;
}

}  // namespace orknn::format
