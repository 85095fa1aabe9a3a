#include "import/keras/model.h"

#include <algorithm>
#include <map>

#include "import/keras/call.h"

namespace orknn::importer::keras {
namespace {

constexpr int kMaxNestedModels = 16;
constexpr size_t kMaxOutputs = 256;  // of a layer
constexpr size_t kMaxCalls = 1 << 18;

// A tensor of a model: which layer, which call of it, which of its results.
struct Reference {
  std::string layer;
  size_t call = 0, output = 0;
};
Reference reference_of(const Json& value) {
  const auto number = [&](size_t i) { return static_cast<size_t>(std::max<int64_t>(value.items[i].integer(0), 0)); };
  return {value.items[0].text, number(1), number(2)};
}
// The inputs or outputs of a model.
std::vector<Reference> ports_of(const Json& value) {
  std::vector<Reference> list;
  for (const Json* found : references_in(value))
    if (is_reference(*found)) list.push_back(reference_of(*found));
  return list;
}

// What a layer is called with: a tensor that another call makes, or one that is stored.
struct Operand {
  Reference reference;
  const Json* constant = nullptr;
};
std::vector<Operand> operands_of(const Json& arguments) {
  std::vector<Operand> list;
  const auto add = [&](const Json& value) {
    for (const Json* found : references_in(value))
      list.push_back(is_reference(*found) ? Operand{reference_of(*found)} : Operand{{}, found});
  };
  add(arguments["args"]);
  for (const auto& [key, value] : arguments["kwargs"].entries) add(value);
  return list;
}

// Whether a model states how its layers are connected; otherwise they are a sequence.
bool is_connected(const Json& model) {
  return !model["config"]["input_layers"].is_null() || !model["config"]["output_layers"].is_null();
}

bool is_input(const Json& layer) { return layer["class_name"].string() == "InputLayer"; }

DType dtype_of(const Json& stated) {
  const DType dtype = dtype_from_name(stated.string("float32"));
  return is_integer(dtype) || dtype == DType::Bool ? dtype : DType::Float32;
}

class Flattener {
 public:
  Flattener(int generation, FlatModel& result) : generation_(generation), result_(result) {}

  // `inputs`: none for the outermost model, whose inputs are ports.
  Result<std::vector<std::string>> model(const Json& model, const std::string& prefix, const std::vector<std::string>& inputs,
                                         int depth) {
    if (depth > kMaxNestedModels) return unsupported("models are nested too deeply");
    if (layers_of(model).empty()) return invalid_model("the model has no layers");
    return is_connected(model) ? connected(model, prefix, inputs, depth) : sequence(model, prefix, inputs, depth);
  }

 private:
  // What a call makes: tensors inside of a model, or those of one layer, which are counted as they are read.
  struct Made {
    std::vector<std::string> names;
    std::optional<size_t> call;
  };
  using Calls = std::map<std::pair<std::string, size_t>, Made>;

  Result<std::string> result(const Made& made, size_t output) {
    if (!made.call && output < made.names.size()) return made.names[output];
    if (!made.call || output >= kMaxOutputs) return invalid_model("a result of a call is missing").found(std::to_string(output));
    std::vector<std::string>& names = result_.calls[*made.call].outputs;
    while (names.size() <= output) names.push_back(names[0] + ":" + std::to_string(names.size()));
    return names[output];
  }

  Result<std::string> port(const std::string& name, const Json& shape, const Json& dtype) {
    if (shape.kind != Json::Kind::List) return invalid_model("the input has no shape").node(name, "InputLayer");
    ir::Shape dims;
    for (const int64_t extent : shape.integers()) dims.push_back(extent < 0 ? ir::Dim() : ir::Dim(extent));
    if (!dims.empty() && !dims[0].is_known()) dims[0] = ir::Dim(1);  // the batch
    result_.inputs.push_back({.name = name, .dtype = dtype_of(dtype), .shape = std::move(dims)});
    return name;
  }
  Result<std::string> port_of(const Json& layer, const std::string& name) {
    const Json& config = layer["config"];
    return port(name, config["batch_shape"].is_null() ? config["batch_input_shape"] : config["batch_shape"], config["dtype"]);
  }

