// Operators that are a float operator between dequantized inputs and a quantized result: com.microsoft:QLinearAdd and its like.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace orknn::ops {

struct QuantizedForm {
  std::string op;             // the float operator
  ir::Attributes attributes;  // of the float operator
  std::vector<size_t> data;   // inputs that are data; the scale and the zero point of each follow it
  size_t result = 0;          // the input that is the scale of the result; its zero point follows
};
// Nothing for another operator.
std::optional<QuantizedForm> quantized_form(const ir::Node& node);

}  // namespace orknn::ops
