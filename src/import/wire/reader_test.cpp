#include "import/wire/reader.h"

#include <gtest/gtest.h>

#include <optional>

#include "onnx_writer.h"

namespace orknn::importer::wire {
namespace {
using orknn::tests::Message;

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// Walks a whole message; returns how many fields it has, or -1 when it is damaged.
int count_fields(std::string_view text) {
  Reader reader(bytes_of(text));
  int count = 0;
  for (Field field; reader.next(field);) ++count;
  return reader.status().is_ok() ? count : -1;
}

TEST(Wire, ReadsEveryType) {
  const std::string text =
      Message().number(1, -2).real(2, 1.5f).text(3, "abc").bytes() + std::string("\x21\1\0\0\0\0\0\0\x80", 9);
  Reader reader(bytes_of(text));
  Field f;
  ASSERT_TRUE(reader.next(f));
  int64_t number = 0;
  EXPECT_TRUE(f.get(number));
  EXPECT_EQ(number, -2);
  ASSERT_TRUE(reader.next(f));
  float real = 0;
  EXPECT_FALSE(f.get(number)) << "a float field is no varint";
  EXPECT_TRUE(f.get(real));
  EXPECT_EQ(real, 1.5f);
  ASSERT_TRUE(reader.next(f));
  std::string_view name;
  EXPECT_TRUE(f.get(name));
  EXPECT_EQ(name, "abc");
  ASSERT_TRUE(reader.next(f));
  EXPECT_EQ(f.type, WireType::Fixed64);
  EXPECT_EQ(f.scalar, 0x8000000000000001u);
  EXPECT_FALSE(reader.next(f));
  EXPECT_TRUE(reader.status());
}

TEST(Wire, ReadsListsPackedOrNot) {
  const tests::Ints values{0, 1, -1, 300, INT64_MAX};
  for (bool packed : {false, true}) {
    const std::string text = Message().numbers(5, values, packed).bytes();
    std::vector<int64_t> read;
    Reader reader(bytes_of(text));
    for (Field f; reader.next(f);) ASSERT_TRUE(append(f, read));
    EXPECT_EQ(read, values);
  }
}

TEST(Wire, FieldsGoIntoVariablesByTheirNumbers) {
  const Message inner = Message().number(1, 5);
  const std::string text = Message()
                               .number(1, 3)
                               .number(1, 4)
                               .text(2, "a")
                               .text(2, "b")
                               .numbers(3, tests::Ints{7, 8}, true)
                               .message(4, inner)
                               .text(5, "last")
                               .text(6, "no number")
                               .number(9, 1)
                               .bytes();
  int64_t number = 0, within = 0;
  std::vector<std::string_view> texts;
  std::vector<int64_t> numbers;
  std::string word;
  std::optional<int64_t> absent, present, other_type;
  ASSERT_TRUE(read_fields(bytes_of(text), Slot{1, number}, Slot{2, texts}, Slot{3, numbers},
                          Slot{4,
                               [&](Bytes message) {
                                 return read_fields(message, Slot{1, within});
                               }},
                          Slot{5, word}, Slot{6, other_type}, Slot{7, absent}, Slot{9, present}));
  EXPECT_EQ(number, 4);
  EXPECT_EQ(texts, (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(numbers, (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(within, 5);
  EXPECT_EQ(word, "last");
  EXPECT_EQ(present, 1);
  EXPECT_FALSE(absent || other_type);
  EXPECT_FALSE(read_fields(bytes_of(text.substr(0, text.size() - 1)), Slot{1, number})) << "the message is cut";
}

TEST(Wire, PassesOverGroups) {
  // Field 1 is a group that holds a group and a string; then comes field 2.
  const std::string text = std::string("\x0b\x1b\x1c\x22\x02hi\x0c", 8) + Message().number(2, 7).bytes();
  EXPECT_EQ(count_fields(text), 2);
  EXPECT_EQ(count_fields("\x0b"), -1) << "never closed";
  EXPECT_EQ(count_fields("\x0b\x14"), -1) << "closed by another number";
  EXPECT_EQ(count_fields("\x0c"), -1) << "closed without being opened";
  EXPECT_EQ(count_fields(std::string(200, '\x0b')), -1) << "nested too deeply";
}

TEST(Wire, RefusesDamage) {
  EXPECT_EQ(count_fields("\x08"), -1) << "no number";
  EXPECT_EQ(count_fields("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), -1) << "number too long";
  EXPECT_EQ(count_fields("\x12\x05"
                         "abcd"),
            -1)
      << "text shorter than stated";
  EXPECT_EQ(count_fields("\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), -1) << "length beyond any file";
  EXPECT_EQ(count_fields("\x0d\x01\x02"), -1) << "half a float";
  EXPECT_EQ(count_fields("\x0e"), -1) << "wire type 6";
  EXPECT_EQ(count_fields(std::string("\0\0", 2)), -1) << "field number 0";
  std::vector<float> floats;
  Reader reader(
      bytes_of("\x22\x03"
               "abc"));
  Field f;
  ASSERT_TRUE(reader.next(f));
  EXPECT_FALSE(append(f, floats)) << "a packed list of floats has a multiple of four bytes";
}

}  // namespace
}  // namespace orknn::importer::wire
