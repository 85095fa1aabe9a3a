// From layers to command streams: which registers make the unit compute a convolution or a pooling.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "silicon/chip_model.h"
#include "silicon/geometry.h"
#include "silicon/weight_plan.h"

namespace orknn::silicon {

struct Window2d {
  int64_t height = 1, width = 1, stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;

  int64_t reach_y() const { return (height - 1) * dilation_y + 1; }
  int64_t reach_x() const { return (width - 1) * dilation_x + 1; }
};

// What is combined with the results before they are converted for the output. An int8 operand is brought to the accumulator's
// scale.
struct ElementWise {
  enum class Operation : uint8_t { Add, Max, Min, Multiply };
  Operation operation = Operation::Add;
  int64_t zero_point = 0, multiplier = 1, shift = 0;  // of an int8 operand
};

// A multiplication of negative values only: LeakyReLU on accumulators.
struct Slope {
  int64_t multiplier = 0, shift = 0;
};

struct ConvLayer {
  Precision in = Precision::Int8, out = Precision::Int8;  // Int8 to Int8 or Int32, Half to Half or Float
  bool depthwise = false;
  int64_t height = 0, width = 0, channels = 0;
  int64_t out_height = 0, out_width = 0, kernels = 0;  // depthwise: kernels = channels
  Window2d window;
  bool has_bias = true;
  int64_t in_zero_point = 0, weight_zero_point = 0, out_zero_point = 0;
  int64_t out_multiplier = 1, out_shift = 0;
  std::vector<int32_t> channel_multipliers;  // int16 each; none = one scale for all
  int64_t channel_shift = 0;
  std::optional<Slope> slope;
  bool relu = false;        // after the element-wise operation where there is one, unless:
  bool relu_first = false;  // before it
  // Of the ReLU, in accumulator units (after the channel's multiplier); bits of a float32 number for Half.
  std::optional<int64_t> ceiling;
  std::optional<ElementWise> element_wise;
  Grouping grouping = Grouping::Whole;
  // > 0: channels and kernels in blocks of so many, whole planes and groups of kernels; kernels read the channels of their own
  // block alone. A layer for each.
  int64_t block = 0;
  std::vector<ConvLayer> parts() const;  // the layers of its blocks; itself where it has none

  int64_t stored_channels() const;   // of the input as programmed
  int64_t written_channels() const;  // of the output as programmed; buffers of the output hold them all
  KernelShape kernel() const { return weights().stored(); }
  // For values [kernels][height][width][channels], depthwise [height][width][channels].
  WeightPlan weights() const;
  Cube input() const { return {height, width, channels, in}; }
  Cube output() const { return {out_height, out_width, kernels, out}; }
  // Bytes of the buffers that input and output need, and an operand as many as the output.
  int64_t input_bytes() const;
  int64_t output_bytes() const;
};

struct ConvAddresses {
  uint32_t input = 0, weights = 0, bias = 0, output = 0, operand = 0;
};

// `bias` is int32, empty for none; float bits for Half. Of an int8 layer the input's zero point is taken off, for which `weights`
// are needed: where `plan` says. Unsupported where that leaves 32 bits.
Result<std::vector<int32_t>> bias_without_zero_point(const ConvLayer& layer, std::span<const int32_t> bias,
                                                     const WeightPlan& plan, const void* weights);
// The same as the unit reads it.
Result<std::vector<std::byte>> pack_bias_of(const ConvLayer& layer, std::span<const int32_t> bias, const WeightPlan& plan,
                                            const void* weights);
struct ConvOperands {
  std::vector<std::byte> weights, bias;
};
// `weights` in the layer's input precision, in the order of ConvLayer::weights().
Result<ConvOperands> pack_operands(const ConvLayer& layer, const void* weights, std::span<const int32_t> bias);

// One stream per band of rows. Unsupported where the unit has no way.
Result<std::vector<Stream>> conv_streams(const ConvLayer& layer, const ConvAddresses& addresses);

// No task of the stream's layer relies on weights that an earlier one left in the convolution buffer.
void forget_kept_weights(Stream& stream);

struct PoolLayer {
  PoolTask::Method method = PoolTask::Method::Max;
  Precision precision = Precision::Int8;
  int64_t height = 0, width = 0, channels = 0, out_height = 0, out_width = 0;
  Window2d window;
  int64_t zero_point = 0;  // padding of an average

  Cube input() const { return {height, width, channels, precision}; }
  Cube output() const { return {out_height, out_width, channels, precision}; }
};
Result<Stream> pool_stream(const PoolLayer& layer, uint32_t input, uint32_t output);

// A function of one float16 number by the two tables of the DPU, on elements that lie one after the other.
struct TableLayer {
  int64_t elements = 0;                      // a multiple of 8
  std::vector<uint16_t> low, high;           // entries at indices -16384, -16352 ... 0 and 0, 32 ... 16384
  float index_scale = 0;                     // index of a number: times this, which is a float16 number
  int64_t offset = 0, exponent = 15;         // result: (entry + offset) / 2^exponent
  int64_t slope_scale = 0, slope_shift = 0;  // of the line below the first entry: scale / 2^shift per index
};
// One stream per piece that a task may have, each with its tables.
Result<std::vector<Stream>> table_streams(const TableLayer& layer, uint32_t input, uint32_t output);
// sigmoid, hard_sigmoid or tanh; nothing for other names.
std::optional<TableLayer> table_of_function(std::string_view function, int64_t elements);
// What such a table stands for.
double value_of_function(std::string_view function, double x);

// SCALE and SHIFT of a float32 factor the way the known generators split it: 15 bits, the lost ones counted as one more; an
// operand's scale without that.
struct ScaleShift {
  int64_t scale = 0, shift = 0;
};
ScaleShift split_output_scale(float factor);
ScaleShift split_operand_scale(float factor);

}  // namespace orknn::silicon
