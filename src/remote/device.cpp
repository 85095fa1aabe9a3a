#include "remote/device.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include "base/forks.h"
#include "format/bytes.h"

namespace orknn::remote {
namespace {
constexpr size_t kPartBytes = size_t{4} << 20;
constexpr uint64_t kShareFrom = 64 << 10;  // smaller tensors travel faster in the message itself
constexpr uint64_t kClientMaxPayload = uint64_t{4} << 30;

std::string client_name() {
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  return name + " [" + std::to_string(::getpid()) + "]";
}

uint64_t total_bytes(std::span<const ir::TensorView> tensors) {
  uint64_t total = 0;
  for (const ir::TensorView& t : tensors) total += t.bytes();
  return total;
}
}  // namespace

Result<DeviceOptions> device_options_of_environment() {
  DeviceOptions options;
  ORKNN_TRY_ASSIGN(options.key, SharedKey::from_environment());
  if (const char* text = std::getenv("ORKNN_DEVICE_TIMEOUT_MS"); text && *text) {
    int64_t ms = 0;
    const auto [end, problem] = std::from_chars(text, text + std::strlen(text), ms);
    if (problem != std::errc{} || *end != '\0' || ms <= 0)
      return invalid_argument("invalid ORKNN_DEVICE_TIMEOUT_MS '" + std::string(text) + "'").expected("milliseconds above 0");
    options.timeout = std::chrono::milliseconds(ms);
    options.connect_timeout = std::min(options.connect_timeout, options.timeout);
  }
  return options;
}

Result<std::unique_ptr<Device>> Device::connect(const Address& address, const DeviceOptions& options) {
  std::unique_ptr<Device> device(new Device(address, options));
  ORKNN_TRY(device->open());
  return device;
}

Answer ask_device(const Address& address, std::chrono::milliseconds patience) {
  auto options = device_options_of_environment();
  if (!options) return {.problem = std::move(options).status()};
  options->connect_timeout = std::min(options->connect_timeout, patience);
  options->timeout = std::min(options->timeout, patience);
  Device device(address, *options);
  Answer answer;
  answer.problem = device.open();
  answer.is_server = device.was_welcomed_;
  answer.platform = device.facts_.platform;
  return answer;
}

Result<std::unique_ptr<Device>> Device::duplicate() const {
  ORKNN_TRY_ASSIGN(std::unique_ptr<Device> other, connect(address_, options_));
  if (model_) ORKNN_TRY(other->load(model_));
  return other;
}

Status Device::open() {
  socket_.reset();
  writer_ = {};
  reader_ = FrameReader(kMaxHandshakeBytes);
  next_ = filled_ = 0;
  forks_ = fork_count();
  shared_.reset();
  input_ranges_.clear();
  ORKNN_TRY_ASSIGN(socket_, Socket::connect(address_, Clock::now() + options_.connect_timeout));
  Status status = shake_hands();
  if (status.code() == Code::Io) status.hint("is it an rknn_server of OpenRKNN that listens there?");
  return status ? status : broken(status);
}

Status Device::shake_hands() {
  const Hello hello{kProtocolVersion, make_random()};
  ORKNN_TRY(send(Type::Hello, hello.encode(), deadline()));
  ORKNN_TRY_ASSIGN(const Frame reply, expect(Type::Welcome, Clock::now() + options_.connect_timeout));
  ORKNN_TRY_ASSIGN(const Welcome welcome, Welcome::decode(reply.payload));
  was_welcomed_ = true;
  if (welcome.version != kProtocolVersion)
    return unsupported("the rknn_server at " + address_.to_string() + " uses another version of the protocol")
        .expected(std::to_string(kProtocolVersion))
        .found(std::to_string(welcome.version))
        .hint("install the same release of OpenRKNN on both sides");
  if (welcome.wants_key && options_.key.empty())
    return invalid_argument("the rknn_server at " + address_.to_string() + " wants a key")
        .hint("put the name of its key file into the environment: ORKNN_DEVICE_KEY=FILE");
  if (welcome.wants_key) {
    writer_.use(Cipher(options_.key, hello.random, welcome.random, Direction::ToServer));
    reader_.use(Cipher(options_.key, hello.random, welcome.random, Direction::ToClient));
  }
  reader_.set_limit(kClientMaxPayload);
  auto ready = ask<Ready>(Type::Login, Login{client_name()}.encode(), Type::Ready);
  // A server says nothing to those who do not have its key.
  if (!ready && welcome.wants_key && !socket_)
    return io_error(ready.status().message()).hint("is the key in ORKNN_DEVICE_KEY the one of the server? Its log says more");
  if (!ready) return std::move(ready).status();
  facts_ = std::move(*ready);
  return {};
}

Status Device::unexpected() const {
  return io_error("the rknn_server at " + address_.to_string() + " sent an unexpected message");
}

Status Device::broken(Status status) {
  socket_.reset();
  return status;
}

Status Device::ensure_open() {
  if (socket_ && forks_ != fork_count()) socket_.reset();  // the connection is the parent's
  if (socket_) return {};
  ORKNN_TRY(open());
  return model_ ? send_model() : Status();
}

Status Device::send(Type type, std::span<const std::byte> payload, Deadline deadline, int passed) {
  std::vector<std::byte> bytes;
  writer_.write(type, payload, bytes);
  Status status = socket_->send(bytes, deadline, passed);
  return status ? status : broken(status);
}

Result<Frame> Device::receive(Deadline deadline) {
  constexpr size_t kBuffer = 256 << 10;
  received_.resize(kBuffer);
  for (;;) {
    std::span<const std::byte> rest = std::span<const std::byte>(received_).subspan(next_, filled_ - next_);
    auto frame = reader_.read(rest);
    next_ = filled_ - rest.size();
    if (!frame) return broken(std::move(frame).status());
    if (*frame) return std::move(**frame);
    next_ = filled_ = 0;
    auto n = socket_->receive(received_, deadline);
    if (!n) return broken(std::move(n).status());
    filled_ = *n;
    if (*n == 0)
      return broken(io_error("the rknn_server at " + address_.to_string() + " has closed the connection")
                        .hint("it ended, or it does not take this client: its log says why"));
  }
}

Result<Frame> Device::expect(Type type, Deadline deadline) {
  ORKNN_TRY_ASSIGN(Frame frame, receive(deadline));
  if (frame.type == type) return frame;
  if (frame.type == Type::Problem) {
    ORKNN_TRY_ASSIGN(const Problem problem, Problem::decode(frame.payload));
    return problem.status();
  }
  return broken(unexpected());
}

template <class Message>
Result<Message> Device::ask(Type question, std::span<const std::byte> payload, Type reply) {
  ORKNN_TRY(send(question, payload, deadline()));
  ORKNN_TRY_ASSIGN(const Frame frame, expect(reply, deadline()));
  return Message::decode(frame.payload);
}

Status Device::load(ModelBytes model) {
  model_ = std::move(model);
  return socket_ ? send_model() : ensure_open();
}

Result<std::vector<std::byte>> Device::fetch(const std::string& path) {
  ORKNN_TRY(ensure_open());
  ORKNN_TRY(send(Type::Fetch, Fetch{path}.encode(), deadline()));
  ORKNN_TRY_ASSIGN(Frame frame, expect(Type::File, deadline()));
  return std::move(frame.payload);
}

Status Device::send_model() {
  ORKNN_TRY_ASSIGN(const std::vector<std::byte> bytes, model_());
  ORKNN_TRY_ASSIGN(const Wanted wanted, ask<Wanted>(Type::Offer, Offer{blake2b(bytes), bytes.size()}.encode(), Type::Wanted));
  if (wanted.wanted) ORKNN_TRY(upload(bytes));
  return expect(Type::Loaded, deadline()).status();
}

Status Device::upload(std::span<const std::byte> bytes) {
  const auto part = static_cast<size_t>(std::clamp<uint64_t>(facts_.max_message_bytes, 1, kPartBytes));
  for (size_t at = 0; at < bytes.size(); at += part)
    ORKNN_TRY(send(Type::Part, bytes.subspan(at, std::min(part, bytes.size() - at)), deadline()));
  return {};
}

Status Device::share(uint64_t bytes) {
  if (shared_ && shared_->bytes().size() >= bytes) return {};
  ORKNN_TRY_ASSIGN(SharedMemory memory, SharedMemory::create(format::aligned(bytes)));
  ORKNN_TRY(send(Type::Share, Share{memory.bytes().size()}.encode(), deadline(), memory.fd()));
  ORKNN_TRY(expect(Type::Shared, deadline()).status());
  shared_ = std::make_shared<SharedMemory>(std::move(memory));
  return {};
}

// Offsets of the inputs in shared memory; none when they are to go in the message.
Result<std::vector<uint64_t>> Device::put_inputs(std::span<const ir::TensorView> inputs, uint64_t& end) {
  end = 0;
  input_ranges_.clear();
  if (!options_.share_memory || !address_.is_unix() || total_bytes(inputs) + result_bytes_ < kShareFrom)
    return std::vector<uint64_t>{};
  std::vector<uint64_t> offsets = place_tensors(inputs, 0, end);
  // Values that lie there already and are to move might be overwritten by others: they go to new memory instead.
  if (shared_) {
    const std::span<const std::byte> memory = shared_->bytes();
    for (size_t i = 0; shared_ && i < inputs.size(); ++i) {
      const auto* at = static_cast<const std::byte*>(inputs[i].data);
      const bool is_there = !std::less<>()(at, memory.data()) && std::less<>()(at, memory.data() + memory.size());
      if (is_there && at != memory.data() + offsets[i]) shared_.reset();
    }
  }
  ORKNN_TRY(share(format::aligned(end) + format::aligned(result_bytes_) + format::kFileAlignment));
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::byte* place = shared_->bytes().data() + offsets[i];
    input_ranges_.push_back({offsets[i], inputs[i].bytes()});
    if (inputs[i].bytes() && inputs[i].data != place) std::memcpy(place, inputs[i].data, inputs[i].bytes());
  }
  return offsets;
}

