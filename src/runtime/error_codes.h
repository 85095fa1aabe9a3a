// Status codes as the public RKNN_ERR_* values (docs/errors.md).
#pragma once

#include <string>

#include "base/status.h"

namespace orknn::runtime {

int rknn_code(Code code);
// "RKNN_ERR_FAIL" of -1; the number for what is no code.
std::string rknn_code_name(int code);

}  // namespace orknn::runtime
