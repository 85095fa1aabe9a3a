#include "import/pytorch/ports.h"

#include <algorithm>

namespace orknn::importer::pytorch {
namespace {
using namespace ir;
constexpr size_t kMaxInputs = 1000;
constexpr int kMaxInputDepth = 16;

// One argument: a port, or a container of arguments, or a fixed value.
struct Slot {
  enum class What { Port, Number, Fixed, Tuple, List, Dict } what = What::Fixed;
  size_t port = 0;
  Value fixed;
  std::vector<Slot> parts;
  std::vector<Value> keys;  // of a dictionary
};

bool is_generic(const Expression& e, std::string_view name) {
  return e.syntax == Syntax::Subscript && e.children[0].text == name;
}
bool is_named(const std::optional<Expression>& e, std::string_view name) {
  return e && e->syntax == Syntax::Name && e->text == name;
}

class Builder {
 public:
  Builder(const Model& model, const ImportOptions& options, Interpreter& interpreter, Session& session)
      : model_(model), options_(options), interpreter_(interpreter), session_(session) {}

  std::vector<Port> ports;
  std::vector<Slot> slots;

  Status plan(const Function& forward) {
    const size_t count = forward.parameters.empty() ? 0 : forward.parameters.size() - 1;
    const auto traced = [&](size_t i) -> const Value* {
      if (!model_.traced_inputs || !model_.traced_inputs->is_sequence()) return nullptr;
      const auto& items = model_.traced_inputs->sequence().items;
      return i < items.size() ? &items[i] : nullptr;
    };
    // Arguments with defaults are inputs only when sizes are given for them too.
    size_t needed = 0;
    for (size_t i = 0; i < count; ++i) needed += forward.parameters[i + 1].fallback ? 0 : 1;
    spare_ = options_.input_size_list.size() > needed ? options_.input_size_list.size() - needed : 0;
    for (size_t i = 0; i < count; ++i) {
      const Parameter& p = forward.parameters[i + 1];
      const Value* example = traced(i);
      Slot slot;
      if (example && !example->is_none()) {
        ORKNN_TRY_ASSIGN(slot, of_example(*example, p.name, 0));
      } else {
        ORKNN_TRY_ASSIGN(slot, of_type(p));
      }
      slots.push_back(std::move(slot));
    }
    return {};
  }

  Result<Value> value_of(const Slot& slot, std::span<const Value> values) {
    switch (slot.what) {
      case Slot::What::Fixed: return slot.fixed;
      case Slot::What::Port:
      case Slot::What::Number: return values[slot.port];
      default: break;
    }
    std::vector<Value> items;
    for (const Slot& part : slot.parts) {
      ORKNN_TRY_ASSIGN(const Value v, value_of(part, values));
      items.push_back(v);
    }
    if (slot.what == Slot::What::Tuple) return Value::tuple(session_.heap.list(std::move(items)));
    if (slot.what == Slot::What::List) return Value::list(session_.heap.list(std::move(items)));
    DictValue* dict = session_.heap.dict();
    for (size_t i = 0; i < items.size(); ++i) dict->set(slot.keys[i], items[i]);
    return Value(dict);
  }
  std::vector<char> is_number;  // per port: forward wants a Python number

 private:
  Result<Slot> port(std::string name, DType dtype, std::optional<Shape> shape, bool number = false) {
    if (ports.size() >= kMaxInputs) return invalid_model("the model has too many inputs");
    Slot slot;
    slot.what = number ? Slot::What::Number : Slot::What::Port;
    slot.port = ports.size();
    ports.push_back({std::move(name), dtype, std::move(shape), {}});
    is_number.push_back(number);
    return slot;
  }

