#include "toolkit/step_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

namespace orknn::toolkit {
namespace {

// Below this loss of the worst output (1 - cosine) there is nothing left to win.
constexpr double kGoodEnough = 2e-4;
// `normal` looks for other ranges only where it loses more than this: only there are they worth the time of another calibration.
constexpr double kLosesMuch = 0.01;
constexpr std::string_view kOtherRanges = "ranges of mmse";
// Samples differ: another choice has to lose less than this part to be taken.
constexpr double kClearly = 0.95;

class StepSearch {
 public:
  StepSearch(const BuildOptions& options, const Calibrated& stage, FloatNetwork& floats, std::optional<double> clips_above)
      : options_(options), stage_(stage), floats_(floats), clips_above_(clips_above), current_(stage.choices) {
    current_.steps.dump = {};  // trials are not the network that is built
  }

  Result<StepChoice> run() {
    show(0);
    const quantize::QuantizeOptions wanted = current_;
    if (wanted.adaptive_rounding) ORKNN_TRY(quantize::set_algorithm(current_, "normal"));  // compared with, and faster
    ORKNN_TRY_ASSIGN(losses_, measure(current_));
    if (losses_.worst_mean() > kGoodEnough)
      for (const quantize::Step* step : {&quantize::kEqualizeChannels, &quantize::kClipOutliers, &quantize::kCorrectBias})
        if (current_.takes(*step)) ORKNN_TRY(try_without(*step));
    if (wanted.adaptive_rounding && losses_.worst_mean() > kGoodEnough)
      ORKNN_TRY(try_rounding(wanted.algorithm));
    else if (wanted.algorithm == quantize::Algorithm::Normal && losses_.worst_mean() > kLosesMuch && clips_above_ &&
             1 - losses_.worst_expected() >= *clips_above_)
      ORKNN_TRY(try_far_better_ranges(quantize::Algorithm::Mmse));
    current_.steps.dump = stage_.choices.steps.dump;
    show(kMostTrials);
    return StepChoice{std::move(current_), std::move(gains_), 1 - losses_.worst_expected()};
  }

 private:
  // Steps that come after calibration need none of their own.
  Result<Trials*> trials_of(const quantize::QuantizeOptions& choices) {
    std::unique_ptr<Trials>& trials =
        trials_[{choices.takes(quantize::kEqualizeChannels), choices.algorithm, choices.adaptive_rounding}];
    if (!trials) {
      auto made = std::make_unique<Trials>(floats_, stage_.op_set(), choices, kTrialSamples);
      ORKNN_TRY(made->add_parts(parts_));
      trials = std::move(made);
    }
    return trials.get();
  }
  Result<Losses> measure(const quantize::QuantizeOptions& choices, Trials::Extent extent = Trials::Extent::All,
                         double allowed = 0) {
    ORKNN_TRY_ASSIGN(Trials* const trials, trials_of(choices));
    ORKNN_TRY_ASSIGN(Losses losses, trials->measure(choices, extent, allowed));
    show(std::min(++tried_, kMostTrials - 1));
    return losses;
  }
  void show(int64_t done) const { options_.report("TryingSteps", done, kMostTrials); }

  Status try_without(const quantize::Step& step) {
    ORKNN_TRY_ASSIGN(const Trials* trials, trials_of(current_));
    if (!trials->matters(step)) {
      gains_.push_back({std::string(step.name), losses_.worst_mean(), losses_.worst_mean(), true});
      return {};
    }
    quantize::QuantizeOptions without = current_;
    without.leave_out(step);
    const double allowed = kClearly * losses_.worst_mean();
    ORKNN_TRY_ASSIGN(Losses losses, measure(without, Trials::Extent::UntilSure, allowed));
    const bool cut_short = losses.at_least > 0, kept = cut_short || losses.worst_mean() >= allowed;
    gains_.push_back(
        {std::string(step.name), losses_.worst_mean(), cut_short ? losses.at_least : losses.worst_mean(), kept, cut_short});
    if (!kept) take(std::move(without), std::move(losses));
    return {};
  }

  using Gains = bool (*)(const Losses& a, const Losses& b, size_t output);  // whether it does in `a`

  // One output that is not good enough gains in one of these ways, and none loses: other samples must not lose by the choice.
  static bool better(const Losses& a, const Losses& b, std::initializer_list<Gains> ways) {
    bool gains = false;
    for (size_t i = 0; i < a.mean.size(); ++i)
      gains |= b.mean[i] > kGoodEnough && std::ranges::any_of(ways, [&](Gains way) { return way(a, b, i); });
    return gains && loses_nowhere(a, b);
  }

