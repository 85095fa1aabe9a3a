#include "import/lower/emitter.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <unordered_set>

#include "ir/infer.h"
#include "ops/eval.h"

namespace orknn::importer {
using namespace ir;

namespace {
// Values up to this many elements are computed while importing; larger ones are left to the optimizer.
constexpr int64_t kMaxFolded = 4096;
// Nodes that are looked at to compute one value.
constexpr size_t kMaxFollowed = 256;

std::optional<std::vector<TensorFacts>> facts_of(const Graph& graph, const Node& node) {
  std::vector<TensorFacts> facts;
  for (TensorId t : node.inputs) {
    TensorFacts& f = facts.emplace_back();
    if (!t) continue;
    f.dtype = graph.tensor(t).dtype;
    f.shape = graph.tensor(t).shape;
    f.constant = graph.constant(t);
    if (f.dtype == DType::Undefined) return std::nullopt;
  }
  return facts;
}

// The value when every element is known, as the dtype the rule states.
TensorData known_content(const TensorFacts& facts) {
  if (!facts.content || !facts.shape) return {};
  auto dims = to_dims(*facts.shape);
  if (!dims) return {};
  std::vector<int64_t> values;
  for (const Dim& d : *facts.content) {
    if (!d.is_known()) return {};
    values.push_back(d.value());
  }
  if (element_count(*dims) != static_cast<int64_t>(values.size())) return {};
  return convert(TensorData::from<int64_t>(*std::move(dims), values).view(), facts.dtype);
}

// The known facts of the outputs go into the graph; returns the values known element by element.
std::vector<TensorData> infer_into(Graph& graph, const OpSet& ops, NodeId id) {
  const Node& node = graph.node(id);
  auto facts = facts_of(graph, node);
  if (!facts) return {};
  auto result = infer_node(node, ops, std::move(*facts));
  if (!result) return {};
  std::vector<TensorData> values(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i]) continue;
    values[i] = known_content((*result)[i]);
    Tensor& out = graph.tensor(node.outputs[i]);
    out.dtype = (*result)[i].dtype;
    out.shape = std::move((*result)[i].shape);
  }
  return values;
}
}  // namespace

void infer_added_node(Graph& graph, const OpSet& ops, NodeId id) { infer_into(graph, ops, id); }

DType Emitter::dtype_of(TensorId id) const {
  const DType t = id ? graph_.tensor(id).dtype : DType::Undefined;
  return t == DType::Undefined ? DType::Float32 : t;
}

const Shape* Emitter::shape_of(TensorId id) const { return id && graph_.tensor(id).shape ? &*graph_.tensor(id).shape : nullptr; }

std::optional<int64_t> Emitter::rank_of(TensorId id) const {
  const Shape* s = shape_of(id);
  return s ? std::optional(static_cast<int64_t>(s->size())) : std::nullopt;
}

std::optional<Dims> Emitter::dims_of(TensorId id) const {
  const Shape* s = shape_of(id);
  return s ? to_dims(*s) : std::nullopt;
}

Status Emitter::not_known(TensorId id, std::string problem) const {
  std::vector<TensorId> pending{id};
  std::unordered_set<int32_t> seen;
  while (!pending.empty()) {
    const TensorId at = pending.back();
    pending.pop_back();
    const NodeId producer = at ? graph_.producer(at) : NodeId{};
    if (!producer || !seen.insert(producer.index).second) continue;
    const Node& node = graph_.node(producer);
    if (auto facts = facts_of(graph_, node))
      if (auto result = infer_node(node, ops_, std::move(*facts)); !result) return result.status();
    pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
  }
  return unsupported(std::move(problem)).hint("give the input shapes with input_size_list");
}

namespace {
std::string needed(const Graph& graph, TensorId id, std::string_view what, std::string_view reason) {
  const std::string name = id ? "'" + graph.tensor(id).name + "'" : "an absent input";
  return std::string(what) + " of " + name + " must be known " + std::string(reason);
}
}  // namespace

Result<int64_t> Emitter::need_rank(TensorId id, std::string_view reason) const {
  if (const auto r = rank_of(id)) return *r;
  return not_known(id, needed(graph_, id, "the rank", reason));
}

Result<Dims> Emitter::need_dims(TensorId id, std::string_view reason) const {
  auto dims = dims_of(id);
  if (!dims) return not_known(id, needed(graph_, id, "the shape", reason));
  ORKNN_TRY(checked_element_count(*dims).status());
  return *std::move(dims);
}

