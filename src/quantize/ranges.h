// From statistics to the range of a tensor.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "quantize/statistics.h"

namespace orknn::quantize {

// Always contains 0.
struct Range {
  double low = 0, high = 0;
};

enum class Algorithm { Normal, KlDivergence, Mmse, MovingAverage };

// `bits` of the number format decides how coarse a range may be.
Range choose_range(const Statistics& statistics, Algorithm algorithm, int bits = 8);

// What is taken instead of the algorithm's range where the statistics have a weighted histogram: the range that causes the least
// error in the layers after it, if that is (root mean square) below a third of the full range's.
struct Cut {
  Range range;
  double error = 1;  // as a part of the full range's
};
std::optional<Cut> cut_outliers(const Statistics& statistics, int bits = 8);

}  // namespace orknn::quantize
