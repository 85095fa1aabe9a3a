// What tests of refused C calls look at: the code, one E line, a text, and a state that did not change.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "capi_models.h"

namespace orknn::tests {

struct Refusal {
  const char* what;
  int code;
  std::function<int()> call;
};

// How many E lines there were.
class ErrorLines {
 public:
  ErrorLines() {
    orknn_set_platform(nullptr);  // the first call sets the library's own sink
    set_log_sink([this](LogLevel level, std::string_view, std::string_view) { count_ += level == LogLevel::Error; });
  }
  ~ErrorLines() { set_log_sink({}); }
  int take() { return std::exchange(count_, 0); }

 private:
  int count_ = 0;
};

// Every call is refused with its code and one E line, and leaves what `still_works` looks at as it was.
inline void expect_refusals(const std::vector<Refusal>& refusals, const std::function<void()>& still_works) {
  ErrorLines lines;
  for (const Refusal& r : refusals) {
    EXPECT_EQ(r.call(), r.code) << r.what << ": " << orknn_last_error();
    EXPECT_EQ(lines.take(), 1) << r.what;
    EXPECT_STRNE(orknn_last_error(), "") << r.what;
    still_works();
    EXPECT_EQ(lines.take(), 0) << "after: " << r.what;
  }
}

}  // namespace orknn::tests
