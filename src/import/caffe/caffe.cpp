// Caffe networks: a description (.prototxt, or the same as bytes) and, if there is one, a .caffemodel with the blobs of its
// layers. Layers for training only are left out; what they would have read is an output of the model.
#include <algorithm>

#include "base/files.h"
#include "import/caffe/layer.h"
#include "import/importer.h"
#include "import/lower/known_names.h"
#include "ir/infer.h"

namespace orknn::importer {
namespace caffe {
namespace {
using namespace ir;

const RowTable<Layer>& table() {
  static const RowTable<Layer> rows{elementwise_rows(), convolution_rows(), pooling_rows(), normalization_rows(),
                                    reduction_rows(),   shape_rows(),       resize_rows(),  recurrent_rows(),
                                    detection_rows(),   flow_rows()};
  return rows;
}

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), type) != list.end();
}

// What a layer is for the model.
enum class Role { Input, Data, Constant, Sink, Training, Compute };
Role role_of(const LayerDescription& layer) {
  if (layer.type == "Input") return Role::Input;
  if (layer.type == "DummyData") return Role::Constant;
  if (is_one_of(layer.type, {"Data", "ImageData", "HDF5Data", "MemoryData", "WindowData", "AnnotatedData", "DenseImageData",
                             "VideoData", "ImageSegData", "CompactData"}))
    return Role::Data;
  if (layer.type == "Silence") return Role::Sink;
  if (layer.type.ends_with("Loss") || layer.type.ends_with("LossOHEM") ||
      is_one_of(layer.type, {"Accuracy", "SoftmaxWithLoss", "DetectionEvaluate", "HDF5Output", "ImageOutput"}))
    return Role::Training;
  return Role::Compute;
}

// One layer with the names its values have here: a value that is written again in place gets a name of its own.
struct Instance {
  const LayerDescription* layer = nullptr;
  Role role = Role::Compute;
  std::vector<std::string> reads, writes;
};

std::optional<Dims> shape_in(const Parameters& holder, size_t i) {
  const std::vector<Parameters> shapes = holder.messages("shape");
  if (shapes.empty()) return std::nullopt;
  return shapes[std::min(i, shapes.size() - 1)].integers("dim");  // one shape may hold for all tops
}

// Layers that read training data state the size of a picture in many ways; the batch of the training is of no interest.
Result<std::optional<Dims>> data_shape(const LayerDescription& layer) {
  Status problem;
  const auto parameters = [&](const char* name) { return Parameters(layer.parameters(name), problem); };
  std::optional<Dims> shape;
  if (layer.type == "MemoryData") {
    const Parameters p = parameters("memory_data_param");
    shape = Dims{1, p.integer("channels", 0), p.integer("height", 0), p.integer("width", 0)};
  } else {
    int64_t size = 0, height = 0, width = 0;
    for (const char* holder : {"transform_param", "data_param", "image_data_param", "window_data_param"}) {
      const Parameters p = parameters(holder);
      size = p.integer("crop_size", size);
      height = p.integer("new_height", height);
      width = p.integer("new_width", width);
    }
    if (size > 0) height = width = size;
    const int64_t channels = parameters("transform_param").flag("force_gray", false) ? 1 : 3;
    if (height > 0 && width > 0) shape = Dims{1, channels, height, width};
  }
  if (!problem) return problem;
  return shape;
}

// A constant with the contents its filler describes.
Result<TensorData> dummy_value(Build& build, const LayerDescription& layer, size_t i) {
  Status problem;
  const Parameters p(layer.parameters("dummy_data_param"), problem);
  const auto own = [&](const auto& list) { return std::min(i, list.size() - 1); };  // the last one holds for the tops after it
  std::optional<Dims> shape = shape_in(p, i);
  if (!shape) {
    shape.emplace();
    for (const char* name : {"num", "channels", "height", "width"}) {
      const std::vector<int64_t> extents = p.integers(name);
      shape->push_back(extents.empty() ? 1 : extents[own(extents)]);
    }
  }
  double value = 0;
  if (const std::vector<Parameters> fillers = p.messages("data_filler"); !fillers.empty()) {
    const Parameters& filler = fillers[own(fillers)];
    const std::string type = filler.text("type", "constant");
    if (type != "constant") return unsupported("only constant dummy data can be used").found(type);
    value = filler.number("value", 0);
  }
  if (!problem) return problem;
  for (int64_t d : *shape)
    if (d < 0) return invalid_model("a negative extent").found(to_string(*shape));
  ORKNN_TRY(build.invented.add(layer.name, *shape));
  return uniform_data(std::move(*shape), value);
}

