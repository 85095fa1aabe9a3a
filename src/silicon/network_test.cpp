// Programs as images of streams, on the chip model: results, addressing, the stored form, damaged ones.
#include "silicon/network.h"

#include <gtest/gtest.h>

#include <cstring>

#include "silicon/lower.h"
#include "small_network.h"

namespace orknn::silicon {
namespace {

Image image_for(const format::Program& program) {
  auto image = make_image(program, ops::builtin_ops());
  EXPECT_TRUE(image) << image.status().to_string();
  return image ? std::move(*image) : Image();
}

std::vector<std::byte> bytes_of(const format::StoredStreams& stored) { return {stored.bytes.begin(), stored.bytes.end()}; }
std::vector<std::byte> stored_image(const format::Program& program, ImageParts parts) {
  return bytes_of(encode_image(image_for(program), program, parts));
}

std::vector<int8_t> run_network(const SmallNetwork& small, Image image, Network::Hooks hooks = {}) {
  auto network = Network::create(small.program, ops::builtin_ops(), std::move(image), make_chip_model_unit());
  EXPECT_TRUE(network) << network.status().to_string();
  if (!network) return {};
  const ir::TensorView input = small.input.view();
  const Status ran = (*network)->run(std::span(&input, 1), {}, hooks);
  EXPECT_TRUE(ran) << ran.to_string();
  const auto* bytes = (*network)->output(0).as<int8_t>();
  return {bytes, bytes + (*network)->output(0).count()};
}

size_t step_named(const format::Program& p, std::string_view name) {
  for (size_t i = 0; i < p.tasks.size(); ++i)
    if (p.graph.node(p.tasks[i].node).name == name) return i;
  return SIZE_MAX;
}

TEST(Network, StreamsGiveWhatTheReferenceKernelsGive) {
  const SmallNetwork small;
  EXPECT_EQ(run_network(small, image_for(small.program)), small.expected());
}

// x [1,16,6,8] -> a convolution -> y.
class SingleConv {
 public:
  SingleConv(int64_t kernel, int64_t padding, int32_t bias = 0, int64_t group = 1) {
    ir::Graph& g = program.graph;
    const int64_t grown = 2 * padding - kernel + 1;
    const ir::TensorId x = g.add_tensor("x", DType::Int8, ir::to_shape(ir::Dims{1, 16, 6, 8})),
                       y = g.add_tensor("y", DType::Int8, ir::to_shape(ir::Dims{1, 16, 6 + grown, 8 + grown}));
    const ir::TensorId w = g.add_constant("w", random_bytes({16, 16 / group, kernel, kernel}, 5)),
                       b = g.add_constant("b", ir::TensorData::from<int32_t>({16}, std::vector<int32_t>(16, bias)));
    ir::Attributes a;
    a.set("pads", std::vector<int64_t>(4, padding));
    a.set("group", group);
    a.set("x_zero_point", int64_t{-100});
    a.set("multiplier", std::vector<int64_t>{20000});
    a.set("shift", std::vector<int64_t>{bias == 0 ? 24 : 39});
    a.set("y_zero_point", int64_t{-4});
    a.set("low", int64_t{-128});
    a.set("high", int64_t{127});
    g.add_node({.op = "int:Conv", .name = "conv", .inputs = {x, w, b}, .outputs = {y}, .attributes = a});
    make_tasks(program, x, y);
    input = random_bytes({1, 16, 6, 8}, 9);
  }
  format::Program program;
  ir::TensorData input;
};

// Runs on the CPU, for a reason that says so.
void expect_on_cpu(const format::Program& program, const ir::TensorData& input, const char* reason) {
  Image image = image_for(program);
  ASSERT_EQ(image.steps.size(), 1u);
  EXPECT_EQ(image.steps[0].kind, ImageStep::Kind::Cpu);
  EXPECT_NE(image.steps[0].reason.find(reason), std::string::npos) << image.steps[0].reason;
  auto network = Network::create(program, ops::builtin_ops(), std::move(image), make_chip_model_unit());
  ASSERT_TRUE(network) << network.status().to_string();
  const ir::TensorView view = input.view();
  ASSERT_TRUE((*network)->run(std::span(&view, 1), {}, {}));
  const auto right = ops::eval_graph(program.graph, ops::builtin_ops(), std::span(&input, 1));
  ASSERT_TRUE(right) << right.status().to_string();
  EXPECT_EQ(std::memcmp((*network)->output(0).data, right->front().data(), right->front().bytes()), 0);
}

TEST(Network, LayersWithoutARecipeLeaveTheOthersRunning) {
  for (const auto& [kernel, padding, group] : {std::tuple(1, 1, 1), {3, 3, 1}, {2, 2, 16}}) {
    const SingleConv conv(kernel, padding, 0, group);
    expect_on_cpu(conv.program, conv.input, "the padding is as large as the kernel");
  }
  // Weights of a kernel add up to numbers of either sign.
  for (const int32_t bias : {INT32_MAX, INT32_MIN}) {
    const SingleConv conv(1, 0, bias);
    expect_on_cpu(conv.program, conv.input, "without the input's zero point exceeds 32 bits");
  }
}

// No recipe's limit says so: the lint does.
TEST(Network, WhatTheLintRefusesIsLeftToTheCpu) {
  format::Program program;
  ir::Graph& g = program.graph;
  const ir::TensorId x = g.add_tensor("x", DType::Int8, ir::to_shape(ir::Dims{1, 16, 6, 8})),
                     y = g.add_tensor("y", DType::Int8, ir::to_shape(ir::Dims{1, 16, 9, 11}));
  ir::Attributes a;
  a.set("kernel_shape", std::vector<int64_t>{2, 2});
  a.set("pads", std::vector<int64_t>(4, 2));
  g.add_node({.op = "MaxPool", .name = "pool", .inputs = {x}, .outputs = {y}, .attributes = a});
  make_tasks(program, x, y);
  expect_on_cpu(program, random_bytes({1, 16, 6, 8}, 9), "the chip would not execute this: padding is as large as the window");
}

TEST(Network, JoinsAndCutsByAddressing) {
  const SmallNetwork small;
  const Image image = image_for(small.program);
  for (const char* name : {"join", "split"}) {
    const ImageStep& s = image.steps[step_named(small.program, name)];
    EXPECT_EQ(s.kind, ImageStep::Kind::Places) << name << ": " << s.reason;
    EXPECT_EQ(s.tasks, 0u);
  }
  // The second convolution writes into the planes of the joined tensor.
  const PlacedCube& right = image.cubes[static_cast<size_t>(image.steps[step_named(small.program, "right")].output)];
  ASSERT_GE(right.inside, 0);
  const PlacedCube& joined = image.cubes[static_cast<size_t>(right.inside)];
  EXPECT_EQ(right.offset - joined.offset, static_cast<uint64_t>(2 * joined.cube.plane_bytes()));
}

TEST(Network, AveragesAreDepthwiseConvolutionsBecauseNotEveryDriverWaitsForPooling) {
  const SmallNetwork small;
  const Image image = image_for(small.program);
  const ImageStep& mean = image.steps[step_named(small.program, "mean")];
  ASSERT_EQ(mean.tasks, 1u);
  EXPECT_EQ(image.tasks[mean.first_task].enable, kEnableConvolution);
  EXPECT_EQ(image.tasks[image.steps[step_named(small.program, "pool")].first_task].enable, kEnablePooling);
}

TEST(Network, HooksSeeEveryTensorAndMayChangeIt) {
  const SmallNetwork small;
  size_t seen = 0, timed = 0;
  Network::Hooks hooks;
  hooks.observe = [&](ir::TensorId, const ir::TensorView&) { ++seen; };
  hooks.timing = [&](size_t, std::chrono::nanoseconds) { ++timed; };
  EXPECT_EQ(run_network(small, image_for(small.program), hooks), small.expected());
  EXPECT_EQ(seen, small.program.tasks.size() + 2);  // the input, one result each, two of the split
  EXPECT_EQ(timed, small.program.tasks.size());
  hooks.amend = [&](ir::TensorId t, const ir::MutableTensorView& v) {
    if (small.program.graph.tensor(t).name == "joined") std::memset(v.data, 0, v.bytes());
  };
  EXPECT_NE(run_network(small, image_for(small.program), hooks), small.expected());
}

TEST(Network, StoredImagesAreTheSameEveryTimeAndRunAlike) {
  const SmallNetwork small;
  for (const ImageParts parts : {ImageParts::Streams, ImageParts::AndWeights}) {
    const std::vector<std::byte> bytes = stored_image(small.program, parts);
    EXPECT_EQ(bytes, stored_image(small.program, parts));
    EXPECT_EQ(bytes.size() % 64, 0u);
    auto again = decode_image(bytes, nullptr, small.program);
    ASSERT_TRUE(again) << again.status().to_string();
    EXPECT_EQ(bytes_of(encode_image(*again, small.program, parts)), bytes);
    EXPECT_GE(again->operands.data(), bytes.data());  // mapped, not copied
    EXPECT_LE(again->operands.data() + again->operands.size(), bytes.data() + bytes.size());
    EXPECT_EQ(run_network(small, *again), small.expected());
  }
}

TEST(Network, PackedWeightsAreTheSameWhetherAFileHoldsThemOrNot) {
  const SmallNetwork small;
  const auto operands = [&](ImageParts parts) {
    const std::vector<std::byte> bytes = stored_image(small.program, parts);
    const auto image = decode_image(bytes, nullptr, small.program);
    EXPECT_TRUE(image) << image.status().to_string();
    std::vector<std::byte> filled(image ? image->operand_bytes : 0);
    if (image) fill_operands(*image, small.program, filled, ThreadPool::shared());
    return std::pair(filled, image ? image->operands.size() : 0);
  };
  const auto [made, held] = operands(ImageParts::Streams);
  const auto [stored, all] = operands(ImageParts::AndWeights);
  EXPECT_EQ(made, stored);
  EXPECT_LT(held, all);
  EXPECT_EQ(all, stored.size());
}

// An earlier version may hold streams that the lint refuses today.
TEST(Network, ImagesOfAnotherVersionAreMadeAnew) {
  const SmallNetwork small;
  const std::vector<std::byte> sound = stored_image(small.program, ImageParts::Streams);
  std::vector<std::byte> other = sound;
  other[0] = std::byte{3};
  EXPECT_EQ(decode_image(other, nullptr, small.program).status().code(), Code::Unsupported);
  format::Model model;
  model.programs.push_back(small.program);
  model.streams.push_back({other, nullptr});
  const auto image = image_of(model, 0, ops::builtin_ops());
  ASSERT_TRUE(image) << image.status().to_string();
  EXPECT_EQ(bytes_of(encode_image(*image, small.program, ImageParts::Streams)), sound);
}

TEST(Network, CutOffImagesAreRefused) {
  const SmallNetwork small;
  for (const ImageParts parts : {ImageParts::Streams, ImageParts::AndWeights}) {
    const std::vector<std::byte> bytes = stored_image(small.program, parts);
    for (size_t size = 0; size + 64 <= bytes.size(); size += 61) {
      const auto image = decode_image(std::span(bytes).first(size), nullptr, small.program);
      EXPECT_FALSE(image) << size;
    }
    const SmallNetwork other(16, 16);
    EXPECT_FALSE(decode_image(bytes, nullptr, other.program));
  }
}

// Whatever is written over a stored image: an error, or a run that stays inside of its buffers.
TEST(Network, DamagedImagesNeverLeaveTheirBuffers) {
  const SmallNetwork small(8, 8);
  const std::vector<std::byte> forms[] = {stored_image(small.program, ImageParts::Streams),
                                          stored_image(small.program, ImageParts::AndWeights)};
  std::mt19937 engine(3);
  size_t refused = 0;
  constexpr size_t kTrials = 800;
  for (size_t i = 0; i < kTrials; ++i) {
    std::vector<std::byte> damaged = forms[i % 2];
    damaged[engine() % damaged.size()] ^= static_cast<std::byte>(1 + engine() % 255);
    auto image = decode_image(damaged, nullptr, small.program);
    if (!image) {
      ++refused;
      continue;
    }
    auto network = Network::create(small.program, ops::builtin_ops(), std::move(*image), make_chip_model_unit());
    if (!network) {
      ++refused;
      continue;
    }
    const ir::TensorView input = small.input.view();
    refused += !(*network)->run(std::span(&input, 1), {});
  }
  EXPECT_GT(refused, 0u);
}

TEST(Network, LayersSayWhatTheyAre) {
  const SmallNetwork small;
  const Image image = image_for(small.program);
  const std::vector<NetworkLayer> layers = layers_of(image, small.program);
  const NetworkSummary s = summary_of(layers);
  EXPECT_EQ(s.tasks, image.tasks.size());
  EXPECT_EQ(s.stream_bytes, image.words.size() * 8);
  EXPECT_EQ(layers[step_named(small.program, "cpu")].reason, "Max has a recipe for float16, not for int8");
  EXPECT_EQ(layers[step_named(small.program, "cpu")].tasks, 0u);
}

TEST(Relocate, MovesAddressesAndForgetsKeptWeights) {
  const SmallNetwork small(600, 64);  // bands
  const Image image = image_for(small.program);
  ASSERT_GT(image.steps[0].tasks, 1u);
  const auto value_of = [](std::span<const uint64_t> words, uint16_t offset) {
    for (const uint64_t w : words)
      if (decode(w).offset == offset) return decode(w).value;
    return 0u;
  };
  const ImageTask& second = image.tasks[image.steps[0].first_task + 1];
  const std::vector<uint64_t> moved = relocate(image, 0x40000000, 0x50000000, false);
  const auto words = std::span<const uint64_t>(moved).subspan(second.first_word, second.words);
  EXPECT_EQ(value_of(words, reg::CNA_FEATURE_DATA_ADDR) - 0x40000000,
            value_of(image.words_of(second), reg::CNA_FEATURE_DATA_ADDR) - Image::kFeatureBase);
  EXPECT_EQ(value_of(words, reg::CNA_DCOMP_ADDR0) - 0x50000000,
            value_of(image.words_of(second), reg::CNA_DCOMP_ADDR0) - image.operand_base());
  EXPECT_EQ(value_of(words, reg::RDMA_SRC_BASE_ADDR), 0u);  // a reader that is off stays off
  const uint32_t reuse = field::CNA_CBUF_CON0_WEIGHT_REUSE.mask();
  EXPECT_NE(value_of(image.words_of(second), reg::CNA_CBUF_CON0) & reuse, 0u);
  EXPECT_EQ(value_of(words, reg::CNA_CBUF_CON0) & reuse, 0u);
}

TEST(Lower, SaysWhyALayerStaysOnTheCpu) {
  const SmallNetwork small(9, 4200);  // wider than the unit's input
  const auto reason = [&](std::string_view name) {
    const ir::Node& node = small.program.graph.node(small.program.tasks[step_named(small.program, name)].node);
    return lower(small.program, node, ops::builtin_ops()).reason;
  };
  EXPECT_NE(reason("first").find("width"), std::string::npos);
  EXPECT_EQ(reason("after"), "");
  EXPECT_NE(reason("cpu").find("Max"), std::string::npos);
}

}  // namespace
}  // namespace orknn::silicon
