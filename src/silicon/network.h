// A whole Program on a unit: every layer that has a recipe as streams, the others on the CPU, tensors as cubes in device memory.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/program.h"
#include "ir/op_set.h"
#include "ir/tensor_data.h"
#include "platform/platforms.h"
#include "silicon/image.h"
#include "silicon/unit.h"

namespace orknn::silicon {

// Whether streams of this room are for this chip.
bool knows_registers_of(const platform::Platform& platform);

// What became of one task of a Program.
struct NetworkLayer {
  size_t tasks = 0, words = 0;  // NPU tasks, words of their streams; 0 = CPU
  uint64_t packed_bytes = 0;    // weights and biases
  uint64_t macs = 0;
  std::string reason;  // why the CPU computes it, or what it does after the streams
};
std::vector<NetworkLayer> layers_of(const Image& image, const format::Program& program);

struct NetworkSummary {
  uint64_t macs = 0, stream_macs = 0;
  size_t tasks = 0, stream_bytes = 0;
  uint64_t packed_bytes = 0;
  double share() const { return macs ? static_cast<double>(stream_macs) / static_cast<double>(macs) : 0; }
};
NetworkSummary summary_of(std::span<const NetworkLayer> layers);

// Not for use from two threads at once.
class Network {
 public:
  // What a run does besides computing, on the calling thread in task order. With any of them each layer is a job of its own.
  struct Hooks {
    std::function<void(ir::TensorId, const ir::TensorView&)> observe;       // every input and every computed tensor
    std::function<void(ir::TensorId, const ir::MutableTensorView&)> amend;  // what is written here is what later layers read
    std::function<void(size_t task, std::chrono::nanoseconds)> timing;
  };

  // Fills the unit's buffers. Every stream passes the lint, for the cubes and operands that the image states, before anything is
  // submitted. `program` (checked) and `ops` must outlive the network.
  static Result<std::unique_ptr<Network>> create(const format::Program& program, const ir::OpSet& ops, Image image,
                                                 std::unique_ptr<Unit> unit);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // One per task of the program, as this unit runs them.
  std::span<const NetworkLayer> layers() const;
  const Unit& unit() const;

  // Inputs in the order and types of program.inputs. The error names the node. After an error of a board's unit the network is of
  // no more use.
  Status run(std::span<const ir::TensorView> inputs, const UnitRun& options, const Hooks& hooks = {});
  // Result i of the last successful run; valid until the next one.
  ir::TensorView output(size_t i) const;

 private:
  struct State;
  Network();
  std::unique_ptr<State> state_;
};

}  // namespace orknn::silicon
