#include "toolkit/auto_hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/log.h"
#include "quantize/layer_forms.h"
#include "runtime/perf_report.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

// Groups whose effect is measured one by one.
constexpr size_t kMostGroups = 48;
// Networks computed to give single layers back to integers.
constexpr size_t kMostRefinements = 40;
// Part of the loss that the goal allows: the search takes what just passes on its samples, other ones lose more.
constexpr double kCaution = 0.5;
constexpr std::string_view kStage = "AutoHybrid";

bool copies_values(quantize::Form form) { return form == quantize::Form::Move || form == quantize::Form::Concat; }

// Whether a copy, or the chain of copies that ends in it, begins at an input of the network.
bool comes_from_input(const Graph& graph, const quantize::LayerForms& forms, const Node& n) {
  const NodeId maker = graph.producer(n.input(0));
  return maker ? copies_values(forms[maker].form) && comes_from_input(graph, forms, graph.node(maker))
               : graph.is_input(n.input(0));
}

double allowed_loss(const HybridGoal& goal) { return std::max(1e-7, kCaution * (1 - goal.cosine)); }

// What the worst output loses by what it may lose.
double share_of_allowed(const Losses& losses, const HybridGoal& goal) {
  const double share = losses.worst_expected() / allowed_loss(goal);
  return goal.euclid ? std::max(share, losses.euclid / std::max(1e-12, *goal.euclid)) : share;
}

using PredictTime = std::function<Result<std::optional<double>>(const Graph&)>;  // in microseconds; nothing when it is unknown

class Search {
 public:
  Search(Trials& trials, const HybridGoal& goal, const PredictTime& predict, const Progress& progress)
      : reference_(trials.reference()),
        forms_(trials.forms()),
        trials_(trials),
        goal_(goal),
        predict_(predict),
        progress_(progress) {}

  Result<HybridChoice> run(const std::vector<quantize::LayerDecision>& decisions) {
    for (const quantize::LayerDecision& d : decisions) {
      const TensorId t = reference_.find_tensor(d.output);
      const NodeId n = t ? reference_.producer(t) : NodeId{};
      if (d.integer && n && !copies_values(forms_[n].form)) units_.push_back(d.output);
    }
    HybridChoice choice;
    choice.candidates = units_.size();
    expected_ = steps_expected();
    show(0);
    ORKNN_TRY_ASSIGN(const Losses whole, trials_.measure(LayerNames{}));
    choice.integer_losses = choice.losses = whole;
    choice.reached = share_of_allowed(whole, goal_) <= 1;
    if (!choice.reached) {
      std::vector<size_t> all(units_.size());
      std::iota(all.begin(), all.end(), size_t{0});
      ORKNN_TRY_ASSIGN(const double wide_cost, cost(all));
      ORKNN_TRY_ASSIGN(Found found, cheapest_set(all, wide_cost));
      ORKNN_TRY(give_back(found));
      // Conversions between formats can cost more than the narrow one saves.
      if (found.cost >= wide_cost) found = {all, wide_cost};
      choice.all_wide = found.units.size() == units_.size();
      choice.wide_layers = with_copies(reference_, forms_, names(found.units));
      choice.losses = {};
      if (!choice.all_wide || trials_.wider()) {
        ORKNN_TRY_ASSIGN(choice.losses, trials_.measure(choice.wide_layers));
      }
      choice.reached = kCaution * share_of_allowed(choice.losses, goal_) <= 1;
    }
    choice.runs = runs_;
    if (progress_) progress_(kStage, expected_, expected_);
    return choice;
  }

 private:
  struct Found {
    std::vector<size_t> units;  // in float or in the wider format, in order
    double cost = 0;
  };

  int64_t steps_expected() const {
    const size_t groups = std::min(units_.size(), kMostGroups);
    return static_cast<int64_t>(groups + 4 * static_cast<size_t>(std::ceil(std::log2(static_cast<double>(groups + 2)))) +
                                kMostRefinements + 3);
  }
  void show(size_t done) const {
    if (progress_) progress_(kStage, std::min<int64_t>(static_cast<int64_t>(done), expected_ - 1), expected_);
  }

