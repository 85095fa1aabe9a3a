#include "silicon/lower.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "ops/support/convolution.h"
#include "ops/support/matrix.h"
#include "ops/support/pooling.h"
#include "ops/support/requantize.h"

namespace orknn::silicon {
namespace {
using namespace ir;

// What a node's lowering works on; `refuse` gives the reason to the caller.
struct Lowering {
  const format::Program& program;
  const Node& node;
  NodeReader attributes;
  LoweredNode result;

  const Graph& graph() const { return program.graph; }
  DType dtype(size_t input) const { return graph().tensor(node.input(input)).dtype; }
  std::optional<Dims> dims(TensorId t) const {
    const auto& shape = graph().tensor(t).shape;
    return shape ? to_dims(*shape) : std::nullopt;
  }
  const TensorData* constant(size_t input) const { return node.has_input(input) ? graph().constant(node.input(input)) : nullptr; }
  bool refuse(std::string why) {
    result.reason = std::move(why);
    return false;
  }
};

bool is_picture(const std::optional<Dims>& dims) { return dims && dims->size() == 4 && (*dims)[0] == 1; }

Cube picture_cube(const Dims& d) { return {d[2], d[3], d[1], Precision::Int8}; }

// Results of every accumulator above `ceiling` are those of `high`.
std::optional<int64_t> ceiling_for(const ops::OutputStage& s) {
  const auto result = [&](int64_t v) { return ops::round_shift(v * s.factor[0], s.shift[0]) + s.zero_point; };
  int64_t least = 0, most = INT32_MAX;  // the largest v whose result is at most `high`
  if (result(0) > s.high) return std::nullopt;
  while (least < most) {
    const int64_t middle = least + (most - least + 1) / 2;
    (result(middle) <= s.high ? least : most) = result(middle) <= s.high ? middle : middle - 1;
  }
  if (result(least) != s.high) return std::nullopt;
  return least;
}

// Converter, multipliers per channel, slope, ReLU and ceiling.
bool set_stages(Lowering& l, const ops::OutputStage& s, ConvLayer& layer) {
  if (s.table.dtype != DType::Undefined) return l.refuse("its function table has no proven recipe");
  if (s.dtype != DType::Int8) return l.refuse("its result is not int8");
  if (s.factor.size() != 1 || s.factor[0] < 1 || s.factor[0] > INT16_MAX) return l.refuse("its multiplier is no 15-bit number");
  layer.out_multiplier = s.factor[0];
  layer.out_shift = s.shift[0];
  layer.out_zero_point = s.zero_point;
  for (const int64_t f : s.channel_factor) layer.channel_multipliers.push_back(static_cast<int32_t>(f));
  layer.channel_shift = s.channel_shift;
  if (s.slope_factor.size() > 1) return l.refuse("slopes per channel have no proven recipe");
  if (s.slope_factor.size() == 1) {
    if (s.slope_factor[0] > INT16_MAX || s.slope_factor[0] < INT16_MIN || s.slope_shift > 62)
      return l.refuse("its slope is no 16-bit number");
    layer.slope = Slope{s.slope_factor[0], s.slope_shift};
  }
  const bool cuts_at_zero = s.low == s.zero_point || (s.low <= -128 && s.zero_point == -128);
  if (s.low > -128 && s.low != s.zero_point) return l.refuse("it cuts its result at another value than zero");
  layer.relu = s.low > -128;
  if (s.high < 127) {
    if (!cuts_at_zero) return l.refuse("it has an upper limit without ReLU");
    const std::optional<int64_t> ceiling = ceiling_for(s);
    if (!ceiling) return l.refuse("no accumulator gives its upper limit");
    layer.relu = true;
    layer.ceiling = ceiling;
  }
  return true;
}

Result<ops::OutputStage> read_stage(const Lowering& l, size_t slot, const ops::StageLimits& limits) {
  const TensorData* table = l.constant(slot);
  if (l.node.has_input(slot) && !table) return unsupported("its function table is computed");
  return ops::read_output_stage(l.attributes, table ? table->view() : TensorView{}, limits);
}

std::optional<int64_t> single_zero_point(const std::vector<int64_t>& zeros) {
  if (zeros.empty() || std::ranges::any_of(zeros, [&](int64_t z) { return z != zeros[0]; }) || zeros[0] < -128 || zeros[0] > 127)
    return std::nullopt;
  return zeros[0];
}

std::vector<int32_t> bias_of(const Lowering& l, int64_t channels) {
  const TensorData* bias = l.constant(2);
  std::vector<int32_t> values(static_cast<size_t>(channels));
  if (bias) std::ranges::copy(bias->values<int32_t>(), values.begin());
  return values;
}

// The tensor that is added to the sums.
bool set_addend(Lowering& l, const ops::OutputStage& s, size_t slot, ConvLayer& layer) {
  if (!l.node.has_input(slot)) return true;
  if (l.dtype(slot) != DType::Int8) return l.refuse("the added tensor is not int8");
  if (l.constant(slot)) return l.refuse("the added tensor is a constant");
  layer.element_wise = ElementWise{.zero_point = s.add_zero, .multiplier = s.add_factor, .shift = s.add_shift};
  l.result.operand = l.result.output;
  l.result.operand.tensor = l.node.input(slot);
  return true;
}

bool has_int8_operands(Lowering& l) {
  if (l.dtype(0) != DType::Int8 || (l.node.has_input(1) && l.dtype(1) != DType::Int8))
    return l.refuse("its operands are not int8");
  return true;
}

// [kernels][channels][taps] to [kernels][taps][channels]; depthwise [channels][1][taps] to [taps][channels].
std::vector<int8_t> rearranged(const int8_t* from, int64_t kernels, int64_t channels, int64_t taps, bool depthwise) {
  std::vector<int8_t> to(static_cast<size_t>(kernels * (depthwise ? 1 : channels) * taps));
  if (depthwise) {
    for (int64_t c = 0; c < kernels; ++c)
      for (int64_t t = 0; t < taps; ++t) to[static_cast<size_t>(t * kernels + c)] = from[c * taps + t];
    return to;
  }
  for (int64_t k = 0; k < kernels; ++k)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t t = 0; t < taps; ++t)
        to[static_cast<size_t>((k * taps + t) * channels + c)] = from[(k * channels + c) * taps + t];
  return to;
}

Window2d window_of(const ops::Window& w) {
  return {.height = w.kernel[0],
          .width = w.kernel[1],
          .stride_y = w.strides[0],
          .stride_x = w.strides[1],
          .dilation_y = w.dilations[0],
          .dilation_x = w.dilations[1],
          .top = w.pads_begin[0],
          .bottom = w.pads_end[0],
          .left = w.pads_begin[1],
          .right = w.pads_end[1]};
}

// The geometry of a layer between the cubes that the result already names.
template <class Layer>
void set_pictures(const LoweredNode& result, Layer& layer) {
  layer.height = result.input.cube.height;
  layer.width = result.input.cube.width;
  layer.channels = result.input.cube.channels;
  layer.out_height = result.output.cube.height;
  layer.out_width = result.output.cube.width;
}
bool set_cubes(Lowering& l) {
  const std::optional<Dims> in = l.dims(l.node.input(0)), out = l.dims(l.node.output());
  if (!is_picture(in) || !is_picture(out)) return l.refuse("its data is no single picture");
  l.result.input = {l.node.input(0), picture_cube(*in), TensorOrder::Chw};
  l.result.output = {l.node.output(), picture_cube(*out), TensorOrder::Chw};
  return true;
}

// Tries the recipe, so that its limits become the reason.
bool accept(Lowering& l, const ConvLayer& layer) {
  const auto streams = conv_streams(layer, {});
  if (!streams) return l.refuse(streams.status().message());
  l.result.layer = layer;
  return true;
}

// The stages of a product: on the unit, or after plain sums on the CPU where there is a table.
bool finish_product(Lowering& l, const ops::OutputStage& stage, ConvLayer layer, const std::vector<int8_t>& weights) {
  const std::vector<int32_t> bias = bias_of(l, layer.kernels);
  if (stage.table.dtype == DType::Undefined) {
    if (!set_stages(l, stage, layer) || !set_addend(l, stage, 3, layer) || !accept(l, layer)) return false;
    l.result.operands = pack_operands(layer, weights.data(), bias);
    return true;
  }
  if (l.node.has_input(3) || layer.weight_zero_point != 0 || layer.depthwise || dtype_bytes(stage.dtype) != 1)
    return l.refuse("its function table has no proven recipe");
  l.result.host = HostStages{stage, bias};
  const int64_t taps = layer.window.height * layer.window.width * layer.channels;
  for (int64_t k = 0; k < layer.kernels; ++k)
    for (int64_t i = 0; i < taps; ++i)
      l.result.host->bias[static_cast<size_t>(k)] -=
          static_cast<int32_t>(layer.in_zero_point * weights[static_cast<size_t>(k * taps + i)]);
  layer.out = Precision::Int32;
  layer.has_bias = false;
  if (!accept(l, layer)) return false;
  l.result.output.cube.precision = Precision::Int32;
  l.result.operands = pack_operands(layer, weights.data(), {});
  return true;
}

bool lower_conv(Lowering& l) {
  if (!has_int8_operands(l) || !set_cubes(l)) return false;
  const TensorData* weights = l.constant(1);
  if (!weights) return l.refuse("its weights are computed");
  const auto shape = ops::conv_shape(l.attributes, *l.dims(l.node.input(0)), weights->dims());
  if (!shape || shape->window.rank() != 2) return l.refuse("it is no convolution of two axes");
  ConvLayer layer;
  set_pictures(l.result, layer);
  layer.kernels = shape->output_channels;
  layer.window = window_of(shape->window);
  layer.depthwise = shape->groups > 1;
  if (layer.depthwise && (shape->groups != shape->input_channels || shape->groups != shape->output_channels))
    return l.refuse("groups that are neither one nor one per channel have no proven recipe");
  if (shape->groups == 1 && shape->input_channels == 1 && shape->output_channels == 1) layer.depthwise = false;
  const auto zero = ops::read_zero_point(l.attributes, "x_zero_point");
  const std::optional<int64_t> weight_zero = single_zero_point(l.attributes.get_ints("w_zero_point"));
  const auto stage = read_stage(l, 4, ops::product_limits(DType::Int8, DType::Int8, layer.kernels));
  if (!zero || !weight_zero || !stage) return l.refuse("its zero points or scales have no recipe");
  layer.in_zero_point = *zero;
  layer.weight_zero_point = *weight_zero;
  const int64_t taps = layer.window.height * layer.window.width;
  const auto packed = rearranged(weights->as<int8_t>(), layer.kernels, layer.channels, taps, layer.depthwise);
  return finish_product(l, *stage, layer, packed);
}

// Rows of the left matrix are pixels of a picture one column wide.
bool lower_matmul(Lowering& l) {
  if (!has_int8_operands(l)) return false;
  const TensorData* weights = l.constant(1);
  const std::optional<Dims> in = l.dims(l.node.input(0)), out = l.dims(l.node.output());
  if (!weights || weights->dims().size() != 2 || !in || in->empty() || !out)
    return l.refuse("its right matrix is computed or not a single one");
  const int64_t depth = weights->dims()[0], columns = weights->dims()[1], rows = element_count(*in) / std::max<int64_t>(depth, 1);
  if (in->back() != depth || element_count(*out) != rows * columns) return l.refuse("its matrices have no recipe");
  if (rows != 1 && rows % 4 != 0) return l.refuse("rows that are no multiple of four come out wrong on boards");
  l.result.input = {l.node.input(0), {rows, 1, depth, Precision::Int8}, TensorOrder::Hwc};
  l.result.output = {l.node.output(), {rows, 1, columns, Precision::Int8}, TensorOrder::Hwc};
  ConvLayer layer;
  set_pictures(l.result, layer);
  layer.kernels = columns;
  const auto zero = ops::read_zero_point(l.attributes, "x_zero_point");
  const std::optional<int64_t> weight_zero = single_zero_point(l.attributes.get_ints("w_zero_point"));
  const auto stage = read_stage(l, 4, ops::product_limits(DType::Int8, DType::Int8, columns));
  if (!zero || !weight_zero || !stage) return l.refuse("its zero points or scales have no recipe");
  layer.in_zero_point = *zero;
  layer.weight_zero_point = *weight_zero;
  std::vector<int8_t> turned(static_cast<size_t>(depth * columns));
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t c = 0; c < depth; ++c) turned[static_cast<size_t>(k * depth + c)] = weights->as<int8_t>()[c * columns + k];
  return finish_product(l, *stage, layer, turned);
}

