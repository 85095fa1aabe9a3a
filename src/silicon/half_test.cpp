// float16: recipes on the chip model against plain arithmetic, and whole programs.
#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "conv_bench.h"
#include "ops/eval.h"
#include "silicon/example_layers.h"
#include "silicon/lint.h"
#include "silicon/lower.h"
#include "silicon/network.h"
#include "silicon/recipe.h"
#include "silicon/sums.h"
#include "small_network.h"

namespace orknn::silicon {
namespace {
using namespace examples;

ConvLayer half(ConvLayer l, Precision out = Precision::Half) {
  l.in = Precision::Half;
  l.out = out;
  l.in_zero_point = l.out_zero_point = 0;
  return l;
}
ConvLayer with_ceiling(ConvLayer l, float ceiling) {
  l.relu = true;
  l.ceiling = std::bit_cast<int32_t>(ceiling);
  return l;
}
ConvLayer combined(ConvLayer l, ElementWise::Operation operation) {
  l.element_wise = ElementWise{.operation = operation};
  return l;
}

// A float16 layer with small numbers, so that every sum is exact.
struct HalfBench : ConvBench<uint16_t> {
  explicit HalfBench(ConvLayer l) : ConvBench(std::move(l)) {
    std::mt19937 engine(3);
    const auto numbers = [&](int64_t count, double unit) {
      std::vector<uint16_t> v(static_cast<size_t>(count));
      for (uint16_t& bits : v) bits = float_to_half(static_cast<float>((static_cast<double>(engine() % 33) - 16) * unit));
      return v;
    };
    input = numbers(input_count(), 0.25);
    weights = numbers(weight_count(), 0.125);
    operand = numbers(output_count(), 0.5);
    for (int64_t k = 0; k < layer.kernels; ++k)
      bias.push_back(std::bit_cast<int32_t>((static_cast<float>(engine() % 65) - 32) * 0.0625f));
  }
  double sum(int64_t y, int64_t x, int64_t k) const {
    const Window2d& w = layer.window;
    double total = 0;
    for (int64_t i = 0; i < w.height * w.width; ++i) {
      const int64_t iy = y * w.stride_y - w.top + i / w.width * w.dilation_y,
                    ix = x * w.stride_x - w.left + i % w.width * w.dilation_x;
      if (iy < 0 || ix < 0 || iy >= layer.height || ix >= layer.width) continue;
      for (int64_t c = layer.depthwise ? k : 0; c < (layer.depthwise ? k + 1 : layer.channels); ++c) {
        const int64_t at_weight = layer.depthwise ? i * layer.channels + k : (k * w.height * w.width + i) * layer.channels + c;
        total += half_to_float(input[static_cast<size_t>((iy * layer.width + ix) * layer.channels + c)]) *
                 half_to_float(weights[static_cast<size_t>(at_weight)]);
      }
    }
    return total;
  }
  double expected(int64_t y, int64_t x, int64_t k) const {
    double v = sum(y, x, k);
    if (layer.has_bias) v += std::bit_cast<float>(bias[static_cast<size_t>(k)]);
    const auto relu = [&] {
      if (layer.relu) v = std::max(v, 0.0);
      if (layer.ceiling) v = std::min<double>(v, std::bit_cast<float>(static_cast<int32_t>(*layer.ceiling)));
    };
    if (layer.relu_first) relu();
    if (layer.element_wise) {
      const double b = half_to_float(operand[static_cast<size_t>((y * layer.out_width + x) * layer.kernels + k)]);
      using enum ElementWise::Operation;
      switch (layer.element_wise->operation) {
        case Add: v += b; break;
        case Max: v = std::max(v, b); break;
        case Min: v = std::min(v, b); break;
        case Multiply: v *= b; break;
      }
    }
    if (!layer.relu_first) relu();
    return layer.out == Precision::Half ? half_to_float(float_to_half(static_cast<float>(v))) : v;
  }
  double output(int64_t y, int64_t x, int64_t k) const {
    const int64_t lanes = lanes_of(layer.out), pixels = layer.out_height * layer.out_width;
    const std::byte* from =
        output_cube.data() + (k / lanes * pixels + y * layer.out_width + x) * kAtomBytes + k % lanes * bytes_of(layer.out);
    if (layer.out == Precision::Float) {
      float v;
      std::memcpy(&v, from, sizeof v);
      return v;
    }
    uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return half_to_float(bits);
  }
};

TEST(HalfRecipes, GiveWhatPlainArithmeticGives) {
  using enum ElementWise::Operation;
  ConvLayer relu_then_add = combined(with_ceiling(half(conv(7, 9, 40, 50, kSame3)), 6), Add);
  relu_then_add.relu_first = true;
  ConvLayer plain = half(conv(5, 7, 19, 21));
  plain.has_bias = false;
  const std::pair<const char*, ConvLayer> cases[]{
      {"no bias, odd channels", plain},
      {"bias", half(conv(6, 23, 16, 32, kSame3))},
      {"ReLU with a ceiling", with_ceiling(half(conv(12, 9, 48, 33, kSame3)), 6)},
      {"float32 results", half(conv(9, 9, 24, 20, kSame3), Precision::Float)},
      {"depthwise", with_ceiling(half(depthwise(conv(9, 14, 72, 72, kSame3))), 3)},
      {"dilation",
       half(conv(11, 13, 16, 16, {.height = 3, .width = 3, .dilation_y = 2, .dilation_x = 3, .top = 2, .bottom = 2}))},
      {"bands", half(conv(61, 150, 96, 24, kSame3))},
      {"fully connected", half(conv(1, 1, 130, 45))},
      {"addition, ReLU after it", combined(with_ceiling(half(conv(7, 9, 40, 50, kSame3)), 5), Add)},
      {"addition after ReLU", relu_then_add},
      {"product", combined(half(conv(7, 9, 24, 24)), Multiply)},
      {"maximum", combined(half(conv(7, 9, 24, 24)), Max)},
      {"minimum", combined(half(conv(7, 9, 24, 24)), Min)},
  };
  for (const auto& [name, layer] : cases) {
    HalfBench bench(layer);
    const Status placed = bench.place();
    ASSERT_TRUE(placed) << name << ": " << placed.to_string();
    const Status ran = run_streams(bench.streams, bench.memory, ThreadPool::shared());
    ASSERT_TRUE(ran) << name << ": " << ran.to_string();
    for (int64_t y = 0; y < layer.out_height; ++y)
      for (int64_t x = 0; x < layer.out_width; ++x)
        for (int64_t k = 0; k < layer.kernels; ++k)
          ASSERT_EQ(bench.output(y, x, k), bench.expected(y, x, k)) << name << " at " << y << " " << x << " " << k;
  }
}

TEST(HalfRecipes, SingleBitChangesAreNoticed) {
  ConvLayer layer = combined(with_ceiling(half(conv(4, 6, 20, 36)), 4), ElementWise::Operation::Add);
  size_t changes = 0, noticed = 0;
  for (const ConvLayer& l : {layer, half(depthwise(conv(5, 6, 20, 20, kSame3)))}) {
    HalfBench bench(l);
    ASSERT_TRUE(bench.place());
    ASSERT_EQ(bench.streams.size(), 1u);
    ASSERT_TRUE(run_streams(bench.streams, bench.memory, ThreadPool::shared()));
    const std::vector<std::byte> right = bench.output_cube, operands = bench.packed.weights, bias = bench.packed.bias,
                                 input = bench.input_cube, second = bench.operand_cube;
    for (uint64_t& word : bench.streams[0])
      for (int bit = 0; bit < 64; ++bit) {
        word ^= uint64_t{1} << bit;
        std::ranges::fill(bench.output_cube, std::byte{0});
        std::ranges::copy(operands, bench.packed.weights.begin());  // a changed address may have written over them
        std::ranges::copy(bias, bench.packed.bias.begin());
        std::ranges::copy(input, bench.input_cube.begin());
        std::ranges::copy(second, bench.operand_cube.begin());
        noticed += !run_streams(bench.streams, bench.memory, ThreadPool::shared()) || bench.output_cube != right;
        ++changes;
        word ^= uint64_t{1} << bit;
      }
  }
  EXPECT_GE(noticed * 100, changes * 90) << noticed << " of " << changes;
  RecordProperty("noticed", static_cast<int>(noticed));
  RecordProperty("changes", static_cast<int>(changes));
}

// Products of 32 channels, exact before they are rounded: sums that float32 would lose.
TEST(HalfSums, AreExactWithinASlice) {
  const int64_t tap = 0;
  std::vector<float> pixel(64, 0.0f), weights(64 * kHalfLanes, 0.0f);
  pixel[0] = 32768;
  pixel[1] = 0x1p-24f;
  pixel[2] = 32768;
  for (int64_t k = 0; k < kHalfLanes; ++k) {
    weights[static_cast<size_t>(k)] = 32768;
    weights[static_cast<size_t>(kHalfLanes + k)] = 0x1p-24f;
    weights[static_cast<size_t>(2 * kHalfLanes + k)] = -32768;
  }
  float sums[kHalfLanes];
  half_window({pixel.data(), std::span(&tap, 1), 64, weights.data()}, sums);
  for (const float s : sums) EXPECT_EQ(s, 0x1p-48f);
  pixel[3] = INFINITY;
  weights[3 * kHalfLanes] = 2;
  half_window({pixel.data(), std::span(&tap, 1), 64, weights.data()}, sums);
  EXPECT_EQ(sums[0], INFINITY);
}

// --- programs

// x [1,19,12,10] -> Conv with bias and ReLU6 -> depthwise -> Conv + x2 (added), ReLU -> join of halves -> slices -> products,
// means and what the CPU has to finish.
class HalfNetwork {
 public:
  HalfNetwork() {
    ir::Graph& g = program.graph;
    const ir::TensorId x = tensor("x", {1, 19, 12, 10});
    const ir::TensorId a = conv("first", x, 32, 3, 1, {.op = "Clip", .attributes = limits(0, 6)});
    const ir::TensorId d = conv("depthwise", a, 32, 3, 32, {.op = "Relu"});
    const ir::TensorId r = conv("residual", d, 32, 1, 1, {.op = "Add", .operand = 3}, a);
    const ir::TensorId s = conv("swish", r, 32, 1, 1, {.op = "HardSwish"});
    const ir::TensorId joined = tensor("joined", {1, 64, 12, 10});
    ir::Attributes axis;
    axis.set("axis", int64_t{1});
    g.add_node({.op = "Concat", .name = "join", .inputs = {r, s}, .outputs = {joined}, .attributes = axis});
    const ir::TensorId part = tensor("part", {1, 32, 12, 10});
    const auto ints = [&](const char* name, int64_t v) { return g.add_constant(name, ir::TensorData::vector(std::span(&v, 1))); };
    g.add_node({.op = "Slice",
                .name = "slice",
                .inputs = {joined, ints("starts", 16), ints("ends", 48), ints("axes", 1)},
                .outputs = {part}});
    const ir::TensorId after = conv("after", part, 32, 1, 1, {.op = "Relu"});
    const ir::TensorId product = tensor("product", {1, 32, 12, 10});
    g.add_node({.op = "Mul", .name = "product", .inputs = {after, a}, .outputs = {product}});
    const ir::TensorId difference = tensor("difference", {1, 32, 12, 10});
    g.add_node({.op = "Sub", .name = "difference", .inputs = {product, r}, .outputs = {difference}});
    const ir::TensorId pooled = tensor("pooled", {1, 32, 6, 5});
    ir::Attributes window;
    window.set("kernel_shape", std::vector<int64_t>{2, 2});
    window.set("strides", std::vector<int64_t>{2, 2});
    g.add_node({.op = "MaxPool", .name = "pool", .inputs = {difference}, .outputs = {pooled}, .attributes = window});
    const ir::TensorId mean = tensor("mean", {1, 32, 1, 1});
    g.add_node({.op = "GlobalAveragePool", .name = "mean", .inputs = {pooled}, .outputs = {mean}});
    const ir::TensorId grouped = conv("grouped", mean, 40, 1, 4, {.op = "Relu"});
    const ir::TensorId y = tensor("y", {1, 40, 1, 1});
    g.add_node({.op = "Tanh", .name = "cpu", .inputs = {grouped}, .outputs = {y}});
    make_tasks(program, x, y);
    input = numbers({1, 19, 12, 10}, 77, 2);
  }
  size_t step(std::string_view name) const {
    for (size_t i = 0; i < program.tasks.size(); ++i)
      if (program.graph.node(program.tasks[i].node).name == name) return i;
    return SIZE_MAX;
  }

