#include "format/program_code.h"

#include <algorithm>
#include <concepts>
#include <map>
#include <utility>

#include "base/printable_line.h"
#include "format/verify.h"
#include "ir/printable_names.h"
#include "ir/verify.h"

namespace orknn::format {
namespace {
using namespace ir;

// The byte layout is stated once: fields(archive, value) lists what a struct consists of, in the order of the file. An Encoder
// walks the lists to write, a Decoder to read. Structs that are not a plain row of fields (Dim, Attribute, constants, Graph) have
// a pair of functions in the two archives instead.
template <class T, class Wanted>
concept Is = std::same_as<std::remove_const_t<T>, Wanted>;  // const when it is written

enum DimTag : uint8_t { kKnown = 0, kSymbol = 1, kUnknown = 2 };
enum TensorFlags : uint8_t { kHasShape = 1, kHasQuant = 2, kHasConstant = 4, kPacked = 8, kFixedPoint = 16 };

uint8_t flags_of(const Tensor& t) {
  return static_cast<uint8_t>((t.shape ? kHasShape : 0) | (t.quant ? kHasQuant : 0) | (t.is_constant() ? kHasConstant : 0) |
                              (t.constant.packed() ? kPacked : 0) | (t.quant && t.quant->fixed_point ? kFixedPoint : 0));
}

void fields(auto& a, Is<QuantParams> auto& q) { a(q.scale, q.zero_point, q.axis, q.min, q.max); }

void fields(auto& a, Is<Tensor> auto& t) {
  uint8_t flags = flags_of(t);
  a(t.name, t.dtype, t.layout, flags);
  if (flags & kHasShape) a.present(t.shape);
  if (flags & kHasQuant) a.present(t.quant);
  if (flags & kHasConstant) a.constant(t.constant, (flags & kPacked) != 0);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(t)>>)
    if (t.quant) t.quant->fixed_point = (flags & kFixedPoint) != 0;
}

void fields(auto& a, Is<TailStep> auto& s) { a(s.op, s.attributes, s.operand, s.operand_first); }
void fields(auto& a, Is<Node> auto& n) { a(n.op, n.name, n.inputs, n.outputs, n.attributes, n.tail, n.origin); }

void fields(auto& a, Is<Tiling> auto& t) {
  a(t.resident, t.rows, t.columns, t.kernels, t.channels, t.data_banks, t.weight_banks);
}

void fields(auto& a, Is<Task> auto& t) {
  a(t.node, t.device, t.engine, t.reason, t.core_mask, t.pieces, t.tiles, t.tiling, t.sparsity, t.macs, t.predicted_cycles,
    t.array_cycles, t.ddr_cycles, t.read_bytes, t.write_bytes, t.read_again_bytes, t.weight_bytes, t.shared_cycles);
}

void fields(auto& a, Is<Buffer> auto& b) { a(b.place, b.offset, b.bytes); }
void fields(auto& a, Is<Port> auto& p) { a(p.tensor, p.dtype, p.layout, p.mean, p.std); }

void fields(auto& a, Is<Program> auto& p) {
  a(p.label, p.graph, p.tasks);
  a.buffers(p);
  a(p.inputs, p.outputs, p.arena_bytes);
}

void fields(auto& a, Is<Model> auto& m) {
  a(m.name, m.target_platform, m.source_framework, m.toolkit_version, m.custom_string, m.float_dtype);
  a.unless_older(m.sync_uids);
  a.unless_empty(m.other_platforms);
}

// Takes what a ByteWriter takes and keeps the number of bytes.
struct ByteCounter {
  uint64_t bytes = 0;
  template <class T>
  void put(T) {
    bytes += sizeof(T);
  }
  void count(size_t) { bytes += sizeof(uint32_t); }
  void text(std::string_view s) { bytes += sizeof(uint32_t) + s.size(); }
};

// Takes constants without looking at them: where only the size of a program counts, which offsets do not change.
struct NoWeights {
  uint64_t add(const TensorData&) { return 0; }
};
Buffer stored_buffer(const Program& program, size_t tensor, NoWeights&) { return program.buffers[tensor]; }

template <class Out, class Weights>
class Encoder {
 public:
  Encoder(Out& out, Weights& weights) : out_(out), weights_(weights) {}

  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  template <class T>
  void present(const std::optional<T>& value) {
    put(*value);
  }
  void constant(const TensorData& value, bool packed) {
    if (!packed) return put(value);
    const PackedForm& form = *value.packed();
    const uint64_t integers = weights_.add(form.integers), scales = weights_.add(form.scales);
    (*this)(value.dtype(), value.dims(), form.type, form.block, integers, scales);
  }
  void buffers(const Program& p) {
    out_.count(p.buffers.size());
    for (size_t i = 0; i < p.buffers.size(); ++i) put(stored_buffer(p, i, weights_));
  }
  void unless_older(const std::vector<uint32_t>& values) { put(values); }
  void unless_empty(const std::vector<std::string>& values) {
    if (!values.empty()) put(values);
  }

