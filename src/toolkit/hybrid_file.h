// The quantization file of hybrid quantization (<name>.quantization.cfg): a YAML-like text that people and scripts edit.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace orknn::toolkit {

struct TensorParameters {
  std::string qtype = "asymmetric_quantized", qmethod = "layer", dtype = "int8";
  std::string part = "out0";  // in Toolkit1's names: out0, weight or bias
  std::vector<double> min, max, scale;
  std::vector<int64_t> zero_point;
};

struct HybridFile {
  std::vector<std::pair<std::string, std::string>> layers;  // tensor -> float16, int16, int8
  std::vector<std::pair<std::string, TensorParameters>> parameters;
  bool lists_what_was_found = false;  // `layers` are entries of step 1 (`delete`): some name inputs and conversions

  const TensorParameters* find(std::string_view tensor) const;
};

// The first line is literally "custom_quantize_layers: {}" when there are none: scripts replace it. With `toolkit1` the form of
// that generation: keys '@<tensor>_<number>:out0'.
std::string print(const HybridFile& file, bool toolkit1);
// Reads both forms, in any indentation; layers may also be written in braces on one line. The error names the line. Also reads
// the form of Toolkit1 1.2, whose entries stand under `hybrid_quantization_action`: `delete` takes the layers that are listed out
// of quantization, `add` and `modify` state their parameters.
Result<HybridFile> parse_hybrid_file(std::string_view text);

}  // namespace orknn::toolkit
