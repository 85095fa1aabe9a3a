// Space, depth and batch: elements moved between axes, patches, and the dilated convolutions that older graphs write with them.
#include <algorithm>

#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// NCHW_VECT_C and other layouts are for special hardware only.
Status lower_depth_space(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const DataFormat format, data_format_of(layer, 2));
  ORKNN_TRY_ASSIGN(const TensorId first, to_channels_first(layer, format, x));
  Attributes attributes{{"blocksize", layer.int_or("block_size", 2)}};
  if (layer.op() == "DepthToSpace") attributes.set("mode", std::string("DCR"));
  ORKNN_TRY_ASSIGN(const TensorId y,
                   from_channels_first(layer, format, layer.emit(std::string(layer.op()), {first}, std::move(attributes))));
  layer.set(y);
  return {};
}

// Block and the two sides of padding or cropping; SpaceToBatch of the first releases has one block size for two axes.
struct Blocks {
  std::vector<int64_t> block, begin, end;
};
Result<Blocks> blocks_of(Layer& layer) {
  Blocks b;
  std::vector<int64_t> sides;
  if (layer.op().ends_with("ND")) {
    ORKNN_TRY_ASSIGN(b.block, layer.ints(1, "to move blocks"));
    ORKNN_TRY_ASSIGN(sides, layer.ints(2, "to move blocks"));
  } else {
    b.block.assign(2, layer.int_or("block_size", 2));
    ORKNN_TRY_ASSIGN(sides, layer.ints(1, "to move blocks"));
  }
  if (sides.size() != 2 * b.block.size())
    return invalid_model("block and paddings or crops have different lengths")
        .found(to_string(b.block) + " and " + to_string(sides));
  constexpr int64_t kMost = 1 << 20;
  for (size_t i = 0; i < b.block.size(); ++i) {
    if (b.block[i] < 1 || b.block[i] > kMost || sides[2 * i] < 0 || sides[2 * i + 1] < 0 || sides[2 * i] > kMost ||
        sides[2 * i + 1] > kMost)
      return invalid_model("block, paddings or crops are out of range").found(to_string(b.block) + " and " + to_string(sides));
    b.begin.push_back(sides[2 * i]);
    b.end.push_back(sides[2 * i + 1]);
  }
  return b;
}

// Blocks of the first axes behind the batch go into the batch: pad, split each axis, move the inner parts to the front.
Status lower_space_to_batch(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const Blocks b, blocks_of(layer));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to move its blocks"));
  const size_t n = b.block.size(), rank = dims.size();
  if (rank < n + 1) return shape_mismatch("the value has too few axes").expected(std::to_string(n + 1)).found(to_string(dims));
  const TensorId source = x;
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < n; ++i) {
    pads[i + 1] = b.begin[i];
    pads[rank + i + 1] = b.end[i];
  }
  if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p > 0; }))
    x = layer.emit("Pad", {x, layer.add_ints("pads", pads)});
  std::vector<int64_t> apart{dims[0]}, order, together{dims[0]};
  for (size_t i = 0; i < n; ++i) {
    const int64_t extent = dims[i + 1] + b.begin[i] + b.end[i];
    if (extent % b.block[i] != 0)
      return shape_mismatch("a padded extent is no multiple of its block")
          .expected("a multiple of " + std::to_string(b.block[i]))
          .found(std::to_string(extent));
    apart.push_back(extent / b.block[i]);
    apart.push_back(b.block[i]);
    order.push_back(2 * static_cast<int64_t>(i) + 2);
    together[0] *= b.block[i];
    together.push_back(extent / b.block[i]);
    if (together[0] > (int64_t{1} << 40)) return shape_mismatch("the batch becomes absurd").found(to_string(b.block));
  }
  order.push_back(0);
  for (size_t i = 0; i < n; ++i) order.push_back(2 * static_cast<int64_t>(i) + 1);
  for (size_t i = n + 1; i < rank; ++i) {
    apart.push_back(dims[i]);
    order.push_back(static_cast<int64_t>(apart.size()) - 1);
    together.push_back(dims[i]);
  }
  const TensorId y = layer.reshape(layer.transpose(layer.reshape(x, apart), order), together);
  layer.import.batched[y.index] = {source, b.block, b.begin, b.end};
  layer.set(y);
  return {};
}

