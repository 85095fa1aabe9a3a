#include "toolkit/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "base/version.h"
#include "format/rknn_file.h"
#include "ir/mapped_constants.h"
#include "ops/eval.h"
#include "optimize/pipeline.h"
#include "quantize/calibrate.h"
#include "quantize/given_parameters.h"
#include "quantize/weight_only.h"
#include "toolkit/auto_hybrid.h"
#include "toolkit/batch.h"
#include "toolkit/channel_order.h"
#include "toolkit/pixel_inputs.h"
#include "toolkit/samples.h"
#include "toolkit/shape_sets.h"

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
                        .hint(fmt::format("give the shape of '{}' with input_size_list", t.name)));
  }
  return problems;
}

// All graphs of a model, the one of the largest shapes last.
std::vector<ir::Graph*> graphs_of(std::vector<ir::Graph>& others, ir::Graph& largest) {
  std::vector<ir::Graph*> all;
  for (ir::Graph& g : others) all.push_back(&g);
  all.push_back(&largest);
  return all;
}

uint64_t constant_bytes(const ir::Graph& graph) {
  uint64_t sum = 0;
  for (size_t i = 0; i < graph.tensor_count(); ++i)
    if (const ir::TensorData* value = graph.constant(ir::TensorId{static_cast<int32_t>(i)})) sum += value->bytes();
  return sum;
}

// Progress of work on weights in MiB, in equal parts for `passes` passes over them.
class ByteBar {
 public:
  ByteBar(const Builder& builder, std::string_view stage, uint64_t bytes, int passes)
      : builder_(builder), stage_(stage), total_(static_cast<int64_t>((bytes >> 20) + 1)), passes_(passes), bytes_(bytes) {
    builder_.report(stage_, 0, total_);
  }
  void add(uint64_t bytes) {
    done_ += bytes;
    const double part = bytes_ ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(bytes_)) : 1.0;
    const auto now = static_cast<int64_t>((pass_ + part) / passes_ * static_cast<double>(total_));
    if (now > shown_ && now < total_) builder_.report(stage_, shown_ = now, total_);
  }
  // The next pass is over `bytes` of them.
  void next_pass(uint64_t bytes) {
    ++pass_;
    bytes_ = bytes;
    done_ = 0;
    add(0);
  }
  void finish() { builder_.report(stage_, total_, total_); }

 private:
  const Builder& builder_;
  std::string_view stage_;
  int64_t total_, shown_ = 0;
  int passes_, pass_ = 0;
  uint64_t bytes_, done_ = 0;
};

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
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
        fmt::format("The input '{}' has one and the same value everywhere in {}{}: such a sample says nothing about ranges!",
                    graph.tensor(t).name, samples.describe(static_cast<size_t>(s->first_constant())), others));
  }
  std::vector<std::string> names;
  for (ir::NodeId id : graph.order()) {
    const ir::Node& n = graph.node(id);
    const bool behind =
        std::any_of(n.inputs.begin(), n.inputs.end(), [&](ir::TensorId x) { return seen(x) && !seen(x)->varies(); });
    for (ir::TensorId t : n.outputs)
      if (const quantize::Statistics* s = seen(t); s && !s->varies() && !behind)
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
}  // namespace

size_t channel_axis(const ir::Tensor& tensor) {
  const size_t rank = tensor.shape ? tensor.shape->size() : 0;
  if (rank < 2) return 0;
  return tensor.layout == ir::Layout::NHWC ? rank - 1 : 1;
}