// A 1x1 convolution by a diagonal carries the first operand, the second is added to its sums.
bool lower_add(Lowering& l) {
  if (!has_int8_operands(l) || !set_cubes(l)) return false;
  if (l.constant(0) || l.constant(1) || l.dims(l.node.input(1)) != l.dims(l.node.input(0)) ||
      l.dims(l.node.output()) != l.dims(l.node.input(0)))
    return l.refuse("its operands differ in shape or are constants");
  const auto scale = ops::read_binary_scale(l.attributes);
  const auto stage = read_stage(l, 2, {.max_factor = ops::kMaxBinaryFactor});
  if (!scale || !stage || scale->a_factor < -128 || scale->a_factor > 127) return l.refuse("its scales have no recipe");
  ConvLayer layer;
  set_pictures(l.result, layer);
  layer.kernels = layer.channels;
  layer.in_zero_point = scale->a_zero;
  if (!set_stages(l, *stage, layer)) return false;
  layer.element_wise = ElementWise{.zero_point = scale->b_zero, .multiplier = scale->b_factor, .shift = scale->b_shift};
  l.result.operand = l.result.output;
  l.result.operand.tensor = l.node.input(1);
  if (!accept(l, layer)) return false;
  std::vector<int8_t> diagonal(static_cast<size_t>(layer.channels * layer.channels));
  for (int64_t c = 0; c < layer.channels; ++c)
    diagonal[static_cast<size_t>(c * layer.channels + c)] = static_cast<int8_t>(scale->a_factor);
  l.result.operands = pack_operands(layer, diagonal.data(), {});
  return true;
}

