// The intermediate representation that Paddle 3 writes as JSON: values are numbers, lists of values are values too.
#include <algorithm>
#include <charconv>
#include <utility>

#include "import/paddle/program.h"
#include "import/wire/json.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
using Json = wire::JsonReader;

// A number or a truth value. Numbers that are not finite are texts.
void add_scalar(const std::string& text, Attribute& a) {
  if (text == "true" || text == "false") {
    a.integers.push_back(text == "true");
    a.numbers.push_back(text == "true");
    return;
  }
  int64_t integer = 0;
  const char* const end = text.data() + text.size();
  if (const auto [stop, error] = std::from_chars(text.data(), end, integer); error == std::errc() && stop == end) {
    a.integers.push_back(integer);
    a.numbers.push_back(static_cast<double>(integer));
    return;
  }
  double number = 0;
  if (const auto [stop, error] = std::from_chars(text.data(), end, number); error == std::errc() && stop == end)
    a.numbers.push_back(number);
}

// {"#": type, "D": value}, a list of such, or a plain value; nested lists are flattened.
Status read_value(Json& json, Attribute& a) {
  switch (json.peek()) {
    case Json::Kind::Object:
      return json.object([&](const std::string& key) { return key == "D" ? read_value(json, a) : json.skip(); });
    case Json::Kind::Array: return json.array([&](size_t) { return read_value(json, a); });
    case Json::Kind::String: {
      ORKNN_TRY_ASSIGN(std::string text, json.string());
      a.texts.push_back(std::move(text));
      return {};
    }
    default: {
      ORKNN_TRY_ASSIGN(const std::string text, json.scalar_text());
      add_scalar(text, a);
      return {};
    }
  }
}

// What a value is: a tensor, or a list of them.
struct ValueType {
  bool is_list = false;
  size_t parts = 0;  // types within: those of the list, or of the tensor's elements
  std::string name;
  Dims dims;
  DType dtype = DType::Float32;
};

DType dtype_of_type(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"t_f32", DType::Float32}, {"t_f64", DType::Float64}, {"t_f16", DType::Float16}, {"t_bf16", DType::BFloat16},
      {"t_i8", DType::Int8},     {"t_i16", DType::Int16},   {"t_i32", DType::Int32},   {"t_i64", DType::Int64},
      {"t_ui8", DType::UInt8},   {"t_bool", DType::Bool},
  };
  for (const auto& [text, dtype] : kTypes)
    if (name.ends_with(text)) return dtype;
  return DType::Undefined;
}

Result<ValueType> read_value_type(Json& json) {
  ValueType type;
  if (json.peek() != Json::Kind::Object) {
    ORKNN_TRY(json.skip());
    return type;
  }
  bool has_dims = false;
  ORKNN_TRY(json.object([&](const std::string& key) -> Status {
    if (key == "#") {
      ORKNN_TRY_ASSIGN(type.name, json.scalar_text());
      return {};
    }
    if (key != "D" || json.peek() != Json::Kind::Array) return json.skip();
    return json.array([&](size_t) -> Status {
      if (json.peek() == Json::Kind::Object) {
        ORKNN_TRY_ASSIGN(const ValueType part, read_value_type(json));
        type.dtype = dtype_of_type(part.name);
        ++type.parts;
        return {};
      }
      if (json.peek() != Json::Kind::Array || has_dims) return json.skip();
      has_dims = true;
      Attribute extents;
      ORKNN_TRY(read_value(json, extents));
      type.dims = extents.integers;
      return {};
    });
  }));
  type.is_list = type.name.ends_with("t_vec");
  return type;
}

struct TypedValue {
  int64_t id = 0;
  ValueType type;
};
// The number of what an operation makes is "%", that of an argument of a block "#".
Result<TypedValue> read_typed_value(Json& json) {
  TypedValue value;
  ORKNN_TRY(json.object([&](const std::string& key) -> Status {
    if (key == "%" || key == "#") {
      ORKNN_TRY_ASSIGN(value.id, json.integer());
      return {};
    }
    if (key != "TT") return json.skip();
    ORKNN_TRY_ASSIGN(value.type, read_value_type(json));
    return {};
  }));
  return value;
}

struct Operation;
// A region of an operation: its only block.
struct Region {
  std::vector<TypedValue> arguments;
  std::vector<Operation> operations;
};

// An operation as it stands in the file.
struct Operation {
  std::string type;
  std::map<std::string, Attribute, std::less<>> attributes;
  Attribute flat;  // the attributes of a parameter, which have no names
  std::vector<int64_t> reads;
  std::vector<TypedValue> makes;
  Attribute traits;  // of its values; those of a parameter say first whether it is saved
  std::vector<Region> regions;
};

