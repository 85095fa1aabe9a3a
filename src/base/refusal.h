// Which errors may become decisions.
#pragma once

#include "base/status.h"

namespace orknn {

// Whether `problem` says that what was asked for is impossible, so that a caller may go another way instead. Any other error
// (memory ran out, a file cannot be read, a bug of ours) says nothing about what was asked for and has to reach the user: a
// network must not depend on how much memory there was.
inline bool is_refusal(const Status& problem) {
  const Code code = problem.code();
  return code == Code::InvalidArgument || code == Code::InvalidModel || code == Code::Unsupported || code == Code::ShapeMismatch;
}

}  // namespace orknn
