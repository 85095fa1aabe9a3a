#include "optimize/trace.h"

#include <nlohmann/json.hpp>

namespace orknn::optimize {

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

}  // namespace orknn::optimize