std::optional<Shape> shape_from(const std::optional<Dims>& dims) { return dims ? std::optional(to_shape(*dims)) : std::nullopt; }
Port port_of(std::string name, const std::optional<Dims>& dims) {
  return {.name = std::move(name), .dtype = DType::Float32, .shape = shape_from(dims)};
}

class Loader {
 public:
  Loader(const NetDescription& net, const ImportOptions& options, const OpSet& ops) : net_(net), options_(options), build_(ops) {}
  Build& build() { return build_; }
  bool has_open_inputs() const { return has_open_inputs_; }

  Result<Graph> load() {
    ORKNN_TRY(name_values());
    ORKNN_TRY_ASSIGN(const std::vector<std::string> outputs, wanted_outputs());
    ORKNN_TRY_ASSIGN(const LayerPlan plan, plan_for(outputs));
    ORKNN_TRY(add_inputs(plan));
    build_.network.lower_all(names_, plan, [&](size_t i, bool is_reachable) -> Status {
      const Instance& instance = instances_[i];
      if (!is_reachable && (instance.role != Role::Compute || table().find(instance.layer->type))) return {};
      return lower(instance).node(instance.layer->name, instance.layer->type);
    });
    if (!build_.network.is_clean()) return build_.network.finish({});
    return build_.network.finish(options_.outputs.empty() ? without_constants(outputs) : outputs);
  }

 private:
  // --- names
  // The last value written under a name keeps it, except that an input always keeps its own.
  Status name_values() {
    std::unordered_map<std::string, size_t> writes_left;
    std::unordered_map<std::string, size_t> taken;
    for (const LayerDescription& layer : net_.layers)
      for (const std::string& top : layer.tops) {
        ++writes_left[top];
        taken[top] = 1;
      }
    std::unordered_map<std::string, std::string> current;
    std::unordered_set<std::string> input_names;
    for (const InputDescription& input : net_.inputs) {
      ports_.push_back(port_of(input.name, input.shape));
      current[input.name] = input.name;
      input_names.insert(input.name);
      taken[input.name] = 1;
    }
    for (const LayerDescription& layer : net_.layers) {
      Instance instance{.layer = &layer, .role = role_of(layer), .reads = {}, .writes = {}};
      for (const std::string& bottom : layer.bottoms) {
        const auto it = current.find(bottom);
        instance.reads.push_back(it == current.end() ? bottom : it->second);
      }
      for (size_t i = 0; i < layer.tops.size(); ++i) {
        const std::string& top = layer.tops[i];
        const bool is_last = --writes_left[top] == 0;
        std::string name = top;
        if (instance.role == Role::Input || instance.role == Role::Data) {
          input_names.insert(top);
        } else if (!is_last || input_names.contains(top)) {
          name = top + "@" + layer.name;
          if (const size_t before = taken[name]++) name += "@" + std::to_string(before);
        }
        current[top] = name;
        instance.writes.push_back(std::move(name));
      }
      if (instance.role == Role::Input) {
        for (size_t i = 0; i < layer.tops.size(); ++i) {
          Status problem;
          ports_.push_back(port_of(layer.tops[i], shape_in({layer.parameters("input_param"), problem}, i)));
          if (!problem) return problem.node(layer.name, layer.type);
          port_layers_[layer.tops[i]] = &layer;
        }
      } else {
        instances_.push_back(std::move(instance));
      }
    }
    return {};
  }

