// Encrypted models: they open with the right key and, whatever was changed, never otherwise.
#include "format/encrypted.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "format/rknn_file.h"
#include "format_sample.h"
#include "mutation.h"
#include "temporary_folder.h"

namespace orknn::format {
namespace {

class Collected : public FileWriter {
 public:
  Status write(std::span<const std::byte> piece) override {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  }
  std::vector<std::byte> bytes;
};

std::vector<std::byte> sealed(std::span<const std::byte> plain, const Encryption& encryption = {}) {
  Collected out;
  const Status status = encrypt(plain, encryption, out);
  EXPECT_TRUE(status) << status.to_string();
  return out.bytes;
}
std::vector<std::byte> sample_file() { return std::move(*write_rknn_to_memory(sample_model())); }

// Sets the passphrase of the environment while it lives.
class Passphrase {
 public:
  explicit Passphrase(const char* text) { setenv("ORKNN_PASSPHRASE", text, 1); }
  ~Passphrase() { unsetenv("ORKNN_PASSPHRASE"); }
};

TEST(EncryptedFile, OpensOnEveryLevel) {
  const std::vector<std::byte> plain = sample_file();
  for (int level = kMinEncryptionLevel; level <= kMaxEncryptionLevel; ++level) {
    const std::vector<std::byte> file = sealed(plain, {level, ""});
    EXPECT_TRUE(is_encrypted(file));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.data()), 8), "CYPTRKNN");
    const auto model = read_rknn(file, nullptr);
    ASSERT_TRUE(model) << model.status().to_string();
    EXPECT_EQ(*write_rknn_to_memory(*model), plain);
  }
}

TEST(EncryptedFile, HidesItsContents) {
  const std::vector<std::byte> plain = sample_file(), file = sealed(plain), again = sealed(plain);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  EXPECT_EQ(text.find("Relu"), text.npos);
  EXPECT_EQ(text.find("rk3588"), text.npos);
  EXPECT_NE(file, again) << "salt and nonce are new each time";
}

TEST(EncryptedFile, PassphraseIsNeeded) {
  const std::vector<std::byte> file = sealed(sample_file(), {1, "correct horse"});
  const auto without = read_rknn(file, nullptr);
  EXPECT_NE(without.status().to_string().find("ORKNN_PASSPHRASE"), std::string::npos) << without.status().to_string();
  {
    const Passphrase wrong("correct horsf");
    const auto model = read_rknn(file, nullptr);
    EXPECT_NE(model.status().to_string().find("passphrase is another one"), std::string::npos) << model.status().to_string();
  }
  const Passphrase right("correct horse");
  EXPECT_TRUE(read_rknn(file, nullptr));
  EXPECT_TRUE(read_rknn(sealed(sample_file()), nullptr)) << "a file with the built-in key opens whatever the environment says";
}

// A file with a passphrase may not be turned into one that claims to have none, nor to another level.
TEST(EncryptedFile, HeaderIsAuthentic) {
  const std::vector<std::byte> file = sealed(sample_file());
  for (size_t i = 0; i < 80; ++i) {
    std::vector<std::byte> changed = file;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(read_rknn(changed, nullptr)) << i;
  }
}

TEST(EncryptedFile, EveryTruncationIsRefused) {
  const std::vector<std::byte> file = sealed(sample_file());
  for (size_t n = 0; n < file.size(); ++n) ASSERT_FALSE(read_rknn(std::span(file).first(n), nullptr)) << n;
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte{0});
  EXPECT_NE(read_rknn(longer, nullptr).status().to_string().find("after its end"), std::string::npos);
}

// Every byte counts; a few of the many are tried, each costs a key.
TEST(EncryptedFile, DamageDoesNoHarm) {
  const std::vector<std::byte> good = sealed(sample_file());
  const std::string text(reinterpret_cast<const char*>(good.data()), good.size());
  std::mt19937 random(5);
  for (int i = 0; i < tests::mutation_count(2000) / 20; ++i) {
    const std::string bad = tests::mutate(text, random);
    const std::vector<std::byte> bytes = tests::exact_copy(bad);
    if (bad != text) {
      EXPECT_FALSE(read_rknn(bytes, nullptr)) << i;
    }
  }
}

TEST(EncryptedFile, WrapsFilesOnce) {
  const tests::TemporaryFolder folder;
  const std::string plain = folder.file("a.rknn"), secret = folder.file("b.rknn"), none = folder.file("c.rknn");
  ASSERT_TRUE(write_rknn(sample_model(), plain));
  ASSERT_TRUE(encrypt_rknn(plain, secret, {2, ""}));
  EXPECT_TRUE(read_rknn(secret));
  EXPECT_NE(encrypt_rknn(secret, none, {}).to_string().find("encrypted already"), std::string::npos);
  EXPECT_NE(encrypt_rknn(plain, none, {4, ""}).to_string().find("Invalid crypt_level 4"), std::string::npos);
  Model small = sample_model();
  small.target_platform = "rv1106";
  const std::string refused = folder.file("d.rknn");
  ASSERT_TRUE(write_rknn(small, refused));
  EXPECT_NE(encrypt_rknn(refused, none, {}).to_string().find("opens no encrypted models"), std::string::npos);
  const auto twice = read_rknn(sealed(sealed(sample_file())), nullptr);
  EXPECT_NE(twice.status().to_string().find("encrypted twice"), std::string::npos);
  std::vector<std::byte> vendor(64, std::byte{'x'});
  std::memcpy(vendor.data(), "CYPTRKNN", 8);
  EXPECT_NE(read_rknn(vendor, nullptr).status().to_string().find("vendor's toolkit"), std::string::npos);
}

}  // namespace
}  // namespace orknn::format
