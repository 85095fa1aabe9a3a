#include "import/lower/space.h"

#include <algorithm>

namespace orknn::importer {
using namespace ir;

Result<TensorId> space_to_depth(Emitter& e, const PictureFormat& format, TensorId x, int64_t block) {
  return in_channels_first(e, format, x, [&](TensorId first) { return e.emit("SpaceToDepth", {first}, {{"blocksize", block}}); });
}

Result<TensorId> depth_to_space(Emitter& e, const PictureFormat& format, TensorId x, int64_t block) {
  return in_channels_first(e, format, x, [&](TensorId first) {
    return e.emit("DepthToSpace", {first}, {{"blocksize", block}, {"mode", std::string("DCR")}});
  });
}

Result<Blocks> blocks_of(std::vector<int64_t> block, const std::vector<int64_t>& sides) {
  const auto is_within = [](const std::vector<int64_t>& list, int64_t least) {
    return std::ranges::all_of(list, [&](int64_t v) { return v >= least && v <= kMaxWindow; });
  };
  if (block.empty() || sides.size() != 2 * block.size() || !is_within(block, 1) || !is_within(sides, 0))
    return invalid_model("block, paddings or crops are impossible").found(to_string(block) + " and " + to_string(sides));
  Blocks b{std::move(block), {}, {}};
  for (size_t i = 0; i < sides.size(); ++i) (i % 2 ? b.end : b.begin).push_back(sides[i]);
  return b;
}

namespace {
Result<Dims> dims_for(Emitter& e, TensorId x, const Blocks& b) {
  ORKNN_TRY_ASSIGN(Dims dims, e.need_dims(x, "to move its blocks"));
  if (dims.size() < b.block.size() + 1)
    return shape_mismatch("the value has too few axes").expected(std::to_string(b.block.size() + 1)).found(to_string(dims));
  if (element_count(dims) == 0) return unsupported("an empty tensor cannot be cut into blocks").found(to_string(dims));
  return dims;
}
}  // namespace

Result<TensorId> space_to_batch(Emitter& e, TensorId x, const Blocks& b, double outside, CutTensors& cut) {
  ORKNN_TRY_ASSIGN(Dims dims, dims_for(e, x, b));
  const size_t n = b.block.size(), rank = dims.size();
  // [N, H/a, a, W/b, b, C] to [a, b, N, H/a, W/b, C] to [a*b*N, H/a, W/b, C]
  std::vector<int64_t> pads(2 * rank, 0), apart{dims[0]}, order, together{dims[0]};
  for (size_t i = 0; i < n; ++i) {
    pads[i + 1] = b.begin[i];
    pads[rank + i + 1] = b.end[i];
    const int64_t extent = dims[i + 1] + b.begin[i] + b.end[i];
    if (extent % b.block[i] != 0)
      return shape_mismatch("a padded extent is not a multiple of its block")
          .expected("a multiple of " + std::to_string(b.block[i]))
          .found(std::to_string(extent));
    apart.insert(apart.end(), {extent / b.block[i], b.block[i]});
    order.push_back(2 * static_cast<int64_t>(i) + 2);
    together.push_back(extent / b.block[i]);
    together[0] *= b.block[i];
    ORKNN_TRY(checked_element_count(together).status());
  }
  order.push_back(0);
  for (size_t i = 0; i < n; ++i) order.push_back(2 * static_cast<int64_t>(i) + 1);
  for (size_t i = n + 1; i < rank; ++i) {
    order.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back(dims[i]);
    together.push_back(dims[i]);
  }
  ORKNN_TRY(checked_element_count(together).status());
  TensorId padded = x;
  if (std::ranges::any_of(pads, [](int64_t p) { return p > 0; })) {
    std::vector<TensorId> inputs{x, e.add_ints("pads", pads)};
    if (outside != 0) inputs.push_back(e.scalar_like(x, outside, "fill"));
    padded = e.emit("Pad", std::move(inputs));
  }
  const TensorId y = e.reshape(e.transpose(e.reshape(padded, apart), order), together);
  cut[y.index] = {x, b};
  return y;
}

namespace {
bool has_one_value_per_channel(const Dims& dims, size_t rank, size_t channel_axis) {
  if (dims.size() > rank) return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && rank - dims.size() + i != channel_axis) return false;
  return true;
}

// Channels moved to the end or from there.
bool moves_channels(const Node& transpose, size_t rank, bool to_end) {
  std::vector<int64_t> order{0};
  if (!to_end) order.push_back(static_cast<int64_t>(rank) - 1);
  for (size_t i = to_end ? 2 : 1; i + !to_end < rank; ++i) order.push_back(static_cast<int64_t>(i));
  if (to_end) order.push_back(1);
  return transpose.attributes.ints_or("perm") == order;
}

// The operand that a step changes element by element; the others have one value per channel. None for another kind of step.
TensorId changed_operand(Emitter& e, const Node& node, size_t rank, bool channels_last) {
  static constexpr std::string_view kSteps[] = {
      "Add",       "Sub",     "Mul", "Div",     "Relu", "Clip",           "LeakyRelu",        "Elu",
      "Gelu",      "Tanh",    "Max", "Sigmoid", "Min",  "QuantizeLinear", "DequantizeLinear", "BatchNormalization",
      "Transpose", "Identity"};
  if (std::ranges::find(kSteps, node.op) == std::end(kSteps) || node.outputs.size() != 1) return {};
  if (node.op == "Transpose" && !moves_channels(node, rank, channels_last)) return {};
  TensorId changed;
  for (TensorId input : node.inputs) {
    if (!input) continue;
    // What follows from constants may not be folded yet: its shape tells.
    const auto dims = e.dims_of(input);
    if (!dims) return {};
    if (dims->size() == rank && !e.graph().is_constant(input) && !changed)
      changed = input;
    else if (node.op != "BatchNormalization" && !has_one_value_per_channel(*dims, rank, channels_last ? rank - 1 : 1))
      return {};
  }
  return changed;
}

// The same steps, the last first, on another value.
TensorId repeated(Emitter& e, const std::vector<Node>& steps, TensorId old, TensorId now) {
  for (size_t i = steps.size(); i-- > 0;) {
    std::vector<TensorId> inputs = steps[i].inputs;
    std::replace(inputs.begin(), inputs.end(), old, now);
    old = steps[i].outputs[0];
    now = e.emit(steps[i].op, std::move(inputs), steps[i].attributes);
  }
  return now;
}

// None when the nodes before `y` are not a convolution of what space_to_batch made, and steps.
TensorId dilated_convolution(Emitter& e, TensorId y, const Blocks& crops, const CutTensors& cut) {
  const Graph& graph = e.graph();
  const size_t spatial = crops.block.size(), rank = spatial + 2;
  constexpr size_t kMostSteps = 16;
  std::vector<Node> after, before;  // the last first
  bool channels_last = true;
  const auto follow = [&](std::vector<Node>& steps, TensorId at) -> TensorId {
    const Node* node = graph.producer_node(at);
    const TensorId next = node && steps.size() < kMostSteps ? changed_operand(e, *node, rank, channels_last) : TensorId{};
    if (!next) return {};
    channels_last ^= node->op == "Transpose";
    steps.push_back(*node);
    return next;
  };
  TensorId at = y;
  for (const Node* node = graph.producer_node(at); node && node->op != "Conv"; node = graph.producer_node(at))
    if (at = follow(after, at); !at) return {};
  const Node* convolution = graph.producer_node(at);
  if (!convolution || channels_last) return {};
  const Attributes& a = convolution->attributes;
  const auto is_all = [](const std::vector<int64_t>& list, int64_t value) {
    return std::ranges::all_of(list, [&](int64_t v) { return v == value; });
  };
  if (a.string_or("auto_pad", "VALID") != "VALID" || !is_all(a.ints_or("strides"), 1) || !is_all(a.ints_or("dilations"), 1) ||
      !is_all(a.ints_or("pads"), 0))
    return {};
  // Before it only what leaves the zeros of the padding where they are.
  for (at = convolution->inputs[0]; !cut.contains(at.index);) {
    const Node* node = graph.producer_node(at);
    if (!node || (node->op != "Transpose" && node->op != "DequantizeLinear" && node->op != "Identity")) return {};
    if (at = follow(before, at); !at) return {};
  }
  const CutIntoBatch& from = cut.at(at.index);
  if (!channels_last || from.blocks.block != crops.block) return {};
  std::vector<int64_t> begin, end;
  for (size_t i = 0; i < spatial; ++i) {
    begin.push_back(from.blocks.begin[i] - crops.begin[i]);
    end.push_back(from.blocks.end[i] - crops.end[i]);
    if (begin[i] < 0 || end[i] < 0) return {};
  }
  Node dilated = *convolution;
  dilated.attributes.erase("auto_pad");
  dilated.attributes.set("dilations", crops.block);
  dilated.attributes.set("pads", joined(begin, end));
  dilated.inputs[0] = repeated(e, before, at, from.source);
  return repeated(e, after, dilated.outputs[0], e.emit("Conv", dilated.inputs, dilated.attributes));
}
}  // namespace

