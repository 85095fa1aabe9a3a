#include "import/keras/model.h"

#include <algorithm>

#include "import/keras/operations.h"

namespace orknn::importer::keras {
namespace {

constexpr int kMaxNestedModels = 16;
constexpr int64_t kMaxBatch = 1 << 16;

// A tensor of a model: which layer, which call of it, which of its results.
struct Reference {
  std::string layer;
  size_t call = 0, output = 0;
};

Reference reference_of(const Json& value) {
  const auto number = [&](size_t i) { return static_cast<size_t>(std::max<int64_t>(value.items[i].integer(0), 0)); };
  return {value.items[0].text, number(1), number(2)};
}

// References in lists of any depth (Keras 2, whose last item holds named arguments), in tensors of arguments (Keras 3), or alone.
void add_references(const Json& value, int depth, std::vector<Reference>& to) {
  if (depth > kMaxNestedModels) return;
  if (is_reference(value)) {
    to.push_back(reference_of(value));
    if (value.items.size() > 3)
      for (const auto& [name, named] : value.items[3].entries) add_references(named, depth + 1, to);
    return;
  }
  if (value["class_name"].string() == "__keras_tensor__") return add_references(value["config"]["keras_history"], depth + 1, to);
  for (const Json& item : value.items) add_references(item, depth + 1, to);
}

// The references of each call of a layer.
std::vector<std::vector<Reference>> calls_of(const Json& layer) {
  std::vector<std::vector<Reference>> calls;
  for (const Json& stated : layer["inbound_nodes"].items) {
    const Json call = call_of(layer, stated);
    std::vector<Reference> inputs;
    if (call.kind == Json::Kind::Map) {
      add_references(call["args"], 0, inputs);
      for (const auto& [name, value] : call["kwargs"].entries) add_references(value, 0, inputs);
    } else {
      add_references(call, 0, inputs);
    }
    calls.push_back(std::move(inputs));
  }
  return calls;
}

int64_t tf_type(const Json& dtype) {
  const std::string name = dtype.string("float32");
  return name == "int32" ? kTfInt32 : name == "int64" ? kTfInt64 : name == "bool" ? kTfBool : kTfFloat;
}

// Layers of classes nobody knows, at any depth.
void add_unknown(const Json& model, int depth, Status& problems) {
  for (const Json& layer : layers_of(model)) {
    const std::string kind = layer["class_name"].string();
    if (is_model(layer) && depth < kMaxNestedModels)
      add_unknown(layer, depth + 1, problems);
    else if (kind != "InputLayer" && !is_known_layer(layer))
      problems.also(unsupported(is_operation(layer) ? "the function '" + operation_name(layer) + "' is not supported"
                                                    : "the layer '" + kind + "' is not supported")
                        .node(name_of(layer), kind));
  }
}

// Masks that layers give to those after them, which are not computed.
struct Masks {
  std::vector<std::string> made_by;
  bool are_used = false;
};
void find_masks(const Json& model, int depth, Masks& found) {
  static const std::set<std::string, std::less<>> users{
      "LSTM", "GRU", "SimpleRNN", "Bidirectional", "GlobalAveragePooling1D", "TimeDistributed", "MultiHeadAttention"};
  for (const Json& layer : layers_of(model)) {
    if (is_model(layer) && depth < kMaxNestedModels) find_masks(layer, depth + 1, found);
    if (layer["config"]["mask_zero"].flag(false)) found.made_by.push_back(name_of(layer));
    found.are_used |= users.count(layer["class_name"].string()) > 0;
  }
}

class ModelWriter {
 public:
  explicit ModelWriter(const Model& model) : model_(model) {}

