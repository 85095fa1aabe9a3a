#include "toolkit/layer_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace orknn::toolkit {
using nlohmann::ordered_json;

namespace {
constexpr int64_t kLargestExtent = 65536;
constexpr double kLargestInteger = 0x1p53;  // every smaller one is a number of JSON

// Whole numbers only, also where they are written with a point.
std::optional<int64_t> as_integer(const ordered_json& v) {
  if (v.is_number_integer()) {
    if (v.is_number_unsigned() && v.get<uint64_t>() > uint64_t{INT64_MAX}) return std::nullopt;
    return v.get<int64_t>();
  }
  if (!v.is_number_float()) return std::nullopt;
  const auto value = v.get<double>();
  if (!(std::abs(value) <= kLargestInteger) || value != std::floor(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// As it stands in the file, cut where it is long.
std::string shown(const ordered_json& v) {
  constexpr size_t kLongest = 60;
  const std::string text = v.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

// Every reader of a layer takes some of these. Scales of results that stay sums change no number and are not among them.
const std::set<std::string_view> kMeaningful{"a",
                                             "activation",
                                             "alpha",
                                             "b",
                                             "bias",
                                             "ceiling",
                                             "ceiling_accumulator",
                                             "channel_multipliers",
                                             "channel_shift",
                                             "dilation",
                                             "dilations",
                                             "ew",
                                             "function",
                                             "group",
                                             "groups",
                                             "in_zero_point",
                                             "kernel",
                                             "kernel_shape",
                                             "max",
                                             "method",
                                             "min",
                                             "multiplier",
                                             "operand_multiplier",
                                             "operand_shift",
                                             "out_zero_point",
                                             "pad",
                                             "pad_top_bottom_left_right",
                                             "padding",
                                             "pads",
                                             "per_channel",
                                             "relu",
                                             "shift",
                                             "slope",
                                             "stride",
                                             "strides",
                                             "weights",
                                             "weights_zero_point",
                                             "weights_zero_points",
                                             "zero_point"};

// Means the same as no field.
bool is_neutral(const std::string& key, const ordered_json& v) {
  static const std::set<std::string_view> kOneIsNeutral{"dilation", "dilations",    "group",  "groups",
                                                        "kernel",   "kernel_shape", "stride", "strides"};
  const int neutral = kOneIsNeutral.contains(key) ? 1 : 0;
  if (v.is_array()) return std::all_of(v.begin(), v.end(), [&](const ordered_json& element) { return element == neutral; });
  return v.is_null() || v == false || v == neutral || v == "none" || v == "linear";
}
}  // namespace

Fields::Fields(const ordered_json& object, std::string place) : object_(&object), place_(std::move(place)) {
  if (!object.is_object()) throw std::invalid_argument(fmt::format("'{}' is {}, expected an object", place_, shown(object)));
}

bool Fields::has(const char* key) const { return object_->contains(key) && !object_->at(key).is_null(); }

std::string Fields::place_of(const char* key) const { return place_.empty() ? key : place_ + "." + key; }

const ordered_json& Fields::at(const char* key) const {
  if (!has(key)) throw std::invalid_argument(fmt::format("'{}' is missing", place_of(key)));
  return object_->at(key);
}

void Fields::refuse(const char* key, const std::string& expected) const {
  throw std::invalid_argument(fmt::format("'{}' is {}, expected {}", place_of(key), shown(at(key)), expected));
}

int64_t Fields::integer(const char* key) const {
  const std::optional<int64_t> value = as_integer(at(key));
  if (!value) refuse(key, "a whole number");
  return *value;
}

int64_t Fields::extent(const char* key) const {
  const int64_t value = integer(key);
  if (value < 1 || value > kLargestExtent) refuse(key, fmt::format("1 to {}", kLargestExtent));
  return value;
}

double Fields::number(const char* key) const {
  if (!at(key).is_number()) refuse(key, "a number");
  return at(key).get<double>();
}

float Fields::exact_float(const char* key, float otherwise) const {
  const std::string hex = std::string(key) + "_hex";
  float value = otherwise;
  if (has(hex.c_str())) {
    const std::string digits = text(hex.c_str());
    char* end = nullptr;
    value = std::strtof(digits.c_str(), &end);
    if (digits.empty() || *end) refuse(hex.c_str(), "a hexadecimal float such as \"0x1.8p-7\"");
  } else if (has(key)) {
    value = static_cast<float>(number(key));
  }
  if (!std::isfinite(value) || value <= 0) refuse(has(hex.c_str()) ? hex.c_str() : key, "a positive number");
  return value;
}

std::string Fields::text(const char* key) const {
  if (!at(key).is_string()) refuse(key, "text");
  return at(key).get<std::string>();
}

bool Fields::flag(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  if (!at(key).is_boolean()) refuse(key, "true or false");
  return at(key).get<bool>();
}

std::string Fields::file(const char* key) const {
  std::string name = text(key);
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) refuse(key, "the name of a file in the folder");
  return name;
}

uint32_t Fields::address(const char* key) const {
  const ordered_json& v = at(key);
  std::optional<int64_t> value = as_integer(v);
  if (v.is_string()) {
    const auto digits = v.get<std::string>();
    const bool hex = digits.starts_with("0x");
    int64_t parsed = 0;
    const char *begin = digits.data() + (hex ? 2 : 0), *end = digits.data() + digits.size();
    if (const auto [rest, error] = std::from_chars(begin, end, parsed, hex ? 16 : 10); error == std::errc() && rest == end)
      value = parsed;
  }
  if (!value || *value < 0 || *value > int64_t{UINT32_MAX}) refuse(key, "an address of 32 bits");
  return static_cast<uint32_t>(*value);
}

std::vector<int64_t> Fields::integers(const char* key) const {
  if (!at(key).is_array()) refuse(key, "a list of whole numbers");
  std::vector<int64_t> values;
  for (const ordered_json& v : at(key)) {
    const std::optional<int64_t> value = as_integer(v);
    if (!value) refuse(key, "a list of whole numbers");
    values.push_back(*value);
  }
  return values;
}

Fields Fields::object(const char* key) const { return Fields(at(key), place_of(key)); }

std::vector<Fields> Fields::objects(const char* key) const {
  if (!at(key).is_array()) refuse(key, "a list");
  std::vector<Fields> found;
  for (const ordered_json& v : at(key)) found.emplace_back(v, fmt::format("{}[{}]", place_of(key), found.size()));
  return found;
}

std::vector<std::string> Fields::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_->items()) names.push_back(name);
  return names;
}

void Fields::refuse_dropped(const std::string& reader, const std::set<std::string_view>& taken) const {
  for (const std::string& key : keys())
    if (kMeaningful.contains(key) && !taken.contains(key) && !is_neutral(key, object_->at(key)))
      refuse(key.c_str(), "no such field of " + reader);
}

}  // namespace orknn::toolkit
