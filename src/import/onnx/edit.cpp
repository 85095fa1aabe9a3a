#include "import/onnx/edit.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/files.h"
#include "base/utf8.h"
#include "import/importer.h"
#include "import/onnx/axis_formula.h"
#include "import/onnx/parse.h"
#include "import/wire/writer.h"

namespace orknn::importer::onnx {
namespace {

using wire::Field;
using wire::WireType;
using wire::Writer;

// Field numbers of onnx.proto.
enum ModelField : uint32_t { kModelGraph = 7 };
enum GraphField : uint32_t { kGraphNode = 1, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12, kGraphValueInfo = 13 };
enum NodeField : uint32_t { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeType = 4, kNodeAttribute = 5 };
enum AttributeField : uint32_t {
  kAttributeName = 1,
  kAttributeInt = 3,
  kAttributeTensor = 5,
  kAttributeGraph = 6,
  kAttributeInts = 8,
  kAttributeGraphs = 11,
  kAttributeKind = 20
};
enum ValueField : uint32_t { kValueName = 1, kValueType = 2 };
constexpr uint32_t kTensorName = 8;
constexpr uint64_t kInt64Type = 7;           // of TensorProto
constexpr int64_t kFirstReshapeOfInput = 5;  // opset since which Reshape takes its shape as an input

// A tensor of the model's border that gets a new shape.
struct Change {
  std::string tensor, formula;
  bool is_input = false;
  const ValueInfoProto* info = nullptr;
  AxisPlan plan;
  std::string inner;  // what the rest of the graph calls the tensor in its old shape
};

std::string_view text_of(const Field& field) {
  std::string_view text;
  (void)field.get(text);
  return text;
}

// --- names

using Names = std::set<std::string, std::less<>>;

void collect_names(const GraphProto& graph, Names& names) {
  for (const NodeProto& node : graph.nodes) {
    names.insert(std::string(node.name));
    names.insert(node.inputs.begin(), node.inputs.end());
    names.insert(node.outputs.begin(), node.outputs.end());
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) collect_names(*attribute.graph, names);
  }
  for (const TensorProto& t : graph.initializers) names.insert(std::string(t.name));
  for (const auto* list : {&graph.inputs, &graph.outputs})
    for (const ValueInfoProto& value : *list) names.insert(std::string(value.name));
}

std::string fresh_name(Names& names, const std::string& wanted) {
  std::string name = wanted;
  for (size_t i = 1; !names.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

std::string joined(const std::vector<size_t>& order) {
  std::string text;
  for (size_t axis : order) text += (text.empty() ? "" : ", ") + std::to_string(axis);
  return text;
}

// --- nodes that bring a tensor from one shape to another

class ShapeNodes {
 public:
  ShapeNodes(Writer& graph, Names& names, int64_t opset, std::vector<std::string>& log)
      : graph_(graph), names_(names), opset_(opset), log_(log) {}

  // Nodes from `from` to the tensor `to`: reshape to one extent per axis, transpose, reshape; what changes nothing is left out.
  Status between(const std::string& from, const AxisExtents& first, const AxisExtents& axes, const std::vector<size_t>& order,
                 const AxisExtents& last, const std::string& to) {
    const bool moves = !std::is_sorted(order.begin(), order.end());
    AxisExtents moved;
    for (size_t axis : order) moved.push_back(axes[axis]);
    const bool splits = moves && first != axes, joins = moves ? moved != last : first != last;
    log_.push_back("Insert ops to transform " + to_string(first) + " to " + to_string(last) + ":");
    std::string current = from;
    if (splits) {
      current = fresh_name(names_, to + "_split");
      ORKNN_TRY(reshape(from, first, axes, current));
    }
    if (moves) {
      const std::string result = joins ? fresh_name(names_, to + "_moved") : to;
      transpose(current, axes, order, moved, result);
      current = result;
    }
    if (joins) ORKNN_TRY(reshape(current, moves ? moved : first, last, to));
    if (!splits && !moves && !joins) node("Identity", {current}, to);
    return {};
  }

 private:
  void node(const char* type, const std::vector<std::string>& inputs, const std::string& output,
            const std::vector<Writer>& attributes = {}) {
    Writer node;
    for (const std::string& input : inputs) node.text(kNodeInput, input);
    node.text(kNodeOutput, output).text(kNodeName, fresh_name(names_, output + "_" + type)).text(kNodeType, type);
    for (const Writer& attribute : attributes) node.message(kNodeAttribute, attribute);
    graph_.message(kGraphNode, node);
  }

  static Writer ints(const char* name, const std::vector<int64_t>& values) {
    constexpr uint64_t kInts = 7;
    Writer attribute;
    attribute.text(kAttributeName, name).number(kAttributeKind, kInts);
    for (int64_t value : values) attribute.number(kAttributeInts, static_cast<uint64_t>(value));
    return attribute;
  }
  static Writer integer(const char* name, int64_t value) {
    constexpr uint64_t kInt = 2;
    return Writer().text(kAttributeName, name).number(kAttributeKind, kInt).number(kAttributeInt, static_cast<uint64_t>(value));
  }

  // A node that gives a list of integers; returns its tensor.
  std::string constant(const std::string& base, const std::vector<int64_t>& values) {
    enum TensorField : uint32_t { kDims = 1, kDataType = 2, kRawData = 9 };
    constexpr uint64_t kTensor = 4;
    std::string raw;
    for (int64_t value : values)
      for (int i = 0; i < 8; ++i) raw += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
    Writer tensor, attribute;
    tensor.number(kDims, values.size()).number(kDataType, kInt64Type).text(kRawData, raw);
    attribute.text(kAttributeName, "value").number(kAttributeKind, kTensor).message(kAttributeTensor, tensor);
    const std::string name = fresh_name(names_, base);
    node("Constant", {}, name, {attribute});
    return name;
  }

  void transpose(const std::string& from, const AxisExtents& before, const std::vector<size_t>& order, const AxisExtents& after,
                 const std::string& to) {
    log_.push_back("- Insert transpose op. " + to_string(before) + " transpose(" + joined(order) + ") to " + to_string(after) +
                   ".");
    node("Transpose", {from}, to, {ints("perm", {order.begin(), order.end()})});
  }

  Status reshape(const std::string& from, const AxisExtents& before, const AxisExtents& after, const std::string& to) {
    log_.push_back("- Insert reshape op. " + to_string(before) + " reshape to " + to_string(after) + ".");
    std::vector<int64_t> shape;
    size_t inferred = 0;
    for (size_t i = 0; i < after.size(); ++i) {
      const bool copied = !after[i].is_known() && i < before.size() && before[i] == after[i];
      inferred += !after[i].is_known() && !copied;
      shape.push_back(after[i].is_known() ? after[i].known : copied ? 0 : -1);  // 0: what the input has there
      if (after[i].is_known() && after[i].known == 0) return unsupported("tensors without elements cannot be reshaped");
    }
    if (inferred > 1) return reshape_computed(from, before, after, to);
    if (opset_ < kFirstReshapeOfInput)
      node("Reshape", {from}, to, {ints("shape", shape)});
    else
      node("Reshape", {from, constant(to + "_shape", shape)}, to);
    return {};
  }

  // Several open dimensions change their places: the new shape is computed from the old one.
  Status reshape_computed(const std::string& from, const AxisExtents& before, const AxisExtents& after, const std::string& to) {
    if (opset_ < kFirstReshapeOfInput)
      return unsupported("opset " + std::to_string(opset_) + " cannot reshape several open dimensions");
    const std::string whole = fresh_name(names_, to + "_old_shape");
    node("Shape", {from}, whole);
    std::vector<std::string> parts;
    for (const AxisExtent& extent : after) {
      std::string part = extent.known == 1 && !extent.is_known() ? "" : constant(to + "_extent", {extent.known});
      for (char letter : extent.open) {
        ORKNN_TRY_ASSIGN(const std::string size, size_of(letter, whole, before, to));
        if (part.empty()) {
          part = size;
          continue;
        }
        const std::string product = fresh_name(names_, to + "_extent");
        node("Mul", {part, size}, product);
        part = product;
      }
      parts.push_back(part);
    }
    const std::string shape = fresh_name(names_, to + "_shape");
    node("Concat", parts, shape, {integer("axis", 0)});
    node("Reshape", {from, shape}, to);
    return {};
  }

  // The size of an open axis, read from the shape of a tensor that has it.
  Result<std::string> size_of(char letter, const std::string& shape, const AxisExtents& extents, const std::string& base) {
    const auto found =
        std::find_if(extents.begin(), extents.end(), [&](const AxisExtent& e) { return e.open == std::string(1, letter); });
    if (found == extents.end())
      return unsupported("the size of the axis '" + std::string(1, letter) +
                         "' is open and joined with another open one: it cannot be split off again");
    const std::string size = fresh_name(names_, base + "_extent");
    node("Gather", {shape, constant(base + "_index", {found - extents.begin()})}, size, {integer("axis", 0)});
    if (found->known == 1) return size;
    const std::string part = fresh_name(names_, base + "_extent");
    node("Div", {size, constant(base + "_divisor", {found->known})}, part);
    return part;
  }

  Writer& graph_;
  Names& names_;
  int64_t opset_;
  std::vector<std::string>& log_;
};

// --- the file, with tensors renamed

using Renames = std::map<std::string, std::string, std::less<>>;

// Copies the fields of `message`; `replace(field, writer)` returns true for those that it wrote itself.
template <class Replace>
Status copy_message(Bytes message, Writer& to, Replace&& replace) {
  return wire::for_each_field(message, [&](const Field& field) -> Status {
    ORKNN_TRY_ASSIGN(const bool done, replace(field));
    if (!done) to.field(field);
    return {};
  });
}

Status rename_graph(Bytes message, const Renames& renames, Writer& to, int depth);

Status rename_attribute(Bytes message, const Renames& renames, Writer& to, int depth) {
  return copy_message(message, to, [&](const Field& field) -> Result<bool> {
    if (field.type != WireType::Bytes || (field.number != kAttributeGraph && field.number != kAttributeGraphs)) return false;
    Writer body;
    ORKNN_TRY(rename_graph(field.bytes, renames, body, depth + 1));
    to.message(field.number, body);
    return true;
  });
}

Status rename_node(Bytes message, const Renames& renames, Writer& to, int depth) {
  return copy_message(message, to, [&](const Field& field) -> Result<bool> {
    if (field.type != WireType::Bytes) return false;
    if (field.number == kNodeInput || field.number == kNodeOutput) {
      const auto renamed = renames.find(text_of(field));
      if (renamed == renames.end()) return false;
      to.text(field.number, renamed->second);
      return true;
    }
    if (field.number != kNodeAttribute) return false;
    Writer attribute;
    ORKNN_TRY(rename_attribute(field.bytes, renames, attribute, depth));
    to.message(field.number, attribute);
    return true;
  });
}

// A body: its nodes, and outputs that are tensors of the graph around it.
Status rename_graph(Bytes message, const Renames& renames, Writer& to, int depth) {
  if (depth > wire::kMaxDepth) return invalid_model("graphs are nested too deeply");
  return copy_message(message, to, [&](const Field& field) -> Result<bool> {
    if (field.type != WireType::Bytes) return false;
    Writer part;
    if (field.number == kGraphNode) {
      ORKNN_TRY(rename_node(field.bytes, renames, part, depth));
    } else if (field.number == kGraphOutput) {
      ORKNN_TRY(copy_message(field.bytes, part, [&](const Field& inner) -> Result<bool> {
        const auto renamed = inner.number == kValueName ? renames.find(text_of(inner)) : renames.end();
        if (renamed != renames.end()) part.text(kValueName, renamed->second);
        return renamed != renames.end();
      }));
    } else {
      return false;
    }
    to.message(field.number, part);
    return true;
  });
}

// A dimension as the file stated it: an open one keeps its name when it is a whole dimension of the old shape.
Writer dimension(const Change& change, size_t index) {
  enum DimensionField : uint32_t { kValue = 1, kParameter = 2 };
  const AxisExtent& extent = change.plan.after[index];
  if (extent.is_known()) return Writer().number(kValue, static_cast<uint64_t>(extent.known));
  const std::string& letters = change.plan.right_names[index];
  const auto& before = change.plan.left_names;
  const auto same = std::find(before.begin(), before.end(), letters);
  if (same == before.end()) return {};
  const DimProto& old = change.info->type.shape[static_cast<size_t>(same - before.begin())];
  return old.kind == DimProto::Kind::Parameter ? Writer().text(kParameter, old.parameter) : Writer();
}

Writer value_info(const Change& change) {
  enum TypeField : uint32_t { kTensorType = 1, kElementType = 1, kShape = 2, kDimension = 1 };
  Writer shape, tensor, type, info;
  for (size_t i = 0; i < change.plan.after.size(); ++i) shape.message(kDimension, dimension(change, i));
  tensor.number(kElementType, static_cast<uint64_t>(change.info->type.element_type)).message(kShape, shape);
  type.message(kTensorType, tensor);
  info.text(kValueName, change.tensor).message(kValueType, type);
  return info;
}

// --- the request

std::string names_of_values(const std::vector<ValueInfoProto>& values) {
  std::string text;
  for (const ValueInfoProto& value : values) text += std::string(text.empty() ? "" : ", ") + "'" + to_utf8(value.name) + "'";
  return text;
}

const ValueInfoProto* find_value(const std::vector<ValueInfoProto>& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const ValueInfoProto& v) { return v.name == name; });
  return found == values.end() ? nullptr : &*found;
}

Result<Change> plan_change(const GraphProto& graph, const std::string& tensor, const std::string& text, bool is_input) {
  const char* kind = is_input ? "input" : "output";
  const auto& values = is_input ? graph.inputs : graph.outputs;
  Change change{tensor, text, is_input, find_value(values, tensor)};
  if (!change.info)
    return Status::error(Code::NotFound, "the model has no " + std::string(kind) + " '" + to_utf8(tensor) + "'")
        .expected("one of " + names_of_values(values));
  const bool is_both = find_value(is_input ? graph.outputs : graph.inputs, tensor) != nullptr;
  if (is_both) return unsupported("'" + to_utf8(tensor) + "' is an input and an output at once");
  const TypeProto& type = change.info->type;
  if (type.kind != TypeProto::Kind::Tensor || !type.has_shape)
    return unsupported("the file states no shape of " + std::string(kind) + " '" + to_utf8(tensor) + "'")
        .hint("export the model with the shapes of its inputs and outputs");
  ir::Dims dims;
  for (const DimProto& d : type.shape) dims.push_back(d.kind == DimProto::Kind::Value && d.value >= 0 ? d.value : -1);
  ORKNN_TRY_ASSIGN(const AxisFormula formula, parse_axis_formula(text));
  auto plan = apply_axis_formula(formula, dims);
  if (!plan)
    return Status(plan.status())
        .hint("formula '" + text + "' of " + std::string(kind) + " '" + to_utf8(tensor) + "' with the shape " +
              ir::to_string(dims));
  change.plan = std::move(*plan);
  return change;
}

Result<std::vector<Change>> plan_changes(const GraphProto& graph, const TensorFormulas& inputs, const TensorFormulas& outputs) {
  std::vector<Change> changes;
  Status problems;
  for (const bool is_input : {true, false})
    for (const auto& [tensor, formula] : is_input ? inputs : outputs) {
      auto change = plan_change(graph, tensor, formula, is_input);
      if (change)
        changes.push_back(std::move(*change));
      else
        problems.also(change.status());
    }
  if (!problems) return problems;
  return changes;
}

int64_t opset_of(const ModelProto& model) {
  for (const OperatorSetProto& set : model.op_sets)
    if (set.domain.empty() || set.domain == "ai.onnx") return set.version;
  return 1;
}

// The restoring nodes of all inputs, or those that make the outputs.
Status insert_nodes(const std::vector<Change>& changes, bool inputs, int64_t opset, Names& names, Writer& graph,
                    std::vector<std::string>& log) {
  for (const Change& change : changes) {
    if (change.is_input != inputs) continue;
    const AxisPlan& plan = change.plan;
    log.push_back("For '" + to_utf8(change.tensor) + "':'" + to_utf8(change.formula) + "'");
    log.push_back(std::string(inputs ? "Input" : "Output") + ":'" + to_utf8(change.tensor) + "' was reset as shape-" +
                  to_string(plan.after) + ".(Origin shape is " + to_string(plan.before) + ")");
    ShapeNodes nodes(graph, names, opset, log);
    if (!inputs) {
      ORKNN_TRY(nodes.between(change.inner, plan.before, plan.left_axes, plan.to_right, plan.after, change.tensor));
      continue;
    }
    std::vector<size_t> to_left(plan.to_right.size());
    for (size_t i = 0; i < to_left.size(); ++i) to_left[plan.to_right[i]] = i;
    ORKNN_TRY(nodes.between(change.tensor, plan.after, plan.right_axes, to_left, plan.before, change.inner));
  }
  return {};
}

// The graph with the changes; large initializers stay in the file.
Status write_graph(Bytes message, const ModelProto& model, std::vector<Change>& changes, Writer& to,
                   std::vector<std::string>& log) {
  Names names;
  collect_names(model.graph, names);
  Renames renames;
  std::map<std::string_view, const Change*> changed;
  for (Change& change : changes) {
    change.inner = fresh_name(names, change.tensor + (change.is_input ? "_restored" : "_original"));
    renames[change.tensor] = change.inner;
    changed[change.tensor] = &change;
  }
  ORKNN_TRY(insert_nodes(changes, true, opset_of(model), names, to, log));
  ORKNN_TRY(copy_message(message, to, [&](const Field& field) -> Result<bool> {
    if (field.type != WireType::Bytes) return false;
    Writer part;
    if (field.number == kGraphNode) {
      ORKNN_TRY(rename_node(field.bytes, renames, part, 0));
    } else if (field.number == kGraphInitializer) {  // an output may be a constant
      ORKNN_TRY(copy_message(field.bytes, part, [&](const Field& inner) -> Result<bool> {
        const auto renamed = inner.number == kTensorName ? changed.find(text_of(inner)) : changed.end();
        if (renamed == changed.end() || renamed->second->is_input) return false;
        part.text(kTensorName, renamed->second->inner);
        return true;
      }));
    } else if (field.number == kGraphInput || field.number == kGraphOutput || field.number == kGraphValueInfo) {
      std::string_view name;
      ORKNN_TRY(read_fields(field.bytes, wire::Slot{kValueName, name}));
      const auto found = changed.find(name);
      if (found == changed.end()) return false;
      if (field.number == kGraphValueInfo) return true;  // stated the old shape
      part = value_info(*found->second);
    } else {
      return false;
    }
    to.message(field.number, part);
    return true;
  }));
  return insert_nodes(changes, false, opset_of(model), names, to, log);
}

Status check_overridable(const GraphProto& graph, const std::vector<Change>& changes) {
  for (const Change& change : changes)
    for (const TensorProto& t : graph.initializers)
      if (change.is_input && t.name == change.tensor)
        return unsupported("'" + to_utf8(change.tensor) + "' has a value in the file: it is a weight, not an input");
  return {};
}

Status write_model(Bytes file, const Writer& graph, Writer& to) {
  size_t graphs = 0;
  ORKNN_TRY(copy_message(file, to, [&](const Field& field) -> Result<bool> {
    if (field.number != kModelGraph || field.type != WireType::Bytes) return false;
    ++graphs;
    to.message(kModelGraph, graph);
    return true;
  }));
  return graphs == 1 ? Status() : invalid_model("the file holds " + std::to_string(graphs) + " graphs");
}

Result<Bytes> graph_message(Bytes file) {
  ORKNN_TRY_ASSIGN(const std::vector<Bytes> graphs, wire::messages_of(file, kModelGraph));
  return graphs.empty() ? invalid_model("the file holds no graph") : Result<Bytes>(graphs.front());
}

// --- weights in files of their own

void collect_locations(const GraphProto& graph, std::set<std::string>& locations) {
  const auto add = [&](const TensorProto& t) {
    if (!t.is_external) return;
    for (const StringEntry& entry : t.external_data)
      if (entry.key == "location") locations.insert(std::string(entry.value));
  };
  for (const TensorProto& t : graph.initializers) add(t);
  for (const NodeProto& node : graph.nodes)
    for (const AttributeProto& attribute : node.attributes) {
      if (attribute.tensor) add(*attribute.tensor);
      if (attribute.graph) collect_locations(*attribute.graph, locations);
    }
}

// The edited model refers to the same files; in another folder it needs copies of them.
Status copy_external_data(const GraphProto& graph, const std::string& from, const std::string& to) {
  std::error_code ignored;
  if (std::filesystem::equivalent(from, to, ignored)) return {};
  std::set<std::string> locations;
  collect_locations(graph, locations);
  for (const std::string& location : locations) {
    const std::filesystem::path path = std::filesystem::path(location).lexically_normal();
    const std::filesystem::path source = std::filesystem::path(from) / path, target = std::filesystem::path(to) / path;
    if (path.is_absolute() || path.empty() || *path.begin() == "..")
      return invalid_model("the model refers to weights outside of its folder").found(to_utf8(location));
    if (!std::filesystem::exists(source, ignored)) continue;  // whoever loads the model gets the error
    if (std::filesystem::equivalent(source, target, ignored)) continue;
    ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(source.string()));
    std::filesystem::create_directories(target.parent_path(), ignored);
    ORKNN_TRY(write_file_atomically(target.string(), [&](FileWriter& out) { return out.write(file->bytes()); }));
    ORKNN_TRY(file->check());
  }
  return {};
}

