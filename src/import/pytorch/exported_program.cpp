#include "import/pytorch/exported_program.h"

#include <algorithm>
#include <charconv>

#include "import/pytorch/json_value.h"
#include "import/pytorch/ports.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dim;
using ir::Shape;
// Descriptions are stored as they are or shrink a little; what grows much further is no description.
uint64_t text_limit(const Source& source) {
  return std::min(uint64_t{1} << 28, (uint64_t{1} << 24) + 20 * static_cast<uint64_t>(source.bytes.size()));
}

// Items of a list; nothing when the value is none.
std::span<const Value> items_of(const Value& value) {
  return value.is_sequence() ? std::span<const Value>(value.sequence().items) : std::span<const Value>();
}

// Unions of the description are dictionaries of one entry, named by the kind of its value.
struct Variant {
  std::string_view kind;
  Value value;
};
Variant variant_of(const Value& value) {
  if (value.kind() != Kind::Dict || value.dict().items.empty() || value.dict().items[0].first.kind() != Kind::String) return {};
  return {value.dict().items[0].first.text(), value.dict().items[0].second};
}

Status unexpected(const std::string& what) {
  return invalid_model("the exported program has an unexpected description of " + what);
}

// The schema numbers element types from 1 in the order PyTorch does, except for those added later.
Result<int64_t> scalar_code(const Value& value) {
  const auto code = integer_of(value);
  if (code && *code >= 1 && *code <= 12) return *code - 1;
  if (code && *code == 13) return int64_t{15};  // bfloat16
  return unsupported("an element type of the exported program is not supported").found("number " + to_text(value));
}
// Contiguous, channels last, channels last 3-d, preserve.
int64_t memory_format_code(const Value& value) {
  static constexpr int64_t kCodes[] = {0, 0, 2, 3, 1};
  const int64_t code = integer_of(value).value_or(0);
  return code >= 0 && code <= 4 ? kCodes[code] : 0;
}

