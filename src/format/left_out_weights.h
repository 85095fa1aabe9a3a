// Weights that a file names without holding them: their sizes and checksums (docs/rknn_format.md 3), and where they are found.
#pragma once

#include "format/bytes.h"
#include "format/rknn_file.h"
#include "format/weights.h"

namespace orknn::format {

void encode_left_out(const WeightCollector& weights, ByteWriter& out);

// Asks `outside` for every constant of a section that encode_left_out wrote; by offset. Refuses a damaged section, and one whose
// weights are not there.
Result<std::map<uint64_t, ir::TensorData>> find_left_out(std::span<const std::byte> section, const OutsideWeights& outside);

}  // namespace orknn::format