 private:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void put(T value) { out_.put(value); }
  void put(bool value) { out_.put(static_cast<uint8_t>(value)); }
  void put(const std::string& text) { out_.text(text); }
  template <class T>
  void put(const std::vector<T>& values) {
    out_.count(values.size());
    for (const T& v : values) put(v);
  }
  template <class T>
  requires std::is_class_v<T>
  void put(const T& value) { fields(*this, value); }
  void put(TensorId id) { out_.put(id.index); }
  // Nodes are stored in execution order and named by their position in it.
  void put(NodeId id) {
    const auto it = position_.find(id);
    out_.put(it == position_.end() ? int32_t{-1} : it->second);
  }
  void put(const Dim& d) {
    put(d.is_known() ? kKnown : d.is_anonymous() ? kUnknown : kSymbol);
    if (d.is_known())
      put(d.value());
    else if (!d.is_anonymous())
      put(d.symbol());
  }
  void put(const TensorData& value) { (*this)(value.dtype(), value.dims(), weights_.add(value)); }
  void put(const std::shared_ptr<const Graph>& body) { put(*body); }
  void put(const Attributes& attributes) {
    out_.count(attributes.size());
    for (const auto& [name, value] : attributes) {
      (*this)(name, kind_of(value));
      std::visit([&](const auto& v) { put(v); }, value);
    }
  }
  void put(const Graph& g) {
    put(g.name);
    out_.count(g.tensor_count());
    for (size_t i = 0; i < g.tensor_count(); ++i) put(g.tensor(TensorId{static_cast<int32_t>(i)}));
    out_.count(g.node_count());
    for (NodeId id : g.order()) put(g.node(id));
    put(g.inputs());
    put(g.outputs());
    position_.clear();  // bodies end before the graph they belong to: what remains is the program's, which tasks refer to
    for (NodeId id : g.order()) position_.emplace(id, static_cast<int32_t>(position_.size()));
  }

  Out& out_;
  Weights& weights_;
  std::map<NodeId, int32_t> position_;
};

Status damaged(std::string what) { return invalid_model("the program in the file is damaged: " + std::move(what)); }
Status damaged(Status violation) { return violation.hint("the program in the file is damaged, export the model again"); }

// Makes `value` hold the alternative of this number, empty; false when there is none.
template <size_t I = 0>
bool choose_alternative(Attribute& value, size_t number) {
  if constexpr (I < std::variant_size_v<Attribute>) {
    if (number != I) return choose_alternative<I + 1>(value, number);
    value.emplace<I>();
    return true;
  }
  return false;
}

// Reads from an untrusted file. After the first problem everything reads as zero and empty; the caller looks at status() at the
// end. A list grows with the bytes that were there, so a false count costs no memory.
class Decoder {
 public:
  Decoder(ByteReader& in, const WeightSection& weights) : in_(in), weights_(weights) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  template <class T>
  void present(std::optional<T>& value) {
    get(value.emplace());
  }
  void constant(TensorData& value, bool packed) {
    if (!packed) return get(value);
    DType dtype{};
    Dims dims;
    WeightSection::PackedPlace place;
    (*this)(dtype, dims, place.type, place.block, place.integers, place.scales);
    check_rank(dims.size());
    if (ok()) take(value, weights_.packed_tensor(dtype, std::move(dims), place));
  }
  void buffers(Program& p) { get(p.buffers); }
  // Older files end before it, with up to 63 bytes that fill the section.
  void unless_older(std::vector<uint32_t>& values) {
    if (in_.left() >= sizeof(uint32_t)) get(values);
  }
  // What fills the section reads as no values.
  void unless_empty(std::vector<std::string>& values) {
    if (in_.left() >= sizeof(uint32_t)) get(values);
  }
  Status status() {
    if (in_.failed()) fail(damaged("it is cut off"));
    return problem_;
  }