Result<std::vector<compile::Normalization>> normalization_of(const ir::Graph& graph, const BuildConfig& config,
                                                             std::string_view tag) {
  Status problems;
  std::vector<compile::Normalization> result;
  const struct {
    std::string_view name, default_name;
    const std::optional<ChannelValues>& values;
    double neutral;
  } options[] = {{"mean_values", "zeros", config.mean_values, 0}, {"std_values", "ones", config.std_values, 1}};
  for (const auto& option : options)
    if (option.values && option.values->size() > graph.inputs().size())
      problems.also(invalid_argument(fmt::format("The len of {} ({}) is wrong, expect one list per input ({})!", option.name,
                                                 option.values->size(), graph.inputs().size())));
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Tensor& tensor = graph.tensor(graph.inputs()[i]);
    int64_t channels = 1;
    if (tensor.shape && !tensor.shape->empty()) channels = (*tensor.shape)[channel_axis(tensor)].value();
    std::vector<double> rows[2];
    for (int k = 0; k < 2; ++k) {
      const auto& option = options[k];
      if (!option.values || i >= option.values->size()) {
        log(LogLevel::Warn, tag,
            fmt::format("The config.{} is None, {} will be set for input {}!", option.name, option.default_name, i));
        continue;
      }
      rows[k] = (*option.values)[i];
      if (config.one_value_for_all_channels && rows[k].size() == 1) rows[k].assign(static_cast<size_t>(channels), rows[k][0]);
      if (static_cast<int64_t>(rows[k].size()) != channels)
        problems.also(invalid_argument(
            fmt::format("The len of {} ({}) for input {} is wrong, expect {}!", option.name, rows[k], i, channels)));
    }
    compile::Normalization n;
    const bool neutral = std::all_of(rows[0].begin(), rows[0].end(), [](double v) { return v == 0; }) &&
                         std::all_of(rows[1].begin(), rows[1].end(), [](double v) { return v == 1; });
    if (!neutral && problems) {
      rows[0].resize(static_cast<size_t>(channels), 0);
      rows[1].resize(static_cast<size_t>(channels), 1);
      n.mean.assign(rows[0].begin(), rows[0].end());
      n.std.assign(rows[1].begin(), rows[1].end());
    }
    result.push_back(std::move(n));
  }
  if (!problems) return problems;
  return result;
}

Result<Builder> Builder::create(BuildConfig config, Progress progress) {
  Builder builder;
  ORKNN_TRY_ASSIGN(builder.platform_, check(config));
  builder.config_ = std::move(config);
  builder.progress_ = std::move(progress);
  return builder;
}

// The graph of a source model, with everything config() wants in front of its layers.
Result<ir::Graph> Builder::import_graph(const std::string& path, std::string_view framework,
                                        const importer::ImportOptions& options, const std::vector<std::string>& other_files,
                                        importer::SourceInfo& source) {
  ORKNN_TRY_ASSIGN(importer::Imported imported, importer::load_file(path, options, ops::builtin_ops(), framework, other_files));
  source = std::move(imported.source);
  Status problems = check_input_shapes(imported.graph, options, source);
  if (!config_.dynamic_input.empty() && options.input_size_list.size() != imported.graph.inputs().size())
    problems.also(
        invalid_argument(fmt::format("The len of the sets of dynamic_input ({}) is wrong, expect one shape per input ({})!",
                                     options.input_size_list.size(), imported.graph.inputs().size())));
  if (problems) problems = swap_input_channels(imported.graph, config_.reorder_channel);
  if (!problems) return problems.model(path).stage("load");
  return std::move(imported.graph);
}

Status Builder::load_model(const std::string& path, std::string_view framework, const importer::ImportOptions& given,
                           std::vector<std::string> other_files) {
  report("Loading", 0, 1);
  loaded_ = false;  // a failed load must not leave an earlier model to be built or exported by mistake
  model_ = nullptr;
  source_files_ = other_files;
  source_files_.push_back(path);
  importer::ImportOptions options = given;
  const ShapeSets& sets = config_.dynamic_input;
  const size_t largest = largest_set(sets);
  if (!sets.empty()) options.input_size_list = sets[largest];
  importer::SourceInfo source;
  ORKNN_TRY_ASSIGN(ir::Graph graph, import_graph(path, framework, options, other_files, source));
  const std::string tag = "load_" + source.framework;
  for (const std::string& text : source.warnings) log(LogLevel::Warn, tag, text);
  for (ir::TensorId t : graph.inputs())
    if (const ir::Tensor& input = graph.tensor(t); !input.shape || !ir::to_dims(*input.shape))
      log(LogLevel::Warn, tag,
          fmt::format(
              "The shape {} of input '{}' stays open: its layers run on the CPU, and only the Python API can run the model!",
              shape_text(input.shape), input.name));
  auto normalization = normalization_of(graph, config_, tag);
  if (!normalization) return Status(normalization.status()).model(path).stage("load");
  for (size_t i = 0; i < std::min(config_.reorder_channel.size(), normalization->size()); ++i)
    if (config_.reorder_channel[i])  // it is given for the network's channels and applied to the caller's
      for (std::vector<float>* values : {&(*normalization)[i].mean, &(*normalization)[i].std})
        std::reverse(values->begin(), values->end());
  other_shapes_.clear();
  for (size_t i = 0; i < sets.size(); ++i) {
    if (i == largest) continue;
    importer::SourceInfo same;
    options.input_size_list = sets[i];
    ORKNN_TRY_ASSIGN(ir::Graph other, import_graph(path, framework, options, other_files, same));
    other_shapes_.push_back(std::move(other));
  }
  graph_ = std::move(graph);
  source_ = std::move(source);
  normalization_ = std::move(*normalization);
  model_name_ = file_stem(path);
  from_files_.reset();
  model_.reset();
  trace_ = {};
  loaded_ = true;
  report("Loading", 1, 1);
  return {};
}

