// JSON as text, put together from the inside out: every function returns a complete value. There is no document in between, whose
// destructor would need memory that may have run out.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orknn::format::json {

// Bytes that are no valid UTF-8 are spelled out (base/utf8.h).
std::string text(std::string_view value);
std::string number(int64_t value);
std::string array(const std::vector<std::string>& values);
// Members in the given order; their values are JSON already.
std::string object(std::initializer_list<std::pair<std::string_view, std::string>> members);

}  // namespace orknn::format::json
