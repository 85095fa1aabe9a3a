// The equation of Einsum: which axis of which operand carries which index.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/op_def.h"

namespace orknn::ops {

// A letter, or an axis of the ellipsis counted from its end (above all letters).
using EinsumLabel = int;
inline constexpr EinsumLabel kEllipsis = 1000;
using EinsumLabels = std::vector<EinsumLabel>;

struct EinsumEquation {
  std::vector<EinsumLabels> inputs;
  EinsumLabels output;
};

// The terms as written, kEllipsis where "..." stands; without "->" the output is every letter that occurs once, sorted, after the
// ellipsis.
Result<EinsumEquation> read_einsum(const std::string& text);

struct EinsumPlan {
  EinsumEquation equation;  // ellipses expanded
  std::map<EinsumLabel, ir::Dim> dims;
};

Result<EinsumPlan> plan_einsum(const ir::NodeReader& node, std::span<const ir::Shape> shapes);

}  // namespace orknn::ops