compile::CompileOptions Builder::compile_options() const {
  compile::CompileOptions options;
  options.platform = platform_;
  options.float_dtype = dtype_from_name(config_.float_dtype);
  options.op_target = config_.op_target;
  options.normalization = kept_normalization_;
  options.single_core = config_.single_core_mode;
  options.share_memory = config_.share_memory;
  options.cost.weights.sparse = config_.sparse_infer;
  options.cost.weights.compressed = config_.compress_weight;
  options.warn = [](std::string_view text) { log(LogLevel::Warn, "build", text); };
  return options;
}

Status Builder::optimize_graph(ir::Graph& graph) {
  if (from_files_) return {};  // step 1 did
  optimize::OptimizeOptions optimizing;
  optimizing.level = config_.optimization_level;
  const auto passes = optimize::pass_catalogue();
  for (const std::string& rule : config_.disable_rules)
    if (std::any_of(passes.begin(), passes.end(), [&](const optimize::Pass& p) { return p.name == rule; }))
      optimizing.disable.push_back(rule);
  optimizing.stop_after = config_.stop_after;
  optimizing.dump_after = config_.dump_after;
  optimizing.dump = config_.dump;
  optimizing.max_rewrites = config_.max_rewrites;
  constexpr int64_t kSteps = 100;
  optimizing.progress = [this](std::string_view, double done) {
    report("OpFusing 0", std::clamp<int64_t>(static_cast<int64_t>(done * kSteps), 0, kSteps - 1), kSteps);
  };
  trace_ = {};
  report("OpFusing 0", 0, kSteps);
  if (Status s = optimize::optimize(graph, ops::builtin_ops(), optimizing, &trace_); !s)
    return s.model(model_name_).stage("optimize");
  report("OpFusing 0", kSteps, kSteps);
  log(LogLevel::Detail, "build", fmt::format("optimizer: {} rewrites, {} nodes left", trace_.entries.size(), graph.node_count()));
  return {};
}

// With the progress that users know from quantizing.
Status Builder::run_samples(const Samples& samples, const ir::Graph& graph, size_t count,
                            const quantize::Observe& observe) const {
  report("Quantizating", 0, static_cast<int64_t>(count));
  return samples.run(graph, DType::Float32, count, observe,
                     [&](size_t done) { report("Quantizating", static_cast<int64_t>(done), static_cast<int64_t>(count)); });
}

bool Builder::cut_outliers(std::string_view tensor) const {
  if (!calibration_) return false;
  const auto seen = calibration_->statistics.find(tensor);
  return seen != calibration_->statistics.end() && quantize::cut_outliers(seen->second);
}

bool Builder::takes(const quantize::Step& step) const {
  return config_.optimization_level >= step.min_level &&
         std::find(config_.disable_rules.begin(), config_.disable_rules.end(), step.name) == config_.disable_rules.end();
}

void Builder::remark(const quantize::Step& step, const std::string& text) {
  trace_.entries.push_back({trace_.entries.size() + 1, std::string(step.name), text});
  log(LogLevel::Detail, "build", text);
}

quantize::QuantizeOptions Builder::quantize_options(const quantize::NumberFormat& format) const {
  quantize::QuantizeOptions choices;
  choices.format = format;
  choices.per_channel = config_.quantized_method != "layer" && !format.per_tensor;
  choices.equalize = equalizes_ && takes(quantize::kEqualizeChannels);
  choices.clip_outliers = takes(quantize::kClipOutliers);
  choices.correct_bias = takes(quantize::kCorrectBias);
  choices.keep_small_values = takes(quantize::kKeepSmallValues);
  choices.round_adaptively = takes(quantize::kRoundAdaptively);
  return choices;
}