Status read_attributes(Json& json, Operation& op) {
  return json.array([&](size_t) -> Status {
    if (json.peek() != Json::Kind::Object) return read_value(json, op.flat);
    std::string name;
    Attribute value;
    ORKNN_TRY(json.object([&](const std::string& key) -> Status {
      if (key == "N") {
        ORKNN_TRY_ASSIGN(name, json.string());
        return {};
      }
      return key == "AT" ? read_value(json, value) : json.skip();
    }));
    op.attributes[name] = std::move(value);
    return {};
  });
}

Result<Operation> read_operation(Json& json);

// {"blocks": [{"args": [...], "ops": [...]}]}: `add` is called with every operation of the first block.
template <class Add>
Status read_region(Json& json, std::vector<TypedValue>& arguments, Add&& add) {
  return json.object([&](const std::string& key) -> Status {
    if (key != "blocks" || json.peek() != Json::Kind::Array) return json.skip();
    return json.array([&](size_t block) -> Status {
      if (block > 0 || json.peek() != Json::Kind::Object) return json.skip();
      return json.object([&](const std::string& part) -> Status {
        if (json.peek() != Json::Kind::Array) return json.skip();
        if (part == "args")
          return json.array([&](size_t) -> Status {
            ORKNN_TRY_ASSIGN(TypedValue value, read_typed_value(json));
            arguments.push_back(std::move(value));
            return {};
          });
        if (part != "ops") return json.skip();
        return json.array([&](size_t) -> Status {
          ORKNN_TRY_ASSIGN(Operation op, read_operation(json));
          return add(std::move(op));
        });
      });
    });
  });
}

Result<Operation> read_operation(Json& json) {
  Operation op;
  const auto read_made = [&](size_t) -> Status {
    ORKNN_TRY_ASSIGN(TypedValue value, read_typed_value(json));
    op.makes.push_back(std::move(value));
    return {};
  };
  ORKNN_TRY(json.object([&](const std::string& key) -> Status {
    if (key == "#") {
      ORKNN_TRY_ASSIGN(op.type, json.scalar_text());
      return {};
    }
    if (key == "A" && json.peek() == Json::Kind::Array) return read_attributes(json, op);
    if (key == "I" && json.peek() == Json::Kind::Array)
      return json.array([&](size_t) -> Status {
        ORKNN_TRY_ASSIGN(const TypedValue value, read_typed_value(json));
        op.reads.push_back(value.id);
        return {};
      });
    if (key == "O") return json.peek() == Json::Kind::Array ? json.array(read_made) : read_made(0);
    if (key == "OA") return read_value(json, op.traits);
    if (key == "regions" && json.peek() == Json::Kind::Array)
      return json.array([&](size_t) -> Status {
        if (json.peek() != Json::Kind::Object) return json.skip();
        Region& region = op.regions.emplace_back();
        return read_region(json, region.arguments, [&](Operation inner) -> Status {
          region.operations.push_back(std::move(inner));
          return {};
        });
      });
    return json.skip();
  }));
  return op;
}

// Operations become operators: dialects are left out of their names, values get names, and lists are taken apart.
class Builder {
 public:
  Status add(Operation op) {
    const size_t dot = op.type.find('.');
    const bool is_builtin = op.type.starts_with("0.");
    const std::string type = dot == std::string::npos ? op.type : op.type.substr(dot + 1);
    if (type == "p") return add_parameter(op);
    if (type == "data" || type == "feed") return add_input(op);
    if (type == "fetch" || type == "shadow_output") return add_output(op, type);
    if (is_builtin && type == "combine") return add_list(op);
    if (is_builtin && type == "split") return take_apart(op);
    if (is_builtin && type == "slice") return take_one(op);
    std::vector<Body> bodies;
    for (const Region& region : op.regions) {
      ORKNN_TRY_ASSIGN(Body body, body_of(region));
      bodies.push_back(std::move(body));
    }
    add_operator(std::move(op), type);
    operators_->back().bodies = std::move(bodies);
    return {};
  }
  Program finish(int64_t version) {
    rename_outputs();
    program_.version = version;
    program_.producer = "paddle 3";
    return std::move(program_);
  }

