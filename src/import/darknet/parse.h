// Network descriptions of Darknet (.cfg): sections of key=value lines, read into text that points into the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace orknn::importer::darknet {

// Keys and values have no blanks in them: Darknet takes them all out, "-1, -4" is "-1,-4".
struct Section {
  std::string type;                                      // the name between the brackets, as written
  size_t line = 0;                                       // where it begins, counted from 1
  std::unordered_map<std::string, std::string> options;  // the last value of each

  bool has(const std::string& key) const { return options.contains(key); }
  // "" when absent.
  std::string_view get(const std::string& key) const;
};

struct Description {
  Section net;
  std::vector<Section> layers;
  std::vector<std::string> warnings;
};

Result<Description> parse_description(std::span<const std::byte> bytes);

// Whether the first words of the text are [net] or [network].
bool looks_like_description(std::span<const std::byte> bytes);

}  // namespace orknn::importer::darknet
