#include "base/blake2b.h"

#include <gtest/gtest.h>

#include <string>

namespace orknn {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte b : digest) {
    const char* digits = "0123456789abcdef";
    text += digits[static_cast<int>(b) >> 4];
    text += digits[static_cast<int>(b) & 15];
  }
  return text;
}

// Expected values: hashlib.blake2b(digest_size=32) of Python.
TEST(Blake2b, KnownDigests) {
  const std::string abc = "abc";
  const auto bytes = std::as_bytes(std::span(abc));
  EXPECT_EQ(hex(blake2b(bytes)), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  const std::string key(20, 'k');
  EXPECT_EQ(hex(blake2b(bytes, std::as_bytes(std::span(key)))),
            "a40ceed731608c8bf730f7bfcc7e2ed6e7786576d60bf0ce99a0af7451f22b74");
}

TEST(Blake2b, LongMessagesInAnyPieces) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7 + 1);
  const std::string key(20, 'k');
  const auto bytes = std::as_bytes(std::span(text));
  for (const size_t piece : {1, 127, 128, 129, 999}) {
    Blake2b hash(std::as_bytes(std::span(key)));
    for (size_t at = 0; at < bytes.size(); at += piece) hash.update(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    EXPECT_EQ(hex(hash.finish()), "47ad8edd58f00d0ab95cd31de851303ff27403a1d6902a91ecec47927ced344b") << piece;
  }
}

}  // namespace
}  // namespace orknn
