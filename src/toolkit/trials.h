// Quantized forms of one network, judged by what their outputs lose on samples. Values that calibration has not seen are what
// costs a finished network its accuracy, so each part of the samples judges the network that the other parts calibrate.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "toolkit/samples.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {

// Results of the float network, by number of the sample: every output as floats.
using GoldenOutputs = std::vector<std::vector<std::vector<float>>>;

// The float network of a build on its samples. Each sample is computed once, for the statistics of every calibration and for the
// results that quantized networks are compared with.
class FloatNetwork {
 public:
  // `graph`, its `forms` and `samples` must outlive it. `trials`: networks will be tried on samples that were held back. `done`
  // as of Samples::run.
  FloatNetwork(const ir::Graph& graph, const quantize::LayerForms& forms, const Samples& samples, bool trials,
               Samples::Done done = {});
  FloatNetwork(const FloatNetwork&) = delete;
  FloatNetwork& operator=(const FloatNetwork&) = delete;

  const ir::Graph& graph() const { return graph_; }
  const quantize::LayerForms& forms() const { return forms_; }
  const Samples& samples() const { return samples_; }
  quantize::Measurements& measurements() { return measurements_; }
  // Of all samples, once they have been measured for trials.
  const GoldenOutputs& golden() const { return golden_; }

 private:
  const ir::Graph& graph_;
  const quantize::LayerForms& forms_;
  const Samples& samples_;
  GoldenOutputs golden_;
  quantize::Measurements measurements_;
};

// What the outputs of a quantized network lose, as 1 - cosine.
struct Losses {
  std::vector<double> mean;                    // per output, over the samples
  std::vector<double> expected;                // per output: what the mean over many other samples will hardly exceed
  std::vector<std::vector<double>> by_sample;  // per output, in an order that all networks measured to the end share
  std::vector<double> squares;                 // per output: of what its values are off by, over all samples
  std::vector<bool> calibrated;                // by sample: it calibrated what it judges; fewer entries = it was held back
  double euclid = 0;                           // largest distance of any output on any sample
  double at_least = 0;                         // of a network that was not measured to the end: what worst_mean() cannot be below

  double worst_mean() const;
  double worst_expected() const;
};
// Whether output `i` loses less in `a` than in `b` by more than chance: on average over the samples by twice the standard error
// at least, or by a quarter, with the same certainty about the part of its loss that a sample gains. Both were measured to the
// end.
bool surely_loses_less(const Losses& a, const Losses& b, size_t i);
// Whether output `i` loses a third less in `a` than in `b` on eight samples or more, and not on a single one alone.
bool loses_far_less(const Losses& a, const Losses& b, size_t i);
// Whether no output loses more in `a` than in `b`, on average and over all samples, where the largest values count most. A loss
// that four digits of a cosine do not show is none.
bool loses_nowhere(const Losses& a, const Losses& b);

// What the float network makes of the samples.
Status find_golden(const ir::Graph& graph, const Samples& samples, GoldenOutputs& golden);
// Adds what the outputs of `graph` lose on `count` samples from number `first` on. As soon as the losses of one output add up to
// more than `enough`, with those that were there before, the other samples are left out.
Status judge(const ir::Graph& graph, const Samples& samples, size_t first, size_t count, const GoldenOutputs& golden,
             Losses& losses, double enough = INFINITY);
// The figures that follow from Losses::by_sample.
void summarize(Losses& losses);

class Trials {
 public:
  // With fewer samples the network that all of them calibrate is judged on the same ones.
  static constexpr size_t kEnoughToSplit = 4;

  // In how many parts samples are held back: few of them in more parts, so that most of them calibrate, as they do in the end.
  static size_t parts_of(size_t samples) { return samples < 32 ? 4 : 2; }

  // Everything referred to must outlive the trials. Each computes up to `most_samples`.
  Trials(FloatNetwork& floats, const ir::OpSet& ops, quantize::QuantizeOptions choices, size_t most_samples);

  // Holds back one part of the samples after the other: each judges the network that all others calibrate.
  Status add_parts(size_t parts);
  // Calibrates on all samples, which also judge it.
  Status add_whole();

  // Layers whose weights were rounded on samples, in execution order.
  std::vector<std::string> rounded_layers() const;
  const ir::Graph& reference() const { return trials_.front()->graph; }  // of the first trial; all have the same layers
  const quantize::LayerForms& forms() const { return floats_.forms(); }  // of its layers
  // What layers that leave the format of the choices are computed in; nothing = float.
  const std::optional<quantize::NumberFormat>& wider() const { return wider_; }
  void set_wider(std::optional<quantize::NumberFormat> wider) { wider_ = std::move(wider); }
  // The first network with these layers left in float, or in the wider format.
  Result<ir::Graph> quantized(const LayerNames& wide_layers);
  // Whether the step, which the choices of the constructor take, made a difference to any network.
  bool matters(const quantize::Step& step) const;
  // Of the network that was quantized last.
  const std::vector<quantize::LayerDecision>& decisions() const { return decisions_; }

  enum class Extent { FewSamples, UntilMissed, UntilSure, All };
  // Judges the network quantized by `choices`, which calibrate like those of the constructor. FewSamples: one of each trial.
  // UntilMissed: a network that cannot keep every mean at `allowed` any more is left at the trial that shows it; the next one
  // meets that trial first. UntilSure: it is left at the sample that shows it, and Losses::at_least is set.
  Result<Losses> measure(const quantize::QuantizeOptions& choices, Extent extent = Extent::All, double allowed = 0);
  Result<Losses> measure(const LayerNames& wide_layers, Extent extent = Extent::All, double allowed = 0);

 private:
  struct Trial {
    ir::Graph graph;  // the float graph as calibration leaves it
    quantize::Calibration calibration;
    size_t first = 0, count = 0;  // samples that judge it
    bool whole = false;           // they calibrated it too
  };

  Status add(const quantize::KnownStatistics& known, size_t first, size_t count, size_t judged_first, size_t judged_count);
  Result<ir::Graph> lower(const Trial& from, const quantize::QuantizeOptions& choices);
  quantize::QuantizeOptions with_wide(const LayerNames& layers) const;

  FloatNetwork& floats_;
  const ir::OpSet& ops_;
  const quantize::QuantizeOptions choices_;
  const size_t most_samples_;
  std::optional<quantize::NumberFormat> wider_;
  std::vector<std::unique_ptr<Trial>> trials_;
  std::vector<size_t> sequence_;  // in which trials are run
  size_t judged_ = 0;             // samples of all trials
  std::vector<quantize::LayerDecision> decisions_;
};

}  // namespace orknn::toolkit