  // --- outputs
  // What nothing reads, in the order it is written. Layers for training do not count as readers, nor do those whose results are
  // all silenced; what is silenced itself is no output.
  Result<std::vector<std::string>> wanted_outputs() {
    if (!options_.outputs.empty()) return options_.outputs;
    std::unordered_set<std::string_view> read, silenced;
    std::vector<std::string> outputs;
    for (auto it = instances_.rbegin(); it != instances_.rend(); ++it) {
      if (it->role == Role::Sink) silenced.insert(it->reads.begin(), it->reads.end());
      if (it->role != Role::Compute && it->role != Role::Constant) continue;
      bool is_useful = false;
      for (auto name = it->writes.rbegin(); name != it->writes.rend(); ++name) {
        is_useful |= read.contains(*name);
        if (read.contains(*name) || silenced.contains(*name) || std::find(outputs.begin(), outputs.end(), *name) != outputs.end())
          continue;
        outputs.push_back(*name);
        is_useful = true;
      }
      if (is_useful) read.insert(it->reads.begin(), it->reads.end());
    }
    std::reverse(outputs.begin(), outputs.end());
    if (outputs.empty())
      return invalid_model("the network has no outputs")
          .hint("every value is read by another layer, or all layers are for training");
    return outputs;
  }

  // Results that no input has an influence on (prior boxes) are left out when there are others.
  std::vector<std::string> without_constants(const std::vector<std::string>& outputs) const {
    const Graph& graph = build_.network.graph;
    std::vector<char> depends(graph.tensor_count(), 0);
    for (TensorId id : graph.inputs()) depends[static_cast<size_t>(id.index)] = 1;
    for (NodeId node : graph.order()) {
      const Node& n = graph.node(node);
      const bool any =
          std::any_of(n.inputs.begin(), n.inputs.end(), [&](TensorId t) { return t && depends[static_cast<size_t>(t.index)]; });
      for (TensorId t : n.outputs)
        if (t && any) depends[static_cast<size_t>(t.index)] = 1;
    }
    std::vector<std::string> varying;
    for (const std::string& name : outputs)
      if (const TensorId id = build_.network.find(name); id && depends[static_cast<size_t>(id.index)]) varying.push_back(name);
    return varying.empty() ? outputs : varying;
  }

  Result<LayerPlan> plan_for(const std::vector<std::string>& outputs) {
    names_.clear();
    for (const Instance& i : instances_) {
      LayerNames& names = names_.emplace_back();
      if (i.role == Role::Training || i.role == Role::Sink) continue;
      names.reads.assign(i.reads.begin(), i.reads.end());
      if (i.role == Role::Compute || i.role == Role::Constant) names.writes.assign(i.writes.begin(), i.writes.end());
    }
    const std::unordered_set<std::string_view> stops(options_.inputs.begin(), options_.inputs.end());
    const std::vector<std::string_view> wanted(outputs.begin(), outputs.end());
    ORKNN_TRY_ASSIGN(LayerPlan plan, plan_layers(names_, wanted, stops));
    std::unordered_set<std::string_view> known;
    for (const Port& p : ports_) known.insert(p.name);
    for (const Instance& i : instances_) known.insert(i.writes.begin(), i.writes.end());
    for (const std::string& name : options_.outputs)
      if (!known.contains(name)) return no_such_tensor(name, "outputs", options_.outputs, known);
    for (const std::string& name : options_.inputs)
      if (!known.contains(name)) return no_such_tensor(name, "inputs", options_.inputs, known);
    return plan;
  }

  // --- inputs
  Status add_inputs(const LayerPlan& plan) {
    for (const Instance& i : instances_) {
      if (i.role != Role::Data) continue;
      for (size_t k = 0; k < i.writes.size(); ++k) {
        if (!plan.read.contains(i.writes[k])) continue;
        std::optional<Dims> shape;
        if (k == 0) {
          ORKNN_TRY_ASSIGN(shape, data_shape(*i.layer));
          build_.network.warnings.push_back("layer '" + i.layer->name + "' reads training data; its top '" + i.writes[k] +
                                            "' is an input of the model");
        }
        ports_.push_back(port_of(i.writes[k], shape));
        port_layers_[i.writes[k]] = i.layer;
      }
    }
    for (const Port& p : ports_)
      if (p.shape && is_static(*p.shape)) {
        const Dims dims = *to_dims(*p.shape);
        if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
          return at_port(p, invalid_model("input '" + p.name + "' has a negative extent").found(to_string(dims)));
        if (const auto count = checked_element_count(dims); !count) return at_port(p, count.status());
      }
    ORKNN_TRY_ASSIGN(ports_, chosen_inputs(std::move(ports_), plan, options_));
    for (Port& p : ports_) ORKNN_TRY(settle(p));
    for (const Port& p : ports_) build_.network.add_input(p);
    return {};
  }

