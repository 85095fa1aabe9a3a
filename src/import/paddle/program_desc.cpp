// ProgramDesc: what Paddle 1 and 2 write.
#include <algorithm>

#include "import/paddle/old_operators.h"
#include "import/wire/reader.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
using wire::Bytes;
using wire::Field;
using wire::Slot;

// A variable of a block.
struct Variable {
  std::string name;
  int64_t kind = 0;  // 7: a tensor
  DType dtype = DType::Float32;
  Dims dims;
  bool is_persistable = false;
};

// VarType: its kind, and of a tensor its elements and extents.
Status read_type(Bytes message, Variable& v) {
  const auto read_tensor = [&](Bytes type) { return read_tensor_type(type, v.dtype, v.dims); };
  return read_fields(message, Slot{1, v.kind}, Slot{3, [&](Bytes tensor) { return read_fields(tensor, Slot{1, read_tensor}); }});
}

Status read_variable(Bytes message, Variable& v) {
  return read_fields(message, Slot{1, v.name}, Slot{2, [&](Bytes type) { return read_type(type, v); }},
                     Slot{3, v.is_persistable});
}

void add_integer(Attribute& a, int64_t value) {
  a.integers.push_back(value);
  a.numbers.push_back(static_cast<double>(value));
}

Status read_attribute_value(const Field& f, Attribute& a);

