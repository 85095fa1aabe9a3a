// Layers of float16: convolutions, products, element-wise operations and pools as the unit has them.
#include <bit>
#include <cmath>
#include <map>

#include "base/half.h"
#include "ops/facts.h"
#include "ops/support/convolution.h"
#include "ops/support/pooling.h"
#include "silicon/lowering.h"

namespace orknn::silicon {
namespace {
using namespace ir;

const TensorData* half_constant(const Lowering& l, size_t input) {
  const TensorData* value = l.constant(input);
  return value && value->dtype() == DType::Float16 ? value : nullptr;
}

uint16_t half_of(double v) { return float_to_half(static_cast<float>(v)); }

// One of the operations that the stage EW has; Sub is the sum with the left operand's negative.
std::optional<ElementWise::Operation> operation_of(std::string_view op) {
  switch (ops::facts_of(op).arithmetic) {
    case Arithmetic::Add: return ElementWise::Operation::Add;
    case Arithmetic::Mul: return ElementWise::Operation::Multiply;
    case Arithmetic::Max: return ElementWise::Operation::Max;
    case Arithmetic::Min: return ElementWise::Operation::Min;
    default: return std::nullopt;
  }
}

// ReLU, with a ceiling or without one.
bool is_relu(const TailStep& step) {
  const Bounds bounds = ops::facts_of(step.op).bounds;
  if (bounds == Bounds::Zero) return true;
  return bounds == Bounds::Given && step.attributes.float_or("min", -INFINITY) == 0 &&
         step.attributes.float_or("max", INFINITY) > 0;
}
void set_relu(const TailStep& step, ConvLayer& layer) {
  layer.relu = true;
  const auto most = static_cast<float>(step.attributes.float_or("max", INFINITY));  // a Relu has none
  if (std::isfinite(most)) layer.ceiling = std::bit_cast<int32_t>(most);
}

// Bits of a number per kernel as the stage BS adds it. Nothing where the tensor is no row of constants along the kernels.
std::optional<std::vector<int32_t>> bias_bits(const Lowering& l, TensorId t, int64_t kernels, double factor = 1) {
  const TensorData* value = l.graph().constant(t);
  if (!value || value->dtype() != DType::Float16 || (value->count() != kernels && value->count() != 1)) return std::nullopt;
  const Dims& dims = value->dims();
  const int64_t from_end = l.result.output.order == TensorOrder::Hwc || dims.size() < 2 ? 1 : 3;  // the axis of kernels
  const bool along =
      static_cast<int64_t>(dims.size()) >= from_end && dims[dims.size() - static_cast<size_t>(from_end)] == kernels;
  if (value->count() != 1 && !along) return std::nullopt;
  const std::vector<double> numbers = to_doubles(value->view());
  std::vector<int32_t> bits;
  for (int64_t k = 0; k < kernels; ++k)
    bits.push_back(
        std::bit_cast<int32_t>(static_cast<float>(numbers[numbers.size() == 1 ? 0 : static_cast<size_t>(k)] * factor)));
  return bits;
}

// The tail from `first` on as stages of the unit: ReLU and one operand of the output's shape, in either order. False where it has
// other steps.
bool set_tail(Lowering& l, ConvLayer& layer, size_t first = 0) {
  for (size_t i = first; i < l.node.tail.size(); ++i) {
    const TailStep& step = l.node.tail[i];
    if (is_relu(step) && !layer.relu) {
      set_relu(step, layer);
      layer.relu_first = !layer.element_wise;
      continue;
    }
    const auto operation = operation_of(step.op);
    if (!operation || layer.element_wise || layer.depthwise || (layer.relu && !layer.relu_first)) return false;
    const TensorId operand = l.node.inputs[static_cast<size_t>(step.operand)];
    if (l.graph().constant(operand) || l.graph().tensor(operand).dtype != DType::Float16 ||
        l.dims(operand) != l.dims(l.node.output()))
      return false;
    layer.element_wise = ElementWise{.operation = *operation};
    l.result.operand = l.result.output;
    l.result.operand.tensor = operand;
  }
  if (!layer.element_wise) layer.relu_first = false;
  return true;
}

// Streams that end with the layer's tail, or with float32 results that the CPU finishes.
bool finish(Lowering& l, ConvLayer layer, LayerWeights weights, const std::vector<int32_t>& own_bias) {
  layer.has_bias = !own_bias.empty();
  ConvLayer whole = layer;
  std::vector<int32_t> bias = own_bias;
  size_t first = 0;
  if (!whole.has_bias && !l.node.tail.empty() &&
      operation_of(l.node.tail[0].op) == ElementWise::Operation::Add)  // a bias under another name
    if (auto bits = bias_bits(l, l.node.inputs[static_cast<size_t>(l.node.tail[0].operand)], layer.kernels)) {
      bias = std::move(*bits);
      whole.has_bias = true;
      first = 1;
    }
  if (!set_tail(l, whole, first) || !accept(l, whole)) {
    l.result.reason.clear();
    l.result.operand = {};
    if (layer.depthwise) put_in_blocks(layer, weights);
    layer.out = Precision::Float;
    l.result.output.cube.precision = Precision::Float;
    l.result.tail_on_host = true;
    whole = layer;
    bias = own_bias;
    if (!accept(l, whole)) return false;
  }
  auto packed = pack_bias_of(whole, bias, weights.plan, nullptr);
  if (!packed) return l.refuse(packed.status().message());
  l.result.bias = std::move(*packed);
  l.result.weights = std::move(weights);
  return true;
}

// The bias of a product, none where it has no such input. False where it is no row of constants.
bool read_bias(Lowering& l, int64_t kernels, double factor, std::vector<int32_t>& bias) {
  if (!l.node.has_input(2)) return true;
  auto bits = bias_bits(l, l.node.input(2), kernels, factor);
  if (!bits) return l.refuse("its bias is no row of constants");
  bias = std::move(*bits);
  return true;
}

bool is_half_result(Lowering& l) {
  return l.graph().tensor(l.node.output()).dtype == DType::Float16 || l.refuse("its result is not float16");
}

bool lower_conv(Lowering& l) {
  if (!is_half_result(l) || !set_cubes(l, Precision::Half)) return false;
  const TensorData* weights = half_constant(l, 1);
  if (!weights) return l.refuse("its weights are computed");
  std::optional<ConvForm> form = conv_form(l, weights->dims());
  if (!form) return false;
  std::vector<int32_t> bias;
  if (!read_bias(l, form->layer.kernels, 1, bias)) return false;
  form->layer.in = form->layer.out = Precision::Half;
  return finish(l, form->layer, conv_weights(l, form->layer, form->groups), bias);
}

// Products with a constant matrix, `turned`: [columns, depth].
bool lower_product(Lowering& l, bool turned, double bias_factor) {
  const TensorData* weights = half_constant(l, 1);
  if (!weights || weights->dims().size() != 2) return l.refuse("its right matrix is computed or not a single one");
  const int64_t depth = weights->dims()[turned ? 1 : 0], columns = weights->dims()[turned ? 0 : 1];
  if (!is_half_result(l) || !set_rows(l, depth, columns, Precision::Half)) return false;
  ConvLayer layer;
  set_pictures(l.result, layer);
  layer.in = layer.out = Precision::Half;
  layer.kernels = columns;
  std::vector<int32_t> bias;
  if (!read_bias(l, columns, bias_factor, bias)) return false;
  return finish(l, layer, matrix_weights(l, layer, turned), bias);
}
bool lower_matmul(Lowering& l) { return lower_product(l, false, 1); }
bool lower_gemm(Lowering& l) {
  if (l.attributes.get_int("transA") != 0 || l.attributes.get_float("alpha") != 1)
    return l.refuse("its left matrix is transposed or scaled");
  return lower_product(l, l.attributes.get_int("transB") != 0, l.attributes.get_float("beta"));
}

// A 1x1 convolution by a diagonal carries one operand, the other is combined with its sums.
bool lower_binary(Lowering& l) {
  if (!is_half_result(l) || !set_cubes(l, Precision::Half)) return false;
  const bool subtracts = ops::facts_of(l.node.op).arithmetic == Arithmetic::Sub;
  if (l.node.own_input_count() != 2 || l.constant(0) || l.constant(1) || l.dtype(1) != DType::Float16 ||
      l.dims(l.node.input(1)) != l.dims(l.node.input(0)) || l.dims(l.node.output()) != l.dims(l.node.input(0)))
    return l.refuse("its operands differ in shape or are constants");
  ConvLayer layer;
  layer.in = layer.out = Precision::Half;
  layer.has_bias = false;
  set_pictures(l.result, layer);
  layer.kernels = layer.channels;
  layer.element_wise = ElementWise{.operation = subtracts ? ElementWise::Operation::Add : *operation_of(l.node.op)};
  l.result.operand = l.result.input;
  (subtracts ? l.result.input : l.result.operand).tensor = l.node.input(1);
  if (!set_tail(l, layer)) return l.refuse("what is fused with it has no recipe");
  if (!accept(l, layer)) return false;
  l.result.weights = diagonal_weights(layer, half_of(subtracts ? -1 : 1));
  return true;
}

bool lower_max_pool(Lowering& l) {
  if (l.node.outputs.size() > 1 && l.node.output(1)) return l.refuse("positions of maxima have no recipe");
  if (!l.node.tail.empty()) return l.refuse("what is fused with it has no recipe");
  return lower_pool(l, PoolTask::Method::Max, Precision::Half, 0);
}

// A mean is a depthwise convolution, because not every driver waits for the pooling unit; its weights are float16 as the pooling
// unit's reciprocals are.
bool lower_mean(Lowering& l, const Window2d& window) {
  ConvLayer layer = mean_layer(l, window);
  layer.in = layer.out = Precision::Half;
  const int64_t taps = window.height * window.width;
  if (taps > 31 * 31) return l.refuse("the window is larger than a kernel");
  return finish(l, layer, equal_weights(layer, half_of(1.0 / static_cast<double>(taps))), {});
}
bool lower_average_pool(Lowering& l) {
  if (!is_half_result(l) || !set_cubes(l, Precision::Half)) return false;
  const auto shape = ops::pool_shape(l.attributes, *l.dims(l.node.input(0)));
  if (!shape || shape->window.rank() != 2) return l.refuse("its window has no recipe");
  const Window2d window = window_of(shape->window);
  if (window.top + window.bottom + window.left + window.right > 0 || shape->window.ceil_mode)
    return l.refuse("the mean of a window with padding has no proven recipe");
  return lower_mean(l, window);
}
bool lower_global_mean(Lowering& l) {
  if (!is_half_result(l) || !set_cubes(l, Precision::Half)) return false;
  const Cube &in = l.result.input.cube, &out = l.result.output.cube;
  if (out.height != 1 || out.width != 1 || out.channels != in.channels)
    return l.refuse("other axes than rows and columns have no recipe");
  return lower_mean(l, {.height = in.height, .width = in.width});
}
}  // namespace

Lower half_lowering(std::string_view op) {
  static const std::map<std::string_view, Lower> table{
      {"Conv", lower_conv},
      {"MatMul", lower_matmul},
      {"Gemm", lower_gemm},
      {"Add", lower_binary},
      {"Sub", lower_binary},
      {"Mul", lower_binary},
      {"Max", lower_binary},
      {"Min", lower_binary},
      {"MaxPool", lower_max_pool},
      {"AveragePool", lower_average_pool},
      {"GlobalAveragePool", lower_global_mean},
      {"ReduceMean", lower_global_mean},
  };
  const auto at = table.find(op);
  return at == table.end() ? nullptr : at->second;
}

}  // namespace orknn::silicon
