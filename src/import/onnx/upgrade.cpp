#include "import/onnx/upgrade.h"

#include <unordered_map>

namespace orknn::importer::onnx {
using namespace ir;

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
std::optional<std::vector<double>> Upgrade::take_floats(const std::string& name) {
  return take<std::vector<double>>(node.attributes, name);
}

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

void Upgrade::become(std::string op, std::vector<TensorId> inputs, Attributes attributes) {
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
}

Status Upgrade::only_first_output() {
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i])
      return unsupported("output " + std::to_string(i) + " ('" + graph_.tensor(node.outputs[i]).name +
                         "') exists only in training");
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