  // The problem with the name of the layer that describes the input, or of the input itself.
  Status at_port(const Port& port, Status problem) const {
    const auto it = port_layers_.find(port.name);
    return it == port_layers_.end() ? problem.node(port.name, "input") : problem.node(it->second->name, it->second->type);
  }

  // An input without shape: as much of it as the first layer that reads it tells; the rest is open and may differ between runs.
  Status settle(Port& port) {
    if (port.shape || port.value.has_value()) return {};
    const Dim height = Dim::symbol("height"), width = Dim::symbol("width");
    for (const Instance& i : instances_) {
      const auto it = std::find(i.reads.begin(), i.reads.end(), port.name);
      if (it == i.reads.end()) continue;
      const auto position = it - i.reads.begin();
      if (i.layer->type == "Proposal" || i.layer->type == "Python") {
        ORKNN_TRY_ASSIGN(const int64_t anchors, anchor_count(*i.layer));
        port.shape = position == 0   ? Shape{1, 2 * anchors, height, width}
                     : position == 1 ? Shape{1, 4 * anchors, height, width}
                                     : Shape{1, 3};
        has_open_inputs_ = true;
        return {};
      }
      const auto weights = build_.weights.find(i.layer->name);
      if (i.layer->type == "Convolution" && weights != build_.weights.end() && !weights->second.empty() &&
          weights->second[0].dims.size() == 4) {
        Status problem;
        const int64_t groups = Parameters(i.layer->parameters("convolution_param"), problem).integer("group", 1, 1, 1 << 20);
        if (!problem) break;
        port.shape = Shape{1, weights->second[0].dims[1] * groups, height, width};
        has_open_inputs_ = true;
        return {};
      }
      break;
    }
    return invalid_model("the shape of input '" + port.name + "' is not stated")
        .expected("input_shape, four input_dim, or an Input layer with input_param")
        .hint("write the shape into the prototxt");
  }

  // --- layers
  static Status unknown_type(const LayerDescription& layer) {
    return unsupported("layers of type '" + layer.type + "' are not supported");
  }

  static void warn_of_unknown_fields(Layer& layer, const Message& message) {
    for (const Field& field : message.fields()) {
      if (auto warning = unknown_name("field", field.name(), known_fields()))
        layer.warn(*std::move(warning) + field.place());
      else if (field.message())
        warn_of_unknown_fields(layer, *field.message());
    }
  }

  Status lower(const Instance& instance) {
    Network& network = build_.network;
    const LayerDescription& description = *instance.layer;
    if (instance.role == Role::Compute && !table().find(description.type)) return unknown_type(description);
    std::vector<TensorId> bottoms;
    for (const std::string& name : instance.reads) {
      ORKNN_TRY_ASSIGN(const TensorId id, network.need(name));
      bottoms.push_back(id);
    }
    if (instance.role == Role::Constant) {
      for (size_t i = 0; i < instance.writes.size(); ++i) {
        ORKNN_TRY_ASSIGN(TensorData value, dummy_value(build_, description, i));
        network.bind(instance.writes[i], network.graph.add_constant(instance.writes[i], std::move(value)), description.name);
      }
      return {};
    }
    Layer layer(build_, description, std::move(bottoms));
    warn_of_unknown_fields(layer, description.fields);
    const auto tops = (*table().find(description.type))(layer);
    if (!layer.problem()) return layer.problem();
    if (!tops) return tops.status();
    if (tops->size() > instance.writes.size())
      return invalid_model("the layer has too few tops")
          .expected("at least " + std::to_string(tops->size()))
          .found(std::to_string(instance.writes.size()));
    if (tops->size() < instance.writes.size())
      return invalid_model("the layer has too many tops")
          .expected("at most " + std::to_string(tops->size()))
          .found(std::to_string(instance.writes.size()));
    for (size_t i = 0; i < tops->size(); ++i) {
      const TensorId top = (*tops)[i];
      if (!layer.shape_of(top)) ORKNN_TRY(infer_shapes(network.graph, network.ops));  // a shape rule said no
      if (const auto dims = layer.dims_of(top)) ORKNN_TRY(checked_element_count(*dims).status());
      network.bind(instance.writes[i], top, description.name);
    }
    return {};
  }

