// Encrypted .rknn files (docs/rknn_format.md 5): XChaCha20-Poly1305 over the whole model, keyed by Argon2id. What was changed,
// cut off or made with another passphrase is never opened.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/files.h"

namespace orknn::format {

struct Encryption {
  int64_t level = 1;       // 1 to 3: what guessing a passphrase, and opening the file, costs
  std::string passphrase;  // empty = the built-in key, which everybody has: the model cannot be viewed, but it is no secret
};
inline constexpr int kMinEncryptionLevel = 1, kMaxEncryptionLevel = 3;

// The passphrase of the environment (ORKNN_PASSPHRASE), with which files are opened; empty when there is none.
std::string passphrase_of_environment();

// True for bytes that begin like an encrypted model, ours or the vendor's.
bool is_encrypted(std::span<const std::byte> bytes);

// Writes the model in the file `input` encrypted to `output`. Refused: what is no .rknn or is encrypted already, and chips whose
// runtime has no decryption.
Status encrypt_rknn(const std::string& input, const std::string& output, const Encryption& encryption);
// Encrypts any bytes.
Status encrypt(std::span<const std::byte> plain, const Encryption& encryption, FileWriter& out);

struct Decrypted {
  std::span<const std::byte> bytes;    // at a multiple of 64
  std::shared_ptr<const void> keeper;  // of `bytes`, which it wipes in the end
};
Result<Decrypted> decrypt(std::span<const std::byte> file, const std::string& passphrase);

}  // namespace orknn::format
