// Frames of the connection between a client and rknn_server (docs/server_protocol.md): a header of fixed size and a payload.
// Nothing here reads or writes sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "remote/cipher.h"

namespace orknn::remote {

inline constexpr uint16_t kProtocolVersion = 1;
inline constexpr uint64_t kMaxHandshakeBytes = 1024;  // of a payload before the client is known

enum class Type : uint16_t {
  // client to server
  Hello = 1,
  Login = 2,
  Offer = 3,
  Part = 4,
  Run = 5,
  Share = 6,
  Measure = 7,
  Fetch = 8,
  Trace = 9,
  Amend = 10,
  // server to client
  Welcome = 101,
  Ready = 102,
  Wanted = 103,
  Loaded = 104,
  Result = 105,
  Shared = 106,
  Measured = 107,
  Problem = 108,
  File = 109,
  Layer = 110,
  Amended = 111,
};

struct FrameHeader {
  uint32_t magic;
  uint16_t type;
  uint16_t flags;  // kSealed
  uint64_t sequence;
  uint64_t payload_bytes;  // as they follow, sealed or not
  uint64_t payload_check;  // checksum64 of the payload; 0 when it is sealed
  uint64_t header_check;   // checksum64 of all of the above
};
static_assert(sizeof(FrameHeader) == 40);
inline constexpr uint32_t kMagic = 0x4b4e524f;  // "ORNK"
enum FrameFlag : uint16_t { kSealed = 1 };

struct Frame {
  Type type{};
  std::vector<std::byte> payload;
};

// The frames of one direction, in order.
class FrameWriter {
 public:
  void use(Cipher cipher) { cipher_ = std::move(cipher); }
  // Appends a frame to `out`.
  void write(Type type, std::span<const std::byte> payload, std::vector<std::byte>& out);

 private:
  std::optional<Cipher> cipher_;
  uint64_t sequence_ = 0;
};

// Takes bytes as they arrive. Memory grows with the bytes that have come, never with what a header promises.
class FrameReader {
 public:
  explicit FrameReader(uint64_t max_payload_bytes) : max_payload_(max_payload_bytes) {}
  void use(Cipher cipher) { cipher_ = std::move(cipher); }
  void set_limit(uint64_t max_payload_bytes) { max_payload_ = max_payload_bytes; }

  // Consumes the front of `bytes` up to the end of one frame. A frame when one is complete, nothing when more bytes are needed,
  // an error when the stream is damaged: then nothing more can be read from it.
  Result<std::optional<Frame>> read(std::span<const std::byte>& bytes);
  // Whether the last bytes ended inside of a frame.
  bool is_inside_frame() const { return head_bytes_ > 0; }

 private:
  Status check_header();
  Result<Frame> finish();
  std::optional<Cipher> cipher_;
  uint64_t max_payload_;
  uint64_t sequence_ = 0;
  FrameHeader header_{};
  size_t head_bytes_ = 0;
  std::vector<std::byte> payload_;
};

}  // namespace orknn::remote
