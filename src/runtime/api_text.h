// Texts of the C API that several of its files need.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"
#include "runtime/tensor_attr.h"

namespace orknn::runtime {

inline constexpr std::string_view kDriverVersion = "0.0.0 (simulator)";
// "0.1.0 (OpenRKNN)"
std::string api_version();
// Lines of a table, one log line each.
void log_table(LogLevel level, const std::string& text);

}  // namespace orknn::runtime
