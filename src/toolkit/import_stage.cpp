#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "toolkit/channel_order.h"
#include "toolkit/normalization.h"
#include "toolkit/shape_sets.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {
namespace {

// "['batch', 3, 224, 224]", as the vendor's tool prints shapes.
std::string shape_text(const std::optional<ir::Shape>& shape) {
  if (!shape) return "None";
  std::string text = "[";
  for (const ir::Dim& d : *shape) {
    if (text.size() > 1) text += ", ";
    text += d.is_known() ? d.to_string() : d.is_anonymous() ? "-1" : "'" + d.symbol() + "'";
  }
  return text + "]";
}

// A program has fixed shapes, unless the user left extents open on purpose (a negative one in input_size_list) or the format has
// no other way. An empty tensor is legal unless it looks like a picture whose size was never filled in.
Status check_input_shapes(const ir::Graph& graph, const importer::ImportOptions& options, const importer::SourceInfo& source) {
  Status problems;
  if (source.has_open_inputs) return problems;
  const auto is_open = [&](size_t i) {
    if (i >= options.input_size_list.size()) return false;
    const ir::Dims& size = options.input_size_list[i];
    return std::any_of(size.begin(), size.end(), [](int64_t d) { return d < 0; });
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (is_open(i)) continue;
    const ir::Tensor& t = graph.tensor(graph.inputs()[i]);
    bool usable = t.shape.has_value();
    if (usable)
      for (const ir::Dim& d : *t.shape) usable &= d.is_known() && (t.shape->size() >= 4 ? d.value() > 0 : d.value() >= 0);
    if (!usable)
      problems.also(invalid_argument(fmt::format("Invalid input_shape = {} for input {}!", shape_text(t.shape), i))
                        .hint(fmt::format("give the shape of '{}' with {}", t.name, options.sizes_option)));
  }
  return problems;
}

// Layers that do not fit each other are most often the work of a size that the user gave.
Status name_given_sizes(Status problems, const importer::ImportOptions& options) {
  if (problems.code() != Code::ShapeMismatch || options.input_size_list.empty()) return problems;
  std::string sizes;
  for (size_t i = 0; i < options.input_size_list.size(); ++i) {
    const std::string input = i < options.inputs.size() ? "'" + options.inputs[i] + "'" : "input " + std::to_string(i);
    sizes += (i ? ", " : "") + ir::to_string(options.input_size_list[i]) + " for " + input;
  }
  return problems.hint(options.sizes_option + " says " + sizes + "; check its number of dimensions and its extents");
}

// The source model in one set of shapes, with everything the configuration wants ahead of its layers.
Result<importer::Imported> import_graph(const BuildOptions& building, const SourceModel& model,
                                        const importer::ImportOptions& options) {
  const BuildConfig& config = building.config;
  auto loaded = importer::load_file(model.path, options, ops::op_set(building.custom_ops), model.framework, model.other_files);
  if (!loaded) return name_given_sizes(std::move(loaded).status(), options);
  importer::Imported imported = std::move(*loaded);
  Status problems = check_input_shapes(imported.graph, options, imported.source);
  if (!config.dynamic_input.empty() && options.input_size_list.size() != imported.graph.inputs().size())
    problems.also(
        invalid_argument(fmt::format("The len of the sets of dynamic_input ({}) is wrong, expect one shape per input ({})!",
                                     options.input_size_list.size(), imported.graph.inputs().size())));
  if (problems) problems = swap_input_channels(imported.graph, config.reorder_channel);
  if (problems) problems = infer_shapes(imported.graph, ops::op_set(building.custom_ops));  // checks the operands of every layer
  if (!problems) return name_given_sizes(std::move(problems), options).model(model.path).stage("load");
  return imported;
}

void warn_of_open_inputs(const ir::Graph& graph, const std::string& tag) {
  for (ir::TensorId t : graph.inputs())
    if (const ir::Tensor& input = graph.tensor(t); !input.shape || !ir::to_dims(*input.shape))
      log(LogLevel::Warn, tag,
          fmt::format("The shape {} of input '{}' is dynamic: layers that depend on it run on the CPU, and only the Python API "
                      "can run the model!",
                      shape_text(input.shape), input.name));
}

// The configuration states it for the network's channels; an input whose channels are swapped applies it to the caller's.
void reorder(std::vector<compile::Normalization>& normalization, const std::vector<bool>& swapped) {
  for (size_t i = 0; i < std::min(swapped.size(), normalization.size()); ++i)
    if (swapped[i])
      for (std::vector<float>* values : {&normalization[i].mean, &normalization[i].std})
        std::reverse(values->begin(), values->end());
}
}  // namespace

Result<Imported> import_model(const BuildOptions& options, const SourceModel& model) {
  options.report("Loading", 0, 1);
  const ShapeSets& sets = options.config.dynamic_input;
  const size_t largest = largest_set(sets);
  importer::ImportOptions importing = model.options;
  if (!sets.empty()) {
    importing.input_size_list = sets[largest];
    importing.sizes_option = "dynamic_input";
  }
  ORKNN_TRY_ASSIGN(importer::Imported in_largest, import_graph(options, model, importing));
  const std::string tag = "load_" + in_largest.source.framework;
  for (const std::string& text : in_largest.source.warnings) log(LogLevel::Warn, tag, text);
  warn_of_open_inputs(in_largest.graph, tag);
  auto normalization = normalization_of(in_largest.graph, options.config, tag);
  if (!normalization) return Status(normalization.status()).model(model.path).stage("load");
  reorder(*normalization, options.config.reorder_channel);

  Imported imported;
  for (size_t i = 0; i < sets.size(); ++i) {
    if (i == largest) continue;
    importing.input_size_list = sets[i];
    ORKNN_TRY_ASSIGN(importer::Imported other, import_graph(options, model, importing));
    imported.network.other_shapes.push_back(std::move(other.graph));
  }
  imported.name = file_stem(model.path);
  imported.custom_ops = options.custom_ops;
  imported.framework = std::move(in_largest.source.framework);
  imported.network.graph = std::move(in_largest.graph);
  imported.normalization = std::move(*normalization);
  imported.files = model.other_files;
  imported.files.push_back(model.path);
  options.report("Loading", 1, 1);
  return imported;
}

}  // namespace orknn::toolkit
