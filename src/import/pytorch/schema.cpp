#include "import/pytorch/schema.h"

#include <algorithm>

#include "import/pytorch/operators.h"
#include "import/pytorch/source.h"

namespace orknn::importer::pytorch {
namespace {

struct TypeName {
  std::string_view name;
  Type type;
};
constexpr TypeName kTypes[] = {
    {"Tensor", Type::Tensor}, {"complex", Type::Complex},  {"either", Type::Either},    {"operand", Type::Operand},
    {"int", Type::Int},       {"float", Type::Float},      {"bool", Type::Bool},        {"Scalar", Type::Number},
    {"str", Type::String},    {"Device", Type::Device},    {"int[]", Type::Ints},       {"float[]", Type::Floats},
    {"bool[]", Type::Bools},  {"Scalar[]", Type::Numbers}, {"Tensor[]", Type::Tensors}, {"str[]", Type::Strings},
    {"list", Type::List},     {"dict", Type::Dict},        {"object", Type::Object},    {"any", Type::Any}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Value literal(const Expression& e, Heap& heap) {
  switch (e.syntax) {
    case Syntax::True: return true;
    case Syntax::False: return false;
    case Syntax::Integer: return e.integer;
    case Syntax::Float: return e.number;
    case Syntax::String: return heap.string(e.text);
    case Syntax::List: {
      std::vector<Value> items;
      for (const Expression& item : e.children) items.push_back(literal(item, heap));
      return Value::list(heap.list(std::move(items)));
    }
    default: return {};
  }
}

SchemaParameter parse_parameter(std::string_view text, Heap& heap) {
  SchemaParameter p;
  const size_t space = text.find(' ');
  ORKNN_ASSERT(space != std::string_view::npos, "a parameter has a type and a name");
  std::string_view type = text.substr(0, space);
  if (type.ends_with('?')) {
    p.optional = true;
    type.remove_suffix(1);
  }
  bool known = false;
  for (const TypeName& t : kTypes)
    if (t.name == type) {
      p.type = t.type;
      known = true;
    }
  ORKNN_ASSERT(known, "signatures use the types above");
  text = trimmed(text.substr(space));
  const size_t equals = text.find('=');
  p.name = std::string(trimmed(text.substr(0, equals)));
  if (equals != std::string_view::npos) {
    p.has_fallback = true;
    const auto value = parse_expression(trimmed(text.substr(equals + 1)));
    ORKNN_ASSERT(value.is_ok(), "defaults are literals");
    p.fallback = literal(*value, heap);
  }
  return p;
}

// The form that a signature states, without a name.
Schema parse_schema(const Row& row, std::string_view parameters, Heap& heap) {
  Schema schema;
  schema.row = &row;
  if (parameters == "...") {
    schema.takes_anything = true;
    return schema;
  }
  bool keyword_only = false;
  while (!trimmed(parameters).empty()) {
    size_t end = 0;
    for (int depth = 0; end < parameters.size() && (parameters[end] != ',' || depth > 0); ++end)
      depth += parameters[end] == '[' ? 1 : parameters[end] == ']' ? -1 : 0;
    const std::string_view part = trimmed(parameters.substr(0, end));
    parameters.remove_prefix(std::min(end + 1, parameters.size()));
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    schema.parameters.push_back(parse_parameter(part, heap));
    schema.parameters.back().keyword_only = keyword_only;
  }
  return schema;
}

struct Binder {
  Matching matching;
  Heap& heap;
  ConstantReader read;
  void* context;

  static bool is_real(const Value& v) { return v.is_tensor() && !v.tensor().is_complex; }

  bool number(Value& v, bool want_integer) const {
    if (is_real(v) && matching == Matching::Implicit)
      if (const auto known = read(context, v.tensor())) v = *known;
    if (!v.is_number()) return false;
    if (!want_integer) return true;
    if (v.kind() == Kind::Int) return true;
    if (v.kind() == Kind::Bool && matching == Matching::Implicit) {
      v = static_cast<int64_t>(v.boolean());
      return true;
    }
    return false;
  }

  template <class F>
  bool items(Value& v, F&& fits) const {
    if (!v.is_sequence()) {
      if (matching != Matching::Implicit) return false;
      Value one = v;
      if (!fits(one)) return false;
      v = Value::list(heap.list({one}));
      return true;
    }
    bool changed = false;
    heap.charge(v.sequence().items.size() / 16);
    std::vector<Value> converted = v.sequence().items;
    for (Value& item : converted) {
      const Value before = item;
      if (!fits(item)) return false;
      changed |= before.kind() != item.kind();
    }
    if (changed) v = Value::list(heap.list(std::move(converted)));
    return true;
  }

  bool fits(Value& v, const SchemaParameter& p) const {
    if (v.is_none() && p.optional) return true;
    switch (p.type) {
      case Type::Tensor: return is_real(v) || (matching == Matching::Implicit && v.is_number());
      case Type::Complex: return v.is_tensor() && v.tensor().is_complex;
      case Type::Either: return v.is_tensor() || v.is_number();
      case Type::Operand: return is_real(v) || v.is_number();
      case Type::Int: return number(v, true);
      case Type::Float: return number(v, false) && (v.kind() != Kind::Bool || matching == Matching::Implicit);
      case Type::Bool: return v.kind() == Kind::Bool || (matching == Matching::Implicit && number(v, false));
      case Type::Number: return number(v, false);
      case Type::String: return v.kind() == Kind::String;
      case Type::Device: return v.kind() == Kind::Device || v.kind() == Kind::String;
      case Type::Ints: return items(v, [this](Value& item) { return number(item, true); });
      case Type::Floats:
      case Type::Numbers: return items(v, [this](Value& item) { return number(item, false); });
      case Type::Bools: return items(v, [](Value& item) { return item.kind() == Kind::Bool; });
      case Type::Tensors:
        return v.is_sequence() && std::all_of(v.sequence().items.begin(), v.sequence().items.end(),
                                              [](const Value& item) { return is_real(item) || item.is_none(); });
      case Type::Strings:
        return v.is_sequence() && std::all_of(v.sequence().items.begin(), v.sequence().items.end(),
                                              [](const Value& item) { return item.kind() == Kind::String; });
      case Type::List: return v.is_sequence();
      case Type::Dict: return v.kind() == Kind::Dict;
      case Type::Object: return v.kind() == Kind::Object;
      case Type::Any: return true;
    }
    return false;
  }
};
}  // namespace

void OperatorTable::add(const Row& row) {
  const size_t open = row.op.find('(');
  ORKNN_ASSERT(open != std::string_view::npos && row.op.ends_with(')'), "a signature has parentheses");
  Schema schema = parse_schema(row, row.op.substr(open + 1, row.op.size() - open - 2), heap_);
  for (std::string_view names = row.op.substr(0, open); !names.empty();) {
    schema.name = std::string(names.substr(0, names.find('|')));
    names.remove_prefix(std::min(schema.name.size() + 1, names.size()));
    schemas_[schema.name].push_back(schema);
  }
}

OperatorTable::OperatorTable() {
  for (const auto rows :
       {python_rows(),        container_rows(), elementwise_rows(), activation_rows(), comparison_rows(),  reduction_rows(),
        shape_rows(),         join_rows(),      indexing_rows(),    creation_rows(),   convolution_rows(), pooling_rows(),
        normalization_rows(), matrix_rows(),    attention_rows(),   recurrent_rows(),  resize_rows(),      quantize_rows(),
        packed_rows(),        quantized_rows(), detection_rows(),   signal_rows(),     loss_rows()})
    for (const Row& row : rows) add(row);
}

const OperatorTable& OperatorTable::instance() {
  static const OperatorTable table;
  return table;
}

std::span<const Schema> OperatorTable::find(std::string_view name) const {
  const auto it = schemas_.find(name);
  return it == schemas_.end() ? std::span<const Schema>() : std::span<const Schema>(it->second);
}

std::optional<std::vector<Value>> bind_arguments(const Schema& schema, std::span<const Argument> arguments, Matching matching,
                                                 Heap& heap, ConstantReader read, void* context) {
  if (schema.takes_anything) return std::vector<Value>();
  std::vector<Value> bound(schema.parameters.size());
  std::vector<char> given(schema.parameters.size(), 0);
  size_t next = 0;
  for (const Argument& a : arguments) {
    size_t at = next;
    if (a.keyword.empty())
      ++next;
    else
      at = static_cast<size_t>(std::find_if(schema.parameters.begin(), schema.parameters.end(),
                                            [&](const SchemaParameter& p) { return p.name == a.keyword; }) -
                               schema.parameters.begin());
    if (at >= bound.size() || given[at]) return std::nullopt;
    if (a.keyword.empty() && schema.parameters[at].keyword_only && matching == Matching::Strict) return std::nullopt;
    bound[at] = a.value;
    given[at] = 1;
  }
  const Binder binder{matching, heap, read, context};
  for (size_t i = 0; i < bound.size(); ++i) {
    const SchemaParameter& p = schema.parameters[i];
    if (!given[i]) {
      if (!p.has_fallback) return std::nullopt;
      bound[i] = p.fallback;
    } else if (!binder.fits(bound[i], p)) {
      return std::nullopt;
    }
  }
  return bound;
}

}  // namespace orknn::importer::pytorch