// JSON has no infinities: they are written as text.
Value number_of(const Value& value) {
  if (value.kind() == Kind::Int) return value.number();
  if (value.kind() != Kind::String) return value;
  double number = 0;
  const std::string& text = value.text();
  const auto [used, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && used == text.data() + text.size() ? Value(number) : value;
}

// Extents that differ between runs as their symbols are called: "Symbol('s77', positive=True, integer=True)" is "s77".
std::string with_bare_symbols(std::string_view text) {
  constexpr std::string_view kBegin = "Symbol('";
  std::string result;
  for (;;) {
    const size_t begin = text.find(kBegin), name = begin + kBegin.size();
    const size_t quote = begin == text.npos ? text.npos : text.find('\'', name);
    const size_t end = quote == text.npos ? text.npos : text.find(')', quote);
    if (end == text.npos) return result.append(text);
    result.append(text.substr(0, begin)).append(text.substr(name, quote - name));
    text.remove_prefix(end + 1);
  }
}

// Operators on numbers (sizes that differ between runs) are functions of Python. Those of module _operator that are not listed
// are rows of the same name.
struct PythonFunction {
  std::string_view target, op;
};
constexpr std::string_view kOperatorModule = "_operator.";
constexpr PythonFunction kPythonFunctions[] = {{"_operator.getitem", "__getitem__"},
                                               {"_operator.truediv", "div"},
                                               {"_operator.mod", "remainder"},
                                               {"_operator.pos", "positive"},
                                               {"_operator.and_", "__and__"},
                                               {"_operator.or_", "__or__"},
                                               {"math.ceil", "ceil"},
                                               {"math.floor", "floor"},
                                               {"math.trunc", "Int"},
                                               {"builtins.round", "round"},
                                               {"torch.sym_int", "Int"},
                                               {"torch.sym_float", "Float"},
                                               {"torch.sym_not", "__not__"},
                                               {"torch.sym_sqrt", "sqrt"},
                                               {"torch._sym_sqrt", "sqrt"},
                                               {"torch.sym_max", "prim::max"},
                                               {"torch.sym_min", "prim::min"}};

constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

// "torch.ops.aten.add.Tensor" is row "add"; the overload follows from the arguments. Empty for other names.
std::string operator_of_target(std::string_view target) {
  for (const PythonFunction& f : kPythonFunctions)
    if (f.target == target) return std::string(f.op);
  if (target.starts_with(kOperatorModule)) return std::string(target.substr(kOperatorModule.size()));
  if (!target.starts_with("torch.ops.")) return {};
  target.remove_prefix(10);
  const size_t dot = target.find('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view space = target.substr(0, dot), name = target.substr(dot + 1, target.find('.', dot + 1) - dot - 1);
  return space == "aten" ? std::string(name) : std::string(space) + "::" + std::string(name);
}

// Files of before 2.7 name every argument and do not tell which were given by position: those in the place that the signature has
// for them.
bool is_out_of_place(std::string_view op, std::string_view name, size_t place) {
  bool is_known = false;
  for (const Schema& s : OperatorTable::instance().find(op))
    for (size_t i = 0; i < s.parameters.size(); ++i) {
      if (s.parameters[i].name != name) continue;
      if (i == place && !s.parameters[i].keyword_only) return false;
      is_known = true;
    }
  return is_known;
}

// The module that a node comes from: "L__self__,,Net;L__self___c,c,torch.nn.modules.conv.Conv2d" lists the callers, each with its
// path and class.
std::string module_entry(const Value& node, bool outermost, size_t field) {
  const std::string stack = text_member(member(node, "metadata"), "nn_module_stack");
  std::string_view entry = stack;
  entry = outermost ? entry.substr(0, entry.find(';')) : entry.substr(entry.rfind(';') + 1);
  for (size_t i = 0; i < field; ++i) {
    const size_t comma = entry.find(',');
    if (comma == std::string_view::npos) return {};
    entry.remove_prefix(comma + 1);
  }
  return std::string(entry.substr(0, entry.find(',')));
}

std::string name_of(const Variant& v) {
  if (v.kind == "as_tensor" || v.kind == "as_custom_obj" || v.kind == "as_token") return text_member(v.value, "name");
  if (v.kind == "as_sym_int" || v.kind == "as_sym_float" || v.kind == "as_sym_bool") return text_member(v.value, "as_name");
  return {};
}

std::string layer_of(const Value& node) {
  std::string layer = module_entry(node, false, 1);
  if (layer.empty()) layer = text_member(node, "name");
  const Value outputs = member(node, "outputs");
  if (layer.empty() && !items_of(outputs).empty()) layer = name_of(variant_of(items_of(outputs)[0]));
  return layer;
}
}  // namespace

Result<ExportedProgram> ExportedProgram::open(const Source& source, const zip::Archive& archive, const Contents& contents,
                                              Session& session) {
  // The entry of the description tells the top folder: "<top>/models/model.json", or it lies there itself.
  std::string root = contents.root.substr(0, contents.root.rfind('/') + 1);
  if (root.ends_with("models/")) root.resize(root.size() - 7);
  ExportedProgram program(source, archive, std::move(root), session);
  const zip::Entry* entry = archive.find(contents.root);
  if (!entry) return invalid_model("the archive has no entry '" + contents.root + "'");
  ORKNN_TRY_ASSIGN(const std::string text, archive.text(*entry, text_limit(source)));
  auto description = read_json(text, session.heap);
  if (!description) return Status(description.status()).node(contents.root, "JSON");
  program.description_ = *description;
  if (member(member(program.description_, "graph_module"), "graph").kind() != Kind::Dict)
    return unexpected("its graph").node(contents.root, "JSON");
  return program;
}

// --- weights

Status ExportedProgram::read_weights() {
  ORKNN_TRY(check_byte_order(archive_, root_));
  for (const char* kind : {"weights", "constants"}) {
    const std::string folder = root_ + "data/" + kind + "/", list = folder + "model_" + kind + "_config.json";
    if (archive_.find(list))
      ORKNN_TRY(read_payload(folder, list));
    else if (archive_.find(folder + "model.pt"))
      ORKNN_TRY(read_pickled_weights(folder + "model.pt"));
  }
  for (const char* name :
       {"serialized_state_dict.pt", "serialized_state_dict.json", "serialized_constants.pt", "serialized_constants.json"})
    if (archive_.find(root_ + name)) ORKNN_TRY(read_pickled_weights(root_ + name));
  return {};
}

// Each entry of the list names a file with the bytes of a storage, and the tensor in it.
Status ExportedProgram::read_payload(const std::string& folder, const std::string& list) {
  ORKNN_TRY_ASSIGN(const std::string text, archive_.text(*archive_.find(list), text_limit(source_)));
  ORKNN_TRY_ASSIGN(const Value config, read_json(text, session_.heap));
  const Value tensors = member(config, "config");
  if (tensors.kind() != Kind::Dict) return unexpected("its weights").node(list, "JSON");
  const auto extents = [](const Value& sizes, ir::Dims& dims) {
    for (const Value& size : items_of(sizes)) {
      const auto extent = integer_of(member(size, "as_int"));
      if (!extent || dims.size() >= 64) return false;
      dims.push_back(*extent);
    }
    return sizes.is_sequence();
  };
  StorageReader storages(source_, archive_, folder, session_.heap);
  for (const auto& [key, item] : tensors.dict().items) {
    const std::string name = to_text(key);
    const Value meta = member(item, "tensor_meta");
    if (member(item, "use_pickle").kind() == Kind::Bool && member(item, "use_pickle").boolean())
      continue;  // an object: an error only where it is used
    TensorValue* t = session_.heap.tensor();
    t->name = name;
    t->storage_offset = integer_of(member(member(meta, "storage_offset"), "as_int")).value_or(0);
    if (!extents(member(meta, "sizes"), t->dims) || !extents(member(meta, "strides"), t->strides) ||
        t->dims.size() != t->strides.size())
      return unexpected("tensor '" + name + "'").node(list, "JSON");
    ORKNN_TRY_ASSIGN(const int64_t code, scalar_code(member(meta, "dtype")));
    const ScalarType* type = scalar_type(code);
    const std::string path = text_member(item, "path_name");
    const zip::Entry* entry = archive_.find(folder + path);
    if (!type || !entry)
      return invalid_model("the archive has no entry '" + folder + path + "'").node(name, "weight").hint("is the file complete?");
    ORKNN_TRY_ASSIGN(t->storage, storages.find(*type, path, static_cast<int64_t>(entry->size / type->bytes)));
    weights_[name] = t;
  }
  return {};
}

// A file of torch.save within the archive.
Status ExportedProgram::read_pickled_weights(const std::string& name) {
  ORKNN_TRY_ASSIGN(const Source inner, nested_source(source_, archive_, name));
  if (inner.bytes.empty()) return {};
  ORKNN_TRY_ASSIGN(const zip::Archive archive, zip::Archive::open(inner.bytes));
  const Contents contents = look_into(archive);
  if (contents.kind != FileKind::Eager)
    return invalid_model("entry '" + name + "' holds no weights").expected("what torch.save writes");
  ORKNN_TRY_ASSIGN(const Value tensors, read_pickled(inner, archive, contents.root, "data", session_.heap));
  if (tensors.kind() != Kind::Dict) return unexpected("its weights").node(name, "pickle");
  for (const auto& [key, value] : tensors.dict().items) {
    if (value.is_tensor() && value.tensor().name.empty()) value.tensor().name = to_text(key);
    weights_[to_text(key)] = value;
  }
  return {};
}

Result<Value> ExportedProgram::weight(const std::string& name) {
  const auto it = weights_.find(name);
  if (it == weights_.end())
    return invalid_model("the archive holds no weight '" + name + "'")
        .hint("is the file complete? Objects other than tensors cannot be read");
  return it->second;
}

// --- inputs

Result<Port> ExportedProgram::stated_port(const std::string& name) const {
  const Value meta = member(member(member(member(description_, "graph_module"), "graph"), "tensor_values"), name);
  Port port{.name = name, .dtype = DType::Float32, .shape = Shape()};
  ORKNN_TRY_ASSIGN(const int64_t code, scalar_code(member(meta, "dtype")));
  const ScalarType* type = scalar_type(code);
  if (!type || type->dtype == DType::Undefined || type->is_quantized)
    return unsupported("inputs of this type are not supported")
        .node(name, "input")
        .found(type ? std::string(type->name) : to_text(member(meta, "dtype")));
  port.dtype = type->dtype;
  const Value sizes = member(meta, "sizes");
  if (!sizes.is_sequence()) return unexpected("input '" + name + "'");
  for (const Value& size : items_of(sizes)) {
    const Value open = member(size, "as_expr");
    if (open.is_none()) {
      const auto extent = integer_of(member(size, "as_int"));
      if (!extent) return unexpected("input '" + name + "'");
      port.shape->push_back(Dim(*extent));
    } else {
      port.shape->push_back(Dim::symbol(with_bare_symbols(text_member(open, "expr_str"))));
    }
  }
  return port;
}

Status ExportedProgram::bind_inputs(const ImportOptions& options, Network& network) {
  const Value module = member(description_, "graph_module");
  std::vector<Port> ports;
  for (const Value& spec : items_of(member(member(module, "signature"), "input_specs"))) {
    const Variant v = variant_of(spec);
    const Variant given = variant_of(member(v.value, "arg"));
    const std::string name = text_member(member(v.value, "arg"), "name");
    if (v.kind == "user_input") {
      if (given.kind == "as_tensor") {
        ORKNN_TRY_ASSIGN(Port port, stated_port(name_of(given)));
        ports.push_back(std::move(port));
      } else if (given.kind == "as_sym_int") {
        ports.push_back({.name = name_of(given), .dtype = DType::Int64, .shape = Shape()});
      }  // anything else is a constant that the nodes hold already
    } else if (v.kind == "parameter") {
      ORKNN_TRY_ASSIGN(values_[name], weight(text_member(v.value, "parameter_name")));
    } else if (v.kind == "buffer") {
      ORKNN_TRY_ASSIGN(values_[name], weight(text_member(v.value, "buffer_name")));
    } else if (v.kind == "tensor_constant") {
      ORKNN_TRY_ASSIGN(values_[name], weight(text_member(v.value, "tensor_constant_name")));
    } else if (v.kind == "constant_input") {
      values_[text_member(v.value, "name")] = variant_of(member(v.value, "value")).value;
    }
  }
  // Extents that differ between runs are those of the example the module was exported with, unless the user says otherwise.
  const auto settle = [&](Port& port) {
    const Value meta = member(member(member(module, "graph"), "tensor_values"), port.name);
    const auto sizes = items_of(member(meta, "sizes"));
    bool is_changed = false;
    for (size_t i = 0; port.shape && i < port.shape->size() && i < sizes.size(); ++i) {
      const auto example = integer_of(member(member(member(sizes[i], "as_expr"), "hint"), "as_int"));
      if ((*port.shape)[i].symbol().empty() || !example) continue;
      (*port.shape)[i] = Dim(*example);
      is_changed = true;
    }
    if (is_changed)
      session_.warnings.push_back("input '" + port.name + "' may have other sizes: that of the example, " +
                                  ir::to_string(*port.shape) + ", is used (input_size_list sets another)");
  };
  const std::vector<Port> stated = ports;
  ORKNN_TRY_ASSIGN(const std::vector<Value> values, add_ports(ports, options, {}, session_, network, settle));
  for (size_t i = 0; i < values.size(); ++i) {
    values_[stated[i].name] = values[i];
    // The exporter may have computed with an extent that was fixed: another one would give wrong numbers.
    for (size_t k = 0; k < stated[i].shape->size() && k < ports[i].shape->size(); ++k)
      if (const Dim was = (*stated[i].shape)[k], is = (*ports[i].shape)[k]; was.is_known() && is != was)
        return invalid_argument("input '" + ports[i].name + "' was exported with a fixed size")
            .expected(ir::to_string(*stated[i].shape))
            .found(ir::to_string(*ports[i].shape))
            .hint("export the module with this size, or with dynamic_shapes");
  }
  return {};
}

// --- nodes

Result<Value> ExportedProgram::named(const std::string& name, const Values& values) const {
  const auto it = values.find(name);
  if (it == values.end()) return invalid_model("value '" + name + "' is read but nothing produces it");
  return it->second;
}

Result<Value> ExportedProgram::argument(const Value& description, const Values& values) {
  const Variant v = variant_of(description);
  Heap& heap = session_.heap;
  const auto list_of = [&](auto&& one) -> Result<Value> {
    std::vector<Value> items;
    for (const Value& item : items_of(v.value)) {
      ORKNN_TRY_ASSIGN(const Value value, one(item));
      items.push_back(value);
    }
    return Value::list(heap.list(std::move(items)));
  };
  const auto symbol = [&](const Value& item) -> Result<Value> {
    const std::string name = text_member(item, "as_name");
    return name.empty() ? Result<Value>(variant_of(item).value) : named(name, values);
  };
  const auto tensor = [&](const Value& item) { return named(text_member(item, "name"), values); };
  const auto optional_tensor = [&](const Value& item) -> Result<Value> {
    const Value name = member(item, "as_tensor");
    return name.is_none() ? Result<Value>(Value()) : tensor(name);
  };
  if (v.kind == "as_none") return Value();
  if (v.kind == "as_tensor") return tensor(v.value);
  if (v.kind == "as_tensors") return list_of(tensor);
  if (v.kind == "as_optional_tensor") return optional_tensor(v.value);
  if (v.kind == "as_optional_tensors") return list_of(optional_tensor);
  if (v.kind == "as_int" || v.kind == "as_bool" || v.kind == "as_string" || v.kind == "as_ints" || v.kind == "as_bools" ||
      v.kind == "as_strings")
    return v.value;
  if (v.kind == "as_float") return number_of(v.value);
  if (v.kind == "as_floats") return list_of([](const Value& item) -> Result<Value> { return number_of(item); });
  if (v.kind == "as_sym_int" || v.kind == "as_sym_float" || v.kind == "as_sym_bool") return symbol(v.value);
  if (v.kind == "as_sym_ints" || v.kind == "as_sym_floats" || v.kind == "as_sym_bools") return list_of(symbol);
  if (v.kind == "as_scalar_type") {
    ORKNN_TRY_ASSIGN(const int64_t code, scalar_code(v.value));
    return Value(code);
  }
  if (v.kind == "as_memory_format") return Value(memory_format_code(v.value));
  if (v.kind == "as_layout") return Value(int64_t{0});  // sparse tensors are refused where they are made
  if (v.kind == "as_device") return heap.text(Kind::Device, text_member(v.value, "type"));
  return unsupported("an argument of this kind is not supported").found(v.kind.empty() ? "nothing" : std::string(v.kind));
}

// Blocks that run under a switch (no gradients, autocast) and choices between two blocks: the graphs are arguments, what they
// work on follows them.
Result<Value> ExportedProgram::call_with_graphs(const Value& node, Values& values) {
  const std::string target = text_member(node, "target");
  std::vector<Value> graphs, operands;
  Value first;
  for (const Value& input : items_of(member(node, "inputs"))) {
    const Value given = member(input, "arg");
    if (const Value graph = member(member(given, "as_graph"), "graph"); !graph.is_none()) {
      graphs.push_back(graph);
      operands.clear();
      continue;
    }
    ORKNN_TRY_ASSIGN(const Value value, argument(given, values));
    if (graphs.empty()) first = value;
    if (value.is_sequence())
      operands.insert(operands.end(), value.sequence().items.begin(), value.sequence().items.end());
    else
      operands.push_back(value);
  }
  Value chosen;
  if (target.ends_with(".cond") && graphs.size() == 2) {
    ORKNN_TRY_ASSIGN(const bool holds, interpreter_->condition(first, layer_of(node)));
    chosen = graphs[holds ? 0 : 1];
  } else if ((target.ends_with(".wrap_with_set_grad_enabled") || target.ends_with(".wrap_with_autocast")) && graphs.size() == 1) {
    chosen = graphs[0];
  } else {
    return unsupported("operator is not supported");
  }
  Values inner;
  const auto inputs = items_of(member(chosen, "inputs"));
  if (inputs.size() > operands.size()) return unexpected("a block");
  for (size_t i = 0; i < inputs.size(); ++i) inner[name_of(variant_of(inputs[i]))] = operands[i];
  ORKNN_TRY(run(chosen, inner));
  std::vector<Value> results;
  for (const Value& output : items_of(member(chosen, "outputs"))) {
    ORKNN_TRY_ASSIGN(const Value value, argument(output, inner));
    results.push_back(value);
  }
  if (results.size() == 1 && member(chosen, "is_single_tensor_return").kind() == Kind::Bool &&
      member(chosen, "is_single_tensor_return").boolean())
    return results[0];
  return Value::tuple(session_.heap.list(std::move(results)));
}

Result<Value> ExportedProgram::call(const Value& node, const std::string& layer, Values& values) {
  const std::string target = text_member(node, "target"), op = operator_of_target(target);
  if (op.empty()) return unsupported("operator is not supported");
  std::vector<Argument> arguments;
  std::vector<std::string> names;  // what the arguments' keywords point into
  const Value inputs = member(node, "inputs");
  names.reserve(items_of(inputs).size());
  for (const Value& input : items_of(inputs)) {
    ORKNN_TRY_ASSIGN(const Value value, argument(member(input, "arg"), values));
    names.push_back(text_member(input, "name"));
    const Value kind = member(input, "kind");
    const bool by_name = kind.kind() == Kind::Int
                             ? kind.integer() == 2
                             : target.starts_with("torch.ops.") && is_out_of_place(op, names.back(), arguments.size());
    arguments.push_back({value, by_name ? std::string_view(names.back()) : std::string_view()});
  }
  return interpreter_->call_operator(op, arguments, layer);
}

Status ExportedProgram::bind_outputs(const Value& node, const Value& result, Values& values) {
  const Value outputs = member(node, "outputs");
  const auto list = items_of(outputs);
  const auto bind = [&](const Value& output, const Value& value) -> Status {
    const Variant v = variant_of(output);
    if (v.kind == "as_tensors" || v.kind == "as_optional_tensors") {
      const auto parts = items_of(v.value);
      if (!value.is_sequence() || value.sequence().items.size() != parts.size())
        return invalid_model("a node's outputs do not fit its operator")
            .expected(std::to_string(parts.size()) + " tensors")
            .found(value.is_sequence() ? std::to_string(value.sequence().items.size()) : describe(value));
      for (size_t i = 0; i < parts.size(); ++i) {
        const Value named = member(parts[i], "as_tensor");
        values[text_member(named.is_none() ? parts[i] : named, "name")] = value.sequence().items[i];
      }
    } else if (const std::string name = name_of(v); !name.empty()) {
      values[name] = value;
    }
    return {};
  };
  if (list.size() == 1) {
    const bool is_wrapped =
        result.kind() == Kind::Tuple && result.sequence().items.size() == 1 && variant_of(list[0]).kind == "as_tensor";
    return bind(list[0], is_wrapped ? result.sequence().items[0] : result);
  }
  if (list.empty()) return {};
  if (!result.is_sequence() || result.sequence().items.size() < list.size())
    return invalid_model("a node's outputs do not fit its operator")
        .expected(std::to_string(list.size()) + " outputs")
        .found(describe(result));
  for (size_t i = 0; i < list.size(); ++i) ORKNN_TRY(bind(list[i], result.sequence().items[i]));
  return {};
}

Status ExportedProgram::run_node(const Value& node, Values& values) {
  const std::string layer = layer_of(node);
  const auto run = [&]() -> Status {
    ORKNN_TRY_ASSIGN(const Value result, text_member(node, "target").starts_with(kHigherOrder) ? call_with_graphs(node, values)
                                                                                               : call(node, layer, values));
    return bind_outputs(node, result, values);
  };
  Status status = run();
  return status.node(layer, text_member(node, "target"));
}

Status ExportedProgram::run(const Value& graph, Values& values) {
  for (const Value& node : items_of(member(graph, "nodes"))) {
    if (session_.heap.is_exhausted()) return unsupported("the exported program is too large");
    ORKNN_TRY(run_node(node, values));
  }
  return {};
}

// --- the result

// Gives the outputs the structure that forward returned, described as a tree: dictionaries have their keys as context.
Result<Value> ExportedProgram::result() {
  const Value module = member(description_, "graph_module");
  std::vector<Value> leaves;
  for (const Value& spec : items_of(member(member(module, "signature"), "output_specs"))) {
    const Variant v = variant_of(spec);
    if (v.kind != "user_output") {
      if (v.kind == "buffer_mutation") session_.note_changed_state(text_member(v.value, "buffer_name"));
      continue;
    }
    ORKNN_TRY_ASSIGN(const Value value, argument(member(v.value, "arg"), values_));
    leaves.push_back(value);
  }
  const Value flat = Value::tuple(session_.heap.list(leaves));
  std::string tree;
  for (const Value& entry : items_of(member(module, "module_call_graph")))
    if (text_member(entry, "fqn").empty()) tree = text_member(member(entry, "signature"), "out_spec");
  const auto parsed = read_json(tree, session_.heap);
  if (!parsed || items_of(*parsed).size() != 2) return flat;  // names are a convenience: without them outputs are numbered
  size_t next = 0;
  const auto build = [&](const auto& self, const Value& spec) -> Value {
    if (member(spec, "type").is_none()) {
      const size_t i = next++;
      return i < leaves.size() ? leaves[i] : Value();
    }
    std::vector<Value> parts;
    for (const Value& child : items_of(member(spec, "children_spec"))) parts.push_back(self(self, child));
    const auto context = read_json(text_member(spec, "context"), session_.heap);
    const auto keys = context ? items_of(*context) : std::span<const Value>();
    const bool has_keys =
        !keys.empty() && keys.size() == parts.size() &&
        std::all_of(keys.begin(), keys.end(), [](const Value& key) { return DictValue::key_of(key).has_value(); });
    if (!has_keys) return Value::tuple(session_.heap.list(std::move(parts)));
    DictValue* dict = session_.heap.dict();
    for (size_t i = 0; i < parts.size(); ++i) dict->set(keys[i], parts[i]);
    return Value(dict);
  };
  const Value whole = build(build, items_of(*parsed)[1]);
  return next == leaves.size() ? whole : flat;
}

Result<Value> ExportedProgram::execute(const ImportOptions& options, Interpreter& interpreter, Network& network) {
  interpreter_ = &interpreter;
  ORKNN_TRY(read_weights());
  ORKNN_TRY(bind_inputs(options, network));
  ORKNN_TRY(run(member(member(description_, "graph_module"), "graph"), values_));
  return result();
}

// --- facts

Value ExportedProgram::find(const std::string& name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? Value() : it->second;
}

std::vector<std::pair<std::string, std::string>> ExportedProgram::operators() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const Value& node : items_of(member(member(member(description_, "graph_module"), "graph"), "nodes"))) {
    const std::string target = text_member(node, "target");
    if (target.starts_with(kHigherOrder)) continue;  // reported when they are executed
    const std::string op = operator_of_target(target);
    found.emplace_back(layer_of(node), op.empty() ? target : op);
  }
  return found;
}

