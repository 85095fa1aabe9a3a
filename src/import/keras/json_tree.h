// The JSON that describes a Keras model, as a tree: layers read their configuration by name, in any order and more than once. It
// is filled by the reader of all importers, which limits nesting and states offsets; archives of torch.export become values of
// the TorchScript interpreter instead, and the room of importers has no JSON library.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "import/wire/json.h"

namespace orknn::importer::keras {

struct Json {
  Json() noexcept;  // not implicit: the pairs below need to know of it before this type is complete

  enum class Kind { Null, Text, Scalar, List, Map };  // Scalar: a number or a truth value
  Kind kind = Kind::Null;
  std::string text;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> entries;

  // A value that says nothing when there is no such key, or this is no map.
  const Json& operator[](std::string_view key) const;
  bool is_null() const { return kind == Kind::Null; }
  std::string string(std::string_view otherwise = {}) const;
  double number(double otherwise) const;
  int64_t integer(int64_t otherwise) const;
  bool flag(bool otherwise) const;
  // The numbers of a list; null counts as -1. A single number is a list of `repeat` of it.
  std::vector<int64_t> integers(size_t repeat = 1) const;
};

Result<Json> parse_json(std::string_view text);

}  // namespace orknn::importer::keras
