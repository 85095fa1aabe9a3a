#include "toolkit/auto_hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/log.h"
#include "ops/eval.h"
#include "quantize/layer_forms.h"
#include "runtime/convert.h"
#include "runtime/perf_report.h"
#include "toolkit/accuracy.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

// Groups whose effect is measured one by one.
constexpr size_t kMostGroups = 48;
// Networks computed to give single layers back to integers.
constexpr size_t kMostRefinements = 40;
constexpr std::string_view kStage = "AutoHybrid";

bool copies_values(const Graph& graph, const Node& n) {
  const quantize::Form form = quantize::layer_form(graph, n).form;
  return form == quantize::Form::Move || form == quantize::Form::Concat;
}

// What the average over many other samples will hardly exceed: the average of these and twice its standard error. Of very few
// samples, the worst.
double expected_loss(const std::vector<double>& losses) {
  constexpr size_t kEnoughToEstimate = 4;
  if (losses.size() < kEnoughToEstimate) return losses.empty() ? 0 : *std::max_element(losses.begin(), losses.end());
  const double count = static_cast<double>(losses.size());
  const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / count;
  double squares = 0;
  for (double loss : losses) squares += (loss - mean) * (loss - mean);
  return mean + 2 * std::sqrt(squares / (count - 1) / count);
}

class Search {
 public:
  Search(const std::vector<HybridTrial>& trials, const HybridGoal& goal, const Progress& progress)
      : reference_(trials[0].reference),
        trials_(trials),
        goal_(goal),
        allowed_(std::max(1e-7, 1 - goal.cosine)),
        progress_(progress) {
    for (size_t t = 0; t < trials_.size(); ++t) {
      sequence_.push_back(t);
      samples_ += trials_[t].count;
    }
  }

  Result<HybridChoice> run(const std::vector<quantize::LayerDecision>& decisions) {
    for (const quantize::LayerDecision& d : decisions) {
      const TensorId t = reference_.find_tensor(d.output);
      const Node* n = t ? reference_.producer_node(t) : nullptr;
      if (d.integer && n && !copies_values(reference_, *n)) units_.push_back(d.output);
    }
    HybridChoice choice;
    choice.candidates = units_.size();
    expected_ = steps_expected();
    show(0);
    golden_.resize(trials_.size());
    for (size_t t = 0; t < trials_.size(); ++t)
      ORKNN_TRY(observe_outputs(trials_[t].samples, trials_[t].reference, trials_[t].count, golden_[t]));
    ORKNN_TRY_ASSIGN(const Measured whole, measure({}, Extent::All));
    choice.integer_cosine = choice.cosine = whole.cosine;
    if (whole.worst <= 1) {
      choice.reached = true;
    } else if (goal_.may_leave_float) {
      ORKNN_TRY_ASSIGN(std::vector<size_t> in_float, smallest_set());
      ORKNN_TRY(give_back(in_float));
      for (size_t u : in_float) choice.float_layers.insert(units_[u]);
      ORKNN_TRY_ASSIGN(const Measured end, measure(choice.float_layers, Extent::All));
      choice.cosine = end.cosine;
      choice.reached = end.worst <= 1;
      choice.float_layers = with_copies(reference_, std::move(choice.float_layers));
    }
    choice.runs = runs_;
    if (progress_) progress_(kStage, expected_, expected_);
    return choice;
  }

 private:
  using Outputs = std::vector<std::vector<std::vector<float>>>;  // per sample, per output
  struct Measured {
    std::vector<double> cosine;  // per output, as it must be expected on other samples
    double worst = 0;            // of all outputs: what is lost by what may be lost
  };
  enum class Extent { OneSample, UntilMissed, All };

  int64_t steps_expected() const {
    const size_t groups = std::min(units_.size(), kMostGroups);
    return static_cast<int64_t>(groups + 3 * static_cast<size_t>(std::ceil(std::log2(static_cast<double>(groups + 2)))) +
                                kMostRefinements + 3);
  }
  void show(size_t done) const {
    if (progress_) progress_(kStage, std::min<int64_t>(static_cast<int64_t>(done), expected_ - 1), expected_);
  }

