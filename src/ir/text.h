// The IR as text, printable and parseable: dumps, pass tests and op test cases are written in it (docs/ir.md).
//
//   graph "name" (%x: float32[1,3,8,8]) -> (%y) {
//     %w: float32[8,3,3,3] = const 0x3f800000...            (or: const {0.5, 1, ...}, const splat 0.5)
//     %y: float32[1,8,8,8] = Conv(%x, %w, _) {pads = [1,1,1,1]} + Add(%r) + Relu() "Conv_0" from "a", "b"
//   }
// Names that are not plain identifiers are quoted: %"a:0". `_` is an absent input or output.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace orknn::ir {

struct PrintOptions {
  // Constants with more elements print as `const ...` (such text does not parse).
  int64_t max_elements = INT64_MAX;
};

std::string print(const Graph& graph, const PrintOptions& options = {});
// The error names line and column.
Result<Graph> parse(std::string_view text);
// A tensor literal: `float32[2,2] {1, 2, 3, 4}` or `float32[8] splat 0.5`. Floats accept nan, inf and hex floats.
Result<TensorData> parse_tensor(std::string_view text);
std::string print_tensor(const TensorData& value);

}  // namespace orknn::ir
