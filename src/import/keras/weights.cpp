#include "import/keras/weights.h"

#include <algorithm>
#include <cctype>

namespace orknn::importer::keras {
namespace {

constexpr int kMaxModelDepth = 16;

Result<ir::TensorData> read_weight(const Hdf5& file, Hdf5::Object object) {
  ORKNN_TRY_ASSIGN(const Hdf5Dataset dataset, file.dataset(object));
  ir::TensorData value = ir::TensorData::allocate(dataset.dtype, dataset.dims);  // datasets lie at any address
  if (!dataset.data.empty()) std::copy(dataset.data.begin(), dataset.data.end(), static_cast<std::byte*>(value.mutable_data()));
  return dataset.dtype == DType::Float32 ? value : ir::convert(value.view(), DType::Float32);
}

using Paths = std::map<std::string, std::string, std::less<>>;  // of layers, by name

// The innermost layer that a weight's name states: "lstm" for "block/lstm/lstm_cell/kernel:0". `otherwise` without one.
std::string owner_of(std::string_view weight, const Paths& paths, const std::string& otherwise) {
  for (size_t end = weight.rfind('/'); end != weight.npos; end = end == 0 ? weight.npos : weight.rfind('/', end - 1)) {
    const std::string_view folder = weight.substr(0, end);
    const auto layer = paths.find(folder.substr(folder.rfind('/') + 1));
    if (layer != paths.end()) return layer->second;
  }
  return otherwise;
}

// Long lists of names are stored in several attributes, weight_names0, weight_names1, ...
Result<std::vector<std::string>> weight_names(const Hdf5& file, Hdf5::Object group) {
  ORKNN_TRY_ASSIGN(auto names, file.texts(group, "weight_names"));
  if (names) return std::move(*names);
  std::vector<std::string> all;
  for (size_t part = 0;; ++part) {
    ORKNN_TRY_ASSIGN(const auto some, file.texts(group, "weight_names" + std::to_string(part)));
    if (!some || some->empty()) return all;
    all.insert(all.end(), some->begin(), some->end());
  }
}

// The model that a layer is, or that it calls for each step; nullptr without one.
const Json* inner_model(const Json& layer) {
  if (is_model(layer)) return &layer;
  const Json& wrapped = layer["config"]["layer"];
  return is_model(wrapped) ? &wrapped : nullptr;
}

// Names of the layers of a model at any depth, with their paths.
void add_paths(const Json& model, const std::string& prefix, int depth, Paths& paths) {
  if (depth > kMaxModelDepth) return;
  for (const Json& layer : layers_of(model)) {
    const std::string path = prefix + name_of(layer);
    paths.emplace(name_of(layer), path);
    if (const Json* inner = inner_model(layer)) add_paths(*inner, path + "/", depth + 1, paths);
  }
}

class ArchiveReader {
 public:
  ArchiveReader(const Hdf5& file, Weights& weights) : file_(file), weights_(weights) {}

  Status read_model(const Json& model, Hdf5::Object group, const std::string& prefix, int depth) {
    if (depth > kMaxModelDepth) return unsupported("models are nested too deeply");
    ORKNN_TRY_ASSIGN(const auto layers, file_.find(group, "layers"));
    if (!layers) return {};
    ORKNN_TRY_ASSIGN(const auto members, file_.members(*layers));
    std::map<std::string, Hdf5::Object, std::less<>> by_group(members.begin(), members.end()), by_name;
    for (const auto& [name, object] : members) {  // newer releases store the layer's own name
      ORKNN_TRY_ASSIGN(const auto vars, file_.find(object, "vars"));
      if (!vars) continue;
      ORKNN_TRY_ASSIGN(const auto stored, file_.texts(*vars, "name"));
      if (stored && stored->size() == 1) by_name.emplace(stored->front(), object);
    }
    std::map<std::string, size_t> used;
    for (const Json& layer : layers_of(model)) {
      const std::string name = name_of(layer), kind = snake_case(layer["class_name"].string());
      const size_t earlier = used[kind]++;
      const bool named = by_name.count(name) > 0;
      const auto& objects = named ? by_name : by_group;
      const auto found = objects.find(named ? name : earlier ? kind + "_" + std::to_string(earlier) : kind);
      if (found == objects.end()) continue;
      const Json* inner = inner_model(layer);
      if (is_model(layer)) {
        ORKNN_TRY(read_model(layer, found->second, prefix + name + "/", depth + 1));
      } else if (inner) {
        ORKNN_TRY_ASSIGN(const auto wrapped, file_.find(found->second, "layer"));
        if (wrapped) ORKNN_TRY(read_model(*inner, *wrapped, prefix + name + "/layer/", depth + 1));
      } else {
        ORKNN_TRY(read_layer(found->second, prefix + name, 0));
      }
    }
    return {};
  }

