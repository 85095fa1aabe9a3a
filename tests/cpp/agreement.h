// When two floating-point results agree. The one rule for every test: a tolerance is for finite values only.
#pragma once

#include <cmath>

namespace orknn::tests {

// NaN agrees with NaN, an infinity with itself, finite values when they are at most `allowed` apart.
inline bool agrees(double found, double expected, double allowed) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return found == expected;
  return std::abs(found - expected) <= allowed;
}

}  // namespace orknn::tests
