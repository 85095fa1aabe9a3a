// The weight section in fewer bytes: the bytes of each constant in a prefix code made for it, where that is shorter. Values whose
// elements have several bytes are coded byte by byte of the element, because the high bytes of floats repeat. Zeros of sparse
// weights cost one bit each. Docs: docs/rknn_format.md 3.
#pragma once

#include "format/weights.h"

namespace orknn::format {

std::vector<std::byte> code_weights(const WeightCollector& weights);

// The section that was coded, in memory of its own. Every length is checked before it is used; what is damaged is refused.
Result<WeightSection> decode_weights(std::span<const std::byte> coded);

}  // namespace orknn::format
