// A program of PaddlePaddle as both file formats state it, in the words of Paddle 3: operators with positional inputs. Nothing
// here is lowered yet.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/lower/network.h"

namespace orknn::importer::paddle {

// The value of an attribute, flat: a single number is a list of one. Integers are also among the numbers, truth values are 0
// and 1.
struct Attribute {
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
};

// What an operator reads in one place: values (several where it takes a list), or what an old program states as an attribute.
struct Operand {
  std::vector<std::string> values;
  std::optional<Attribute> stated;
  bool is_absent() const { return values.empty() && !stated; }
};

struct Operator;

// Blocks within blocks: more are refused, since a loop may have to be lowered several times until its shapes settle.
constexpr int kMostNestedBlocks = 6;

// A block of an operator. It reads its inputs and whatever the blocks around it made.
struct Body {
  std::vector<std::string> inputs;  // values that go round a loop, as a round finds them
  std::vector<Operator> operators;
  std::vector<std::string> outputs;  // of a loop: first whether it goes on
};

struct Operator {
  std::string type, name;  // as of Paddle 3; `name` is that of the first value it makes
  std::vector<Operand> inputs;
  std::vector<std::vector<std::string>> outputs;  // several names where a list is made
  std::map<std::string, Attribute, std::less<>> attributes;
  std::vector<Body> bodies;  // of `if` and `while`
};

struct Parameter {
  std::string name;
  DType dtype = DType::Float32;
  ir::Dims dims;
};

struct Program {
  std::string producer;
  int64_t version = 0;
  std::vector<Operator> operators;  // in the order they are run
  std::vector<Port> inputs;
  std::vector<std::string> outputs;  // names of values
  std::vector<Parameter> parameters;
};

bool looks_like_program(std::span<const std::byte> bytes);
// Either format, by its first bytes.
Result<Program> parse_program(std::span<const std::byte> bytes);
// ProgramDesc, in Protocol Buffers: .pdmodel, __model__.
bool looks_like_program_desc(std::span<const std::byte> bytes);
Result<Program> parse_program_desc(std::span<const std::byte> bytes);
// The intermediate representation of Paddle 3, in JSON.
bool looks_like_pir(std::span<const std::byte> bytes);
Result<Program> parse_pir(std::span<const std::byte> bytes);

Status too_many_nested_blocks();

// An element type by its number in ProgramDesc; Undefined when there is none.
DType dtype_of_number(int64_t number);
// The element type and the extents in a TensorDesc, where it states them.
Status read_tensor_type(std::span<const std::byte> message, DType& dtype, ir::Dims& dims);
// A shape with -1 for what is open. The batch of an input is 1 where it is not stated.
ir::Shape shape_of_input(const ir::Dims& dims);

}  // namespace orknn::importer::paddle