// A value of any kind, as attributes of the last versions of Paddle 2 have it.
Status read_scalar(Bytes message, Attribute& a) {
  return wire::for_each_field(message, [&](const Field& f) -> Status {
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
    case 12:  // block_idx
    case 13:  // l
    case 15:  // longs
      return wire::for_each_varint(f, [&](uint64_t bits) { add_integer(a, static_cast<int64_t>(bits)); });
    case 4:  // f
    case 7:  // floats
      return wire::for_each_fixed<uint32_t>(f, [&](uint32_t bits) { a.numbers.push_back(std::bit_cast<float>(bits)); });
    case 16:  // float64s
    case 19:  // float64
      return wire::for_each_fixed<uint64_t>(f, [&](uint64_t bits) { a.numbers.push_back(std::bit_cast<double>(bits)); });
    case 5:  // s
    case 8:  // strings
      return wire::read_field(f, a.texts);
    case 20:  // scalar
    case 21:  // scalars
      return f.type == wire::WireType::Bytes ? read_scalar(f.bytes, a) : Status();
    default: return {};
  }
}

Status read_attribute(Bytes message, OldOperator& op) {
  std::string name;
  Attribute value;
  ORKNN_TRY(wire::for_each_field(
      message, [&](const Field& f) { return f.number == 1 ? wire::read_field(f, name) : read_attribute_value(f, value); }));
  op.attributes[name] = std::move(value);
  return {};
}

Status read_place(Bytes message, std::map<std::string, std::vector<std::string>, std::less<>>& to) {
  std::string name;
  std::vector<std::string> values;
  ORKNN_TRY(read_fields(message, Slot{1, name}, Slot{2, values}));
  to[name] = std::move(values);
  return {};
}

Status read_operator(Bytes message, OldOperator& op) {
  return read_fields(message, Slot{1, [&](Bytes place) { return read_place(place, op.inputs); }},
                     Slot{2, [&](Bytes place) { return read_place(place, op.outputs); }}, Slot{3, op.type},
                     Slot{4, [&](Bytes attribute) { return read_attribute(attribute, op); }});
}

struct Block {
  std::vector<Variable> variables;
  std::vector<OldOperator> operators;
};
Status read_block(Bytes message, Block& block) {
  return read_fields(message, Slot{3, [&](Bytes m) { return read_variable(m, block.variables.emplace_back()); }},
                     Slot{4, [&](Bytes m) { return read_operator(m, block.operators.emplace_back()); }});
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
int64_t integer_of(const OldOperator& op, std::string_view key, int64_t fallback) {
  const auto it = op.attributes.find(key);
  return it == op.attributes.end() || it->second.integers.empty() ? fallback : it->second.integers[0];
}

Status add_feed(const OldOperator& op, const Block& block, std::map<int64_t, Port>& feeds) {
  const std::string* name = first_of(op.outputs, "Out");
  if (!name) return invalid_model("a feed operator names no variable");
  const auto variable =
      std::find_if(block.variables.begin(), block.variables.end(), [&](const Variable& v) { return v.name == *name; });
  Port port{.name = *name, .dtype = DType::Float32};
  if (variable != block.variables.end()) {
    port.dtype = variable->dtype;
    port.shape = shape_of_input(variable->dims);
  }
  feeds[integer_of(op, "col", 0)] = std::move(port);
  return {};
}

std::vector<std::string> all_of(const std::map<std::string, std::vector<std::string>, std::less<>>& places,
                                std::string_view place) {
  const auto it = places.find(place);
  return it == places.end() ? std::vector<std::string>() : it->second;
}

// The operators of a block in the words of Paddle 3. A condition of Paddle 2 is two operators with a block each, the second of
// which reads the negated condition, and one that selects per result: they become one `if`.
class BlockReader {
 public:
  BlockReader(std::vector<Block>& blocks, std::vector<bool>& used, Values values, int depth = 0)
      : blocks_(blocks), used_(used), values_(std::move(values)), depth_(depth) {}
  const Values& values() const { return values_; }

  Status read(size_t index, std::vector<Operator>& to) {
    Block& block = blocks_[index];
    for (size_t i = 0; i < block.operators.size(); ++i) {
      OldOperator& op = block.operators[i];
      if (op.type == "conditional_block") {
        ORKNN_TRY(keep_branch(op));
      } else if (op.type == "select_input") {
        ORKNN_TRY(add_choice(block, i, to));
      } else if (op.type == "while") {
        ORKNN_TRY(add_loop(op, to));
      } else if (op.type == "feed") {
        if (const std::string* name = first_of(op.outputs, "Out")) values_.written(*name);
      } else if (op.type == "fetch") {
        if (const std::string* name = first_of(op.inputs, "X")) fetches_[integer_of(op, "col", 0)] = values_.now(*name);
      } else if (!op.type.empty()) {
        add_plain(std::move(op), to);
      }
    }
    return {};
  }
  std::vector<std::string> outputs() const {
    std::vector<std::string> names;
    for (const auto& [column, name] : fetches_) names.push_back(name);
    return names;
  }

 private:
  // A block that runs if a condition holds, and the variables it sets.
  struct Branch {
    std::string condition;
    std::vector<std::string> variables;
    Body body;  // its outputs are those variables
  };

  void add_plain(OldOperator op, std::vector<Operator>& to) {
    const bool negates = op.type == "logical_not", converts = op.type == "cast";
    Operator now = in_new_words(std::move(op));
    for (Operand& operand : now.inputs)
      for (std::string& value : operand.values) value = values_.now(value);
    const std::string read = now.inputs.empty() || now.inputs[0].values.empty() ? std::string() : now.inputs[0].values[0];
    write_outputs(now);
    if (!now.outputs.empty() && !now.outputs[0].empty()) {
      if (negates) negated_[now.outputs[0][0]] = read;
      if (converts) converted_[now.outputs[0][0]] = read;
    }
    to.push_back(std::move(now));
  }
  void write_outputs(Operator& op) {
    for (auto& list : op.outputs)
      for (std::string& value : list) value = values_.written(value);
    for (const auto& list : op.outputs)
      if (op.name.empty() && !list.empty()) op.name = list[0];
  }

  // The block of an operator, read with the values at hand.
  Result<BlockReader> read_inner(const OldOperator& op, std::vector<Operator>& to) {
    const int64_t index = integer_of(op, "sub_block", -1);
    if (index < 1 || index >= std::ssize(blocks_) || used_[static_cast<size_t>(index)])
      return invalid_model("'" + op.type + "' names no block of its own").found(std::to_string(index));
    if (depth_ == kMostNestedBlocks) return too_many_nested_blocks();
    used_[static_cast<size_t>(index)] = true;  // one that is named twice could be within itself
    BlockReader inner(blocks_, used_, values_, depth_ + 1);
    ORKNN_TRY(inner.read(static_cast<size_t>(index), to));
    return inner;
  }

  Status keep_branch(const OldOperator& op) {
    const std::string* condition = first_of(op.inputs, "Cond");
    if (!condition) return invalid_model("a conditional block has no condition");
    Branch branch{values_.now(*condition), all_of(op.outputs, "Out"), {}};
    ORKNN_TRY_ASSIGN(const BlockReader inner, read_inner(op, branch.body.operators));
    for (const std::string& variable : branch.variables) {
      branch.body.outputs.push_back(inner.values_.now(variable));
      branch_of_[variable] = branches_.size();
    }
    branches_.push_back(std::move(branch));
    return {};
  }

  // Which branch sets a variable under a condition, and where among its variables. Nothing when none does.
  struct Setting {
    size_t branch = 0, output = 0;
    bool operator==(const Setting&) const = default;
  };
  std::optional<Setting> setting_of(const std::string& variable, const std::string& condition, bool holds) const {
    const auto it = branch_of_.find(variable);
    if (it == branch_of_.end()) return std::nullopt;
    const Branch& branch = branches_[it->second];
    const auto negated = negated_.find(branch.condition);
    const bool fits = holds ? branch.condition == condition : negated != negated_.end() && negated->second == condition;
    if (!fits) return std::nullopt;
    const auto at = std::find(branch.variables.begin(), branch.variables.end(), variable);
    return Setting{it->second, static_cast<size_t>(at - branch.variables.begin())};
  }

  struct Choice {
    Setting otherwise, then;
    std::string result;
  };
  Result<Choice> choice_of(const OldOperator& op, const std::string& condition) const {
    const std::vector<std::string> from = all_of(op.inputs, "X");
    const std::string* result = first_of(op.outputs, "Out");
    if (from.size() != 2 || !result) return invalid_model("a selection needs two values and a result");
    const auto otherwise = setting_of(from[0], condition, false), then = setting_of(from[1], condition, true);
    if (!otherwise || !then)
      return unsupported("a selection between values that no conditional block sets is not supported")
          .found("'" + from[0] + "' and '" + from[1] + "'");
    return Choice{*otherwise, *then, *result};
  }
  std::string condition_of(const OldOperator& op) const {
    const std::string* mask = first_of(op.inputs, "Mask");
    const std::string value = mask ? values_.now(*mask) : std::string();
    const auto it = converted_.find(value);
    return it == converted_.end() ? value : it->second;
  }

  // The selection at `first` and all later ones of the same branches, as one operator.
  Status add_choice(Block& block, size_t first, std::vector<Operator>& to) {
    const std::string condition = condition_of(block.operators[first]);
    Operator now;
    now.type = "if";
    now.inputs = {{{condition}, {}}};
    now.bodies.resize(2);
    std::optional<Choice> lead;
    for (size_t i = first; i < block.operators.size(); ++i) {
      OldOperator& op = block.operators[i];
      if (op.type != "select_input" || condition_of(op) != condition) continue;
      const Result<Choice> choice = choice_of(op, condition);
      if (!choice && i == first) return choice.status();
      if (!choice) continue;
      if (!lead) lead = *choice;
      if (choice->then.branch != lead->then.branch || choice->otherwise.branch != lead->otherwise.branch) continue;
      now.bodies[0].outputs.push_back(branches_[choice->then.branch].body.outputs[choice->then.output]);
      now.bodies[1].outputs.push_back(branches_[choice->otherwise.branch].body.outputs[choice->otherwise.output]);
      now.outputs.push_back({choice->result});
      op.type.clear();
    }
    now.bodies[0].operators = branches_[lead->then.branch].body.operators;
    now.bodies[1].operators = branches_[lead->otherwise.branch].body.operators;
    write_outputs(now);
    to.push_back(std::move(now));
    return {};
  }

  // The variables that the block of a loop sets go round.
  Status add_loop(const OldOperator& op, std::vector<Operator>& to) {
    const std::string* condition = first_of(op.inputs, "Condition");
    if (!condition) return invalid_model("a loop has no condition");
    const std::vector<std::string> carried = all_of(op.outputs, "Out");
    Operator now;
    now.type = "while";
    now.inputs = {{{values_.now(*condition)}, {}}};
    Body& body = now.bodies.emplace_back();
    for (const std::string& variable : carried) {
      now.inputs.push_back({{values_.now(variable)}, {}});
      now.outputs.push_back({variable});
      body.inputs.push_back(values_.now(variable));
    }
    ORKNN_TRY_ASSIGN(const BlockReader inner, read_inner(op, body.operators));
    body.outputs = {inner.values_.now(*condition)};
    for (const std::string& variable : carried) body.outputs.push_back(inner.values_.now(variable));
    write_outputs(now);
    to.push_back(std::move(now));
    return {};
  }

  std::vector<Block>& blocks_;
  std::vector<bool>& used_;  // blocks that an operator has taken
  Values values_;
  int depth_;
  std::map<int64_t, std::string> fetches_;
  std::unordered_map<std::string, std::string> negated_, converted_;  // a value, and what it was made of
  std::vector<Branch> branches_;
  std::unordered_map<std::string, size_t> branch_of_;  // by variable
};

Status add_operators(std::vector<Block>& blocks, Program& program) {
  Values values;
  std::map<int64_t, Port> feeds;
  for (const Parameter& p : program.parameters) values.written(p.name);
  for (const OldOperator& op : blocks[0].operators)
    if (op.type == "feed") ORKNN_TRY(add_feed(op, blocks[0], feeds));
  std::vector<bool> used(blocks.size(), false);
  BlockReader reader(blocks, used, std::move(values));
  ORKNN_TRY(reader.read(0, program.operators));
  for (auto& [column, port] : feeds) program.inputs.push_back(std::move(port));
  program.outputs = reader.outputs();
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

Status read_tensor_type(std::span<const std::byte> message, DType& dtype, Dims& dims) {
  std::optional<int64_t> number;
  ORKNN_TRY(read_fields(message, Slot{1, number}, Slot{2, dims}));
  if (number) dtype = dtype_of_number(*number);
  return {};
}

Status too_many_nested_blocks() {
  return unsupported("blocks within blocks are not supported")
      .expected("at most " + std::to_string(kMostNestedBlocks) + " levels");
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
  std::vector<Block> blocks;
  ORKNN_TRY(read_fields(bytes, Slot{1, [&](Bytes block) { return read_block(block, blocks.emplace_back()); }},
                        Slot{4, [&](Bytes version) {
                               return read_fields(version, Slot{1, program.version});
                             }}));
  if (blocks.empty()) return invalid_model("the file holds no block").hint("is it the .pdmodel of an inference model?");
  constexpr int64_t kTensor = 7;
  for (const Variable& v : blocks[0].variables)
    if (v.is_persistable && v.kind == kTensor) program.parameters.push_back({v.name, v.dtype, v.dims});
  ORKNN_TRY(add_operators(blocks, program));
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