 private:
  static std::string text_of(const Operation& op, std::string_view key, std::string fallback) {
    const auto it = op.attributes.find(key);
    return it == op.attributes.end() || it->second.texts.empty() ? fallback : it->second.texts[0];
  }
  // 0 stands for what is absent.
  Result<std::vector<std::string>> values_of(int64_t id) const {
    if (id == 0) return std::vector<std::string>();
    const auto it = values_.find(id);
    if (it == values_.end()) return invalid_model("value " + std::to_string(id) + " is read before it is made");
    return it->second;
  }
  static Result<int64_t> only_value(const Operation& op) {
    if (op.makes.size() == 1) return op.makes[0].id;
    return invalid_model("'" + op.type + "' must make one value").found(std::to_string(op.makes.size()));
  }

  // The operations of a region go to its block; the last one names what it hands out.
  Result<Body> body_of(const Region& region) {
    if (depth_ == kMostNestedBlocks) return too_many_nested_blocks();
    Body body;
    std::unordered_map<int64_t, std::vector<std::string>> hidden;  // arguments of an outer block go by the same numbers
    for (const TypedValue& argument : region.arguments) {
      body.inputs.push_back("argument." + std::to_string(arguments_++));
      hidden[argument.id] = std::exchange(values_[argument.id], {body.inputs.back()});
    }
    std::vector<Operator>* const outer = std::exchange(operators_, &body.operators);
    ++depth_;
    Status status;
    for (const Operation& op : region.operations) {
      status = op.type.ends_with(".yield") ? add_yield(op, body) : add(op);
      if (!status) break;
    }
    --depth_;
    operators_ = outer;
    for (auto& [id, values] : hidden) values_[id] = std::move(values);
    if (!status) return status;
    return body;
  }
  Status add_yield(const Operation& op, Body& body) {
    for (int64_t read : op.reads) {
      ORKNN_TRY_ASSIGN(const std::vector<std::string> values, values_of(read));
      if (values.size() != 1) return unsupported("a block that returns a list is not supported").expected("tensors");
      body.outputs.push_back(values[0]);
    }
    return {};
  }

  Status add_parameter(const Operation& op) {
    ORKNN_TRY_ASSIGN(const int64_t id, only_value(op));
    if (op.flat.texts.empty()) return invalid_model("a parameter has no name");
    const ValueType& type = op.makes[0].type;
    values_[id] = {op.flat.texts.back()};
    const bool is_saved = op.traits.integers.empty() || op.traits.integers[0] != 0;
    if (is_saved) program_.parameters.push_back({op.flat.texts.back(), type.dtype, type.dims});
    return {};
  }
  Status add_input(const Operation& op) {
    ORKNN_TRY_ASSIGN(const int64_t id, only_value(op));
    const std::string name = text_of(op, "name", "input_" + std::to_string(program_.inputs.size()));
    const ValueType& type = op.makes[0].type;
    values_[id] = {name};
    program_.inputs.push_back({.name = name, .dtype = type.dtype, .shape = shape_of_input(type.dims)});
    return {};
  }
  Status add_output(const Operation& op, const std::string& type) {
    if (op.reads.empty()) return invalid_model("an output reads nothing");
    ORKNN_TRY_ASSIGN(const std::vector<std::string> values, values_of(op.reads[0]));
    if (values.size() != 1) return unsupported("an output that is a list").expected("one tensor");
    outputs_.emplace_back(text_of(op, type == "fetch" ? "name" : "output_name", values[0]), values[0]);
    return {};
  }
  Status add_list(const Operation& op) {
    ORKNN_TRY_ASSIGN(const int64_t id, only_value(op));
    std::vector<std::string> all;
    for (int64_t read : op.reads) {
      ORKNN_TRY_ASSIGN(const std::vector<std::string> values, values_of(read));
      all.insert(all.end(), values.begin(), values.end());
    }
    values_[id] = std::move(all);
    return {};
  }
  Status take_apart(const Operation& op) {
    if (op.reads.size() != 1) return invalid_model("the list to divide does not exist");
    ORKNN_TRY_ASSIGN(const std::vector<std::string> values, values_of(op.reads[0]));
    if (values.size() != op.makes.size())
      return invalid_model("a list is divided into another number of values")
          .expected(std::to_string(values.size()))
          .found(std::to_string(op.makes.size()));
    for (size_t i = 0; i < values.size(); ++i) values_[op.makes[i].id] = {values[i]};
    return {};
  }
  Status take_one(const Operation& op) {
    ORKNN_TRY_ASSIGN(const int64_t id, only_value(op));
    const auto index = op.attributes.find("index");
    if (op.reads.empty() || index == op.attributes.end() || index->second.integers.empty())
      return invalid_model("an element of a list is taken without its index");
    ORKNN_TRY_ASSIGN(const std::vector<std::string> values, values_of(op.reads[0]));
    const int64_t at = index->second.integers[0];
    if (at < 0 || at >= std::ssize(values))
      return invalid_model("an element of a list is taken that is not there").found(std::to_string(at));
    values_[id] = {values[static_cast<size_t>(at)]};
    return {};
  }
  // What cannot be resolved here is an operand that nothing produces, which its reader reports.
  void add_operator(Operation op, const std::string& type) {
    Operator now;
    now.type = type.size() > 1 && type.back() == '_' ? type.substr(0, type.size() - 1) : type;  // in place
    for (int64_t read : op.reads) {
      const auto values = values_of(read);
      now.inputs.push_back({values ? *values : std::vector<std::string>{"value " + std::to_string(read)}, {}});
    }
    for (const TypedValue& made : op.makes) {
      const std::string name = now.type + "." + std::to_string(made.id);
      std::vector<std::string> names{name};
      if (made.type.is_list) {
        names.clear();
        for (size_t i = 0; i < made.type.parts; ++i) names.push_back(name + "." + std::to_string(i));
      }
      if (now.name.empty()) now.name = name;
      if (made.id != 0) values_[made.id] = names;
      now.outputs.push_back(std::move(names));
    }
    now.attributes = std::move(op.attributes);
    operators_->push_back(std::move(now));
  }
  // The values that are fetched are called as the file calls the outputs.
  void rename_outputs() {
    std::unordered_map<std::string, std::string> names;
    std::unordered_set<std::string> kept;
    for (const Port& p : program_.inputs) kept.insert(p.name);
    for (const Parameter& p : program_.parameters) kept.insert(p.name);
    for (const auto& [name, value] : outputs_) {
      if (!kept.contains(value) && !kept.contains(name)) names.try_emplace(value, name);
      const auto it = names.find(value);
      program_.outputs.push_back(it == names.end() ? value : it->second);
    }
    const auto rename = [&](std::string& value) {
      if (const auto it = names.find(value); it != names.end()) value = it->second;
    };
    for_each_name(program_.operators, rename);
  }
  template <class F>
  static void for_each_name(std::vector<Operator>& operators, const F& f) {
    for (Operator& op : operators) {
      for (Operand& operand : op.inputs) std::for_each(operand.values.begin(), operand.values.end(), f);
      for (auto& list : op.outputs) std::for_each(list.begin(), list.end(), f);
      for (Body& body : op.bodies) {
        for_each_name(body.operators, f);
        std::for_each(body.outputs.begin(), body.outputs.end(), f);
      }
    }
  }

