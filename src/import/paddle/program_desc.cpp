// ProgramDesc: what Paddle 1 and 2 write.
#include <algorithm>

#include "import/paddle/old_operators.h"
#include "import/wire/reader.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
using wire::Bytes;
using wire::Field;

// A variable of a block.
struct Variable {
  std::string name;
  int64_t kind = 0;  // 7: a tensor
  DType dtype = DType::Float32;
  Dims dims;
  bool is_persistable = false;
};

template <class F>
Status for_each_field(Bytes message, F&& f) {
  wire::Reader reader(message);
  for (Field field; reader.next(field);) ORKNN_TRY(f(field));
  return reader.status();
}

Status read_text(const Field& field, std::string& to) {
  if (std::string_view text; field.get(text)) to = text;
  return {};
}

// VarType: its kind, and of a tensor its elements and extents.
Status read_type(Bytes message, Variable& v) {
  return for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 1) f.get(v.kind);
    if (f.number != 3 || f.type != wire::WireType::Bytes) return {};
    return for_each_field(f.bytes, [&](const Field& tensor) -> Status {
      if (tensor.number != 1 || tensor.type != wire::WireType::Bytes) return {};
      return for_each_field(tensor.bytes, [&](const Field& part) -> Status {
        int64_t number = 0;
        if (part.number == 1 && part.get(number)) v.dtype = dtype_of_number(number);
        return part.number == 2 ? wire::append(part, v.dims) : Status();
      });
    });
  });
}

Result<Variable> read_variable(Bytes message) {
  Variable v;
  ORKNN_TRY(for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 1) return read_text(f, v.name);
    if (f.number == 2 && f.type == wire::WireType::Bytes) return read_type(f.bytes, v);
    if (f.number == 3) f.get(v.is_persistable);
    return {};
  }));
  return v;
}

void add_integer(Attribute& a, int64_t value) {
  a.integers.push_back(value);
  a.numbers.push_back(static_cast<double>(value));
}

Status read_attribute_value(const Field& f, Attribute& a);

// A value of any kind, as attributes of the last versions of Paddle 2 have it.
Status read_scalar(Bytes message, Attribute& a) {
  return for_each_field(message, [&](const Field& f) -> Status {
    int64_t integer = 0;
    double number = 0;
    if ((f.number == 2 || f.number == 3) && f.get(integer)) add_integer(a, integer);
    if (f.number == 4 && f.get(number)) a.numbers.push_back(number);
    return {};
  });
}

Status read_attribute_value(const Field& f, Attribute& a) {
  switch (f.number) {
    case 3:   // i
    case 6:   // ints
    case 10:  // b
    case 11:  // bools
    case 13:  // l
    case 15:  // longs
      return wire::for_each_varint(f, [&](uint64_t bits) { add_integer(a, static_cast<int64_t>(bits)); });
    case 4:    // f
    case 7: {  // floats
      std::vector<float> values;
      ORKNN_TRY(wire::append(f, values));
      a.numbers.insert(a.numbers.end(), values.begin(), values.end());
      return {};
    }
    case 16:  // float64s
    case 19:  // float64
      return wire::for_each_fixed<uint64_t>(f, [&](uint64_t bits) { a.numbers.push_back(std::bit_cast<double>(bits)); });
    case 5:    // s
    case 8: {  // strings
      if (std::string_view text; f.get(text)) a.texts.emplace_back(text);
      return {};
    }
    case 20:  // scalar
    case 21:  // scalars
      return f.type == wire::WireType::Bytes ? read_scalar(f.bytes, a) : Status();
    default: return {};
  }
}

Status read_attribute(Bytes message, OldOperator& op) {
  std::string name;
  Attribute value;
  ORKNN_TRY(for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 1) return read_text(f, name);
    return read_attribute_value(f, value);
  }));
  op.attributes[name] = std::move(value);
  return {};
}

Status read_place(Bytes message, std::map<std::string, std::vector<std::string>, std::less<>>& to) {
  std::string name;
  std::vector<std::string> values;
  ORKNN_TRY(for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 1) return read_text(f, name);
    if (std::string_view text; f.number == 2 && f.get(text)) values.emplace_back(text);
    return {};
  }));
  to[name] = std::move(values);
  return {};
}

Result<OldOperator> read_operator(Bytes message) {
  OldOperator op;
  ORKNN_TRY(for_each_field(message, [&](const Field& f) -> Status {
    if (f.number == 3) return read_text(f, op.type);
    if (f.type != wire::WireType::Bytes) return {};
    if (f.number == 1) return read_place(f.bytes, op.inputs);
    if (f.number == 2) return read_place(f.bytes, op.outputs);
    if (f.number == 4) return read_attribute(f.bytes, op);
    return {};
  }));
  return op;
}

struct Block {
  std::vector<Variable> variables;
  std::vector<OldOperator> operators;
};
Result<Block> read_block(Bytes message) {
  Block block;
  ORKNN_TRY(for_each_field(message, [&](const Field& f) -> Status {
    if (f.type != wire::WireType::Bytes) return {};
    if (f.number == 3) {
      ORKNN_TRY_ASSIGN(Variable v, read_variable(f.bytes));
      block.variables.push_back(std::move(v));
    } else if (f.number == 4) {
      ORKNN_TRY_ASSIGN(OldOperator op, read_operator(f.bytes));
      block.operators.push_back(std::move(op));
    }
    return {};
  }));
  return block;
}

// A program may write a variable again (in place): every value gets a name of its own, of which the first is the variable's.
class Values {
 public:
  std::string written(const std::string& variable) {
    const size_t before = times_[variable]++;
    return current_[variable] = before == 0 ? variable : variable + "@" + std::to_string(before);
  }
  std::string now(const std::string& variable) const {
    const auto it = current_.find(variable);
    return it == current_.end() ? variable : it->second;
  }

