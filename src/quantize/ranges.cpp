#include "quantize/ranges.h"

#include <algorithm>
#include <cmath>

namespace orknn::quantize {
namespace {

Range with_zero(double low, double high) { return {std::min(low, 0.0), std::max(high, 0.0)}; }

// Mean squared error of values in the histogram when they are rounded to `levels` steps over [low, high] and clipped to it. Within a bin
// values count as evenly spread: a bin much wider than a step rounds to step^2 / 12, a clipped one is off by its distance.
double rounding_error(const Statistics& s, double low, double high, double levels) {
  const double step = (high - low) / levels;
  double error = 0;
  for (size_t i = 0; i < s.bins().size(); ++i) {
    if (s.bins()[i] == 0) continue;
    const double centre = s.lower_edge() + (static_cast<double>(i) + 0.5) * s.bin_width();
    const double outside = centre < low ? low - centre : centre > high ? centre - high : 0;
    error += static_cast<double>(s.bins()[i]) * (outside > 0 ? outside * outside : step * step / 12);
  }
  return error;
}

Range least_squares(const Statistics& s, int bits) {
  const Range full = with_zero(s.min(), s.max());
  const double levels = std::ldexp(1.0, bits) - 1;
  Range best = full;
  double least = rounding_error(s, full.low, full.high, levels);
  constexpr int kSteps = 64;
  // Both ends are shrunk in turn until neither helps any more; one pass over the histogram per candidate.
  for (int round = 0; round < 3; ++round) {
    const Range before = best;
    for (bool upper : {true, false}) {
      const double end = upper ? full.high : full.low;
      for (int k = 1; k <= kSteps && end != 0; ++k) {
        Range candidate = best;
        (upper ? candidate.high : candidate.low) = end * k / kSteps;
        const double error = rounding_error(s, candidate.low, candidate.high, levels);
        if (error < least) {
          least = error;
          best = candidate;
        }
      }
    }
    if (best.low == before.low && best.high == before.high) break;
  }
  return best;
}

// The threshold whose clipped and coarsened distribution diverges least from the original, on magnitudes when values have both signs.
Range least_divergence(const Statistics& s, int bits) {
  const Range full = with_zero(s.min(), s.max());
  const double reach = std::max(-full.low, full.high);
  if (reach == 0) return full;
  std::vector<double> counts(Statistics::kBins, 0);
  for (size_t i = 0; i < s.bins().size(); ++i) {
    const double centre = s.lower_edge() + (static_cast<double>(i) + 0.5) * s.bin_width();
    const auto bin = static_cast<size_t>(std::min(std::abs(centre) / reach, 0.999999) * Statistics::kBins);
    counts[bin] += static_cast<double>(s.bins()[i]);
  }
  const auto levels = static_cast<size_t>(std::ldexp(1.0, std::min(bits, 8) - 1));
  double least = INFINITY;
  size_t chosen = Statistics::kBins;
  for (size_t end = levels; end <= Statistics::kBins; end += 16) {
    double clipped = 0, total = 0, coarse_total = 0, divergence = 0;
    for (size_t i = end; i < Statistics::kBins; ++i) clipped += counts[i];
    for (size_t i = 0; i < end; ++i) total += counts[i];
    if (total == 0) continue;
    std::vector<double> coarse(end, 0);
    for (size_t level = 0; level < levels; ++level) {
      const size_t from = level * end / levels, to = (level + 1) * end / levels;
      double sum = 0;
      size_t used = 0;
      for (size_t i = from; i < to; ++i) {
        sum += counts[i];
        used += counts[i] > 0;
      }
      for (size_t i = from; i < to; ++i)
        if (counts[i] > 0) coarse[i] = sum / static_cast<double>(used);
      coarse_total += sum;
    }
    for (size_t i = 0; i < end; ++i) {
      const double p = (counts[i] + (i + 1 == end ? clipped : 0)) / (total + clipped), q = coarse[i] / coarse_total;
      if (p > 0) divergence += p * std::log(p / std::max(q, 1e-12));
    }
    if (divergence < least) {
      least = divergence;
      chosen = end;
    }
  }
  const double threshold = reach * static_cast<double>(chosen) / Statistics::kBins;
  return {std::max(full.low, -threshold), std::min(full.high, threshold)};
}
}  // namespace

Result<Algorithm> algorithm_from_name(std::string_view name) {
  if (name == "normal") return Algorithm::Normal;
  if (name == "kl_divergence") return Algorithm::KlDivergence;
  if (name == "mmse") return Algorithm::Mmse;
  if (name == "moving_average") return Algorithm::MovingAverage;
  return invalid_argument("there is no range algorithm '" + std::string(name) + "'").expected("normal, kl_divergence, mmse or moving_average");
}

Range choose_range(const Statistics& s, Algorithm algorithm, int bits) {
  if (s.empty()) return {};
  switch (algorithm) {
    case Algorithm::Normal: break;
    case Algorithm::KlDivergence: return least_divergence(s, bits);
    case Algorithm::Mmse: return least_squares(s, bits);
    case Algorithm::MovingAverage: return with_zero(s.moving_min(), s.moving_max());
  }
  return with_zero(s.min(), s.max());
}

}  // namespace orknn::quantize
