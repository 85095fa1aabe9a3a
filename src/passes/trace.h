// What passes did, step by step, and the time each took. Tests and --trace read the same thing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orknn::passes {

struct TraceEntry {
  size_t step = 0;  // counts entries from 1; Options::max_rewrites = step - 1 stops the optimizer right before it
  std::string pass;
  std::string text;  // "Conv:conv1, BatchNormalization:bn1 -> Conv:conv1"
};

struct PassTime {
  std::string pass;
  size_t runs = 0, rewrites = 0;
  double seconds = 0;
};

struct Trace {
  std::vector<TraceEntry> entries;
  std::vector<PassTime> times;  // in the order of the first run

  void add(std::string_view pass, std::string text);
  // Of one run of a pass.
  void add_time(std::string_view pass, size_t rewrites, double seconds);

  std::string to_text() const;     // one line per step
  std::string to_json() const;     // array of {step, pass, text}
  std::string times_text() const;  // one line per pass, the slowest first
};

}  // namespace orknn::passes