  Status observe_outputs(const Samples& samples, const Graph& graph, size_t count, Outputs& to) const {
    std::map<std::string, std::vector<size_t>, std::less<>> wanted;
    for (size_t i = 0; i < graph.outputs().size(); ++i) wanted[graph.tensor(graph.outputs()[i]).name].push_back(i);
    to.assign(count, std::vector<std::vector<float>>(graph.outputs().size()));
    size_t sample = 0;
    const auto observe = [&](std::string_view name, const TensorView& value) {
      const auto it = wanted.find(name);
      if (it == wanted.end()) return;
      Tensor described = graph.tensor(graph.outputs()[it->second[0]]);
      described.dtype = value.dtype;
      std::vector<float> numbers(static_cast<size_t>(value.count()));
      runtime::convert_output(described, value, DType::Float32, numbers.data(), ThreadPool::shared());
      for (size_t i : it->second) to[sample][i] = numbers;
    };
    return samples.run(graph, DType::Float32, count, observe, [&](size_t) { ++sample; });
  }

  // A set that cannot reach the goal any more is left at the trial that shows it; the next set meets that trial first.
  Result<Measured> measure(const LayerNames& in_float, Extent extent) {
    show(runs_++);
    const LayerNames with_their_copies = with_copies(reference_, in_float);
    std::vector<std::vector<double>> losses(reference_.outputs().size());
    double euclid = 0;
    for (size_t place = 0; place < sequence_.size(); ++place) {
      const size_t t = sequence_[place];
      const HybridTrial& trial = trials_[t];
      ORKNN_TRY_ASSIGN(const Graph graph, trial.quantize(with_their_copies));
      Outputs found;
      ORKNN_TRY(observe_outputs(trial.samples, graph, extent == Extent::OneSample ? 1 : trial.count, found));
      bool missed = false;
      for (size_t i = 0; i < losses.size(); ++i) {
        for (size_t s = 0; s < found.size(); ++s) {
          const Distance d = distance(golden_[t][s][i], found[s][i]);
          losses[i].push_back(d.word.empty() ? 1 - d.cosine : 1);
          euclid = std::max(euclid, d.word.empty() ? d.euclid : INFINITY);
        }
        missed |= std::accumulate(losses[i].begin(), losses[i].end(), 0.0) > static_cast<double>(samples_) * allowed_;
      }
      if (extent == Extent::OneSample) break;
      if (extent == Extent::UntilMissed && missed) {
        std::rotate(sequence_.begin(), sequence_.begin() + static_cast<std::ptrdiff_t>(place),
                    sequence_.begin() + static_cast<std::ptrdiff_t>(place) + 1);
        break;
      }
    }
    Measured m;
    for (const std::vector<double>& list : losses) {
      m.cosine.push_back(1 - expected_loss(list));
      m.worst = std::max(m.worst, expected_loss(list) / allowed_);
    }
    if (goal_.euclid) m.worst = std::max(m.worst, euclid / std::max(1e-12, *goal_.euclid));
    return m;
  }

  LayerNames names(const std::vector<size_t>& units) const {
    LayerNames list;
    for (size_t u : units) list.insert(units_[u]);
    return list;
  }

  // Groups are put into integers in several orders: most harmless alone first, from the input on, from the outputs on. The order
  // that leaves the fewest layers in float wins.
  Result<std::vector<size_t>> smallest_set() {
    const size_t groups = std::min(units_.size(), kMostGroups);
    std::vector<std::vector<size_t>> members(groups);
    for (size_t u = 0; u < units_.size(); ++u) members[u * groups / units_.size()].push_back(u);
    harm_.assign(units_.size(), 0);
    std::vector<double> harm(groups);
    for (size_t g = 0; g < groups; ++g) {
      std::vector<size_t> others;
      for (size_t u = 0; u < units_.size(); ++u)
        if (u * groups / units_.size() != g) others.push_back(u);
      ORKNN_TRY_ASSIGN(const Measured alone, measure(names(others), Extent::OneSample));
      harm[g] = alone.worst;
      for (size_t u : members[g]) harm_[u] = alone.worst;
    }
    std::vector<size_t> forward(groups);
    for (size_t g = 0; g < groups; ++g) forward[g] = g;
    std::vector<size_t> backward(forward.rbegin(), forward.rend()), harmless = forward;
    std::stable_sort(harmless.begin(), harmless.end(), [&](size_t a, size_t b) { return harm[a] < harm[b]; });
    std::vector<size_t> best(units_.size());
    for (size_t u = 0; u < units_.size(); ++u) best[u] = u;
    for (const auto& order : {harmless, forward, backward}) {
      size_t good = 0, bad = groups;  // so many first groups in integers are known to be fine, or not to be
      const auto rest = [&](size_t first) {
        std::vector<size_t> units;
        for (size_t i = first; i < groups; ++i) units.insert(units.end(), members[order[i]].begin(), members[order[i]].end());
        return units;
      };
      while (bad - good > 1) {
        if (rest(bad).size() >= best.size()) break;  // cannot win any more
        const size_t middle = (good + bad) / 2;
        ORKNN_TRY_ASSIGN(const Measured m, measure(names(rest(middle)), Extent::UntilMissed));
        (m.worst <= 1 ? good : bad) = middle;
      }
      if (std::vector<size_t> found = rest(good); good > 0 && found.size() < best.size()) best = std::move(found);
    }
    std::sort(best.begin(), best.end());
    return best;
  }