// Inputs whose samples are pixels get the pixels themselves as integers, where that is exact. Answers the ranges of these inputs.
std::map<std::string, quantize::Range, std::less<>> Builder::fold_normalization(const std::vector<ir::Graph*>& graphs,
                                                                                Samples& samples) {
  std::map<std::string, quantize::Range, std::less<>> ranges;
  for (size_t i = 0; i < kept_normalization_.size(); ++i) {
    const ir::Tensor& input = graphs[0]->tensor(graphs[0]->inputs()[i]);
    if (input.dtype != DType::Float32 || !samples.holds_pixels(i)) continue;
    const std::string name = input.name;
    const auto pixels = read_pixels(graphs, i, kept_normalization_[i]);
    if (!pixels) {
      remark(quantize::kFoldNormalization, fmt::format("'{}': its pixels are normalized while they are read, and rounded", name));
      continue;
    }
    remark(quantize::kFoldNormalization,
           pixels->layers.empty()
               ? fmt::format("'{}': its integers are the pixels", name)
               : fmt::format("'{}': its integers are the pixels, what its mean lies beside a pixel goes into the biases of '{}'",
                             name, fmt::join(pixels->layers, "', '")));
    kept_normalization_[i] = pixels->normalization;
    ranges[name] = pixels->range;
  }
  samples.set_normalization(kept_normalization_);
  return ranges;
}

// Runs the samples through the float32 form of `graph` and gives its layers their integer form.
Status Builder::quantize_graph(ir::Graph& graph, const std::string& dataset, std::vector<ir::Graph>* others) {
  ORKNN_TRY_ASSIGN(const quantize::NumberFormat format, number_format(*platform_, config_.quantized_dtype));
  kept_normalization_ = normalization_;
  std::vector<ir::Graph> no_others;
  if (!others) others = &no_others;
  if (is_float(format.activations)) {
    const ir::Graph exact = graph;
    ORKNN_TRY(round_weights(graph, format.weights, dataset));
    for (ir::Graph& other : *others) {
      ORKNN_TRY_ASSIGN(other, with_shapes_of(graph, exact, other, ops::builtin_ops()));
    }
    return {};
  }
  quantize::QuantizeOptions choices = quantize_options(format);
  const auto tell = [this](const quantize::Step& step, const std::string& text) { remark(step, text); };
  if (from_files_) {
    choices.remark = tell;
    choices.ranges = from_files_->ranges;
    choices.channel_means = from_files_->channel_means;
    choices.uneven_tensors = from_files_->uneven_tensors;
    choices.formats = from_files_->formats;
    choices.rounded = from_files_->rounded;
    ORKNN_TRY(lower_to_integers(graph, {}, choices));
    log_float_layers();
    return {};
  }
  ORKNN_TRY_ASSIGN(choices.algorithm, quantize::algorithm_from_name(config_.quantized_algorithm));
  ORKNN_TRY(quantize::split_tails(graph, ops::builtin_ops()));
  for (ir::Graph& other : *others) ORKNN_TRY(quantize::split_tails(other, ops::builtin_ops()));
  ORKNN_TRY_ASSIGN(Samples samples, Samples::open(dataset, graph, config_.quant_img_RGB2BGR, compile_options()));
  if (takes(quantize::kFoldNormalization) && format.bits() == 8 && !format.power_of_two)
    choices.ranges = fold_normalization(graphs_of(*others, graph), samples);
  const ir::Graph uncalibrated = graph;
  if (auto_hybrid_) ORKNN_TRY(choose_float_layers(graph, samples, choices));
  const auto run = [&](const ir::Graph& computed, size_t count, const quantize::Observe& observe) {
    return run_samples(samples, computed, count, observe);
  };
  equalizes_ = choices.equalize;
  quantize::QuantizeOptions told = choices;
  told.remark = tell;
  ORKNN_TRY_ASSIGN(calibration_, quantize::calibrate(graph, run, samples.size(), told));
  const quantize::Calibration& calibration = *calibration_;
  choices.rounded = told.rounded = calibration.rounded;
  for (const auto& [name, s] : calibration.statistics)
    if (s.not_finite() > 0)
      log(LogLevel::Warn, "build",
          fmt::format("The tensor '{}' has {} value(s) that are not finite (first in {}), they do not enter its range!", name,
                      s.not_finite(), samples.describe(static_cast<size_t>(s.first_not_finite()))));
  warn_of_constants(graph, calibration.statistics, samples);
  for (ir::Graph& other : *others) {
    ORKNN_TRY_ASSIGN(other, with_shapes_of(graph, uncalibrated, other, ops::builtin_ops()));
    ORKNN_TRY(lower_to_integers(other, calibration.statistics, choices));
  }
  ORKNN_TRY(lower_to_integers(graph, calibration.statistics, told));
  log_float_layers();
  return {};
}

