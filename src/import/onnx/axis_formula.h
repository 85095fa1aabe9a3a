// Formulas that say how the axes of a tensor are split, moved and joined: "a,bc,d[b=8]->a,b,d,c". A letter is an axis, several
// letters of one field are one dimension (the first is the slowest), "1" is a dimension of one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/shape.h"

namespace orknn::importer::onnx {

struct AxisFormula {
  std::vector<std::string> left, right;  // the letters of each field, none for "1"
  std::map<char, int64_t> sizes;         // that the formula states
};
// Checks everything that does not depend on a shape. Blanks are ignored.
Result<AxisFormula> parse_axis_formula(std::string_view text);

// A dimension as letters: the product of the known ones, and those whose size is open.
struct AxisExtent {
  int64_t known = 1;
  std::string open;

  bool operator==(const AxisExtent&) const = default;
  bool is_known() const { return open.empty(); }
};
using AxisExtents = std::vector<AxisExtent>;
// "[1, ?, 8]": what is not known is a question mark.
std::string to_string(const AxisExtents& extents);

// A formula applied to a shape.
struct AxisPlan {
  AxisExtents before, after;            // the tensor's shape; letters that got a size in the formula are known
  AxisExtents left_axes, right_axes;    // one extent per letter, in the order of each side
  std::vector<size_t> to_right;         // right axis i is left axis to_right[i]
  std::vector<std::string> left_names;  // letters of each dimension before, for finding what a dimension was
  std::vector<std::string> right_names;
};
// Open dimensions are negative.
Result<AxisPlan> apply_axis_formula(const AxisFormula& formula, const ir::Dims& dims);

}  // namespace orknn::importer::onnx
