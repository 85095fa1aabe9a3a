#include "server/session.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/log.h"
#include "base/utf8.h"
#include "base/version.h"
#include "format/bytes.h"
#include "runtime/library_identity.h"

namespace orknn::server {
namespace {
using namespace remote;
constexpr size_t kMaxClientName = 64;
constexpr size_t kMaxWaiting = size_t{1} << 20;       // bytes of replies
constexpr uint64_t kAmendmentBytes = 128;             // that an entry takes besides its value
constexpr uint64_t kTraceBytes = uint64_t{64} << 20;  // of layers in one reply

Status out_of_order() { return invalid_argument("the client sent a message that does not belong here"); }

template <class Message>
Status decoded(const Frame& frame, const auto& then) {
  ORKNN_TRY_ASSIGN(const Message message, Message::decode(frame.payload));
  return then(message);
}
}  // namespace

Session::Session(Board& board, SharedKey key) : board_(board), key_(std::move(key)) {}

void Session::close() {
  context_.reset();
  shared_ = {};
  parts_ = {};
  room_ = nullptr;
  amendments_.clear();
  place_ = nullptr;
}

void Session::send(Type type, std::span<const std::byte> payload) { writer_.write(type, payload, *out_); }

Status Session::send_waiting() {
  if (out_->size() <= kMaxWaiting || !connection_.send || connection_.send(*out_)) return {};
  return io_error("the client does not read its replies");
}

bool Session::receive(std::span<const std::byte> bytes, std::vector<std::byte>& out) {
  out_ = &out;
  while (!bytes.empty()) {
    auto frame = reader_.read(bytes);
    Status problem = frame ? Status() : frame.status();
    if (frame && *frame) {
      ++messages_;
      try {
        problem = handle(**frame);
        if (problem) problem = send_waiting();
      } catch (const std::bad_alloc&) {
        problem = Status::error(Code::OutOfMemory, "memory ran out");
      }
    }
    if (problem) continue;
    log(LogLevel::Warn, "rknn_server", (client_.empty() ? "a client" : client_) + " is disconnected: " + problem.to_string());
    // Before it has logged in, a client is told nothing about the reason.
    if (is_logged_in()) send(Type::Problem, Problem::of(problem).encode());
    return false;
  }
  return true;
}

Status Session::handle(const Frame& frame) {
  if (state_ == State::New) return greet(frame);
  if (state_ == State::Greeted) return log_in(frame);
  if (state_ == State::Receiving && frame.type != Type::Part) return out_of_order();
  if (frame.type == Type::Part) {
    const uint64_t awaited = state_ == State::Receiving ? offer_.bytes - parts_.size() : unwanted_;
    if (frame.payload.size() > awaited || frame.payload.empty()) return out_of_order();
    if (state_ != State::Receiving) {  // sent before the client could know that the model is not taken
      unwanted_ -= frame.payload.size();
      return {};
    }
  } else {
    unwanted_ = 0;
  }
  if (const Status status = request(frame); !status) send(Type::Problem, Problem::of(status).encode());
  return {};
}

Status Session::greet(const Frame& frame) {
  if (frame.type != Type::Hello) return out_of_order();
  ORKNN_TRY_ASSIGN(const Hello hello, Hello::decode(frame.payload));
  const Welcome welcome{kProtocolVersion, !key_.empty(), make_random()};
  send(Type::Welcome, welcome.encode());
  if (hello.version != kProtocolVersion)
    return unsupported("it uses another version of the protocol")
        .expected(std::to_string(kProtocolVersion))
        .found(std::to_string(hello.version));
  if (!key_.empty()) {
    reader_.use(Cipher(key_, hello.random, welcome.random, Direction::ToServer));
    writer_.use(Cipher(key_, hello.random, welcome.random, Direction::ToClient));
  }
  state_ = State::Greeted;
  return {};
}

Status Session::log_in(const Frame& frame) {
  if (frame.type != Type::Login) return out_of_order();
  ORKNN_TRY_ASSIGN(const Login login, Login::decode(frame.payload));
  client_ = printable(login.client.substr(0, kMaxClientName));
  place_ = board_.admit_client();
  if (!place_) {
    const Status full = Status::error(Code::Fail, "the rknn_server has as many clients as it takes")
                            .expected("at most " + std::to_string(board_.limits().clients))
                            .hint("wait until one of them ends, or start the server with a larger --max-clients");
    send(Type::Problem, Problem::of(full).encode());
    return full;
  }
  reader_.set_limit(board_.limits().message_bytes);
  state_ = State::LoggedIn;
  Ready ready{std::string(version()), std::string(runtime::library_version_text()), std::string(board_.chip().name),
              board_.name(), board_.limits().message_bytes};
  send(Type::Ready, ready.encode());
  return {};
}

Status Session::request(const Frame& frame) {
  switch (frame.type) {
    case Type::Offer: return decoded<Offer>(frame, [&](const Offer& m) { return offer(m); });
    case Type::Part: return part(frame.payload);
    case Type::Fetch: return decoded<Fetch>(frame, [&](const Fetch& m) { return fetch(m); });
    case Type::Share: return decoded<Share>(frame, [&](const Share& m) { return share(m); });
    case Type::Measure: return decoded<Measure>(frame, [&](const Measure& m) { return measure(m); });
    case Type::Run: return run(frame.payload);
    case Type::Trace: return trace(frame.payload);
    case Type::Amend: return amend(frame.payload);
    default: return out_of_order();
  }
}

Status Session::offer(const Offer& offer) {
  context_.reset();
  amendments_.clear();
  amendment_bytes_ = 0;
  state_ = State::LoggedIn;
  ORKNN_TRY_ASSIGN(std::unique_ptr<BoardContext> context, board_.open(offer.digest));
  if (context) {
    send(Type::Wanted, Wanted{false}.encode());
    return use(std::move(context));
  }
  if (offer.bytes == 0) return invalid_argument("the model is empty");
  ORKNN_TRY_ASSIGN(room_, board_.reserve(offer.digest, offer.bytes));
  offer_ = offer;
  parts_.clear();
  state_ = State::Receiving;
  send(Type::Wanted, Wanted{true}.encode());
  return {};
}

void Session::give_up_upload() {
  unwanted_ = offer_.bytes - parts_.size();
  parts_ = {};
  room_ = nullptr;
  state_ = State::LoggedIn;
}

Status Session::part(std::span<const std::byte> bytes) {
  Status room = board_.fill(room_, parts_.size() + bytes.size());
  parts_.insert(parts_.end(), bytes.begin(), bytes.end());
  if (!room) {
    give_up_upload();
    return room;
  }
  if (parts_.size() < offer_.bytes) return {};
  state_ = State::LoggedIn;
  ORKNN_TRY_ASSIGN(std::unique_ptr<BoardContext> context,
                   board_.add(offer_.digest, std::exchange(parts_, {}), std::exchange(room_, nullptr)));
  return use(std::move(context));
}

Status Session::fetch(const Fetch& fetch) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, board_.read_file(fetch.path));
  send(Type::File, file->bytes());
  return file->check();
}

