#include "silicon/lower.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "ops/support/convolution.h"
#include "ops/support/pooling.h"
#include "ops/support/requantize.h"
#include "silicon/chip_model.h"
#include "silicon/lowering.h"

namespace orknn::silicon {
using namespace ir;

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

bool set_cubes(Lowering& l, Precision precision) {
  const std::optional<Dims> in = l.dims(l.node.input(0)), out = l.dims(l.node.output());
  const auto is_picture = [](const std::optional<Dims>& d) { return d && d->size() == 4 && (*d)[0] == 1; };
  if (!is_picture(in) || !is_picture(out)) return l.refuse("its data is no single picture");
  const auto cube = [&](const Dims& d) { return Cube{d[2], d[3], d[1], precision}; };
  l.result.input = {l.node.input(0), cube(*in), TensorOrder::Chw};
  l.result.output = {l.node.output(), cube(*out), TensorOrder::Chw};
  return true;
}

bool set_rows(Lowering& l, int64_t depth, int64_t columns, Precision precision) {
  const std::optional<Dims> in = l.dims(l.node.input(0)), out = l.dims(l.node.output());
  if (!in || in->empty() || !out || depth < 1) return l.refuse("its matrices have no recipe");
  const int64_t rows = element_count(*in) / depth;
  if (in->back() != depth || element_count(*out) != rows * columns) return l.refuse("its matrices have no recipe");
  if (rows < 1) return l.refuse("its matrices have no elements");
  // Other numbers of rows than multiples of four come out wrong on boards; more are computed.
  const int64_t whole = rows == 1 ? 1 : round_up(rows, 4);
  l.result.input = {l.node.input(0), {whole, 1, depth, precision}, TensorOrder::Hwc, whole == rows ? 0 : rows};
  l.result.output = {l.node.output(), {whole, 1, columns, precision}, TensorOrder::Hwc, whole == rows ? 0 : rows};
  return true;
}

ConvLayer mean_layer(const Lowering& l, const Window2d& window) {
  ConvLayer layer;
  set_pictures(l.result, layer);
  layer.kernels = layer.channels;
  layer.depthwise = true;
  layer.window = window;
  return layer;
}

std::optional<ConvForm> conv_form(Lowering& l, const Dims& weights) {
  const auto shape = ops::conv_shape(l.attributes, *l.dims(l.node.input(0)), weights);
  if (!shape || shape->window.rank() != 2) {
    l.refuse("it is no convolution of two axes");
    return std::nullopt;
  }
  ConvForm form;
  set_pictures(l.result, form.layer);
  form.layer.kernels = shape->output_channels;
  form.layer.window = window_of(shape->window);
  form.layer.depthwise = shape->groups > 1 && shape->groups == shape->input_channels && shape->groups == shape->output_channels;
  form.groups = form.layer.depthwise ? 1 : shape->groups;
  return form;
}

LayerWeights conv_weights(const Lowering& l, const ConvLayer& layer, int64_t groups) {
  LayerWeights w{l.node.input(1), layer.weights()};
  const int64_t own = layer.depthwise ? 1 : layer.channels / groups;
  w.plan.kernel_step = own * w.plan.taps();
  w.plan.tap_step = 1;
  w.plan.channel_step = w.plan.taps();
  w.plan.own_channels = own;
  w.plan.kernels_together = layer.kernels / groups;
  return w;
}

LayerWeights matrix_weights(const Lowering& l, const ConvLayer& layer, bool turned) {
  LayerWeights w{l.node.input(1), layer.weights()};
  w.plan.kernel_step = turned ? layer.channels : 1;
  w.plan.channel_step = turned ? 1 : layer.kernels;
  return w;
}

LayerWeights diagonal_weights(const ConvLayer& layer, int64_t bits) {
  LayerWeights w = equal_weights(layer, bits);
  w.plan.own_channels = w.plan.kernels_together = 1;
  return w;
}

LayerWeights equal_weights(const ConvLayer& layer, int64_t bits) {
  LayerWeights w{.plan = layer.weights()};
  w.plan.value = bits;
  return w;
}

void put_in_blocks(ConvLayer& layer, LayerWeights& weights) {
  layer.depthwise = weights.plan.depthwise = false;
  layer.block = weights.plan.block = weight_groups(layer.in).channels;
  weights.plan.own_channels = weights.plan.kernels_together = 1;
}

bool accept(Lowering& l, const ConvLayer& layer) {
  const auto streams = conv_streams(layer, {});
  if (!streams) return l.refuse(streams.status().message());
  if (const Status checked = check_streams(*streams); !checked) return l.refuse(checked.message());
  l.result.layer = layer;
  return true;
}

bool lower_pool(Lowering& l, PoolTask::Method method, Precision precision, int64_t zero_point) {
  if (!set_cubes(l, precision)) return false;
  const auto shape = ops::pool_shape(l.attributes, *l.dims(l.node.input(0)));
  if (!shape) return l.refuse("its window has no recipe");
  PoolLayer layer;
  layer.method = method;
  layer.precision = precision;
  layer.zero_point = zero_point;
  set_pictures(l.result, layer);
  layer.window = window_of(shape->window);
  const auto stream = pool_stream(layer, 0, 0);
  if (!stream) return l.refuse(stream.status().message());
  if (const Status checked = check_streams(std::span(&*stream, 1)); !checked) return l.refuse(checked.message());
  l.result.layer = layer;
  return true;
}

namespace {

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

// The stages of a product after plain sums, on the CPU.
bool finish_on_host(Lowering& l, const ops::OutputStage& stage, ConvLayer layer, LayerWeights weights) {
  if (l.node.has_input(3) || layer.weight_zero_point != 0 || dtype_bytes(stage.dtype) != 1) return false;
  l.result.reason.clear();
  auto bias = bias_without_zero_point(layer, bias_of(l, layer.kernels), weights.plan, values_of(l, weights));
  if (!bias) return l.refuse(bias.status().message());
  l.result.host = HostStages{stage, std::move(*bias)};
  if (layer.depthwise) put_in_blocks(layer, weights);
  layer.out = Precision::Int32;
  layer.has_bias = false;
  if (!accept(l, layer)) return false;
  l.result.output.cube.precision = Precision::Int32;
  l.result.weights = std::move(weights);
  return true;
}

// A layer whose stages the unit has.
bool accept(Lowering& l, const ConvLayer& layer, const LayerWeights& weights, std::span<const int32_t> bias) {
  if (!accept(l, layer)) return false;
  auto packed = pack_bias_of(layer, bias, weights.plan, values_of(l, weights));
  if (!packed) return l.refuse(packed.status().message());
  l.result.bias = std::move(*packed);
  l.result.weights = weights;
  return true;
}

// The stages of a product: on the unit, or after plain sums on the CPU where the unit has no such stage.
bool finish_product(Lowering& l, const ops::OutputStage& stage, const ConvLayer& plain, const LayerWeights& weights) {
  ConvLayer layer = plain;
  if (!set_stages(l, stage, layer)) return finish_on_host(l, stage, plain, weights);
  return set_addend(l, stage, 3, layer) && accept(l, layer, weights, bias_of(l, layer.kernels));
}

bool lower_conv(Lowering& l) {
  if (!has_int8_operands(l) || !set_cubes(l, Precision::Int8)) return false;
  const TensorData* weights = l.constant(1);
  if (!weights) return l.refuse("its weights are computed");
  std::optional<ConvForm> form = conv_form(l, weights->dims());
  if (!form) return false;
  ConvLayer& layer = form->layer;
  const auto zero = ops::read_zero_point(l.attributes, "x_zero_point");
  const std::optional<int64_t> weight_zero = single_zero_point(l.attributes.get_ints("w_zero_point"));
  const auto stage = read_stage(l, 4, ops::product_limits(DType::Int8, DType::Int8, layer.kernels));
  if (!zero || !weight_zero || !stage) return l.refuse("its zero points or scales have no recipe");
  layer.in_zero_point = *zero;
  layer.weight_zero_point = *weight_zero;
  return finish_product(l, *stage, layer, conv_weights(l, layer, form->groups));
}

bool lower_matmul(Lowering& l) {
  if (!has_int8_operands(l)) return false;
  const TensorData* weights = l.constant(1);
  if (!weights || weights->dims().size() != 2) return l.refuse("its right matrix is computed or not a single one");
  const int64_t depth = weights->dims()[0], columns = weights->dims()[1];
  if (!set_rows(l, depth, columns, Precision::Int8)) return false;
  ConvLayer layer;
  set_pictures(l.result, layer);
  layer.kernels = columns;
  const auto zero = ops::read_zero_point(l.attributes, "x_zero_point");
  const std::optional<int64_t> weight_zero = single_zero_point(l.attributes.get_ints("w_zero_point"));
  const auto stage = read_stage(l, 4, ops::product_limits(DType::Int8, DType::Int8, columns));
  if (!zero || !weight_zero || !stage) return l.refuse("its zero points or scales have no recipe");
  layer.in_zero_point = *zero;
  layer.weight_zero_point = *weight_zero;
  return finish_product(l, *stage, layer, matrix_weights(l, layer, false));
}

// A 1x1 convolution by a diagonal carries the first operand, the second is added to its sums.
bool lower_add(Lowering& l) {
  if (!has_int8_operands(l) || !set_cubes(l, Precision::Int8)) return false;
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
  return accept(l, layer, diagonal_weights(layer, scale->a_factor), {});
}

// A mean with a scale of its own: a depthwise convolution by ones.
bool accept_mean(Lowering& l, const ConvLayer& layer) { return accept(l, layer, equal_weights(layer, 1), {}); }
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
  if (l.dtype(0) != DType::Int8 || !set_cubes(l, Precision::Int8)) return l.refuse("its data is no single picture of int8");
  const auto shape = ops::pool_shape(l.attributes, *l.dims(l.node.input(0)));
  const auto zero = ops::read_zero_point(l.attributes, "x_zero_point");
  if (!shape || !zero || shape->window.rank() != 2) return l.refuse("its window has no recipe");
  const Window2d window = window_of(shape->window);
  const bool padded = window.top + window.bottom + window.left + window.right > 0 || shape->window.ceil_mode;
  if (padded) return l.refuse("the mean of a window with padding has no proven recipe");
  if (l.attributes.get_int("same_scale") != 0) {
    if (lower_byte_mean(l, window)) return true;
    l.result.reason.clear();
    return lower_pool(l, PoolTask::Method::Average, Precision::Int8, *zero);
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
  if (l.dtype(0) != DType::Int8 || !set_cubes(l, Precision::Int8)) return l.refuse("its data is no single picture of int8");
  if (l.attributes.get_int("first_axis") != 2 || l.attributes.get_int("end_axis") != 4)
    return l.refuse("other axes than rows and columns have no recipe");
  const auto zero = ops::read_zero_point(l.attributes, "x_zero_point");
  const auto stage = read_stage(l, 1, {.max_factor = int64_t{1} << 30});
  if (!zero || !stage) return l.refuse("its scales have no recipe");
  const Cube& in = l.result.input.cube;
  return lower_mean(l, {.height = in.height, .width = in.width}, *zero, *stage);
}

bool lower_max_pool(Lowering& l) {
  if (l.dtype(0) != DType::Int8) return l.refuse("its data is not int8");
  if (l.node.outputs.size() > 1 && l.node.output(1)) return l.refuse("positions of maxima have no recipe");
  return lower_pool(l, PoolTask::Method::Max, Precision::Int8, 0);
}

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
    return unsupported("the CPU can finish only integer Conv and MatMul");
  const int64_t channels = node.op == "int:Conv" && dims->size() > 1 ? (*dims)[1] : dims->back();
  const Lowering l{program, node, NodeReader(node, *def), {}};
  return read_stage(l, 4, ops::product_limits(DType::Int8, DType::Int8, channels));
}

LoweredNode lower(const format::Program& program, const Node& node, const OpSet& ops) {
  LoweredNode none;
  const OpDef* def = ops.find(node.op);
  const bool half = !node.inputs.empty() && node.inputs[0] && program.graph.tensor(node.inputs[0]).dtype == DType::Float16;
  const auto at = lowerings().find(node.op);
  const Lower lowering = half ? half_lowering(node.op) : at == lowerings().end() ? nullptr : at->second;
  if (!def || !lowering) {
    const bool has_other_type = !half && half_lowering(node.op) && !node.inputs.empty() && node.inputs[0];
    none.reason = has_other_type ? node.op + " has a recipe for float16, not for " +
                                       std::string(dtype_name(program.graph.tensor(node.inputs[0]).dtype))
                                 : "there is no recipe for " + node.op;
    return none;
  }
  if (!half && !node.tail.empty()) {
    none.reason = "what is fused with it has no recipe";
    return none;
  }
  Lowering l{program, node, NodeReader(node, *def), {}};
  if (!lowering(l) && l.result.reason.empty()) l.result.reason = "there is no recipe";
  return std::move(l.result);
}

}  // namespace orknn::silicon