  // One call of a layer or of a model in a model.
  Result<Made> call(const Json& layer, const std::string& prefix, std::vector<std::string> inputs, int depth,
                    Json arguments = {}) {
    const std::string path = prefix + name_of(layer);
    if (is_model(layer)) {
      if (inputs.empty()) return invalid_model("a model in the model gets no tensors").node(path, layer["class_name"].string());
      ORKNN_TRY_ASSIGN(std::vector<std::string> outputs, model(layer, path + "/", inputs, depth + 1));
      return Made{std::move(outputs), std::nullopt};
    }
    if (result_.calls.size() >= kMaxCalls) return unsupported("the model calls too many layers");
    const size_t earlier = times_called_[path]++;
    const std::string name = earlier ? path + "/call_" + std::to_string(earlier) : path;
    result_.calls.push_back({&layer, path, std::move(inputs), {name}, std::move(arguments)});
    return Made{{}, result_.calls.size() - 1};
  }

  Result<std::vector<std::string>> sequence(const Json& model, const std::string& prefix, std::vector<std::string> current,
                                            int depth) {
    for (const Json& layer : layers_of(model)) {
      if (current.empty()) {
        ORKNN_TRY_ASSIGN(current, first_input(model, layer));
      }
      if (is_input(layer)) continue;
      ORKNN_TRY_ASSIGN(const Made made, call(layer, prefix, current, depth));
      if (made.names.empty()) {
        ORKNN_TRY_ASSIGN(std::string name, result(made, 0));
        current = {std::move(name)};
      } else {
        current = made.names;
      }
    }
    return current;
  }
  // The first layer may state the shape of the input, or the sequence itself.
  Result<std::vector<std::string>> first_input(const Json& model, const Json& first) {
    const Json &own = model["config"]["build_input_shape"], &built = model["build_config"]["input_shape"];
    if (is_input(first)) {
      ORKNN_TRY_ASSIGN(std::string name, port_of(first, name_of(first)));
      return std::vector{std::move(name)};
    }
    const std::string name = name_of(first) + "_input";
    const Json& stated = own.is_null() ? built : own;
    if (first["config"]["batch_input_shape"].is_null() && stated.is_null())
      return invalid_model("the model does not state the shape of its input").hint("build it before it is saved");
    ORKNN_TRY(first["config"]["batch_input_shape"].is_null() ? port(name, stated, {}).status() : port_of(first, name).status());
    return std::vector{name};
  }

  // Layers in any order: each call is written when its inputs are there.
  Result<std::vector<std::string>> connected(const Json& model, const std::string& prefix, const std::vector<std::string>& inputs,
                                             int depth) {
    const std::vector<Reference> starts = ports_of(model["config"]["input_layers"]),
                                 ends = ports_of(model["config"]["output_layers"]);
    if (!inputs.empty() && inputs.size() != starts.size())
      return invalid_model("a model in the model gets another number of inputs");
    std::map<std::string, const Json*, std::less<>> layers;
    for (const Json& layer : layers_of(model)) layers.emplace(layer["name"].string(name_of(layer)), &layer);
    Calls calls;
    for (size_t i = 0; i < starts.size(); ++i) {
      const auto layer = layers.find(starts[i].layer);
      if (layer == layers.end()) return invalid_model("an input of the model is missing").found(starts[i].layer);
      std::string input = inputs.empty() ? "" : inputs[i];
      if (inputs.empty()) {
        ORKNN_TRY_ASSIGN(input, port_of(*layer->second, name_of(*layer->second)));
      }
      calls[{starts[i].layer, 0}] = {{std::move(input)}, std::nullopt};
    }
    ORKNN_TRY(waiting_calls(model, prefix, depth, calls));
    std::vector<std::string> outputs;
    for (const Reference& end : ends) {
      const auto layer = layers.find(end.layer);
      const size_t uncounted = layer == layers.end() ? 0 : calls_before_output(*layer->second);
      const auto made = end.call < uncounted ? calls.end() : calls.find({end.layer, end.call - uncounted});
      if (made == calls.end())
        return invalid_model("a tensor of the model is missing").found(end.layer + ", call " + std::to_string(end.call));
      ORKNN_TRY_ASSIGN(std::string name, result(made->second, end.output));
      outputs.push_back(std::move(name));
    }
    if (outputs.empty()) return invalid_model("the model has no outputs");
    return outputs;
  }

