// Lines on stderr from code that must not stop when stderr is a full pipe.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/log.h"

namespace orknn {

// Writes the text, which ends with a line end. Into a pipe that is full it waits `patience` at most; then lines are left out,
// without any further wait, until somebody reads again, and a line says how many were.
void write_stderr_lines(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(5));

// "E RKNN: [12:34:56.789] rknn_init: text" with its line end, in local time: a line of the runtime's log, in which tools search.
// `function` may be empty.
std::string log_line(LogLevel level, std::string_view who, std::string_view function, std::string_view text);

}  // namespace orknn
