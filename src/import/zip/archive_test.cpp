// DEFLATE streams made by zlib, whole and damaged, and the limits of archives.
#include "import/zip/archive.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "import/zip/inflate.h"
#include "torch_writer.h"

namespace orknn {
namespace {
using importer::zip::inflate;

std::string text(int repeats) {
  std::string out;
  for (int r = 0; r < repeats; ++r)
    for (int i = 0; i < 12; ++i) out += "line " + std::to_string(i * i % 7) + " of a text\n";
  return out;
}

struct Stream {
  const char* name;
  std::vector<unsigned char> bytes;
  std::string content;
};
std::vector<Stream> streams() {
  return {
      {"dynamic codes",
       {203, 201, 204, 75, 85, 48,  80, 200, 79,  83, 72,  84,  40,  73, 173, 40,  225, 202, 1,   9,  24,  162, 11, 152, 160, 11,
        24,  17,  20,  48, 33, 104, 40, 77,  172, 29, 245, 203, 168, 95, 70,  253, 50,  234, 151, 81, 191, 12,  10, 191, 0,   0},
       text(8)},
      {"fixed codes",
       {203, 201, 204, 75, 85,  48,  80, 200, 79, 83, 72, 84, 40,  73, 173, 40,  225, 202, 1,
        9,   24,  162, 11, 152, 160, 11, 24,  17, 20, 48, 33, 104, 40, 181, 173, 5,   0},
       text(1)},
      {"stored", {1, 6, 0, 249, 255, 115, 116, 111, 114, 101, 100}, "stored"}};
}

TEST(ImportZip, InflatesEveryBlockType) {
  for (const Stream& s : streams()) {
    const auto out = inflate(std::as_bytes(std::span(s.bytes)), s.content.size());
    ASSERT_TRUE(out.is_ok()) << s.name << ": " << out.status().to_string();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(out->data()), out->size()), s.content) << s.name;
  }
}

TEST(ImportZip, WrongSizesAndDamageAreRefused) {
  for (const Stream& s : streams()) {
    const auto bytes = std::as_bytes(std::span(s.bytes));
    EXPECT_FALSE(inflate(bytes, s.content.size() - 1).is_ok()) << s.name;
    EXPECT_FALSE(inflate(bytes, s.content.size() + 1).is_ok()) << s.name;
    for (size_t n = 0; n + 1 < bytes.size(); ++n)
      EXPECT_FALSE(inflate(bytes.first(n), s.content.size()).is_ok()) << s.name << " cut at " << n;
  }
  const unsigned char tiny[] = {3, 0};
  EXPECT_FALSE(inflate(std::as_bytes(std::span(tiny)), size_t{1} << 40).is_ok());
}

TEST(ImportZip, EntriesAreFound) {
  const std::string file = tests::zip_archive({{"a/one", "1"}, {"a/two", "22"}});
  const auto archive = importer::zip::Archive::open(std::as_bytes(std::span(file.data(), file.size())));
  ASSERT_TRUE(archive.is_ok()) << archive.status().to_string();
  ASSERT_NE(archive->find("a/two"), nullptr);
  EXPECT_EQ(*archive->text(*archive->find("a/two"), 10), "22");
  EXPECT_FALSE(archive->text(*archive->find("a/two"), 1).is_ok());
  EXPECT_EQ(archive->find("a/three"), nullptr);
}

}  // namespace
}  // namespace orknn
