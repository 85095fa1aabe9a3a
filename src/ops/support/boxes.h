// Boxes and how much they share, for the operators that pick detections.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace orknn::ops {

struct Box {
  float left = 0, top = 0, right = 0, bottom = 0;
};

// `border` is 1 when coordinates name pixels (a box from 3 to 3 is one wide), 0 when they are lengths. An inverted box has none.
float area(const Box& box, float border);
// Intersection over union.
float overlap(const Box& a, const Box& b, float border);

struct Suppression {
  float threshold = 0.5f;  // boxes that share more with a kept one go
  float eta = 1;           // below 1 the threshold falls by this factor with each kept box, down to 0.5
  float border = 0;
  size_t limit = SIZE_MAX;  // kept at most
};
// Walks through boxes in the given order, best first; returns the indices of those kept.
std::vector<int64_t> suppress(const std::vector<int64_t>& order, const std::function<const Box&(int64_t)>& box,
                              const Suppression& rule);

}  // namespace orknn::ops
