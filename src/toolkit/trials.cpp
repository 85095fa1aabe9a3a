#include "toolkit/trials.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "quantize/adaptive_rounding.h"
#include "runtime/convert.h"
#include "toolkit/accuracy.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

double mean_of(const std::vector<double>& list) {
  return list.empty() ? 0 : std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size());
}

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

// Writes down the outputs of a graph while it is computed.
class OutputRecorder {
 public:
  explicit OutputRecorder(const Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.outputs().size(); ++i) wanted_[graph.tensor(graph.outputs()[i]).name].push_back(i);
  }
  void see(std::string_view name, const TensorView& value, std::vector<std::vector<float>>& outputs) const {
    outputs.resize(graph_.outputs().size());
    const auto it = wanted_.find(name);
    if (it == wanted_.end()) return;
    Tensor described = graph_.tensor(graph_.outputs()[it->second[0]]);
    described.dtype = value.dtype;
    std::vector<float> numbers(static_cast<size_t>(value.count()));
    runtime::convert_output(described, value, DType::Float32, numbers.data(), ThreadPool::shared());
    for (size_t i : it->second) outputs[i] = numbers;
  }

 private:
  const Graph& graph_;
  std::map<std::string, std::vector<size_t>, std::less<>> wanted_;
};
}  // namespace

bool surely_loses_less(const Losses& a, const Losses& b, size_t i) {
  std::vector<double> gains = b.by_sample[i];
  for (size_t k = 0; k < gains.size(); ++k) gains[k] -= a.by_sample[i][k];
  const double gain = mean_of(gains);
  return gain > 0 && (gains.size() < 2 || gain >= 2 * standard_error(gains));
}

double Losses::worst_mean() const { return largest(mean); }
double Losses::worst_expected() const { return largest(expected); }

Status find_golden(const Graph& graph, const Samples& samples, size_t count, GoldenOutputs& golden) {
  const OutputRecorder recorder(graph);
  size_t sample = 0;
  return samples.run(
      graph, DType::Float32, count,
      [&](std::string_view name, const TensorView& value) { recorder.see(name, value, golden[sample]); },
      [&](size_t) { ++sample; });
}

Status judge(const Graph& graph, const Samples& samples, size_t first, size_t count, const GoldenOutputs& golden,
             Losses& losses) {
  losses.by_sample.resize(graph.outputs().size());
  const OutputRecorder recorder(graph);
  std::vector<std::vector<float>> found;
  size_t sample = first;
  return samples.starting_at(first).run(
      graph, DType::Float32, count, [&](std::string_view name, const TensorView& value) { recorder.see(name, value, found); },
      [&](size_t) {
        for (size_t i = 0; i < losses.by_sample.size(); ++i) {
          const Distance d = distance(golden.at(sample)[i], found[i]);
          losses.by_sample[i].push_back(d.word.empty() ? 1 - d.cosine : 1);
          losses.euclid = std::max(losses.euclid, d.word.empty() ? d.euclid : INFINITY);
        }
        ++sample;
      });
}

void summarize(Losses& losses) {
  for (const std::vector<double>& list : losses.by_sample) {
    losses.mean.push_back(mean_of(list));
    losses.expected.push_back(expected_loss(list));
  }
}

Trials::Trials(const Graph& graph, const quantize::LayerForms& forms, const OpSet& ops, quantize::QuantizeOptions choices,
               const Samples& samples, size_t most_samples, GoldenOutputs& golden)
    : graph_(graph),
      forms_(forms),
      ops_(ops),
      choices_(std::move(choices)),
      samples_(samples),
      most_samples_(most_samples),
      golden_(golden) {}

Status Trials::add_parts(size_t parts) {
  const size_t all = samples_.size();
  for (size_t part = parts; part-- > 0;) {
    const size_t begin = part * all / parts, end = (part + 1) * all / parts;
    ORKNN_TRY(add(end % all, all - (end - begin), begin, end - begin));
  }
  return {};
}

Status Trials::add_whole() { return add(0, samples_.size(), 0, samples_.size()); }

Status Trials::add(size_t first, size_t count, size_t judged_first, size_t judged_count) {
  const Samples on = samples_.starting_at(first);
  const size_t all = samples_.size();
  const auto run = [&](const Graph& computed, size_t limit, const quantize::Observe& observe) {
    const OutputRecorder recorder(computed);
    size_t sample = first;
    bool is_new = !golden_.contains(sample);
    return on.run(
        computed, DType::Float32, limit,
        [&](std::string_view name, const TensorView& value) {
          if (is_new) recorder.see(name, value, golden_[sample]);
          observe(name, value);
        },
        [&](size_t) {
          sample = (sample + 1) % all;
          is_new = !golden_.contains(sample);
        });
  };
  auto trial = std::make_unique<Trial>(Trial{graph_, {}, judged_first, std::min(judged_count, most_samples_)});
  ORKNN_TRY_ASSIGN(trial->calibration, quantize::calibrate(trial->graph, ops_, forms_, run, count, choices_));
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

Result<Graph> Trials::lower(const Trial& from, const quantize::QuantizeOptions& choices) {
  Graph integers = from.graph;
  if (choices.takes(quantize::kClipOutliers) || from.calibration.cuts.empty()) {
    ORKNN_TRY_ASSIGN(decisions_, quantize::quantize(integers, ops_, forms_, from.calibration, choices));
  } else {
    quantize::Calibration uncut = from.calibration;
    uncut.cuts.clear();
    ORKNN_TRY_ASSIGN(decisions_, quantize::quantize(integers, ops_, forms_, uncut, choices));
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
  for (size_t place = 0; place < sequence_.size(); ++place) {
    const Trial& trial = *trials_[sequence_[place]];
    ORKNN_TRY_ASSIGN(const Graph graph, lower(trial, choices));
    ORKNN_TRY(judge(graph, samples_, trial.first, extent == Extent::FewSamples ? 1 : trial.count, golden_, losses));
    const bool missed = std::ranges::any_of(losses.by_sample, [&](const std::vector<double>& list) {
      return std::accumulate(list.begin(), list.end(), 0.0) > static_cast<double>(judged_) * allowed;
    });
    if (extent == Extent::UntilMissed && missed) {
      const auto at = sequence_.begin() + static_cast<std::ptrdiff_t>(place);
      std::rotate(sequence_.begin(), at, at + 1);
      break;
    }
  }
  summarize(losses);
  return losses;
}

}  // namespace orknn::toolkit
