#include "terminal.h"

#include <fmt/color.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/utf8.h"

namespace orknn::cli {
namespace {

bool is_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  return terminal;
}

std::mutex& line_mutex() {
  static std::mutex mutex;
  return mutex;
}
bool bar_is_open = false;  // guarded by line_mutex()

// fmt::print throws when stderr is full or closed: what cannot be said is no reason to die.
void write_stderr(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

// A line of its own, below a bar that is still moving.
void print_line(const std::string& text, fmt::color color) {
  const std::lock_guard lock(line_mutex());
  if (bar_is_open) write_stderr("\n");
  bar_is_open = false;
  const std::string line = printable(text);
  write_stderr(is_terminal() ? fmt::format(fg(color), "{}\n", line) : line + "\n");
}
}  // namespace

void attach_log(bool verbose) {
  if (verbose) set_log_level(LogLevel::Debug);
  set_log_sink([](LogLevel level, std::string_view tag, std::string_view line) {
    constexpr std::string_view kLetters = "EWIIDD";
    const bool named = level <= LogLevel::Warn;
    print_line(fmt::format("{} {}{}", kLetters[static_cast<size_t>(level)], named ? std::string(tag) + ": " : "", line),
               level == LogLevel::Error  ? fmt::color::red
               : level == LogLevel::Warn ? fmt::color::orange
                                         : fmt::color::gray);
  });
}

int fail(const Status& status, bool json) {
  if (json) return fail(status, nlohmann::ordered_json::object());
  print_line(status.to_string(), fmt::color::red);
  return kFailed;
}

int fail(const Status& status, nlohmann::ordered_json known) {
  known["error"] = {{"code", code_name(status.code())}, {"message", status.to_string()}};
  print_json(known);
  return fail(status);
}

void note(const std::string& text) { print_line(text, fmt::color::gray); }

void print(std::string_view text) { print_coloured(printable(text)); }

void print_coloured(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_json(const nlohmann::ordered_json& value) {
  print(value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

size_t output_width() {
  if (!isatty(STDOUT_FILENO)) return 0;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  return columns ? static_cast<size_t>(std::max(0, std::atoi(columns))) : 0;
}

int close_output(int exit_code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return exit_code;
  return exit_code == kOk ? fail(io_error("the output could not be written").hint("is the disk full or the reader gone?"))
                          : exit_code;
}

toolkit::Progress progress_bar() {
  if (!is_terminal()) return {};
  return [](std::string_view stage, int64_t done, int64_t total) {
    const std::lock_guard lock(line_mutex());
    constexpr int64_t kWidth = 30;
    const int64_t filled = total > 0 ? kWidth * done / total : kWidth;
    std::string bar;
    for (int64_t i = 0; i < kWidth; ++i) bar += i < filled ? "█" : " ";
    bar_is_open = done < total;
    write_stderr(fmt::format("\r{:<12} {:3}%|{}|{}", stage, total > 0 ? 100 * done / total : 100, bar, bar_is_open ? "" : "\n"));
  };
}

}  // namespace orknn::cli