Result<TensorId> batch_to_space(Emitter& e, TensorId x, const Blocks& b, const CutTensors& cut) {
  ORKNN_TRY_ASSIGN(const Dims dims, dims_for(e, x, b));
  const size_t n = b.block.size(), rank = dims.size();
  if (rank == n + 2)
    if (const TensorId y = dilated_convolution(e, x, b, cut)) return y;
  int64_t batch = dims[0];
  for (int64_t block : b.block) {
    if (batch % block != 0)
      return shape_mismatch("the batch does not split into blocks")
          .expected("a multiple of " + std::to_string(block))
          .found(std::to_string(batch));
    batch /= block;
  }
  // [a*b*N, H, W, C] to [a, b, N, H, W, C] to [N, H, a, W, b, C] to [N, H*a, W*b, C]
  std::vector<int64_t> apart = b.block, order{static_cast<int64_t>(n)}, together{batch}, starts, ends, axes;
  apart.push_back(batch);
  apart.insert(apart.end(), dims.begin() + 1, dims.end());
  for (size_t i = 0; i < n; ++i) {
    order.insert(order.end(), {static_cast<int64_t>(n + 1 + i), static_cast<int64_t>(i)});
    const int64_t extent = dims[i + 1] * b.block[i];
    together.push_back(extent);
    if (b.begin[i] + b.end[i] > extent)
      return shape_mismatch("more is cropped than there is").found(to_string(b.begin) + " and " + to_string(b.end));
    if (b.begin[i] == 0 && b.end[i] == 0) continue;
    starts.push_back(b.begin[i]);
    ends.push_back(extent - b.end[i]);
    axes.push_back(static_cast<int64_t>(i) + 1);
  }
  for (size_t i = n + 1; i < rank; ++i) {
    order.push_back(static_cast<int64_t>(n + i));
    together.push_back(dims[i]);
  }
  const TensorId y = e.reshape(e.transpose(e.reshape(x, apart), order), together);
  return axes.empty() ? y : e.slice(y, starts, ends, axes);
}

}  // namespace orknn::importer
