// TorchScript source as a syntax tree: the Python subset that archives hold under code/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orknn::importer::pytorch {

enum class Syntax : uint8_t {
  None,
  True,
  False,
  Integer,
  Float,
  String,
  Name,       // text
  Qualified,  // text: a dotted name that begins with torch, ops, __torch__ or CONSTANTS
  Attribute,  // children[0].text
  Subscript,  // children[0][children[1]]
  Call,       // children[0](children[1..]); keywords[i] names argument i, empty for positional ones
  List,
  Tuple,
  Dict,  // key, value, key, value, ...
  Negate,
  Not,
};

struct Expression {
  Syntax syntax = Syntax::None;
  int line = 0;
  int depth = 1;  // levels of nesting, itself included
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Expression> children;
  std::vector<std::string> keywords;
};

enum class StatementKind : uint8_t { Pass, Evaluate, Assign, Return, If, For, While, With };

struct Statement {
  StatementKind kind = StatementKind::Pass;
  int line = 0;
  // Assign: what is assigned to. For: the loop variable. With: the name after `as`, if any.
  std::vector<Expression> targets;
  bool unpack = false;  // the value is a sequence, one item per target
  Expression value;     // assigned, returned or evaluated value; condition; iterated value; context manager
  std::vector<Statement> body, otherwise;
};

struct Parameter {
  std::string name;
  std::optional<Expression> type, fallback;
};

struct Function {
  std::string name;
  std::vector<Parameter> parameters;  // `self` included
  std::vector<Statement> body;
};

struct Class {
  std::string name, base;
  std::vector<std::pair<std::string, std::optional<Expression>>> fields;  // in order: name and constant value, if one is stated
  std::map<std::string, Function, std::less<>> methods;
};

// One file of code/.
struct SourceFile {
  std::map<std::string, Class, std::less<>> classes;
  std::map<std::string, Function, std::less<>> functions;
};

Result<SourceFile> parse_source(std::string_view text);
// A single expression, for literals in tables.
Result<Expression> parse_expression(std::string_view text);

}  // namespace orknn::importer::pytorch
