#include "ops/support/boxes.h"

#include <algorithm>

namespace orknn::ops {

float area(const Box& b, float border) {
  if (b.right < b.left || b.bottom < b.top) return 0;
  return (b.right - b.left + border) * (b.bottom - b.top + border);
}

float overlap(const Box& a, const Box& b, float border) {
  if (b.left > a.right || b.right < a.left || b.top > a.bottom || b.bottom < a.top) return 0;
  const Box shared{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right), std::min(a.bottom, b.bottom)};
  const float both = area(shared, border), all = area(a, border) + area(b, border) - both;
  return all > 0 ? both / all : 0;
}

std::vector<int64_t> suppress(const std::vector<int64_t>& order, const std::function<const Box&(int64_t)>& box,
                              const Suppression& rule) {
  std::vector<int64_t> kept;
  float threshold = rule.threshold;
  for (int64_t candidate : order) {
    if (kept.size() >= rule.limit) break;
    const Box& b = box(candidate);
    if (std::any_of(kept.begin(), kept.end(), [&](int64_t k) { return overlap(b, box(k), rule.border) > threshold; })) continue;
    kept.push_back(candidate);
    if (rule.eta < 1 && threshold > 0.5f) threshold *= rule.eta;
  }
  return kept;
}

}  // namespace orknn::ops