std::shared_ptr<void> Device::input_place(size_t index, uint64_t bytes) const {
  if (!socket_ || forks_ != fork_count() || index >= input_ranges_.size() || input_ranges_[index].bytes != bytes) return nullptr;
  return {shared_, shared_->bytes().data() + input_ranges_[index].offset};
}

// `until`: when the reply must be here.
Run Device::run_message(const RunOptions& options, Deadline& until) const {
  Run run{options.program, options.core_mask, options.priority};
  until = deadline();
  if (options.deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*options.deadline - Clock::now()).count();
    run.timeout_ms = static_cast<uint32_t>(std::clamp<int64_t>(left, 1, UINT32_MAX));
    // The server is the one to say that the time is over.
    until = std::min(until, *options.deadline + std::chrono::seconds(1));
  }
  return run;
}

Status Device::run(const RunOptions& options, std::span<const ir::TensorView> inputs, std::vector<ir::TensorView>& outputs) {
  outputs.clear();
  ORKNN_TRY(ensure_open());
  Deadline until;
  Run run = run_message(options, until);
  uint64_t end = 0;
  ORKNN_TRY_ASSIGN(const std::vector<uint64_t> offsets, put_inputs(inputs, end));
  run.result_offset = format::aligned(end);
  ORKNN_TRY(send(Type::Run, Run::encode(run, inputs, offsets), until));
  ORKNN_TRY_ASSIGN(Frame frame, expect(Type::Result, until));
  return take_outputs(std::move(frame), outputs);
}