  // Takes the ranges of another algorithm if outputs gain by them. Judged by networks that most of the samples calibrate: with
  // fewer of them ranges that clip look better than they are.
  Status try_ranges(quantize::Algorithm ranges, std::initializer_list<Gains> ways) {
    if (const size_t parts = Trials::parts_of(floats_.samples().size()); parts != parts_) {
      trials_.clear();
      parts_ = parts;
      ORKNN_TRY_ASSIGN(losses_, measure(current_));
    }
    if (ranges == current_.algorithm) return {};
    quantize::QuantizeOptions other = current_;
    other.algorithm = ranges;
    ORKNN_TRY_ASSIGN(Losses losses, measure(other));
    const bool kept = better(losses, losses_, ways);
    gains_.push_back({std::string(kOtherRanges), losses.worst_mean(), losses_.worst_mean(), kept});
    if (kept) take(std::move(other), std::move(losses));
    return {};
  }

  // Halves, which are measured already, tell first whether there is anything to gain.
  Status try_far_better_ranges(quantize::Algorithm ranges) {
    quantize::QuantizeOptions other = current_;
    other.algorithm = ranges;
    ORKNN_TRY_ASSIGN(const Losses losses, measure(other));
    if (losses.worst_mean() < losses_.worst_mean()) return try_ranges(ranges, {loses_far_less});
    gains_.push_back({std::string(kOtherRanges), losses.worst_mean(), losses_.worst_mean(), false});
    return {};
  }

  // Adaptive rounding never loses to `normal`: its own ranges are taken if outputs gain by them, and so are its weights, layer by
  // layer.
  Status try_rounding(quantize::Algorithm own_ranges) {
    ORKNN_TRY(try_ranges(own_ranges, {surely_loses_less, loses_far_less}));
    quantize::QuantizeOptions rounded = current_;
    rounded.adaptive_rounding = true;
    ORKNN_TRY_ASSIGN(const Trials* trials, trials_of(rounded));
    const std::vector<std::string> layers = trials->rounded_layers();
    rounded.nearest_layers = {layers.begin(), layers.end()};
    const double nearest = losses_.worst_mean();
    least_tried_ = 1;
    size_t tries = kMostRoundings;
    ORKNN_TRY(round_layers(layers, std::move(rounded), tries));
    const bool kept = current_.adaptive_rounding;
    gains_.push_back({std::string(quantize::kRoundAdaptively.name), kept ? losses_.worst_mean() : least_tried_, nearest, kept});
    return {};
  }

  // Rounds these layers adaptively too if outputs gain by it; else tries the first half of them, then the second.
  Status round_layers(std::span<const std::string> layers, quantize::QuantizeOptions more, size_t& tries) {
    if (layers.empty() || tries == 0) return {};
    --tries;
    if (current_.adaptive_rounding) more.nearest_layers = current_.nearest_layers;
    for (const std::string& name : layers) more.nearest_layers.erase(name);
    ORKNN_TRY_ASSIGN(Losses losses, measure(more));
    least_tried_ = std::min(least_tried_, losses.worst_mean());
    if (better(losses, losses_, {surely_loses_less})) {
      take(std::move(more), std::move(losses));
      return {};
    }
    if (layers.size() == 1) return {};
    for (const std::string& name : layers) more.nearest_layers.insert(name);
    ORKNN_TRY(round_layers(layers.first(layers.size() / 2), more, tries));
    return round_layers(layers.subspan(layers.size() / 2), std::move(more), tries);
  }

  void take(quantize::QuantizeOptions choices, Losses losses) {
    current_ = std::move(choices);
    losses_ = std::move(losses);
  }

  using Calibrating = std::tuple<bool, quantize::Algorithm, bool>;  // what networks that share a calibration have in common
  static constexpr int64_t kMostTrials = 6;                         // that progress counts on
  static constexpr size_t kMostRoundings = 16;                      // sets of layers that are rounded adaptively
  const BuildOptions& options_;
  const Calibrated& stage_;
  FloatNetwork& floats_;
  const std::optional<double> clips_above_;
  quantize::QuantizeOptions current_;
  Losses losses_;  // of current_
  int64_t tried_ = 0;
  size_t parts_ = 2;        // of the samples, each held back once
  double least_tried_ = 1;  // of the worst output, whatever was rounded adaptively
  std::vector<StepGain> gains_;
  std::map<Calibrating, std::unique_ptr<Trials>> trials_;
};

// Weights that each half of the samples fits, judged by the other half.
class WeightTrials {
 public:
  WeightTrials(const BuildOptions& options, const Stage& stage, const Samples& samples)
      : options_(options), stage_(stage), samples_(samples) {}