  bool has_float_neighbour(size_t unit, const LayerNames& in_float) const {
    const TensorId t = reference_.find_tensor(units_[unit]);
    for (NodeId user : reference_.users(t))
      for (TensorId out : reference_.node(user).outputs)
        if (out && in_float.contains(reference_.tensor(out).name)) return true;
    for (TensorId in : reference_.producer_node(t)->inputs)
      if (in && in_float.contains(reference_.tensor(in).name)) return true;
    return false;
  }

  // Layers of the set that turn out not to be needed in it, tried in shrinking portions.
  Status give_back(std::vector<size_t>& in_float) {
    std::vector<size_t> queue = in_float;
    const LayerNames all = names(in_float);
    // Between integer layers a float layer gains least: its operands are rounded anyway.
    std::stable_sort(queue.begin(), queue.end(), [&](size_t a, size_t b) {
      const bool fa = has_float_neighbour(a, all), fb = has_float_neighbour(b, all);
      return fa != fb ? fb : harm_[a] < harm_[b];
    });
    size_t portion = std::max<size_t>(1, queue.size() / 4);
    for (size_t tries = 0; tries < kMostRefinements && !queue.empty(); ++tries) {
      portion = std::min(portion, queue.size());
      std::vector<size_t> fewer;
      for (size_t u : in_float)
        if (std::find(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(portion), u) ==
            queue.begin() + static_cast<std::ptrdiff_t>(portion))
          fewer.push_back(u);
      ORKNN_TRY_ASSIGN(const Measured m, measure(names(fewer), Extent::UntilMissed));
      if (m.worst <= 1)
        in_float = std::move(fewer);
      else if (portion > 1) {
        portion /= 2;
        continue;
      }
      queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(portion));
    }
    return {};
  }

  const Graph& reference_;  // of the first trial; all have the same layers
  const std::vector<HybridTrial>& trials_;
  std::vector<size_t> sequence_;  // in which trials are run
  size_t samples_ = 0;            // of all trials
  const HybridGoal& goal_;
  const double allowed_;  // loss of cosine
  const Progress& progress_;
  std::vector<std::string> units_;  // candidates in execution order
  std::vector<double> harm_;        // by unit: of its group alone
  std::vector<Outputs> golden_;     // per trial
  int64_t expected_ = 1;
  size_t runs_ = 0;
};

// Calibrations of one network on several sets of samples, and the trials that judge them.
class Trials {
 public:
  Trials(const Graph& graph, const OpSet& ops, quantize::QuantizeOptions choices, size_t most_samples)
      : graph_(graph), ops_(ops), choices_(std::move(choices)), most_samples_(most_samples) {}

  // The network calibrated on the first `count` samples of `on`, judged on up to `judged_count` of `judged_on`.
  Status add(const Samples& on, size_t count, const Samples& judged_on, size_t judged_count) {
    const auto run = [&](const Graph& computed, size_t limit, const quantize::Observe& observe) {
      return on.run(computed, DType::Float32, limit, observe);
    };
    auto network = std::make_unique<CalibratedGraph>(CalibratedGraph{graph_, {}});
    ORKNN_TRY_ASSIGN(network->calibration, quantize::calibrate(network->graph, ops_, run, count, choices_));
    list_.push_back({network->graph, judged_on, std::min(judged_count, most_samples_),
                     [this, from = network.get()](const LayerNames& float_layers) { return lower(*from, float_layers); }});
    calibrated_.push_back(std::move(network));
    return {};
  }
  const std::vector<HybridTrial>& list() const { return list_; }
  // Of the network that was lowered last.
  const std::vector<quantize::LayerDecision>& decisions() const { return decisions_; }

