#include "ops/support/post_transform.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orknn::ops {
namespace {
float logistic(float x) {
  const float v = 1.0f / (1.0f + std::exp(-std::abs(x)));
  return x < 0 ? 1.0f - v : v;
}

// Inverse of the error function by the closed approximation (Winitzki) that other runtimes use too.
float inverse_erf(float x) {
  const float rest = (1.0f - x) * (1.0f + x);
  if (rest == 0) return 0;
  const float log = std::log(rest);
  const float v = 2.0f / (std::numbers::pi_v<float> * 0.147f) + 0.5f * log;
  const float root = std::sqrt(-v + std::sqrt(v * v - 1.0f / 0.147f * log));
  return x < 0 ? -root : root;
}

void softmax(std::span<float> scores, bool keep_zero) {
  const float most = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& s : scores) {
    // SOFTMAX_ZERO: a score of zero means "no vote" and stays (nearly) zero.
    s = keep_zero && std::abs(s) <= 1e-7f ? s * std::exp(-most) : std::exp(s - most);
    sum += s;
  }
  for (float& s : scores) s = sum == 0 ? 0.5f : s / sum;
}
}  // namespace

Result<PostTransform> post_transform_from(std::string_view name) {
  if (name == "NONE") return PostTransform::None;
  if (name == "SOFTMAX") return PostTransform::Softmax;
  if (name == "LOGISTIC") return PostTransform::Logistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::SoftmaxZero;
  if (name == "PROBIT") return PostTransform::Probit;
  return unsupported("unknown post_transform")
      .expected("NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT")
      .found(std::string(name));
}

void apply_post_transform(PostTransform transform, std::span<float> scores) {
  if (scores.empty()) return;
  switch (transform) {
    case PostTransform::None: return;
    case PostTransform::Softmax: return softmax(scores, false);
    case PostTransform::SoftmaxZero: return softmax(scores, true);
    case PostTransform::Logistic:
      for (float& s : scores) s = logistic(s);
      return;
    case PostTransform::Probit:
      for (float& s : scores) s = std::numbers::sqrt2_v<float> * inverse_erf(2 * s - 1);
      return;
  }
}

}  // namespace orknn::ops
