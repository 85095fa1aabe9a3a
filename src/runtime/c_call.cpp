#include "runtime/c_call.h"

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "base/stderr_lines.h"
#include "runtime/error_codes.h"
#include "runtime/run_report.h"

namespace orknn::runtime {
namespace {
thread_local std::string error_text;
std::once_flag log_set_up;

void write_line(LogLevel level, std::string_view tag, std::string_view line) {
  write_stderr_lines(log_line(level, "RKNN", tag, line));
}
}  // namespace

void keep_own_log() {
  std::call_once(log_set_up, [] {});
}

void begin_call() {
  std::call_once(log_set_up, [] {
    set_log_sink(write_line);
    set_log_level(static_cast<LogLevel>(std::min(environment_log_level(0), static_cast<int>(LogLevel::Trace))));
  });
  error_text.clear();
}

int report_level() {
  static const int from_environment = environment_log_level(0);
  return log_level() == LogLevel::Trace ? std::max(from_environment, 5) : static_cast<int>(log_level());
}

int fail(int code, const char* function, std::string_view text) noexcept {
  try {
    error_text = std::string(function) + ": " + std::string(text);
    log(LogLevel::Error, function, std::string(text) + " (" + std::to_string(code) + ")");
  } catch (...) {  // a C function returns its code whatever happens
  }
  return code;
}

int fail(const char* function, const Status& status) noexcept {
  const int code = rknn_code(status.code());
  try {
    return fail(code, function, status.to_string());
  } catch (...) {
    return code;
  }
}

int invalid_context(const char* function) noexcept {
  return fail(RKNN_ERR_CTX_INVALID, function, "the context is not valid (0, unknown or destroyed)");
}

const std::string& last_error() { return error_text; }

void set_last_error(const std::string& text) noexcept {
  try {
    error_text = text;
  } catch (...) {  // where there is no memory for the text, there is none
  }
}

}  // namespace orknn::runtime