 private:
  struct CalibratedGraph {
    Graph graph;
    quantize::Calibration calibration;
  };

  Result<Graph> lower(const CalibratedGraph& from, const LayerNames& float_layers) {
    quantize::QuantizeOptions with = choices_;
    with.keep_float = [&](const Node&, std::string_view output) { return float_layers.contains(output); };
    Graph integers = from.graph;
    ORKNN_TRY_ASSIGN(decisions_, quantize::quantize(integers, ops_, from.calibration, with));
    return integers;
  }

  const Graph& graph_;
  const OpSet& ops_;
  const quantize::QuantizeOptions choices_;
  const size_t most_samples_;
  std::vector<std::unique_ptr<CalibratedGraph>> calibrated_;  // trials refer to them
  std::vector<HybridTrial> list_;
  std::vector<quantize::LayerDecision> decisions_;
};

// One search, with or without equalized channels; nothing when the goal is missed and the other kind should be tried.
Result<std::optional<AutoHybrid>> search_float_layers(const BuildOptions& options, const Calibrated& stage,
                                                      const quantize::QuantizeOptions& choices, const Samples& samples,
                                                      size_t trial_samples) {
  constexpr size_t kEnoughToSplit = 4;
  const size_t half = samples.size() / 2;
  const Samples rest = samples.without_first(half);
  Trials trials(stage.network.graph, stage.op_set(), choices, trial_samples);
  ORKNN_TRY(trials.add(samples, samples.size(), samples, samples.size()));
  if (samples.size() >= kEnoughToSplit) {
    ORKNN_TRY(trials.add(samples, half, rest, rest.size()));
    ORKNN_TRY(trials.add(rest, rest.size(), samples, half));
  }
  const HybridTrial& whole = trials.list()[0];
  ORKNN_TRY_ASSIGN(const Graph integers, whole.quantize({}));
  const std::vector<quantize::LayerDecision> decisions = trials.decisions();
  const HybridGoal goal{options.config.auto_hybrid_cos_thresh, options.config.auto_hybrid_euc_thresh,
                        !choices.takes(quantize::kEqualizeChannels)};
  ORKNN_TRY_ASSIGN(HybridChoice choice, find_float_layers(trials.list(), decisions, goal, options.progress));
  if (!choice.reached && choices.takes(quantize::kEqualizeChannels)) return std::optional<AutoHybrid>();
  ORKNN_TRY_ASSIGN(const Graph hybrid, whole.quantize(choice.float_layers));
  AutoHybrid result;
  ORKNN_TRY_ASSIGN(result.summary, describe_choice(choice, goal, {whole.reference, integers, hybrid},
                                                   compile_options(options, stage.normalization)));
  result.equalize = choices.takes(quantize::kEqualizeChannels);
  result.float_layers = std::move(choice.float_layers);
  return std::optional(std::move(result));
}
}  // namespace

LayerNames with_copies(const Graph& reference, LayerNames layers) {
  for (NodeId id : reference.order()) {
    const Node& n = reference.node(id);
    if (!copies_values(reference, n)) continue;
    bool any = false, all = true;
    for (size_t i = 0; i < (n.op == "Concat" ? n.own_input_count() : size_t{1}); ++i) {
      const Node* maker = n.input(i) ? reference.producer_node(n.input(i)) : nullptr;
      if (!maker) continue;
      const bool in_float = maker->output() && layers.contains(reference.tensor(maker->output()).name);
      any |= in_float;
      all &= in_float;
    }
    if (any && all)
      for (TensorId t : n.outputs)
        if (t) layers.insert(reference.tensor(t).name);
  }
  return layers;
}

Result<HybridChoice> find_float_layers(const std::vector<HybridTrial>& trials,
                                       const std::vector<quantize::LayerDecision>& decisions, const HybridGoal& goal,
                                       const Progress& progress) {
  return Search(trials, goal, progress).run(decisions);
}

