// Status codes as the public RKNN_ERR_* values (docs/errors.md).
#pragma once

#include "base/status.h"

namespace orknn::runtime {

int rknn_code(Code code);

}  // namespace orknn::runtime
