#include "toolkit/trials.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "quantize/adaptive_rounding.h"
#include "runtime/convert.h"
#include "toolkit/accuracy.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

double sum_of(const std::vector<double>& list) { return std::accumulate(list.begin(), list.end(), 0.0); }

double mean_of(const std::vector<double>& list) { return list.empty() ? 0 : sum_of(list) / static_cast<double>(list.size()); }

// Of the average; needs two values.
double standard_error(const std::vector<double>& list) {
  const double count = static_cast<double>(list.size()), mean = mean_of(list);
  double squares = 0;
  for (double v : list) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / (count - 1) / count);
}

// The average of these and twice its standard error. Of very few samples, the worst.
double expected_loss(const std::vector<double>& losses) {
  constexpr size_t kEnoughToEstimate = 4;
  if (losses.size() < kEnoughToEstimate) return losses.empty() ? 0 : *std::max_element(losses.begin(), losses.end());
  return mean_of(losses) + 2 * standard_error(losses);
}

double largest(const std::vector<double>& list) { return list.empty() ? 0 : *std::max_element(list.begin(), list.end()); }

std::vector<float> as_floats(const Graph& graph, size_t output, const TensorView& value) {
  Tensor described = graph.tensor(graph.outputs()[output]);
  described.dtype = value.dtype;
  std::vector<float> numbers(static_cast<size_t>(value.count()));
  runtime::convert_output(described, value, DType::Float32, numbers.data(), ThreadPool::shared());
  return numbers;
}

// The outputs of a graph, by the names of their tensors.
std::multimap<std::string, size_t, std::less<>> outputs_by_name(const Graph& graph) {
  std::multimap<std::string, size_t, std::less<>> outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i) outputs.emplace(graph.tensor(graph.outputs()[i]).name, i);
  return outputs;
}

// Computes samples of `graph` and writes its outputs down on the way, where `golden` has none yet.
quantize::RunSamples recording(const Graph& graph, const Samples& samples, GoldenOutputs* golden, Samples::Done done) {
  return [&, golden, done = std::move(done)](const Graph& computed, size_t count, const quantize::Observe& observe) -> Status {
    const auto outputs = outputs_by_name(graph);
    const bool records = golden && golden->empty();
    if (records) golden->assign(count, std::vector<std::vector<float>>(graph.outputs().size()));
    return samples.run(
        computed, count,
        [&](size_t sample, std::string_view name, const TensorView& value) {
          if (records)
            for (auto [it, end] = outputs.equal_range(name); it != end; ++it)
              (*golden)[sample][it->second] = as_floats(graph, it->second, value);
          observe(name, value);
        },
        done);
  };
}
}  // namespace

bool surely_loses_less(const Losses& a, const Losses& b, size_t i) {
  constexpr double kMuchLess = 0.75;
  constexpr double kNoLoss = 1e-6;  // float32 shows no smaller one
  const std::vector<double>&less = a.by_sample[i], &more = b.by_sample[i];
  if (mean_of(less) >= mean_of(more)) return false;
  std::vector<double> gains, factors;
  for (size_t k = 0; k < less.size(); ++k) {
    gains.push_back(more[k] - less[k]);
    factors.push_back(std::log((more[k] + kNoLoss) / (less[k] + kNoLoss)));
  }
  const auto sure = [](const std::vector<double>& list) { return list.size() < 2 || mean_of(list) >= 2 * standard_error(list); };
  // A few samples that lose far more than all others make gains vary, but not by how much of its loss each sample gains.
  return sure(gains) || (mean_of(less) <= kMuchLess * mean_of(more) && sure(factors));
}

bool loses_far_less(const Losses& a, const Losses& b, size_t i) {
  constexpr size_t kEnoughSamples = 8;
  constexpr double kFarLess = 2.0 / 3, kSeveral = 1.2;
  const std::vector<double>&less = a.by_sample[i], &more = b.by_sample[i];
  if (less.size() < kEnoughSamples || mean_of(less) > kFarLess * mean_of(more)) return false;
  std::vector<double> gains;
  for (size_t k = 0; k < less.size(); ++k) gains.push_back(more[k] - less[k]);
  // A single sample that gains reaches 1.
  return mean_of(gains) >= kSeveral * standard_error(gains) || surely_loses_less(a, b, i);
}

