// Padding and strides as TFLite states them, in the attributes of our operators.
#pragma once

#include "import/tflite/layer.h"

namespace orknn::importer::tflite {

enum class Padding : int8_t { Same = 0, Valid = 1 };

// Strides and windows beyond this are damage.
constexpr int64_t kMaxWindow = 1 << 20;

// Sizes along the spatial axes, outermost first.
struct Window {
  Padding padding = Padding::Same;
  std::vector<int64_t> kernel;  // empty when the weights tell
  std::vector<int64_t> strides, dilations;

  Status check() const;
  ir::Attributes attributes() const;
};

// A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND is a dilated one: if `batch_to_space` ends such a triple, its
// output is set from that convolution and the answer is true.
Result<bool> lower_dilated(Layer& batch_to_space);

}  // namespace orknn::importer::tflite
