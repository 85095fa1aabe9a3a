#include "format/encrypted.h"

#if defined(ORKNN_SODIUM)
#include <sodium.h>
#endif

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "format/bytes.h"
#include "format/rknn_file.h"
#include "format/sodium.h"
#include "platform/platforms.h"

namespace orknn::format {
namespace {

constexpr std::string_view kEncryptedMagic = "CYPTRKNN";

bool has_text(std::span<const std::byte> bytes, size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() && std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}
}  // namespace

std::string passphrase_of_environment() {
  const char* text = std::getenv("ORKNN_PASSPHRASE");
  return text ? text : "";
}

bool is_encrypted(std::span<const std::byte> bytes) { return has_text(bytes, 0, kEncryptedMagic); }

#if !defined(ORKNN_SODIUM)
namespace {
Status no_encryption() {
  return unsupported("this build of OpenRKNN has no encryption").hint("libsodium was missing when it was built");
}
}  // namespace
Status encrypt(std::span<const std::byte>, const Encryption&, FileWriter&) { return no_encryption(); }
Status encrypt_rknn(const std::string&, const std::string&, const Encryption&) { return no_encryption(); }
Result<Decrypted> decrypt(std::span<const std::byte>, const std::string&) { return no_encryption(); }
#else
namespace {
constexpr std::string_view kOurMark = "ORKNNENC";
constexpr uint32_t kEncryptedVersion = 1;
enum HeaderFlag : uint32_t { kHasPassphrase = 1 };

// The whole header is authenticated with the contents.
struct Header {
  char magic[8];
  char mark[8];
  uint32_t version, level, flags, reserved;
  uint64_t plain_bytes;
  unsigned char salt[crypto_pwhash_SALTBYTES];
  unsigned char nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES];
};
static_assert(sizeof(Header) == 80);
constexpr size_t kTagBytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;

// It keeps viewers out and gives no secrecy: this file is public.
constexpr std::string_view kBuiltInKey = "OpenRKNN: no secret, see docs/rknn_format.md";

// Passes over, and bytes of, the memory that deriving a key takes.
struct Cost {
  unsigned long long passes;
  size_t memory_bytes;
};
constexpr Cost kCosts[] = {{2, size_t{4} << 20}, {3, size_t{32} << 20}, {4, size_t{128} << 20}};
static_assert(std::size(kCosts) == kMaxEncryptionLevel - kMinEncryptionLevel + 1);

Status initialize() {
  if (sodium()) return {};
  return unsupported("encrypted models need libsodium, which cannot be loaded").hint("install it (Debian: libsodium23)");
}

// A key that is wiped when it is no longer needed.
class Key {
 public:
  Key() = default;
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() { sodium()->memzero(bytes_.data(), bytes_.size()); }

  Status derive(const std::string& passphrase, const Header& header) {
    const std::string_view secret = passphrase.empty() ? kBuiltInKey : std::string_view(passphrase);
    const Cost& cost = kCosts[header.level - kMinEncryptionLevel];
    if (sodium()->pwhash(bytes_.data(), bytes_.size(), secret.data(), secret.size(), header.salt, cost.passes, cost.memory_bytes,
                         crypto_pwhash_ALG_ARGON2ID13) != 0)
      return Status::error(Code::OutOfMemory,
                           "no memory for the key of an encrypted model (" + std::to_string(cost.memory_bytes >> 20) + " MiB)")
          .hint("a lower crypt_level needs less");
    return {};
  }
  const unsigned char* data() const { return bytes_.data(); }

 private:
  std::array<unsigned char, crypto_aead_xchacha20poly1305_ietf_KEYBYTES> bytes_{};
};

const unsigned char* chars(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }

Status refused(const std::string& what) {
  return invalid_model("the encrypted model " + what).hint("copy it again, or export it again");
}

// Everything that can be wrong before a key is derived.
Result<Header> read_header(std::span<const std::byte> file) {
  if (!has_text(file, sizeof Header::magic, kOurMark))
    return unsupported("the model was encrypted by the vendor's toolkit")
        .hint("use the source model and convert it with OpenRKNN");
  if (file.size() < sizeof(Header) + kTagBytes) return refused("is cut off");
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version != kEncryptedVersion)
    return unsupported("the encrypted model was written by another version of OpenRKNN")
        .expected("version " + std::to_string(kEncryptedVersion))
        .found(std::to_string(header.version));
  if (header.level < kMinEncryptionLevel || header.level > kMaxEncryptionLevel || (header.flags & ~kHasPassphrase) != 0 ||
      header.reserved != 0)
    return refused("is damaged");
  const uint64_t rest = file.size() - sizeof header - kTagBytes;
  if (header.plain_bytes > rest) return refused("is cut off");
  if (header.plain_bytes < rest) return refused("is damaged: there are bytes after its end");
  return header;
}

