// The part of YAML that model and configuration files use: maps and lists by indentation or in brackets, plain and quoted
// scalars, comments. Anchors, tags and texts of several lines are refused with a message that names them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace orknn::data {

struct YamlValue {
  enum class Kind { Null, Scalar, List, Map };
  Kind kind = Kind::Null;
  std::string text;                                        // of a scalar
  bool quoted = false;                                     // "true" in quotes is a text
  std::vector<YamlValue> items;                            // of a list
  std::vector<std::pair<std::string, YamlValue>> entries;  // of a map, in the order of the file; keys are unique
  size_t line = 0;                                         // where it begins, counted from 1; 0 = in no file

  YamlValue(Kind kind = Kind::Null);  // not inline: clang 14 would ask for a complete type within the type itself
  // nullptr when there is no such key, or this is no map.
  const YamlValue* find(std::string_view key) const;
  // "line 3: message", for a value that does not suit; the message alone for one that comes from no file.
  Status problem(const std::string& message) const;
};

// The error names the line.
Result<YamlValue> parse_yaml(std::string_view text);

}  // namespace orknn::data