// w8a16 and w4a16: no activation is rounded to integers, so samples only serve to round weights well.
Status Builder::round_weights(ir::Graph& graph, DType type, const std::string& dataset) {
  quantize::WeightOnlyOptions options;
  options.type = type;
  options.per_channel = config_.quantized_method != "layer";
  if (constexpr std::string_view group = "group"; config_.quantized_method.starts_with(group))
    options.group = std::stoi(config_.quantized_method.substr(group.size()));
  const bool uses_samples = config_.quantized_algorithm == "gdq" || config_.quantized_algorithm == "adaround";
  if (!float_layers_.empty()) options.keep = [this](std::string_view output) { return float_layers_.contains(output); };
  options.search_scales = uses_samples || config_.quantized_algorithm == "mmse";
  std::optional<Samples> samples;
  if (uses_samples) {
    ORKNN_TRY_ASSIGN(samples, Samples::open(dataset, graph, config_.quant_img_RGB2BGR, compile_options()));
    options.samples = samples->size();
    options.run = [&](const ir::Graph& computed, size_t count, const quantize::Observe& observe) {
      return run_samples(*samples, computed, count, observe);
    };
  }
  ORKNN_TRY_ASSIGN(layer_decisions_, quantize::round_weights_only(graph, options));
  return {};
}

void Builder::log_float_layers() const {
  for (const quantize::LayerDecision& d : layer_decisions_)
    if (!d.integer)
      log(d.notable ? LogLevel::Warn : LogLevel::Detail, "build",
          fmt::format("'{}' ({}) stays in float: {}", d.output, d.op, d.reason));
}

Status Builder::lower_to_integers(ir::Graph& graph, const quantize::TensorStatistics& statistics,
                                  quantize::QuantizeOptions choices) {
  reference_ = graph;
  if (!float_layers_.empty())
    choices.keep_float = [this](const ir::Node& n, std::string_view output) {
      return float_layers_.contains(output) || float_layers_.contains(n.name);
    };
  ORKNN_TRY_ASSIGN(layer_decisions_, quantize::quantize(graph, ops::builtin_ops(), statistics, choices));
  return {};
}

