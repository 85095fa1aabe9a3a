// libFuzzer target: what a client may send. The first byte chooses: even = the rest are the bytes of a connection, which arrive
// in pieces of its size; odd = the rest are messages (type, two bytes of length, payload) that are framed properly after a login,
// so that every message is reached. What nobody can guess is put in for the fuzzer: an Offer without a payload is one of a model
// that the board holds, with one byte that of the message that follows; a Share comes with memory of the size that it states,
// within limits.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "compile/compile.h"
#include "format/rknn_file.h"
#include "ir/text.h"
#include "server/session.h"

using namespace orknn;

namespace {
constexpr uint64_t kLimit = 1 << 20;

// An input, a branch and two results.
std::vector<std::byte> make_model() {
  auto graph = ir::parse(R"(graph "g" (%x: float32[1,2,2,2]) -> (%y, %z) {
  %a: float32[1,2,2,2] = Relu(%x)
  %y: float32[1,2,2,2] = Sigmoid(%a)
  %z: float32[1,4,2,2] = Concat(%a, %x) {axis = 1}
})");
  auto program = compile::compile(std::move(*graph), {.float_dtype = DType::Float32});
  format::Model model;
  model.name = "fuzz";
  model.target_platform = platform::default_platform().name;
  model.float_dtype = "float32";
  model.programs.push_back(std::move(*program));
  return *format::write_rknn_to_memory(model);
}

struct Target {
  server::Board board{platform::default_platform(), "fuzz", {.model_bytes = kLimit, .models = 4, .message_bytes = kLimit}};
  std::vector<std::byte> model = make_model();
  Digest digest = blake2b(model);
  std::unique_ptr<server::BoardContext> user;  // keeps the model on the board

  Target() {
    set_log_sink([](LogLevel, std::string_view, std::string_view) {});
    user = std::move(*board.add(digest, model, *board.reserve(digest, model.size())));
  }
};
Target& target() {
  static Target t;
  return t;
}

// The numbers of messages are close together, so that one byte finds them.
remote::Type type_of(uint8_t byte) { return static_cast<remote::Type>(byte % 12); }

struct Message {
  remote::Type type;
  std::span<const std::byte> payload;
};
std::vector<Message> messages_of(std::span<const std::byte> data) {
  std::vector<Message> messages;
  while (data.size() >= 3) {
    const size_t length = static_cast<size_t>(data[1]) | static_cast<size_t>(data[2]) << 8;
    messages.push_back({type_of(static_cast<uint8_t>(data[0])), data.subspan(3, std::min(length, data.size() - 3))});
    data = data.subspan(3 + messages.back().payload.size());
  }
  return messages;
}

std::vector<std::byte> payload_of(const std::vector<Message>& messages, size_t i) {
  const Message& m = messages[i];
  if (m.type == remote::Type::Offer && m.payload.empty()) return remote::Offer{target().digest, target().model.size()}.encode();
  if (m.type == remote::Type::Offer && m.payload.size() == 1 && i + 1 < messages.size())
    return remote::Offer{blake2b(messages[i + 1].payload), messages[i + 1].payload.size()}.encode();
  return {m.payload.begin(), m.payload.end()};
}

void attach_memory(server::Session& session, std::span<const std::byte> payload) {
  uint64_t bytes = 0;
  if (payload.size() != sizeof bytes) return;
  std::memcpy(&bytes, payload.data(), sizeof bytes);
  if (bytes == 0 || bytes > 1 << 16) return;
  const auto memory = remote::SharedMemory::create(bytes);
  if (memory) session.attach(remote::Descriptor(::dup(memory->fd())));
}

void send_messages(server::Session& session, const std::vector<Message>& messages, std::vector<std::byte>& out) {
  remote::FrameWriter writer;
  std::vector<std::byte> stream;
  writer.write(remote::Type::Hello, remote::Hello{remote::kProtocolVersion, {}}.encode(), stream);
  writer.write(remote::Type::Login, remote::Login{"fuzz"}.encode(), stream);
  bool goes_on = session.receive(stream, out);
  for (size_t i = 0; i < messages.size() && goes_on; ++i) {
    const std::vector<std::byte> payload = payload_of(messages, i);
    if (messages[i].type == remote::Type::Share) attach_memory(session, payload);
    stream.clear();
    writer.write(messages[i].type, payload, stream);
    goes_on = session.receive(stream, out);
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::span<const std::byte> bytes = std::as_bytes(std::span(data, size)).subspan(1);
  server::Session session(target().board, {});
  std::vector<std::byte> out;
  if (data[0] & 1) {
    send_messages(session, messages_of(bytes), out);
  } else {
    const size_t piece = data[0] ? data[0] : bytes.size();
    for (bool goes_on = true; goes_on && !bytes.empty();) {
      goes_on = session.receive(bytes.first(std::min(piece, bytes.size())), out);
      bytes = bytes.subspan(std::min(piece, bytes.size()));
    }
  }
  if (out.size() > (size_t{64} << 20)) std::abort();
  return 0;
}
