// Darknet networks: a .cfg that describes the layers and, if there is one, a .weights file with their numbers. Detection layers
// are not part of the model: its outputs are what they read, in their order.
#include <algorithm>

#include "import/darknet/layer.h"
#include "import/importer.h"
#include "import/lower/known_names.h"
#include "ir/infer.h"
#include "ops/eval.h"

namespace orknn::importer {
namespace darknet {
namespace {
using namespace ir;
constexpr int64_t kMaxExtent = int64_t{1} << 20;

const RowTable<Layer>& table() {
  static const RowTable<Layer> rows{elementwise_rows(), convolution_rows(), pooling_rows(),  normalization_rows(),
                                    shape_rows(),       recurrent_rows(),   detection_rows()};
  return rows;
}

// Options of layers that are read, and those that only matter for training or for the detections made of the outputs.
constexpr std::string_view kOptions[] = {
    "activation", "alpha", "antialiasing", "assisted_excitation", "atoms", "axis", "batch_normalize", "beta", "bin_output",
    "binary", "bottleneck", "cbn", "classes", "coords", "crop_height", "crop_width", "deform", "dilation", "dontload",
    "dontloadscales", "dontsave", "dropblock", "dropblock_size_abs", "dropblock_size_rel", "dropout", "dynamic_minibatch",
    "extra", "filters", "flatten", "flip", "flipped", "from", "grad_centr", "group_id", "groups", "hidden", "history_size",
    "inputs", "joint", "kappa", "keep_delta_gpu", "layers", "learning_rate_scale", "learning_scale", "logistic",
    "lstm_activation", "lr_mult", "mask", "maxpool_depth", "maxpool_zero_nonmax", "noadjust", "noloss", "normalization", "num",
    "onlyforward", "out_channels", "output", "pad", "padding", "peephole", "probability", "ratio", "receptive_field", "reverse",
    "rotate", "scale", "scale_wh", "share_index", "shortcut", "show", "shrink", "side", "size", "softmax", "spatial", "squared",
    "sqrt", "stopbackward", "stretch", "stretch_sway", "stride", "stride_x", "stride_y", "sway", "tanh", "temperature",
    "time_steps", "train_only_bn", "tree", "type", "use_bin_output", "wait_stream", "weights_normalization", "weights_type",
    "xnor",
    // detection and loss
    "absolute", "anchors", "angle", "background", "beta_nms", "bias_match", "class_scale", "cls_normalizer", "coord_scale",
    "counters_per_class", "delta_normalizer", "dets_for_show", "dets_for_track", "embedding_layer", "contrastive",
    "contrastive_color", "contrastive_jit_flip", "cls_smooth", "ema_alpha", "exposure", "focal_loss", "forced", "hue",
    "ignore_thresh", "iou_loss", "iou_normalizer", "iou_thresh", "iou_thresh_kind", "jitter", "label_smooth_eps", "map",
    "masked_scale", "max", "max_delta", "new_coords", "nms_kind", "noobject_scale", "obj_normalizer", "object_scale",
    "objectness_smooth", "random", "reorg", "rescore", "resize", "saturation", "scale_x_y", "sim_thresh", "thresh",
    "track_ciou_norm", "track_history_size", "truth_thresh", "uc_normalizer", "yolo_layer", "yolo_point", "cls_loss", "iou_point",
    "objectness", "max_boxes"};
constexpr std::string_view kNetOptions[] = {
    "batch", "channels", "height", "inputs", "width",
    // training
    "subdivisions", "time_steps", "track", "augment_speed", "init_sequential_subdivisions", "sequential_subdivisions",
    "try_fix_nan", "weights_reject_freq", "equidistant_point", "badlabels_rejection_percentage", "num_sigmas_reject_badlabels",
    "ema_alpha", "loss_scale", "dynamic_minibatch", "optimized_memory", "workspace_size_limit_MB", "adversarial_lr", "attention",
    "adversarial", "learning_rate", "learning_rate_min", "batches_per_cycle", "batches_cycle_mult", "sgdr_mult", "sgdr_cycle",
    "momentum", "decay", "max_crop", "min_crop", "flip", "blur", "gaussian_noise", "mixup", "cutmix", "mosaic", "mosaic_bound",
    "mosaic_scale", "contrastive", "contrastive_jit_flip", "contrastive_color", "unsupervised", "label_smooth_eps", "resize_step",
    "letter_box", "max_batches", "max_epochs", "angle", "aspect", "saturation", "exposure", "hue", "power", "policy", "burn_in",
    "step", "steps", "scale", "scales", "seq_scales", "gamma", "adam", "B1", "B2", "eps", "benchmark_layers", "notruth", "random",
    "center", "clip", "max_ratio", "min_ratio", "net", "stopbackward", "save_weights", "labels", "hierarchy", "classes"};

// A description for training states the batch of the training, one for use (without a learning rate or the like) its own.
bool is_for_training(const Section& net) {
  for (const char* key : {"subdivisions", "learning_rate", "momentum", "decay", "policy", "max_batches", "burn_in"})
    if (net.has(key)) return true;
  return false;
}

Result<Port> input_of(Layer& net) {
  const int64_t batch = is_for_training(net.section()) ? 1 : net.integer("batch", 1, 1, kMaxExtent);
  const int64_t height = net.integer("height", 0, 0, kMaxExtent), width = net.integer("width", 0, 0, kMaxExtent),
                channels = net.integer("channels", 0, 0, kMaxExtent), inputs = net.integer("inputs", 0, 0, int64_t{1} << 30);
  if (!net.problem()) return net.problem();
  const bool has_pictures = height && width && channels;
  if (!has_pictures && !inputs)
    return invalid_model("[net] does not state the size of the input").expected("height, width and channels, or inputs");
  const Dims dims = has_pictures ? Dims{batch, channels, height, width} : Dims{batch, inputs};
  ORKNN_TRY(checked_element_count(dims).status());
  return Port{.name = "data", .shape = to_shape(dims)};
}

// The one entry of each list that belongs to input `i`, or nothing.
ImportOptions entry(const ImportOptions& options, size_t i) {
  ImportOptions one;
  if (i < options.input_size_list.size()) one.input_size_list = {options.input_size_list[i]};
  if (i < options.input_initial_val.size()) one.input_initial_val = {options.input_initial_val[i]};
  return one;
}

std::string name_of(const Section& section, size_t index) { return "layer_" + std::to_string(index) + "_" + section.type; }

class Loader {
 public:
  Loader(const Description& description, const ImportOptions& options, const OpSet& ops)
      : description_(description), options_(options), build_(ops) {}
  Build& build() { return build_; }

