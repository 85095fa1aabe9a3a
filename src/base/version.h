// The version of this build.
#pragma once

#include <string_view>

namespace orknn {

std::string_view version();  // "1.2.3", the project version of CMakeLists.txt

}  // namespace orknn
