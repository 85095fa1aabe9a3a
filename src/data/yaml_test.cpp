#include "data/yaml.h"

#include <gtest/gtest.h>

#include "mutation.h"

namespace orknn::data {
namespace {

// The value in brackets, so that a test can compare it as one text.
std::string flat(const YamlValue& value) {
  std::string text;
  switch (value.kind) {
    case YamlValue::Kind::Null: return "null";
    case YamlValue::Kind::Scalar: return value.quoted ? "\"" + value.text + "\"" : value.text;
    case YamlValue::Kind::List:
      for (const YamlValue& item : value.items) text += (text.empty() ? "" : "|") + flat(item);
      return "[" + text + "]";
    case YamlValue::Kind::Map:
      for (const auto& [key, item] : value.entries) text += (text.empty() ? "" : "|") + key + "=" + flat(item);
      return "{" + text + "}";
  }
  return text;
}

std::string read(std::string_view text) {
  const auto value = parse_yaml(text);
  return value ? flat(*value) : value.status().to_string();
}

TEST(Yaml, ReadsTheFormsOfModelFiles) {
  EXPECT_EQ(read("a: 1\nb:   two words   # a remark\nc:\n"), "{a=1|b=two words|c=null}");
  EXPECT_EQ(read("m:\n    name: x\n    s:\n      list:\n        - 1,3,224,224\n        - 1, 3\n    q: True\n"),
            "{m={name=x|s={list=[1,3,224,224|1, 3]}|q=True}}");
  EXPECT_EQ(read("v: [103.94, 116.78, 123.68] # means\nn: [[1, 2], [3]]\ne: []\nm: {a: 1, b: [2]}\n"),
            "{v=[103.94|116.78|123.68]|n=[[1|2]|[3]]|e=[]|m={a=1|b=[2]}}");
  EXPECT_EQ(read("v: [1,\n    2,   # two\n    3]\nw: 4\n"), "{v=[1|2|3]|w=4}");
  EXPECT_EQ(read("- a\n- - b\n  - c\n-\n  d: 1\n  e: 2\n- f: 3\n  g: 4\n"), "[a|[b|c]|{d=1|e=2}|{f=3|g=4}]");
  EXPECT_EQ(read("list:\n- a\n- b\nnext: 1\n"), "{list=[a|b]|next=1}") << "a list need not be indented";
}

TEST(Yaml, ReadsTexts) {
  EXPECT_EQ(read("a: 'it''s # no remark'\nb: \"x\\n\\\"y\\\"\"\n'c d': don't\n"),
            "{a=\"it's # no remark\"|b=\"x\n\"y\"\"|c d=don't}");
  EXPECT_EQ(read("a: c:/x\nb: x#y\nurl: http://h/p\n"), "{a=c:/x|b=x#y|url=http://h/p}");
  EXPECT_EQ(read("a: ~\nb: null\nc: 'null'\n"), "{a=null|b=null|c=\"null\"}");
  EXPECT_EQ(read("\xef\xbb\xbf%YAML 1.2\n---\na: 1\r\nb: 2\r\n...\nignored: 3\n"), "{a=1|b=2}");
  EXPECT_EQ(read(""), "null");
  EXPECT_EQ(read("# nothing\n\n"), "null");
  EXPECT_EQ(read("just a text"), "just a text");
}

TEST(Yaml, NamesTheLineOfAMistake) {
  EXPECT_EQ(read("a: 1\n\tb: 2\n"), "line 2: a tab indents the line; expected blanks.");
  EXPECT_EQ(read("a: 1\na: 2\n"), "line 2: the key 'a' is there twice.");
  EXPECT_EQ(read("a: [1, 2\nb: 3\n"), "line 1: a bracket is not closed.");
  EXPECT_EQ(read("a: 'x\n"), "line 1: a quote is not closed in its line.");
  EXPECT_EQ(read("a: 1\n  b: 2\n"), "line 2: the line is indented more than what it belongs to.");
  EXPECT_EQ(read("  a: 1\nb: 2\n"), "line 2: the line is indented less than what it belongs to.");
  EXPECT_EQ(read("a: 1\nb\n"), "line 2: expected 'key: value'.");
  EXPECT_EQ(read("a: *b\n"), "line 1: values that begin with '*' are not supported.");
  EXPECT_EQ(read("a: |\n  text\n"), "line 1: values that begin with '|' are not supported.");
  EXPECT_EQ(read("a: [1] 2\n"), "line 1: '2' stands after a value.");
  EXPECT_EQ(read("a: [1 [2]]\n"), "line 1: ']' stands after a value.") << "a bracket inside of a word";
}

TEST(Yaml, NestingIsLimited) {
  EXPECT_NE(read("a: " + std::string(100000, '[') + std::string(100000, ']')).find("nested too deeply"), std::string::npos);
  std::string lines;
  for (size_t i = 0; i < 1000; ++i) lines += std::string(i, ' ') + "a:\n";
  EXPECT_NE(read(lines).find("nested too deeply"), std::string::npos);
  EXPECT_NE(read(std::string(5000, '-')).size(), 0u);
  std::string dashes;
  for (size_t i = 0; i < 5000; ++i) dashes += "- ";
  EXPECT_NE(read(dashes + "a").find("nested too deeply"), std::string::npos);
}

TEST(Yaml, DamageDoesNoHarm) {
  const std::string good =
      "models:\n  name: net  # a remark\n  list:\n    - 1,3,224,224\n    - 'a b'\n  configs: {mean: [1, 2.5], k: \"v\\n\"}\n  "
      "deep:\n  - a: 1\n    b: 2\n";
  std::mt19937 random(7);
  tests::Tally tally;
  for (int i = 0; i < tests::mutation_count(2000); ++i) {
    const std::vector<std::byte> bytes = tests::exact_copy(tests::mutate(good, random));
    tally.add(parse_yaml({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).is_ok());
  }
  EXPECT_GT(tally.read, 0u);
  EXPECT_GT(tally.refused, 0u);
}

}  // namespace
}  // namespace orknn::data
