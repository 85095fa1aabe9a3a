// Values of a YAML file as what they are meant to be. The errors name the key and the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/yaml.h"

namespace orknn::toolkit {

Result<std::string> as_text(const data::YamlValue& value, std::string_view key);
Result<bool> as_flag(const data::YamlValue& value, std::string_view key);
// A list of texts, or one.
Result<std::vector<std::string>> as_texts(const data::YamlValue& value, std::string_view key);

// The following are for double, int64_t and int.
template <class T>
Result<T> as_number(std::string_view text, const data::YamlValue& where, std::string_view key);
// Numbers of a list, or of a text with commas or blanks between them.
template <class T>
Result<std::vector<T>> as_numbers(const data::YamlValue& value, std::string_view key);
// One list for a model with one input, or a list of lists.
template <class T>
Result<std::vector<std::vector<T>>> as_number_lists(const data::YamlValue& value, std::string_view key);

// "1, 3, 224" in the pieces between `separators`, blanks around them left out.
std::vector<std::string> pieces_of(std::string_view text, std::string_view separators);

}  // namespace orknn::toolkit
