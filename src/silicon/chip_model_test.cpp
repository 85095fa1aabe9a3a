// Recipes executed by the chip model against plain integer loops, and streams with single bits changed.
#include "silicon/chip_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "conv_bench.h"
#include "ops/support/requantize.h"
#include "silicon/example_layers.h"
#include "silicon/lint.h"
#include "silicon/recipe.h"

namespace orknn::silicon {
namespace {
using namespace examples;

struct Random {
  std::mt19937 engine{7};
  int64_t between(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(engine); }
  std::vector<int8_t> bytes(int64_t count, int64_t least = -128, int64_t most = 127) {
    std::vector<int8_t> v(static_cast<size_t>(count));
    for (int8_t& b : v) b = static_cast<int8_t>(between(least, most));
    return v;
  }
};

// An int8 layer with random operands.
struct Bench : ConvBench<int8_t> {
  explicit Bench(ConvLayer l, uint32_t seed = 7) : ConvBench(std::move(l)) {
    Random random{std::mt19937(seed)};
    input = random.bytes(input_count());
    weights = random.bytes(weight_count());
    for (int64_t k = 0; k < layer.kernels; ++k) bias.push_back(static_cast<int32_t>(random.between(-5000, 5000)));
    if (layer.element_wise) operand = random.bytes(output_count());
  }

  std::vector<int8_t> output() const {
    std::vector<int8_t> plain(static_cast<size_t>(output_count()));
    unpack_cube(layer.output(), TensorOrder::Hwc, output_cube, plain.data());
    return plain;
  }

