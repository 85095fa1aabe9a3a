// Authenticated encryption of a connection whose ends share a key. Both ends send 32 random bytes in the open; each direction
// gets a key of its own, derived from these and the shared one, and numbers its frames.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/blake2b.h"
#include "base/status.h"

namespace orknn::remote {

using Random = std::array<std::byte, 32>;

// What both ends know: the contents of a key file. Empty = no encryption.
class SharedKey {
 public:
  static constexpr size_t kMinBytes = 16;  // shorter secrets can be guessed from a recorded connection
  SharedKey() = default;
  // Trailing line ends do not count. An error when it is too short or libsodium cannot be loaded.
  static Result<SharedKey> from_text(std::string text);
  static Result<SharedKey> from_file(const std::string& path);
  // ORKNN_DEVICE_KEY names a file; nothing when it is not set.
  static Result<SharedKey> from_environment();
  bool empty() const { return !is_set_; }
  const Digest& digest() const { return digest_; }

 private:
  Digest digest_{};
  bool is_set_ = false;
};

// Unpredictable bytes of the system.
Random make_random();

enum class Direction : uint8_t { ToServer = 1, ToClient = 2 };

// One direction of one connection.
class Cipher {
 public:
  static constexpr size_t kTagBytes = 16;
  Cipher(const SharedKey& key, const Random& client, const Random& server, Direction direction);
  // `extra` is authenticated with the contents and not part of them.
  std::vector<std::byte> seal(uint64_t sequence, std::span<const std::byte> extra, std::span<const std::byte> plain) const;
  // False when the bytes, the number or `extra` are not what the other end sealed.
  bool open(uint64_t sequence, std::span<const std::byte> extra, std::span<const std::byte> sealed,
            std::vector<std::byte>& plain) const;

 private:
  Digest key_;
};

}  // namespace orknn::remote
