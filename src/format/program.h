// The Program: what a device executes. It is the contract between compile (writes it) and sim (reads it), is saved in the
// .rknn file, and is the only thing the runtime needs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace orknn::format {

enum class Device : uint8_t { Npu = 0, Cpu = 1, Custom = 2, Gpu = 3 };

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

// How the work of one layer is cut so that each piece fits the convolution buffer. The pieces are the NPU's tasks.
struct Tiling {
  enum class Resident : uint8_t {
    Both = 0,      // everything is in the buffer at once
    Features = 1,  // kernels pass by the features of a band
    Weights = 2,   // rows pass by the kernels of a group
  };
  Resident resident = Resident::Both;
  uint32_t rows = 1, columns = 1;             // bands of the output; neighbours overlap by what the kernel reaches
  uint32_t kernels = 1;                       // groups of output channels
  uint32_t channels = 1;                      // segments of the input channels, whose results are added up
  uint32_t data_banks = 0, weight_banks = 0;  // of the convolution buffer; 0 = the layer does not use it
};

// Which weights of a convolution are zero by construction, as the sparse kernels of some chips want it.
enum class Sparsity : uint8_t {
  None = 0,
  Inputs = 1,   // two of four neighbouring input channels
  Outputs = 2,  // two of four neighbouring output channels
  Both = 3,     // twelve of sixteen
};

// One step of execution: a node of the graph with everything decided about it. The fused tail is the node's own tail.
struct Task {
  ir::NodeId node;
  Device device = Device::Cpu;
  ir::Engine engine = ir::Engine::None;
  std::string reason;      // why it is where it is, for people: "group 3 is not 1 or channels: CPU"
  uint32_t core_mask = 1;  // cores that share it
  uint32_t pieces = 1;     // equal parts the cores can take, rows or groups of channels
  uint32_t tiles = 1;      // NPU tasks it takes on one core, by `tiling`
  Tiling tiling;
  Sparsity sparsity = Sparsity::None;
  uint64_t macs = 0;
  uint64_t predicted_cycles = 0;              // of the NPU clock, on one core; everything the layer waits for included
  uint64_t array_cycles = 0, ddr_cycles = 0;  // the vendor's columns NPUCycles and DDRCycles
  uint64_t read_bytes = 0, write_bytes = 0;   // native layout; weights count as read
  uint64_t read_again_bytes = 0;  // read more than once because of the tiling; not in read_bytes, which is the vendor's column
  uint64_t weight_bytes = 0;      // memory of its constants as the NPU wants them packed
  std::vector<uint64_t> shared_cycles;  // predicted_cycles when 2, 3, ... cores share it; empty when only one can

  // How many of `cores` cores work at it, at least 1: those of the mask that get a part.
  uint32_t working_cores(int cores) const {
    const uint32_t most = std::max<uint32_t>(std::min(static_cast<uint32_t>(std::popcount(core_mask)), pieces), 1);
    return std::min(static_cast<uint32_t>(std::max(cores, 1)), most);
  }
  // NPU tasks on `cores` cores: each that works needs one of its own.
  uint32_t tasks_on(int cores) const { return std::max(tiles, working_cores(cores)); }

  // On `cores` cores (at least 1).
  uint64_t predicted_on(size_t cores) const {
    return cores < 2 || shared_cycles.empty() ? predicted_cycles : shared_cycles[std::min(cores - 2, shared_cycles.size() - 1)];
  }
};

// The part of a layer of `pieces` parts that one of `cores` cores takes, 0..1: as even as the parts allow. Fewer parts than cores
// go to the first cores; of more parts the last cores take what is left over, as in the vendor's table (48.1 % and 51.9 %).
inline double core_share(uint32_t pieces, uint32_t cores, uint32_t core) {
  const uint32_t working = std::min(pieces, cores);
  if (core >= working) return 0;
  const uint32_t rest = pieces % working;
  return static_cast<double>(pieces / working + (core >= working - rest ? 1 : 0)) / pieces;
}

// A model input or output as the user sees it.
struct Port {
  ir::TensorId tensor;
  // Type in the source model; the tensor itself may be float16 or int8 here. Float32 for what is quantized, except outputs that
  // the source states in quantized uint8.
  DType dtype = DType::Float32;
  ir::Layout layout = ir::Layout::Undefined;  // of the source model's shape: NCHW or NHWC for 4-D, else Undefined
  // (x - mean) / std per channel, applied to what the user feeds; empty = not applied. Inputs only.
  std::vector<float> mean, std;
};

struct Program {
  std::string label;            // tells several programs of one file apart (shape set, core count); usually empty
  ir::Graph graph;              // compacted: node ids are positions in execution order; constants carry their data
  std::vector<Task> tasks;      // in execution order, one per node
  std::vector<Buffer> buffers;  // one per tensor of the graph
  std::vector<Port> inputs, outputs;
  uint64_t arena_bytes = 0;  // activation memory, without inputs and outputs
};

// A program as the chip's NPU executes it: bytes that the room silicon writes and reads (silicon/image.h).
struct StoredStreams {
  std::span<const std::byte> bytes;  // starts at a multiple of 64, a multiple of 64 long
  std::shared_ptr<const void> keeper;
};

// Everything a .rknn file holds. Programs share the weight section: equal constants are stored once.
struct Model {
  std::string name;                          // source file stem
  std::string target_platform;               // "rk3588"
  std::string source_framework;              // "ONNX"
  std::string toolkit_version;               // version that wrote it
  std::string custom_string;                 // config(custom_string=...)
  std::string float_dtype;                   // "float16" or "float32"
  std::vector<uint32_t> sync_uids;           // layers after which Toolkit1's export_rknn_sync_model yields; kept, not acted upon
  std::vector<std::string> other_platforms;  // named beside target_platform: config(target_platform=[...])
  std::vector<Program> programs;
  std::vector<StoredStreams> streams;  // one per program, or none: whoever wants them makes them
  uint64_t weight_bytes = 0;           // size of the weight section, not coded; set by writer and reader
  bool codes_weights = false;          // the file stores the weights in fewer bytes, and loading expands them
  // The file names the weights of convolutions without holding them: whoever loads it has another model with the same ones.
  bool leaves_out_weights = false;
};

}  // namespace orknn::format