  int64_t sum(int64_t y, int64_t x, int64_t k) const {
    const Window2d& w = layer.window;
    int64_t total = bias[static_cast<size_t>(k)];
    for (int64_t ky = 0; ky < w.height; ++ky)
      for (int64_t kx = 0; kx < w.width; ++kx) {
        const int64_t iy = y * w.stride_y - w.top + ky * w.dilation_y, ix = x * w.stride_x - w.left + kx * w.dilation_x;
        if (iy < 0 || ix < 0 || iy >= layer.height || ix >= layer.width) continue;
        for (int64_t c = 0; c < (layer.depthwise ? 1 : layer.channels); ++c) {
          const int64_t channel = layer.depthwise ? k : c, tap = ky * w.width + kx;
          const int64_t at_weight =
              layer.depthwise ? tap * layer.channels + k : (k * w.height * w.width + tap) * layer.channels + c;
          total += (input[static_cast<size_t>((iy * layer.width + ix) * layer.channels + channel)] - layer.in_zero_point) *
                   (weights[static_cast<size_t>(at_weight)] - layer.weight_zero_point);
        }
      }
    return total;
  }
  int8_t expected(int64_t y, int64_t x, int64_t k) const {
    int64_t v = sum(y, x, k);
    if (!layer.channel_multipliers.empty())
      v = ops::round_shift(v * layer.channel_multipliers[static_cast<size_t>(k)], layer.channel_shift);
    if (layer.slope && v < 0) v = ops::round_shift(v * layer.slope->multiplier, layer.slope->shift);
    if (layer.element_wise) {
      const int64_t b = operand[static_cast<size_t>((y * layer.out_width + x) * layer.kernels + k)];
      v += ops::round_shift((b - layer.element_wise->zero_point) * layer.element_wise->multiplier, layer.element_wise->shift);
    }
    if (layer.relu) v = std::max<int64_t>(v, 0);
    if (layer.ceiling) v = std::min(v, *layer.ceiling);
    return static_cast<int8_t>(
        ops::saturate(ops::round_shift(v * layer.out_multiplier, layer.out_shift) + layer.out_zero_point, 127));
  }
  std::vector<int8_t> expected() const {
    std::vector<int8_t> all;
    for (int64_t y = 0; y < layer.out_height; ++y)
      for (int64_t x = 0; x < layer.out_width; ++x)
        for (int64_t k = 0; k < layer.kernels; ++k) all.push_back(expected(y, x, k));
    return all;
  }
};

ConvLayer with_channel_scales(ConvLayer l) {
  for (int64_t k = 0; k < l.kernels; ++k) l.channel_multipliers.push_back(static_cast<int32_t>(3000 + 411 * k % 29000));
  l.channel_shift = 14;
  return l;
}

struct Case {
  const char* name;
  ConvLayer layer;
  bool in_bands = false;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"odd channel counts", conv(5, 7, 19, 21)});
  all.push_back({"wide picture", conv(6, 23, 16, 32, kSame3)});
  all.push_back({"high picture", conv(23, 6, 48, 40, kSame3)});
  all.push_back({"padding on two sides",
                 conv(12, 9, 24, 33, {.height = 3, .width = 3, .stride_y = 2, .stride_x = 2, .bottom = 1, .right = 1})});
  all.push_back({"other stride per axis",
                 conv(12, 9, 16, 8, {.height = 2, .width = 5, .stride_y = 3, .stride_x = 1, .top = 1, .left = 2, .right = 2})});
  all.push_back(
      {"dilation",
       conv(11, 13, 16, 16,
            {.height = 3, .width = 3, .dilation_y = 2, .dilation_x = 3, .top = 2, .bottom = 2, .left = 3, .right = 3})});
  all.push_back({"fully connected", conv(1, 1, 130, 45)});
  all.push_back({"rows of a matrix", conv(37, 1, 64, 20)});
  all.push_back({"rows of a matrix in bands", conv(1000, 1, 512, 32), true});
  all.push_back({"depthwise", depthwise(conv(9, 14, 72, 72, kSame3))});
  all.push_back({"depthwise, stride 2",
                 depthwise(conv(9, 14, 33, 33,
                                {.height = 3, .width = 3, .stride_y = 2, .stride_x = 2, .top = 1, .bottom = 1, .right = 1}))});
  all.push_back({"bands", conv(61, 150, 96, 24, kSame3), true});
  all.push_back(
      {"depthwise bands",
       depthwise(conv(61, 200, 64, 64,
                      {.height = 5, .width = 5, .stride_y = 2, .stride_x = 2, .top = 2, .bottom = 2, .left = 2, .right = 2})),
       true});
  all.push_back({"scales per channel", with_channel_scales(conv(7, 9, 40, 50, kSame3))});
  all.push_back({"addition", with_operand(conv(7, 9, 40, 50, kSame3))});
  all.push_back({"addition in bands", with_operand(conv(61, 150, 96, 40)), true});
  Case relu{"addition, ReLU with a ceiling", with_operand(conv(7, 9, 40, 50))};
  relu.layer.relu = true;
  relu.layer.ceiling = 12345;
  all.push_back(relu);
  Case six{"ReLU with a ceiling, scales per channel", with_channel_scales(conv(7, 9, 40, 50))};
  six.layer.relu = true;
  six.layer.ceiling = 9000;
  all.push_back(six);
  Case leaky{"slope", conv(7, 9, 40, 50)};
  leaky.layer.slope = Slope{.multiplier = 3277, .shift = 15};
  all.push_back(leaky);
  Case zero{"weights with a zero point", conv(7, 9, 40, 50, kSame3)};
  zero.layer.weight_zero_point = 5;
  all.push_back(zero);
  Case zero_depthwise{"depthwise weights with a zero point", depthwise(conv(7, 9, 40, 40, kSame3))};
  zero_depthwise.layer.weight_zero_point = -3;
  all.push_back(zero_depthwise);
  Case short_groups{"short groups", conv(7, 9, 40, 51, kSame3)};
  short_groups.layer.grouping = Grouping::Short;
  all.push_back(short_groups);
  return all;
}

TEST(ChipModel, BiasesThatLeave32BitsAreRefused) {
  for (const int32_t bias : {INT32_MAX, INT32_MIN}) {
    ConvLayer l = conv(4, 4, 16, 16);
    l.in_zero_point = -100;
    const std::vector<int8_t> weights(16 * 16, bias > 0 ? int8_t{127} : int8_t{-127});
    const std::vector<int32_t> biases(16, bias), smaller(16, bias / 2);
    const auto packed = pack_operands(l, weights.data(), biases);
    ASSERT_FALSE(packed);
    EXPECT_EQ(packed.status().code(), Code::Unsupported);
    const int64_t exact = bias + int64_t{100} * 16 * weights[0];
    EXPECT_NE(packed.status().to_string().find(std::to_string(exact)), std::string::npos) << packed.status().to_string();
    EXPECT_TRUE(pack_operands(l, weights.data(), smaller));
  }
}

