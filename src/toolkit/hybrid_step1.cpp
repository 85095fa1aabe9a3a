#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/folders.h"
#include "format/rknn_file.h"
#include "ops/facts.h"
#include "quantize/parameters.h"
#include "toolkit/hybrid.h"
#include "toolkit/hybrid_data.h"
#include "toolkit/hybrid_file.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

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

// The outputs of every node on a way from one tensor to another.
Result<std::vector<std::string>> between(const Graph& graph, const std::string& from, const std::string& to) {
  const TensorId first = graph.find_tensor(from), last = graph.find_tensor(to);
  for (const auto& [name, id] : {std::pair(from, first), std::pair(to, last)})
    if (!id)
      return invalid_argument(fmt::format("custom_hybrid names '{}', which is not a tensor of the model", name))
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
    return invalid_argument(fmt::format("custom_hybrid: there is no layer between '{}' and '{}'", from, to))
        .hint("give the tensor nearer to the model's input first");
  return names;
}

Status check_step1(const Imported& imported, const HybridRequest& request) {
  if (imported.stored)
    return invalid_argument("the model comes from the files of step 1 already").hint("load the source model again");
  if (request.dataset.empty())
    return invalid_argument("quantization needs a dataset").hint("give hybrid_quantization_step1() a list of calibration files");
  if (request.proposal_samples < 1)
    return invalid_argument(
        fmt::format("Invalid proposal_dataset_size {}, expect a number of samples!", request.proposal_samples));
  if (!imported.network.other_shapes.empty())
    return unsupported("hybrid quantization supports one set of shapes only")
        .found("several in dynamic_input")
        .hint("use build(auto_hybrid=True), or give dynamic_input one set");
  return require_float_source(imported);
}

struct Proposal {
  LayerNames layers;
  bool in_int16 = false;  // else in float16
};

// The quantized model with all layers in integers: the file lists the parameters of every layer, should the user take a proposal
// back. `proposed`: layers that auto_hybrid would leave in float or compute in 16-bit integers.
Result<Quantized> quantize_all_layers(const BuildOptions& options, const Optimized& optimized, const HybridRequest& request,
                                      Proposal& proposed) {
  ORKNN_TRY_ASSIGN(const quantize::NumberFormat format, number_format(*options.chip, options.config.quantized_dtype));
  if (is_float(format.activations)) return round_weights(options, optimized, request.dataset);
  ORKNN_TRY_ASSIGN(Calibrated calibrated, calibrate_model(options, optimized,
                                                          {.dataset = request.dataset,
                                                           .auto_hybrid = request.proposal,
                                                           .trial_samples = static_cast<size_t>(request.proposal_samples)}));
  proposed.layers = std::exchange(calibrated.float_layers, {});
  proposed.in_int16 = !calibrated.choices.formats.empty();
  for (const auto& [name, format_of_layer] : std::exchange(calibrated.choices.formats, {})) proposed.layers.insert(name);
  calibrated.all_float = false;
  return lower_to_integers(std::move(calibrated));
}

// Layers that leave int8, in the order of the file: those the user names by their ends, then the proposed ones.
Result<std::vector<std::string>> layers_to_change(const Graph& optimized, const Graph& reference, const HybridRequest& request,
                                                  const LayerNames& proposed) {
  std::vector<std::string> layers;
  for (const auto& [from, to] : request.custom) {
    ORKNN_TRY_ASSIGN(std::vector<std::string> names, between(optimized, from, to));
    layers.insert(layers.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
  }
  for (NodeId id : reference.order()) {
    const TensorId t = reference.node(id).output();
    if (t && proposed.contains(reference.tensor(t).name)) layers.push_back(reference.tensor(t).name);
  }
  LayerNames listed;
  std::erase_if(layers, [&](const std::string& name) { return !listed.insert(name).second; });
  return layers;
}

// The float graph whose tensors the ranges belong to, in a form that viewers open.
Result<format::Model> float_model(const BuildOptions& options, const Quantized& quantized) {
  compile::CompileOptions compiling = compile_options(options, quantized.normalization);
  compiling.float_dtype = DType::Float32;
  compiling.warn = {};
  ORKNN_TRY_ASSIGN(format::Program program, compile::compile(quantized.reference, compiling));
  format::Model model;
  model.name = quantized.name;
  model.target_platform = options.chip->name;
  model.source_framework = quantized.framework;
  model.float_dtype = "float32";
  model.programs.push_back(std::move(program));
  format::place_weights(model);
  return model;
}

// Means of what convolutions read, for the correction of their biases.
std::map<std::string, std::vector<double>, std::less<>> means_of(const Graph& graph,
                                                                 const quantize::TensorStatistics& statistics) {
  std::map<std::string, std::vector<double>, std::less<>> result;
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    const auto seen =
        ops::facts_of(n).weights == Weights::OutIn ? statistics.find(graph.tensor(n.input(0)).name) : statistics.end();
    if (seen == statistics.end()) continue;
    std::vector<double>& means = result[seen->first];
    means.clear();
    for (const quantize::ChannelStatistics& c : seen->second.channels()) means.push_back(c.mean());
  }
  return result;
}

