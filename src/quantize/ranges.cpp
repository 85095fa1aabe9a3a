#include "quantize/ranges.h"

#include <algorithm>
#include <cmath>

namespace orknn::quantize {
namespace {

Range with_zero(double low, double high) { return {std::min(low, 0.0), std::max(high, 0.0)}; }

// How far the centre of a bin is outside the range, 0 within.
double distance(const Histogram& h, size_t bin, const Range& r) {
  const double centre = h.lower_edge() + (static_cast<double>(bin) + 0.5) * h.bin_width();
  return centre < r.low ? r.low - centre : centre > r.high ? centre - r.high : 0;
}

// Mean squared error of values in the histogram when they are rounded to `levels` steps over [low, high] and clipped to it.
// Within a bin values count as evenly spread: a bin much wider than a step rounds to step^2 / 12, a clipped one is off by its
// distance.
double rounding_error(const Histogram& h, const Range& r, double levels) {
  const double step = (r.high - r.low) / levels;
  double error = 0;
  for (size_t i = 0; i < h.bins().size(); ++i) {
    if (h.bins()[i] == 0) continue;
    const double outside = distance(h, i, r);
    error += h.bins()[i] * (outside > 0 ? outside * outside : step * step / 12);
  }
  return error;
}

// The part of that of values outside of the range.
double clipping_error(const Histogram& h, const Range& r) {
  double error = 0;
  for (size_t i = 0; i < h.bins().size(); ++i) {
    const double outside = distance(h, i, r);
    error += h.bins()[i] * outside * outside;
  }
  return error;
}

double levels_of(int bits) { return std::ldexp(1.0, bits) - 1; }

// The range within `full` for which `error_of` returns least. The ends are shrunk one after the other until neither helps any
// more.
template <class Error>
Range least(const Range& full, Error error_of) {
  Range best = full;
  double least_error = error_of(full);
  constexpr int kSteps = 64;
  for (int round = 0; round < 3; ++round) {
    const Range before = best;
    for (bool upper : {true, false}) {
      const double end = upper ? full.high : full.low;
      for (int k = 1; k <= kSteps && end != 0; ++k) {
        Range candidate = best;
        (upper ? candidate.high : candidate.low) = end * k / kSteps;
        const double error = error_of(candidate);
        if (error < least_error) {
          least_error = error;
          best = candidate;
        }
      }
    }
    if (best.low == before.low && best.high == before.high) break;
  }
  return best;
}

// How far the distribution of values lies from the one their 8-bit form shows: every level spreads what it holds evenly over its
// bins, bins outside of the range are as good as never met.
double divergence(const Histogram& h, double total, const Range& r, double levels) {
  constexpr double kNever = 1e-9;
  const double step = (r.high - r.low) / levels;
  double sum = 0, mass = 0;
  size_t members = 0, begin = 0;
  int64_t level = INT64_MIN;
  const auto close = [&](size_t end) {
    for (size_t k = begin; k < end && members > 0; ++k) {
      const double p = h.bins()[k] / total;
      if (p > 0) sum += p * std::log(p * static_cast<double>(members) / mass);
    }
  };
  for (size_t i = 0; i < h.bins().size(); ++i) {
    const double centre = h.lower_edge() + (static_cast<double>(i) + 0.5) * h.bin_width();
    const bool outside = centre < r.low - h.bin_width() || centre > r.high + h.bin_width();
    const int64_t own =
        outside ? (centre < r.low ? INT64_MIN + 1 : INT64_MAX) : static_cast<int64_t>(std::floor((centre - r.low) / step + 0.5));
    if (own != level) {
      close(i);
      begin = i;
      members = 0;
      mass = 0;
      level = own;
    }
    const double p = h.bins()[i] / total;
    if (outside) {
      if (p > 0) sum += p * std::log(p / kNever);
      continue;
    }
    members += 1;
    mass += p;
  }
  close(h.bins().size());
  return sum;
}

// The range of least divergence among those whose squared error is not above that of the full range: outliers go, but never so
// many that the next layer would see other values.
Range least_divergence(const Statistics& s, int bits) {
  const Histogram& h = s.histogram();
  const auto total = static_cast<double>(s.count());
  const Range full = with_zero(s.min(), s.max());
  const double levels = levels_of(std::min(bits, 8));
  const double allowed = rounding_error(h, full, levels);
  Range best = full;
  double least = divergence(h, total, full, levels);
  constexpr int kSteps = 64;
  for (bool upper : {true, false}) {
    const double end = upper ? full.high : full.low;
    for (int k = kSteps - 1; k >= 1 && end != 0; --k) {
      Range candidate = best;
      (upper ? candidate.high : candidate.low) = end * k / kSteps;
      if (rounding_error(h, candidate, levels) > allowed) continue;
      const double value = divergence(h, total, candidate, levels);
      if (value < least) {
        least = value;
        best = candidate;
      }
    }
  }
  return best;
}
}  // namespace

Range choose_range(const Statistics& s, Algorithm algorithm, int bits) {
  if (s.empty()) return {};
  const Range full = with_zero(s.min(), s.max());
  switch (algorithm) {
    case Algorithm::Normal: break;
    case Algorithm::KlDivergence: return least_divergence(s, bits);
    case Algorithm::Mmse: return least(full, [&](const Range& r) { return rounding_error(s.histogram(), r, levels_of(bits)); });
    case Algorithm::MovingAverage: return with_zero(s.moving_min(), s.moving_max());
  }
  return full;
}

std::optional<Cut> cut_outliers(const Statistics& s, int bits) {
  // Importance is an estimate, so nothing is cut for a small gain. Rounding errors average out further on, clipped values are all
  // off to the same side.
  constexpr double kWorthIt = 0.1, kOneSided = 4;
  constexpr double kResolved = 16;  // bins; wide ones, made so by one end, say nothing about the other one close to zero
  const Histogram& h = s.weighted_histogram();
  if (h.empty() || bits > 8) return std::nullopt;
  const auto error = [&](const Range& r) {
    return kOneSided * clipping_error(h, r) + s.weighted_rounding_error((r.high - r.low) / levels_of(bits));
  };
  const Range full = with_zero(s.min(), s.max());
  Range best = least(full, error);
  if (-full.low < kResolved * h.bin_width()) best.low = full.low;
  if (full.high < kResolved * h.bin_width()) best.high = full.high;
  const double part = error(best) / error(full);
  if (!(part < kWorthIt)) return std::nullopt;
  return Cut{best, std::sqrt(part)};
}

}  // namespace orknn::quantize
