#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>

#include "base/forks.h"
#include "base/stderr_lines.h"
#include "base/utf8.h"

namespace orknn {
namespace {
LogLevel level_from_environment() {
  const char* text = std::getenv("RKNN_LOG_LEVEL");
  if (!text || text[0] < '0' || text[0] > '6' || text[1] != '\0') return LogLevel::Warn;
  return std::min(static_cast<LogLevel>(text[0] - '0'), LogLevel::Trace);
}
std::atomic<LogLevel>& current_level() {
  static std::atomic<LogLevel> level{level_from_environment()};
  return level;
}
BriefMutex& sink_mutex() {
  static BriefMutex& mutex = *new BriefMutex;  // lines may come until the very end
  return mutex;
}
ORKNN_MAKE_AT_LOAD(sink_mutex);
std::shared_ptr<const LogSink>& current_sink() {
  static std::shared_ptr<const LogSink> sink;
  return sink;
}
ORKNN_MAKE_AT_LOAD(current_sink);
}  // namespace

void set_log_sink(LogSink sink) {
  auto fresh = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(sink_mutex());
  current_sink().swap(fresh);
}
void set_log_level(LogLevel level) { current_level() = level; }
LogLevel log_level() { return current_level(); }

void log(LogLevel level, std::string_view tag, std::string_view line) {
  if (level > log_level()) return;
  const std::string text = printable(line);
  line = text;
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(sink_mutex());
    sink = current_sink();
  }
  if (sink) {  // called without the lock: it may wait for something that a thread in set_log_sink holds (Python's interpreter
               // lock)
    (*sink)(level, tag, line);
    return;
  }
  static constexpr char kLetters[] = "EWIIDD";
  write_stderr_lines(kLetters[static_cast<int>(level)] + (" " + std::string(tag)) + ": " + text + "\n");
}

}  // namespace orknn
