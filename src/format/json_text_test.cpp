#include "format/json_text.h"

#include <gtest/gtest.h>

namespace orknn::format::json {
namespace {

TEST(JsonText, ValuesAreNested) {
  EXPECT_EQ(object({}), "{}");
  EXPECT_EQ(array({}), "[]");
  EXPECT_EQ(
      object({{"a", number(-3)}, {"b", array({text("x"), array({number(1), number(2)})})}, {"c", object({{"d", text("")}})}}),
      R"({"a":-3,"b":["x",[1,2]],"c":{"d":""}})");
}

TEST(JsonText, WhatJsonDoesNotAllowInTextsIsEscaped) {
  EXPECT_EQ(text("a\"b\\c/\b\f\n\r\t\x01\x1f\x7f"), "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
  EXPECT_EQ(text("\xc3\xa4"), "\"\xc3\xa4\"");
  EXPECT_EQ(text("\xff"), "\"\\\\xff\"") << "no valid UTF-8";
}

}  // namespace
}  // namespace orknn::format::json
