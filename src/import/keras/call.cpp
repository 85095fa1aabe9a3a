#include "import/keras/call.h"

#include <algorithm>
#include <map>

#include "import/keras/weights.h"

namespace orknn::importer::keras {
namespace {

constexpr int kMaxDepth = 16;

// Functions of TensorFlow in models of Keras 2.
bool is_tf_function(const Json& layer) {
  const std::string kind = layer["class_name"].string();
  return kind == "TFOpLambda" || kind == "SlicingOpLambda";
}

Json map_of(std::vector<std::pair<std::string, Json>> entries) {
  Json map;
  map.kind = Json::Kind::Map;
  map.entries = std::move(entries);
  return map;
}
Json text_of(std::string_view text) {
  Json value;
  value.kind = Json::Kind::Text;
  value.text = text;
  return value;
}
Json list_of(std::vector<Json> items) {
  Json list;
  list.kind = Json::Kind::List;
  list.items = std::move(items);
  return list;
}

// Names that Keras 3 has for arguments of TensorFlow's functions.
std::string modern_name(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> names{
      {"alpha", "negative_slope"},
      {"b", "x2"},
      {"clip_value_max", "x_max"},
      {"clip_value_min", "x_min"},
      {"method", "interpolation"},
      {"multiples", "repeats"},
      {"paddings", "pad_width"},
      {"perm", "axes"},
      {"shape", "newshape"},
      {"slice_spec", "key"},
      {"y", "x2"},
  };
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

// A tensor of the form ["layer", 0, 0], a number of the form ["_CONSTANT_VALUE", -1, 2.5], ranges of parts, or as it is.
Json modern(const Json& value) {
  if (is_reference(value)) {
    if (value.items[0].text == "_CONSTANT_VALUE") return value.items[2];
    Json history = list_of({value.items.begin(), value.items.begin() + 3});
    return map_of({{"class_name", text_of("__keras_tensor__")}, {"config", map_of({{"keras_history", std::move(history)}})}});
  }
  if (value.kind == Json::Kind::Map && value["class_name"].is_null()) {
    const bool is_range = std::ranges::any_of(value.entries, [](const auto& e) { return e.first == "start"; });
    if (is_range) return map_of({{"class_name", text_of("__slice__")}, {"config", value}});
    Json map = value;
    for (auto& [key, item] : map.entries) item = modern(item);
    return map;
  }
  if (value.kind == Json::Kind::Text && value.text == "CONSTANT") return text_of("constant");  // the mode of tf.pad
  Json list = value;
  for (Json& item : list.items) item = modern(item);
  return list;
}

void add_references(const Json& value, int depth, std::vector<const Json*>& to) {
  if (depth > kMaxDepth) return;
  if (is_constant(value)) return to.push_back(&value);
  if (value["class_name"].string() == "__keras_tensor__") {
    if (is_reference(value["config"]["keras_history"])) to.push_back(&value["config"]["keras_history"]);
    return;
  }
  if (is_reference(value)) return to.push_back(&value);
  for (const Json& item : value.items) add_references(item, depth + 1, to);
  if (!value["class_name"].is_null()) return;
  std::vector<const std::pair<std::string, Json>*> keyed;
  for (const auto& entry : value.entries) keyed.push_back(&entry);
  std::ranges::sort(keyed, {}, [](const auto* entry) { return entry->first; });
  for (const auto* entry : keyed) add_references(entry->second, depth + 1, to);
}
}  // namespace

bool is_modern_call(const Json& stated) { return !stated["args"].is_null(); }

bool is_constant(const Json& value) {
  const std::string kind = value["class_name"].string();
  return kind == "__tensor__" || kind == "__numpy__";
}

bool is_reference(const Json& value) {
  return value.kind == Json::Kind::List && value.items.size() >= 3 && value.items[0].kind == Json::Kind::Text &&
         value.items[1].kind == Json::Kind::Scalar;
}

std::vector<const Json*> references_in(const Json& argument) {
  std::vector<const Json*> found;
  add_references(argument, 0, found);
  return found;
}

Json call_of(const Json& layer, const Json& stated) {
  if (is_modern_call(stated)) return stated;
  if (stated.kind == Json::Kind::Map) return map_of({{"args", list_of({modern(stated)})}, {"kwargs", map_of({})}});
  const std::vector<Json> tensors = is_reference(stated) ? std::vector{stated} : stated.items;
  std::vector<Json> places;
  for (const Json& tensor : tensors) places.push_back(modern(tensor));
  Json named = map_of({});
  if (!tensors.empty() && tensors[0].items.size() > 3)  // beside the first tensor
    for (const auto& [key, value] : tensors[0].items[3].entries)
      named.entries.emplace_back(is_tf_function(layer) ? modern_name(key) : key, modern(value));
  Json first = places.size() == 1 && (is_reference(stated) || !is_tf_function(layer)) ? places[0] : list_of(std::move(places));
  return map_of({{"args", list_of({std::move(first)})}, {"kwargs", std::move(named)}});
}

bool is_function(const Json& layer) {
  if (is_tf_function(layer)) return true;
  const std::string module = layer["module"].string();
  if (!module.empty()) return module.starts_with("keras.src.ops") || module.starts_with("keras.ops");
  // Keras 3 leaves the module out of .h5 files; most layers say there whether they are trained.
  const std::vector<Json>& calls = layer["inbound_nodes"].items;
  return !calls.empty() && is_modern_call(calls[0]) && layer["config"]["trainable"].is_null() && !is_model(layer);
}

std::string kind_of(const Json& layer) {
  if (!is_tf_function(layer)) return layer["class_name"].string();
  const std::string name = layer["config"]["function"].string();
  return name.substr(name.rfind('.') + 1);
}

}  // namespace orknn::importer::keras
