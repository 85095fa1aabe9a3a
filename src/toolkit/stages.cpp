// What belongs to no single stage: the options of all of them, and the way through them.
#include "toolkit/stages.h"

#include "ir/mapped_constants.h"

namespace orknn::toolkit {

Result<BuildOptions> make_options(BuildConfig config, Progress progress) {
  ORKNN_TRY_ASSIGN(const platform::Platform* chip, check(config));
  if (config.quantized_algorithm.empty()) {
    const auto format = number_format(*chip, config.quantized_dtype);  // the chip may have none, as long as nothing is quantized
    config.quantized_algorithm = format && is_float(format->activations) ? "gdq" : "normal";
  }
  return BuildOptions{std::move(config), chip, std::move(progress)};
}

std::vector<ir::Graph*> Network::all() {
  std::vector<ir::Graph*> list;
  for (ir::Graph& g : other_shapes) list.push_back(&g);
  list.push_back(&graph);
  return list;
}

namespace {
Status check_request(const BuildConfig& config, const Imported& imported, const BuildRequest& request) {
  ORKNN_TRY(ir::check_mapped_files(imported.network.graph));
  if (request.do_quantization && request.dataset.empty() && !imported.stored)
    return invalid_argument("quantization needs a dataset")
        .hint("give build() a list of calibration files, or do_quantization=False for a float16 model");
  if (request.do_quantization) {
    warn_of_quantized_build(config);
    ORKNN_TRY(require_float_source(imported));
  }
  if (!request.do_quantization && request.auto_hybrid && !imported.network.other_shapes.empty())
    return unsupported("auto_hybrid without quantization supports one set of shapes only")
        .found("several in dynamic_input")
        .hint("leave auto_hybrid off");
  return {};
}
}  // namespace

Result<Built> build_model(const BuildOptions& options, const Imported& imported, const BuildRequest& request) {
  if (Status s = check_request(options.config, imported, request); !s) return s.model(imported.name).stage("build");
  LayerNumbers numbers = request.do_quantization ? quantized_numbers(options) : LayerNumbers::Floats;
  std::optional<LargeLayers> large;
  if (!request.do_quantization && request.auto_hybrid) {
    auto found = find_large_layers(options, imported, request.dataset);
    if (!found) return Status(found.status()).model(imported.name).stage("build");
    large = std::move(*found);
    if (!large->layers.empty()) numbers = LayerNumbers::Integers;
  }
  ORKNN_TRY_ASSIGN(Optimized optimized, optimize_model(options, imported, numbers));
  ORKNN_TRY(report_optimization(options, imported, optimized));
  ORKNN_TRY_ASSIGN(Quantized quantized, quantize_model(options, std::move(optimized), request, large));
  ORKNN_TRY_ASSIGN(Built built, compile_model(options, std::move(quantized)));
  // What was read of a file that was shortened meanwhile is worth nothing.
  if (Status s = ir::check_mapped_files(imported.network.graph); !s) return s.model(imported.name).stage("build");
  return built;
}

}  // namespace orknn::toolkit
