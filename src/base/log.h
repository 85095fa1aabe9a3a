// One sink, five levels. Libraries never print to stdout: lines go to the sink, stderr unless a host sets another.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace orknn {

// Numbers follow RKNN_LOG_LEVEL of the vendor's runtime.
enum class LogLevel { Error = 0, Warn = 1, Info = 2, Detail = 3, Debug = 4, Trace = 5 };

// Called with one line without line end. Must be thread-safe. `tag` is the room or the public function that speaks.
using LogSink = std::function<void(LogLevel level, std::string_view tag, std::string_view line)>;

void set_log_sink(LogSink sink);  // an empty function restores stderr
void set_log_level(LogLevel level);
LogLevel log_level();
void log(LogLevel level, std::string_view tag, std::string_view line);

}  // namespace orknn
