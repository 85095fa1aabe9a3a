// The Program: what a device executes. It is the contract between compile (writes it) and sim (reads it), is saved in the
// .rknn file, and is the only thing the runtime needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace orknn::format {

enum class Device : uint8_t { Npu = 0, Cpu = 1, Custom = 2 };

// Where a tensor lives while a program runs.
struct Buffer {
  enum class Place : uint8_t {
    None = 0,      // unused, or its size is known only at run time (allocated then)
    Arena = 1,     // `offset` into the activation arena
    External = 2,  // graph input or output: memory of its own
    Weights = 3,   // constant; `offset` into the weight section of the file (set by the writer)
  };
  Place place = Place::None;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // native size: at least the dense size of the tensor (channels padded)
};

// One step of execution: a node of the graph with everything decided about it. The fused tail is the node's own tail.
struct Task {
  ir::NodeId node;
  Device device = Device::Cpu;
  ir::Engine engine = ir::Engine::None;
  std::string reason;          // why it is where it is, for people: "group 3 is not 1 or channels: CPU"
  uint32_t core_mask = 1;      // cores that share it
  uint32_t tiles = 1;          // row bands the NPU needs for it
  uint64_t macs = 0;
  uint64_t predicted_cycles = 0;   // of the NPU clock, on one core; everything the layer waits for included
  uint64_t array_cycles = 0, ddr_cycles = 0;  // the vendor's columns NPUCycles and DDRCycles
  uint64_t read_bytes = 0, write_bytes = 0;   // native layout; weights count as read
  uint64_t weight_bytes = 0;       // memory of its constants as the NPU wants them packed
};

// A model input or output as the user sees it.
struct Port {
  ir::TensorId tensor;
  DType dtype = DType::Float32;       // type in the source model; the tensor itself may be float16 or int8 here
  ir::Layout layout = ir::Layout::Undefined;  // of the source model's shape: NCHW or NHWC for 4-D, else Undefined
  // (x - mean) / std per channel, applied to what the user feeds; empty = not applied. Inputs only.
  std::vector<float> mean, std;
};

struct Program {
  std::string label;  // tells several programs of one file apart (shape set, core count); usually empty
  ir::Graph graph;    // compacted: node ids are positions in execution order; constants carry their data
  std::vector<Task> tasks;      // in execution order, one per node
  std::vector<Buffer> buffers;  // one per tensor of the graph
  std::vector<Port> inputs, outputs;
  uint64_t arena_bytes = 0;     // activation memory, without inputs and outputs
};

// Everything a .rknn file holds. Programs share the weight section: equal constants are stored once.
struct Model {
  std::string name;              // source file stem
  std::string target_platform;   // "rk3588"
  std::string source_framework;  // "ONNX"
  std::string toolkit_version;   // version that wrote it
  std::string custom_string;     // config(custom_string=...)
  std::string float_dtype;       // "float16" or "float32"
  std::vector<Program> programs;
  uint64_t weight_bytes = 0;     // size of the weight section; set by writer and reader
};

}  // namespace orknn::format
