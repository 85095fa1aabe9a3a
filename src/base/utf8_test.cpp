#include "base/utf8.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(to_utf8("\x1b"), "\x1b") << "names keep their characters";
}

}  // namespace orknn
