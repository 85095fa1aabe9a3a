#include "import/pytorch/interpreter.h"

#include <limits>

#include "import/pytorch/call.h"
#include "import/pytorch/quantization.h"

namespace orknn::importer::pytorch {
namespace {
// Far beyond what networks need, far below what hurts.
constexpr int kMaxCallDepth = 1500;
constexpr uint64_t kMaxSteps = 20'000'000;
constexpr uint64_t kMaxCalls = 300'000;

std::string last_part(std::string_view qualified) { return std::string(qualified.substr(qualified.rfind('.') + 1)); }

// "torch.add" and "ops.aten.add" are row "add", "ops.quantized.conv2d" is row "quantized::conv2d". Empty for other names.
std::string operator_name(std::string_view qualified) {
  if (qualified.starts_with("torch.")) return std::string(qualified.substr(6));
  if (!qualified.starts_with("ops.")) return {};
  qualified.remove_prefix(4);
  const size_t dot = qualified.find('.');
  if (dot == std::string_view::npos) return {};
  if (qualified.substr(0, dot) == "aten") return std::string(qualified.substr(dot + 1));
  return std::string(qualified.substr(0, dot)) + "::" + std::string(qualified.substr(dot + 1));
}

bool is_inplace_name(std::string_view name) { return name.size() > 1 && name.back() == '_' && !name.starts_with("__"); }

Status data_dependent(const char* what) {
  return unsupported(std::string(what) + " depends on values that are only known when the network runs")
      .hint("trace the model with torch.jit.trace, which fixes such decisions, or rewrite the code without it");
}
}  // namespace

std::string shown_operator(std::string_view name) {
  return name.find("::") == std::string_view::npos ? "aten::" + std::string(name) : std::string(name);
}

bool is_known_operator(std::string_view name) {
  const OperatorTable& table = OperatorTable::instance();
  return !table.find(name).empty() || (is_inplace_name(name) && !table.find(name.substr(0, name.size() - 1)).empty());
}

// Counts nesting for as long as it lives.
class Interpreter::Nesting {
 public:
  explicit Nesting(Interpreter& owner) : owner_(owner) { ++owner_.depth_; }
  ~Nesting() { --owner_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  Status check() {
    if (owner_.depth_ > kMaxCallDepth) return invalid_model("the model's code is nested too deeply or calls itself without end");
    if (++owner_.steps_ > kMaxSteps || owner_.session_.heap.is_exhausted())
      return unsupported("the model's code runs too long").hint("loops are unrolled while importing: use fewer iterations");
    return {};
  }

 private:
  Interpreter& owner_;
};

// --- functions

Status Interpreter::initialize(ObjectValue& object) {
  if (!object.state) return {};
  const Value state = *object.state;
  object.state.reset();
  ORKNN_TRY_ASSIGN(const Function* method, find_method(object, "__setstate__"));
  if (!method) {
    if (state.kind() != Kind::Dict) object.state = state;  // one of PyTorch's own classes
    return {};
  }
  object.attributes.clear();
  const Argument arguments[] = {{Value(&object), {}}, {state, {}}};
  ++session_.initializing;
  const auto result = call(*method, object.path, arguments);
  --session_.initializing;
  return result.status();
}

Result<const Function*> Interpreter::find_method(ObjectValue& object, std::string_view name) {
  ORKNN_TRY_ASSIGN(const Class* type, library_.find_class(object.class_name));
  if (!type) return static_cast<const Function*>(nullptr);
  const auto it = type->methods.find(name);
  return it == type->methods.end() ? nullptr : &it->second;
}

Result<Value> Interpreter::call_method(ObjectValue& object, std::string_view name, std::span<const Argument> arguments) {
  ORKNN_TRY_ASSIGN(const Function* function, find_method(object, name));
  std::vector<Argument> all{{Value(&object), {}}};
  all.insert(all.end(), arguments.begin(), arguments.end());
  if (function) return call(*function, object.path, all);
  // Methods of PyTorch's own classes are rows of the tables: "Conv2dPackedParamsBase.unpack".
  const std::string native = last_part(object.class_name) + "." + std::string(name);
  if (is_known_operator(native)) return call_operator(native, all, object.path);
  return invalid_model("class " + object.class_name + " has no method '" + std::string(name) + "'");
}

Result<Value> Interpreter::call(const Function& function, const std::string& path, std::span<const Argument> arguments) {
  Nesting nesting(*this);
  ORKNN_TRY(nesting.check());
  Frame frame;
  frame.function = &function;
  frame.path = path;
  size_t next = 0;
  for (const Argument& a : arguments) {
    if (a.keyword.empty() && next >= function.parameters.size())
      return invalid_model("function '" + function.name + "' gets too many arguments");
    frame.locals[a.keyword.empty() ? std::string_view(function.parameters[next++].name) : a.keyword] = a.value;
  }
  for (const Parameter& p : function.parameters) {
    if (frame.locals.contains(p.name)) continue;
    if (!p.fallback) return invalid_model("function '" + function.name + "' is called without argument '" + p.name + "'");
    ORKNN_TRY_ASSIGN(frame.locals[p.name], evaluate(*p.fallback, frame));
  }
  const Place caller = place_;
  ORKNN_TRY(run(function.body, frame));
  place_ = caller;
  return frame.result;
}

Result<Value> Interpreter::literal(const Expression& expression) {
  Frame frame;
  return evaluate(expression, frame);
}

// --- statements

Status Interpreter::run(const std::vector<Statement>& statements, Frame& frame) {
  for (const Statement& s : statements) {
    place_ = {frame.function, s.line};
    Status status = run(s, frame);
    if (!status)
      return status.node((frame.path.empty() ? "" : frame.path + ".") + (frame.function ? frame.function->name : "") + ", line " +
                             std::to_string(s.line),
                         "TorchScript");
    if (frame.returned) break;
  }
  return {};
}

Status Interpreter::run(const Statement& s, Frame& frame) {
  Nesting nesting(*this);
  ORKNN_TRY(nesting.check());
  switch (s.kind) {
    case StatementKind::Pass: return {};
    case StatementKind::Evaluate: return evaluate(s.value, frame).status();
    case StatementKind::Return: {
      ORKNN_TRY_ASSIGN(frame.result, evaluate(s.value, frame));
      frame.returned = true;
      return {};
    }
    case StatementKind::Assign: {
      ORKNN_TRY_ASSIGN(const Value value, evaluate(s.value, frame));
      if (!s.unpack) return assign(s.targets[0], value, frame);
      Value sequence = value;
      if (value.is_tensor()) {
        const Argument arguments[] = {{value, {}}};
        ORKNN_TRY_ASSIGN(sequence, call_operator("unbind", arguments, frame.path));
      }
      if (!sequence.is_sequence() || sequence.sequence().items.size() != s.targets.size())
        return invalid_model("a value cannot be unpacked")
            .expected(std::to_string(s.targets.size()) + " items")
            .found(sequence.is_sequence() ? std::to_string(sequence.sequence().items.size()) + " items" : describe(value));
      const std::vector<Value> items = sequence.sequence().items;
      for (size_t i = 0; i < items.size(); ++i) ORKNN_TRY(assign(s.targets[i], items[i], frame));
      return {};
    }
    case StatementKind::If: {
      ORKNN_TRY_ASSIGN(const Value value, evaluate(s.value, frame));
      ORKNN_TRY_ASSIGN(const bool holds, condition(value, frame.path));
      return run(holds ? s.body : s.otherwise, frame);
    }
    case StatementKind::For: return run_for(s, frame);
    case StatementKind::While:
      while (!frame.returned) {
        ORKNN_TRY(nesting.check());
        ORKNN_TRY_ASSIGN(const Value value, evaluate(s.value, frame));
        ORKNN_TRY_ASSIGN(const bool holds, condition(value, frame.path));
        if (!holds) break;
        ORKNN_TRY(run(s.body, frame));
      }
      return {};
    case StatementKind::With: {
      ORKNN_TRY_ASSIGN(const Value manager, evaluate(s.value, frame));
      if (!s.targets.empty()) ORKNN_TRY(assign(s.targets[0], manager, frame));
      return run(s.body, frame);
    }
  }
  return {};
}

Status Interpreter::run_for(const Statement& s, Frame& frame) {
  Nesting nesting(*this);
  const Expression& what = s.value;
  if (what.syntax == Syntax::Call && what.children[0].syntax == Syntax::Name && what.children[0].text == "range" &&
      what.children.size() == 2) {
    ORKNN_TRY_ASSIGN(Value limit, evaluate(what.children[1], frame));
    if (limit.is_tensor()) {
      Emitter emitter(session_.graph, session_.ops, frame.path, {});
      const auto known = session_.constant_number(emitter, limit.tensor());
      if (!known) return data_dependent("the number of iterations of a loop");
      limit = *known;
    }
    if (!limit.is_number()) return invalid_model("a loop counts to a " + describe(limit));
    for (int64_t i = 0; i < limit.integer() && !frame.returned; ++i) {
      ORKNN_TRY(nesting.check());
      ORKNN_TRY(assign(s.targets[0], i, frame));
      ORKNN_TRY(run(s.body, frame));
    }
    return {};
  }
  ORKNN_TRY_ASSIGN(const Value sequence, evaluate(what, frame));
  if (!sequence.is_sequence()) return invalid_model("a loop runs over a " + describe(sequence));
  for (size_t i = 0; i < sequence.sequence().items.size() && !frame.returned; ++i) {
    ORKNN_TRY(nesting.check());
    ORKNN_TRY(assign(s.targets[0], sequence.sequence().items[i], frame));
    ORKNN_TRY(run(s.body, frame));
  }
  return {};
}

Status Interpreter::assign(const Expression& target, const Value& value, Frame& frame) {
  if (target.syntax == Syntax::Name) {
    frame.locals[target.text] = value;
    return {};
  }
  ORKNN_TRY_ASSIGN(const Value owner, evaluate(target.children[0], frame));
  if (target.syntax == Syntax::Attribute) {
    if (owner.kind() != Kind::Object) return invalid_model("a " + describe(owner) + " has no attributes to set");
    ORKNN_TRY(initialize(owner.object()));
    owner.object().attributes[target.text] = value;
    if (owner.object().is_part_of_model && value.is_tensor())
      session_.note_changed_state((owner.object().path.empty() ? "" : owner.object().path + ".") + target.text);
    return {};
  }
  ORKNN_TRY_ASSIGN(const Value index, evaluate(target.children[1], frame));
  const Argument arguments[] = {{owner, {}}, {index, {}}, {value, {}}};
  return call_operator("_set_item", arguments, frame.path).status();
}

Result<bool> Interpreter::condition(const Value& value, const std::string& path) {
  if (value.is_number()) return value.boolean();
  if (value.is_none()) return false;
  if (value.is_tensor()) {
    Emitter emitter(session_.graph, session_.ops, path, {});
    if (const auto known = session_.constant_number(emitter, value.tensor())) return known->boolean();
    return data_dependent("a condition");
  }
  return invalid_model("a " + describe(value) + " is not a condition");
}

// --- expressions

Result<Value> Interpreter::evaluate(const Expression& e, Frame& frame) {
  Nesting nesting(*this);
  ORKNN_TRY(nesting.check());
  switch (e.syntax) {
    case Syntax::None: return Value();
    case Syntax::True: return Value(true);
    case Syntax::False: return Value(false);
    case Syntax::Integer: return Value(e.integer);
    case Syntax::Float: return Value(e.number);
    case Syntax::String: return Value::text(Kind::String, &e.text);  // the library outlives the values
    case Syntax::Name: {
      const auto it = frame.locals.find(e.text);
      if (it != frame.locals.end()) return it->second;
      if (e.text == "inf") return Value(std::numeric_limits<double>::infinity());
      if (e.text == "nan") return Value(std::numeric_limits<double>::quiet_NaN());
      return invalid_model("name '" + e.text + "' is not defined");
    }
    case Syntax::Qualified: return qualified_value(e.text);
    case Syntax::Attribute: {
      ORKNN_TRY_ASSIGN(const Value object, evaluate(e.children[0], frame));
      return attribute(object, e.text);
    }
    case Syntax::Subscript: {
      ORKNN_TRY_ASSIGN(const Value container, evaluate(e.children[0], frame));
      ORKNN_TRY_ASSIGN(const Value index, evaluate(e.children[1], frame));
      return subscript(container, index, frame);
    }
    case Syntax::Call: return evaluate_call(e, frame);
    case Syntax::List:
    case Syntax::Tuple: {
      std::vector<Value> items;
      for (const Expression& child : e.children) {
        ORKNN_TRY_ASSIGN(const Value item, evaluate(child, frame));
        items.push_back(item);
      }
      ListValue* list = session_.heap.list(std::move(items));
      return e.syntax == Syntax::List ? Value::list(list) : Value::tuple(list);
    }
    case Syntax::Dict: {
      DictValue* dict = session_.heap.dict();
      for (size_t i = 0; i + 1 < e.children.size(); i += 2) {
        ORKNN_TRY_ASSIGN(const Value key, evaluate(e.children[i], frame));
        ORKNN_TRY_ASSIGN(const Value value, evaluate(e.children[i + 1], frame));
        session_.heap.charge(1);
        if (!dict->set(key, value)) return invalid_model("a " + describe(key) + " cannot be a key");
      }
      return Value(dict);
    }
    case Syntax::Negate:
    case Syntax::Not: {
      ORKNN_TRY_ASSIGN(const Value operand, evaluate(e.children[0], frame));
      const Argument arguments[] = {{operand, {}}};
      return call_operator(e.syntax == Syntax::Negate ? "neg" : "__not__", arguments, frame.path);
    }
  }
  return Value();
}

Result<std::vector<Argument>> Interpreter::arguments(const Expression& e, Frame& frame) {
  std::vector<Argument> list;
  for (size_t i = 1; i < e.children.size(); ++i) {
    ORKNN_TRY_ASSIGN(const Value value, evaluate(e.children[i], frame));
    list.push_back({value, e.keywords[i - 1]});
  }
  return list;
}

Result<Value> Interpreter::evaluate_call(const Expression& e, Frame& frame) {
  const Expression& callee = e.children[0];
  if (callee.syntax == Syntax::Name && !frame.locals.contains(callee.text)) return call_builtin(e, frame);
  if (callee.syntax == Syntax::Qualified) {
    ORKNN_TRY_ASSIGN(const auto list, arguments(e, frame));
    return call_qualified(callee.text, list, frame);
  }
  if (callee.syntax == Syntax::Attribute) {
    ORKNN_TRY_ASSIGN(const Value object, evaluate(callee.children[0], frame));
    ORKNN_TRY_ASSIGN(const auto list, arguments(e, frame));
    if (object.kind() != Kind::Object) return invalid_model("a " + describe(object) + " has no method '" + callee.text + "'");
    ORKNN_TRY(initialize(object.object()));
    return call_method(object.object(), callee.text, list);
  }
  ORKNN_TRY_ASSIGN(const Value function, evaluate(callee, frame));
  ORKNN_TRY_ASSIGN(const auto list, arguments(e, frame));
  return call_value(function, list, frame);
}

Result<Value> Interpreter::call_value(const Value& function, std::span<const Argument> arguments, Frame& frame) {
  if (function.kind() != Kind::Function) return invalid_model("a " + describe(function) + " cannot be called");
  return call_qualified(function.text(), arguments, frame);
}

Result<Value> Interpreter::call_qualified(const std::string& name, std::span<const Argument> arguments, Frame& frame) {
  if (const std::string op = operator_name(name); !op.empty()) return call_operator(op, arguments, frame.path);
  if (name.ends_with(".__new__")) return Value(session_.heap.object(name.substr(0, name.size() - 8)));
  ORKNN_TRY_ASSIGN(const Function* function, library_.find_function(name));
  if (function) return call(*function, frame.path, arguments);
  ORKNN_TRY_ASSIGN(const Class* type, library_.find_class(name));
  if (!type) return invalid_model("function '" + name + "' is not in the archive");
  if (type->base == "NamedTuple") {
    std::vector<Value> items;
    for (const Argument& a : arguments) items.push_back(a.value);
    ListValue* tuple = session_.heap.list(std::move(items));
    for (const auto& field : type->fields) tuple->fields.push_back(field.first);
    return Value::tuple(tuple);
  }
  ObjectValue* object = session_.heap.object(name);
  if (type->methods.contains("__init__")) ORKNN_TRY(call_method(*object, "__init__", arguments).status());
  return Value(object);
}

Result<Value> Interpreter::qualified_value(const std::string& name) {
  if (name.starts_with("CONSTANTS.c")) {
    size_t number = 0;
    for (char c : std::string_view(name).substr(11)) {
      if (c < '0' || c > '9' || number > constants_.size()) return invalid_model("there is no constant " + name);
      number = number * 10 + static_cast<size_t>(c - '0');
    }
    if (number >= constants_.size())
      return invalid_model("there is no constant " + name).expected("fewer than " + std::to_string(constants_.size()));
    return constants_[number];
  }
  if (name == "torch.inf") return Value(std::numeric_limits<double>::infinity());
  if (name == "torch.nan") return Value(std::numeric_limits<double>::quiet_NaN());
  if (name.starts_with("torch.")) {
    const ScalarType* type = scalar_type_of_name(name.substr(6));
    if (type) return Value(type->code);
  }
  if (name.starts_with("__torch__.")) {
    const size_t dot = name.rfind('.');
    ORKNN_TRY_ASSIGN(const Class* type, library_.find_class(name.substr(0, dot)));
    if (type)  // a value of an enumeration or another constant of a class
      for (const auto& [field, value] : type->fields)
        if (field == name.substr(dot + 1) && value) {
          ORKNN_TRY_ASSIGN(const Value content, literal(*value));
          if (type->base != "Enum") return content;
          ObjectValue* object = session_.heap.object(name.substr(0, dot));
          object->attributes["value"] = content;
          object->attributes["name"] = Value::text(Kind::String, &field);
          return Value(object);
        }
  }
  return session_.heap.text(Kind::Function, name);
}

Result<Value> Interpreter::attribute(const Value& owner, const std::string& name) {
  if (owner.kind() == Kind::Tuple) {
    const ListValue& tuple = owner.sequence();
    for (size_t i = 0; i < tuple.fields.size() && i < tuple.items.size(); ++i)
      if (tuple.fields[i] == name) return tuple.items[i];
  }
  if (owner.kind() != Kind::Object) return invalid_model("a " + describe(owner) + " has no attribute '" + name + "'");
  ObjectValue& object = owner.object();
  ORKNN_TRY(initialize(object));
  if (const auto it = object.attributes.find(name); it != object.attributes.end()) return it->second;
  ORKNN_TRY_ASSIGN(const Class* type, library_.find_class(object.class_name));
  if (type) {
    for (const auto& [field, value] : type->fields)
      if (field == name && value) return literal(*value);
  }
  if (name == "training") return Value(false);  // not kept by old archives
  return invalid_model("an object of class " + object.class_name + " has no attribute '" + name + "'");
}

Result<Value> Interpreter::subscript(const Value& container, const Value& index, Frame& frame) {
  const Argument arguments[] = {{container, {}}, {index, {}}};
  return call_operator("__getitem__", arguments, frame.path);
}

Result<bool> Interpreter::is_instance(const Value& value, const Expression& type) {
  Nesting nesting(*this);
  ORKNN_TRY(nesting.check());
  if (type.syntax == Syntax::List || type.syntax == Syntax::Tuple) {
    for (const Expression& one : type.children) {
      ORKNN_TRY_ASSIGN(const bool holds, is_instance(value, one));
      if (holds) return true;
    }
    return false;
  }
  if (type.syntax == Syntax::Qualified) return value.kind() == Kind::Object && value.object().class_name == type.text;
  const bool is_generic = type.syntax == Syntax::Subscript;
  const std::string& name = is_generic ? type.children[0].text : type.text;
  const Expression* inner = is_generic ? &type.children[1] : nullptr;
  if (type.syntax == Syntax::None || name == "NoneType") return value.is_none();
  if (name == "Optional" && inner) {
    if (value.is_none()) return true;
    return is_instance(value, *inner);
  }
  if ((name == "List" || name == "list") && value.kind() == Kind::List) {
    if (!inner || value.sequence().items.empty()) return true;
    return is_instance(value.sequence().items[0], *inner);
  }
  if (name == "Dict" || name == "dict") return value.kind() == Kind::Dict;
  if (name == "Tuple" || name == "tuple") return value.kind() == Kind::Tuple;
  if (name == "number") return value.is_number();
  return kind_name(value.kind()) == name;
}

Result<Value> Interpreter::call_builtin(const Expression& e, Frame& frame) {
  const std::string& name = e.children[0].text;
  const size_t count = e.children.size() - 1;
  if ((name == "annotate" || name == "unchecked_cast" || name == "cast") && count == 2) return evaluate(e.children[2], frame);
  if (name == "uninitialized") return Value::uninitialized();
  if (name == "isinstance" && count == 2) {
    ORKNN_TRY_ASSIGN(const Value value, evaluate(e.children[1], frame));
    ORKNN_TRY_ASSIGN(const bool holds, is_instance(value, e.children[2]));
    return Value(holds);
  }
  ORKNN_TRY_ASSIGN(const auto list, arguments(e, frame));
  if ((name == "getattr" || name == "hasattr") && count >= 2 && list[1].value.kind() == Kind::String) {
    auto found = attribute(list[0].value, list[1].value.text());
    if (name == "hasattr") return Value(found.is_ok());
    if (!found && count == 3) return list[2].value;
    return found;
  }
  static constexpr std::string_view kCasts[][2] = {
      {"int", "Int"},           {"float", "Float"},   {"bool", "Bool"},    {"str", "str"},   {"complex", "Complex"},
      {"print", "prim::Print"}, {"len", "len"},       {"list", "list"},    {"dict", "dict"}, {"ord", "ord"},
      {"abs", "abs"},           {"min", "prim::min"}, {"max", "prim::max"}};
  for (const auto& [source, op] : kCasts)
    if (name == source) return call_operator(op, list, frame.path);
  return unsupported("function '" + name + "' is not supported");
}

// --- operators

std::string Interpreter::layer_name(const std::string& layer) const {
  if (!layer.empty() || !place_.function) return layer;
  return place_.function->name + ", line " + std::to_string(place_.line);
}

Result<Value> Interpreter::call_operator(std::string_view name, std::span<const Argument> given, const std::string& layer) {
  if (++calls_ > kMaxCalls)
    return unsupported("the model's code calls too many operators")
        .hint("loops are unrolled while importing: use fewer iterations");
  const OperatorTable& table = OperatorTable::instance();
  // A name that ends with an underscore has rows of its own or writes what the plain operator computes.
  std::vector<std::pair<const Schema*, bool>> forms;
  for (const Schema& s : table.find(name)) forms.emplace_back(&s, false);
  if (is_inplace_name(name))
    for (const Schema& s : table.find(name.substr(0, name.size() - 1))) forms.emplace_back(&s, true);
  if (forms.empty()) return unsupported("operator is not supported").node(layer_name(layer), shown_operator(name));

  std::vector<Argument> list(given.begin(), given.end());
  Value out;
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].keyword == "out" && list[i].value.is_tensor()) {
      out = list[i].value;
      list.erase(list.begin() + static_cast<ptrdiff_t>(i));
      break;
    }

