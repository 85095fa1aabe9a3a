#include "runtime/trace.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <vector>

#include "base/files.h"
#include "base/forks.h"

namespace orknn::runtime {
namespace {
struct Event {
  std::string name;
  bool on_core = false;
  int64_t row = 0;  // thread or core
  uint64_t context = 0;
  TraceTime begin, end;
};

struct Trace {
  std::atomic<bool> active{false};
  BriefMutex mutex;
  std::string path;
  TraceTime start;
  std::vector<Event> events;
};

// Never destroyed: a thread that outlives main may be inside a call.
Trace& trace() {
  static Trace* const instance = new Trace;
  return *instance;
}
ORKNN_MAKE_AT_LOAD(trace);

void add(Event event) noexcept {
  try {
    Trace& t = trace();
    const std::lock_guard lock(t.mutex);
    if (t.active.load(std::memory_order_relaxed) && event.begin >= t.start) t.events.push_back(std::move(event));
  } catch (...) {  // a trace with a gap is better than a call that fails
  }
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

constexpr int kCallsProcess = 1, kCoresProcess = 2;

std::string process_name(int process, std::string_view name) {
  return R"({"ph":"M","name":"process_name","pid":)" + std::to_string(process) + R"(,"args":{"name":)" + quoted(name) + "}}";
}

std::string line_of(const Event& e, TraceTime start) {
  const auto microseconds = [](auto duration) { return std::chrono::duration<double, std::micro>(duration).count(); };
  return R"({"ph":"X","name":)" + quoted(e.name) + R"(,"cat":)" + (e.on_core ? R"("npu")" : R"("call")") + R"(,"pid":)" +
         std::to_string(e.on_core ? kCoresProcess : kCallsProcess) + R"(,"tid":)" + std::to_string(e.row) + R"(,"ts":)" +
         number(microseconds(e.begin - start)) + R"(,"dur":)" + number(microseconds(e.end - e.begin)) + R"(,"args":{"context":)" +
         std::to_string(e.context) + "}}";
}
}  // namespace

bool is_tracing() { return trace().active.load(std::memory_order_relaxed); }

Status start_trace(std::string path) {
  Trace& t = trace();
  const std::lock_guard lock(t.mutex);
  if (t.active) return invalid_argument("a trace is under way").found(t.path).hint("stop it first");
  t.path = std::move(path);
  t.events.clear();
  t.start = std::chrono::steady_clock::now();
  t.active = true;
  return {};
}

Status stop_trace() {
  Trace& t = trace();
  std::vector<Event> events;
  std::string path;
  TraceTime start;
  {
    const std::lock_guard lock(t.mutex);
    if (!t.active) return invalid_argument("no trace is under way").hint("start one first");
    t.active = false;
    events = std::move(t.events);
    path = t.path;
    start = t.start;  // the next trace may begin while this one is written
  }
  return write_file_atomically(path, [&](FileWriter& out) -> Status {
    ORKNN_TRY(out.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + process_name(kCallsProcess, "C API") + ",\n" +
                        process_name(kCoresProcess, "simulated NPU cores")));
    for (const Event& e : events) ORKNN_TRY(out.write(",\n" + line_of(e, start)));
    return out.write("\n]}\n");
  });
}

void trace_call(std::string_view function, TraceTime begin, TraceTime end) {
  add({std::string(function), false, static_cast<int64_t>(::gettid()), 0, begin, end});
}

void trace_work(std::string_view name, uint32_t core_mask, uint64_t context, TraceTime begin, TraceTime end) {
  for (int core = 0; core_mask >> core; ++core)
    if (core_mask >> core & 1) add({std::string(name), true, core, context, begin, end});
}

}  // namespace orknn::runtime