  Result<Losses> measure(quantize::WeightOnlyOptions choices) {
    if (golden_.empty()) ORKNN_TRY(find_golden(stage_.network.graph, samples_, golden_));
    const size_t half = samples_.size() / 2, rest = samples_.size() - half;
    choices.steps.dump = {};  // trials are not the network that is built
    choices.trace = nullptr;
    Losses losses;
    for (const bool first : {true, false}) {
      const size_t from = first ? 0 : half, judged = first ? half : 0;
      const Samples fitting = samples_.starting_at(from);
      choices.samples = first ? half : rest;
      if (choices.run)
        choices.run = [&](const ir::Graph& graph, size_t count, const quantize::Observe& observe) {
          return fitting.run(graph, count,
                             [&](size_t, std::string_view name, const ir::TensorView& value) { observe(name, value); });
        };
      ir::Graph rounded = stage_.network.graph;
      ORKNN_TRY(quantize::round_weights_only(rounded, stage_.op_set(), choices).status());
      ORKNN_TRY(judge(rounded, samples_, judged, std::min(first ? rest : half, kTrialSamples), golden_, losses));
      options_.report("TryingSteps", ++tried_, kMostTrials);
    }
    summarize(losses);
    return losses;
  }

 private:
  static constexpr int64_t kMostTrials = 6;
  const BuildOptions& options_;
  const Stage& stage_;
  const Samples& samples_;
  GoldenOutputs golden_;
  int64_t tried_ = 0;
};
}  // namespace

Result<WeightStepChoice> choose_weight_steps(const BuildOptions& options, const Stage& stage, quantize::WeightOnlyOptions choices,
                                             const Samples& samples) {
  WeightStepChoice chosen{std::move(choices), {}};
  if (samples.size() < Trials::kEnoughToSplit || !chosen.choices.run) return chosen;
  WeightTrials trials(options, stage, samples);
  ORKNN_TRY_ASSIGN(Losses losses, trials.measure(chosen.choices));
  const auto try_without = [&](const quantize::Step& step, quantize::WeightOnlyOptions without) -> Status {
    ORKNN_TRY_ASSIGN(Losses other, trials.measure(without));
    const bool kept = other.worst_mean() >= kClearly * losses.worst_mean();
    chosen.gains.push_back({std::string(step.name), losses.worst_mean(), other.worst_mean(), kept});
    if (kept) return {};
    chosen.choices = std::move(without);
    losses = std::move(other);
    return {};
  };
  if (chosen.choices.fit_to_samples) {
    quantize::WeightOnlyOptions without = chosen.choices;
    without.fit_to_samples = false;
    if (!without.steps.runs(quantize::kCorrectBias.name, quantize::kCorrectBias.min_level)) without.run = {};
    ORKNN_TRY(try_without(quantize::kRoundAdaptively, std::move(without)));
  }
  if (!chosen.choices.fit_to_samples && chosen.choices.run) {
    quantize::WeightOnlyOptions without = chosen.choices;
    without.run = {};
    ORKNN_TRY(try_without(quantize::kCorrectBias, std::move(without)));
  }
  return chosen;
}

Result<StepChoice> choose_steps(const BuildOptions& options, const Calibrated& stage, FloatNetwork& floats,
                                std::optional<double> clips_above) {
  if (floats.samples().size() < Trials::kEnoughToSplit) return StepChoice{stage.choices, {}, {}};
  return StepSearch(options, stage, floats, clips_above).run();
}

std::string step_table(const std::vector<StepGain>& gains) {
  if (gains.empty()) return {};
  std::string text = fmt::format("{:<20} {:>10} {:>10}  {}\n", "step", "with", "without", "loss of worst output (1 - cosine)");
  for (const StepGain& g : gains)
    text += fmt::format("{:<20} {:>10.6f} {:>10}  {}\n", g.step, g.with,
                        fmt::format("{}{:.6f}", g.at_least ? ">" : "", g.without), g.kept ? "kept" : "left out");
  return text;
}

nlohmann::ordered_json to_json(const std::vector<StepGain>& gains) {
  auto steps = nlohmann::ordered_json::array();
  for (const StepGain& g : gains)
    steps.push_back({{"step", g.step},
                     {"loss_with", g.with},
                     {"loss_without", g.without},
                     {"without_at_least", g.at_least},
                     {"kept", g.kept}});
  return steps;
}

}  // namespace orknn::toolkit
