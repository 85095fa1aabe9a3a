// What the optimizer did, step by step. Tests, --trace and the web UI read the same thing.
#pragma once

#include <string>
#include <vector>

namespace orknn::optimize {

struct TraceEntry {
  size_t step = 0;  // counts rewrites from 1; OptimizeOptions::max_rewrites = step - 1 stops right before it
  std::string pass;
  std::string text;  // "Conv:conv1, BatchNormalization:bn1 -> Conv:conv1"
};

struct Trace {
  std::vector<TraceEntry> entries;

  std::string to_text() const;  // one line per step
  std::string to_json() const;  // array of {step, pass, text}
};

}  // namespace orknn::optimize