 private:
  std::unordered_map<std::string, size_t> times_;
  std::unordered_map<std::string, std::string> current_;
};

const std::string* first_of(const std::map<std::string, std::vector<std::string>, std::less<>>& places, std::string_view place) {
  const auto it = places.find(place);
  return it == places.end() || it->second.empty() ? nullptr : &it->second[0];
}
int64_t column_of(const OldOperator& op) {
  const auto it = op.attributes.find("col");
  return it == op.attributes.end() || it->second.integers.empty() ? 0 : it->second.integers[0];
}

Status add_feed(const OldOperator& op, const Block& block, std::map<int64_t, Port>& feeds) {
  const std::string* name = first_of(op.outputs, "Out");
  if (!name) return invalid_model("a feed operator names no variable");
  const auto variable =
      std::find_if(block.variables.begin(), block.variables.end(), [&](const Variable& v) { return v.name == *name; });
  Port port{.name = *name, .dtype = DType::Float32, .shape = {}, .value = {}};
  if (variable != block.variables.end()) {
    port.dtype = variable->dtype;
    port.shape = shape_of_input(variable->dims);
  }
  feeds[column_of(op)] = std::move(port);
  return {};
}

Status add_operators(Block& block, Program& program) {
  Values values;
  std::map<int64_t, Port> feeds;
  std::map<int64_t, std::string> fetches;
  for (const Parameter& p : program.parameters) values.written(p.name);
  for (OldOperator& op : block.operators) {
    if (op.type == "feed") {
      ORKNN_TRY(add_feed(op, block, feeds));
      if (const std::string* name = first_of(op.outputs, "Out")) values.written(*name);
      continue;
    }
    if (op.type == "fetch") {
      if (const std::string* name = first_of(op.inputs, "X")) fetches[column_of(op)] = values.now(*name);
      continue;
    }
    Operator now = in_new_words(std::move(op));
    for (Operand& operand : now.inputs)
      for (std::string& value : operand.values) value = values.now(value);
    for (auto& list : now.outputs)
      for (std::string& value : list) value = values.written(value);
    for (const auto& list : now.outputs)
      if (now.name.empty() && !list.empty()) now.name = list[0];
    program.operators.push_back(std::move(now));
  }
  for (auto& [column, port] : feeds) program.inputs.push_back(std::move(port));
  for (auto& [column, name] : fetches) program.outputs.push_back(std::move(name));
  return {};
}

// 2006002 is version 2.6.2.
std::string version_text(int64_t version) {
  return std::to_string(version / 1000000) + "." + std::to_string(version / 1000 % 1000) + "." + std::to_string(version % 1000);
}
}  // namespace

DType dtype_of_number(int64_t number) {
  switch (number) {
    case 0: return DType::Bool;
    case 1: return DType::Int16;
    case 2: return DType::Int32;
    case 3: return DType::Int64;
    case 4: return DType::Float16;
    case 5: return DType::Float32;
    case 6: return DType::Float64;
    case 19: return DType::UInt64;
    case 20: return DType::UInt8;
    case 21: return DType::Int8;
    case 22: return DType::BFloat16;
    default: return DType::Undefined;
  }
}

Shape shape_of_input(const Dims& dims) {
  Shape shape;
  for (size_t i = 0; i < dims.size(); ++i) shape.push_back(dims[i] >= 0 ? Dim(dims[i]) : i == 0 ? Dim(1) : Dim());
  return shape;
}

bool looks_like_program_desc(std::span<const std::byte> bytes) {
  // The first field is block 0, whose parent is -1 in ten bytes.
  static constexpr uint8_t kRoot[] = {0x08, 0x00, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  Bytes rest = bytes;
  uint64_t tag = 0, length = 0;
  if (!wire::take_varint(rest, tag) || tag != 0x0a || !wire::take_varint(rest, length) || rest.size() < sizeof(kRoot))
    return false;
  return std::equal(std::begin(kRoot), std::end(kRoot), rest.begin(), [](uint8_t a, std::byte b) { return std::byte{a} == b; });
}

Result<Program> parse_program_desc(std::span<const std::byte> bytes) {
  Program program;
  std::optional<Bytes> main;
  ORKNN_TRY(for_each_field(bytes, [&](const Field& f) -> Status {
    if (f.type != wire::WireType::Bytes) return {};
    if (f.number == 1 && !main) main = f.bytes;
    if (f.number == 4)
      return for_each_field(f.bytes, [&](const Field& v) -> Status {
        if (v.number == 1) v.get(program.version);
        return {};
      });
    return {};
  }));
  if (!main) return invalid_model("the file holds no block").hint("is it the .pdmodel of an inference model?");
  ORKNN_TRY_ASSIGN(Block block, read_block(*main));
  constexpr int64_t kTensor = 7;
  for (const Variable& v : block.variables)
    if (v.is_persistable && v.kind == kTensor) program.parameters.push_back({v.name, v.dtype, v.dims});
  ORKNN_TRY(add_operators(block, program));
  program.producer = program.version > 0 ? "paddle " + version_text(program.version) : "paddle";
  return program;
}

bool looks_like_program(std::span<const std::byte> bytes) { return looks_like_program_desc(bytes) || looks_like_pir(bytes); }

Result<Program> parse_program(std::span<const std::byte> bytes) {
  auto program = looks_like_pir(bytes) ? parse_pir(bytes) : parse_program_desc(bytes);
  if (!program) return program;
  if (program->outputs.empty())
    return invalid_model("the program has no outputs")
        .hint("save the model for inference: paddle.jit.save or save_inference_model");
  return program;
}

}  // namespace orknn::importer::paddle