  format::Program program;
  ir::TensorData input;

 private:
  static ir::Attributes limits(double low, double high) {
    ir::Attributes a;
    a.set("min", low);
    a.set("max", high);
    return a;
  }
  static ir::TensorData numbers(ir::Dims dims, uint32_t seed, double range) {
    std::mt19937 engine(seed);
    ir::TensorData data = ir::TensorData::allocate(DType::Float16, std::move(dims));
    auto* to = static_cast<uint16_t*>(data.mutable_data());
    for (int64_t i = 0; i < data.count(); ++i)
      to[i] = float_to_half(static_cast<float>((static_cast<double>(engine() % 20001) / 10000 - 1) * range));
    return data;
  }
  ir::TensorId tensor(const char* name, const ir::Dims& dims) {
    return program.graph.add_tensor(name, DType::Float16, ir::to_shape(dims));
  }
  ir::TensorId conv(const std::string& name, ir::TensorId x, int64_t kernels, int64_t kernel, int64_t groups, ir::TailStep step,
                    ir::TensorId operand = {}) {
    ir::Graph& g = program.graph;
    ir::Dims out = *ir::to_dims(*g.tensor(x).shape);
    const int64_t channels = out[1] / groups;
    out[1] = kernels;
    const auto seed = static_cast<uint32_t>(g.tensor_count());
    const ir::TensorId w = g.add_constant(name + ".w", numbers({kernels, channels, kernel, kernel}, seed, 0.3)),
                       b = g.add_constant(name + ".b", numbers({kernels}, seed + 1, 1));
    ir::Attributes a;
    a.set("pads", std::vector<int64_t>(4, kernel / 2));
    a.set("group", groups);
    const ir::TensorId y = g.add_tensor(name + ".y", DType::Float16, ir::to_shape(out));
    ir::Node n{.op = "Conv", .name = name, .inputs = {x, w, b}, .outputs = {y}, .attributes = a};
    if (operand) n.inputs.push_back(operand);
    n.tail = {std::move(step)};
    if (operand) n.tail.push_back({.op = "Relu"});
    g.add_node(std::move(n));
    return y;
  }
};

// The reader of a second tensor is programmed with whole groups of channels; nothing else wants so much of this one.
TEST(HalfNetworks, SecondTensorsHaveRoomForWhatIsRead) {
  format::Program program;
  ir::Graph& g = program.graph;
  const ir::Dims dims{1, 20, 12, 10};
  const ir::TensorId x = g.add_tensor("x", DType::Float16, ir::to_shape(dims)),
                     pooled = g.add_tensor("pooled", DType::Float16, ir::to_shape(dims)),
                     y = g.add_tensor("y", DType::Float16, ir::to_shape(dims));
  ir::Attributes window;
  window.set("kernel_shape", std::vector<int64_t>{3, 3});
  window.set("pads", std::vector<int64_t>(4, 1));
  g.add_node({.op = "MaxPool", .name = "pool", .inputs = {x}, .outputs = {pooled}, .attributes = window});
  g.add_node({.op = "Add", .name = "add", .inputs = {pooled, x}, .outputs = {y}});
  make_tasks(program, x, y);
  auto image = make_image(program, ops::builtin_ops());
  ASSERT_TRUE(image) << image.status().to_string();
  for (const ImageStep& s : image->steps) EXPECT_EQ(s.kind, ImageStep::Kind::Streams) << s.reason;
  const auto network = Network::create(program, ops::builtin_ops(), std::move(*image), make_chip_model_unit());
  EXPECT_TRUE(network) << network.status().to_string();
}

TEST(HalfNetworks, RunAsStreams) {
  const HalfNetwork small;
  auto image = make_image(small.program, ops::builtin_ops());
  ASSERT_TRUE(image) << image.status().to_string();
  for (const char* name : {"first", "depthwise", "residual", "after", "product", "difference", "pool", "mean", "grouped"}) {
    const ImageStep& s = image->steps[small.step(name)];
    EXPECT_EQ(s.kind, ImageStep::Kind::Streams) << name << ": " << s.reason;
  }
  EXPECT_EQ(image->steps[small.step("swish")].kind, ImageStep::Kind::Sums);
  EXPECT_EQ(image->steps[small.step("cpu")].kind, ImageStep::Kind::Cpu);
  EXPECT_EQ(image->steps[small.step("slice")].kind, ImageStep::Kind::Places) << image->steps[small.step("slice")].reason;
  const format::StoredStreams stored = encode_image(*image, small.program, ImageParts::Streams);
  auto again = decode_image(stored.bytes, stored.keeper, small.program);
  ASSERT_TRUE(again) << again.status().to_string();

  // Every layer alone, on the inputs that the reference kernels gave it: at most the last bit of a float16 number.
  std::vector<ir::TensorData> values(small.program.graph.tensor_count());
  Network::Hooks hooks;
  size_t seen = 0;
  hooks.observe = [&](ir::TensorId t, const ir::TensorView& v) { values[static_cast<size_t>(t.index)] = convert(v, v.dtype); };
  auto network = Network::create(small.program, ops::builtin_ops(), std::move(*again), make_chip_model_unit());
  ASSERT_TRUE(network) << network.status().to_string();
  const ir::TensorView input = small.input.view();
  const Status ran = (*network)->run(std::span(&input, 1), {}, hooks);
  ASSERT_TRUE(ran) << ran.to_string();
  for (const format::Task& task : small.program.tasks) {
    const ir::Node& n = small.program.graph.node(task.node);
    std::vector<ir::TensorData> inputs;
    for (const ir::TensorId t : n.inputs) {
      const ir::TensorData* constant = small.program.graph.constant(t);
      inputs.push_back(constant ? *constant : values[static_cast<size_t>(t.index)]);
    }
    const auto right = ops::eval_node(n, ops::builtin_ops(), inputs, ThreadPool::shared());
    ASSERT_TRUE(right) << n.name << ": " << right.status().to_string();
    const std::vector<double> a = ir::to_doubles((*right)[0].view()),
                              b = ir::to_doubles(values[static_cast<size_t>(n.output().index)].view());
    for (size_t i = 0; i < a.size(); ++i, ++seen)
      ASSERT_NEAR(a[i], b[i], std::max(std::abs(a[i]), 0x1p-10) * 0x1p-9) << n.name << " at " << i;
  }
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace orknn::silicon
