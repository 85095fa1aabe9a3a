// JSON of files, which may hold anything.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/status.h"

namespace orknn::toolkit {

// An object; refused where its members are nested deeper than any of ours: the library compares, copies and prints such by
// recursion.
Result<nlohmann::ordered_json> parse_json_object(std::string_view text);

}  // namespace orknn::toolkit
