#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "optimize/pipeline.h"
#include "quantize/quantized_operators.h"
#include "quantize/tails.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {
namespace {
constexpr std::string_view kPruning = "prune_channels";
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

// For networks whose layers become integer ones: a layer with steps that its integer form does not compute would stay in float.
bool fits_integer_layers(const ir::Graph& graph, const ir::Patch& patch) {
  const auto fits = [&](const ir::Node& n) {
    const bool is_known = std::ranges::none_of(n.inputs, [&](ir::TensorId t) { return patch.is_new(t); });
    return n.tail.empty() || !is_known || quantize::computes_tail(graph, n);
  };
  return std::ranges::all_of(patch.nodes(), fits) &&
         std::ranges::all_of(patch.replaced_nodes(), [&](const auto& replaced) { return fits(replaced.second); });
}

// Passes that options of the build and what its layers compute in ask for.
std::vector<std::string> requested_passes(const BuildOptions& options, LayerNumbers numbers) {
  std::vector<std::string> names;
  if (numbers == LayerNumbers::Integers) names.emplace_back("fuse_constant_arithmetic");
  if (options.config.model_pruning) names.emplace_back(kPruning);
  if (options.config.enable_flash_attention && options.chip->features.flash_attention) names.emplace_back("fuse_flat_attention");
  return names;
}

// Operators that compute in integers become float ones between the conversions that state their parameters.
Status expand_quantized(ir::Graph& graph, const ir::OpSet& ops, const BuildOptions& options, passes::Trace& trace) {
  ORKNN_TRY(quantize::expand_quantized_operators(graph, ops, step_options(options.config), &trace));
  if (options.chip->generation == 1) ORKNN_TRY(quantize::require_one_scale_per_tensor(graph));
  return {};
}

Status optimize_graph(ir::Graph& graph, const ir::OpSet& ops, const BuildOptions& options, LayerNumbers numbers,
                      passes::Trace& trace) {
  options.report(kOptimizing, 0, kOptimizingSteps);
  const size_t before = trace.entries.size();
  optimize::OptimizeOptions optimizing = optimizer_options(options);
  if (numbers == LayerNumbers::Integers) optimizing.allows = fits_integer_layers;
  optimizing.max_rewrites -= std::min(before, optimizing.max_rewrites);  // they are the first lines of the trace
  ORKNN_TRY(optimize::optimize(graph, ops, optimizing, &trace, requested_passes(options, numbers)));
  options.report(kOptimizing, kOptimizingSteps, kOptimizingSteps);
  log(LogLevel::Detail, "build",
      fmt::format("optimizer: {} rewrites, {} nodes left", trace.entries.size() - before, graph.node_count()));
  return {};
}

struct NetworkSize {
  double weight_bytes = 0, macs = 0;
};
Result<NetworkSize> size_of(const ir::Graph& graph) {
  compile::CompileOptions compiling;
  compiling.float_dtype = DType::Float32;
  ORKNN_TRY_ASSIGN(const format::Program program, compile::compile(graph, compiling));
  NetworkSize size;
  for (size_t i = 0; i < program.graph.tensor_count(); ++i)
    if (const ir::TensorData* value = program.graph.constant(ir::TensorId{static_cast<int32_t>(i)}))
      size.weight_bytes += static_cast<double>(value->bytes());
  for (const format::Task& task : program.tasks) size.macs += static_cast<double>(task.macs);
  return size;
}

// Of the network that optimize_model makes of `imported` without pruning.
Result<NetworkSize> size_before_pruning(const BuildOptions& options, const Imported& imported, bool has_own_parameters) {
  BuildOptions without = options;
  without.config.model_pruning = false;
  without.config.dump = {};
  without.progress = {};
  ir::Graph whole = imported.network.graph;
  passes::Trace trace;
  if (has_own_parameters) ORKNN_TRY(expand_quantized(whole, imported.op_set(), without, trace));
  ORKNN_TRY(optimize_graph(whole, imported.op_set(), without, LayerNumbers::Floats, trace));
  return size_of(whole);
}

Status report_sizes(const BuildOptions& options, const Imported& imported, const Optimized& pruned) {
  ORKNN_TRY_ASSIGN(const NetworkSize before, size_before_pruning(options, imported, pruned.has_own_parameters));
  ORKNN_TRY_ASSIGN(const NetworkSize after, size_of(pruned.network.graph));
  const auto line = [](const char* text) { log(LogLevel::Info, "", text); };
  const auto share = [](double was, double is) { return was > 0 ? 100 * (is - was) / was : 0; };
  line("model_pruning ...");
  for (const passes::TraceEntry& e : pruned.trace.entries)
    if (e.pass == kPruning) log(LogLevel::Detail, "build", "model_pruning: " + e.text);
  line("model_pruning results:");
  log(LogLevel::Info, "",
      fmt::format("    Weight: {:.5f} MB ({:.1f}%)", (after.weight_bytes - before.weight_bytes) / 1e6,
                  share(before.weight_bytes, after.weight_bytes)));
  log(LogLevel::Info, "",
      fmt::format("    GFLOPs: {:.5f}    ({:.1f}%)", 2 * (after.macs - before.macs) / 1e9, share(before.macs, after.macs)));
  line("model_pruning done.");
  return {};
}

// One line for all layers.
void warn_of_unfused_attention(const passes::Trace& trace) {
  constexpr size_t kMostNamed = 5;
  std::vector<std::string> layers;
  for (const passes::TraceEntry& e : trace.entries)
    if (e.text.starts_with(optimize::kUnfusedAttention)) layers.push_back(e.text.substr(optimize::kUnfusedAttention.size()));
  if (layers.empty()) return;
  const size_t others = layers.size() - std::min(layers.size(), kMostNamed);
  layers.resize(layers.size() - others);
  log(LogLevel::Warn, "build",
      fmt::format("The 'enable_flash_attention' does not make one task of attention whose mask cannot be a constant: {}{}",
                  fmt::join(layers, "; "), others ? fmt::format("; and {} more", others) : ""));
}
}  // namespace

LayerNumbers quantized_numbers(const BuildOptions& options) {
  const auto format = number_format(*options.chip, options.config.quantized_dtype);
  return format && is_float(format->activations) ? LayerNumbers::Floats : LayerNumbers::Integers;
}

Result<Optimized> optimize_model(const BuildOptions& options, const Imported& imported, LayerNumbers numbers) {
  Optimized optimized{imported};
  optimized.stored = imported.stored;
  // In float32 the model computes what its source framework does, conversions included.
  optimized.has_own_parameters = options.config.float_dtype != "float32" && quantize::states_quantization(imported.network.graph);
  if (optimized.has_own_parameters) numbers = LayerNumbers::Integers;
  for (ir::Graph* graph : optimized.network.all()) {
    optimized.trace = {};
    if (optimized.has_own_parameters)
      if (Status s = expand_quantized(*graph, imported.op_set(), options, optimized.trace); !s)
        return s.model(imported.name).stage("quantize");
    if (imported.stored) continue;
    if (Status s = optimize_graph(*graph, imported.op_set(), options, numbers, optimized.trace); !s)
      return s.model(imported.name).stage("optimize");
  }
  return optimized;
}

Status report_optimization(const BuildOptions& options, const Imported& imported, const Optimized& optimized) {
  warn_of_unfused_attention(optimized.trace);
  if (std::ranges::count(optimized.trace.entries, kPruning, &passes::TraceEntry::pass) == 0) return {};
  if (Status s = report_sizes(options, imported, optimized); !s) return s.model(imported.name).stage("optimize");
  return {};
}

}  // namespace orknn::toolkit
