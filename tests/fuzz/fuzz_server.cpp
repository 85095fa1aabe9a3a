// libFuzzer target: what a client may send. The first byte chooses: even = the rest are the bytes of a connection, odd = the rest
// are messages (type, two bytes of length, payload) that are framed properly after a login, so that every message is reached.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/log.h"
#include "server/session.h"

using namespace orknn;

namespace {

// The numbers of messages are close together, so that one byte finds them.
remote::Type type_of(uint8_t byte) { return static_cast<remote::Type>(byte % 12); }

std::vector<std::byte> as_connection(std::span<const std::byte> data) {
  remote::FrameWriter writer;
  std::vector<std::byte> stream;
  writer.write(remote::Type::Hello, remote::Hello{remote::kProtocolVersion, {}}.encode(), stream);
  writer.write(remote::Type::Login, remote::Login{"fuzz"}.encode(), stream);
  while (data.size() >= 3) {
    const size_t length = static_cast<size_t>(data[1]) | static_cast<size_t>(data[2]) << 8;
    const std::span<const std::byte> payload = data.subspan(3, std::min(length, data.size() - 3));
    writer.write(type_of(static_cast<uint8_t>(data[0])), payload, stream);
    data = data.subspan(3 + payload.size());
  }
  return stream;
}

server::Board& board() {
  static server::Board b(platform::default_platform(), "fuzz", {.model_bytes = 1 << 20, .models = 4, .message_bytes = 1 << 20});
  return b;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (set_log_sink([](LogLevel, std::string_view, std::string_view) {}), true);
  if (!quiet || size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  server::Session session(board(), {});
  std::vector<std::byte> out;
  const std::vector<std::byte> stream = data[0] & 1 ? as_connection(bytes) : std::vector(bytes.begin(), bytes.end());
  session.receive(stream, out);
  if (out.size() > (size_t{4} << 20)) std::abort();
  return 0;
}