bool lower_pool(Lowering& l, PoolTask::Method method, int64_t zero_point) {
  if (!set_cubes(l)) return false;
  const auto shape = ops::pool_shape(l.attributes, *l.dims(l.node.input(0)));
  if (!shape) return l.refuse("its window has no recipe");
  PoolLayer layer;
  layer.method = method;
  layer.zero_point = zero_point;
  set_pictures(l.result, layer);
  layer.window = window_of(shape->window);
  const auto stream = pool_stream(layer, 0, 0);
  if (!stream) return l.refuse(stream.status().message());
  l.result.layer = layer;
  return true;
}

bool lower_max_pool(Lowering& l) {
  if (l.dtype(0) != DType::Int8) return l.refuse("its data is not int8");
  if (l.node.outputs.size() > 1 && l.node.output(1)) return l.refuse("positions of maxima have no recipe");
  return lower_pool(l, PoolTask::Method::Max, 0);
}

// A mean with a scale of its own: a depthwise convolution by ones.
ConvLayer mean_layer(const Lowering& l, const Window2d& window) {
  ConvLayer layer;
  set_pictures(l.result, layer);
  layer.kernels = layer.channels;
  layer.depthwise = true;
  layer.window = window;
  return layer;
}
bool accept_mean(Lowering& l, const ConvLayer& layer) {
  if (!accept(l, layer)) return false;
  const std::vector<int8_t> ones(static_cast<size_t>(layer.window.height * layer.window.width * layer.channels), 1);
  l.result.operands = pack_operands(layer, ones.data(), {});
  return true;
}
bool lower_mean(Lowering& l, const Window2d& window, int64_t zero, const ops::OutputStage& stage) {
  ConvLayer layer = mean_layer(l, window);
  layer.in_zero_point = zero;
  return set_stages(l, stage, layer) && accept_mean(l, layer);
}

