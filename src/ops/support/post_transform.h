// The score transformations of the classical machine-learning ops.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"

namespace orknn::ops {

enum class PostTransform { None, Softmax, Logistic, SoftmaxZero, Probit };

Result<PostTransform> post_transform_from(std::string_view name);
// Transforms the scores of one sample in place.
void apply_post_transform(PostTransform transform, std::span<float> scores);

}  // namespace orknn::ops
