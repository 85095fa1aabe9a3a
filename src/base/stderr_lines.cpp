#include "base/stderr_lines.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>

namespace orknn {
namespace {
std::atomic<long> left_out{0};
std::atomic<bool> is_torn{false};  // the last line that was written lacks its end

// Files and terminals take what they are given; a terminal that is stopped (Ctrl-S) is meant to hold the program.
bool stderr_is_a_pipe() {
  struct stat kind;
  return ::fstat(STDERR_FILENO, &kind) == 0 && (S_ISFIFO(kind.st_mode) || S_ISSOCK(kind.st_mode));
}

bool has_room(std::chrono::milliseconds patience) {
  pollfd state{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&state, 1, static_cast<int>(patience.count())) != 0;  // an error is left to the write
}
}  // namespace

void write_stderr_lines(std::string_view text, std::chrono::milliseconds patience) {
  if (!stderr_is_a_pipe()) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    return;
  }
  const std::string_view whole = text;
  while (!text.empty()) {
    if (!has_room(left_out.load() > 0 ? std::chrono::milliseconds(0) : patience)) {
      ++left_out;
      if (text.size() < whole.size()) is_torn = true;
      return;
    }
    if (const long lines = left_out.exchange(0))
      std::fprintf(stderr, "%sW %ld log lines were left out: they were not read in time.\n", is_torn.exchange(false) ? "\n" : "",
                   lines);
    const size_t fits = std::min<size_t>(text.size(), PIPE_BUF);  // what a pipe with room takes without a wait
    std::fwrite(text.data(), 1, fits, stderr);
    text.remove_prefix(fits);
  }
}

std::string log_line(LogLevel level, std::string_view who, std::string_view function, std::string_view text) {
  static constexpr char kLetters[] = "EWIDDD";
  timeval now{};
  gettimeofday(&now, nullptr);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  char clock[24];
  std::snprintf(clock, sizeof clock, "[%02d:%02d:%02d.%03d] ", local.tm_hour, local.tm_min, local.tm_sec,
                static_cast<int>(now.tv_usec / 1000));
  std::string line = kLetters[static_cast<int>(level)] + (" " + std::string(who)) + ": " + clock;
  if (!function.empty()) line.append(function).append(": ");
  return line.append(text).append("\n");
}

}  // namespace orknn