Result<Dims> Emitter::need_dims(TensorId id, std::string_view reason, size_t rank) const {
  ORKNN_TRY_ASSIGN(Dims dims, need_dims(id, reason));
  if (dims.size() == rank) return dims;
  return shape_mismatch("'" + graph_.tensor(id).name + "' has the wrong rank")
      .expected(std::to_string(rank) + " axes " + std::string(reason))
      .found(to_string(dims));
}

Result<std::vector<int64_t>> Emitter::need_ints(TensorId id, std::string_view reason) const {
  const TensorData* value = graph_.constant(id);
  if (!value)
    return unsupported(needed(graph_, id, "the value", reason)).hint("it has to be a constant or follow from the input shapes");
  if (is_float(value->dtype()))
    return invalid_model("'" + graph_.tensor(id).name + "' must hold integers").found(std::string(dtype_name(value->dtype())));
  return to_ints(value->view());
}

Result<std::vector<double>> Emitter::need_doubles(TensorId id, std::string_view reason) const {
  const TensorData* value = graph_.constant(id);
  if (!value) return unsupported(needed(graph_, id, "the value", reason)).hint("it has to be a constant");
  return to_doubles(value->view());
}

namespace {
template <class T>
Result<T> only_one(const Graph& graph, TensorId id, Result<std::vector<T>> values) {
  if (!values) return values.status();
  if (values->size() == 1) return values->front();
  return invalid_model("'" + graph.tensor(id).name + "' must hold one number").found(std::to_string(values->size()));
}
}  // namespace

Result<int64_t> Emitter::need_integer(TensorId id, std::string_view reason) const {
  return only_one(graph_, id, need_ints(id, reason));
}
Result<double> Emitter::need_number(TensorId id, std::string_view reason) const {
  return only_one(graph_, id, need_doubles(id, reason));
}

TensorId Emitter::add_constant(std::string_view role, TensorData value) {
  return graph_.add_constant(layer_ + "/" + std::string(role), std::move(value));
}
TensorId Emitter::add_ints(std::string_view role, std::span<const int64_t> values) {
  return add_constant(role, TensorData::vector(values));
}
TensorId Emitter::add_int_scalar(std::string_view role, int64_t value) {
  return add_constant(role, TensorData::scalar<int64_t>(value));
}
TensorId Emitter::add_scalar(std::string_view role, double value, DType dtype) {
  return add_constant(role, convert(TensorData::scalar<double>(value).view(), dtype));
}

TensorId Emitter::emit(std::string op, std::vector<TensorId> inputs, Attributes attributes) {
  return emit_all(std::move(op), std::move(inputs), std::move(attributes), 1)[0];
}

TensorId Emitter::emit_kept(std::string op, std::vector<TensorId> inputs, Attributes attributes) {
  const NodeId id = add_node(std::move(op), std::move(inputs), std::move(attributes), 1);
  infer_added_node(graph_, ops_, id);
  return graph_.node(id).output();
}

std::vector<TensorId> Emitter::emit_all(std::string op, std::vector<TensorId> inputs, Attributes attributes, size_t outputs) {
  const NodeId id = add_node(std::move(op), std::move(inputs), std::move(attributes), outputs);
  std::vector<TensorId> results = graph_.node(id).outputs;
  settle_node(id);
  return results;
}

void Emitter::settle(TensorId id) {
  const auto has_body = [](const Node& node) {  // it may iterate for ever
    return std::ranges::any_of(node.attributes, [](const auto& a) { return kind_of(a.second) == AttributeKind::Graph; });
  };
  std::vector<TensorId> pending{id};
  std::unordered_set<int32_t> seen;
  while (!pending.empty()) {
    const TensorId at = pending.back();
    const NodeId producer = at ? graph_.producer(at) : NodeId{};
    const auto dims = dims_of(at);
    const bool is_small = !dims || element_count(*dims) <= kMaxFolded;
    const bool is_open = producer && is_small && !has_body(graph_.node(producer));
    if (is_open) settle_node(producer);
    if (!is_open || !graph_.is_alive(producer) || seen.size() == kMaxFollowed || !seen.insert(producer.index).second) {
      pending.pop_back();
      continue;
    }
    const std::vector<TensorId>& inputs = graph_.node(producer).inputs;
    pending.insert(pending.end(), inputs.begin(), inputs.end());
  }
}

