#include "runtime/min_timeout.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"

namespace orknn::runtime {

int64_t parse_minimum_timeout(const char* text) {
  if (!text || !*text) return 0;
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text, text + std::strlen(text), value);
  if (problem == std::errc{} && *end == '\0' && value >= 0) return value;
  log(LogLevel::Warn, "", std::string("RKNN_MIN_TIMEOUT_MS is '") + text + "', expected a number of milliseconds; it is ignored");
  return 0;
}

int64_t minimum_timeout_ms() { return parse_minimum_timeout(std::getenv("RKNN_MIN_TIMEOUT_MS")); }

int64_t effective_timeout_ms(int64_t asked) { return asked <= 0 ? 0 : std::max(asked, minimum_timeout_ms()); }

}  // namespace orknn::runtime