// The converter that divides sums of `taps` bytes as the pooling unit does, if there is one: found by trying all sums.
std::optional<ScaleShift> byte_mean_scale(int64_t taps, bool ties_to_even) {
  const int64_t shift = std::has_single_bit(static_cast<uint64_t>(taps)) ? 13 + std::bit_width(static_cast<uint64_t>(taps))
                                                                         : 14 + std::bit_width(static_cast<uint64_t>(taps));
  // Rounded down, so that an exact half goes toward zero where it does on the pooling unit.
  const int64_t scale = (int64_t{1} << shift) / taps;
  for (int64_t sum = -128 * taps; sum <= 127 * taps; ++sum)
    if (ops::round_shift(sum * scale, shift) != ops::window_mean(sum, taps, ties_to_even)) return std::nullopt;
  return ScaleShift{scale, shift};
}

// An average that keeps its scale: sums of bytes by a depthwise convolution, because not every driver waits for the pooling unit.
bool lower_byte_mean(Lowering& l, const Window2d& window) {
  if (window.height > 31 || window.width > 31) return false;  // more than a kernel has
  const auto is_power = [](int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); };
  const auto scale = byte_mean_scale(window.height * window.width, is_power(window.height) && is_power(window.width));
  if (!scale) return false;
  ConvLayer layer = mean_layer(l, window);
  layer.out_multiplier = scale->scale;
  layer.out_shift = scale->shift;
  return accept_mean(l, layer);
}