  Result<double> harm_of(const std::vector<size_t>& wide, Trials::Extent extent) {
    show(runs_++);
    ORKNN_TRY_ASSIGN(const Losses losses,
                     trials_.measure(with_copies(reference_, forms_, names(wide)), extent, allowed_loss(goal_)));
    return share_of_allowed(losses, goal_);
  }

  LayerNames names(const std::vector<size_t>& units) const {
    LayerNames list;
    for (size_t u : units) list.insert(units_[u]);
    return list;
  }

  // Predicted time of the network with these layers in the wider format; their number where the chip's speed is unknown.
  Result<double> cost(const std::vector<size_t>& wide) {
    Graph graph = reference_;
    if (wide.size() < units_.size() || trials_.wider()) {
      ORKNN_TRY_ASSIGN(graph, trials_.quantized(with_copies(reference_, forms_, names(wide))));
    }
    ORKNN_TRY_ASSIGN(const std::optional<double> us, predict_(graph));
    return us.value_or(static_cast<double>(wide.size()));
  }

  // Where the search looks for sets: groups are put into integers from the most harmless on; or all of them but the first and
  // the last ones, which see pictures and results.
  Result<Found> cheapest_set(const std::vector<size_t>& all, double wide_cost) {
    const size_t groups = std::min(units_.size(), kMostGroups);
    members_.assign(groups, {});
    for (size_t u : all) members_[u * groups / units_.size()].push_back(u);
    ORKNN_TRY(measure_groups(all));
    Found best{all, wide_cost};
    ORKNN_TRY(try_harmless_first(best));
    for (size_t first = 0; first < groups; first += first < 4 ? 1 : first / 4) ORKNN_TRY(try_middle(first, best));
    return best;
  }

  // What each group does to the results when it alone is in integers.
  Status measure_groups(const std::vector<size_t>& all) {
    harm_.assign(units_.size(), 0);
    for (const std::vector<size_t>& group : members_) {
      std::vector<size_t> others;
      std::ranges::set_difference(all, group, std::back_inserter(others));
      ORKNN_TRY_ASSIGN(const double harm, harm_of(others, Trials::Extent::FewSamples));
      for (size_t u : group) harm_[u] = harm;
    }
    return {};
  }

  std::vector<size_t> units_of(std::span<const size_t> groups) const {
    std::vector<size_t> units;
    for (size_t g : groups) units.insert(units.end(), members_[g].begin(), members_[g].end());
    std::ranges::sort(units);
    return units;
  }

