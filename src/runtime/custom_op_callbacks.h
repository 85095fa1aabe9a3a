// A custom operator registered through the C API: the record's callbacks, called for every node of its type.
#pragma once

#include <memory>
#include <string>

#include "rknn_custom_op.h"
#include "runtime/custom_ops.h"

namespace orknn::runtime {

// An operator, or the code and the reason why there is none.
struct Registration {
  std::unique_ptr<CustomOperator> op;
  int code = RKNN_SUCC;
  std::string problem;
};

// Copies the record and calls its `init` for every node of its type. When that fails, `destroy` was called for the nodes whose
// `init` had returned.
Registration register_callbacks(const rknn_custom_op& record, const CustomNodes& nodes);

}  // namespace orknn::runtime