// Readers are programmed with whole groups of channels.
TEST(ChipModel, ReadersStayInsideOfTheirBuffers) {
  Bench bench(with_operand(conv(7, 9, 40, 40)));
  ASSERT_TRUE(bench.place());
  const auto task = decode_task(bench.streams[0]);
  ASSERT_TRUE(task);
  EXPECT_TRUE(lint(*task, bench.memory).empty());
  const auto with_sizes = [&](size_t operand, size_t bias) {
    DeviceMemory memory;
    EXPECT_TRUE(memory.map("input", bench.at.input, bench.input_cube));
    EXPECT_TRUE(memory.map("weights", bench.at.weights, bench.packed.weights));
    EXPECT_TRUE(memory.map("bias", bench.at.bias, std::span(bench.packed.bias).first(bias)));
    EXPECT_TRUE(memory.map("output", bench.at.output, bench.output_cube));
    EXPECT_TRUE(memory.map("operand", bench.at.operand, std::span(bench.operand_cube).first(operand)));
    return lint(*task, memory);
  };
  constexpr size_t kPlane = 7 * 9 * 16;
  EXPECT_TRUE(with_sizes(4 * kPlane, size_t{64} * 4).empty());
  EXPECT_FALSE(with_sizes(3 * kPlane, size_t{64} * 4).empty());
  EXPECT_FALSE(with_sizes(4 * kPlane, size_t{40} * 4).empty());
}

TEST(ChipModel, ExecutesTheRecipesAsPlainArithmetic) {
  for (const Case& c : cases()) {
    Bench bench(c.layer);
    const Status placed = bench.place();
    ASSERT_TRUE(placed) << c.name << ": " << placed.to_string();
    const Status ran = run_streams(bench.streams, bench.memory, ThreadPool::shared());
    ASSERT_TRUE(ran) << c.name << ": " << ran.to_string();
    EXPECT_EQ(bench.streams.size() > 1, c.in_bands) << c.name;
    EXPECT_EQ(bench.output(), bench.expected()) << c.name;
  }
}

TEST(ChipModel, RefusesWhatTheUnitDoesNotHave) {
  const auto refusal = [](const ConvLayer& l) {
    const auto streams = conv_streams(l, {0x10000, 0x20000, 0x30000, 0x40000, 0x50000});
    return streams ? std::string() : streams.status().to_string();
  };
  EXPECT_NE(refusal(conv(40, 40, 8, 8, {.height = 33, .width = 33})).find("kernel"), std::string::npos);
  EXPECT_NE(refusal(conv(40, 40, 8, 8, {.stride_y = 8, .stride_x = 8})).find("stride"), std::string::npos);
  EXPECT_NE(refusal(conv(4, 3000, 8, 8)).find("width"), std::string::npos);
  EXPECT_NE(refusal(conv(9, 2000, 256, 8, {.height = 9})).find("convolution buffer"), std::string::npos);
  EXPECT_NE(refusal(with_operand(conv(3, 3, 16, 16))).find("12 pixels"), std::string::npos);
  EXPECT_NE(refusal(with_operand(depthwise(conv(9, 9, 16, 16)))).find("depthwise"), std::string::npos);
}

int8_t mean_of(int64_t sum, int64_t taps, bool even) { return static_cast<int8_t>(ops::window_mean(sum, taps, even)); }

