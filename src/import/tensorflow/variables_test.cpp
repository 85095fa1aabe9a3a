#include "import/tensorflow/variables.h"

#include <gtest/gtest.h>

#include <span>

namespace orknn::importer::tensorflow {
namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
// `shared` bytes of the key before, then `key`.
std::string entry(size_t shared, const std::string& key, const std::string& value) {
  return varint(shared) + varint(key.size()) + varint(value.size()) + key + value;
}
// Of entries, without restarts, and its trailer.
std::string block(const std::string& entries) { return entries + std::string(4, '\0') + std::string(5, '\0'); }
std::string handle(size_t offset, size_t size) { return varint(offset) + varint(size); }

// A table of one block, which its index names `times`.
std::string table(const std::string& entries, int times = 1) {
  std::string file = block(entries), named;
  for (int i = 0; i < times; ++i) named += entry(0, "z", handle(0, file.size() - 5));
  const std::string index = block(named);
  std::string footer = handle(0, 0) + handle(file.size(), index.size() - 5);
  footer.resize(40);
  return file + index + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}
auto read(const std::string& file) { return read_table(std::as_bytes(std::span(file.data(), file.size()))); }

TEST(VariableTable, NamesShareTheirBeginnings) {
  const std::string file = table(entry(0, "", "h") + entry(0, "layer/bias", "1") + entry(6, "kernel", "23"));
  const auto entries = read(file);
  ASSERT_TRUE(entries) << entries.status().to_string();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[2].first, "layer/kernel");
  EXPECT_EQ((*entries)[2].second.size(), 2u);
}

TEST(VariableTable, ABlockThatIsNamedAgainAndAgainIsNotReadAgain) {
  const auto entries = read(table(entry(0, std::string(300, 'n'), "v"), 100));
  ASSERT_FALSE(entries);
  EXPECT_NE(entries.status().to_string().find("blocks that overlap"), std::string::npos);
}

TEST(VariableTable, NamesThatGrowWithEveryEntryAreRefused) {
  std::string entries;
  for (size_t i = 0; i < 5000; ++i) entries += entry(i, "n", "");
  const auto read_back = read(table(entries));
  ASSERT_FALSE(read_back);
  EXPECT_NE(read_back.status().to_string().find("names longer than their table"), std::string::npos);
}

}  // namespace
}  // namespace orknn::importer::tensorflow