  Status try_harmless_first(Found& best) {
    std::vector<size_t> order(members_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t g) { return harm_[members_[g].front()]; });
    const auto rest = [&](size_t first) { return units_of(std::span(order).subspan(first)); };
    size_t good = 0, bad = order.size();  // so many first groups in integers are known to be fine, or not to be
    while (bad - good > 1) {
      const size_t middle = (good + bad) / 2;
      ORKNN_TRY_ASSIGN(const double share, harm_of(rest(middle), Trials::Extent::UntilMissed));
      (share <= 1 ? good : bad) = middle;
    }
    return good > 0 ? keep_if_faster(rest(good), best) : Status();
  }

  // The first `first` groups stay in float, and as few of the last ones as the goal allows.
  Status try_middle(size_t first, Found& best) {
    const size_t groups = members_.size();
    const auto ends = [&](size_t last) {
      std::vector<size_t> chosen;
      for (size_t g = 0; g < groups; ++g)
        if (g < first || g >= groups - last) chosen.push_back(g);
      return units_of(chosen);
    };
    // More than so many last groups in float would make it slower than what is known.
    size_t most = 0;
    for (size_t least_slow = groups - first; most + 1 < least_slow;) {
      const size_t middle = (most + least_slow) / 2;
      ORKNN_TRY_ASSIGN(const double us, cost(ends(middle)));
      (us < best.cost ? most : least_slow) = middle;
    }
    if (first == 0 && most == 0) return {};  // all in integers is not good enough
    ORKNN_TRY_ASSIGN(const double share, harm_of(ends(most), Trials::Extent::UntilMissed));
    if (share > 1) return {};
    size_t good = most;
    for (int64_t bad = -1; static_cast<int64_t>(good) - bad > 1;) {
      const size_t middle = static_cast<size_t>((static_cast<int64_t>(good) + bad) / 2);
      ORKNN_TRY_ASSIGN(const double found, harm_of(ends(middle), Trials::Extent::UntilMissed));
      if (found <= 1)
        good = middle;
      else
        bad = static_cast<int64_t>(middle);
    }
    return keep_if_faster(ends(good), best);
  }

  // Short runs of integer layers between float ones cost more in conversions than they save: they become float layers too, which
  // takes nothing from the results.
  Status keep_if_faster(std::vector<size_t> units, Found& best) {
    Found found{std::move(units), 0};
    ORKNN_TRY_ASSIGN(found.cost, cost(found.units));
    for (bool shrinks = true; shrinks;) {
      shrinks = false;
      for (const std::vector<size_t>& run : integer_runs(found.units)) {
        Found closed;
        std::ranges::merge(found.units, run, std::back_inserter(closed.units));
        ORKNN_TRY_ASSIGN(closed.cost, cost(closed.units));
        if (closed.cost >= found.cost) continue;
        found = std::move(closed);
        shrinks = true;
      }
    }
    if (found.cost < best.cost) best = std::move(found);
    return {};
  }

  // Layers between two float ones in execution order, the shortest runs first.
  std::vector<std::vector<size_t>> integer_runs(const std::vector<size_t>& in_float) const {
    std::vector<std::vector<size_t>> runs;
    for (size_t u = 0; u < units_.size(); ++u) {
      if (std::ranges::binary_search(in_float, u)) continue;
      if (runs.empty() || runs.back().back() + 1 != u) runs.emplace_back();
      runs.back().push_back(u);
    }
    std::ranges::stable_sort(runs, {}, &std::vector<size_t>::size);
    return runs;
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

  // Layers of the set that turn out not to be needed in it, and without which it is no slower, tried in shrinking portions.
  Status give_back(Found& found) {
    std::vector<size_t> queue = found.units;
    const LayerNames all = names(found.units);
    // Between integer layers a float layer gains least: its operands are rounded anyway.
    std::stable_sort(queue.begin(), queue.end(), [&](size_t a, size_t b) {
      const bool fa = has_float_neighbour(a, all), fb = has_float_neighbour(b, all);
      return fa != fb ? fb : harm_[a] < harm_[b];
    });
    size_t portion = std::max<size_t>(1, queue.size() / 4);
    for (size_t tries = 0; tries < kMostRefinements && !queue.empty(); ++tries) {
      portion = std::min(portion, queue.size());
      const auto end = queue.begin() + static_cast<std::ptrdiff_t>(portion);
      Found fewer;
      for (size_t u : found.units)
        if (std::find(queue.begin(), end, u) == end) fewer.units.push_back(u);
      ORKNN_TRY_ASSIGN(fewer.cost, cost(fewer.units));
      bool taken = fewer.cost <= found.cost;
      if (taken) {
        ORKNN_TRY_ASSIGN(const double share, harm_of(fewer.units, Trials::Extent::UntilMissed));
        taken = share <= 1;
      }
      if (taken) {
        found = std::move(fewer);
      } else if (portion > 1) {
        portion /= 2;
        continue;
      }
      queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(portion));
    }
    return {};
  }

  const Graph& reference_;
  const quantize::LayerForms& forms_;
  Trials& trials_;
  const HybridGoal& goal_;
  const PredictTime& predict_;
  const Progress& progress_;
  std::vector<std::string> units_;            // candidates in execution order
  std::vector<std::vector<size_t>> members_;  // of the groups
  std::vector<double> harm_;                  // by unit: of its group alone
  int64_t expected_ = 1;
  size_t runs_ = 0;
};

LayerNames all_layers(const Graph& graph) {
  LayerNames all;
  for (NodeId id : graph.order())
    for (TensorId t : graph.node(id).outputs)
      if (t) all.insert(graph.tensor(t).name);
  return all;
}

struct Cost {
  std::optional<double> us;        // nothing when the chip's speed is unknown
  double macs = 0, wide_macs = 0;  // multiplications, and those in more than 8 bits
};

