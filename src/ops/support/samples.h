// Inputs of the classical machine-learning ops: a matrix of samples and features, or one sample.
#pragma once

#include "ir/op_def.h"

namespace orknn::ops {

struct Samples {
  int64_t count = 0, features = 0;
  std::vector<double> values;  // row by row
};

// Shape rule pieces: the number of samples of input 0 (unknown when its shape is); its rank must be 1 or 2.
Result<ir::Dim> sample_count(const ir::InferContext& c);
// Input 0 as samples.
Result<Samples> read_samples(const ir::RunContext& c);
// The floats of attribute `name`, or of its tensor form `name` + "_as_tensor"; empty when there is neither.
std::vector<double> floats_of(const ir::NodeReader& node, std::string_view name);

}  // namespace orknn::ops
