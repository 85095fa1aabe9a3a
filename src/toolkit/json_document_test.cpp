#include "toolkit/json_document.h"

#include <gtest/gtest.h>

#include <string>

namespace orknn::toolkit {
namespace {

TEST(JsonDocument, ObjectsOnly) {
  const auto json = parse_json_object(R"({"a": [1, {"b": "c"}]})");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["a"][1]["b"], "c");
  for (const char* text : {"", "[1]", "3", "{", R"({"a": })", "{} {}"}) EXPECT_FALSE(parse_json_object(text)) << text;
}

TEST(JsonDocument, NestedTooDeep) {
  const auto nested = [](size_t levels) { return R"({"a": )" + std::string(levels, '[') + std::string(levels, ']') + "}"; };
  EXPECT_TRUE(parse_json_object(nested(90)));
  for (const size_t levels : {size_t{101}, size_t{3000000}}) {
    const auto json = parse_json_object(nested(levels));
    ASSERT_FALSE(json);
    EXPECT_NE(json.status().to_string().find("nested too deep"), std::string::npos) << json.status().to_string();
  }
}

}  // namespace
}  // namespace orknn::toolkit
