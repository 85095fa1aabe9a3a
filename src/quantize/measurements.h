// Statistics of a float network on calibration samples: of all of them and, where networks are tried on samples held back, of
// each half. A sample is computed once for all of these.
#pragma once

#include <array>
#include <vector>

#include "quantize/quantize.h"

namespace orknn::quantize {

enum class Part : uint8_t { All, FirstHalf, SecondHalf };

// What statistics hold besides extremes and moments.
struct Detail {
  bool histograms = false;
  bool weighted = false;  // by channel_importance()
};

// Of one graph, computed by one run.
Result<TensorStatistics> measure(const ir::Graph& graph, const LayerForms& forms, const RunSamples& run, size_t samples,
                                 Detail detail);

class Measurements {
 public:
  // `graph` and its `forms` must outlive it. Without `halves` only Part::All is asked for.
  Measurements(const ir::Graph& graph, const LayerForms& forms, RunSamples run, size_t samples, bool halves)
      : graph_(graph), forms_(forms), run_(std::move(run)), samples_(samples), halves_(halves) {}

  // All parts are measured when the first is asked for; another detail may need another run.
  Result<TensorStatistics> of(Part part, Detail detail);

 private:
  struct Measured {
    Detail detail;
    std::array<TensorStatistics, 3> parts;
  };
  const ir::Graph& graph_;
  const LayerForms& forms_;
  const RunSamples run_;
  const size_t samples_;
  const bool halves_;
  std::vector<Measured> known_;
};

}  // namespace orknn::quantize