// auto_hybrid: which layers stay in float, and what that costs. Judged are the network that will be built, calibrated with all
// samples, and two that each half of the samples gives, by the other half: values that calibration has not seen are what costs a
// finished network its accuracy. Equalized channels all fill their range, so that more values leave it: unless no layer has to
// stay in float, it is switched off.
Status Builder::choose_float_layers(const ir::Graph& graph, const Samples& samples, quantize::QuantizeOptions& choices) {
  constexpr size_t kEnoughToSplit = 4;
  const size_t half = samples.size() / 2;
  const Samples behind = samples.behind(half);
  struct Calibrated {
    ir::Graph graph;
    quantize::Calibration calibration;
  };
  while (true) {
    std::vector<Calibrated> calibrated;
    const auto calibrate = [&](const Samples& on, size_t count) -> Status {
      const auto run = [&](const ir::Graph& computed, size_t limit, const quantize::Observe& observe) {
        return on.run(computed, DType::Float32, limit, observe);
      };
      Calibrated& made = calibrated.emplace_back(Calibrated{graph, {}});
      ORKNN_TRY_ASSIGN(made.calibration, quantize::calibrate(made.graph, run, count, choices));
      return {};
    };
    calibrated.reserve(3);  // trials refer to them
    std::vector<quantize::LayerDecision> decisions;
    const auto lower_with = [&](const Calibrated& from) -> QuantizeWith {
      return [&](const LayerNames& float_layers) -> Result<ir::Graph> {
        quantize::QuantizeOptions with = choices;
        with.rounded = from.calibration.rounded;
        with.keep_float = [&](const ir::Node&, std::string_view output) { return float_layers.contains(output); };
        ir::Graph integers = from.graph;
        ORKNN_TRY_ASSIGN(decisions, quantize::quantize(integers, ops::builtin_ops(), from.calibration.statistics, with));
        return integers;
      };
    };
    std::vector<HybridTrial> trials;
    const auto judge = [&](const Samples& on, size_t count) {
      trials.push_back({calibrated.back().graph, on, std::min(count, hybrid_samples_), lower_with(calibrated.back())});
    };
    ORKNN_TRY(calibrate(samples, samples.size()));
    judge(samples, samples.size());
    if (samples.size() >= kEnoughToSplit) {
      ORKNN_TRY(calibrate(samples, half));
      judge(behind, behind.size());
      ORKNN_TRY(calibrate(behind, behind.size()));
      judge(samples, half);
    }
    const QuantizeWith& lower = trials[0].quantize;
    ORKNN_TRY_ASSIGN(const ir::Graph integers, lower({}));
    const HybridGoal goal{config_.auto_hybrid_cos_thresh, config_.auto_hybrid_euc_thresh, !choices.equalize};
    const std::vector<quantize::LayerDecision> all = decisions;
    ORKNN_TRY_ASSIGN(HybridChoice choice, find_float_layers(trials, all, goal, progress_));
    if (!choice.reached && choices.equalize) {
      choices.equalize = false;
      continue;
    }
    ORKNN_TRY_ASSIGN(const ir::Graph hybrid, lower(choice.float_layers));
    ORKNN_TRY_ASSIGN(hybrid_summary_, describe_choice(choice, goal, {trials[0].reference, integers, hybrid}, compile_options()));
    for (const std::string& line : hybrid_summary_) log(LogLevel::Info, "build", line);
    float_layers_ = std::move(choice.float_layers);
    return {};
  }
}

// auto_hybrid of a float16 build: layers that make or read values float16 cannot hold are computed in 16-bit integers.
Status Builder::lower_large_layers(ir::Graph& graph, const std::string& dataset) {
  if (dataset.empty())
    return invalid_argument("auto_hybrid needs a dataset to measure the ranges of the layers")
        .hint("give build() a list of sample files");
  constexpr float kLargestHalf = 65504;
  ir::Graph visible = graph;
  ORKNN_TRY(quantize::split_tails(visible, ops::builtin_ops()));
  ORKNN_TRY_ASSIGN(const Samples samples, Samples::open(dataset, visible, config_.quant_img_RGB2BGR, compile_options()));
  quantize::TensorStatistics statistics;
  const auto total = static_cast<int64_t>(samples.size());
  ORKNN_TRY(samples.run(
      visible, DType::Float32, samples.size(),
      [&](std::string_view name, const ir::TensorView& value) {
        if (value.dtype == DType::Float32) statistics.try_emplace(std::string(name)).first->second.add(value.values<float>());
      },
      [&](size_t done) { report("AutoHybrid", static_cast<int64_t>(done), total); }));
  const auto is_large = [&](ir::TensorId t) {
    const auto it = t ? statistics.find(visible.tensor(t).name) : statistics.end();
    return it != statistics.end() && (it->second.min() < -kLargestHalf || it->second.max() > kLargestHalf);
  };
  std::set<std::string, std::less<>> large;
  for (ir::NodeId id : visible.order()) {
    const ir::Node& n = visible.node(id);
    if (!std::any_of(n.inputs.begin(), n.inputs.end(), is_large) && !std::any_of(n.outputs.begin(), n.outputs.end(), is_large))
      continue;
    for (ir::TensorId t : n.outputs)
      if (t) large.insert(visible.tensor(t).name);
  }
  if (large.empty()) {
    hybrid_summary_.push_back(fmt::format("auto_hybrid: the values of all layers fit float16 on {} sample(s).", samples.size()));
    return {};
  }
  quantize::QuantizeOptions choices;
  ORKNN_TRY_ASSIGN(choices.format, quantize::number_format("w16a16i"));
  choices.equalize = choices.correct_bias = false;
  choices.keep_float = [&](const ir::Node&, std::string_view output) { return !large.contains(output); };
  reference_ = visible;
  ORKNN_TRY_ASSIGN(layer_decisions_, quantize::quantize(visible, ops::builtin_ops(), statistics, choices));
  Status problems;
  std::string names;
  for (const quantize::LayerDecision& d : layer_decisions_) {
    if (!large.contains(d.output)) continue;
    names += (names.empty() ? "" : ", ") + d.output;
    const auto s = statistics.find(d.output);
    if (!d.integer)
      problems.also(unsupported(fmt::format("The range [{:g}, {:g}] of '{}' or of what it reads is out of the float16, and it "
                                            "has no form in 16-bit integers: {}",
                                            s == statistics.end() ? 0 : s->second.min(),
                                            s == statistics.end() ? 0 : s->second.max(), d.output, d.reason))
                        .hint("scale the network down before this layer"));
  }
  hybrid_summary_.push_back(fmt::format(
      "auto_hybrid: {} layer(s) hold values out of the float16 and are computed in 16-bit integers: {}", large.size(), names));
  graph = std::move(visible);
  return problems;
}