  Result<Graph> load() {
    Layer net(build_, description_.net, "net", {});
    const auto stated = input_of(net);
    if (!stated) return Status(stated.status()).node("net, line " + std::to_string(description_.net.line), description_.net.type);
    const Port& port = *stated;
    warn_of_unknown_options(net, kNetOptions);
    std::vector<std::string> wanted = options_.inputs;
    if (wanted.empty()) wanted = {port.name};
    ORKNN_TRY(check_lengths(options_, wanted.size(), false));
    cuts_ = wanted;
    ORKNN_TRY_ASSIGN(TensorId current, begin_at(port, {}));
    for (const Section& section : description_.layers) {
      auto result = lower(section, current);
      if (!result) return with_unknown_sections(result.status(), section);
      current = *result;
    }
    ORKNN_TRY(order_inputs());
    auto graph = build_.network.finish(outputs(current));
    if (!graph && !ports_.contains(port.name))
      return Status(graph.status()).hint("do the outputs still depend on '" + port.name + "'? Then it must be among the inputs");
    return graph;
  }

 private:
  // The tensor `made` as it is, or an input of the model when the user wants it to begin there.
  Result<TensorId> begin_at(Port port, TensorId made) {
    const auto it = std::find(cuts_.begin(), cuts_.end(), port.name);
    const bool is_cut = it != cuts_.end();
    if (!is_cut && made) return made;
    if (is_cut) {
      std::vector<Port> one{port};
      ORKNN_TRY(apply_sizes(one, entry(options_, static_cast<size_t>(it - cuts_.begin()))).status());
      port = one[0];
      ports_.insert(port.name);
    }
    if (made) build_.network.graph.rename_tensor(made, port.name + "/before");
    build_.network.add_input(port);
    return build_.network.find(port.name);
  }

  // Problems end the import: the numbers of later layers could not be found in the file. Sections of unknown type are
  // reported all the same.
  Status with_unknown_sections(const Status& problem, const Section& section) const {
    Problems problems;
    problems.add(problem);
    for (const Section* s = &section + 1; s != description_.layers.data() + description_.layers.size(); ++s)
      if (!table().find(s->type)) problems.add(unknown_section(*s, static_cast<size_t>(s - description_.layers.data())));
    return problems.status();
  }
  static Status unknown_section(const Section& section, size_t index) {
    return unsupported("section [" + section.type.substr(0, 40) + "] is not known")
        .node(name_of(section, index) + ", line " + std::to_string(section.line), section.type);
  }
  static void warn_of_unknown_options(Layer& layer, std::span<const std::string_view> known) {
    std::vector<std::string_view> keys;
    for (const auto& option : layer.section().options) keys.push_back(option.first);
    std::sort(keys.begin(), keys.end());
    for (std::string_view key : keys)
      if (auto warning = unknown_name("option", key, known)) layer.warn(*std::move(warning));
  }

