// Operator cases as written in src/ops/<family>/<file>.cases. Tests and bench/kernels.cpp read them.
//
//   case broadcast_row                  starts a case; the name is unique in its file
//   tolerance 1e-6 1e-5                 absolute and relative, for floating-point results (default 1e-5 1e-4)
//   half                                the float32 case also holds, loosely, with the reference kernels in float16
//   graph "g" (%x: float32[2]) -> (%y) {
//     ...                               IR text; the graph ends with a `}` in the first column
//   }
//   in float32[2] {1, 2}                one per graph input; a literal goes on in indented lines
//   out float32[2] {1, 2}               one per graph output; `out float32[2] any` leaves the contents open
//   error some words                    instead of `out`: inference or run refuses, and the message contains this
// Lines that start with # are comments.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace orknn::tests {

struct ExpectedOutput {
  ir::TensorData value;  // zeros when `any`
  bool any = false;      // only type and shape are stated
};

struct OpCase {
  std::string file;  // stem of the .cases file
  std::string name;
  int line = 0;
  double absolute = 1e-5, relative = 1e-4;
  bool half = false;
  std::string graph;
  std::vector<ir::TensorData> inputs;
  std::vector<ExpectedOutput> outputs;
  std::string error;
};

// All cases of one .cases file. The error names file and line.
Result<std::vector<OpCase>> read_op_cases(const std::string& path);

// Paths of every .cases file below src/ops of the source tree, sorted.
std::vector<std::string> op_case_files();

}  // namespace orknn::tests
