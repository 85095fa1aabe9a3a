#include "toolkit/json_document.h"

#include <string>

namespace orknn::toolkit {

Result<nlohmann::ordered_json> parse_json_object(std::string_view text) {
  constexpr int kMostLevels = 100;
  bool is_deeper = false;
  const auto keep = [&](int depth, nlohmann::ordered_json::parse_event_t, const nlohmann::ordered_json&) {
    is_deeper |= depth > kMostLevels;
    return depth <= kMostLevels;
  };
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(text, keep, false);
  if (is_deeper)
    return invalid_argument("the JSON is nested too deep").expected("at most " + std::to_string(kMostLevels) + " levels");
  if (json.is_discarded() || !json.is_object()) return invalid_argument("it is not a JSON object");
  return json;
}

}  // namespace orknn::toolkit
