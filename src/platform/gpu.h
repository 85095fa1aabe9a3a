// Which chips have a GPU that layers can be sent to (op_target).
#pragma once

#include "platform/platforms.h"

namespace orknn::platform {

bool has_gpu(const Platform& platform);

}  // namespace orknn::platform