Status Device::send_amendments(std::span<const LayerValue> amendments) {
  ORKNN_TRY(send(Type::Amend, Amend::encode_none(), deadline()));
  ORKNN_TRY(expect(Type::Amended, deadline()).status());
  for (const auto& [tensor, value] : amendments) {
    ORKNN_TRY(send(Type::Amend, Amend::encode({tensor}, value.view()), deadline()));
    ORKNN_TRY(expect(Type::Amended, deadline()).status());
  }
  return {};
}

Result<Frame> Device::receive_layers(const ObserveLayer& observe, uint32_t& seen, uint32_t& left) {
  left = 0;
  for (;;) {
    ORKNN_TRY_ASSIGN(Frame frame, receive(deadline()));
    if (frame.type == Type::Result) return frame;
    if (frame.type == Type::Problem) {
      ORKNN_TRY_ASSIGN(const Problem problem, Problem::decode(frame.payload));
      return problem.status();
    }
    Tensors tensors;
    const auto layer = Layer::decode(frame.payload, tensors);
    if (frame.type != Type::Layer || !layer) return broken(unexpected());
    const TensorPlace& place = tensors.places[0];
    ir::TensorData value = ir::TensorData::allocate(place.dtype, place.dims);
    if (place.bytes) std::memcpy(value.mutable_data(), frame.payload.data() + place.offset, place.bytes);
    observe(layer->tensor, value.view());
    ++seen;
    left = layer->left;
  }
}

