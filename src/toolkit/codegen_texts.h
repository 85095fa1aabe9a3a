// The files of a generated project that are the same for every model.
#pragma once

#include <string_view>

namespace orknn::toolkit {

extern const std::string_view kProjectCMake, kProjectReadme, kProjectMain, kProjectArrays, kProjectRunner, kProjectRunnerHeader;

}  // namespace orknn::toolkit
