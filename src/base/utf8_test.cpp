#include "base/utf8.h"

#include <gtest/gtest.h>

#include "base/printable_line.h"

namespace orknn {

TEST(Utf8, ValidTextStays) {
  for (const char* text : {"", "conv/1", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(is_utf8(text));
    EXPECT_EQ(to_utf8(text), text);
  }
}

TEST(Utf8, OtherBytesAreSpelledOut) {
  EXPECT_EQ(to_utf8("a\xff"
                    "b"),
            "a\\xffb");
  EXPECT_EQ(to_utf8("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(to_utf8("\xc0\x80"), "\\xc0\\x80") << "overlong";
  EXPECT_EQ(to_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(to_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
  EXPECT_FALSE(is_utf8("\x80"));
}

TEST(Utf8, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(printable("No\x1b[31mSuch\r\x7f"), "No\\x1b[31mSuch\\x0d\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J")
      << "the one-character form of ESC [";
  EXPECT_EQ(printable("two\nlines\tand \xc3\xa4\xff"), "two\nlines\tand \xc3\xa4\\xff");
  EXPECT_EQ(to_utf8("\x1b"), "\x1b");
  EXPECT_EQ(printable("a\u202eb\u2066\u200f\u061c\u2028"),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c\\xe2\\x80\\xa8");
  EXPECT_EQ(printable("\u200b\u2030\u206a\u00a0"), "\u200b\u2030\u206a\u00a0") << "neighbours of those";
}

TEST(Utf8, ALineStaysOneLine) {
  EXPECT_EQ(printable_line("conv\nE all is lost\t\xc3\xa4\x1b"), "conv\\x0aE all is lost\\x09\xc3\xa4\\x1b");
  EXPECT_EQ(printable_line("conv 1"), "conv 1");
}

}  // namespace orknn
