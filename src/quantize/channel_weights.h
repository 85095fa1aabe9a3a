// Which channels the weights of a layer join.
#pragma once

#include <algorithm>

#include "ops/facts.h"

namespace orknn::quantize {

// Calls f(index, output channel, input channel) for all weights of a Conv, ConvTranspose, Gemm or MatMul in storage order.
template <class F>
void visit_weights(const ir::Node& n, const ir::Dims& w, F&& f) {
  const ir::Weights order = ops::facts_of(n).weights;
  if (order == ir::Weights::Matrix) {
    const bool transposed_b = n.attributes.int_or("transB", 0) != 0;
    int64_t at = 0;
    for (int64_t a = 0; a < w[0]; ++a)
      for (int64_t b = 0; b < w[1]; ++b) f(at++, transposed_b ? a : b, transposed_b ? b : a);
    return;
  }
  const int64_t group = n.attributes.int_or("group", 1);
  int64_t taps = 1;
  for (size_t i = 2; i < w.size(); ++i) taps *= w[i];
  const int64_t rows_per_group = std::max<int64_t>(w[0] / std::max<int64_t>(group, 1), 1);
  int64_t at = 0;
  for (int64_t a = 0; a < w[0]; ++a)
    for (int64_t b = 0; b < w[1]; ++b)
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t other = a / rows_per_group * w[1] + b;
        order == ir::Weights::InOut ? f(at++, other, a) : f(at++, a, other);
      }
}

}  // namespace orknn::quantize