Status Session::use(std::unique_ptr<BoardContext> context) {
  context_ = std::move(context);
  state_ = State::Loaded;
  const runtime::Session& s = context_->session();
  model_ = printable(s.model().name);
  log(LogLevel::Info, "rknn_server", client_ + " uses " + model_);
  const Loaded loaded{static_cast<uint32_t>(s.model().programs.size()), static_cast<uint32_t>(s.inputs().size()),
                      static_cast<uint32_t>(s.outputs().size())};
  send(Type::Loaded, loaded.encode());
  return {};
}

Status Session::share(const Share& share) {
  if (share.bytes > board_.limits().message_bytes) return invalid_argument("the shared memory is too large");
  ORKNN_TRY_ASSIGN(shared_, SharedMemory::attach(std::move(descriptor_), share.bytes));
  send(Type::Shared, {});
  return {};
}

Result<std::vector<ir::TensorView>> Session::inputs_of(const Tensors& tensors, std::span<const std::byte> payload) const {
  const std::span<const std::byte> from = tensors.shared ? std::span<const std::byte>(shared_.bytes()) : payload;
  std::vector<ir::TensorView> views;
  uint64_t copied = 0;  // places may overlap: many small descriptions of one large memory
  for (const TensorPlace& place : tensors.places) {
    if (place.bytes > board_.limits().message_bytes - copied)
      return invalid_argument("the inputs are together larger than one message may be");
    copied += place.bytes;
    if (place.offset > from.size() || place.bytes > from.size() - place.offset)
      return invalid_argument("an input is outside the memory that was shared");
    views.push_back({place.dtype, place.dims, from.data() + place.offset});
  }
  return views;
}