bool lower_average_pool(Lowering& l) {
  if (l.dtype(0) != DType::Int8 || !set_cubes(l)) return l.refuse("its data is no single picture of int8");
  const auto shape = ops::pool_shape(l.attributes, *l.dims(l.node.input(0)));
  const auto zero = ops::read_zero_point(l.attributes, "x_zero_point");
  if (!shape || !zero || shape->window.rank() != 2) return l.refuse("its window has no recipe");
  const Window2d window = window_of(shape->window);
  const bool padded = window.top + window.bottom + window.left + window.right > 0 || shape->window.ceil_mode;
  if (padded) return l.refuse("the mean of a window with padding has no proven recipe");
  if (l.attributes.get_int("same_scale") != 0) {
    if (lower_byte_mean(l, window)) return true;
    l.result.reason.clear();
    return lower_pool(l, PoolTask::Method::Average, *zero);
  }
  const int64_t taps = window.height * window.width;
  auto stage = read_stage(l, 1, {.multipliers = taps, .max_factor = int64_t{1} << 30});
  if (!stage) return l.refuse("its scales have no recipe");
  const size_t used = stage->factor.size() == 1 ? 0 : static_cast<size_t>(taps - 1);
  stage->factor = {stage->factor[used]};
  stage->shift = {stage->shift[used]};
  return lower_mean(l, window, *zero, *stage);
}

bool lower_reduce_mean(Lowering& l) {
  if (l.dtype(0) != DType::Int8 || !set_cubes(l)) return l.refuse("its data is no single picture of int8");
  if (l.attributes.get_int("first_axis") != 2 || l.attributes.get_int("end_axis") != 4)
    return l.refuse("other axes than rows and columns have no recipe");
  const auto zero = ops::read_zero_point(l.attributes, "x_zero_point");
  const auto stage = read_stage(l, 1, {.max_factor = int64_t{1} << 30});
  if (!zero || !stage) return l.refuse("its scales have no recipe");
  const Cube& in = l.result.input.cube;
  return lower_mean(l, {.height = in.height, .width = in.width}, *zero, *stage);
}

using Lower = bool (*)(Lowering&);
const std::map<std::string_view, Lower>& lowerings() {
  static const std::map<std::string_view, Lower> table{{"int:Conv", lower_conv},
                                                       {"int:MatMul", lower_matmul},
                                                       {"int:Add", lower_add},
                                                       {"MaxPool", lower_max_pool},
                                                       {"int:AveragePool", lower_average_pool},
                                                       {"int:ReduceMean", lower_reduce_mean}};
  return table;
}
}  // namespace

Result<ops::OutputStage> host_stage(const format::Program& program, const Node& node, const OpSet& ops) {
  const OpDef* def = ops.find(node.op);
  const Tensor& out = program.graph.tensor(node.output());
  const std::optional<Dims> dims = out.shape ? to_dims(*out.shape) : std::nullopt;
  if (!def || !dims || dims->empty() || (node.op != "int:Conv" && node.op != "int:MatMul"))
    return unsupported("it has no sums that the CPU converts");
  const int64_t channels = node.op == "int:Conv" && dims->size() > 1 ? (*dims)[1] : dims->back();
  const Lowering l{program, node, NodeReader(node, *def), {}};
  return read_stage(l, 4, ops::product_limits(DType::Int8, DType::Int8, channels));
}

LoweredNode lower(const format::Program& program, const Node& node, const OpSet& ops) {
  LoweredNode none;
  const OpDef* def = ops.find(node.op);
  const auto at = lowerings().find(node.op);
  if (!def || at == lowerings().end()) {
    none.reason = "there is no recipe for " + node.op;
    return none;
  }
  if (!node.tail.empty()) {
    none.reason = "what is fused with it has no recipe";
    return none;
  }
  Lowering l{program, node, NodeReader(node, *def), {}};
  if (!at->second(l) && l.result.reason.empty()) l.result.reason = "there is no recipe";
  return std::move(l.result);
}

}  // namespace orknn::silicon
