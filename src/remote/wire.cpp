#include "remote/wire.h"

#include <algorithm>

#include "base/checksum.h"

namespace orknn::remote {
namespace {
constexpr size_t kChecked = sizeof(FrameHeader) - sizeof(FrameHeader::header_check);

std::span<const std::byte> checked_part(const FrameHeader& header) {
  return std::as_bytes(std::span(&header, 1)).first(kChecked);
}

Status damaged(const std::string& what) {
  return io_error("the connection is damaged: " + what).hint("the other end is not an rknn_server, or the network changed bytes");
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }
}  // namespace

void FrameWriter::write(Type type, std::span<const std::byte> payload, std::vector<std::byte>& out) {
  FrameHeader header{kMagic, static_cast<uint16_t>(type), 0, sequence_++, payload.size(), 0, 0};
  std::vector<std::byte> sealed;
  if (cipher_) {
    header.flags = kSealed;
    header.payload_bytes += Cipher::kTagBytes;
    sealed = cipher_->seal(header.sequence, checked_part(header), payload);
    payload = sealed;
  } else {
    header.payload_check = checksum64(payload);
  }
  header.header_check = checksum64(checked_part(header));
  out.reserve(out.size() + sizeof header + payload.size());
  append(out, std::as_bytes(std::span(&header, 1)));
  append(out, payload);
}

Status FrameReader::check_header() {
  if (header_.magic != kMagic || header_.header_check != checksum64(checked_part(header_)))
    return damaged("no frame begins here");
  if (header_.sequence != sequence_) return damaged("a frame is missing or came twice");
  if (header_.flags != (cipher_ ? kSealed : 0)) return damaged(cipher_ ? "a frame is not sealed" : "a frame is sealed");
  const uint64_t limit = max_payload_ + (cipher_ ? Cipher::kTagBytes : 0);
  if (header_.payload_bytes > limit)
    return invalid_argument("a message is too large")
        .expected("at most " + std::to_string(limit) + " bytes")
        .found(std::to_string(header_.payload_bytes));
  return {};
}

Result<std::optional<Frame>> FrameReader::read(std::span<const std::byte>& bytes) {
  if (head_bytes_ < sizeof header_) {
    const size_t n = std::min(sizeof header_ - head_bytes_, bytes.size());
    std::ranges::copy(bytes.first(n), reinterpret_cast<std::byte*>(&header_) + head_bytes_);  // none: no pointer either
    head_bytes_ += n;
    bytes = bytes.subspan(n);
    if (head_bytes_ < sizeof header_) return std::optional<Frame>{};
    ORKNN_TRY(check_header());
  }
  const auto n = static_cast<size_t>(std::min<uint64_t>(header_.payload_bytes - payload_.size(), bytes.size()));
  append(payload_, bytes.first(n));
  bytes = bytes.subspan(n);
  if (payload_.size() < header_.payload_bytes) return std::optional<Frame>{};
  ORKNN_TRY_ASSIGN(Frame frame, finish());
  return std::optional<Frame>(std::move(frame));
}

Result<Frame> FrameReader::finish() {
  Frame frame{static_cast<Type>(header_.type), {}};
  if (cipher_) {
    if (!cipher_->open(header_.sequence, checked_part(header_), payload_, frame.payload))
      return damaged("a message was changed, or the keys differ");
    payload_.clear();
  } else {
    if (checksum64(payload_) != header_.payload_check) return damaged("a message was changed");
    frame.payload = std::move(payload_);
  }
  payload_ = {};
  head_bytes_ = 0;
  ++sequence_;
  return frame;
}

}  // namespace orknn::remote
