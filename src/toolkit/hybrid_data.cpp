#include "toolkit/hybrid_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "quantize/adaptive_rounding.h"
#include "toolkit/config_keys.h"
#include "toolkit/json_document.h"

namespace orknn::toolkit {
namespace {
using namespace ir;
using nlohmann::ordered_json;

constexpr int kDataVersion = 2;

// Options are texts, lists of texts or maps of texts.
ordered_json to_json(const data::YamlValue& value) {
  using Kind = data::YamlValue::Kind;
  if (value.kind == Kind::Null) return nullptr;
  if (value.kind == Kind::Scalar) return value.text;
  ordered_json j = value.kind == Kind::Map ? ordered_json::object() : ordered_json::array();
  for (const data::YamlValue& item : value.items) j.push_back(item.text);
  for (const auto& [key, entry] : value.entries) j[key] = entry.text;
  return j;
}

data::YamlValue yaml_of(const ordered_json& j) {
  using Kind = data::YamlValue::Kind;
  const auto scalar = [](const ordered_json& v) {
    data::YamlValue value(v.is_primitive() && !v.is_null() ? Kind::Scalar : Kind::Null);
    if (value.kind == Kind::Scalar) value.text = v.is_string() ? v.get<std::string>() : v.dump();
    return value;
  };
  if (!j.is_structured()) return scalar(j);
  data::YamlValue value(j.is_array() ? Kind::List : Kind::Map);
  for (const auto& [key, entry] : j.items())
    if (j.is_array())
      value.items.push_back(scalar(entry));
    else
      value.entries.emplace_back(key, scalar(entry));
  return value;
}

// The options that step 2 has a use for, as config() takes them, and what else build() goes by.
ordered_json to_json(const BuildConfig& c) {
  ordered_json j{{"toolkit1", c.toolkit1}, {"rknn_batch_size", c.rknn_batch_size}};
  for (const ConfigKey& row : config_keys())
    if (row.get) j[std::string(row.key)] = to_json(row.get(c));
  return j;
}

template <class T>
bool holds(const ordered_json& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return value.is_string();
  else if constexpr (std::is_same_v<T, bool>)
    return value.is_boolean();
  else
    return value.is_number();
}

// The member `name`, or null: also of what is no object.
const ordered_json& member(const ordered_json& j, const std::string& name) {
  static const ordered_json kNull;
  const auto it = j.is_object() ? j.find(name) : j.end();
  return j.is_object() && it != j.end() ? *it : kNull;
}

// A field of the wrong type counts as missing: the file may have been damaged.
template <class T>
T field(const ordered_json& j, const std::string& name, T otherwise) {
  const ordered_json& value = member(j, name);
  return holds<T>(value) ? value.get<T>() : otherwise;
}

template <class T>
std::vector<T> list_field(const ordered_json& j, const std::string& name) {
  std::vector<T> list;
  const ordered_json& values = member(j, name);
  if (!values.is_array()) return list;
  for (const ordered_json& v : values)
    if (holds<T>(v)) list.push_back(v.get<T>());
  return list;
}

BuildConfig config_from(const ordered_json& j) {
  BuildConfig c;
  for (const ConfigKey& row : config_keys()) {
    const data::YamlValue value = yaml_of(member(j, std::string(row.key)));
    BuildConfig changed = c;
    if (row.get && value.kind != data::YamlValue::Kind::Null && row.set(changed, value, row.key)) c = std::move(changed);
  }
  c.toolkit1 = field(j, "toolkit1", false);
  c.rknn_batch_size = std::max<int64_t>(field(j, "rknn_batch_size", c.rknn_batch_size), 1);
  return c;
}

std::string to_hex(std::span<const int8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (int8_t b : bytes) {
    text += kDigits[static_cast<uint8_t>(b) >> 4];
    text += kDigits[static_cast<uint8_t>(b) & 15];
  }
  return text;
}

bool from_hex(std::string_view text, std::span<int8_t> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    uint8_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, value, 16);
    if (error != std::errc{} || end != text.data() + 2 * i + 2) return false;
    bytes[i] = static_cast<int8_t>(value);
  }
  return true;
}