Result<std::vector<std::string>> describe_choice(const HybridChoice& choice, const HybridGoal& goal, const HybridGraphs& graphs,
                                                 const compile::CompileOptions& compiling) {
  struct Cost {
    std::optional<double> us;  // nothing when the chip's speed is unknown
    double macs = 0, float_macs = 0;
  };
  const auto cost = [&](const Graph& graph) -> Result<Cost> {
    compile::CompileOptions options = compiling;
    options.warn = {};
    ORKNN_TRY_ASSIGN(format::Program program, compile::compile(graph, options));
    Cost c;
    for (const format::Task& t : program.tasks) {
      const TensorId made = program.graph.node(t.node).output();
      c.macs += static_cast<double>(t.macs);
      if (made && is_float(program.graph.tensor(made).dtype)) c.float_macs += static_cast<double>(t.macs);
    }
    format::Model model;
    model.target_platform = compiling.platform->name;
    model.programs.push_back(std::move(program));
    c.us = runtime::predicted_microseconds(model);
    return c;
  };
  const auto worst = [](const std::vector<double>& list) {
    return list.empty() ? 1.0 : *std::min_element(list.begin(), list.end());
  };
  std::vector<std::string> lines;
  if (choice.float_layers.empty() && choice.reached) {
    lines.push_back(
        fmt::format("auto_hybrid: all {} layers are integer ones, every output can be expected to reach a cosine of {:.5f}.",
                    choice.candidates, worst(choice.cosine)));
    return lines;
  }
  ORKNN_TRY_ASSIGN(const Cost floats, cost(graphs.floats));
  ORKNN_TRY_ASSIGN(const Cost integers, cost(graphs.integers));
  ORKNN_TRY_ASSIGN(const Cost hybrid, cost(graphs.hybrid));
  // Copies that follow their layers are not counted.
  size_t layers = 0;
  std::string names;
  for (NodeId id : graphs.floats.order()) {
    const Node& n = graphs.floats.node(id);
    const std::string name = n.output() ? graphs.floats.tensor(n.output()).name : "";
    if (!choice.float_layers.contains(name) || copies_values(graphs.floats, n)) continue;
    ++layers;
    names += (names.empty() ? "" : ", ") + name;
  }
  lines.push_back(fmt::format("auto_hybrid: {} of {} layers stay in float16: {}", layers, choice.candidates, names));
  lines.push_back(fmt::format(
      "auto_hybrid: lowest cosine of an output to expect {:.5f}, with all layers in integers {:.5f} ({} networks computed)",
      worst(choice.cosine), worst(choice.integer_cosine), choice.runs));
  const auto time = [](const std::optional<double>& us) {
    return us ? fmt::format("{:.2f} ms", *us / 1000) : std::string("unknown time");
  };
  lines.push_back(
      fmt::format("auto_hybrid: predicted {} on {}, all integer {}, all float16 {}; {:.1f} % of the multiplications in float16",
                  time(hybrid.us), compiling.platform->name, time(integers.us), time(floats.us),
                  hybrid.macs > 0 ? 100 * hybrid.float_macs / hybrid.macs : 0));
  if (hybrid.us && floats.us && *hybrid.us > *floats.us)
    lines.push_back(
        "auto_hybrid: the conversions between integers and float16 cost more time than the integers save; "
        "build(do_quantization=False) is faster on this chip");
  if (!choice.reached) lines.push_back(fmt::format("auto_hybrid: the threshold {} is not reached, even so!", goal.cosine));
  return lines;
}

Result<AutoHybrid> choose_float_layers(const BuildOptions& options, const Calibrated& stage, const Samples& samples,
                                       size_t trial_samples) {
  quantize::QuantizeOptions choices = stage.choices;
  choices.steps.dump = {};  // trials are not the network that is built
  ORKNN_TRY_ASSIGN(std::optional<AutoHybrid> found, search_float_layers(options, stage, choices, samples, trial_samples));
  if (!found) {
    choices.leave_out(quantize::kEqualizeChannels);
    ORKNN_TRY_ASSIGN(found, search_float_layers(options, stage, choices, samples, trial_samples));
  }
  for (const std::string& line : found->summary) log(LogLevel::Info, "build", line);
  return std::move(*found);
}

}  // namespace orknn::toolkit
