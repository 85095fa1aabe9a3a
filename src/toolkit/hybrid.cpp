// Hybrid quantization in two steps. Between them the user edits a text; the files carry everything that step 2 needs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "format/rknn_file.h"
#include "quantize/adaptive_rounding.h"
#include "quantize/parameters.h"
#include "toolkit/auto_hybrid.h"
#include "toolkit/builder.h"
#include "toolkit/hybrid_file.h"

namespace orknn::toolkit {
namespace {
using namespace ir;
using nlohmann::ordered_json;

constexpr int kDataVersion = 2;

ordered_json to_json(const BuildConfig& c) {
  ordered_json j{{"target_platform", c.target_platform},
                 {"quantized_dtype", c.quantized_dtype},
                 {"quantized_algorithm", c.quantized_algorithm},
                 {"quantized_method", c.quantized_method},
                 {"quant_img_RGB2BGR", c.quant_img_RGB2BGR},
                 {"float_dtype", c.float_dtype},
                 {"optimization_level", c.optimization_level},
                 {"custom_string", c.custom_string},
                 {"op_target", c.op_target},
                 {"disable_rules", c.disable_rules},
                 {"single_core_mode", c.single_core_mode},
                 {"auto_hybrid_cos_thresh", c.auto_hybrid_cos_thresh},
                 {"rknn_batch_size", c.rknn_batch_size}};
  if (c.auto_hybrid_euc_thresh) j["auto_hybrid_euc_thresh"] = *c.auto_hybrid_euc_thresh;
  return j;
}

// Fields of a file that may have been damaged: a field of the wrong type is as if it were not there.
template <class T>
T field(const ordered_json& j, const char* name, T otherwise) {
  const auto it = j.is_object() ? j.find(name) : j.end();
  if (!j.is_object() || it == j.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>)
    return it->is_string() ? it->template get<T>() : otherwise;
  else if constexpr (std::is_same_v<T, bool>)
    return it->is_boolean() ? it->template get<T>() : otherwise;
  else
    return it->is_number() ? it->template get<T>() : otherwise;
}

template <class T>
std::vector<T> list_field(const ordered_json& j, const char* name) {
  std::vector<T> list;
  if (!j.is_object() || !j.contains(name) || !j[name].is_array()) return list;
  for (const ordered_json& v : j[name])
    if constexpr (std::is_same_v<T, std::string>) {
      if (v.is_string()) list.push_back(v.get<T>());
    } else if constexpr (std::is_same_v<T, bool>) {
      if (v.is_boolean()) list.push_back(v.get<T>());
    } else {
      if (v.is_number()) list.push_back(v.get<T>());
    }
  return list;
}

BuildConfig config_from(const ordered_json& j) {
  BuildConfig c;
  c.target_platform = field(j, "target_platform", c.target_platform);
  c.quantized_dtype = field(j, "quantized_dtype", c.quantized_dtype);
  c.quantized_algorithm = field(j, "quantized_algorithm", c.quantized_algorithm);
  c.quantized_method = field(j, "quantized_method", c.quantized_method);
  c.quant_img_RGB2BGR = list_field<bool>(j, "quant_img_RGB2BGR");
  c.rknn_batch_size = std::max<int64_t>(field(j, "rknn_batch_size", c.rknn_batch_size), 1);
  c.float_dtype = field(j, "float_dtype", c.float_dtype);
  c.optimization_level = field(j, "optimization_level", c.optimization_level);
  c.custom_string = field(j, "custom_string", c.custom_string);
  c.disable_rules = list_field<std::string>(j, "disable_rules");
  c.single_core_mode = field(j, "single_core_mode", false);
  c.auto_hybrid_cos_thresh = field(j, "auto_hybrid_cos_thresh", c.auto_hybrid_cos_thresh);
  if (const double euclid = field(j, "auto_hybrid_euc_thresh", -1.0); euclid > 0) c.auto_hybrid_euc_thresh = euclid;
  if (j.is_object() && j.contains("op_target") && j["op_target"].is_object())
    for (const auto& [name, where] : j["op_target"].items())
      if (where.is_string()) c.op_target[name] = where.get<std::string>();
  return c;
}

TensorParameters parameters_of(const Tensor& t) {
  TensorParameters p;
  p.dtype = dtype_name(t.dtype);
  if (t.is_constant()) p.part = t.dtype == DType::Int32 ? "bias" : "weight";
  if (t.quant->fixed_point) p.qtype = "dynamic_fixed_point";
  p.qmethod = t.quant->axis >= 0 ? "channel" : "layer";
  p.scale.assign(t.quant->scale.begin(), t.quant->scale.end());
  p.zero_point.assign(t.quant->zero_point.begin(), t.quant->zero_point.end());
  p.zero_point.resize(p.scale.size(), 0);
  p.min.assign(t.quant->min.begin(), t.quant->min.end());
  p.max.assign(t.quant->max.begin(), t.quant->max.end());
  if (p.min.size() != p.scale.size() || p.max.size() != p.scale.size()) {
    const double bits = static_cast<double>(dtype_bytes(t.dtype)) * 8, first = is_signed_int(t.dtype) ? -std::exp2(bits - 1) : 0;
    p.min.clear();
    p.max.clear();
    for (size_t i = 0; i < p.scale.size(); ++i) {
      p.min.push_back((first - static_cast<double>(p.zero_point[i])) * p.scale[i]);
      p.max.push_back((first + std::exp2(bits) - 1 - static_cast<double>(p.zero_point[i])) * p.scale[i]);
    }
  }
  return p;
}

// Every quantized tensor, in execution order: inputs and weights under the names the user knows.
HybridFile parameters_of(const Graph& integers) {
  HybridFile file;
  std::set<std::string> listed;
  const auto add = [&](TensorId t) {
    if (!t || !integers.tensor(t).quant || !is_integer(integers.tensor(t).dtype)) return;
    const Tensor& tensor = integers.tensor(t);
    std::string name = tensor.name;
    const std::string suffix = "_" + std::string(dtype_name(tensor.dtype));
    if (tensor.is_constant() && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    if (integers.is_input(t)) name += suffix;
    if (listed.insert(name).second) file.parameters.emplace_back(name, parameters_of(tensor));
  };
  for (TensorId t : integers.inputs()) add(t);
  for (NodeId id : integers.order()) {
    for (TensorId t : integers.node(id).inputs)
      if (t && integers.is_constant(t)) add(t);
    for (TensorId t : integers.node(id).outputs) add(t);
  }
  return file;
}

// --- what step 2 needs from the samples, in the .data file
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

// Means of what convolutions read, for the correction of their biases.
ordered_json means_of(const Graph& graph, const quantize::TensorStatistics& statistics) {
  ordered_json j = ordered_json::object();
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    const auto seen = n.op == "Conv" ? statistics.find(graph.tensor(n.input(0)).name) : statistics.end();
    if (seen == statistics.end()) continue;
    std::vector<double> means;
    for (const quantize::ChannelStatistics& c : seen->second.channels()) means.push_back(c.mean());
    j[seen->first] = means;
  }
  return j;
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
  auto layers = std::make_shared<quantize::RoundedLayers>();
  if (!j.is_object()) return nullptr;
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

// The range that a scale and a zero point span.
quantize::Range spanned(double scale, int64_t zero, quantize::Limits limits) {
  return {static_cast<double>(limits.low - zero) * scale, static_cast<double>(limits.high - zero) * scale};
}

// The format that a line of the file asks for; nothing = float.
Result<std::optional<quantize::NumberFormat>> layer_format(const platform::Platform& chip, const std::string& layer,
                                                           const std::string& type) {
  if (type == "float16" || type == "float32") return std::optional<quantize::NumberFormat>();
  const auto offers = [&](std::string_view name) {
    return std::find(chip.quantized_dtypes.begin(), chip.quantized_dtypes.end(), name) != chip.quantized_dtypes.end();
  };
  const std::vector<std::string> known = quantized_dtypes();
  const std::string name = type == "int8"      ? "w8a8"
                           : type != "int16"   ? type
                           : offers("w16a16i") ? "w16a16i"
                                               : "dynamic_fixed_point-i16";
  if (std::find(known.begin(), known.end(), name) == known.end())
    return invalid_argument(fmt::format("Invalid type '{}' of '{}' in custom_quantize_layers!", type, layer))
        .expected("float16, int16 or int8");
  const auto format = number_format(chip, name);
  if (!format || is_float(format->activations))
    return invalid_argument(fmt::format("'{}': {} has no layers in {}", layer, chip.name, type)).hint("use float16");
  return std::optional(*format);
}

// The outputs of every node on a way from one tensor to another.
Result<std::vector<std::string>> between(const Graph& graph, const std::string& from, const std::string& to) {
  const TensorId first = graph.find_tensor(from), last = graph.find_tensor(to);
  for (const auto& [name, id] : {std::pair(from, first), std::pair(to, last)})
    if (!id)
      return invalid_argument(fmt::format("custom_hybrid names '{}', which is no tensor of the model", name))
          .hint("names are those of the .model file");
  std::vector<char> reached(graph.tensor_count(), 0), wanted(graph.tensor_count(), 0);
  const auto mark = [](std::vector<char>& marks, TensorId t) { marks[static_cast<size_t>(t.index)] = 1; };
  const auto any = [](const std::vector<char>& marks, const std::vector<TensorId>& list) {
    return std::any_of(list.begin(), list.end(), [&](TensorId t) { return t && marks[static_cast<size_t>(t.index)]; });
  };
  mark(reached, first);
  mark(wanted, last);
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order)
    if (any(reached, graph.node(id).inputs))
      for (TensorId t : graph.node(id).outputs)
        if (t) mark(reached, t);
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    if (any(wanted, graph.node(*it).outputs))
      for (TensorId t : graph.node(*it).inputs)
        if (t) mark(wanted, t);
  std::vector<std::string> names;
  for (NodeId id : order) {
    const Node& n = graph.node(id);
    if (any(reached, n.inputs) && any(wanted, n.outputs) && n.output()) names.push_back(graph.tensor(n.output()).name);
  }
  if (names.empty())
    return invalid_argument(fmt::format("custom_hybrid: no layer lies between '{}' and '{}'", from, to))
        .hint("give the tensor nearer to the model's input first");
  return names;
}

std::string without_number(const std::string& name) {
  const size_t bar = name.rfind('_');
  return bar == name.npos || bar + 1 == name.size() || name.find_first_not_of("0123456789", bar + 1) != name.npos
             ? name
             : name.substr(0, bar);
}
}  // namespace

Result<std::vector<std::string>> Builder::hybrid_step1(const HybridRequest& request) {
  const auto problem = [&](Status s) { return s.model(model_name_).stage("hybrid_quantization_step1"); };
  if (!loaded_) return problem(invalid_argument("hybrid_quantization_step1 needs a loaded source model first"));
  if (from_files_)
    return problem(invalid_argument("the model comes from the files of step 1 already").hint("load the source model again"));
  if (request.dataset.empty())
    return problem(
        invalid_argument("quantization needs a dataset").hint("give hybrid_quantization_step1() a list of calibration files"));
  if (!other_shapes_.empty())
    return problem(unsupported("hybrid quantization keeps one set of shapes")
                       .found("several in dynamic_input")
                       .hint("use build(auto_hybrid=True), or give dynamic_input one set"));
  model_ = nullptr;
  Graph graph = graph_;
  if (Status s = optimize_graph(graph); !s) return problem(s);
  const Graph optimized = graph;

  reference_ = graph;
  float_layers_.clear();
  calibration_.reset();
  equalizes_ = true;
  hybrid_summary_.clear();
  auto_hybrid_ = request.proposal;
  hybrid_samples_ = std::max<size_t>(request.proposal_samples, 1);
  const Status quantized = quantize_graph(graph, request.dataset);
  hybrid_samples_ = kHybridSamples;
  if (!quantized) return problem(quantized);
  const LayerNames proposed = std::move(float_layers_);
  float_layers_.clear();
  if (!proposed.empty()) {  // the file lists the parameters of all layers, should the user take a proposal back
    auto_hybrid_ = false;
    graph = optimized;
    if (Status s = quantize_graph(graph, request.dataset); !s) return problem(s);
  }
  HybridFile file = parameters_of(graph);
  const std::string found = print(file, false);
  LayerNames listed;
  const std::string leaves_for =
      platform_->half_macs == 0 && platform_->conv_int16() ? "int16" : "float16";  // what the chip has beside int8
  const auto add_layer = [&](const std::string& name) {
    if (listed.insert(name).second) file.layers.emplace_back(name, leaves_for);
  };
  for (const auto& [from, to] : request.custom) {
    const bool split = !optimized.find_tensor(from) || !optimized.find_tensor(to);  // names of parts that only the quantizer sees
    auto names = between(split ? reference_ : optimized, from, to);
    if (!names) return problem(names.status());
    for (const std::string& name : *names) add_layer(name);
  }
  for (NodeId id : reference_.order()) {
    const TensorId t = reference_.node(id).output();
    if (t && proposed.contains(reference_.tensor(t).name)) add_layer(reference_.tensor(t).name);
  }

  // The float graph whose tensors the ranges belong to, in a form that viewers open.
  compile::CompileOptions compiling = compile_options();
  compiling.float_dtype = DType::Float32;
  compiling.warn = {};
  auto program = compile::compile(reference_, compiling);
  if (!program) return problem(program.status());
  format::Model stored;
  stored.name = model_name_;
  stored.target_platform = platform_->name;
  stored.source_framework = source_.framework;
  stored.float_dtype = "float32";
  stored.programs.push_back(std::move(*program));
  format::place_weights(stored);

  ordered_json data{{"openrknn_hybrid", kDataVersion},
                    {"name", model_name_},
                    {"framework", source_.framework},
                    {"dataset", std::filesystem::absolute(request.dataset).string()},
                    {"config", to_json(config_)}};
  for (const compile::Normalization& n : kept_normalization_) data["normalization"].push_back({{"mean", n.mean}, {"std", n.std}});
  data["quantization"] = found;
  if (calibration_) {
    data["means"] = means_of(reference_, calibration_->statistics);
    ORKNN_TRY_ASSIGN(const quantize::NumberFormat format, number_format(*platform_, config_.quantized_dtype));
    data["uneven"] = ordered_json::array();
    data["uncut"] = ordered_json::object();  // what ranges were before their outliers were cut
    for (const auto& [name, seen] : calibration_->statistics) {
      if (quantize::channels_lie_apart(seen, format.bits())) data["uneven"].push_back(name);
      if (quantize::cut_outliers(seen, format.bits())) data["uncut"][name] = {seen.min(), seen.max()};
    }
    if (calibration_->rounded) data["rounded"] = to_json(*calibration_->rounded);
  }

  const bool toolkit1 = platform_->generation == 1;
  const std::string stem = (std::filesystem::path(request.folder) / hybrid_name()).string();
  const std::vector<std::string> paths{stem + (toolkit1 ? ".json" : ".model"), stem + ".data", stem + ".quantization.cfg"};
  for (const std::string& path : paths)
    for (const std::string& source : source_files_) {
      std::error_code ignored;
      if (std::filesystem::equivalent(source, path, ignored))
        return problem(invalid_argument("'" + path + "' would overwrite the source model").hint("run step 1 in another folder"));
    }
  const auto save = [](const std::string& path, const std::string& text) {
    return write_file_atomically(path, [&](FileWriter& out) { return out.write(text); });
  };
  Status written = format::write_rknn(stored, paths[0]);
  if (written) written = save(paths[1], data.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  if (written) written = save(paths[2], print(file, toolkit1));
  if (!written) return problem(written);
  return paths;
}

// Toolkit1 calls the files of an ONNX model after its graph, letters and digits only.
std::string Builder::hybrid_name() const {
  if (platform_->generation != 1 || source_.framework != "onnx") return model_name_;
  std::string name;
  for (char c : graph_.name)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') name += c;
  return name.empty() ? model_name_ : name;
}

Result<Builder> Builder::hybrid_step2(const std::string& model, const std::string& data, const std::string& quantization,
                                      const std::string& dataset, Progress progress) {
  const auto problem = [&](Status s, const std::string& file) { return s.model(file).stage("hybrid_quantization_step2"); };
  const auto text_of = [](const std::string& path) -> Result<std::string> {
    ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
    return std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  };
  auto data_text = text_of(data);
  if (!data_text) return problem(data_text.status(), data);
  const ordered_json j = ordered_json::parse(*data_text, nullptr, false);
  if (!j.is_object() || field(j, "openrknn_hybrid", 0) != kDataVersion)
    return problem(invalid_model("this is no .data file of hybrid_quantization_step1").hint("run step 1 of this toolkit again"),
                   data);
  auto cfg_text = text_of(quantization);
  if (!cfg_text) return problem(cfg_text.status(), quantization);
  auto file = parse_hybrid_file(*cfg_text);
  if (!file) return problem(file.status(), quantization);
  auto stored = format::read_rknn(model);
  if (!stored) return problem(stored.status(), model);
  if (stored->programs.size() != 1) return problem(invalid_model("the model of step 1 holds one program"), model);

  auto made = create(config_from(j.contains("config") ? j["config"] : ordered_json()), std::move(progress));
  if (!made) return problem(made.status(), data);
  Builder& builder = *made;
  format::Program& program = stored->programs[0];
  builder.model_name_ = field(j, "name", stored->name);
  builder.source_.framework = field<std::string>(j, "framework", "");
  builder.source_files_ = {model};
  builder.graph_ = std::move(program.graph);
  for (const format::Port& port : program.inputs) builder.normalization_.push_back({port.mean, port.std});
  builder.loaded_ = true;

  FileParameters& given = builder.from_files_.emplace();
  given.rounded = j.contains("rounded") ? rounded_from(j["rounded"]) : nullptr;
  if (j.contains("means") && j["means"].is_object())
    for (const auto& [name, values] : j["means"].items())
      given.channel_means[name] = list_field<double>(j["means"], name.c_str());
  for (const std::string& name : list_field<std::string>(j, "uneven")) given.uneven_tensors.insert(name);
  ORKNN_TRY_ASSIGN(const quantize::NumberFormat format, number_format(builder.platform(), builder.config_.quantized_dtype));
  const Graph& graph = builder.graph_;
  Status problems;
  for (const auto& [name, type] : file->layers) {
    TensorId t = graph.find_tensor(name);
    if (!t) t = graph.find_tensor(without_number(name));
    if (!t || !graph.producer(t)) {
      problems.also(invalid_argument(fmt::format("Invalid operands name '{}' in custom_quantize_layers!", name))
                        .hint(t || file->find(name)
                                  ? "inputs, conversions and constants are not layers; give the output tensor of one"
                                  : "give the output tensor of a layer, as listed under quantize_parameters"));
      continue;
    }
    auto wanted = layer_format(builder.platform(), name, type);
    if (!wanted)
      problems.also(wanted.status());
    else if (!*wanted)
      given.float_layers.insert(graph.tensor(t).name);
    else if ((*wanted)->activations != format.activations || (*wanted)->power_of_two != format.power_of_two)
      given.formats[graph.tensor(t).name] = **wanted;
  }
  // What step 1 found, with the user's changes. The range counts; without a change of it the scale and the zero point do, when
  // those were changed.
  auto found = parse_hybrid_file(field<std::string>(j, "quantization", ""));
  if (!found) return problem(found.status(), data);
  for (const auto& [name, before] : found->parameters) {
    const TensorParameters* now = file->find(name);
    if (!now) now = &before;
    const std::string suffix = "_" + before.dtype;  // of a converted tensor
    const bool converted = !graph.find_tensor(name) && name.ends_with(suffix);
    const std::string tensor = converted ? name.substr(0, name.size() - suffix.size()) : name;
    const TensorId t = graph.find_tensor(tensor);
    const bool changed_range = now->min != before.min || now->max != before.max,
               changed_scale = now->scale != before.scale || now->zero_point != before.zero_point;
    if (!t || graph.is_constant(t) || before.min.size() != 1 || before.max.size() != 1) {
      if (changed_range || changed_scale)
        log(LogLevel::Warn, "hybrid_quantization_step2",
            fmt::format("The parameters of the weights '{}' follow from their values, the change has no effect!", name));
      continue;
    }
    quantize::Range range{before.min[0], before.max[0]};
    const auto own_format = given.formats.find(tensor);
    if (own_format != given.formats.end() && own_format->second.bits() > format.bits() && j.contains("uncut"))
      if (const auto full = list_field<double>(j["uncut"], tensor.c_str()); full.size() == 2)
        range = {std::min(full[0], 0.0), std::max(full[1], 0.0)};  // wider integers hold the outliers too
    if (changed_range && now->min.size() == 1 && now->max.size() == 1)
      range = {now->min[0], now->max[0]};
    else if (changed_scale && now->scale.size() == 1 && now->zero_point.size() == 1 && now->scale[0] > 0)
      range = spanned(now->scale[0], now->zero_point[0], quantize::limits_of(format.activations));
    else if (changed_range || changed_scale)
      range = {1, 0};
    if (!(range.low <= range.high) || !std::isfinite(range.low) || !std::isfinite(range.high)) {
      problems.also(invalid_argument(fmt::format("the range of '{}' is not valid", name))
                        .found(fmt::format("[{}, {}], scale [{}]", fmt::join(now->min, ", "), fmt::join(now->max, ", "),
                                           fmt::join(now->scale, ", "))));
      continue;
    }
    given.ranges[tensor] = range;
  }
  if (!problems) return problem(problems, quantization);
  const std::string list = dataset.empty() ? field<std::string>(j, "dataset", "") : dataset;
  if (Status s = builder.build(true, list); !s) return s;
  return made;
}

}  // namespace orknn::toolkit
