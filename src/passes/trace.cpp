#include "passes/trace.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace orknn::passes {

void Trace::add(std::string_view pass, std::string text) {
  entries.push_back({entries.size() + 1, std::string(pass), std::move(text)});
}

void Trace::add_time(std::string_view pass, size_t rewrites, double seconds) {
  auto it = std::ranges::find(times, pass, &PassTime::pass);
  if (it == times.end()) it = times.insert(times.end(), {std::string(pass)});
  ++it->runs;
  it->rewrites += rewrites;
  it->seconds += seconds;
}

std::string Trace::to_text() const {
  std::string out;
  for (const TraceEntry& e : entries) out += std::to_string(e.step) + " " + e.pass + ": " + e.text + "\n";
  return out;
}

std::string Trace::to_json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TraceEntry& e : entries) list.push_back({{"step", e.step}, {"pass", e.pass}, {"text", e.text}});
  // Names come from models and may be broken UTF-8.
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Trace::times_text() const {
  std::vector<PassTime> sorted = times;
  std::ranges::stable_sort(sorted, std::greater<>(), &PassTime::seconds);
  std::string out;
  for (const PassTime& t : sorted) {
    char number[32];
    std::snprintf(number, sizeof number, "%9.3f ms ", t.seconds * 1e3);
    out += number + t.pass + ": " + std::to_string(t.runs) + (t.runs == 1 ? " run, " : " runs, ") + std::to_string(t.rewrites) +
           (t.rewrites == 1 ? " rewrite\n" : " rewrites\n");
  }
  return out;
}

}  // namespace orknn::passes
