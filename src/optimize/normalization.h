// Recognizes the arithmetic of a normalization: (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean square + epsilon).
#pragma once

#include <optional>
#include <vector>

#include "ir/patch.h"

namespace orknn::optimize {

struct Normalization {
  ir::TensorId x;
  std::vector<int64_t> axes;  // normalized over these, sorted
  double epsilon = 0;
  bool is_centered = true;             // false: root mean square without subtracting the mean
  std::vector<const ir::Node*> nodes;  // closed, the root included
  // Only in the folded spelling x * (scale * r) + (shift - mean * (scale * r)): constants to apply afterwards.
  ir::TensorId scale, shift;
};

// `root` is the Div, Mul or Add that ends it.
std::optional<Normalization> match_normalization(const ir::Graph& g, const ir::Node& root);

// True when `axes` are the last ones of a tensor of this rank.
bool are_trailing(const std::vector<int64_t>& axes, int64_t rank);

// A constant broadcast to `dims` (missing axes in front count as 1); nothing when it does not fit.
std::optional<ir::TensorData> broadcast_constant(const ir::TensorData& value, const ir::Dims& dims);

}  // namespace orknn::optimize
