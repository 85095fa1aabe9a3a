#include "import/keras/layer.h"

#include <algorithm>

#include "import/keras/call.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
const Json kNothing;

// Layers whose result has the mask of what they read.
constexpr std::string_view kKeepMasks[] = {"Activation",
                                           "ActivityRegularization",
                                           "Add",
                                           "AlphaDropout",
                                           "Average",
                                           "BatchNormalization",
                                           "Dense",
                                           "Dropout",
                                           "ELU",
                                           "GaussianDropout",
                                           "GaussianNoise",
                                           "GroupNormalization",
                                           "Identity",
                                           "LayerNormalization",
                                           "LeakyReLU",
                                           "Maximum",
                                           "Minimum",
                                           "Multiply",
                                           "PReLU",
                                           "RMSNormalization",
                                           "ReLU",
                                           "Softmax",
                                           "SpatialDropout1D",
                                           "Subtract",
                                           "ThresholdedReLU",
                                           "TimeDistributed",
                                           "UnitNormalization"};

// Layers we know and refuse: the reason and the way out.
struct Refusal {
  std::string_view kinds, reason, hint;
};
constexpr std::string_view kInPython = "do what it does before the model runs, and save the model without it";
constexpr Refusal kRefusals[] = {
    {"|Lambda|", "is Python code, which cannot be read from the file",
     "write it with functions of keras.ops or with layers, or end the model before it with 'outputs'"},
    {"|TFSMLayer|TorchModuleWrapper|JaxLayer|FlaxLayer|", "runs a model of another framework",
     "convert that model itself: as SavedModel, TorchScript or ONNX"},
    {"|StringLookup|TextVectorization|Hashing|HashedCrossing|FeatureSpace|DenseFeatures|", "works on texts or tables", kInPython},
    {"|AutoContrast|Equalization|ContrastLimitedAdaptiveHistogramEqualization|Solarization|Pipeline|MaxNumBoundingBoxes|",
     "prepares training data", kInPython},
};

Status not_known(const Json& layer) {
  const std::string kind = kind_of(layer);
  if (is_function(layer)) {
    const std::string name = layer["config"]["function"].string(kind);
    return unsupported("the function '" + name + "' is not supported").hint("end the model before it with 'outputs'");
  }
  for (const Refusal& r : kRefusals)
    if (r.kinds.find("|" + kind + "|") != std::string_view::npos)
      return unsupported("the layer '" + kind + "' " + std::string(r.reason)).hint(std::string(r.hint));
  return unsupported("the layer '" + kind + "' is not supported")
      .hint("write it with layers of Keras or functions of keras.ops, or end the model before it with 'outputs'");
}
}  // namespace

Layer::Layer(Build& shared, const Call& stated, std::vector<TensorId> inputs)
    : Emitter(shared.network.graph, shared.network.ops, stated.outputs[0], {stated.path}),
      build(shared),
      call(stated),
      config((*stated.layer)["config"]),
      arguments_(stated.arguments),
      kind_(kind_of(*stated.layer)),
      inputs_(std::move(inputs)),
      is_read_(inputs_.size(), false) {}

Layer::Layer(Layer& outer, std::string kind, const Json& own_config, std::vector<TensorId> inputs)
    : Emitter(outer.graph(), outer.ops(), outer.layer(), {outer.call.path}),
      build(outer.build),
      call(outer.call),
      config(own_config),
      arguments_(kNothing),
      kind_(std::move(kind)),
      inputs_(std::move(inputs)),
      is_read_(inputs_.size(), false) {}

void Layer::warn(const std::string& text) { build.network.warnings.push_back("layer '" + call.path + "': " + text); }

Result<TensorId> Layer::operand(size_t i) {
  if (i >= inputs_.size()) return missing_input(i, inputs_.size());
  is_read_[i] = true;
  return inputs_[i];
}

const Json& Layer::argument(size_t place, std::string_view name) {
  read_names_.emplace(name);
  const std::vector<Json>& places = arguments_["args"].items;
  if (place < places.size()) {
    read_places_ = std::max(read_places_, place + 1);
    return places[place];
  }
  const Json& named = arguments_["kwargs"][name];
  return named.is_null() ? config[name] : named;
}

std::vector<TensorId> Layer::tensors(size_t place, std::string_view name) {
  size_t at = 0;
  const auto take = [&](size_t count) {
    std::vector<TensorId> taken;
    for (; count > 0 && at < inputs_.size(); --count) {
      is_read_[at] = true;
      taken.push_back(inputs_[at++]);
    }
    return taken;
  };
  if (arguments_.is_null()) return place == 0 ? take(inputs_.size()) : std::vector<TensorId>{};
  argument(place, name);  // it is read
  const std::vector<Json>& places = arguments_["args"].items;
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t count = references_in(places[i]).size();
    if (i == place) return take(count);
    at += count;
  }
  for (const auto& [key, value] : arguments_["kwargs"].entries) {
    const size_t count = references_in(value).size();
    if (key == name) return take(count);
    at += count;
  }
  return {};
}

Status Layer::check_all_read() const {
  if (!std::ranges::all_of(is_read_, [](bool read) { return read; }))
    return unsupported("more than one tensor is given to the layer")
        .expected(std::to_string(std::ranges::count(is_read_, true)))
        .found(std::to_string(is_read_.size()));
  const std::vector<Json>& places = arguments_["args"].items;
  for (size_t i = read_places_; i < places.size(); ++i)
    if (!places[i].is_null() && references_in(places[i]).empty())
      return unsupported("argument " + std::to_string(i + 1) + " of the call is not supported").found(places[i].text);
  for (const auto& [key, value] : arguments_["kwargs"].entries)
    if (!value.is_null() && key != "name" && key != "training" && key != "conjugate" && references_in(value).empty() &&
        !read_names_.contains(key) && value.flag(true))
      return unsupported("its argument '" + key + "' is not supported");
  return {};
}

