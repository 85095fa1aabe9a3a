#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "optimize/pipeline.h"
#include "quantize/quantized_operators.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {
namespace {
constexpr std::string_view kOptimizing = "OpFusing 0";
constexpr int64_t kOptimizingSteps = 100;  // of the progress shown

optimize::OptimizeOptions optimizer_options(const BuildOptions& options) {
  const BuildConfig& config = options.config;
  optimize::OptimizeOptions optimizing;
  optimizing.level = config.optimization_level;
  // The others are steps of the quantizer.
  const auto passes_among = [passes = optimize::pass_catalogue()](std::vector<std::string> names) {
    std::erase_if(
        names, [&](const std::string& name) { return std::ranges::find(passes, name, &optimize::Pass::name) == passes.end(); });
    return names;
  };
  optimizing.disable = passes_among(config.disable_rules);
  optimizing.stop_after = config.stop_after;
  optimizing.dump_after = passes_among(config.dump_after);
  optimizing.dump = config.dump;
  optimizing.max_rewrites = config.max_rewrites;
  optimizing.progress = [&options](std::string_view, double done) {
    const auto step = static_cast<int64_t>(done * static_cast<double>(kOptimizingSteps));
    options.report(kOptimizing, std::clamp<int64_t>(step, 0, kOptimizingSteps - 1), kOptimizingSteps);
  };
  return optimizing;
}

// Operators that compute in integers become float ones between the conversions that state their parameters.
Status expand_quantized(ir::Graph& graph, const ir::OpSet& ops, const platform::Platform& chip) {
  ORKNN_TRY(quantize::expand_quantized_operators(graph, ops));
  if (chip.generation == 1) ORKNN_TRY(quantize::require_one_scale_per_tensor(graph));
  return {};
}

Result<passes::Trace> optimize_graph(ir::Graph& graph, const ir::OpSet& ops, const BuildOptions& options) {
  passes::Trace trace;
  options.report(kOptimizing, 0, kOptimizingSteps);
  ORKNN_TRY(optimize::optimize(graph, ops, optimizer_options(options), &trace));
  options.report(kOptimizing, kOptimizingSteps, kOptimizingSteps);
  log(LogLevel::Detail, "build", fmt::format("optimizer: {} rewrites, {} nodes left", trace.entries.size(), graph.node_count()));
  return trace;
}
}  // namespace

Result<Optimized> optimize_model(const BuildOptions& options, const Imported& imported) {
  Optimized optimized{imported};
  optimized.stored = imported.stored;
  // In float32 the model computes what its source framework does, conversions included.
  optimized.has_own_parameters = options.config.float_dtype != "float32" && quantize::states_quantization(imported.network.graph);
  for (ir::Graph* graph : optimized.network.all()) {
    if (optimized.has_own_parameters)
      if (Status s = expand_quantized(*graph, imported.op_set(), *options.chip); !s)
        return s.model(imported.name).stage("quantize");
    if (imported.stored) continue;
    auto trace = optimize_graph(*graph, imported.op_set(), options);
    if (!trace) return Status(trace.status()).model(imported.name).stage("optimize");
    optimized.trace = std::move(*trace);
  }
  return optimized;
}

}  // namespace orknn::toolkit