Result<Cost> cost_of(const Graph& graph, const compile::CompileOptions& compiling) {
  compile::CompileOptions options = compiling;
  options.warn = {};
  ORKNN_TRY_ASSIGN(format::Program program, compile::compile(graph, options));
  Cost c;
  for (const format::Task& t : program.tasks) {
    const TensorId made = program.graph.node(t.node).output();
    c.macs += static_cast<double>(t.macs);
    if (made && dtype_bytes(program.graph.tensor(made).dtype) > 1) c.wide_macs += static_cast<double>(t.macs);
  }
  format::Model model;
  model.target_platform = compiling.platform->name;
  model.programs.push_back(std::move(program));
  c.us = runtime::predicted_microseconds(model);
  return c;
}

// The choice in sentences, with what it costs on the chip.
Result<std::vector<std::string>> describe_choice(const HybridChoice& choice, const HybridGoal& goal, Trials& trials,
                                                 const compile::CompileOptions& compiling) {
  std::vector<std::string> lines;
  const double cosine = 1 - choice.losses.worst_expected(), integer_cosine = 1 - choice.integer_losses.worst_expected();
  if (choice.wide_layers.empty()) {
    lines.push_back(
        fmt::format("auto_hybrid: all {} layers are integer ones, every output can be expected to reach a cosine of {:.5f}.",
                    choice.candidates, cosine));
    return lines;
  }
  const Graph& floats = trials.reference();
  const std::string_view type = trials.wider() ? "int16" : "float16", narrow = trials.wider() ? "int8" : "integers";
  ORKNN_TRY_ASSIGN(const Graph integer_graph, trials.quantized({}));
  ORKNN_TRY_ASSIGN(const Cost integers, cost_of(integer_graph, compiling));
  Graph wide_graph = floats;
  if (trials.wider()) {
    ORKNN_TRY_ASSIGN(wide_graph, trials.quantized(all_layers(floats)));
  }
  ORKNN_TRY_ASSIGN(const Cost wide, cost_of(wide_graph, compiling));
  Cost hybrid = wide;
  if (!choice.all_wide || trials.wider()) {
    ORKNN_TRY_ASSIGN(const Graph hybrid_graph, trials.quantized(choice.wide_layers));
    ORKNN_TRY_ASSIGN(hybrid, cost_of(hybrid_graph, compiling));
  }
  // Copies that follow their layers are not counted.
  size_t layers = 0;
  std::string names;
  for (NodeId id : floats.order()) {
    const Node& n = floats.node(id);
    const std::string name = n.output() ? floats.tensor(n.output()).name : "";
    if (!choice.wide_layers.contains(name) || copies_values(trials.forms()[id].form)) continue;
    ++layers;
    names += (names.empty() ? "" : ", ") + name;
  }
  const std::string_view verb = trials.wider() ? "are computed" : "stay";
  if (choice.all_wide)
    lines.push_back(
        fmt::format("auto_hybrid: all {0} layers {1} in {2}: at this threshold the conversions between {3} and {2} would "
                    "cost more time than {3} save",
                    choice.candidates, verb, type, narrow));
  else
    lines.push_back(fmt::format("auto_hybrid: {} of {} layers {} in {}: {}", layers, choice.candidates, verb, type, names));
  lines.push_back(
      fmt::format("auto_hybrid: lowest cosine of an output to expect {:.5f}, with all layers in {} {:.5f} ({} networks computed)",
                  cosine, narrow, integer_cosine, choice.runs));
  const auto time = [](const std::optional<double>& us) {
    return us ? fmt::format("{:.2f} ms", *us / 1000) : std::string("unknown time");
  };
  lines.push_back(fmt::format("auto_hybrid: predicted {} on {}, all {} {}, all {} {}; {:.1f} % of the multiplications in {}",
                              time(hybrid.us), compiling.platform->name, narrow, time(integers.us), type, time(wide.us),
                              hybrid.macs > 0 ? 100 * hybrid.wide_macs / hybrid.macs : 0, type));
  if (!choice.reached)
    lines.push_back(fmt::format("auto_hybrid: the threshold {} is not reached with this choice either!", goal.cosine));
  return lines;
}