  // An argument as it was when the model was traced.
  Result<Slot> of_example(const Value& v, const std::string& name, int depth) {
    if (depth > kMaxInputDepth) return invalid_model("the inputs are nested too deeply");
    Slot slot;
    if (v.is_tensor()) {
      const TensorValue& t = v.tensor();
      const DType dtype = t.storage ? t.storage->dtype : DType::Float32;
      if (dtype == DType::Undefined)
        return unsupported("inputs of type " + t.storage->type_name + " are not supported").node(name, "input");
      return port(name, dtype, to_shape(t.dims));
    }
    if (v.is_sequence()) {
      slot.what = v.kind() == Kind::List ? Slot::What::List : Slot::What::Tuple;
      for (size_t i = 0; i < v.sequence().items.size(); ++i) {
        ORKNN_TRY_ASSIGN(Slot part, of_example(v.sequence().items[i], name + "." + std::to_string(i), depth + 1));
        slot.parts.push_back(std::move(part));
      }
      return slot;
    }
    if (v.kind() == Kind::Dict) {
      slot.what = Slot::What::Dict;
      for (const auto& [key, item] : v.dict().items) {
        ORKNN_TRY_ASSIGN(Slot part, of_example(item, name + "." + to_text(key), depth + 1));
        slot.parts.push_back(std::move(part));
        slot.keys.push_back(key);
      }
      return slot;
    }
    slot.fixed = v;
    return slot;
  }

  Result<Slot> of_type(const Parameter& p) {
    if (p.fallback) {
      const bool is_tensor = is_named(p.type, "Tensor") || (p.type && is_generic(*p.type, "Optional"));
      if (spare_ == 0 || !is_tensor) {
        Slot slot;
        ORKNN_TRY_ASSIGN(slot.fixed, interpreter_.literal(*p.fallback));
        return slot;
      }
      --spare_;
    }
    return of_type(p.type, p.name, 0);
  }
  Result<Slot> of_type(const std::optional<Expression>& type, const std::string& name, int depth) {
    if (depth > kMaxInputDepth) return invalid_model("the inputs are nested too deeply");
    if (!type || is_named(type, "Tensor")) return port(name, DType::Float32, std::nullopt);
    if (is_named(type, "int")) return port(name, DType::Int64, Shape{}, true);
    if (is_named(type, "float") || is_named(type, "number")) return port(name, DType::Float32, Shape{}, true);
    if (is_named(type, "bool")) return port(name, DType::Bool, Shape{}, true);
    if (is_generic(*type, "Optional")) {
      const std::optional<Expression> inner = type->children[1];
      // None unless a size is given.
      if (options_.input_size_list.size() > ports.size() || options_.input_size_list.empty())
        return of_type(inner, name, depth + 1);
      return Slot();
    }
    if (is_generic(*type, "Tuple")) {
      Slot slot;
      slot.what = Slot::What::Tuple;
      const Expression& parts = type->children[1];
      const bool several = parts.syntax == Syntax::Tuple;
      for (size_t i = 0; i < (several ? parts.children.size() : 1); ++i) {
        ORKNN_TRY_ASSIGN(Slot part, of_type(several ? parts.children[i] : parts, name + "." + std::to_string(i), depth + 1));
        slot.parts.push_back(std::move(part));
      }
      return slot;
    }
    if (is_generic(*type, "List")) {
      // As many as there are sizes left.
      Slot slot;
      slot.what = Slot::What::List;
      const size_t sizes = options_.input_size_list.size();
      if (sizes <= ports.size())
        return invalid_argument("input '" + name + "' is a list of tensors")
            .hint("give input_size_list with one shape per tensor");
      for (size_t i = 0; ports.size() < sizes; ++i) {
        ORKNN_TRY_ASSIGN(Slot part, of_type(type->children[1], name + "." + std::to_string(i), depth + 1));
        slot.parts.push_back(std::move(part));
      }
      return slot;
    }
    return unsupported("an input of this type is not supported")
        .node(name, "input")
        .hint("write a wrapper module whose forward takes tensors only, and trace that");
  }

