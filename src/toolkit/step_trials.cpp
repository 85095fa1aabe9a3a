#include "toolkit/step_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace orknn::toolkit {
namespace {

// Below this loss of the worst output (1 - cosine) there is nothing left to win.
constexpr double kGoodEnough = 2e-4;
// Samples differ: another choice has to lose less than this part to be taken.
constexpr double kClearly = 0.95;

class StepSearch {
 public:
  StepSearch(const BuildOptions& options, const Calibrated& stage, const Samples& samples, size_t trial_samples)
      : options_(options), stage_(stage), samples_(samples), trial_samples_(trial_samples), current_(stage.choices) {
    current_.steps.dump = {};  // trials are not the network that is built
  }

  Result<StepChoice> run() {
    show(0);
    const quantize::QuantizeOptions wanted = current_;
    if (wanted.adaptive_rounding) ORKNN_TRY(quantize::set_algorithm(current_, "normal"));  // what it is measured by, and faster
    ORKNN_TRY_ASSIGN(losses_, measure(current_));
    if (losses_.worst_mean() > kGoodEnough)
      for (const quantize::Step* step : {&quantize::kEqualizeChannels, &quantize::kClipOutliers, &quantize::kCorrectBias})
        if (current_.takes(*step)) ORKNN_TRY(try_without(*step));
    if (wanted.adaptive_rounding) ORKNN_TRY(try_rounding(wanted.algorithm));
    current_.steps.dump = stage_.choices.steps.dump;
    show(kMostTrials);
    return StepChoice{std::move(current_), std::move(gains_), 1 - losses_.worst_expected()};
  }

 private:
  // Steps that come after calibration need none of their own.
  Result<Losses> measure(const quantize::QuantizeOptions& choices) {
    std::unique_ptr<Trials>& trials =
        trials_[{choices.takes(quantize::kEqualizeChannels), choices.algorithm, choices.adaptive_rounding}];
    if (!trials) {
      auto made = std::make_unique<Trials>(stage_.network.graph, stage_.forms.back(), stage_.op_set(), choices, samples_,
                                           trial_samples_, golden_);
      ORKNN_TRY(made->add_halves());
      trials = std::move(made);
    }
    ORKNN_TRY_ASSIGN(Losses losses, trials->measure(choices));
    show(std::min(++tried_, kMostTrials - 1));
    return losses;
  }
  void show(int64_t done) const { options_.report("TryingSteps", done, kMostTrials); }

  Status try_without(const quantize::Step& step) {
    quantize::QuantizeOptions without = current_;
    without.leave_out(step);
    ORKNN_TRY_ASSIGN(Losses losses, measure(without));
    const bool kept = losses.worst_mean() >= kClearly * losses_.worst_mean();
    gains_.push_back({std::string(step.name), losses_.worst_mean(), losses.worst_mean(), kept});
    if (!kept) take(std::move(without), std::move(losses));
    return {};
  }

  // Every output that is not good enough in any case keeps more with `a` than with `b`, by more than chance: other samples must
  // not lose by the choice.
  static bool surely_better(const Losses& a, const Losses& b) {
    for (size_t i = 0; i < a.mean.size(); ++i)
      if (a.mean[i] > kGoodEnough && !surely_loses_less(a, b, i)) return false;
    return true;
  }

  // Adaptive rounding with its own ranges and with the whole ones: the better of those that all outputs gain by, else neither.
  Status try_rounding(quantize::Algorithm own_ranges) {
    quantize::QuantizeOptions best = current_;
    Losses least = losses_, tried;
    for (const quantize::Algorithm ranges : {own_ranges, quantize::Algorithm::Normal}) {
      quantize::QuantizeOptions rounded = current_;
      rounded.adaptive_rounding = true;
      rounded.algorithm = ranges;
      ORKNN_TRY_ASSIGN(tried, measure(rounded));
      if (!surely_better(tried, losses_) || tried.worst_mean() > least.worst_mean()) continue;
      best = std::move(rounded);
      least = tried;
    }
    const bool kept = best.adaptive_rounding;
    gains_.push_back(
        {std::string(quantize::kRoundAdaptively.name), (kept ? least : tried).worst_mean(), losses_.worst_mean(), kept});
    take(std::move(best), std::move(least));
    return {};
  }

  void take(quantize::QuantizeOptions choices, Losses losses) {
    current_ = std::move(choices);
    losses_ = std::move(losses);
  }

  using Calibrating = std::tuple<bool, quantize::Algorithm, bool>;  // what networks that share a calibration have in common
  static constexpr int64_t kMostTrials = 6;
  const BuildOptions& options_;
  const Calibrated& stage_;
  const Samples& samples_;
  const size_t trial_samples_;
  quantize::QuantizeOptions current_;
  Losses losses_;  // of current_
  int64_t tried_ = 0;
  std::vector<StepGain> gains_;
  GoldenOutputs golden_;
  std::map<Calibrating, std::unique_ptr<Trials>> trials_;
};

// Weights that each half of the samples fits, judged by the other half.
class WeightTrials {
 public:
  WeightTrials(const BuildOptions& options, const Stage& stage, const Samples& samples, size_t trial_samples)
      : options_(options), stage_(stage), samples_(samples), most_(trial_samples) {}

  Result<Losses> measure(quantize::WeightOnlyOptions choices) {
    if (golden_.empty()) ORKNN_TRY(find_golden(stage_.network.graph, samples_, samples_.size(), golden_));
    const size_t half = samples_.size() / 2, rest = samples_.size() - half;
    choices.steps.dump = {};  // trials are not the network that is built
    choices.trace = nullptr;
    Losses losses;
    for (const bool first : {true, false}) {
      const size_t from = first ? 0 : half, judged = first ? half : 0;
      const Samples fitting = samples_.without_first(from);
      choices.samples = first ? half : rest;
      if (choices.run)
        choices.run = [&](const ir::Graph& graph, size_t count, const quantize::Observe& observe) {
          return fitting.run(graph, DType::Float32, count, observe);
        };
      ir::Graph rounded = stage_.network.graph;
      ORKNN_TRY(quantize::round_weights_only(rounded, stage_.op_set(), choices).status());
      ORKNN_TRY(judge(rounded, samples_, judged, std::min(first ? rest : half, most_), golden_, losses));
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
  const size_t most_;
  GoldenOutputs golden_;
  int64_t tried_ = 0;
};
}  // namespace

Result<WeightStepChoice> choose_weight_steps(const BuildOptions& options, const Stage& stage, quantize::WeightOnlyOptions choices,
                                             const Samples& samples, size_t trial_samples) {
  WeightStepChoice chosen{std::move(choices), {}};
  if (samples.size() < Trials::kEnoughToSplit || !chosen.choices.run) return chosen;
  WeightTrials trials(options, stage, samples, trial_samples);
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

Result<StepChoice> choose_steps(const BuildOptions& options, const Calibrated& stage, const Samples& samples,
                                size_t trial_samples) {
  if (samples.size() < Trials::kEnoughToSplit) return StepChoice{stage.choices, {}, {}};
  return StepSearch(options, stage, samples, trial_samples).run();
}

std::string step_table(const std::vector<StepGain>& gains) {
  if (gains.empty()) return {};
  std::string text =
      fmt::format("{:<20} {:>10} {:>10}  {}\n", "step", "with", "without", "loss of the worst output (1 - cosine)");
  for (const StepGain& g : gains)
    text += fmt::format("{:<20} {:>10.6f} {:>10.6f}  {}\n", g.step, g.with, g.without, g.kept ? "kept" : "left out");
  return text;
}

}  // namespace orknn::toolkit