// What layers that leave 8 bits are computed in, nothing = float16: what the chip has. Of both, 16-bit integers if the whole
// network reaches the goal in them and is predicted to be faster.
Status choose_wider_format(const platform::Platform& chip, const quantize::NumberFormat& format,
                           const compile::CompileOptions& compiling, const HybridGoal& goal, Trials& trials) {
  if (!chip.conv_int16() || format.bits() > 8) return {};
  const bool has_w16 = std::ranges::count(chip.quantized_dtypes, "w16a16i") > 0;
  ORKNN_TRY_ASSIGN(const quantize::NumberFormat wider, number_format(chip, has_w16 ? "w16a16i" : "dynamic_fixed_point-i16"));
  trials.set_wider(wider);
  if (!chip.conv_half) return {};
  const LayerNames all = all_layers(trials.reference());
  ORKNN_TRY_ASSIGN(const Graph integers, trials.quantized(all));
  ORKNN_TRY_ASSIGN(const Cost in_int16, cost_of(integers, compiling));
  ORKNN_TRY_ASSIGN(const Cost in_float, cost_of(trials.reference(), compiling));
  bool taken = in_int16.us && in_float.us && *in_int16.us < *in_float.us;
  if (taken) {
    ORKNN_TRY_ASSIGN(const Losses losses, trials.measure(all));
    taken = share_of_allowed(losses, goal) <= 1;
  }
  if (!taken) trials.set_wider({});
  return {};
}
}  // namespace

LayerNames with_copies(const Graph& reference, const quantize::LayerForms& forms, LayerNames layers) {
  for (NodeId id : reference.order()) {
    const Node& n = reference.node(id);
    if (!copies_values(forms[id].form)) continue;
    bool any = false, all = true;
    for (size_t i = 0; i < quantize::data_inputs(n, forms[id].form); ++i) {
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
  // Copies of what enters the network follow the layers that read them.
  const std::vector<NodeId>& order = reference.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& n = reference.node(*it);
    if (!copies_values(forms[*it].form) || n.outputs.size() != 1 || !comes_from_input(reference, forms, n)) continue;
    const std::span<const NodeId> users = reference.users(n.output());
    if (!users.empty() && !reference.is_output(n.output()) && std::ranges::all_of(users, [&](NodeId u) {
          const TensorId made = reference.node(u).output();
          return made && layers.contains(reference.tensor(made).name);
        }))
      layers.insert(reference.tensor(n.output()).name);
  }
  return layers;
}

Result<HybridChoice> find_wide_layers(Trials& trials, const HybridGoal& goal, const compile::CompileOptions& compiling,
                                      const Progress& progress) {
  const PredictTime predict = [&](const Graph& graph) -> Result<std::optional<double>> {
    ORKNN_TRY_ASSIGN(const Cost cost, cost_of(graph, compiling));
    return cost.us;
  };
  ORKNN_TRY(trials.quantized({}).status());
  const std::vector<quantize::LayerDecision> decisions = trials.decisions();
  return Search(trials, goal, predict, progress).run(decisions);
}

Result<AutoHybrid> choose_layer_formats(const BuildOptions& options, const Calibrated& stage, FloatNetwork& floats,
                                        size_t trial_samples, const HybridGoal& goal) {
  quantize::QuantizeOptions choices = stage.choices;
  choices.steps.dump = {};  // trials are not the network that is built
  Trials trials(floats, stage.op_set(), choices, trial_samples);
  ORKNN_TRY(trials.add_whole());
  if (floats.samples().size() >= Trials::kEnoughToSplit) ORKNN_TRY(trials.add_parts(Trials::parts_of(floats.samples().size())));
  const compile::CompileOptions compiling = compile_options(options, stage.normalization);
  ORKNN_TRY(choose_wider_format(*options.chip, stage.choices.format, compiling, goal, trials));
  ORKNN_TRY_ASSIGN(HybridChoice choice, find_wide_layers(trials, goal, compiling, options.progress));
  AutoHybrid result{.formats = stage.choices.formats};
  ORKNN_TRY_ASSIGN(result.summary, describe_choice(choice, goal, trials, compiling));
  if (trials.wider()) {
    for (const std::string& name : choice.wide_layers) result.formats.insert_or_assign(name, *trials.wider());
  } else {
    result.float_layers = std::move(choice.wide_layers);
    result.all_float = choice.all_wide;
  }
  for (const std::string& line : result.summary) log(LogLevel::Info, "build", line);
  return result;
}

}  // namespace orknn::toolkit