 private:
  // vars of the group, and of groups in it: the cell of a recurrent layer, the parts of an attention.
  Status read_layer(Hdf5::Object group, const std::string& path, int depth) {
    if (depth > kMaxModelDepth) return unsupported("layers are nested too deeply");
    ORKNN_TRY_ASSIGN(const auto members, file_.members(group));
    for (const auto& [name, object] : members) {
      if (name == "vars")
        ORKNN_TRY(read_vars(object, path));
      else
        ORKNN_TRY(read_layer(object, path + "/" + name, depth + 1));
    }
    return {};
  }

  Status read_vars(Hdf5::Object group, const std::string& path) {
    for (size_t i = 0;; ++i) {
      ORKNN_TRY_ASSIGN(const auto object, file_.find(group, std::to_string(i)));
      if (!object) return {};
      ORKNN_TRY_ASSIGN(ir::TensorData weight, read_weight(file_, *object));
      weights_[path].push_back(std::move(weight));
    }
  }

  const Hdf5& file_;
  Weights& weights_;
};
}  // namespace

std::string snake_case(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool upper = std::isupper(static_cast<unsigned char>(name[i])) != 0;
    const bool after_small = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    const bool before_small = i + 1 < name.size() && std::islower(static_cast<unsigned char>(name[i + 1])) != 0;
    if (upper && i > 0 && (after_small || before_small)) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return out;
}

const std::vector<Json>& layers_of(const Json& model) {
  const Json& config = model["config"];
  return config.kind == Json::Kind::List ? config.items : config["layers"].items;
}

std::string name_of(const Json& layer) {
  const std::string own = layer["config"]["name"].string();
  return own.empty() ? layer["name"].string() : own;
}

bool is_model(const Json& layer) { return !layers_of(layer).empty(); }

Result<Weights> read_h5_weights(const Hdf5& file, const Json& model) {
  ORKNN_TRY_ASSIGN(auto group, file.find(file.root(), "model_weights"));
  if (!group) return invalid_model("the file holds no weights").hint("save the whole model with model.save()");
  Weights weights;
  ORKNN_TRY_ASSIGN(const auto members, file.members(*group));
  for (const auto& [name, object] : members) {
    ORKNN_TRY_ASSIGN(const std::vector<std::string> names, weight_names(file, object));
    Paths inside;  // names are those of layers of one model: another one may have them too
    for (const Json& layer : layers_of(model))
      if (const Json* inner = inner_model(layer); inner && name_of(layer) == name) add_paths(*inner, name + "/", 1, inside);
    for (const std::string& path : names) {
      ORKNN_TRY_ASSIGN(const auto found, file.find(object, path));
      if (!found) return invalid_model("a weight is missing").found(path);
      ORKNN_TRY_ASSIGN(ir::TensorData weight, read_weight(file, *found));
      weights[owner_of(path, inside, name)].push_back(std::move(weight));
    }
  }
  return weights;
}

Result<Weights> read_archive_weights(const Hdf5& file, const Json& model) {
  Weights weights;
  ORKNN_TRY(ArchiveReader(file, weights).read_model(model, file.root(), "", 0));
  return weights;
}

}  // namespace orknn::importer::keras
