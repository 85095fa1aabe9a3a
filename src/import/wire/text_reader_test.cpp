// The protobuf text format: every way to write a field, the lines named in errors, and the bytes a schema turns it into.
#include "import/wire/text_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace orknn::importer::wire {
namespace {
// "name=text" of every field, one blank between them, or the error.
std::string fields_of(std::string_view text) {
  TextReader reader(text);
  std::string list;
  for (TextField field; reader.next(field);)
    list += (list.empty() ? "" : " ") + std::string(field.name) + "=" + std::string(field.text);
  return reader.status().is_ok() ? list : reader.status().to_string();
}

template <class T>
T value_of(std::string_view scalar) {
  const std::string text = "x: " + std::string(scalar);
  TextReader reader(text);
  TextField field;
  T value{};
  EXPECT_TRUE(reader.next(field)) << reader.status().to_string();
  EXPECT_TRUE(field.get(value)) << scalar;
  return value;
}

template <class T>
bool suits(std::string_view scalar) {
  const std::string text = "x: " + std::string(scalar);
  TextReader reader(text);
  TextField field;
  T value{};
  return reader.next(field) && field.get(value);
}

TEST(TextFormat, WaysToWriteFields) {
  EXPECT_EQ(fields_of(""), "");
  EXPECT_EQ(fields_of("# nothing\n"), "");
  EXPECT_EQ(fields_of("a: 1 b:2;c : 3, d { e: 4 } f < g: 5 > h: { }"), "a=1 b=2 c=3 d= e: 4  f= g: 5  h= ");
  EXPECT_EQ(fields_of("a: [1, -2,3] b: [] c: [{x: 1}, {y: 2}] d: WORD"), "a=1 a=-2 a=3 c=x: 1 c=y: 2 d=WORD");
  EXPECT_EQ(fields_of("a: 1e-5 b: 1.5E+3f c: -inf [pkg.ext]: 7"), "a=1e-5 b=1.5E+3f c=-inf [pkg.ext]=7");
  EXPECT_EQ(fields_of("a { s: '}' # }\n t: \"\\\"}\" }"), "a= s: '}' # }\n t: \"\\\"}\" ");
}

TEST(TextFormat, Values) {
  EXPECT_EQ(value_of<int64_t>("-0x10"), -16);
  EXPECT_EQ(value_of<int64_t>("017"), 15);
  EXPECT_EQ(value_of<int64_t>("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value_of<uint64_t>("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE(suits<int64_t>("9223372036854775808"));
  EXPECT_FALSE(suits<int32_t>("3000000000"));
  EXPECT_FALSE(suits<int64_t>("1.5"));
  EXPECT_EQ(value_of<float>("1.5f"), 1.5f);
  EXPECT_EQ(value_of<float>(".5"), 0.5f);
  EXPECT_EQ(value_of<float>("1e60"), std::numeric_limits<float>::infinity());
  EXPECT_EQ(value_of<double>("1e-400"), 0.0);
  EXPECT_EQ(value_of<double>("-infinity"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value_of<float>("nan")));
  EXPECT_EQ(value_of<float>("12"), 12.0f);
  EXPECT_FALSE(suits<float>("\"1\""));
  EXPECT_TRUE(value_of<bool>("true"));
  EXPECT_FALSE(value_of<bool>("f"));
  EXPECT_FALSE(suits<bool>("2"));
  EXPECT_EQ(value_of<std::string>(R"("a\n\x41\101" 'b"' # comment
    "\u00e4")"),
            "a\nAAb\"\xc3\xa4");
  EXPECT_FALSE(suits<std::string>(R"("\xg")"));
  EXPECT_FALSE(suits<std::string>("word"));
}

TEST(TextFormat, ErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: 1\nb {\n c: 2\n", "line 4: the text ends inside 'b'"},
      {"a: 1\n}", "line 2: expected the name of a field, found '}'"},
      {"a\n 1", "line 2: expected ':' or '{' after 'a'"},
      {"a: \"x\n\"", "line 1: a string does not end on its line"},
      {"a: [1 2]", "expected ',' or ']' in the list 'a'"},
      {"a { b < } >", "expected '>', found '}'"},
      {"a: :", "expected a value of 'a', found ':'"},
      {"a:", "expected a value of 'a'"},
      {"[x", "a name in brackets does not end"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_NE(fields_of(text).find(message), std::string::npos) << text << "\n" << fields_of(text);
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "a{";
  EXPECT_NE(fields_of(deep).find("nested too deeply"), std::string::npos);
}

constexpr TextEnumerator kColors[] = {{"RED", 1}, {"BLUE", -2}};
constexpr TextRow kInnerRows[] = {{"n", 1, TextType::Int}};
constexpr TextSchema kInner{kInnerRows};
constexpr TextRow kOuterRows[] = {{"i", 1, TextType::Int},
                                  {"b", 2, TextType::Bool},
                                  {"f", 3, TextType::Float},
                                  {"d", 4, TextType::Double},
                                  {"s", 5, TextType::String},
                                  {"e", 6, TextType::Enum, nullptr, kColors},
                                  {"m", 7, TextType::Message, &kInner}};
constexpr TextSchema kOuter{kOuterRows};

TEST(TextFormat, BecomesBytes) {
  const auto bytes = encode_text("i: -1 b: true f: 1.5 d: 2 s: 'ab' unknown { x: 1 } e: BLUE e: 5 m { n: 3 } m < n: 4 >", kOuter);
  ASSERT_TRUE(bytes) << bytes.status().to_string();
  Reader reader(*bytes);
  std::string list;
  for (Field f; reader.next(f);) {
    list += std::to_string(f.number) + ":";
    int64_t i = 0;
    float real = 0;
    double wide = 0;
    std::string_view text;
    if (f.get(i)) list += std::to_string(i);
    if (f.get(real)) list += std::to_string(real);
    if (f.get(wide)) list += std::to_string(wide);
    if (f.get(text)) list += f.number == 5 ? std::string(text) : std::to_string(text.size()) + "b";
    list += " ";
  }
  EXPECT_TRUE(reader.status().is_ok());
  EXPECT_EQ(list, "1:-1 2:1 3:1.500000 4:2.000000 5:ab 6:-2 6:5 7:2b 7:2b ");
}

TEST(TextFormat, BytesNeedSuitableValues) {
  for (const char* text : {"i: 1.5", "b: maybe", "f: x", "s: 5", "e: GREEN", "m: 3", "\nm { n: 'x' }"}) {
    const auto bytes = encode_text(text, kOuter);
    ASSERT_FALSE(bytes) << text;
    EXPECT_NE(bytes.status().to_string().find("does not suit"), std::string::npos) << bytes.status().to_string();
  }
  EXPECT_NE(encode_text("\nm { n: 'x' }", kOuter).status().to_string().find("line 2"), std::string::npos);
}
}  // namespace
}  // namespace orknn::importer::wire