  Result<TfGraph> run() {
    Status problems;
    add_unknown(model_.description, 0, problems);
    if (!problems) return problems;
    ORKNN_TRY_ASSIGN(std::vector<Tensor> outputs, write_model(model_.description, "", {}, 0));
    TfGraph result;
    graph_.begin_layer("");
    for (Tensor& output : outputs) result.outputs.push_back(graph_.like("Identity", {output}).name);
    for (size_t i = 0; i < outputs.size();
         ++i)  // an output by the name of what computes it, unless that is an input or there twice
      if (!inputs_.count(outputs[i].name) &&
          std::count_if(outputs.begin(), outputs.end(), [&](const Tensor& t) { return t.name == outputs[i].name; }) == 1)
        result.outputs[i] = outputs[i].name;
    result.layers = std::move(layers_);
    Masks masks;
    find_masks(model_.description, 0, masks);
    for (const std::string& name : masks.made_by)
      if (masks.are_used)
        result.warnings.push_back(
            "The zeros that '" + name +
            "' masks (mask_zero) are read like other steps, results differ for sequences that end with them");
    ORKNN_TRY_ASSIGN(result.bytes, graph_.finish());
    return result;
  }

 private:
  // `inputs`: none for the outermost model, whose inputs are placeholders.
  Result<std::vector<Tensor>> write_model(const Json& model, const std::string& prefix, const std::vector<Tensor>& inputs,
                                          int depth) {
    if (depth > kMaxNestedModels) return unsupported("models are nested too deeply");
    if (layers_of(model).empty()) return invalid_model("the model has no layers");
    const bool connected = !model["config"]["input_layers"].is_null() || !model["config"]["output_layers"].is_null();
    return connected ? write_connected(model, prefix, inputs, depth) : write_sequence(model, prefix, inputs, depth);
  }

  Result<Tensor> placeholder(const Json& layer) {
    const Json& config = layer["config"];
    const Json& shape = config["batch_shape"].is_null() ? config["batch_input_shape"] : config["batch_shape"];
    if (shape.kind != Json::Kind::List) return invalid_model("the input has no shape").node(name_of(layer), "InputLayer");
    ir::Dims dims = shape.integers();
    if (!dims.empty() && dims[0] < 0) dims[0] = 1;
    if (!dims.empty()) batch_ = dims[0];
    if (batch_ > kMaxBatch) return unsupported("the batch is too large").found(std::to_string(batch_));
    const Tensor input = graph_.placeholder(name_of(layer), tf_type(config["dtype"]), dims);
    inputs_.insert(input.name);
    return input;
  }

  // One call of a layer or of a model in a model.
  Result<std::vector<Tensor>> write_call(const Json& layer, const std::string& prefix, std::vector<Tensor> inputs, int depth,
                                         const Json& arguments = {}) {
    const std::string path = prefix + name_of(layer);
    if (is_model(layer)) return write_model(layer, path + "/", inputs, depth + 1);
    LayerCall call{graph_,   layer, layer["config"], path, model_.weights, std::move(inputs), batch_, model_.generation(),
                   arguments};
    ORKNN_TRY_ASSIGN(Tensor result, lower_layer(call));
    layers_.emplace(path, result.name);
    return std::vector{std::move(result)};
  }

  Result<std::vector<Tensor>> write_sequence(const Json& model, const std::string& prefix, const std::vector<Tensor>& inputs,
                                             int depth) {
    std::vector<Tensor> current = inputs;
    for (const Json& layer : layers_of(model)) {
      const bool is_input = layer["class_name"].string() == "InputLayer";
      if (current.empty()) {  // the first layer may state the shape of the input
        const bool states = is_input || !layer["config"]["batch_input_shape"].is_null();
        const Json& first = states ? layer : model;
        if (!states) return invalid_model("the model does not state the shape of its input").hint("build it before it is saved");
        ORKNN_TRY_ASSIGN(const Tensor input, is_input ? placeholder(first) : named_input(first));
        current = {input};
      }
      if (is_input) continue;
      ORKNN_TRY_ASSIGN(current, write_call(layer, prefix, current, depth));
    }
    return current;
  }

  // Of a layer that states its input's shape itself.
  Result<Tensor> named_input(const Json& layer) {
    Json own = layer;
    for (auto& [key, value] : own.entries)
      if (key == "config")
        for (auto& [name, text] : value.entries)
          if (name == "name") text.text += "_input";
    return placeholder(own);
  }

