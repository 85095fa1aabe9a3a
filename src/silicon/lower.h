// Which layer of the unit a node of a Program is, if any.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "format/program.h"
#include "ir/op_set.h"
#include "ops/support/requantize.h"
#include "silicon/recipe.h"

namespace orknn::silicon {

// A plain tensor of the program as a cube: [1, C, H, W] has channels first, the rows of a matrix have channels last.
struct LoweredTensor {
  ir::TensorId tensor;
  Cube cube;
  TensorOrder order = TensorOrder::Chw;
  int64_t rows = 0;  // of the tensor where the cube has more; 0 = as many
};

// What the CPU makes of the int32 sums that streams compute.
struct HostStages {
  ops::OutputStage stage;
  std::vector<int32_t> bias;  // with the input's zero point taken off
};

// Weights of a layer: a constant of the Program, or one value for all.
struct LayerWeights {
  ir::TensorId tensor;
  WeightPlan plan;  // no kernels: the layer has no weights
};

struct LoweredNode {
  std::string reason;  // why the unit does not compute it; empty: it does
  std::variant<ConvLayer, PoolLayer> layer;
  LoweredTensor input, output, operand;  // operand.tensor is none where nothing is combined
  LayerWeights weights;                  // of a ConvLayer
  std::vector<std::byte> bias;           // packed
  // Of a layer that ends in a function table: the streams compute plain sums, the CPU converts them.
  std::optional<HostStages> host;
  // Of a float16 layer: the streams compute float32 results, the CPU applies what is fused with the layer and rounds.
  bool tail_on_host = false;

  bool has_streams() const { return reason.empty(); }
  bool ends_on_host() const { return host || tail_on_host; }
};
// Programs come from files that the executor has checked. Never an error: what cannot be lowered has a reason.
LoweredNode lower(const format::Program& program, const ir::Node& node, const ir::OpSet& ops);
// How the CPU converts the sums of a layer that ends in a function table (LoweredNode::host).
Result<ops::OutputStage> host_stage(const format::Program& program, const ir::Node& node, const ir::OpSet& ops);

}  // namespace orknn::silicon
