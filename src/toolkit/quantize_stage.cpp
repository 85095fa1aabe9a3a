// From an optimized float network to one whose layers have their number formats: which steps of the quantizer run, in which
// order, and on which graphs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "quantize/given_parameters.h"
#include "quantize/quantized_operators.h"
#include "quantize/weight_only.h"
#include "toolkit/auto_hybrid.h"
#include "toolkit/hybrid_level.h"
#include "toolkit/pixel_inputs.h"
#include "toolkit/samples.h"
#include "toolkit/shape_sets.h"
#include "toolkit/stages.h"
#include "toolkit/step_trials.h"

namespace orknn::toolkit {
namespace {
// The same for a graph that is not shown.
passes::Options undumped(passes::Options options) {
  options.dump = {};
  return options;
}

quantize::QuantizeOptions quantize_options(const BuildConfig& config, const quantize::NumberFormat& format) {
  quantize::QuantizeOptions choices;
  choices.format = format;
  choices.per_channel = config.quantized_method != "layer" && !format.per_tensor;
  choices.steps = step_options(config);
  return choices;
}

// What steps said since the trace had `first` lines; what becomes of each layer is logged on its own.
void log_steps(const passes::Trace& trace, size_t first) {
  for (const passes::TraceEntry& e : std::span(trace.entries).subspan(first))
    if (e.pass != quantize::kLowerToIntegers.name && e.pass != quantize::kWidenLayers.name)
      log(LogLevel::Detail, "build", e.text);
}

// A step that decides about the network in its largest shapes, and says in the trace what.
Status run_step(Stage& stage, const quantize::Step& step, const passes::Options& options, passes::GraphPass run) {
  return quantize::run_steps(stage.network.graph, stage.op_set(), {quantize::pass_of(step, std::move(run))}, options,
                             &stage.trace);
}

Result<Samples> open_samples(const BuildOptions& options, const std::string& dataset, const Stage& stage) {
  const SampleRules rules{options.config.quant_img_RGB2BGR, {.toolkit1 = options.is_toolkit1()}};
  ORKNN_TRY_ASSIGN(Samples samples,
                   Samples::open(dataset, stage.network.graph, rules, compile_options(options, stage.normalization)));
  samples.keep_first(calibration_samples(options.config, samples.size()));
  return samples;
}

// The progress that users know from quantizing. Keeps references to both.
Samples::Done quantizing(const BuildOptions& options, const Samples& samples) {
  return [&](size_t done) { options.report("Quantizating", static_cast<int64_t>(done), static_cast<int64_t>(samples.size())); };
}

// Computes graphs on `samples`. Keeps references to both.
quantize::RunSamples runner(const BuildOptions& options, const Samples& samples) {
  return [&](const ir::Graph& graph, size_t count, const quantize::Observe& observe) {
    const Samples::Done done = quantizing(options, samples);
    done(0);
    return samples.run(
        graph, count, [&](size_t, std::string_view name, const ir::TensorView& value) { observe(name, value); }, done);
  };
}

std::string describe(const std::string& input, const std::optional<PixelInput>& pixels) {
  if (!pixels) return fmt::format("'{}': its pixels are normalized while they are read, and rounded", input);
  if (pixels->layers.empty()) return fmt::format("'{}': its integers are the pixels", input);
  return fmt::format("'{}': its integers are the pixels, the biases of '{}' take the fraction of its mean", input,
                     fmt::join(pixels->layers, "', '"));
}

// Inputs whose samples are pixels get the pixels themselves as integers, where that is exact. Their ranges and what is left of
// their normalization go into `stage`.
Status fold_normalization(Calibrated& stage, const Samples& samples) {
  const std::vector<ir::Graph*> graphs = stage.network.all();
  for (size_t i = 0; i < stage.normalization.size(); ++i) {
    const ir::Tensor& input = graphs[0]->tensor(graphs[0]->inputs()[i]);
    if (input.dtype != DType::Float32 || !samples.holds_pixels(i)) continue;
    const std::string name = input.name;
    const auto pixels = read_pixels(graphs, i, stage.normalization[i]);
    for (size_t k = 0; k < graphs.size(); ++k) {
      const bool shown = k + 1 == graphs.size();
      const auto fold = [&](passes::Rewriter& rewriter) -> Status {
        if (pixels && !pixels->patches[k].empty()) {
          ORKNN_TRY_ASSIGN(const bool applied, rewriter.apply(pixels->patches[k]));
          for (const ir::Node& added : pixels->patches[k].nodes())
            if (applied && shown) stage.forms.back().add(rewriter.graph(), rewriter.graph().producer(added.output()));
        }
        if (shown) rewriter.remark(describe(name, pixels));
        return {};
      };
      ORKNN_TRY(quantize::run_steps(*graphs[k], stage.op_set(), {quantize::pass_of(quantize::kFoldNormalization, fold)},
                                    shown ? stage.choices.steps : undumped(stage.choices.steps), shown ? &stage.trace : nullptr));
    }
    if (!pixels) continue;
    stage.normalization[i] = pixels->normalization;
    stage.choices.ranges[name] = pixels->range;
  }
  return {};
}

// Tensors in the order in which they are computed, inputs first.
std::vector<ir::TensorId> in_order(const ir::Graph& graph) {
  std::vector<ir::TensorId> tensors = graph.inputs();
  for (ir::NodeId id : graph.order())
    for (ir::TensorId t : graph.node(id).outputs)
      if (t) tensors.push_back(t);
  return tensors;
}

// An input without any finite value is an error. Other values that are not finite are reported once, where they come first:
// what is computed from them is not finite either.
Status check_finite(const ir::Graph& graph, const quantize::TensorStatistics& statistics, const Samples& samples) {
  std::string warning;
  size_t others = 0;
  for (ir::TensorId t : in_order(graph)) {
    const auto it = statistics.find(graph.tensor(t).name);
    if (it == statistics.end() || it->second.not_finite() == 0) continue;
    const auto& [name, s] = *it;
    const std::string where = samples.describe(static_cast<size_t>(s.first_not_finite()));
    if (s.count() == 0 && graph.is_input(t))
      return invalid_argument(fmt::format("no calibration value of input '{}' is a finite number", name))
          .found(fmt::format("NaN or infinity from {} on", where))
          .hint("check how the samples were made");
    if (warning.empty())
      warning = fmt::format("The tensor '{}' has {} value(s) that are not finite (first in {})", name, s.not_finite(), where);
    else
      ++others;
  }
  if (!warning.empty())
    log(LogLevel::Warn, "build",
        warning + (others ? fmt::format(", and so have {} more tensor{}", others, others == 1 ? "" : "s") : "") +
            ", they are ignored when ranges are computed!");
  return {};
}

// Samples that say nothing about the range of an input, and tensors that never changed; of those only the first in a row.
void warn_of_constants(const ir::Graph& graph, const quantize::TensorStatistics& statistics, const Samples& samples) {
  const auto seen = [&](ir::TensorId t) -> const quantize::Statistics* {
    const auto it = t ? statistics.find(graph.tensor(t).name) : statistics.end();
    return it == statistics.end() || it->second.count() < 2 ? nullptr : &it->second;
  };
  for (ir::TensorId t : graph.inputs()) {
    const quantize::Statistics* s = seen(t);
    if (!s || s->constant_samples() == 0) continue;
    const std::string others = s->constant_samples() > 1 ? fmt::format(" and in {} more", s->constant_samples() - 1) : "";
    log(LogLevel::Warn, "build",
        fmt::format("The input '{}' has the same value everywhere in {}{}: such a sample says nothing about ranges!",
                    graph.tensor(t).name, samples.describe(static_cast<size_t>(s->first_constant())), others));
  }
  std::vector<std::string> names;
  for (ir::NodeId id : graph.order()) {
    const ir::Node& n = graph.node(id);
    const bool reads_constant =
        std::any_of(n.inputs.begin(), n.inputs.end(), [&](ir::TensorId x) { return seen(x) && !seen(x)->varies(); });
    for (ir::TensorId t : n.outputs)
      if (const quantize::Statistics* s = seen(t); s && !s->varies() && !reads_constant)
        names.push_back(fmt::format("'{}' (always {})", graph.tensor(t).name, s->min()));
  }
  if (names.empty()) return;
  constexpr size_t kShown = 5;
  const size_t more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - more);
  log(LogLevel::Warn, "build",
      fmt::format("These tensors never change in all {} samples, so their range is a guess: {}{}!", samples.size(),
                  fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
}

void log_decisions(const std::vector<quantize::LayerDecision>& decisions) {
  for (const quantize::LayerDecision& d : decisions) {
    if (!d.loss.empty()) log(LogLevel::Warn, "build", fmt::format("'{}': {}", d.output, d.loss));
    if (!d.integer)
      log(d.notable ? LogLevel::Warn : LogLevel::Detail, "build",
          fmt::format("'{}' ({}) stays in float: {}", d.output, d.op, d.reason));
  }
}

// What the files of hybrid quantization say takes the place of samples.
Calibrated calibrated_by_files(const BuildConfig& config, const quantize::NumberFormat& format, Optimized optimized) {
  const StoredCalibration& stored = *optimized.stored;
  Calibrated calibrated{std::move(static_cast<Stage&>(optimized))};
  calibrated.forms = {quantize::LayerForms(calibrated.network.graph)};
  calibrated.choices = quantize_options(config, format);
  calibrated.choices.ranges = stored.ranges;
  calibrated.choices.channel_means = stored.channel_means;
  calibrated.choices.uneven_tensors = stored.uneven_tensors;
  calibrated.choices.formats = stored.formats;
  calibrated.calibration = std::make_shared<const quantize::Calibration>(quantize::Calibration{.rounded = stored.rounded});
  calibrated.float_layers = stored.float_layers;
  return calibrated;
}

// A stage whose layers have their number formats already, or get them one by one afterwards.
Quantized in_float(Optimized optimized) {
  Quantized quantized{std::move(static_cast<Stage&>(optimized))};
  quantized.reference = quantized.network.graph;
  return quantized;
}

Status use_own_parameters(const BuildConfig& config, Quantized& stage) {
  const passes::Options steps = step_options(config);
  for (ir::Graph& other : stage.network.other_shapes)
    ORKNN_TRY(quantize::use_given_parameters(other, stage.op_set(), undumped(steps)).status());
  ORKNN_TRY_ASSIGN(const std::vector<quantize::LayerDecision> decisions,
                   quantize::use_given_parameters(stage.network.graph, stage.op_set(), steps, &stage.trace));
  log_decisions(decisions);
  return {};
}

// quantize_weight: float layers whose weights are int8 in the file.
Status store_weights_as_integers(const BuildConfig& config, Quantized& stage) {
  constexpr int64_t kWorthIt = 1024;  // scales and alignment would eat what fewer weights save
  quantize::WeightOnlyOptions choices{.least_count = kWorthIt, .steps = undumped(step_options(config))};
  for (ir::Graph& other : stage.network.other_shapes)
    ORKNN_TRY(quantize::round_weights_only(other, stage.op_set(), choices).status());
  choices.steps = step_options(config);
  choices.trace = &stage.trace;
  ORKNN_TRY_ASSIGN(const std::vector<quantize::LayerDecision> layers,
                   quantize::round_weights_only(stage.network.graph, stage.op_set(), choices));
  const auto count = std::count_if(layers.begin(), layers.end(), [](const quantize::LayerDecision& d) { return d.integer; });
  log(LogLevel::Detail, "build", fmt::format("quantize_weight: {} layer(s) with weights in int8", count));
  return {};
}

// What the graphs of every build end with.
Status settle_constants(const BuildConfig& config, Quantized& stage) {
  const passes::Options steps = step_options(config);
  for (ir::Graph& other : stage.network.other_shapes)
    ORKNN_TRY(quantize::settle_constants(other, stage.op_set(), undumped(steps), nullptr));
  return quantize::settle_constants(stage.network.graph, stage.op_set(), steps, &stage.trace);
}

// Layers that make or read values beyond what float16 holds, by output tensor.
LayerNames layers_beyond_float16(const ir::Graph& graph, const quantize::TensorStatistics& statistics) {
  constexpr float kLargestHalf = 65504;
  const auto is_large = [&](ir::TensorId t) {
    const auto it = t ? statistics.find(graph.tensor(t).name) : statistics.end();
    return it != statistics.end() && (it->second.min() < -kLargestHalf || it->second.max() > kLargestHalf);
  };
  LayerNames large;
  for (ir::NodeId id : graph.order()) {
    const ir::Node& n = graph.node(id);
    if (!std::any_of(n.inputs.begin(), n.inputs.end(), is_large) && !std::any_of(n.outputs.begin(), n.outputs.end(), is_large))
      continue;
    for (ir::TensorId t : n.outputs)
      if (t) large.insert(graph.tensor(t).name);
  }
  return large;
}

// auto_hybrid of a float16 build: the layers of `large` in 16-bit integers; an error names those that have no such form.
Status lower_to_16_bits(const BuildConfig& config, const LargeLayers& large, Quantized& stage) {
  if (large.layers.empty()) {
    stage.hybrid_summary.push_back(
        fmt::format("auto_hybrid: the values of all layers fit float16 on {} sample(s).", large.samples));
    return {};
  }
  quantize::QuantizeOptions choices;
  ORKNN_TRY_ASSIGN(choices.format, quantize::number_format("w16a16i"));
  choices.steps = step_options(config);
  choices.trace = &stage.trace;
  choices.leave_out(quantize::kCorrectBias);
  choices.keep_float = [&](const ir::Node&, std::string_view output) { return !large.layers.contains(output); };
  ORKNN_TRY_ASSIGN(const std::vector<quantize::LayerDecision> decisions,
                   quantize::quantize(stage.network.graph, stage.op_set(), quantize::LayerForms(stage.network.graph),
                                      {.statistics = large.statistics}, choices));
  Status problems;
  std::string names;
  for (const quantize::LayerDecision& d : decisions) {
    if (!large.layers.contains(d.output)) continue;
    names += (names.empty() ? "" : ", ") + d.output;
    const auto s = large.statistics.find(d.output);
    if (!d.integer)
      problems.also(unsupported(fmt::format("The range [{:g}, {:g}] of '{}' or of what it reads is beyond float16, and it "
                                            "has no form in 16-bit integers: {}",
                                            s == large.statistics.end() ? 0 : s->second.min(),
                                            s == large.statistics.end() ? 0 : s->second.max(), d.output, d.reason))
                        .hint("scale the network down before this layer"));
  }
  if (!problems) return problems;
  stage.hybrid_summary.push_back(fmt::format(
      "auto_hybrid: {} layer(s) hold values beyond float16 and are computed in 16-bit integers: {}", large.layers.size(), names));
  return {};
}

// Below this a network has lost what it was made for; layers are left in float until its outputs keep the second.
constexpr double kCollapsedCosine = 0.9, kUsableCosine = 0.95;
constexpr size_t kRescueSamples = 4;  // per trial: the user did not ask for a search, it has to be short

void remark_gains(const std::vector<StepGain>& gains, passes::Rewriter& rewriter) {
  for (const StepGain& g : gains)
    rewriter.remark(fmt::format("{} is {}: on samples held back the worst output loses {:.6f} with it, {}{:.6f} without", g.step,
                                g.kept ? "kept" : "left out", g.with, g.at_least ? "at least " : "", g.without));
}

// Leaves out the steps that samples speak against. Returns the cosine that the worst output can be expected to keep, if it was
// measured.
Result<std::optional<double>> try_steps(const BuildOptions& options, Calibrated& stage, FloatNetwork& floats,
                                        std::optional<double> clips_above) {
  std::optional<double> expected_cosine;
  ORKNN_TRY(run_step(stage, quantize::kTrySteps, stage.choices.steps, [&](passes::Rewriter& rewriter) -> Status {
    ORKNN_TRY_ASSIGN(StepChoice chosen, choose_steps(options, stage, floats, clips_above));
    remark_gains(chosen.gains, rewriter);
    stage.choices = std::move(chosen.choices);
    stage.step_gains = std::move(chosen.gains);
    expected_cosine = chosen.expected_cosine;
    return {};
  }));
  return expected_cosine;
}

Status widen_layers(const BuildOptions& options, Calibrated& stage, FloatNetwork& floats, size_t trial_samples,
                    const HybridGoal& goal) {
  return run_step(stage, quantize::kWidenLayers, stage.choices.steps, [&](passes::Rewriter& rewriter) -> Status {
    ORKNN_TRY_ASSIGN(AutoHybrid chosen, choose_layer_formats(options, stage, floats, trial_samples, goal));
    stage.choices.formats = std::move(chosen.formats);
    stage.float_layers = std::move(chosen.float_layers);
    stage.all_float = chosen.all_float;
    stage.hybrid_summary = std::move(chosen.summary);
    for (const std::string& line : stage.hybrid_summary) rewriter.remark(line);
    return {};
  });
}

// quantized_hybrid_level: layers that stay in float, by what calibration saw.
Status widen_by_level(Calibrated& stage, const quantize::TensorStatistics& statistics, int level) {
  return run_step(stage, quantize::kWidenLayers, stage.choices.steps, [&](passes::Rewriter& rewriter) -> Status {
    LevelChoice chosen = layers_of_level(rewriter.graph(), stage.forms.back(), statistics, level, stage.choices.format.bits());
    stage.float_layers = std::move(chosen.float_layers);
    rewriter.remark(chosen.summary);
    stage.hybrid_summary.push_back(std::move(chosen.summary));
    return {};
  });
}

Result<Quantized> quantize_with_samples(const BuildOptions& options, Optimized optimized, const BuildRequest& request) {
  ORKNN_TRY_ASSIGN(const quantize::NumberFormat format, number_format(*options.chip, options.config.quantized_dtype));
  if (is_float(format.activations)) return round_weights(options, std::move(optimized), request.dataset);
  if (optimized.stored) return lower_to_integers(calibrated_by_files(options.config, format, std::move(optimized)));
  std::optional<Optimized> floats = optimized;
  ORKNN_TRY_ASSIGN(Calibrated calibrated, calibrate_model(options, std::move(optimized), {request.dataset, request.auto_hybrid}));
  if (!calibrated.all_float) {
    floats.reset();  // holds the weights that calibration replaced
    return lower_to_integers(std::move(calibrated));
  }
  // As it was before calibration, which fits weights to integers.
  Quantized quantized = in_float(std::move(*floats));
  quantized.trace = std::move(calibrated.trace);
  quantized.hybrid_summary = std::move(calibrated.hybrid_summary);
  quantized.step_gains = std::move(calibrated.step_gains);
  return quantized;
}
}  // namespace

passes::Options step_options(const BuildConfig& config) {
  passes::Options options;
  options.level = config.optimization_level;
  for (const quantize::Step& step : quantize::steps())
    if (!step.required && std::ranges::count(config.disable_rules, step.name) > 0) options.disable.emplace_back(step.name);
  // Weights that another model brings must not depend on this model's samples.
  if (config.remove_weight)
    for (const quantize::Step& step : {quantize::kEqualizeChannels, quantize::kRoundAdaptively})
      if (std::ranges::count(options.disable, step.name) == 0) options.disable.emplace_back(step.name);
  options.dump_after = config.dump_after;
  options.dump = config.dump;
  return options;
}

Status require_float_source(const Stage& model) {
  if (!quantize::states_quantization(model.network.graph)) return {};
  return invalid_argument("the model is quantized already, its own parameters are used")
      .hint("call build(do_quantization=False); no dataset is needed");
}

Result<Calibrated> calibrate_model(const BuildOptions& options, Optimized optimized, const CalibrationRequest& request) {
  const BuildConfig& config = options.config;
  ORKNN_TRY_ASSIGN(const quantize::NumberFormat format, number_format(*options.chip, config.quantized_dtype));
  Calibrated stage{std::move(static_cast<Stage&>(optimized))};
  stage.choices = quantize_options(config, format);
  ORKNN_TRY(quantize::set_algorithm(stage.choices, config.quantized_algorithm));
  const size_t first_line = stage.trace.entries.size();
  for (const ir::Graph* graph : stage.network.all()) stage.forms.emplace_back(*graph);
  ORKNN_TRY_ASSIGN(Samples samples, open_samples(options, request.dataset, stage));
  if (stage.choices.takes(quantize::kFoldNormalization) && format.bits() == 8 && !format.power_of_two) {
    ORKNN_TRY(fold_normalization(stage, samples));
    samples.set_normalization(stage.normalization);
  }
  const ir::Graph uncalibrated = stage.network.graph;
  FloatNetwork floats(uncalibrated, stage.forms.back(), samples, stage.choices.takes(quantize::kTrySteps) || request.auto_hybrid,
                      quantizing(options, samples));
  // Ranges that clip look better on samples than they are on other pictures: no promise is built on them, and they are no cure
  // for a network that has collapsed.
  const std::optional<double> clips_above = request.auto_hybrid ? std::nullopt : std::optional(kCollapsedCosine);
  ORKNN_TRY_ASSIGN(const std::optional<double> expected_cosine, try_steps(options, stage, floats, clips_above));
  if (request.auto_hybrid) {
    // A result that leaves the range on other pictures would break the promise, and no sample tells of it.
    constexpr double kOutputRoom = 4;
    stage.choices.output_room = kOutputRoom;
    const HybridGoal goal{config.auto_hybrid_cos_thresh, config.auto_hybrid_euc_thresh};
    ORKNN_TRY(widen_layers(options, stage, floats, request.trial_samples, goal));
  } else if (expected_cosine && *expected_cosine < kCollapsedCosine) {
    log(LogLevel::Warn, "build",
        fmt::format("with all layers in {}-bit integers an output keeps a cosine of {:.3f} only: the layers that cost most are "
                    "computed in {}. "
                    "More calibration samples or another number format may serve this network better!",
                    format.bits(), *expected_cosine, options.chip->conv_half ? "float16" : "int16"));
    ORKNN_TRY(widen_layers(options, stage, floats, kRescueSamples, {.cosine = kUsableCosine}));
  }
  quantize::QuantizeOptions choices = stage.choices;
  choices.trace = &stage.trace;
  ORKNN_TRY_ASSIGN(quantize::Calibration calibration,
                   quantize::calibrate(stage.network.graph, stage.op_set(), stage.forms.back(), runner(options, samples),
                                       samples.size(), choices, {&floats.measurements()}));
  log_steps(stage.trace, first_line);
  ORKNN_TRY(check_finite(stage.network.graph, calibration.statistics, samples));
  warn_of_constants(stage.network.graph, calibration.statistics, samples);
  for (size_t i = 0; i < stage.network.other_shapes.size(); ++i) {
    ir::Graph& other = stage.network.other_shapes[i];
    ORKNN_TRY_ASSIGN(other, with_shapes_of(stage.network.graph, uncalibrated, other, stage.op_set()));
    stage.forms[i] = quantize::LayerForms(other);  // a form may depend on the shape
  }
  if (config.quantized_hybrid_level > 0 && !request.auto_hybrid)
    ORKNN_TRY(widen_by_level(stage, calibration.statistics, config.quantized_hybrid_level));
  stage.calibration = std::make_shared<const quantize::Calibration>(std::move(calibration));
  return stage;
}

Result<Quantized> lower_to_integers(Calibrated calibrated) {
  Quantized quantized{std::move(static_cast<Stage&>(calibrated))};
  quantized.reference = quantized.network.graph;
  quantized.calibration = std::move(calibrated.calibration);
  quantized.hybrid_summary = std::move(calibrated.hybrid_summary);
  quantized.step_gains = std::move(calibrated.step_gains);
  quantize::QuantizeOptions choices = std::move(calibrated.choices);
  if (!calibrated.float_layers.empty())
    choices.keep_float = [&](const ir::Node&, std::string_view output) { return calibrated.float_layers.contains(output); };
  quantize::QuantizeOptions quiet = choices;
  quiet.steps = undumped(choices.steps);
  for (size_t i = 0; i < quantized.network.other_shapes.size(); ++i)
    ORKNN_TRY(quantize::quantize(quantized.network.other_shapes[i], quantized.op_set(), calibrated.forms[i],
                                 *quantized.calibration, quiet)
                  .status());
  const size_t first_line = quantized.trace.entries.size();
  choices.trace = &quantized.trace;
  ORKNN_TRY_ASSIGN(
      const std::vector<quantize::LayerDecision> decisions,
      quantize::quantize(quantized.network.graph, quantized.op_set(), calibrated.forms.back(), *quantized.calibration, choices));
  log_steps(quantized.trace, first_line);
  log_decisions(decisions);
  return quantized;
}

Result<Quantized> round_weights(const BuildOptions& options, Optimized optimized, const std::string& dataset) {
  const BuildConfig& config = options.config;
  ORKNN_TRY_ASSIGN(const quantize::NumberFormat format, number_format(*options.chip, config.quantized_dtype));
  const std::shared_ptr<const StoredCalibration> stored = optimized.stored;
  Quantized quantized = in_float(std::move(optimized));
  quantize::WeightOnlyOptions choices;
  choices.type = format.weights;
  choices.per_channel = config.quantized_method != "layer";
  if (constexpr std::string_view group = "group"; config.quantized_method.starts_with(group))
    choices.group = std::stoi(config.quantized_method.substr(group.size()));
  if (stored && !stored->float_layers.empty())
    choices.keep = [&](std::string_view output) { return stored->float_layers.contains(output); };
  const size_t first_line = quantized.trace.entries.size();
  choices.steps = step_options(config);
  const auto takes = [&](const quantize::Step& step) { return choices.steps.runs(step.name, step.min_level); };
  const bool adapts = config.quantized_algorithm == "gdq" || config.quantized_algorithm == "adaround";
  choices.fit_to_samples = adapts && takes(quantize::kRoundAdaptively);
  choices.search_scales = adapts || config.quantized_algorithm == "mmse";
  std::optional<Samples> samples;
  const bool corrects_bias = takes(quantize::kCorrectBias);
  if (choices.fit_to_samples || (corrects_bias && !dataset.empty())) {
    ORKNN_TRY_ASSIGN(samples, open_samples(options, dataset, quantized));
    choices.samples = samples->size();
    choices.run = runner(options, *samples);
    ORKNN_TRY(run_step(quantized, quantize::kTrySteps, choices.steps, [&](passes::Rewriter& rewriter) -> Status {
      ORKNN_TRY_ASSIGN(WeightStepChoice chosen, choose_weight_steps(options, quantized, choices, *samples));
      choices = std::move(chosen.choices);
      remark_gains(chosen.gains, rewriter);
      quantized.step_gains = std::move(chosen.gains);
      return {};
    }));
  }
  choices.trace = &quantized.trace;
  ORKNN_TRY(quantize::round_weights_only(quantized.network.graph, quantized.op_set(), choices).status());
  log_steps(quantized.trace, first_line);
  for (ir::Graph& other : quantized.network.other_shapes) {
    ORKNN_TRY_ASSIGN(other, with_shapes_of(quantized.network.graph, quantized.reference, other, quantized.op_set()));
  }
  return quantized;
}

Result<LargeLayers> find_large_layers(const BuildOptions& options, const Imported& imported, const std::string& dataset) {
  if (dataset.empty())
    return invalid_argument("auto_hybrid needs a dataset to measure the ranges of the layers")
        .hint("give build() a list of sample files");
  BuildOptions quiet = options;  // this network is not the one that is built
  quiet.config.dump = {};
  quiet.progress = {};
  ORKNN_TRY_ASSIGN(const Optimized visible, optimize_model(quiet, imported, LayerNumbers::Integers));
  ORKNN_TRY_ASSIGN(const Samples samples, open_samples(options, dataset, visible));
  LargeLayers large{.samples = samples.size()};
  std::mutex adding;  // to the list
  ORKNN_TRY(samples.run(
      visible.network.graph, samples.size(),
      [&](size_t, std::string_view name, const ir::TensorView& value) {
        if (value.dtype != DType::Float32) return;
        std::unique_lock lock(adding);
        quantize::Statistics& seen = large.statistics.try_emplace(std::string(name)).first->second;
        lock.unlock();
        seen.add(value.values<float>());
      },
      [&](size_t done) { options.report("AutoHybrid", static_cast<int64_t>(done), static_cast<int64_t>(samples.size())); }));
  large.layers = layers_beyond_float16(visible.network.graph, large.statistics);
  return large;
}

Result<Quantized> quantize_model(const BuildOptions& options, Optimized optimized, const BuildRequest& request,
                                 const std::optional<LargeLayers>& large) {
  const std::string name = optimized.name;
  const auto failed = [&](Status status, std::string_view stage) { return status.model(name).stage(stage); };
  const bool has_own_parameters = optimized.has_own_parameters;
  Result<Quantized> quantized = request.do_quantization ? quantize_with_samples(options, std::move(optimized), request)
                                                        : Result<Quantized>(in_float(std::move(optimized)));
  if (!quantized) return failed(quantized.status(), "quantize");
  if (!request.do_quantization) {
    if (large)
      if (Status s = lower_to_16_bits(options.config, *large, *quantized); !s) return failed(s, "build");
    if (has_own_parameters)
      if (Status s = use_own_parameters(options.config, *quantized); !s) return failed(s, "quantize");
    if (options.config.quantize_weight)
      if (Status s = store_weights_as_integers(options.config, *quantized); !s) return failed(s, "quantize");
  }
  if (Status s = settle_constants(options.config, *quantized); !s) return failed(s, "quantize");
  return quantized;
}

}  // namespace orknn::toolkit
