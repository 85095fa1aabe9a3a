// Rows of IEEE halves to floats and back, with the processor's own instructions where it has them.
#pragma once

#include <cstddef>

#include "base/half.h"

namespace orknn {

// Element by element as the conversions of Half; only a signalling NaN may come out quiet.
void widen_halves(const Half* from, float* to, size_t count);
void narrow_to_halves(const float* from, Half* to, size_t count);

}  // namespace orknn