  struct Context {
    Session& session;
    Emitter emitter;
  } context{session_, Emitter(session_.graph, session_.ops, layer, {layer})};
  const ConstantReader read = [](void* c, TensorValue& t) {
    return static_cast<Context*>(c)->session.constant_number(static_cast<Context*>(c)->emitter, t);
  };
  for (const Matching matching : {Matching::Strict, Matching::Implicit})
    for (const auto& [form, is_inplace] : forms) {
      const Schema& schema = *form;
      const bool writes_first = is_inplace;
      auto bound = bind_arguments(schema, list, matching, session_.heap, read, &context);
      if (!bound) continue;
      const std::string path = layer.empty() ? std::string(name) : layer;
      Call call(session_, path, schema, std::move(*bound));
      const auto result = [&]() -> Result<Value> {
        ORKNN_TRY(call.prepare());
        ORKNN_TRY_ASSIGN(const Value lowered, (*schema.row)(call));
        ORKNN_TRY_ASSIGN(const Value value, quantized_like_input(call, lowered));
        const Value target = writes_first ? list[0].value : out;
        if (target.is_none()) return value;
        if (!target.is_tensor() || !value.is_tensor()) return value;
        if (&target.tensor() == &value.tensor()) return value;
        if (target.tensor().is_complex || value.tensor().is_complex)
          return unsupported("complex numbers cannot be written into a tensor");
        ORKNN_TRY(session_.refresh(call, value.tensor()));
        ORKNN_TRY(call.write(target.tensor(), value.tensor().id));
        return target;
      }();
      if (result) return result;
      return Status(result.status()).node(layer.empty() ? layer_name(layer) : path, shown_operator(name));
    }
  std::string types;
  for (const Argument& a : list)
    types += (types.empty() ? "" : ", ") + (a.keyword.empty() ? "" : std::string(a.keyword) + "=") + describe(a.value);
  return unsupported("operator is not supported with these arguments")
      .found("(" + types + ")")
      .node(layer_name(layer), shown_operator(name));
}

namespace {
void collect(const Expression& e, std::map<std::string, size_t>& out) {
  if (e.syntax == Syntax::Call && e.children[0].syntax == Syntax::Qualified && e.children[0].text != "torch.device")
    if (const std::string name = operator_name(e.children[0].text); !name.empty()) ++out[name];
  for (const Expression& child : e.children) collect(child, out);
}
void collect(const std::vector<Statement>& statements, std::map<std::string, size_t>& out) {
  for (const Statement& s : statements) {
    collect(s.value, out);
    collect(s.body, out);
    collect(s.otherwise, out);
  }
}
}  // namespace

std::map<std::string, size_t> Interpreter::operators(std::span<ObjectValue* const> modules) {
  std::map<std::string, size_t> found;
  std::unordered_set<const Function*> seen;
  for (ObjectValue* module : modules) {
    const auto method = find_method(*module, "forward");
    if (method && *method && seen.insert(*method).second) collect((*method)->body, found);
  }
  return found;
}

}  // namespace orknn::importer::pytorch