bool loses_nowhere(const Losses& a, const Losses& b) {
  constexpr double kUnseen = 5e-5;
  for (size_t i = 0; i < a.mean.size(); ++i)
    if (a.mean[i] > kUnseen && (a.mean[i] > b.mean[i] || a.squares[i] > b.squares[i])) return false;
  return true;
}

double Losses::worst_mean() const { return largest(mean); }
double Losses::worst_expected() const { return largest(expected); }

FloatNetwork::FloatNetwork(const Graph& graph, const quantize::LayerForms& forms, const Samples& samples, bool trials,
                           Samples::Done done)
    : graph_(graph),
      forms_(forms),
      samples_(samples),
      measurements_(graph, forms, recording(graph, samples, trials ? &golden_ : nullptr, std::move(done)), samples.size(),
                    trials && samples.size() >= Trials::kEnoughToSplit) {}

Status find_golden(const Graph& graph, const Samples& samples, GoldenOutputs& golden) {
  golden.resize(samples.size());
  return samples.run_for_outputs(graph, samples.size(), [&](size_t sample, std::span<const TensorView> outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) golden[sample].push_back(as_floats(graph, i, outputs[i]));
    return true;
  });
}

Status judge(const Graph& graph, const Samples& samples, size_t first, size_t count, const GoldenOutputs& golden, Losses& losses,
             double enough) {
  losses.by_sample.resize(graph.outputs().size());
  losses.squares.resize(graph.outputs().size(), 0);
  std::mutex mutex;  // guards what follows and `losses`
  std::vector<std::vector<Distance>> distances(count);
  size_t counted = 0;  // samples end in any order and count in theirs: what is left out does not depend on threads
  bool goes_on = true;
  return samples.starting_at(first).run_for_outputs(graph, count, [&](size_t sample, std::span<const TensorView> outputs) {
    std::vector<Distance> own;
    for (size_t i = 0; i < outputs.size(); ++i)
      own.push_back(distance(golden[(first + sample) % golden.size()][i], as_floats(graph, i, outputs[i])));
    const std::lock_guard lock(mutex);
    distances[sample] = std::move(own);
    for (; goes_on && counted < count && !distances[counted].empty(); ++counted)
      for (size_t i = 0; i < losses.by_sample.size(); ++i) {
        const Distance& d = distances[counted][i];
        const double euclid = d.word.empty() ? d.euclid : INFINITY;
        losses.by_sample[i].push_back(d.word.empty() ? 1 - d.cosine : 1);
        losses.squares[i] += euclid * euclid;
        losses.euclid = std::max(losses.euclid, euclid);
        goes_on &= sum_of(losses.by_sample[i]) <= enough;
      }
    return goes_on;
  });
}

void summarize(Losses& losses) {
  for (const std::vector<double>& list : losses.by_sample) {
    std::vector<double> calibrated, held_back;
    for (size_t k = 0; k < list.size(); ++k)
      (k < losses.calibrated.size() && losses.calibrated[k] ? calibrated : held_back).push_back(list[k]);
    losses.mean.push_back(mean_of(list));
    losses.expected.push_back(std::max(expected_loss(calibrated), expected_loss(held_back)));
  }
}

Trials::Trials(FloatNetwork& floats, const OpSet& ops, quantize::QuantizeOptions choices, size_t most_samples)
    : floats_(floats), ops_(ops), choices_(std::move(choices)), most_samples_(most_samples) {}

Status Trials::add_parts(size_t parts) {
  const size_t all = floats_.samples().size();
  for (size_t part = parts; part-- > 0;) {
    const size_t begin = part * all / parts, end = (part + 1) * all / parts;
    quantize::KnownStatistics known;
    if (parts == 2) known = {&floats_.measurements(), part == 1 ? quantize::Part::FirstHalf : quantize::Part::SecondHalf};
    ORKNN_TRY(add(known, end % all, all - (end - begin), begin, end - begin));
  }
  return {};
}

Status Trials::add_whole() {
  const size_t samples = floats_.samples().size();
  return add({&floats_.measurements()}, 0, samples, 0, samples);
}

