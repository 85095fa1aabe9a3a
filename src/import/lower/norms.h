// Normalizations: our operators with parameters that may be absent, and those that are composed. Channels are axis 1.
#pragma once

#include <span>
#include <vector>

#include "import/lower/emitter.h"

namespace orknn::importer {

// Factors and terms of a normalization; none: ones and zeros.
struct NormParameters {
  ir::TensorId scale, shift;
  double epsilon = 1e-5;
};
struct Moments {
  ir::TensorId mean, variance;
};
// Mean and (biased) variance along axes; `keep`: the axes stay.
Moments moments(Emitter& e, ir::TensorId x, const std::vector<int64_t>& axes, bool keep);
// x less its mean along the axes, divided by the deviation.
ir::TensorId standardized(Emitter& e, ir::TensorId x, const std::vector<int64_t>& axes, double epsilon);
// A vector of one value per channel, to be combined with a tensor of this rank.
ir::TensorId per_channel(Emitter& e, ir::TensorId vector, int64_t rank);

// By stored statistics, or where both are none by those of the batch itself.
Result<ir::TensorId> batch_norm(Emitter& e, ir::TensorId x, const NormParameters& parameters, const Moments& stored);
Result<ir::TensorId> instance_norm(Emitter& e, ir::TensorId x, const NormParameters& parameters);
Result<ir::TensorId> group_norm(Emitter& e, ir::TensorId x, int64_t groups, const NormParameters& parameters);
// Over the trailing axes, whose extents are `dims`.
Result<ir::TensorId> layer_norm(Emitter& e, ir::TensorId x, const ir::Dims& dims, const NormParameters& parameters);
Result<ir::TensorId> rms_norm(Emitter& e, ir::TensorId x, const ir::Dims& dims, const NormParameters& parameters);
// x / sqrt(sum of squares along the axes + epsilon)
ir::TensorId l2_normalized(Emitter& e, ir::TensorId x, const std::vector<int64_t>& axes, double epsilon);

}  // namespace orknn::importer