  // Keras 2 counts the making of a model that has an input of its own as its first call, which is not stored.
  size_t first_call(const Json& layer) const { return generation_ == 2 && is_model(layer) && is_input(layers_of(layer)[0]); }
  // Keras 3 does the same for connected models, but only where it states outputs, not in the arguments of calls.
  size_t calls_before_output(const Json& layer) const { return generation_ >= 3 && is_model(layer) && is_connected(layer); }

  Status waiting_calls(const Json& model, const std::string& prefix, int depth, Calls& calls) {
    struct Waiting {
      const Json* layer;
      std::pair<std::string, size_t> key;  // name and number of the call
      Json arguments;
      std::vector<Operand> inputs;
    };
    std::vector<Waiting> waiting;
    for (const Json& layer : layers_of(model)) {
      const std::string name = layer["name"].string(name_of(layer));
      size_t number = first_call(layer);
      for (const Json& stated : layer["inbound_nodes"].items) {
        Waiting w{&layer, {name, number++}, call_of(layer, stated), {}};
        // The description outlives this, which constants rely on; only Keras 3 has them, whose calls are as stated.
        w.inputs = operands_of(is_modern_call(stated) ? stated : w.arguments);
        if (!calls.contains(w.key)) waiting.push_back(std::move(w));
      }
    }
    while (!waiting.empty()) {
      std::vector<Waiting> later;
      for (Waiting& w : waiting) {
        if (!std::ranges::all_of(w.inputs, [&](const Operand& o) {
              return o.constant || calls.contains({o.reference.layer, o.reference.call});
            })) {
          later.push_back(std::move(w));
          continue;
        }
        std::vector<std::string> inputs;
        for (const auto& [r, constant] : w.inputs) {
          if (constant) {
            inputs.push_back(prefix + name_of(*w.layer) + "/constant_" + std::to_string(result_.calls.size()));
            result_.calls.push_back({constant, inputs.back(), {}, {inputs.back()}});
            continue;
          }
          ORKNN_TRY_ASSIGN(std::string name, result(calls[{r.layer, r.call}], r.output));
          inputs.push_back(std::move(name));
        }
        ORKNN_TRY_ASSIGN(calls[w.key], call(*w.layer, prefix, std::move(inputs), depth, std::move(w.arguments)));
      }
      // What is still waiting is not connected with the inputs: nothing the outputs need, or they report it.
      if (later.size() == waiting.size()) return {};
      waiting = std::move(later);
    }
    return {};
  }

  int generation_;
  FlatModel& result_;
  std::map<std::string, size_t> times_called_;
};
}  // namespace

Result<FlatModel> flatten(const Json& model, int generation) {
  FlatModel result;
  ORKNN_TRY_ASSIGN(result.outputs, Flattener(generation, result).model(model, "", {}, 0));
  return result;
}

Result<FlatModel> flatten_inner(const Json& model, int generation, const std::string& path,
                                const std::vector<std::string>& inputs) {
  FlatModel result;
  ORKNN_TRY_ASSIGN(result.outputs, Flattener(generation, result).model(model, path + "/", inputs, 0));
  return result;
}

}  // namespace orknn::importer::keras
