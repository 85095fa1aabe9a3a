// BLAKE2b (RFC 7693): names contents by 32 bytes for which no second contents can be found, and derives keys from a secret.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace orknn {

using Digest = std::array<std::byte, 32>;

class Blake2b {
 public:
  static constexpr size_t kMaxKeyBytes = 64;
  // `key`: at most kMaxKeyBytes; none = a plain digest.
  explicit Blake2b(std::span<const std::byte> key = {});
  void update(std::span<const std::byte> bytes);
  // Ends the message; nothing may follow.
  Digest finish();

 private:
  static constexpr size_t kBlock = 128;
  void compress(const std::byte* block, bool last);
  std::array<uint64_t, 8> state_;
  std::array<std::byte, kBlock> pending_{};
  size_t pending_bytes_ = 0;
  uint64_t total_ = 0;  // bytes compressed so far; messages stay below 2^64
};

Digest blake2b(std::span<const std::byte> bytes, std::span<const std::byte> key = {});

}  // namespace orknn