TensorId Layer::mask_of(TensorId x) const {
  const auto found = build.masks.find(x.index);
  return found == build.masks.end() ? TensorId{} : found->second;
}

const TensorData* Layer::find_weight(size_t index, std::string_view below, size_t first) const {
  const Weights& all = build.model.weights;
  auto found = below.empty() ? all.end() : all.find(call.path + "/" + std::string(below));
  if (found == all.end()) {
    found = all.find(call.path);
    index += first;
  }
  return found == all.end() || index >= found->second.size() ? nullptr : &found->second[index];
}
bool Layer::has_weight(size_t index, std::string_view below, size_t first) const { return find_weight(index, below, first); }
Result<TensorId> Layer::weight(size_t index, std::string_view below, size_t first) {
  const TensorData* value = find_weight(index, below, first);
  if (!value) return invalid_model("a weight of the layer is missing").expected("at least " + std::to_string(index + first + 1));
  return add_constant("weight", *value);
}
bool Layer::has_weights_below(const std::string& part) const {
  const std::string prefix = call.path + "/" + part;
  const auto found = build.model.weights.lower_bound(prefix);
  return found != build.model.weights.end() && found->first.starts_with(prefix);
}

Result<std::vector<int64_t>> Layer::axes(TensorId x) const {
  ORKNN_TRY_ASSIGN(const int64_t rank, need_rank(x, "to find the axes of the layer"));
  std::vector<int64_t> stated = config["axis"].integers();
  if (stated.empty()) stated = {-1};
  return axes_of(stated, rank);
}

const Row* find_row(const Json& layer) {
  static const RowTable<Layer> layers{activation_rows(), convolution_rows(), pooling_rows(), normalization_rows(),
                                      matrix_rows(),     shape_rows(),       image_rows(),   elementwise_rows(),
                                      recurrent_rows(),  attention_rows()};
  static const RowTable<Layer> functions{function_rows(), array_function_rows(), activation_function_rows()};
  const std::string kind = kind_of(layer);
  const Row* row = is_function(layer) ? functions.find(kind) : layers.find(kind);
  // In .h5 files of Keras 3 layers that cannot be trained look like functions but for the type they state.
  return row || layer["config"]["dtype"].is_null() ? row : layers.find(kind);
}

namespace {
// A mask that the call states holds for what the layer reads. Those that read masks otherwise do so themselves.
Status take_mask(Layer& layer) {
  if (layer.kind() == "Softmax" || layer.kind().ends_with("Attention")) return {};
  const std::vector<TensorId> stated = layer.tensors(SIZE_MAX, "mask");
  if (stated.empty()) return {};
  ORKNN_TRY_ASSIGN(const TensorId x, layer.operand(0));
  layer.build.masks[x.index] = layer.cast(stated[0], DType::Bool);
  return {};
}
}  // namespace

Result<std::vector<TensorId>> lower(Layer& layer) {
  const Row* row = find_row(*layer.call.layer);
  if (!row) return not_known(*layer.call.layer);
  ORKNN_TRY(take_mask(layer));
  ORKNN_TRY_ASSIGN(std::vector<TensorId> outputs, (*row)(layer));
  ORKNN_TRY(layer.check_all_read());
  if (std::ranges::find(kKeepMasks, layer.kind()) != std::end(kKeepMasks) && !is_function(*layer.call.layer))
    for (size_t i = 0; i < layer.operand_count(); ++i)
      if (const TensorId mask = layer.mask_of(*layer.operand(i)); mask && !layer.mask_of(outputs[0]))
        layer.build.masks[outputs[0].index] = mask;
  return outputs;
}

Status lower_call(Build& build, const Call& call) {
  if (!find_row(*call.layer)) return not_known(*call.layer);
  std::vector<TensorId> inputs;
  for (const std::string& name : call.inputs) {
    ORKNN_TRY_ASSIGN(const TensorId x, build.network.need(name));
    inputs.push_back(x);
  }
  Layer layer(build, call, std::move(inputs));
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> outputs, lower(layer));
  if (outputs.size() < call.outputs.size())
    return unsupported("result " + std::to_string(call.outputs.size()) + " of the layer is not supported")
        .expected("at most " + std::to_string(outputs.size()));
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const TensorId mask = layer.mask_of(outputs[i]);
    build.network.bind(call.outputs[i], outputs[i], call.path);
    if (mask) build.masks[build.network.find(call.outputs[i]).index] = mask;
  }
  return {};
}

// An activation is a name, the description of a function, or that of a layer.
Result<TensorId> activated(Layer& l, TensorId x, const Json& activation) {
  static const RowTable<Layer> by_name{activation_function_rows()};
  const bool is_layer = activation.kind == Json::Kind::Map && activation["config"].kind == Json::Kind::Map;
  const std::string name = activation.string(activation["config"].string(activation["class_name"].string()));
  if (activation.is_null() || name == "linear") return x;
  const Row* row = is_layer ? find_row(activation) : by_name.find(name);
  if (!row) return unsupported("the activation '" + name + "' is not supported");
  Layer inner(l, is_layer ? kind_of(activation) : name, is_layer ? activation["config"] : kNothing, {x});
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> y, (*row)(inner));
  return y[0];
}

Result<TensorId> with_activation(Layer& l, TensorId x) { return activated(l, x, l.config["activation"]); }

}  // namespace orknn::importer::keras
