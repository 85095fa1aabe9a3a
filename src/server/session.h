// What one client may say when, and what it gets for it: bytes in, bytes out. Nothing here reads or writes sockets, so any
// sequence of bytes can be tried. A client has at most one model.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "remote/messages.h"
#include "remote/socket.h"
#include "remote/wire.h"
#include "server/board.h"

namespace orknn::server {

class Session {
 public:
  // `key`: what the client must know; empty = nothing. The board outlives the session.
  Session(Board& board, remote::SharedKey key);

  // Takes bytes as they arrive and appends the replies to `out`. False: send `out`, then close the connection.
  bool receive(std::span<const std::byte> bytes, std::vector<std::byte>& out);
  // A descriptor that came with the next bytes.
  void attach(remote::Descriptor descriptor) { descriptor_ = std::move(descriptor); }

  // How the session reaches its client while receive() is under way; without them everything waits for its end.
  struct Connection {
    std::function<bool(std::vector<std::byte>& out)> send;  // sends and clears; false = the client takes nothing more
    std::function<bool()> is_gone;                          // no client waits for the results of a run
  };
  void use(Connection connection) { connection_ = std::move(connection); }

  // The client is gone: gives its model and memory back.
  void close();

  bool is_logged_in() const { return state_ >= State::LoggedIn; }
  // Whether the last bytes ended inside of a message, or the client owes parts of a model.
  bool is_inside_message() const { return reader_.is_inside_frame() || state_ == State::Receiving; }
  // Bytes that have arrived of a model that is on its way; nothing when none is.
  std::optional<uint64_t> uploaded() const {
    return state_ == State::Receiving ? std::optional<uint64_t>(parts_.size()) : std::nullopt;
  }
  // Messages that came whole.
  uint64_t messages() const { return messages_; }
  const std::string& client() const { return client_; }
  const std::string& model() const { return model_; }

 private:
  enum class State { New, Greeted, LoggedIn, Receiving, Loaded };

  // An error ends the connection.
  Status handle(const remote::Frame& frame);
  Status greet(const remote::Frame& frame);
  Status log_in(const remote::Frame& frame);
  // Errors of these are replies; the client may go on.
  Status request(const remote::Frame& frame);
  Status offer(const remote::Offer& offer);
  Status part(std::span<const std::byte> bytes);
  void give_up_upload();
  Status fetch(const remote::Fetch& fetch);
  Status share(const remote::Share& share);
  Status run(std::span<const std::byte> payload);
  Status trace(std::span<const std::byte> payload);
  Status amend(std::span<const std::byte> payload);
  Status measure(const remote::Measure& measure);
  RunRequest request_of(const remote::Run& run) const;
  Status use(std::unique_ptr<BoardContext> context);
  // Views of what the client sent, in its memory or in the message.
  Result<std::vector<ir::TensorView>> inputs_of(const remote::Tensors& tensors, std::span<const std::byte> payload) const;
  void send_result(const remote::Run& run);
  void send(remote::Type type, std::span<const std::byte> payload);
  // Replies do not pile up: what waits is sent before more is made.
  Status send_waiting();

  Board& board_;
  const remote::SharedKey key_;
  State state_ = State::New;
  remote::FrameReader reader_{remote::kMaxHandshakeBytes};
  remote::FrameWriter writer_;
  std::vector<std::byte>* out_ = nullptr;  // of the receive() that is under way
  uint64_t messages_ = 0;
  std::string client_, model_;
  std::shared_ptr<const void> place_;  // among the clients that the board takes
  Connection connection_;
  remote::Descriptor descriptor_;
  remote::SharedMemory shared_;
  remote::Offer offer_;
  Board::Room room_;  // for what was offered
  std::vector<std::byte> parts_;
  uint64_t unwanted_ = 0;  // bytes of a model that was given up, whose parts may still come
  std::unique_ptr<BoardContext> context_;
  std::map<uint32_t, ir::TensorData> amendments_;  // for traces
  uint64_t amendment_bytes_ = 0;
};

}  // namespace orknn::server