  Program program_;
  std::vector<Operator>* operators_ = &program_.operators;  // of the block at hand
  size_t arguments_ = 0;                                    // of blocks so far
  int depth_ = 0;                                           // of the block at hand
  std::unordered_map<int64_t, std::vector<std::string>> values_;
  std::vector<std::pair<std::string, std::string>> outputs_;  // name, value
};

// Only the first block of the first region runs; others belong to operations.
Status read_program(Json& json, Builder& builder) {
  return json.array([&](size_t region) -> Status {
    if (region > 0 || json.peek() != Json::Kind::Object) return json.skip();
    std::vector<TypedValue> none;
    return read_region(json, none, [&](Operation op) { return builder.add(std::move(op)); });
  });
}
}  // namespace

bool looks_like_pir(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 512));
  const size_t brace = text.find_first_not_of(" \t\r\n");
  if (brace == std::string_view::npos || text[brace] != '{') return false;
  return text.find("\"base_code\"") != std::string_view::npos && text.find("\"pir\"") != std::string_view::npos;
}

Result<Program> parse_pir(std::span<const std::byte> bytes) {
  Json json(bytes);
  Builder builder;
  int64_t version = 0;
  ORKNN_TRY(json.object([&](const std::string& key) -> Status {
    if (key == "base_code" && json.peek() == Json::Kind::Object)
      return json.object([&](const std::string& part) -> Status {
        if (part != "version" || json.peek() != Json::Kind::Number) return json.skip();
        ORKNN_TRY_ASSIGN(version, json.integer());
        return {};
      });
    if (key != "program" || json.peek() != Json::Kind::Object) return json.skip();
    return json.object([&](const std::string& part) -> Status {
      return part == "regions" && json.peek() == Json::Kind::Array ? read_program(json, builder) : json.skip();
    });
  }));
  ORKNN_TRY(json.finish());
  return builder.finish(version);
}

}  // namespace orknn::importer::paddle
