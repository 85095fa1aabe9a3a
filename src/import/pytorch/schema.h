// Signatures of operators, written as PyTorch writes them: "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[]
// stride=1)". Archives leave out trailing defaults and name keyword arguments, so every row of our tables states its signature.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/lower/row.h"
#include "import/pytorch/value.h"

namespace orknn::importer::pytorch {

class Call;
// The key of a row is one form of an operator, with all names it goes by: "sub|subtract(Tensor self, operand other)". An operator
// may have several rows: the first whose signature the arguments fit is taken.
using Row = OperatorRow<Call>;

// Operand: a tensor or a number. Complex: a tensor of complex numbers, which no other type takes but Either: any tensor or
// number.
enum class Type : uint8_t {
  Tensor,
  Complex,
  Either,
  Operand,
  Int,
  Float,
  Bool,
  Number,
  String,
  Device,
  Ints,
  Floats,
  Bools,
  Numbers,
  Tensors,
  Strings,
  List,
  Dict,
  Object,
  Any
};

struct SchemaParameter {
  std::string name;
  Type type = Type::Any;
  bool optional = false;      // may be None
  bool keyword_only = false;  // after `*`
  bool has_fallback = false;
  Value fallback;
};

struct Schema {
  std::string name;
  std::vector<SchemaParameter> parameters;
  bool takes_anything = false;  // "name(...)": for operators that are refused with a reason, or do nothing
  const Row* row = nullptr;
};

// All rows by operator name: "add", "quantized::conv2d", "prim::NumToTensor".
class OperatorTable {
 public:
  static const OperatorTable& instance();
  // The forms of an operator; empty when there are none.
  std::span<const Schema> find(std::string_view name) const;

 private:
  OperatorTable();
  void add(const Row& row);
  Heap heap_;  // holds the defaults
  std::map<std::string, std::vector<Schema>, std::less<>> schemas_;
};

struct Argument {
  Value value;
  std::string_view keyword;  // empty = by position
};

// How far an argument may be from the signature. Implicit: keywords may be left out, numbers serve as tensors, one-element
// constants as numbers, one number as a list.
enum class Matching : uint8_t { Strict, Implicit };
// A number known while importing, for tensors that are constant and have one element.
using ConstantReader = std::optional<Value> (*)(void* context, TensorValue& tensor);

// The arguments in the order of the parameters, or nothing when they do not fit. Lists of another type than the parameter's
// are made anew on `heap`.
std::optional<std::vector<Value>> bind_arguments(const Schema& schema, std::span<const Argument> arguments, Matching matching,
                                                 Heap& heap, ConstantReader read, void* context);

}  // namespace orknn::importer::pytorch
