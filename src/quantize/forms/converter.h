// The last stage of an integer layer: sums are brought to the scale of the result between two bounds, or looked up in a table.
#pragma once

#include "ops/support/requantize.h"
#include "quantize/forms/lowering.h"

namespace orknn::quantize {

struct Target {
  double scale = 1;  // that sums are brought to: the result's, or a table's index
  int64_t zero_point = 0, low = -128, high = 127;
  DType type = DType::Int8;   // of the result
  ir::TensorData table = {};  // no value = none
};

// Straight to the parameters of `y`.
Target plain_target(const Lowering& l, ir::TensorId y);
// Through the functions `steps` of the tail of `n`. An error says why they have no table.
Result<Target> target_of(const Lowering& l, const ir::Node& n, std::span<const ir::TailStep> steps);

// Attributes of the stage.
void set_stage(ir::Attributes& attributes, const Target& target, const ops::Multiplier& multiplier,
               std::vector<std::string> fused);
// Factors of sums below zero: 16 bits and one shift for all of them. False when one is too large.
bool set_slopes(ir::Attributes& attributes, const std::vector<double>& slopes);
// The table as an operand of the layer made from `n`; nothing when there is none.
ir::TensorId table_input(Lowering& l, const ir::Node& n, const Target& target);

// Names of the steps, for reports.
std::vector<std::string> functions_of(std::span<const ir::TailStep> steps);

}  // namespace orknn::quantize
