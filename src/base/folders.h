#pragma once

#include <string>

#include "base/status.h"

namespace orknn {

// Makes the folder and those above it that are missing.
Status make_folder(const std::string& path);

}  // namespace orknn