  const NetDescription& net_;
  const ImportOptions& options_;
  Build build_;
  std::vector<Instance> instances_;
  std::vector<Port> ports_;
  std::unordered_map<std::string, const LayerDescription*> port_layers_;  // which layer describes an input, if one does
  std::vector<LayerNames> names_;
  bool has_open_inputs_ = false;
};

Result<Imported> load(const Source& source, const ImportOptions& options, const OpSet& ops) {
  ORKNN_TRY_ASSIGN(const NetDescription net, parse_net(source.bytes));
  Loader loader(net, options, ops);
  Imported result;
  result.source.framework = "caffe";
  // A description may carry weights of its own.
  ORKNN_TRY_ASSIGN(loader.build().weights, parse_weights(source.bytes, source.keeper));
  loader.build().has_weights = !loader.build().weights.empty();
  if (!source.other_files.empty() && !source.other_files[0].empty()) {
    const std::string& path = source.other_files[0];
    ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
    if (looks_like_text(file->bytes()) && !looks_like_text(source.bytes) && looks_like_net(file->bytes()))
      return invalid_argument("the weights file is the description of a network")
          .found("'" + path + "'")
          .hint("are the two files swapped? The .prototxt comes first, the .caffemodel second");
    auto weights = parse_weights(file->bytes(), file);
    if (!weights) return Status(weights.status()).model(path);
    if (weights->empty() && !file->bytes().empty()) result.source.warnings.push_back("the weights file holds no blobs");
    weights->merge(loader.build().weights);  // the file's count where both have some
    loader.build().weights = std::move(*weights);
    loader.build().has_weights = true;
  }
  ORKNN_TRY_ASSIGN(result.graph, loader.load());
  result.graph.name = net.name;
  auto& warnings = result.source.warnings;
  warnings.insert(warnings.end(), loader.build().network.warnings.begin(), loader.build().network.warnings.end());
  if (loader.build().has_random) warnings.push_back(std::string(kRandomWeights));
  result.source.has_open_inputs = loader.has_open_inputs();
  return result;
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const NetDescription net, parse_net(source.bytes));
  Survey result;
  for (const LayerDescription& layer : net.layers) {
    ++result.operators[layer.type];
    for (size_t i = 0; layer.type == "Input" && i < layer.tops.size(); ++i) {
      Status ignored;
      result.inputs.push_back(
          {layer.tops[i], DType::Float32, shape_from(shape_in({layer.parameters("input_param"), ignored}, i))});
    }
  }
  for (const InputDescription& input : net.inputs) result.inputs.push_back({input.name, DType::Float32, shape_from(input.shape)});
  std::unordered_set<std::string_view> read;
  for (auto layer = net.layers.rbegin(); layer != net.layers.rend(); ++layer) {
    for (const std::string& top : layer->tops)
      if (layer->type != "Input" && read.insert(top).second)
        result.outputs.insert(result.outputs.begin(), {.name = top, .dtype = DType::Float32});
    read.insert(layer->bottoms.begin(), layer->bottoms.end());
  }
  return result;
}
}  // namespace
}  // namespace caffe

const Importer& caffe_importer() {
  static const Importer importer{.name = "caffe",
                                 .extensions = {".prototxt", ".caffemodel"},
                                 .sniff = caffe::looks_like_net,
                                 .load = caffe::load,
                                 .survey = caffe::survey,
                                 .weights_extension = ".caffemodel"};
  return importer;
}

}  // namespace orknn::importer