bool has_one_value_per_channel(const Dims& dims, size_t rank, size_t channel_axis) {
  if (dims.size() > rank) return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && rank - dims.size() + i != channel_axis) return false;
  return true;
}

// SpaceToBatch, an undilated convolution, element-wise steps, BatchToSpace: a dilated convolution with the padding of the first
// and the crops of the last. None when the nodes before `y` are not of this kind.
TensorId dilated_convolution(Layer& layer, TensorId y, const Blocks& crops) {
  Graph& graph = layer.graph();
  const size_t spatial = crops.block.size(), rank = spatial + 2;
  constexpr std::string_view kSteps[] = {
      "Add",       "Sub",      "Mul", "Div", "Relu", "Clip", "LeakyRelu", "Elu", "Sigmoid", "Tanh", "BatchNormalization",
      "Transpose", "Identity", "Max", "Min"};
  std::vector<Node> steps;  // the last first
  TensorId at = y;
  bool channels_last = true;
  const Node* convolution = nullptr;
  constexpr size_t kMostSteps = 16;
  while (!convolution) {
    const Node* node = graph.producer_node(at);
    if (!node || node->outputs.size() != 1 || steps.size() > kMostSteps || node->inputs.empty()) return {};
    if (node->op == "Conv") {
      convolution = node;
      break;
    }
    if (std::find(std::begin(kSteps), std::end(kSteps), node->op) == std::end(kSteps)) return {};
    size_t varying = node->inputs.size();
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const TensorId input = node->inputs[i];
      if (!input) continue;
      // What follows from constants may not be folded yet: told by its shape alone.
      const auto dims = layer.dims_of(input);
      if (!dims) return {};
      if (dims->size() == rank && !graph.is_constant(input) && varying == node->inputs.size())
        varying = i;
      else if (node->op != "BatchNormalization" && !has_one_value_per_channel(*dims, rank, channels_last ? rank - 1 : 1))
        return {};
    }
    if (varying == node->inputs.size()) return {};
    if (node->op == "Transpose") channels_last = !channels_last;
    steps.push_back(*node);
    at = node->inputs[varying];
  }
  if (channels_last) return {};
  const Attributes& a = convolution->attributes;
  const auto is_all = [](const std::vector<int64_t>& list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v == value; });
  };
  if (a.has("auto_pad") || !is_all(a.ints_or("strides"), 1) || !is_all(a.ints_or("dilations"), 1) ||
      !is_all(a.ints_or("pads"), 0))
    return {};
  const Node* before = graph.producer_node(convolution->inputs[0]);
  if (!before || before->op != "Transpose") return {};
  const auto found = layer.import.batched.find(before->inputs[0].index);
  if (found == layer.import.batched.end() || found->second.block != crops.block) return {};
  const SpaceToBatch from = found->second;
  const Node first = *before;
  Node dilated = *convolution;
  std::vector<int64_t> begin, end;
  for (size_t i = 0; i < spatial; ++i) {
    begin.push_back(from.pads_begin[i] - crops.begin[i]);
    end.push_back(from.pads_end[i] - crops.end[i]);
    if (begin[i] < 0 || end[i] < 0) return {};
  }
  dilated.attributes.set("dilations", crops.block);
  dilated.attributes.set("pads", joined(begin, end));
  dilated.inputs[0] = layer.emit("Transpose", {from.source}, first.attributes);
  TensorId old = dilated.outputs[0], now = layer.emit("Conv", dilated.inputs, dilated.attributes);
  for (size_t i = steps.size(); i-- > 0;) {
    std::vector<TensorId> inputs = steps[i].inputs;
    std::replace(inputs.begin(), inputs.end(), old, now);
    old = steps[i].outputs[0];
    now = layer.emit(steps[i].op, std::move(inputs), steps[i].attributes);
  }
  return now;
}