  const Model& model_;
  const ImportOptions& options_;
  Interpreter& interpreter_;
  Session& session_;
  size_t spare_ = 0;
};

// Names given with inputs= select and order the sizes; they must be inputs of the model.
Result<ImportOptions> in_order(const ImportOptions& options, const std::vector<Port>& ports) {
  if (options.inputs.empty()) return options;
  ImportOptions ordered = options;
  ordered.input_size_list.assign(options.input_size_list.empty() ? 0 : ports.size(), {});
  ordered.input_initial_val.assign(options.input_initial_val.empty() ? 0 : ports.size(), {});
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    const auto it = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == options.inputs[i]; });
    if (it == ports.end()) {
      std::vector<std::string_view> known;
      for (const Port& port : ports) known.push_back(port.name);
      return no_such_tensor(options.inputs[i], "inputs", options.inputs, known);
    }
    const size_t at = static_cast<size_t>(it - ports.begin());
    if (i < options.input_size_list.size()) ordered.input_size_list[at] = options.input_size_list[i];
    if (i < options.input_initial_val.size()) ordered.input_initial_val[at] = options.input_initial_val[i];
  }
  return ordered;
}
}  // namespace

Result<std::vector<Value>> add_ports(std::vector<Port>& ports, const ImportOptions& options, const InputNotes& notes,
                                     Session& session, Network& network, const std::function<void(Port&)>& settle) {
  for (const auto& [input, dtype] : notes.types)
    if (static_cast<size_t>(input) < ports.size()) ports[static_cast<size_t>(input)].dtype = dtype;
  ORKNN_TRY_ASSIGN(ImportOptions sized, in_order(options, ports));
  for (size_t i = 0; i < notes.lacks_batch.size() && i < sized.input_size_list.size(); ++i)
    if (notes.lacks_batch[i]) sized.input_size_list[i].insert(sized.input_size_list[i].begin(), 1);
  ORKNN_TRY(apply_sizes(ports, sized).status());

  std::vector<Value> values;
  for (size_t i = 0; i < ports.size(); ++i) {
    Port& p = ports[i];
    if (const auto feed = options.feeds.find(p.name); feed != options.feeds.end() && !p.value.has_value())
      p.value = convert(feed->second.view(), p.dtype);
    if (p.value.has_value()) p.shape = to_shape(p.value.dims());
    if (settle) settle(p);
    if (!p.shape)
      return invalid_argument("the shape of input '" + p.name + "' is not known: the file does not state it")
          .hint("give the input shapes with input_size_list, e.g. input_size_list=[[1,3,224,224]]");
    const auto dims = to_dims(*p.shape);
    if (!dims || !checked_element_count(*dims, int64_t{1} << 34)) return invalid_input_shape(*p.shape, i);
    for (int64_t d : *dims)
      if (d < 0) return invalid_input_shape(*p.shape, i);
    network.add_input(p);
    ORKNN_TRY_ASSIGN(TensorValue* const t, session.tensor(network.find(p.name)));
    t->input = static_cast<int>(i);
    values.emplace_back(t);
  }
  return values;
}

Result<std::vector<Argument>> make_arguments(const Function& forward, const Model& model, const ImportOptions& options,
                                             const InputNotes& notes, Interpreter& interpreter, Session& session,
                                             Network& network) {
  Builder builder(model, options, interpreter, session);
  ORKNN_TRY(builder.plan(forward));
  ORKNN_TRY_ASSIGN(std::vector<Value> values, add_ports(builder.ports, options, notes, session, network));
  for (size_t i = 0; i < values.size(); ++i) {
    const Port& p = builder.ports[i];
    if (!builder.is_number[i] || !p.value.has_value()) continue;
    Emitter emitter(session.graph, session.ops, p.name, {p.name});
    if (const auto known = session.constant_number(emitter, values[i].tensor())) values[i] = *known;
  }
  std::vector<Argument> arguments;
  for (const Slot& slot : builder.slots) {
    ORKNN_TRY_ASSIGN(const Value v, builder.value_of(slot, values));
    arguments.push_back({v, {}});
  }
  return arguments;
}

}  // namespace orknn::importer::pytorch
