// The chip that Toolkit1 builds for when a script names none.
#pragma once

#include "platform/platforms.h"

namespace orknn::platform {

const Platform& default_toolkit1_platform();

}  // namespace orknn::platform