 private:
  bool ok() const { return problem_.is_ok() && !in_.failed(); }
  void fail(Status problem) {
    if (problem_.is_ok()) problem_ = std::move(problem);
    in_.fail();
  }
  void check_rank(size_t rank) {
    if (rank > kMostAxes) fail(damaged("a tensor has too many axes"));
  }
  template <class T>
  void take(T& to, Result<T> from) {
    if (from)
      to = std::move(*from);
    else
      fail(std::move(from).status());
  }

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void get(T& value) { value = in_.get<T>(); }
  void get(bool& value) { value = in_.get<uint8_t>() != 0; }
  void get(std::string& text) { text = in_.text(); }
  template <class T>
  void get(std::vector<T>& values) {
    if constexpr (std::is_arithmetic_v<T>)
      values = in_.list<T>();
    else
      for (uint32_t i = 0, n = in_.count(1); i < n && ok(); ++i) get(values.emplace_back());
  }
  template <class T>
  requires std::is_class_v<T>
  void get(T& value) { fields(*this, value); }
  void get(TensorId& id) {
    id.index = in_.get<int32_t>();
    if (id.index < -1) fail(damaged("a tensor number is out of range"));
  }
  void get(NodeId& id) { id.index = in_.get<int32_t>(); }
  void get(Dim& d) {
    switch (in_.get<DimTag>()) {
      case kKnown: {
        const auto extent = in_.get<int64_t>();
        if (extent < 0) fail(damaged("a tensor has a negative extent"));
        d = extent;
        break;
      }
      case kSymbol: d = Dim::symbol(in_.text()); break;
      case kUnknown: break;
      default: fail(damaged("an extent is neither known nor unknown"));
    }
  }
  void get(TensorData& value) {
    DType dtype{};
    Dims dims;
    uint64_t offset = 0;
    (*this)(dtype, dims, offset);
    check_rank(dims.size());
    if (ok()) take(value, weights_.tensor(dtype, std::move(dims), offset));
  }
  void get(std::shared_ptr<const Graph>& body) {
    if (++depth_ > kMostNestedGraphs) fail(damaged("graphs are nested too deeply"));  // before the stack is exhausted
    auto graph = std::make_shared<Graph>();
    get(*graph);
    --depth_;
    body = std::move(graph);
  }
  void get(Attributes& attributes) {
    for (uint32_t i = 0, n = in_.count(1); i < n && ok(); ++i) {
      std::string name;
      AttributeKind kind{};
      (*this)(name, kind);
      Attribute value;
      if (!choose_alternative(value, static_cast<size_t>(kind))) fail(damaged("an attribute has an unknown kind"));
      std::visit([&](auto& v) { get(v); }, value);
      if (ok() && attributes.has(name)) fail(damaged("attribute '" + name + "' is given twice"));
      attributes.set(std::move(name), std::move(value));
    }
  }
  // The parts of a graph are checked as far as the Graph itself demands before they are added; its structure when it is whole.
  void get(Graph& g) {
    get(g.name);
    g.name = printable_line(g.name);
    for (uint32_t i = 0, n = in_.count(1); i < n && ok(); ++i) add_tensor(g);
    for (uint32_t i = 0, n = in_.count(1); i < n && ok(); ++i) add_node(g);
    get(g.inputs());
    get(g.outputs());
  }
  void add_tensor(Graph& g) {
    Tensor t;
    get(t);
    if (!ok()) return;
    t.name = printable_line(t.name);
    const TensorId id = g.add_tensor(t.name);
    if (g.tensor(id).name != t.name) return fail(damaged("a tensor has no name, or two are called '" + t.name + "'"));
    g.tensor(id) = std::move(t);
  }
  void add_node(Graph& g) {
    Node n;
    get(n);
    if (!ok()) return;
    make_names_printable(n);
    if (Status s = verify_form(g, n); !s) return fail(damaged(std::move(s)));
    for (TensorId t : n.outputs)
      if (g.producer(t)) return fail(damaged("tensor '" + g.tensor(t).name + "' is computed twice"));
    g.add_node(std::move(n));
  }

  ByteReader& in_;
  const WeightSection& weights_;
  Status problem_;
  int depth_ = 0;
};

uint64_t encoded_bytes(const auto& value) {
  ByteCounter counter;
  NoWeights none;
  Encoder encoder(counter, none);
  encoder(value);
  return counter.bytes;
}
}  // namespace

Buffer stored_buffer(const Program& program, size_t tensor, WeightCollector& weights) {
  const Buffer& planned = program.buffers[tensor];
  const TensorData* constant = program.graph.constant(TensorId{static_cast<int32_t>(tensor)});
  if (!constant) return planned;
  return {Buffer::Place::Weights, weights.add(*constant), std::max<uint64_t>(planned.bytes, stored_bytes(*constant))};
}

void encode_program(const Program& program, WeightCollector& weights, ByteWriter& out) {
  Encoder encoder(out, weights);
  encoder(program);
}

void collect_weights(const Program& program, WeightCollector& weights) {
  ByteCounter ignored;
  Encoder encoder(ignored, weights);
  encoder(program);
}

uint64_t program_bytes(const Program& program) { return encoded_bytes(program); }

void leave_out_convolution_weights(const Program& program, WeightCollector& weights) {
  for (const Task& task : program.tasks) {
    if (task.engine != Engine::Conv && task.engine != Engine::Depthwise) continue;
    const Node& n = program.graph.node(task.node);
    for (size_t i = 0; i < n.own_input_count(); ++i)
      if (const TensorData* value = n.inputs[i] ? program.graph.constant(n.inputs[i]) : nullptr;
          value && value->dims().size() > 2)
        weights.leave_out(*value);
  }
}

Result<Program> decode_program(ByteReader& in, const WeightSection& weights) {
  Program program;
  Decoder decoder(in, weights);
  decoder(program);
  ORKNN_TRY(decoder.status());
  if (Status s = verify(program); !s) return damaged(std::move(s));
  return program;
}

void encode_model_facts(const Model& model, ByteWriter& out) {
  NoWeights none;
  Encoder encoder(out, none);
  encoder(model);
}

uint64_t model_facts_bytes(const Model& model) { return encoded_bytes(model); }

Result<Model> decode_model_facts(ByteReader& in) {
  Model model;
  const WeightSection none;
  Decoder decoder(in, none);
  decoder(model);
  ORKNN_TRY(decoder.status());
  model.name = printable_line(model.name);
  return model;
}

}  // namespace orknn::format