Result<HybridData> data_of(const BuildOptions& options, const Quantized& quantized, const HybridRequest& request,
                           HybridFile found) {
  HybridData data;
  data.name = quantized.name;
  data.framework = quantized.framework;
  data.dataset = std::filesystem::absolute(request.dataset).string();
  data.config = options.config;
  for (const StepGain& g : quantized.step_gains)  // step 2 has no samples to find that out again
    if (!g.kept && std::ranges::count(quantize::steps(), g.step, &quantize::Step::name) > 0)
      data.config.disable_rules.push_back(g.step);
  data.found = std::move(found);
  if (!quantized.calibration) return data;
  const quantize::TensorStatistics& statistics = quantized.calibration->statistics;
  ORKNN_TRY_ASSIGN(const quantize::NumberFormat format, number_format(*options.chip, options.config.quantized_dtype));
  data.channel_means = means_of(quantized.reference, statistics);
  for (const auto& [name, seen] : statistics) {
    if (quantize::channels_lie_apart(seen, format.bits())) data.uneven_tensors.insert(name);
    if (quantized.calibration->cuts.contains(name)) data.uncut[name] = {seen.min(), seen.max()};
  }
  data.rounded = quantized.calibration->rounded;
  return data;
}

// Toolkit1 calls the files of an ONNX model after its graph, letters and digits only.
std::string stem_of(const BuildOptions& options, const Imported& imported) {
  if (!options.is_toolkit1() || imported.framework != "onnx") return imported.name;
  std::string name;
  for (char c : imported.network.graph.name)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') name += c;
  return name.empty() ? imported.name : name;
}

Status check_overwriting(const std::vector<std::string>& written, const std::vector<std::string>& read) {
  for (const std::string& path : written)
    for (const std::string& source : read) {
      std::error_code ignored;
      if (std::filesystem::equivalent(source, path, ignored))
        return invalid_argument("'" + path + "' would overwrite the source model").hint("run step 1 in another folder");
    }
  return {};
}

Result<HybridStep1> write_step1(const BuildOptions& options, const Imported& imported, const HybridRequest& request) {
  ORKNN_TRY(check_step1(imported, request));
  ORKNN_TRY_ASSIGN(const Optimized optimized, optimize_model(options, imported, quantized_numbers(options)));
  ORKNN_TRY(report_optimization(options, imported, optimized));
  Proposal proposed;
  ORKNN_TRY_ASSIGN(const Quantized quantized, quantize_all_layers(options, optimized, request, proposed));
  HybridFile file = parameters_of(quantized.network.graph);
  ORKNN_TRY_ASSIGN(const HybridData data, data_of(options, quantized, request, file));
  // What the chip has beside int8.
  const bool only_int16 = !options.chip->conv_half && options.chip->conv_int16();
  const std::string other_type = proposed.in_int16 || only_int16 ? "int16" : "float16";
  ORKNN_TRY_ASSIGN(const std::vector<std::string> layers,
                   layers_to_change(optimized.network.graph, quantized.reference, request, proposed.layers));
  for (const std::string& name : layers) file.layers.emplace_back(name, other_type);
  ORKNN_TRY_ASSIGN(const format::Model model, float_model(options, quantized));

  const bool toolkit1 = options.is_toolkit1();
  const std::string stem = (std::filesystem::path(request.folder) / stem_of(options, imported)).string();
  const std::vector<std::string> paths{stem + (toolkit1 ? ".json" : ".model"), stem + ".data", stem + ".quantization.cfg"};
  ORKNN_TRY(check_overwriting(paths, imported.files));
  ORKNN_TRY(make_folder(request.folder));
  const auto save = [](const std::string& path, const std::string& text) {
    return write_file_atomically(path, [&](FileWriter& out) { return out.write(text); });
  };
  ORKNN_TRY(format::write_rknn(model, paths[0]));
  ORKNN_TRY(save(paths[1], print(data)));
  ORKNN_TRY(save(paths[2], print(file, toolkit1)));
  return HybridStep1{paths, quantized.hybrid_summary};
}
}  // namespace

Result<HybridStep1> hybrid_step1(const BuildOptions& options, const Imported& imported, const HybridRequest& request) {
  auto written = write_step1(options, imported, request);
  if (!written) return Status(written.status()).model(imported.name).stage("hybrid_quantization_step1");
  return written;
}

}  // namespace orknn::toolkit
