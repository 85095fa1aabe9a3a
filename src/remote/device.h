// The client's end: a device with one model on it. The model runs there as it would here, on the same numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "remote/messages.h"
#include "remote/socket.h"
#include "remote/wire.h"

namespace orknn::remote {

struct DeviceOptions {
  SharedKey key;
  std::chrono::milliseconds connect_timeout{3000};
  std::chrono::milliseconds timeout{60000};  // for one reply, a run included
  bool share_memory = true;                  // with devices on the same machine
};
// ORKNN_DEVICE_KEY, ORKNN_DEVICE_TIMEOUT_MS.
Result<DeviceOptions> device_options_of_environment();

// Who is at an address.
struct Answer {
  bool is_server = false;     // it speaks the protocol, perhaps only to refuse this client
  std::string platform = {};  // empty when it refuses
  Status problem = {};        // why it cannot be used
};
// Asks whoever is there; the wait for each reply ends after `patience`.
Answer ask_device(const Address& address, std::chrono::milliseconds patience);

// What the model is, whenever it has to be sent.
using ModelBytes = std::function<Result<std::vector<std::byte>>()>;

struct RunOptions {
  uint32_t program = 0, core_mask = 0, priority = 0;
  std::optional<Deadline> deadline = std::nullopt;
};

// A tensor of the program by its number, and what it holds.
using LayerValue = std::pair<uint32_t, ir::TensorData>;
using ObserveLayer = std::function<void(uint32_t tensor, const ir::TensorView& value)>;

// Not for use from two threads at once. After an error of the connection the next call connects again; what a call did before it
// failed has no effect on later ones.
class Device {
 public:
  static Result<std::unique_ptr<Device>> connect(const Address& address, const DeviceOptions& options);
  friend Answer ask_device(const Address& address, std::chrono::milliseconds patience);
  // A second one at the same place, with the same model.
  Result<std::unique_ptr<Device>> duplicate() const;

  const Address& address() const { return address_; }
  const Ready& facts() const { return facts_; }
  Status load(ModelBytes model);
  // The contents of a model file that lies on the device.
  Result<std::vector<std::byte>> fetch(const std::string& path);
  // Where the device reads input `index`, when it shares memory with this process and its last input there had as many bytes:
  // run() does not copy what lies there. nullptr = anywhere.
  std::shared_ptr<void> input_place(size_t index, uint64_t bytes) const;
  // `outputs` stay valid until the next run.
  Status run(const RunOptions& options, std::span<const ir::TensorView> inputs, std::vector<ir::TensorView>& outputs);
  // The same run with every input and every computed tensor shown to `observe` in the order in which they are computed. Layers
  // that `amendments` name hold those values for the layers after them.
  Status trace(const RunOptions& options, std::span<const ir::TensorView> inputs, std::span<const LayerValue> amendments,
               const ObserveLayer& observe, std::vector<ir::TensorView>& outputs);
  Result<Measured> measure(uint32_t cores);
  uint64_t last_run_microseconds() const { return last_run_microseconds_; }

 private:
  Device(Address address, DeviceOptions options) : address_(std::move(address)), options_(std::move(options)) {}
  Deadline deadline() const { return Clock::now() + options_.timeout; }
  Status open();
  Status ensure_open();
  Status shake_hands();
  Status send_model();
  Status upload(std::span<const std::byte> bytes);
  Status send(Type type, std::span<const std::byte> payload, Deadline deadline, int passed = -1);
  Result<Frame> receive(Deadline deadline);
  // The reply, or the problem that the server reports instead.
  Result<Frame> expect(Type type, Deadline deadline);
  template <class Message>
  Result<Message> ask(Type question, std::span<const std::byte> payload, Type reply);
  Status share(uint64_t bytes);
  Run run_message(const RunOptions& options, Deadline& until) const;
  Status send_amendments(std::span<const LayerValue> amendments);
  // One reply of a trace; the layers that are left are counted in `left`.
  Result<Frame> receive_layers(const ObserveLayer& observe, uint32_t& seen, uint32_t& left);
  Result<std::vector<uint64_t>> put_inputs(std::span<const ir::TensorView> inputs, uint64_t& end);
  Status take_outputs(Frame frame, std::vector<ir::TensorView>& outputs);
  Status broken(Status status);
  Status unexpected() const;

  Address address_;
  DeviceOptions options_;
  std::optional<Socket> socket_;
  FrameWriter writer_;
  FrameReader reader_{0};
  std::vector<std::byte> received_;
  size_t next_ = 0, filled_ = 0;  // received and not yet read: from `next_` to `filled_`
  uint32_t forks_ = 0;            // fork_count() when the connection was made
  bool was_welcomed_ = false;     // the other end is a server
  Ready facts_;
  ModelBytes model_;
  std::shared_ptr<SharedMemory> shared_;
  struct Range {
    uint64_t offset = 0, bytes = 0;
  };
  std::vector<Range> input_ranges_;  // of the last run, in shared memory
  uint64_t result_bytes_ = 0;        // of the last run, in shared memory
  Frame last_result_;
  Tensors last_tensors_;
  std::vector<ir::TensorData> copies_;
  uint64_t last_run_microseconds_ = 0;
};

}  // namespace orknn::remote