// The model's inputs as a calibration list has them: weights that old files state as inputs are none.
std::vector<EditedInput> inputs_of(const GraphProto& graph, const std::vector<Change>& changes) {
  std::set<std::string_view> weights;
  for (const TensorProto& t : graph.initializers) weights.insert(t.name);
  std::vector<EditedInput> inputs;
  for (const ValueInfoProto& value : graph.inputs) {
    if (weights.count(value.name)) continue;
    EditedInput input{std::string(value.name), {}, std::nullopt};
    for (const DimProto& d : value.type.shape) input.dims.push_back(d.kind == DimProto::Kind::Value ? d.value : -1);
    for (const Change& change : changes)
      if (change.is_input && change.tensor == input.name) input.formula = change.formula;
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Result<Edited> edit_mapped(const MappedFile& file, const std::string& path, const std::string& export_path,
                           const TensorFormulas& inputs, const TensorFormulas& outputs) {
  ORKNN_TRY_ASSIGN(const ModelProto model, parse_model(file.bytes()));
  if (!model.has_graph) return invalid_model("this is not an ONNX model: it holds no graph");
  ORKNN_TRY_ASSIGN(std::vector<Change> changes, plan_changes(model.graph, inputs, outputs));
  ORKNN_TRY(check_overridable(model.graph, changes));
  ORKNN_TRY_ASSIGN(const Bytes message, graph_message(file.bytes()));
  Edited edited{{}, inputs_of(model.graph, changes)};
  Writer graph, whole;
  ORKNN_TRY(write_graph(message, model, changes, graph, edited.log));
  ORKNN_TRY(write_model(file.bytes(), graph, whole));
  ORKNN_TRY(copy_external_data(model.graph, directory_of(path), directory_of(export_path)));
  ORKNN_TRY(write_file_atomically(export_path, [&](FileWriter& out) {
    ORKNN_TRY(whole.write(out));
    return file.check();
  }));
  return edited;
}
}  // namespace

Result<Edited> edit_model(const std::string& model, const std::string& export_path, const TensorFormulas& inputs,
                          const TensorFormulas& outputs) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(model));
  const Result<const Importer*> kind = sniff(model, file->bytes());
  if (kind && (*kind)->name != "onnx")
    return invalid_argument("the file is a model of " + std::string((*kind)->name) + ", not of onnx")
        .model(model)
        .stage("onnx_edit");
  if (!kind) return Status(kind.status()).model(model).stage("onnx_edit");
  auto edited = edit_mapped(*file, model, export_path, inputs, outputs);
  if (!edited) return std::move(edited).status().model(model).stage("onnx_edit");
  return edited;
}

}  // namespace orknn::importer::onnx