ordered_json to_json(const quantize::RoundedLayers& layers) {
  ordered_json j = ordered_json::object();
  for (const auto& [name, layer] : layers) {
    const TensorData& values = layer.weights.values;
    j[name] = {{"shape", values.dims()},
               {"integers", to_hex(values.values<int8_t>())},
               {"scale", layer.weights.scales},
               {"bias_shift", layer.bias_shift}};
  }
  return j;
}

// Layers that are not what they should be are left out: they are rounded to the nearest integers instead.
std::shared_ptr<const quantize::RoundedLayers> rounded_from(const ordered_json& j) {
  if (!j.is_object()) return nullptr;
  auto layers = std::make_shared<quantize::RoundedLayers>();
  for (const auto& [name, entry] : j.items()) {
    const Dims dims = list_field<int64_t>(entry, "shape");
    const std::string integers = field<std::string>(entry, "integers", "");
    const auto count = std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 1; })
                           ? Result<int64_t>(invalid_model("an empty layer"))
                           : checked_element_count(dims);
    if (!count || static_cast<uint64_t>(*count) != integers.size() / 2) continue;
    quantize::RoundedLayer layer;
    layer.weights.values = TensorData::allocate(DType::Int8, dims);
    layer.weights.scales = list_field<double>(entry, "scale");
    layer.bias_shift = list_field<double>(entry, "bias_shift");
    const bool valid = !layer.weights.scales.empty() && std::all_of(layer.weights.scales.begin(), layer.weights.scales.end(),
                                                                    [](double s) { return s > 0 && std::isfinite(s); });
    if (valid && from_hex(integers, {static_cast<int8_t*>(layer.weights.values.mutable_data()), integers.size() / 2}))
      layers->emplace(name, std::move(layer));
  }
  return layers;
}
}  // namespace

std::string print(const HybridData& data) {
  ordered_json j{{"openrknn_hybrid", kDataVersion}, {"name", data.name},
                 {"framework", data.framework},     {"dataset", data.dataset},
                 {"config", to_json(data.config)},  {"quantization", print(data.found, false)},
                 {"means", data.channel_means},     {"uneven", data.uneven_tensors},
                 {"uncut", ordered_json::object()}};
  for (const auto& [name, range] : data.uncut) j["uncut"][name] = {range.low, range.high};
  if (data.rounded) j["rounded"] = to_json(*data.rounded);
  return j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<HybridData> parse_hybrid_data(std::string_view text) {
  const auto json = parse_json_object(text);
  if (!json || field(*json, "openrknn_hybrid", 0) != kDataVersion)
    return invalid_model("this is not a .data file of hybrid_quantization_step1").hint("run step 1 of this toolkit again");
  const ordered_json& j = *json;
  HybridData data;
  data.name = field<std::string>(j, "name", "");
  data.framework = field<std::string>(j, "framework", "");
  data.dataset = field<std::string>(j, "dataset", "");
  data.config = config_from(member(j, "config"));
  ORKNN_TRY_ASSIGN(data.found, parse_hybrid_file(field<std::string>(j, "quantization", "")));
  if (const ordered_json& means = member(j, "means"); means.is_object())
    for (const auto& [name, values] : means.items()) data.channel_means[name] = list_field<double>(means, name);
  for (std::string& name : list_field<std::string>(j, "uneven")) data.uneven_tensors.insert(std::move(name));
  if (const ordered_json& uncut = member(j, "uncut"); uncut.is_object())
    for (const auto& [name, values] : uncut.items())
      if (const auto ends = list_field<double>(uncut, name); ends.size() == 2) data.uncut[name] = {ends[0], ends[1]};
  data.rounded = rounded_from(member(j, "rounded"));
  return data;
}

}  // namespace orknn::toolkit