Status Builder::build(bool do_quantization, const std::string& dataset, bool auto_hybrid) {
  if (!loaded_) return invalid_argument("build needs a loaded source model first");
  if (Status s = ir::check_mapped_files(graph_); !s) return s.model(model_name_).stage("build");
  model_ = nullptr;  // a failed build must not leave an earlier model to be exported by mistake
  if (do_quantization && dataset.empty() && !from_files_)
    return invalid_argument("quantization needs a dataset")
        .model(model_name_)
        .stage("build")
        .hint("give build() a list of calibration files, or do_quantization=False for a float16 model");

  const bool is_quantized = quantize::states_quantization(graph_);
  if (do_quantization && is_quantized)
    return invalid_argument("the model is quantized already, its own parameters are used")
        .model(model_name_)
        .stage("build")
        .hint("call build(do_quantization=False); no dataset is needed");
  // In float32 the model computes what its source framework does, conversions included.
  const bool uses_given_parameters = is_quantized && config_.float_dtype != "float32";

  if (!do_quantization && auto_hybrid && !other_shapes_.empty())
    return unsupported("auto_hybrid of a float model keeps one set of shapes")
        .found("several in dynamic_input")
        .model(model_name_)
        .stage("build")
        .hint("leave auto_hybrid off");

  // The stages work on copies that share the constants, so that build() can be called again with the same source.
  std::vector<ir::Graph> others = other_shapes_;
  ir::Graph graph = graph_;
  for (ir::Graph* g : graphs_of(others, graph)) {  // the last one's trace stays
    if (uses_given_parameters)
      if (Status s = quantize::expand_quantized_operators(*g, ops::builtin_ops()); !s)
        return s.model(model_name_).stage("quantize");
    if (uses_given_parameters && platform_->generation == 1)
      if (Status s = quantize::require_one_scale_per_tensor(*g); !s) return s.model(model_name_).stage("quantize");
    if (Status s = optimize_graph(*g); !s) return s;
  }

  kept_normalization_ = normalization_;
  layer_decisions_.clear();
  hybrid_summary_.clear();
  float_layers_ = from_files_ ? from_files_->float_layers : std::set<std::string, std::less<>>();
  auto_hybrid_ = auto_hybrid;
  equalizes_ = true;
  reference_ = graph;
  if (do_quantization)
    if (Status s = quantize_graph(graph, dataset, &others); !s) return s.model(model_name_).stage("quantize");
  if (!do_quantization && auto_hybrid)
    if (Status s = lower_large_layers(graph, dataset); !s) return s.model(model_name_).stage("build");
  if (uses_given_parameters) {
    for (ir::Graph* g : graphs_of(others, graph)) {
      auto decisions = quantize::use_given_parameters(*g, ops::builtin_ops());
      if (!decisions) return Status(decisions.status()).model(model_name_).stage("quantize");
      layer_decisions_ = std::move(*decisions);
    }
    log_float_layers();
  }
  if (!do_quantization && config_.quantize_weight)
    for (ir::Graph* g : graphs_of(others, graph))
      if (Status s = store_weights_as_integers(*g); !s) return s.model(model_name_).stage("quantize");
  // Weights are what takes time: they are converted (half of the bar), then compared and placed (the other half).
  uint64_t weight_bytes = 0;
  for (const ir::Graph* g : graphs_of(others, graph)) weight_bytes += constant_bytes(*g);
  ByteBar bar(*this, "Compiling", weight_bytes, 2);
  auto model = std::make_shared<format::Model>();
  model->name = model_name_;
  model->target_platform = platform_->name;
  model->source_framework = upper(source_.framework);
  model->toolkit_version = version();
  model->custom_string = config_.custom_string;
  model->float_dtype = config_.float_dtype;
  const auto converted = [&](uint64_t bytes) { bar.add(bytes); };
  ORKNN_TRY(add_program(*model, std::move(graph), converted));
  for (ir::Graph& other : others) ORKNN_TRY(add_program(*model, std::move(other), converted));
  uint64_t stored_bytes = 0;
  for (const format::Program& p : model->programs) stored_bytes += constant_bytes(p.graph);
  bar.next_pass(stored_bytes);
  format::place_weights(*model, converted);
  if (Status s = ir::check_mapped_files(graph_); !s) return s.model(model_name_).stage("build");
  model_ = std::move(model);
  bar.finish();
  return {};
}

