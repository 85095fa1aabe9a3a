// What is used of libsodium, which is loaded when it is first asked for: nothing else depends on it.
#pragma once

#include <cstddef>

namespace orknn::format {

inline constexpr size_t kSealKeyBytes = 32, kSealNonceBytes = 24, kSealTagBytes = 16;

// Functions of libsodium with its own signatures; seal and open are crypto_aead_xchacha20poly1305_ietf_*.
struct Sodium {
  void (*memzero)(void* memory, size_t bytes) = nullptr;
  void (*random)(void* memory, size_t bytes) = nullptr;
  int (*pwhash)(unsigned char* out, unsigned long long out_bytes, const char* secret, unsigned long long secret_bytes,
                const unsigned char* salt, unsigned long long passes, size_t memory_bytes, int algorithm) = nullptr;
  int (*seal)(unsigned char* sealed, unsigned long long* sealed_bytes, const unsigned char* plain, unsigned long long plain_bytes,
              const unsigned char* extra, unsigned long long extra_bytes, const unsigned char* unused, const unsigned char* nonce,
              const unsigned char* key) = nullptr;
  int (*open)(unsigned char* plain, unsigned long long* plain_bytes, unsigned char* unused, const unsigned char* sealed,
              unsigned long long sealed_bytes, const unsigned char* extra, unsigned long long extra_bytes,
              const unsigned char* nonce, const unsigned char* key) = nullptr;
};

// nullptr when the library cannot be loaded.
const Sodium* sodium();

}  // namespace orknn::format
