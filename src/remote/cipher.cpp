#include "remote/cipher.h"

#include <sys/random.h>

#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "format/sodium.h"

namespace orknn::remote {
namespace {
static_assert(sizeof(Digest) == format::kSealKeyBytes && Cipher::kTagBytes == format::kSealTagBytes);

using Nonce = std::array<unsigned char, format::kSealNonceBytes>;

Nonce nonce_of(uint64_t sequence) {
  Nonce nonce{};
  std::memcpy(nonce.data(), &sequence, sizeof sequence);
  return nonce;
}

const unsigned char* chars(std::span<const std::byte> bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
}  // namespace

Result<SharedKey> SharedKey::from_text(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < kMinBytes)
    return invalid_argument("the device key is too short")
        .expected("at least " + std::to_string(kMinBytes) + " bytes")
        .found(std::to_string(text.size()))
        .hint("make one with `rknn_server --make-key FILE`");
  if (!format::sodium())
    return unsupported("device keys need libsodium, which cannot be loaded").hint("install it (Debian: libsodium23)");
  SharedKey key;
  key.digest_ = blake2b(std::as_bytes(std::span(text)));
  key.is_set_ = true;
  return key;
}

Result<SharedKey> SharedKey::from_file(const std::string& path) {
  constexpr size_t kMaxBytes = 65536;
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
  if (file->bytes().size() > kMaxBytes)
    return invalid_argument("'" + path + "' is not a device key: it is larger than " + std::to_string(kMaxBytes) + " bytes");
  return from_text(std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
}

Result<SharedKey> SharedKey::from_environment() {
  const char* path = std::getenv("ORKNN_DEVICE_KEY");
  return path && *path ? from_file(path) : SharedKey{};
}

Random make_random() {
  Random random;
  size_t filled = 0;
  while (filled < random.size()) {
    const ssize_t n = ::getrandom(random.data() + filled, random.size() - filled, 0);
    if (n > 0) filled += static_cast<size_t>(n);
  }
  return random;
}

Cipher::Cipher(const SharedKey& key, const Random& client, const Random& server, Direction direction) {
  Blake2b hash(key.digest());
  const auto label = static_cast<std::byte>(direction);
  hash.update(std::span(&label, 1));
  hash.update(client);
  hash.update(server);
  key_ = hash.finish();
}

std::vector<std::byte> Cipher::seal(uint64_t sequence, std::span<const std::byte> extra, std::span<const std::byte> plain) const {
  std::vector<std::byte> sealed(plain.size() + kTagBytes);
  format::sodium()->seal(reinterpret_cast<unsigned char*>(sealed.data()), nullptr, chars(plain), plain.size(), chars(extra),
                         extra.size(), nullptr, nonce_of(sequence).data(), chars(key_));
  return sealed;
}

bool Cipher::open(uint64_t sequence, std::span<const std::byte> extra, std::span<const std::byte> sealed,
                  std::vector<std::byte>& plain) const {
  if (sealed.size() < kTagBytes) return false;
  plain.resize(sealed.size() - kTagBytes);
  return format::sodium()->open(reinterpret_cast<unsigned char*>(plain.data()), nullptr, nullptr, chars(sealed), sealed.size(),
                                chars(extra), extra.size(), nonce_of(sequence).data(), chars(key_)) == 0;
}

}  // namespace orknn::remote