// quantize_weight: float layers whose weights are int8 in the file.
Status Builder::store_weights_as_integers(ir::Graph& graph) const {
  constexpr int64_t kWorthIt = 1024;  // scales and alignment would eat what fewer weights save
  ORKNN_TRY_ASSIGN(const std::vector<quantize::LayerDecision> layers,
                   quantize::round_weights_only(graph, {.least_count = kWorthIt}));
  const auto count = std::count_if(layers.begin(), layers.end(), [](const quantize::LayerDecision& d) { return d.integer; });
  log(LogLevel::Detail, "build", fmt::format("quantize_weight: {} layer(s) with weights in int8", count));
  return {};
}

Status Builder::add_program(format::Model& model, ir::Graph graph, const std::function<void(uint64_t)>& converted) const {
  quantize::keep_stored_weights(graph);
  quantize::forget_constant_grids(graph);
  if (config_.rknn_batch_size > 1) {
    auto batched = with_batch(graph, ops::builtin_ops(), config_.rknn_batch_size);
    if (!batched) return Status(batched.status()).model(model_name_).stage("build");
    graph = std::move(*batched);
  }
  compile::CompileOptions options = compile_options();
  options.converted = converted;
  auto program = compile::compile(std::move(graph), options);
  if (!program) return Status(program.status()).model(model_name_).stage("compile");
  if (!config_.dynamic_input.empty()) {
    std::vector<ir::Dims> shapes;
    for (const format::Port& port : program->inputs)
      shapes.push_back(ir::to_dims(*program->graph.tensor(port.tensor).shape).value_or(ir::Dims()));
    program->label = to_text(shapes);
  }
  model.programs.push_back(std::move(*program));
  return {};
}

Status Builder::set_batch(int64_t samples) {
  if (samples < 1) return invalid_argument(fmt::format("Invalid rknn_batch_size {}, expect a number of samples!", samples));
  config_.rknn_batch_size = samples;
  return {};
}

Status Builder::export_rknn(const std::string& path) const {
  if (!model_) return invalid_argument("export_rknn needs a built model, call build first");
  for (const std::string& source : source_files_) {
    std::error_code problem;
    if (std::filesystem::equivalent(source, path, problem))
      return invalid_argument("the model would overwrite its own source '" + source + "'")
          .model(path)
          .stage("export")
          .hint("give another file name");
  }
  for (const format::Program& program : model_->programs)
    if (Status s = ir::check_mapped_files(program.graph); !s) return s.model(path).stage("export");
  constexpr uint64_t kLong = uint64_t{128} << 20;  // smaller files take less than two seconds and show no bar
  std::optional<ByteBar> bar;
  if (model_->weight_bytes >= kLong) bar.emplace(*this, "Exporting", format::kWritePasses * model_->weight_bytes, 1);
  Status s = format::write_rknn(*model_, path, [&](uint64_t bytes) {
    if (bar) bar->add(bytes);
  });
  if (!s) return s.model(path).stage("export");
  if (bar) bar->finish();
  return {};
}

}  // namespace orknn::toolkit