NodeId Emitter::add_node(std::string op, std::vector<TensorId> inputs, Attributes attributes, size_t outputs) {
  Node node;
  node.name = layer_ + "/" + op;
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.origin = origin_;
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(graph_.add_tensor(i == 0 ? node.name : node.name + ":" + std::to_string(i)));
  return graph_.add_node(std::move(node));
}

// Infers the shapes of a node's outputs; a node whose values are known is replaced by them.
void Emitter::settle_node(NodeId id) {
  const std::vector<TensorData> known = infer_into(graph_, ops_, id);
  if (known.empty() || !std::ranges::all_of(known, &TensorData::has_value)) return fold(id);
  const std::vector<TensorId> results = graph_.node(id).outputs;
  graph_.remove_node(id);
  for (size_t i = 0; i < results.size(); ++i) graph_.tensor(results[i]).constant = known[i];
}

// Replaces a node of constants by its value, when that is small.
void Emitter::fold(NodeId id) {
  const Node node = graph_.node(id);
  const OpDef* def = ops_.find(node.op);
  if (!def || !def->deterministic) return;
  std::vector<TensorData> inputs;
  for (TensorId t : node.inputs) {
    inputs.emplace_back();
    if (!t) continue;
    const TensorData* value = graph_.constant(t);
    if (!value || value->count() > kMaxFolded) return;
    inputs.back() = *value;
  }
  for (TensorId t : node.outputs) {
    const auto dims = dims_of(t);
    if (!dims || element_count(*dims) > kMaxFolded) return;
  }
  auto values = ops::eval_node(node, ops_, inputs);
  // A network must not depend on how much memory there was; as everywhere in here, the end of memory is an exception.
  if (!values && values.status().code() == Code::OutOfMemory) throw std::bad_alloc();
  if (!values) return;  // ir::infer_shapes and the optimizer report it with the node
  graph_.remove_node(id);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Tensor& t = graph_.tensor(node.outputs[i]);
    t.constant = (*values)[i];
    t.dtype = t.constant.dtype();
  }
}

Status wrong_input_count(size_t found, size_t least, size_t most) {
  std::string expected = std::to_string(least);
  if (most != least) expected = most == SIZE_MAX ? "at least " + expected : expected + " to " + std::to_string(most);
  return invalid_model("the number of inputs is wrong").expected(std::move(expected)).found(std::to_string(found));
}

Status missing_input(size_t i, size_t count) {
  return invalid_model("input " + std::to_string(i) + " is missing")
      .found(std::to_string(count) + (count == 1 ? " input" : " inputs"));
}

Result<TensorId> Emitter::emit_same(std::string_view op, std::span<const TensorId> inputs) {
  const OpDef* def = ops_.find(op);
  ORKNN_ASSERT(def, "rows name operators of ours");
  const auto least = static_cast<size_t>(def->inputs.min), most = static_cast<size_t>(def->inputs.max);
  if (inputs.size() < least || inputs.size() > most) return wrong_input_count(inputs.size(), least, most);
  return emit(std::string(op), {inputs.begin(), inputs.end()});
}

TensorId Emitter::clip(TensorId x, std::optional<double> least, std::optional<double> most) {
  return emit("Clip", {x, least ? scalar_like(x, *least, "min") : TensorId{}, most ? scalar_like(x, *most, "max") : TensorId{}});
}