  // Layers in any order: each call is written when its inputs are there.
  Result<std::vector<Tensor>> write_connected(const Json& model, const std::string& prefix, const std::vector<Tensor>& inputs,
                                              int depth) {
    Calls calls;
    std::vector<Reference> starts, ends;
    add_references(model["config"]["input_layers"], 0, starts);
    add_references(model["config"]["output_layers"], 0, ends);
    if (!inputs.empty() && inputs.size() != starts.size())
      return invalid_model("a model in the model gets another number of inputs");
    std::map<std::string, const Json*, std::less<>> layers;
    for (const Json& layer : layers_of(model)) layers.emplace(layer["name"].string(name_of(layer)), &layer);
    for (size_t i = 0; i < starts.size(); ++i) {
      const auto layer = layers.find(starts[i].layer);
      if (layer == layers.end()) return invalid_model("an input of the model is missing").found(starts[i].layer);
      Tensor input;
      if (inputs.empty()) {
        ORKNN_TRY_ASSIGN(input, placeholder(*layer->second));
      } else {
        input = inputs[i];
      }
      calls[{starts[i].layer, 0}] = {input};
    }
    ORKNN_TRY(write_waiting(model, prefix, depth, calls));
    std::vector<Tensor> outputs;
    for (const Reference& end : ends) {
      ORKNN_TRY_ASSIGN(Tensor output, tensor_of(calls, end));
      outputs.push_back(std::move(output));
    }
    if (outputs.empty()) return invalid_model("the model has no outputs");
    return outputs;
  }

  using Calls = std::map<std::pair<std::string, size_t>, std::vector<Tensor>>;

  static Result<Tensor> tensor_of(const Calls& calls, const Reference& reference) {
    const auto found = calls.find({reference.layer, reference.call});
    if (found == calls.end() || reference.output >= found->second.size())
      return invalid_model("a tensor of the model is missing").found(reference.layer);
    return found->second[reference.output];
  }

  // Keras 2 counts the making of a model that has an input of its own as its first call, which is not stored.
  size_t first_call(const Json& layer) const {
    return model_.generation() == 2 && is_model(layer) && layers_of(layer)[0]["class_name"].string() == "InputLayer" ? 1 : 0;
  }

  Status write_waiting(const Json& model, const std::string& prefix, int depth, Calls& calls) {
    struct Waiting {
      const Json* layer;
      std::string name;
      size_t call, place;  // its number, and where it stands in the list
      std::vector<Reference> inputs;
    };
    std::vector<Waiting> waiting;
    for (const Json& layer : layers_of(model)) {
      const std::string name = layer["name"].string(name_of(layer));
      const auto list = calls_of(layer);
      const size_t first = first_call(layer);
      for (size_t i = 0; i < list.size(); ++i)
        if (!calls.count({name, first + i})) waiting.push_back({&layer, name, first + i, i, list[i]});
    }
    while (!waiting.empty()) {
      std::vector<Waiting> later;
      for (Waiting& w : waiting) {
        std::vector<Tensor> inputs;
        for (const Reference& r : w.inputs)
          if (const auto found = calls.find({r.layer, r.call}); found != calls.end() && r.output < found->second.size())
            inputs.push_back(found->second[r.output]);
        if (inputs.size() < w.inputs.size()) {
          later.push_back(std::move(w));
          continue;
        }
        const Json arguments = call_of(*w.layer, (*w.layer)["inbound_nodes"].items[w.place]);
        ORKNN_TRY_ASSIGN(std::vector<Tensor> outputs, write_call(*w.layer, prefix, std::move(inputs), depth, arguments));
        calls[{w.name, w.call}] = std::move(outputs);
      }
      // What is still waiting is not connected with the inputs: nothing the outputs need, or they report it.
      if (later.size() == waiting.size()) return {};
      waiting = std::move(later);
    }
    return {};
  }

  const Model& model_;
  GraphWriter graph_;
  int64_t batch_ = 1;
  std::set<std::string> inputs_;
  std::map<std::string, std::string> layers_;
};
}  // namespace

Result<TfGraph> to_tensorflow(const Model& model) { return ModelWriter(model).run(); }

}  // namespace orknn::importer::keras