Status Trials::add(const quantize::KnownStatistics& known, size_t first, size_t count, size_t judged_first, size_t judged_count) {
  const Samples own = floats_.samples().starting_at(first);
  const auto run = [&](const Graph& computed, size_t limit, const quantize::Observe& observe) {
    return own.run(computed, limit, [&](size_t, std::string_view name, const TensorView& value) { observe(name, value); });
  };
  auto trial = std::make_unique<Trial>(
      Trial{floats_.graph(), {}, judged_first, std::min(judged_count, most_samples_), count == floats_.samples().size()});
  ORKNN_TRY_ASSIGN(trial->calibration, quantize::calibrate(trial->graph, ops_, floats_.forms(), run, count, choices_, known));
  sequence_.push_back(trials_.size());
  judged_ += trial->count;
  trials_.push_back(std::move(trial));
  return {};
}

std::vector<std::string> Trials::rounded_layers() const {
  std::vector<std::string> layers;
  const auto& rounded = trials_.front()->calibration.rounded;
  for (NodeId id : reference().order())
    for (TensorId t : reference().node(id).outputs)
      if (t && rounded && rounded->contains(reference().tensor(t).name)) layers.push_back(reference().tensor(t).name);
  return layers;
}

bool Trials::matters(const quantize::Step& step) const {
  return std::ranges::any_of(trials_, [&](const std::unique_ptr<Trial>& trial) {
    if (step.name == quantize::kEqualizeChannels.name) return trial->calibration.equalized;
    return step.name != quantize::kClipOutliers.name || !trial->calibration.cuts.empty();
  });
}

Result<Graph> Trials::lower(const Trial& from, const quantize::QuantizeOptions& choices) {
  Graph integers = from.graph;
  if (choices.takes(quantize::kClipOutliers) || from.calibration.cuts.empty()) {
    ORKNN_TRY_ASSIGN(decisions_, quantize::quantize(integers, ops_, floats_.forms(), from.calibration, choices));
  } else {
    quantize::Calibration uncut = from.calibration;
    uncut.cuts.clear();
    ORKNN_TRY_ASSIGN(decisions_, quantize::quantize(integers, ops_, floats_.forms(), uncut, choices));
  }
  return integers;
}

quantize::QuantizeOptions Trials::with_wide(const LayerNames& layers) const {
  quantize::QuantizeOptions choices = choices_;
  if (wider_)
    for (const std::string& name : layers) choices.formats.insert_or_assign(name, *wider_);
  else
    choices.keep_float = [&](const Node&, std::string_view output) { return layers.contains(output); };
  return choices;
}

Result<Graph> Trials::quantized(const LayerNames& wide_layers) { return lower(*trials_.front(), with_wide(wide_layers)); }

Result<Losses> Trials::measure(const LayerNames& wide_layers, Extent extent, double allowed) {
  return measure(with_wide(wide_layers), extent, allowed);
}

Result<Losses> Trials::measure(const quantize::QuantizeOptions& choices, Extent extent, double allowed) {
  Losses losses;
  const auto judged = static_cast<double>(judged_);
  for (size_t place = 0; place < sequence_.size(); ++place) {
    const Trial& trial = *trials_[sequence_[place]];
    ORKNN_TRY_ASSIGN(const Graph graph, lower(trial, choices));
    ORKNN_TRY(judge(graph, floats_.samples(), trial.first, extent == Extent::FewSamples ? 1 : trial.count, floats_.golden(),
                    losses, extent == Extent::UntilSure ? judged * allowed : INFINITY));
    if (!losses.by_sample.empty()) losses.calibrated.resize(losses.by_sample[0].size(), trial.whole);
    double worst = 0;
    for (const std::vector<double>& list : losses.by_sample) worst = std::max(worst, sum_of(list));
    if (worst <= judged * allowed) continue;
    if (extent == Extent::UntilSure) {
      losses.at_least = worst / judged;
      break;
    }
    if (extent == Extent::UntilMissed) {
      const auto at = sequence_.begin() + static_cast<std::ptrdiff_t>(place);
      std::rotate(sequence_.begin(), at, at + 1);
      break;
    }
  }
  summarize(losses);
  return losses;
}

}  // namespace orknn::toolkit