TEST(ChipModel, PoolsAsPlainArithmetic) {
  using Method = PoolTask::Method;
  struct PoolCase {
    Method method;
    int64_t height, width, channels;
    Window2d window;
  };
  const PoolCase pools[] = {
      {Method::Max,
       9,
       12,
       20,
       {.height = 3, .width = 3, .stride_y = 2, .stride_x = 2, .top = 1, .bottom = 1, .left = 1, .right = 1}},
      {Method::Max, 10, 10, 40, {.height = 5, .width = 5, .top = 2, .bottom = 2, .left = 2, .right = 2}},
      {Method::Average, 7, 5, 33, {.height = 7, .width = 5}},
      {Method::Average, 9, 8, 16, {.height = 2, .width = 3, .stride_y = 2, .stride_x = 3}},
      {Method::Average, 8, 8, 16, {.height = 2, .width = 2, .stride_y = 2, .stride_x = 2}}};
  for (const PoolCase& c : pools) {
    const Window2d& w = c.window;
    PoolLayer l{.method = c.method,
                .height = c.height,
                .width = c.width,
                .channels = c.channels,
                .out_height = (c.height + w.top + w.bottom - w.height) / w.stride_y + 1,
                .out_width = (c.width + w.left + w.right - w.width) / w.stride_x + 1,
                .window = w};
    Random random;
    const std::vector<int8_t> input = random.bytes(c.height * c.width * c.channels);
    std::vector<std::byte> in(static_cast<size_t>(l.input().bytes())), out(static_cast<size_t>(l.output().bytes()));
    pack_cube(l.input(), TensorOrder::Hwc, input.data(), in, 0);
    DeviceMemory memory;
    ASSERT_TRUE(memory.map("in", 0x10000, in));
    ASSERT_TRUE(memory.map("out", 0x200000, out));
    const auto stream = pool_stream(l, 0x10000, 0x200000);
    ASSERT_TRUE(stream) << stream.status().to_string();
    const Status ran = run_streams(std::span(&*stream, 1), memory, ThreadPool::shared());
    ASSERT_TRUE(ran) << ran.to_string();
    std::vector<int8_t> plain(static_cast<size_t>(l.out_height * l.out_width * l.channels));
    unpack_cube(l.output(), TensorOrder::Hwc, out, plain.data());
    for (int64_t y = 0; y < l.out_height; ++y)
      for (int64_t x = 0; x < l.out_width; ++x)
        for (int64_t k = 0; k < l.channels; ++k) {
          int64_t sum = 0, best = -128;
          for (int64_t i = 0; i < w.height * w.width; ++i) {
            const int64_t iy = y * w.stride_y - w.top + i / w.width, ix = x * w.stride_x - w.left + i % w.width;
            if (iy < 0 || ix < 0 || iy >= c.height || ix >= c.width) continue;
            const int64_t v = input[static_cast<size_t>((iy * c.width + ix) * c.channels + k)];
            sum += v;
            best = std::max(best, v);
          }
          const bool even = w.height == 2 && w.width == 2;
          const int8_t expected = c.method == Method::Max ? static_cast<int8_t>(best) : mean_of(sum, w.height * w.width, even);
          ASSERT_EQ(plain[static_cast<size_t>((y * l.out_width + x) * l.channels + k)], expected);
        }
  }
}

// Every bit of every word, changed alone: the lint refuses the stream or the result is another one.
TEST(ChipModel, SingleBitChangesAreNoticed) {
  ConvLayer relu = with_channel_scales(conv(5, 6, 20, 36, kSame3));
  relu.relu = true;
  size_t changes = 0, noticed = 0;
  for (ConvLayer l :
       {conv(5, 6, 20, 36, kSame3), with_operand(conv(4, 6, 20, 36)), depthwise(conv(5, 6, 20, 20, kSame3)), relu}) {
    l.out_zero_point = 3;
    Bench bench(l);
    ASSERT_TRUE(bench.place());
    ASSERT_EQ(bench.streams.size(), 1u);
    ASSERT_TRUE(run_streams(bench.streams, bench.memory, ThreadPool::shared()));
    const std::vector<int8_t> right = bench.output();
    const ConvOperands operands = bench.packed;
    for (uint64_t& word : bench.streams[0])
      for (int bit = 0; bit < 64; ++bit) {
        word ^= uint64_t{1} << bit;
        std::ranges::fill(bench.output_cube, std::byte{0});
        pack_cube(l.input(), TensorOrder::Hwc, bench.input.data(), bench.input_cube, l.in_zero_point);
        std::ranges::copy(operands.weights, bench.packed.weights.begin());  // a changed address may have written over them
        std::ranges::copy(operands.bias, bench.packed.bias.begin());
        const Status ran = run_streams(bench.streams, bench.memory, ThreadPool::shared());
        noticed += !ran || bench.output() != right;
        ++changes;
        word ^= uint64_t{1} << bit;
      }
  }
  EXPECT_GE(noticed * 100, changes * 90) << noticed << " of " << changes;
  RecordProperty("noticed", static_cast<int>(noticed));
  RecordProperty("changes", static_cast<int>(changes));
}

}  // namespace
}  // namespace orknn::silicon