std::shared_ptr<std::byte> allocate_wiped(size_t bytes) {
  constexpr std::align_val_t alignment{kFileAlignment};
  auto* memory = static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), alignment, std::nothrow));
  if (!memory) return nullptr;
  return {memory, [bytes](std::byte* p) {
            sodium()->memzero(p, bytes);
            ::operator delete(p, alignment);
          }};
}

Status check_level(const Encryption& encryption) {
  if (encryption.level >= kMinEncryptionLevel && encryption.level <= kMaxEncryptionLevel) return {};
  return invalid_argument("Invalid crypt_level " + std::to_string(encryption.level) + ", expect in [1, 2, 3]!");
}
}  // namespace

Status encrypt(std::span<const std::byte> plain, const Encryption& encryption, FileWriter& out) {
  ORKNN_TRY(check_level(encryption));
  ORKNN_TRY(initialize());
  Header header{};
  std::memcpy(header.magic, kEncryptedMagic.data(), sizeof header.magic);
  std::memcpy(header.mark, kOurMark.data(), sizeof header.mark);
  header.version = kEncryptedVersion;
  header.level = static_cast<uint32_t>(encryption.level);
  header.flags = encryption.passphrase.empty() ? 0U : uint32_t{kHasPassphrase};
  header.plain_bytes = plain.size();
  sodium()->random(header.salt, sizeof header.salt);
  sodium()->random(header.nonce, sizeof header.nonce);
  Key key;
  ORKNN_TRY(key.derive(encryption.passphrase, header));
  const std::shared_ptr<std::byte> sealed = allocate_wiped(plain.size() + kTagBytes);
  if (!sealed) return Status::error(Code::OutOfMemory, "no memory for the encrypted model");
  unsigned long long sealed_bytes = 0;
  sodium()->seal(reinterpret_cast<unsigned char*>(sealed.get()), &sealed_bytes, chars(plain.data()), plain.size(),
                 reinterpret_cast<const unsigned char*>(&header), sizeof header, nullptr, header.nonce, key.data());
  ORKNN_TRY(out.write(std::as_bytes(std::span(&header, 1))));
  return out.write({sealed.get(), static_cast<size_t>(sealed_bytes)});
}

Status encrypt_rknn(const std::string& input, const std::string& output, const Encryption& encryption) {
  ORKNN_TRY(check_level(encryption));  // before a large model is read
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(input));
  if (is_encrypted(file->bytes())) return invalid_argument("the model is encrypted already").model(input);
  auto model = read_rknn(file->bytes(), file, ThreadPool::shared(), zero_weights());
  if (!model) return std::move(model).status().model(input);
  const platform::Platform* chip = platform::find(model->target_platform);
  if (chip && !chip->features.encryption)
    return unsupported("the runtime of " + model->target_platform + " opens no encrypted models").model(input);
  return write_file_atomically(output, [&](FileWriter& out) {
    ORKNN_TRY(encrypt(file->bytes(), encryption, out));
    return file->check();
  });
}

Result<Decrypted> decrypt(std::span<const std::byte> file, const std::string& passphrase) {
  ORKNN_TRY_ASSIGN(const Header header, read_header(file));
  ORKNN_TRY(initialize());
  const bool has_passphrase = (header.flags & kHasPassphrase) != 0;
  if (has_passphrase && passphrase.empty())
    return invalid_argument("the model is encrypted with a passphrase").hint("put it into the environment: ORKNN_PASSPHRASE=...");
  Key key;
  ORKNN_TRY(key.derive(has_passphrase ? passphrase : "", header));
  const std::shared_ptr<std::byte> plain = allocate_wiped(header.plain_bytes);
  if (!plain)
    return Status::error(Code::OutOfMemory, "no memory for the model (" + std::to_string(header.plain_bytes) + " bytes)");
  unsigned long long plain_bytes = 0;
  const auto sealed = file.subspan(sizeof header);
  if (sodium()->open(reinterpret_cast<unsigned char*>(plain.get()), &plain_bytes, nullptr, chars(sealed.data()), sealed.size(),
                     reinterpret_cast<const unsigned char*>(&header), sizeof header, header.nonce, key.data()) != 0)
    return refused(has_passphrase ? "was changed, or the passphrase is another one" : "was changed");
  return Decrypted{{plain.get(), static_cast<size_t>(plain_bytes)}, plain};
}

#endif

}  // namespace orknn::format
