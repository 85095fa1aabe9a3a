#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/log.h"
#include "format/rknn_file.h"
#include "toolkit/hybrid.h"
#include "toolkit/hybrid_data.h"
#include "toolkit/hybrid_file.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

Result<std::string> text_of(const std::string& path) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
  return std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
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

std::string without_number(const std::string& name) {
  const size_t bar = name.rfind('_');
  return bar == name.npos || bar + 1 == name.size() || name.find_first_not_of("0123456789", bar + 1) != name.npos
             ? name
             : name.substr(0, bar);
}

// The layers of custom_quantize_layers.
Status take_layers(const HybridFile& file, const HybridData& data, const Graph& graph, const platform::Platform& chip,
                   const quantize::NumberFormat& format, StoredCalibration& stored) {
  Status problems;
  for (const auto& [name, type] : file.layers) {
    TensorId t = graph.find_tensor(name);
    if (!t) t = graph.find_tensor(without_number(name));
    if (!t || !graph.producer(t)) {
      if (file.lists_what_was_found && data.found.find(name)) continue;  // what reads it decides
      problems.also(invalid_argument(fmt::format("Invalid operands name '{}' in custom_quantize_layers!", name))
                        .hint(t || file.find(name)
                                  ? "inputs, conversions and constants are not layers; give the output tensor of one"
                                  : "give the output tensor of a layer, as listed under quantize_parameters"));
      continue;
    }
    const auto wanted = layer_format(chip, name, type);
    if (!wanted)
      problems.also(wanted.status());
    else if (!*wanted)
      stored.float_layers.insert(graph.tensor(t).name);
    else if ((*wanted)->activations != format.activations || (*wanted)->power_of_two != format.power_of_two)
      stored.formats[graph.tensor(t).name] = **wanted;
  }
  return problems;
}

// The range that a scale and a zero point span.
quantize::Range spanned(double scale, int64_t zero, quantize::Limits limits) {
  return {static_cast<double>(limits.low - zero) * scale, static_cast<double>(limits.high - zero) * scale};
}

bool has_other_range(const TensorParameters& now, const TensorParameters& before) {
  return now.min != before.min || now.max != before.max;
}
bool has_other_scale(const TensorParameters& now, const TensorParameters& before) {
  return now.scale != before.scale || now.zero_point != before.zero_point;
}

// The range counts; where only the scale or the zero point was changed, those do. An invalid change gives an invalid range.
quantize::Range range_of(const TensorParameters& now, const TensorParameters& before, quantize::Range unchanged,
                         const quantize::NumberFormat& format) {
  const bool changed_range = has_other_range(now, before), changed_scale = has_other_scale(now, before);
  if (changed_range && now.min.size() == 1 && now.max.size() == 1) return {now.min[0], now.max[0]};
  if (changed_scale && now.scale.size() == 1 && now.zero_point.size() == 1 && now.scale[0] > 0)
    return spanned(now.scale[0], now.zero_point[0], quantize::limits_of(format.activations));
  if (changed_range || changed_scale) return {1, 0};
  return unchanged;
}

// What step 1 found, with the user's changes.
Status take_ranges(const HybridFile& file, const HybridData& data, const Graph& graph, const quantize::NumberFormat& format,
                   StoredCalibration& stored) {
  Status problems;
  for (const auto& [name, before] : data.found.parameters) {
    const TensorParameters* edited = file.find(name);
    const TensorParameters& now = edited ? *edited : before;
    const std::string suffix = "_" + before.dtype;  // of a converted tensor
    const bool converted = !graph.find_tensor(name) && name.ends_with(suffix);
    const std::string tensor = converted ? name.substr(0, name.size() - suffix.size()) : name;
    const TensorId t = graph.find_tensor(tensor);
    if (!t || graph.is_constant(t) || before.min.size() != 1 || before.max.size() != 1) {
      if (has_other_range(now, before) || has_other_scale(now, before))
        log(LogLevel::Warn, "hybrid_quantization_step2",
            fmt::format("The parameters of the weights '{}' follow from their values, the change has no effect!", name));
      continue;
    }
    quantize::Range found{before.min[0], before.max[0]};
    const auto own_format = stored.formats.find(tensor);
    const auto uncut = data.uncut.find(tensor);
    if (own_format != stored.formats.end() && own_format->second.bits() > format.bits() && uncut != data.uncut.end())
      found = {std::min(uncut->second.low, 0.0), std::max(uncut->second.high, 0.0)};  // wider integers hold the outliers too
    const quantize::Range range = range_of(now, before, found, format);
    if (!(range.low <= range.high) || !std::isfinite(range.low) || !std::isfinite(range.high)) {
      problems.also(invalid_argument(fmt::format("the range of '{}' is not valid", name))
                        .found(fmt::format("[{}, {}], scale [{}]", fmt::join(now.min, ", "), fmt::join(now.max, ", "),
                                           fmt::join(now.scale, ", "))));
      continue;
    }
    stored.ranges[tensor] = range;
  }
  return problems;
}

Result<Imported> imported_from(const HybridFiles& files, const HybridData& data) {
  ORKNN_TRY_ASSIGN(format::Model stored, format::read_rknn(files.model));
  if (stored.programs.size() != 1) return invalid_model("the model of step 1 holds one program");
  format::Program& program = stored.programs[0];
  Imported imported;
  imported.name = data.name.empty() ? stored.name : data.name;
  imported.framework = data.framework;
  imported.files = {files.model};
  imported.network.graph = std::move(program.graph);
  for (const format::Port& port : program.inputs) imported.normalization.push_back({port.mean, port.std});
  return imported;
}
}  // namespace

Result<HybridStep2> read_hybrid_files(const HybridFiles& files, Progress progress,
                                      std::shared_ptr<const ops::CustomOps> custom_ops) {
  const auto problem = [](Status s, const std::string& file) { return s.model(file).stage("hybrid_quantization_step2"); };
  const auto data_text = text_of(files.data);
  if (!data_text) return problem(data_text.status(), files.data);
  auto data = parse_hybrid_data(*data_text);
  if (!data) return problem(data.status(), files.data);
  const auto file_text = text_of(files.quantization);
  if (!file_text) return problem(file_text.status(), files.quantization);
  const auto file = parse_hybrid_file(*file_text);
  if (!file) return problem(file.status(), files.quantization);
  auto imported = imported_from(files, *data);
  if (!imported) return problem(imported.status(), files.model);
  auto options = make_options(data->config, std::move(progress));
  if (!options) return problem(options.status(), files.data);
  options->custom_ops = imported->custom_ops = std::move(custom_ops);

  const auto format = number_format(*options->chip, data->config.quantized_dtype);
  if (!format) return problem(format.status(), files.data);
  StoredCalibration stored;
  const Graph& graph = imported->network.graph;
  Status problems = take_layers(*file, *data, graph, *options->chip, *format, stored);
  problems.also(take_ranges(*file, *data, graph, *format, stored));
  if (!problems) return problem(problems, files.quantization);
  stored.channel_means = std::move(data->channel_means);
  stored.uneven_tensors = std::move(data->uneven_tensors);
  stored.rounded = std::move(data->rounded);
  imported->stored = std::make_shared<const StoredCalibration>(std::move(stored));
  BuildRequest request{.do_quantization = true, .dataset = files.dataset.empty() ? data->dataset : files.dataset};
  return HybridStep2{std::move(*options), std::move(*imported), std::move(request)};
}

}  // namespace orknn::toolkit