Status Session::run(std::span<const std::byte> payload) {
  if (!context_) return invalid_argument("there is no model to run, load one first");
  Tensors tensors;
  ORKNN_TRY_ASSIGN(const Run run, Run::decode(payload, tensors));
  ORKNN_TRY_ASSIGN(const std::vector<ir::TensorView> inputs, inputs_of(tensors, payload));
  return context_->run(request_of(run), inputs, [&] { send_result(run); });
}

RunRequest Session::request_of(const Run& run) const {
  RunRequest request{run.program, run.core_mask, run.priority};
  if (run.timeout_ms) request.deadline = Clock::now() + std::chrono::milliseconds(run.timeout_ms);
  request.stop = connection_.is_gone;
  request.memory = {shared_.bytes(), run.result_offset};
  return request;
}

Status Session::trace(std::span<const std::byte> payload) {
  if (!context_) return invalid_argument("there is no model to run, load one first");
  Tensors tensors;
  ORKNN_TRY_ASSIGN(const Trace trace, Trace::decode(payload, tensors));
  ORKNN_TRY_ASSIGN(const std::vector<ir::TensorView> inputs, inputs_of(tensors, payload));
  const TraceRequest wanted{trace.first, std::min(kTraceBytes, board_.limits().message_bytes), amendments_};
  ORKNN_TRY_ASSIGN(TracedLayers traced, context_->trace(request_of(trace.run), inputs, wanted));
  uint32_t left = traced.total - std::min(traced.total, trace.first);
  for (auto& [tensor, value] : traced.layers) {
    send(Type::Layer, Layer::encode({tensor, --left}, value.view()));
    value = {};
    ORKNN_TRY(send_waiting());
  }
  send_result(trace.run);
  return {};
}

Status Session::amend(std::span<const std::byte> payload) {
  Tensors tensors;
  ORKNN_TRY_ASSIGN(const Amend amend, Amend::decode(payload, tensors));
  if (tensors.places.empty()) {
    amendments_.clear();
    amendment_bytes_ = 0;
  } else {
    const TensorPlace& place = tensors.places[0];
    const uint64_t cost = place.bytes + kAmendmentBytes;
    if (const auto old = amendments_.find(amend.tensor); old != amendments_.end()) {
      amendment_bytes_ -= old->second.bytes() + kAmendmentBytes;
      amendments_.erase(old);
    }
    if (cost > board_.limits().message_bytes - amendment_bytes_)
      return Status::error(Code::OutOfMemory, "the values for layers are more than the server takes")
          .expected("at most " + std::to_string(board_.limits().message_bytes) + " bytes together")
          .hint("start the server with a larger --max-message-mb");
    ir::TensorData value = ir::TensorData::allocate(place.dtype, place.dims);
    if (place.bytes) std::memcpy(value.mutable_data(), payload.data() + place.offset, place.bytes);
    amendments_.emplace(amend.tensor, std::move(value));
    amendment_bytes_ += cost;
  }
  send(Type::Amended, {});
  return {};
}

void Session::send_result(const Run& run) {
  std::vector<ir::TensorView> outputs;
  for (size_t i = 0; i < context_->outputs(); ++i) outputs.push_back(context_->output(i));
  const RunResult result{context_->last_microseconds()};
  const ClientMemory memory{shared_.bytes(), run.result_offset};
  std::vector<uint64_t> sizes;
  for (const ir::TensorView& output : outputs) sizes.push_back(output.bytes());
  const std::vector<uint64_t> offsets = memory.places(sizes);  // none: into the message with them
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::byte* place = memory.bytes.data() + offsets[i];
    if (outputs[i].bytes() && outputs[i].data != place) std::memcpy(place, outputs[i].data, outputs[i].bytes());
  }
  send(Type::Result, RunResult::encode(result, outputs, offsets));
}

Status Session::measure(const Measure& measure) {
  if (!context_) return invalid_argument("there is no model to measure, load one first");
  send(Type::Measured, context_->measure(measure.cores).encode());
  return {};
}

}  // namespace orknn::server
