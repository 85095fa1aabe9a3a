#include "import/onnx/upgrade.h"

#include <unordered_map>

#include "ir/infer.h"

namespace orknn::importer::onnx {
using namespace ir;

void infer_added_node(Graph& graph, const OpSet& ops, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<TensorFacts> facts;
  for (TensorId t : node.inputs) {
    TensorFacts& f = facts.emplace_back();
    if (!t) continue;
    f.dtype = graph.tensor(t).dtype;
    f.shape = graph.tensor(t).shape;
    f.constant = graph.constant(t);
    if (f.dtype == DType::Undefined) return;
  }
  auto result = infer_node(node, ops, std::move(facts));
  if (!result) return;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i]) continue;
    Tensor& out = graph.tensor(node.outputs[i]);
    out.dtype = (*result)[i].dtype;
    out.shape = std::move((*result)[i].shape);
  }
}

DType Upgrade::dtype(size_t i) const {
  if (!has_input(i)) return DType::Float32;
  const DType t = graph_.tensor(input(i)).dtype;
  return t == DType::Undefined ? DType::Float32 : t;
}

const Shape* Upgrade::shape(size_t i) const {
  if (!has_input(i)) return nullptr;
  const Tensor& t = graph_.tensor(input(i));
  return t.shape ? &*t.shape : nullptr;
}

std::optional<int64_t> Upgrade::rank(size_t i) const {
  const Shape* s = shape(i);
  return s ? std::optional(static_cast<int64_t>(s->size())) : std::nullopt;
}

Result<int64_t> Upgrade::need_rank(size_t i, std::string_view reason) const {
  if (const auto r = rank(i)) return *r;
  return unsupported("the rank of input " + std::to_string(i) + " must be known " + std::string(reason)).hint("give the input shapes with input_size_list");
}

namespace {
template <class T>
std::optional<T> take(Attributes& attributes, const std::string& name) {
  const T* value = attributes.get<T>(name);
  if (!value) return std::nullopt;
  std::optional<T> out = *value;
  attributes.erase(name);
  return out;
}
}  // namespace

std::optional<int64_t> Upgrade::take_int(const std::string& name) { return take<int64_t>(node.attributes, name); }
std::optional<double> Upgrade::take_float(const std::string& name) {
  if (const auto whole = take_int(name)) return static_cast<double>(*whole);
  return take<double>(node.attributes, name);
}
std::optional<std::string> Upgrade::take_string(const std::string& name) { return take<std::string>(node.attributes, name); }
std::optional<std::vector<int64_t>> Upgrade::take_ints(const std::string& name) {
  if (const auto single = take_int(name)) return std::vector<int64_t>{*single};
  return take<std::vector<int64_t>>(node.attributes, name);
}
std::optional<std::vector<double>> Upgrade::take_floats(const std::string& name) { return take<std::vector<double>>(node.attributes, name); }

void Upgrade::rename(const std::string& from, const std::string& to) {
  for (const auto& [name, value] : node.attributes) {
    if (name != from) continue;
    Attribute moved = value;
    node.attributes.erase(from);
    node.attributes.set(to, std::move(moved));
    return;
  }
}

void Upgrade::set_input(size_t i, TensorId tensor) {
  if (node.inputs.size() <= i) node.inputs.resize(i + 1);
  node.inputs[i] = tensor;
}

TensorId Upgrade::add_constant(std::string_view role, TensorData value) {
  return graph_.add_constant(node.name + "/" + std::string(role), std::move(value));
}
TensorId Upgrade::add_ints(std::string_view role, std::span<const int64_t> values) { return add_constant(role, TensorData::vector(values)); }
TensorId Upgrade::add_int_scalar(std::string_view role, int64_t value) { return add_constant(role, TensorData::scalar<int64_t>(value)); }
TensorId Upgrade::add_scalar(std::string_view role, double value, DType dtype) {
  return add_constant(role, convert(TensorData::scalar<double>(value).view(), dtype));
}

TensorId Upgrade::emit(std::string op, std::vector<TensorId> inputs, Attributes attributes) {
  const std::string name = node.name + "/" + op;
  const NodeId id = graph_.add_node(std::move(op), name, std::move(inputs), std::move(attributes));
  Node added = graph_.node(id);
  added.origin = node.origin;
  const TensorId output = added.output();
  graph_.replace_node(id, std::move(added));
  infer_added_node(graph_, ops_, id);
  return output;
}

void Upgrade::become(std::string op, std::vector<TensorId> inputs, Attributes attributes) {
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
}

Status Upgrade::only_first_output() {
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i])
      return unsupported("output " + std::to_string(i) + " ('" + graph_.tensor(node.outputs[i]).name + "') exists only in training");
  if (node.outputs.size() > 1) node.outputs.resize(1);
  return {};
}

namespace {
using RowsByOp = std::unordered_map<std::string_view, std::vector<UpgradeRow>>;
const RowsByOp& rows_by_op() {
  static const RowsByOp map = [] {
    RowsByOp m;
    for (const auto rows : {standard_rows(), microsoft_rows()})
      for (const UpgradeRow& row : rows) m[row.op].push_back(row);
    return m;
  }();
  return map;
}
}  // namespace

Status upgrade(Upgrade& u) {
  const auto it = rows_by_op().find(u.node.op);
  if (it == rows_by_op().end()) return {};
  for (const UpgradeRow& row : it->second)
    if (u.opset < row.below) ORKNN_TRY(row.apply(u));
  return {};
}

}  // namespace orknn::importer::onnx