Status lower_batch_to_space(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const Blocks b, blocks_of(layer));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to move its blocks"));
  const size_t n = b.block.size(), rank = dims.size();
  if (rank < n + 1) return shape_mismatch("the value has too few axes").expected(std::to_string(n + 1)).found(to_string(dims));
  if (rank == n + 2)
    if (const TensorId y = dilated_convolution(layer, x, b)) {
      layer.set(y);
      return {};
    }
  // [blocks..., batch, extents..., rest] -> [batch, extent, block, extent, block, ..., rest]
  int64_t factor = 1;
  for (int64_t block : b.block) {
    factor *= block;
    if (factor > dims[0])
      return shape_mismatch("the batch is smaller than the blocks")
          .expected("a multiple of " + std::to_string(factor))
          .found(std::to_string(dims[0]));
  }
  if (dims[0] % factor != 0)
    return shape_mismatch("the batch is no multiple of the blocks")
        .expected("a multiple of " + std::to_string(factor))
        .found(std::to_string(dims[0]));
  std::vector<int64_t> apart = b.block, order{static_cast<int64_t>(n)}, together{dims[0] / factor};
  apart.push_back(dims[0] / factor);
  for (size_t i = 1; i < rank; ++i) apart.push_back(dims[i]);
  std::vector<int64_t> starts, ends, axes;
  for (size_t i = 0; i < n; ++i) {
    order.push_back(static_cast<int64_t>(n + 1 + i));
    order.push_back(static_cast<int64_t>(i));
    const int64_t extent = dims[i + 1] * b.block[i];
    together.push_back(extent);
    if (b.begin[i] + b.end[i] > extent) return shape_mismatch("the crops are larger than the value").found(to_string(b.begin));
    if (b.begin[i] == 0 && b.end[i] == 0) continue;
    starts.push_back(b.begin[i]);
    ends.push_back(extent - b.end[i]);
    axes.push_back(static_cast<int64_t>(i) + 1);
  }
  for (size_t i = n + 1; i < rank; ++i) {
    order.push_back(static_cast<int64_t>(n + i));
    together.push_back(dims[i]);
  }
  TensorId y = layer.reshape(layer.transpose(layer.reshape(x, apart), order), together);
  if (!axes.empty()) y = layer.slice(y, starts, ends, axes);
  layer.set(y);
  return {};
}

// Every window as a row of channels, ordered [row, column, channel]: one shifted copy per element of the window.
Status lower_patches(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId x, layer.input(0));
  const DataFormat format{true, 2};
  ORKNN_TRY_ASSIGN(const auto size, spatial_entries(format, layer.ints_or("ksizes"), "ksizes"));
  ORKNN_TRY_ASSIGN(const auto strides, spatial_entries(format, layer.ints_or("strides"), "strides"));
  ORKNN_TRY_ASSIGN(const auto rates, spatial_entries(format, layer.ints_or("rates", {1, 1, 1, 1}), "rates"));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to cut patches"));
  if (dims.size() != 4) return shape_mismatch("the value has the wrong rank").expected("4").found(to_string(dims));
  constexpr int64_t kMostTaps = 1024;
  if (size[0] > kMostTaps || size[1] > kMostTaps || size[0] * size[1] > kMostTaps)
    return unsupported("the window is too large").found(to_string(size));
  const std::vector<int64_t> spread{(size[0] - 1) * rates[0] + 1, (size[1] - 1) * rates[1] + 1};
  ORKNN_TRY_ASSIGN(const Padding p, padding_of(layer, format, {dims[1], dims[2]}, spread, strides));
  if (p.begin[0] || p.begin[1] || p.end[0] || p.end[1])
    x = layer.emit("Pad", {x, layer.add_ints("pads", {0, p.begin[0], p.begin[1], 0, 0, p.end[0], p.end[1], 0})});
  const int64_t height = dims[1] + p.begin[0] + p.end[0], width = dims[2] + p.begin[1] + p.end[1];
  if (height < spread[0] || width < spread[1])
    return shape_mismatch("the window is larger than the picture").found(to_string(size));
  std::vector<TensorId> taps;
  for (int64_t i = 0; i < size[0]; ++i)
    for (int64_t j = 0; j < size[1]; ++j) {
      const int64_t top = i * rates[0], left = j * rates[1];
      taps.push_back(layer.slice(x, {top, left}, {top + height - spread[0] + 1, left + width - spread[1] + 1}, {1, 2},
                                 {strides[0], strides[1]}));
    }
  layer.set(layer.concat(std::move(taps), 3));
  return {};
}
}  // namespace

std::span<const Row> space_rows() {
  static constexpr Row kRows[] = {
      {"DepthToSpace", lower_depth_space},      {"SpaceToDepth", lower_depth_space},    {"SpaceToBatch", lower_space_to_batch},
      {"SpaceToBatchND", lower_space_to_batch}, {"BatchToSpace", lower_batch_to_space}, {"BatchToSpaceND", lower_batch_to_space},
      {"ExtractImagePatches", lower_patches},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
