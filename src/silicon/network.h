// A whole Program on the unit: every layer that has a recipe as streams, the others on the CPU, tensors as cubes in device
// memory.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "format/program.h"
#include "ir/op_set.h"
#include "ir/tensor_data.h"
#include "platform/platforms.h"

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

struct NetworkSummary {
  uint64_t macs = 0, stream_macs = 0;
  size_t tasks = 0, stream_bytes = 0;
  uint64_t packed_bytes = 0;
  double share() const { return macs ? static_cast<double>(stream_macs) / static_cast<double>(macs) : 0; }
};

// Executes with the chip model. Not for use from two threads at once.
class Network {
 public:
  // Called with every input and every computed tensor, in task order.
  using Observe = std::function<void(ir::TensorId, const ir::TensorView&)>;

  // `program` (checked) and `ops` must outlive the network.
  static Result<std::unique_ptr<Network>> create(const format::Program& program, const ir::OpSet& ops);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // One per task of the program.
  std::span<const NetworkLayer> layers() const;
  NetworkSummary summary() const;

  // Inputs in the order and types of program.inputs. The error names the node.
  Status run(std::span<const ir::TensorView> inputs, ThreadPool& pool, const Observe& observe = {});
  // Result i of the last successful run; valid until the next one.
  ir::TensorView output(size_t i) const;

 private:
  struct State;
  Network();
  std::unique_ptr<State> state_;
};

}  // namespace orknn::silicon
