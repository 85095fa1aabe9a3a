// The run trace: what the library did when, in Chrome's trace format (chrome://tracing, ui.perfetto.dev).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace orknn::runtime {

using TraceTime = std::chrono::steady_clock::time_point;

bool is_tracing();
// Events before the start are not kept. An error when a trace is under way.
Status start_trace(std::string path);
// Writes the file.
Status stop_trace();

// A call of the C API, on the calling thread.
void trace_call(std::string_view function, TraceTime begin, TraceTime end);
// Work on simulated cores; each core is a row of its own.
void trace_work(std::string_view name, uint32_t core_mask, uint64_t context, TraceTime begin, TraceTime end);

// Records the time from its making to its end.
class TracedCall {
 public:
  explicit TracedCall(const char* function) : function_(is_tracing() ? function : nullptr) {
    if (function_) begin_ = std::chrono::steady_clock::now();
  }
  ~TracedCall() {
    if (function_) trace_call(function_, begin_, std::chrono::steady_clock::now());
  }
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

 private:
  const char* function_;
  TraceTime begin_;
};

}  // namespace orknn::runtime
