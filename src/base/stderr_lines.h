// Lines on stderr from code that must not stop when stderr is a full pipe.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace orknn {

// Writes the text, which ends with a line end. Into a pipe that is full it waits `patience` at most; then lines are left out,
// without any further wait, until somebody reads again, and a line says how many were.
void write_stderr_lines(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(5));

// "E RKNN: [12:34:56.789] ": how lines of the runtime begin, in local time. Tools match it.
std::string stamped_head(char level, std::string_view who);

}  // namespace orknn