Status Device::trace(const RunOptions& options, std::span<const ir::TensorView> inputs, std::span<const LayerValue> amendments,
                     const ObserveLayer& observe, std::vector<ir::TensorView>& outputs) {
  outputs.clear();
  ORKNN_TRY(ensure_open());
  ORKNN_TRY(send_amendments(amendments));
  for (uint32_t seen = 0, left = 1; left > 0;) {
    Deadline until;
    const Trace trace{run_message(options, until), seen};
    ORKNN_TRY(send(Type::Trace, Trace::encode(trace, inputs, {}), until));
    const uint32_t before = seen;
    ORKNN_TRY_ASSIGN(Frame frame, receive_layers(observe, seen, left));
    if (left > 0 && seen == before) return broken(unexpected());
    ORKNN_TRY(take_outputs(std::move(frame), outputs));
  }
  return {};
}

Status Device::take_outputs(Frame frame, std::vector<ir::TensorView>& outputs) {
  last_result_ = std::move(frame);
  auto result = RunResult::decode(last_result_.payload, last_tensors_);
  if (!result) return broken(std::move(result).status());
  last_run_microseconds_ = result->microseconds;
  outputs.clear();
  copies_.clear();
  result_bytes_ = 0;
  const std::span<const std::byte> from =
      last_tensors_.shared && shared_ ? std::span<const std::byte>(shared_->bytes()) : last_result_.payload;
  for (const TensorPlace& place : last_tensors_.places) {
    if (place.offset > from.size() || place.bytes > from.size() - place.offset)
      return broken(io_error("the rknn_server at " + address_.to_string() + " sent results without a place to put them"));
    result_bytes_ += format::aligned(place.bytes);
    const std::byte* data = from.data() + place.offset;
    if (reinterpret_cast<uintptr_t>(data) % format::kFileAlignment == 0) {
      outputs.push_back({place.dtype, place.dims, data});
      continue;
    }
    copies_.push_back(ir::TensorData::allocate(place.dtype, place.dims));
    if (place.bytes) std::memcpy(copies_.back().mutable_data(), data, place.bytes);
    outputs.push_back({place.dtype, place.dims, copies_.back().data()});
  }
  return {};
}

Result<Measured> Device::measure(uint32_t cores) {
  ORKNN_TRY(ensure_open());
  return ask<Measured>(Type::Measure, Measure{cores}.encode(), Type::Measured);
}

}  // namespace orknn::remote