std::vector<StatedPort> ExportedProgram::ports(std::string_view list, std::string_view kind) const {
  std::vector<StatedPort> ports;
  for (const Value& spec : items_of(member(member(member(description_, "graph_module"), "signature"), list)))
    if (const Value given = member(member(spec, kind), "arg"); !given.is_none())
      if (const std::string name = name_of(variant_of(given)); !name.empty()) {
        const auto known = stated_port(name);
        ports.push_back(known ? StatedPort{name, known->dtype, known->shape} : StatedPort{.name = name});
      }
  return ports;
}
std::vector<StatedPort> ExportedProgram::inputs() const { return ports("input_specs", "user_input"); }
std::vector<StatedPort> ExportedProgram::outputs() const { return ports("output_specs", "user_output"); }

std::string ExportedProgram::class_name() const {
  const Value nodes = member(member(member(description_, "graph_module"), "graph"), "nodes");
  for (const Value& node : items_of(nodes))
    if (const std::string name = module_entry(node, true, 2); !name.empty()) return name.substr(name.rfind('.') + 1);
  return "ExportedProgram";
}

std::string ExportedProgram::producer() const {
  const std::string version = text_member(description_, "torch_version");
  return version.empty() ? "pytorch" : "pytorch " + version;
}

int64_t ExportedProgram::version() const {
  return integer_of(member(member(description_, "schema_version"), "major")).value_or(0);
}

}  // namespace orknn::importer::pytorch