TensorId Emitter::linear(TensorId rows, TensorId weights, TensorId bias) {
  std::vector<TensorId> inputs{rows, weights};
  if (bias) inputs.push_back(bias);
  return emit("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
}

TensorId Emitter::reduce(std::string_view op, TensorId x, const std::vector<int64_t>& axes, bool keep) {
  return axes.empty() ? x : emit(std::string(op), {x, add_ints("axes", axes)}, {{"keepdims", int64_t{keep}}});
}

TensorId Emitter::unsqueeze(TensorId x, const std::vector<int64_t>& axes) {
  return axes.empty() ? x : emit("Unsqueeze", {x, add_ints("axes", axes)});
}

TensorId Emitter::squeeze(TensorId x, const std::vector<int64_t>& axes) {
  return axes.empty() ? x : emit("Squeeze", {x, add_ints("axes", axes)});
}

TensorId Emitter::swap_axes(TensorId x, int64_t a, int64_t b) {
  const auto rank = rank_of(x);
  if (!rank) return transpose(x, {1, 0});
  const auto is_axis = [&](int64_t i) { return -*rank <= i && i < *rank; };
  if (!is_axis(a) || !is_axis(b)) return emit("Transpose", {x}, {{"perm", std::vector{a, b}}});  // the shape rule refuses it
  std::vector<int64_t> permutation(static_cast<size_t>(*rank));
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  const auto at = [&](int64_t i) -> int64_t& { return permutation[static_cast<size_t>(i < 0 ? i + *rank : i)]; };
  std::swap(at(a), at(b));
  return transpose(x, std::move(permutation));
}

TensorId Emitter::slice(TensorId x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  return slice(x, {begin}, {end}, {axis}, step == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{step});
}

TensorId Emitter::slice(TensorId x, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                        const std::vector<int64_t>& axes, const std::vector<int64_t>& steps) {
  std::vector<TensorId> inputs{x, add_ints("starts", starts), add_ints("ends", ends), add_ints("axes", axes)};
  if (!steps.empty()) inputs.push_back(add_ints("steps", steps));
  return emit("Slice", std::move(inputs));
}

TensorId Emitter::reverse(TensorId x, const std::vector<int64_t>& axes) {
  // The least integer itself would stand for an extent that is not known.
  const std::vector<int64_t> last(axes.size(), -1), before_first(axes.size(), INT64_MIN + 1);
  return axes.empty() ? x : slice(x, last, before_first, axes, last);
}

TensorId Emitter::concat(std::vector<TensorId> parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : emit("Concat", std::move(parts), {{"axis", axis}});
}

TensorId Emitter::stack(std::vector<TensorId> parts, int64_t axis) {
  for (TensorId& part : parts) part = unsqueeze(part, {axis});
  return concat(std::move(parts), axis);
}

std::vector<TensorId> Emitter::split(TensorId x, int64_t axis, const std::vector<int64_t>& sizes) {
  if (sizes.size() == 1) return {x};
  return emit_all("Split", {x, add_ints("split", sizes)}, {{"axis", axis}}, sizes.size());
}

TensorId Emitter::expand(TensorId x, std::span<const int64_t> dims) {
  const auto have = dims_of(x);
  if (have && std::ranges::equal(*have, dims)) return x;
  return emit("Expand", {x, add_ints("shape", dims)});
}

TensorId Emitter::full(std::span<const int64_t> dims, double value, DType dtype) {
  const TensorData one = convert(TensorData::scalar<double>(value).view(), dtype).reshaped({1});
  return emit("ConstantOfShape", {add_ints("shape", dims)}, {{"value", one}});
}

TensorId Emitter::full_like(TensorId x, double value) { return emit("Expand", {scalar_like(x, value), unary("Shape", x)}); }

Result<std::vector<int64_t>> Emitter::axes_of(std::span<const int64_t> axes, int64_t rank) {
  std::vector<int64_t> list;
  for (int64_t axis : axes) {
    ORKNN_TRY_ASSIGN(const int64_t found, normalize_axis(axis, rank));
    list.push_back(found);
  }
  for (int64_t i = 0; axes.empty() && i < rank; ++i) list.push_back(i);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

TensorId Emitter::transpose(TensorId x, std::vector<int64_t> permutation) {
  bool identity = true;
  for (size_t i = 0; i < permutation.size(); ++i) identity &= permutation[i] == static_cast<int64_t>(i);
  return identity ? x : emit("Transpose", {x}, {{"perm", std::move(permutation)}});
}

TensorId Emitter::reshape(TensorId x, std::vector<int64_t> shape) {
  if (const auto dims = dims_of(x); dims && *dims == shape) return x;
  return emit("Reshape", {x, add_ints("shape", shape)});
}

TensorId Emitter::cast(TensorId x, DType to) {
  if (graph_.tensor(x).dtype == to) return x;
  return emit("Cast", {x}, {{"to", static_cast<int64_t>(to)}});
}

Result<TensorId> Emitter::channels_first(TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, need_rank(x, "to move its channels"));
  if (rank < 3) return x;
  std::vector<int64_t> permutation{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) permutation.push_back(i);
  return transpose(x, std::move(permutation));
}

Result<TensorId> Emitter::channels_last(TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, need_rank(x, "to move its channels"));
  if (rank < 3) return x;
  std::vector<int64_t> permutation{0};
  for (int64_t i = 2; i < rank; ++i) permutation.push_back(i);
  permutation.push_back(1);
  return transpose(x, std::move(permutation));
}

}  // namespace orknn::importer
