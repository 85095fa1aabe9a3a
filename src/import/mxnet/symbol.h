// The symbol file of a model: nodes in JSON, as every version from 0.7 to 1.9 wrote them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orknn::importer::mxnet {

// One output of one node.
struct Entry {
  uint32_t node = 0, output = 0;
  auto operator<=>(const Entry&) const = default;
};

struct Symbol;

struct SymbolNode {
  std::string op;  // "null" for a variable
  std::string name;
  std::map<std::string, std::string, std::less<>> attributes;  // of `attrs`, `attr` and `param` alike
  std::vector<Entry> inputs;
  std::vector<Symbol> subgraphs;

  bool is_variable() const { return op == "null"; }
  // nullptr when absent.
  const std::string* find(std::string_view key) const {
    const auto it = attributes.find(key);
    return it == attributes.end() ? nullptr : &it->second;
  }
};

struct Symbol {
  std::vector<SymbolNode> nodes;
  std::vector<Entry> heads;
  int64_t version = 0;  // 10901 = 1.9.1; 0 when the file does not tell
};

// Every index of inputs and heads is checked; cycles are not.
Result<Symbol> parse_symbol(std::span<const std::byte> bytes);

// Whether the text begins like a symbol file.
bool looks_like_symbol(std::span<const std::byte> bytes);

}  // namespace orknn::importer::mxnet