  Result<TensorId> lower(const Section& section, TensorId previous) {
    const std::string name = name_of(section, build_.results.size());
    Layer layer(build_, section, name, previous);
    const auto problem = [&](Status s) { return s.node(name + ", line " + std::to_string(section.line), section.type); };
    const Row* row = table().find(section.type);
    if (!row) return unknown_section(section, build_.results.size());
    warn_of_unknown_options(layer, kOptions);
    const auto lowered = (*row)(layer);
    if (!layer.problem()) return problem(layer.problem());
    if (!lowered) return problem(lowered.status());
    TensorId result = lowered->front();
    const auto dims = layer.dims_of(result);
    if (!dims) {  // a shape rule said no
      if (Status s = infer_shapes(build_.network.graph, build_.network.ops); !s) return s;
      return problem(internal_error("the shape of the result is not known"));
    }
    if (auto count = checked_element_count(*dims); !count) return problem(count.status());
    const bool is_new = std::find(build_.results.begin(), build_.results.end(), result) == build_.results.end() &&
                        !build_.network.graph.is_input(result);
    if (is_new) build_.network.bind(name, result, name);
    names_[name] = result;
    Port port{.name = name, .dtype = DType::Float32, .shape = *layer.shape_of(result)};
    ORKNN_TRY_ASSIGN(result, begin_at(std::move(port), result));
    names_[name] = result;
    build_.results.push_back(result);
    return result;
  }

  // Inputs stand in the order the user gave; the input of the description goes when the model begins elsewhere.
  Status order_inputs() {
    auto& inputs = build_.network.graph.inputs();
    std::vector<TensorId> ordered;
    for (const std::string& name : cuts_) {
      if (!ports_.contains(name)) return no_such_tensor(name, "inputs", cuts_, ports_);
      if (const TensorId id = build_.network.find(name); build_.network.graph.is_input(id)) ordered.push_back(id);
    }
    inputs = std::move(ordered);
    return {};
  }

  std::vector<std::string> layer_names() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : names_) names.push_back(name);
    return names;
  }

  std::vector<std::string> outputs(TensorId last) {
    Network& network = build_.network;
    std::vector<std::string> names;
    if (!options_.outputs.empty()) {
      for (const std::string& name : options_.outputs) {
        if (const auto it = names_.find(name); it != names_.end() && !network.find(name)) network.bind(name, it->second, name);
        if (!network.find(name)) network.report(no_such_tensor(name, "outputs", options_.outputs, layer_names()));
        names.push_back(name);
      }
      return names;
    }
    if (build_.heads.empty()) build_.heads = {last};
    for (const TensorId head : build_.heads) names.push_back(network.graph.tensor(head).name);
    return names;
  }

  const Description& description_;
  const ImportOptions& options_;
  Build build_;
  std::vector<std::string> cuts_;
  std::unordered_set<std::string> ports_;
  std::unordered_map<std::string, TensorId> names_;
};

Result<Imported> load(const Source& source, const ImportOptions& options, const OpSet& ops) {
  ORKNN_TRY_ASSIGN(const Description description, parse_description(source.bytes));
  Loader loader(description, options, ops);
  Imported result;
  result.source.framework = "darknet";
  if (!source.other_files.empty() && !source.other_files[0].empty()) {
    ORKNN_TRY_ASSIGN(loader.build().weights, Weights::open(source.other_files[0]));
  } else {
    result.source.warnings.push_back(std::string(kRandomWeights));
  }
  ORKNN_TRY_ASSIGN(result.graph, loader.load());
  auto& warnings = result.source.warnings;
  warnings.insert(warnings.end(), description.warnings.begin(), description.warnings.end());
  warnings.insert(warnings.end(), loader.build().network.warnings.begin(), loader.build().network.warnings.end());
  if (const std::string& layer = loader.build().weights.first_not_finite(); !layer.empty())
    warnings.push_back("the weights of '" + layer +
                       "' hold values that are not finite; is the file damaged, or did the training diverge?");
  if (const size_t bytes = loader.build().weights.odd_bytes())
    warnings.push_back("the weights file ends with " + std::to_string(bytes) + " bytes that are not a whole value; was it cut?");
  if (const size_t rest = loader.build().weights.rest())
    warnings.push_back("the weights file holds " + std::to_string(rest) +
                       " values more than the network has; do they belong together?");
  if (loader.build().has_state) warnings.push_back("recurrent layers begin every run with an empty state");
  return result;
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const Description description, parse_description(source.bytes));
  Survey result;
  for (const Section& section : description.layers) ++result.operators[section.type];
  Build build(ops::builtin_ops());
  Layer net(build, description.net, "net", {});
  const auto port = input_of(net);
  result.inputs = {{"data", DType::Float32, port ? port->shape : std::nullopt}};
  const RowTable<Layer> detections{detection_rows()};
  for (size_t i = 1; i < description.layers.size(); ++i)
    if (detections.find(description.layers[i].type))
      result.outputs.push_back({name_of(description.layers[i - 1], i - 1), DType::Float32});
  if (result.outputs.empty())
    result.outputs.push_back({name_of(description.layers.back(), description.layers.size() - 1), DType::Float32});
  return result;
}
}  // namespace
}  // namespace darknet

const Importer& darknet_importer() {
  static const Importer importer{.name = "darknet",
                                 .extensions = {".cfg"},
                                 .sniff = darknet::looks_like_description,
                                 .load = darknet::load,
                                 .survey = darknet::survey,
                                 .weights_extension = ".weights"};
  return importer;
}

}  // namespace orknn::importer
