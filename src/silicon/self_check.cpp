#include "silicon/self_check.h"

#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <variant>

#include "base/checksum.h"
#include "base/half.h"
#include "silicon/example_layers.h"
#include "silicon/recipe.h"

namespace orknn::silicon {
namespace {
using namespace examples;

struct Family {
  std::string_view name;
  std::variant<ConvLayer, PoolLayer, TableLayer> layer;
  uint64_t checksum = 0;  // of the expected result
  // Of a convolution that is no depthwise one: each kernel has weights for its own channel alone, all `same` unless that is 0.
  bool own_channel = false;
  int32_t same = 0;
};

template <class Change>
ConvLayer with(ConvLayer l, Change change) {
  change(l);
  return l;
}
ConvLayer half(ConvLayer l, Precision out = Precision::Half) {
  l.in = Precision::Half;
  l.out = out;
  l.has_bias = false;
  l.in_zero_point = l.out_zero_point = 0;
  return l;
}
ConvLayer with_float_bias(ConvLayer l) {
  l.has_bias = true;
  return l;
}
ConvLayer combined(ConvLayer l, ElementWise::Operation operation) {
  l.element_wise = ElementWise{.operation = operation};
  return l;
}
ConvLayer short_groups(ConvLayer l) {
  l.grouping = Grouping::Short;
  return l;
}
ConvLayer int32_sums(ConvLayer l) {
  l.out = Precision::Int32;
  l.has_bias = false;
  l.in_zero_point = 0;
  return l;
}
PoolLayer pool(PoolTask::Method method, int64_t size, int64_t channels, Window2d w, Precision precision = Precision::Int8) {
  PoolLayer l{.method = method, .precision = precision, .height = size, .width = size, .channels = channels};
  l.window = w;
  l.out_height = (size + w.top + w.bottom - w.height) / w.stride_y + 1;
  l.out_width = (size + w.left + w.right - w.width) / w.stride_x + 1;
  return l;
}

constexpr int64_t kRampElements = 1600;  // of a function's inputs

// The checksums were computed with the chip model; a test keeps them. A family's place decides on its operands.
const std::vector<Family>& families() {
  using Method = PoolTask::Method;
  constexpr Window2d kHalves{.height = 2, .width = 2, .stride_y = 2, .stride_x = 2};
  static const std::vector<Family> all{
      {"convolution 1x1", conv(8, 8, 64, 96), 0xdecfde2c9ebf89e0},
      {"convolution 3x3", conv(14, 14, 32, 64, kSame3), 0x68086abbc3729190},
      {"convolution 3x3, stride 2",
       conv(16, 16, 48, 40, {.height = 3, .width = 3, .stride_y = 2, .stride_x = 2, .bottom = 1, .right = 1}),
       0x9c7db75b3a697af9},
      {"convolution, wide picture, odd channels", conv(5, 23, 19, 21, kSame3), 0xcbf775b476bc57c5},
      {"convolution with dilation",
       conv(12, 12, 32, 32,
            {.height = 3, .width = 3, .dilation_y = 2, .dilation_x = 2, .top = 2, .bottom = 2, .left = 2, .right = 2}),
       0x3426f4c06f03f540},
      {"convolution in bands", conv(61, 150, 96, 40, kSame3), 0x4541cd12c930892},
      {"fully connected", conv(1, 1, 256, 100), 0x142b8bc8f3e073ff},
      {"matrix product", conv(16, 1, 64, 64), 0x8e2efdba7ec288d9},
      {"weights with a zero point", with(conv(7, 7, 64, 64), [](ConvLayer& l) { l.weight_zero_point = 5; }), 0xd754f15079a1bd12},
      {"scales per channel",
       with(conv(9, 9, 64, 96, kSame3),
            [](ConvLayer& l) {
              for (int64_t k = 0; k < l.kernels; ++k)
                l.channel_multipliers.push_back(static_cast<int32_t>(3000 + 411 * k % 29000));
              l.channel_shift = 14;
            }),
       0x898bd783248d6a3c},
      {"ReLU with a ceiling",
       with(conv(8, 8, 64, 64),
            [](ConvLayer& l) {
              l.relu = true;
              l.ceiling = 9000;
            }),
       0xb3a3ba4f020e9f80},
      {"slope below zero", with(conv(8, 8, 64, 64), [](ConvLayer& l) { l.slope = Slope{.multiplier = 3277, .shift = 15}; }),
       0x26c05a3a600bd430},
      {"addition after a convolution", with_operand(conv(14, 14, 64, 64)), 0xe0b79908cb90adcb},
      {"depthwise 3x3", depthwise(conv(14, 14, 128, 128, kSame3)), 0xb7eff121e26687d},
      {"depthwise 5x5 in bands",
       depthwise(conv(61, 200, 64, 64,
                      {.height = 5, .width = 5, .stride_y = 2, .stride_x = 2, .top = 2, .bottom = 2, .left = 2, .right = 2})),
       0xbeaf15dfebdc990f},
      {"plain sums, int32", int32_sums(conv(14, 14, 32, 32, kSame3)), 0xf8d90bc8e00bb608},
      {"maxima of 2x2", pool(Method::Max, 14, 64, kHalves), 0x605150231dfceb55},
      {"maxima of 5x5 with padding",
       pool(Method::Max, 10, 64, {.height = 5, .width = 5, .top = 2, .bottom = 2, .left = 2, .right = 2}), 0x7fc08bb77f422f3},
      {"averages of 2x2", pool(Method::Average, 14, 64, kHalves), 0x45dfd59d85024902},
      {"averages of 7x7", pool(Method::Average, 7, 64, {.height = 7, .width = 7}), 0x7228ae77f21cf783},
      {"float16 convolution", half(conv(14, 14, 32, 48, kSame3)), 0x48501ec395d831da},
      {"float16 convolution to float32", half(conv(12, 12, 32, 32, kSame3), Precision::Float), 0xc0798a19d453c97c},
      {"float16 depthwise", half(depthwise(conv(14, 14, 64, 64, kSame3))), 0xd5f60455799dbcce},
      {"float16 maxima", pool(Method::Max, 14, 32, kHalves, Precision::Half), 0x3d52104b9dc24c13},
      {"float16 bias", with_float_bias(half(conv(14, 14, 32, 48, kSame3))), 0x70d42a2d94f2e9bd},
      {"float16 bias, ReLU with a ceiling",
       with(with_float_bias(half(conv(14, 14, 32, 48))),
            [](ConvLayer& l) {
              l.relu = true;
              l.ceiling = std::bit_cast<int32_t>(6.0f);
            }),
       0xd3c9359dc5f97cb2},
      {"float16 addition after a convolution", combined(half(conv(14, 14, 64, 64)), ElementWise::Operation::Add),
       0x2baf75e0630565c7},
      {"float16 product of two tensors", combined(half(conv(14, 14, 64, 64)), ElementWise::Operation::Multiply),
       0x8b76cdc7a10a63d2},
      {"float16 sigmoid by a table", *table_of_function("sigmoid", kRampElements), 0xef545771bf54cfb4},
      {"float16 tanh by a table", *table_of_function("tanh", kRampElements), 0x7b2a17d59822db93},
      {"float16 hard sigmoid by a table", *table_of_function("hard_sigmoid", kRampElements), 0xcffa21611a299a55},
      {"stand-alone addition",
       with(conv(14, 14, 64, 64),
            [](ConvLayer& l) { l.element_wise = ElementWise{.zero_point = -9, .multiplier = 16384, .shift = 8}; }),
       0xab04dd327cb62e53, true, 64},
      {"depthwise sums, int32, in blocks of direct convolutions",
       with(int32_sums(conv(14, 14, 64, 64, kSame3)), [](ConvLayer& l) { l.block = 32; }), 0xae33f19f66274c93, true},
      {"convolution 1x1, short groups", short_groups(conv(14, 14, 32, 40)), 0x82bc24b2d242879a},
      {"convolution 3x3, short groups", short_groups(conv(14, 14, 40, 51, kSame3)), 0xa5fe319964d35a43},
      {"depthwise 3x3, short groups", short_groups(depthwise(conv(14, 14, 80, 80, kSame3))), 0x3723f13384e6c610},
      {"minima of 2x2", pool(Method::Min, 14, 64, kHalves), 0x71b1c8aead83897e},
      {"float16 maximum of two tensors", combined(half(conv(14, 14, 64, 64)), ElementWise::Operation::Max), 0x1d88e3e1e1c72ad6,
       true, 1},
      {"float16 minimum of two tensors", combined(half(conv(14, 14, 64, 64)), ElementWise::Operation::Min), 0xc0d63a6045960674,
       true, 1},
      {"float16 sum of two tensors", combined(half(conv(14, 14, 64, 64)), ElementWise::Operation::Add), 0x4ab6b9f7363ee5da, true,
       1},
      {"float16 difference of two tensors", combined(half(conv(14, 14, 64, 64)), ElementWise::Operation::Add), 0xb3fbf3a71bf42ec6,
       true, -1},
      {"float16 convolution with dilation",
       half(conv(12, 12, 32, 32,
                 {.height = 3, .width = 3, .dilation_y = 2, .dilation_x = 2, .top = 2, .bottom = 2, .left = 2, .right = 2})),
       0x25965e5c1e7b18f6},
      {"float16 convolution in bands", half(conv(61, 150, 48, 40, kSame3)), 0xf3a5c24df145eeee},
      {"float16 fully connected", half(conv(1, 1, 256, 100)), 0xe0839f48acd11b5e},
      {"float16 matrix product", half(conv(16, 1, 64, 64)), 0x1b46f98fded01aeb},
      {"float16 averages of 2x2", pool(Method::Average, 14, 32, kHalves, Precision::Half), 0xbaf378ac3207a43c},
      {"float16 minima of 2x2", pool(Method::Min, 14, 32, kHalves, Precision::Half), 0xa468f47042ed8968},
  };
  return all;
}

// Fixed numbers, the same on every machine.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : state_(seed) {}
  int32_t next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<int32_t>(state_ >> 24) - 128;
  }
  // `count` elements: bytes, or small whole numbers in float16, whose sums are exact.
  std::vector<std::byte> elements(Precision precision, int64_t count) {
    std::vector<std::byte> bytes(static_cast<size_t>(count * bytes_of(precision)));
    for (int64_t i = 0; i < count; ++i) {
      if (precision == Precision::Half) {
        const uint16_t bits = float_to_half(static_cast<float>(next() % 5));
        std::memcpy(bytes.data() + i * 2, &bits, 2);
      } else {
        bytes[static_cast<size_t>(i)] = static_cast<std::byte>(next());
      }
    }
    return bytes;
  }

 private:
  uint32_t state_;
};

// Inputs of a function, which float16 holds exactly: -6.25 to 6.25 in steps of 1/128, all that the tables reach.
std::vector<std::byte> function_ramp() {
  std::vector<std::byte> bytes(kRampElements * sizeof(uint16_t));
  for (int64_t i = 0; i < kRampElements; ++i) {
    const uint16_t bits = float_to_half((static_cast<float>(i - kRampElements / 2) + 0.5f) / 128);
    std::memcpy(bytes.data() + i * 2, &bits, sizeof bits);
  }
  return bytes;
}

// A family's operands and where they lie in the buffers.
struct Prepared {
  Cube input, output;
  std::vector<std::byte> features;  // input, second tensor, output
  uint64_t operand_at = 0, output_at = 0;
  ConvOperands operands;
  uint64_t bias_at = 0;
  bool has_operand = false;
};

Result<Prepared> prepare(const Family& family, uint32_t seed) {
  Numbers numbers(seed);
  Prepared p;
  const auto count = [](const Cube& c) { return c.height * c.width * c.channels; };
  const auto lay_out = [&](int64_t input_bytes, int64_t output_bytes, int64_t fill) {
    const uint64_t output_pages = AddressSpace::whole_pages(static_cast<uint64_t>(output_bytes));
    p.operand_at = AddressSpace::whole_pages(static_cast<uint64_t>(input_bytes));
    p.output_at = p.operand_at + (p.has_operand ? output_pages : 0);
    p.features.resize(p.output_at + output_pages);
    const std::vector<std::byte> values =
        std::holds_alternative<TableLayer>(family.layer) ? function_ramp() : numbers.elements(p.input.precision, count(p.input));
    pack_cube(p.input, TensorOrder::Hwc, values.data(), p.features, fill);
  };
  if (const auto* pooling = std::get_if<PoolLayer>(&family.layer)) {
    p.input = pooling->input();
    p.output = pooling->output();
    lay_out(p.input.bytes(), p.output.bytes(), 0);
    return p;
  }
  if (const auto* table = std::get_if<TableLayer>(&family.layer)) {
    p.input = p.output = {1, table->elements / 8, 8, Precision::Half};
    lay_out(p.input.bytes(), p.output.bytes(), 0);
    return p;
  }
  const auto& l = std::get<ConvLayer>(family.layer);
  p.input = l.input();
  p.output = l.output();
  p.has_operand = l.element_wise.has_value();
  lay_out(l.input_bytes(), l.output_bytes(), l.in_zero_point);
  if (p.has_operand) {
    const std::vector<std::byte> values = numbers.elements(p.output.precision, count(p.output));
    pack_cube(p.output, TensorOrder::Hwc, values.data(), std::span(p.features).subspan(p.operand_at), 0);
  }
  WeightPlan plan = l.weights();
  if (family.own_channel) plan.kernel_step = plan.own_channels = plan.kernels_together = 1;
  if (family.same) plan.value = l.in == Precision::Half ? float_to_half(static_cast<float>(family.same)) : family.same;
  const int64_t count_of_weights = plan.taps() * l.channels * (l.depthwise || family.own_channel ? 1 : l.kernels);
  const std::vector<std::byte> weights = numbers.elements(l.in, family.same ? 0 : count_of_weights);
  const void* values = family.same ? nullptr : weights.data();
  std::vector<int32_t> bias;
  for (int64_t k = 0; l.has_bias && k < l.kernels; ++k)
    bias.push_back(l.in == Precision::Half ? std::bit_cast<int32_t>(static_cast<float>(numbers.next()) / 8)
                                           : numbers.next() * 40);
  p.operands.weights.resize(plan.bytes());
  ORKNN_TRY_ASSIGN(p.operands.bias, pack_bias_of(l, bias, plan, values));
  plan.pack(values, p.operands.weights, ThreadPool::shared());
  p.bias_at = AddressSpace::whole_pages(p.operands.weights.size());
  return p;
}

Result<std::vector<Stream>> streams_of(const Family& family, const Prepared& p, uint32_t features, uint32_t operands) {
  const auto at = [](uint32_t base, uint64_t offset) { return static_cast<uint32_t>(base + offset); };
  if (const auto* pooling = std::get_if<PoolLayer>(&family.layer)) {
    ORKNN_TRY_ASSIGN(Stream stream, pool_stream(*pooling, features, at(features, p.output_at)));
    return std::vector<Stream>{std::move(stream)};
  }
  if (const auto* table = std::get_if<TableLayer>(&family.layer))
    return table_streams(*table, features, at(features, p.output_at));
  const ConvAddresses addresses{features, operands, p.operands.bias.empty() ? 0 : at(operands, p.bias_at),
                                at(features, p.output_at), p.has_operand ? at(features, p.operand_at) : 0};
  return conv_streams(std::get<ConvLayer>(family.layer), addresses);
}

struct Outcome {
  std::vector<std::byte> elements;  // rows, columns, channels
  size_t tasks = 0;
  double milliseconds = 0;
};

Result<Outcome> run_family(const Family& family, const Prepared& p, Unit& unit) {
  ORKNN_TRY_ASSIGN(const UnitBuffer features, unit.allocate(BufferUse::Features, p.features.size()));
  ORKNN_TRY_ASSIGN(
      const UnitBuffer operands,
      unit.allocate(BufferUse::Operands, p.bias_at + AddressSpace::whole_pages(std::max<size_t>(p.operands.bias.size(), 1))));
  std::memcpy(features.bytes.data(), p.features.data(), p.features.size());
  std::memset(operands.bytes.data(), 0, operands.bytes.size());
  std::ranges::copy(p.operands.weights, operands.bytes.begin());
  std::ranges::copy(p.operands.bias, operands.bytes.begin() + static_cast<ptrdiff_t>(p.bias_at));
  ORKNN_TRY_ASSIGN(std::vector<Stream> streams, streams_of(family, p, features.address, operands.address));
  constexpr uint64_t kStreamBytes = 16384;  // more than a task of these families has
  ORKNN_TRY_ASSIGN(const UnitBuffer commands, unit.allocate(BufferUse::Commands, streams.size() * kStreamBytes));
  std::vector<UnitTask> tasks;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (!unit.keeps_buffer_between_tasks()) forget_kept_weights(streams[i]);
    if (streams[i].size() * 8 > kStreamBytes) return internal_error("a stream is longer than its place");
    std::memcpy(commands.bytes.data() + i * kStreamBytes, streams[i].data(), streams[i].size() * 8);
    tasks.push_back({static_cast<uint32_t>(commands.address + i * kStreamBytes), static_cast<uint32_t>(streams[i].size()),
                     decode(streams[i].back()).value});
  }
  for (const BufferUse use : {BufferUse::Features, BufferUse::Operands, BufferUse::Commands}) ORKNN_TRY(unit.give(use));
  const auto begin = std::chrono::steady_clock::now();
  ORKNN_TRY(unit.run(tasks, {}));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  ORKNN_TRY(unit.take(BufferUse::Features));
  Outcome outcome{.tasks = tasks.size(), .milliseconds = took.count()};
  outcome.elements.resize(
      static_cast<size_t>(p.output.height * p.output.width * p.output.channels * bytes_of(p.output.precision)));
  unpack_cube(p.output, TensorOrder::Hwc, features.bytes.subspan(p.output_at), outcome.elements.data());
  return outcome;
}

bool only_pools(const Family& family) { return std::holds_alternative<PoolLayer>(family.layer); }

// The digits of a little-endian number.
std::string hexadecimal(const std::byte* element, size_t bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (size_t i = bytes; i-- > 0;) {
    const auto byte = std::to_integer<size_t>(element[i]);
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

// Which elements differ from those of the chip model.
void compare(const Family& family, const Prepared& p, const std::vector<std::byte>& found, FamilyResult& result) {
  const std::unique_ptr<Unit> model = make_chip_model_unit();
  const Result<Outcome> right = run_family(family, p, *model);
  if (!right) {
    result.state = FamilyResult::State::Failed;
    result.detail = right.status().to_string();
    return;
  }
  const auto width = static_cast<size_t>(bytes_of(p.output.precision));
  for (size_t i = 0; i < result.elements; ++i) {
    const std::byte *a = right->elements.data() + i * width, *b = found.data() + i * width;
    if (std::memcmp(a, b, width) == 0 || result.different++ >= kMostWrongElements) continue;
    const auto at = static_cast<int64_t>(i);
    result.wrong.push_back({.row = at / p.output.channels / p.output.width,
                            .column = at / p.output.channels % p.output.width,
                            .channel = at % p.output.channels,
                            .expected = hexadecimal(a, width),
                            .found = hexadecimal(b, width)});
  }
}

FamilyResult check_family(const Family& family, uint32_t seed, const MakeUnit& make_unit) {
  using State = FamilyResult::State;
  FamilyResult result{.family = std::string(family.name)};
  const auto fail = [&](State state, std::string why) {
    result.state = state;
    result.detail = std::move(why);
    return result;
  };
  auto unit = make_unit();
  if (!unit) return fail(State::Failed, unit.status().to_string());
  if (only_pools(family) && !(*unit)->waits_for_pooling())
    return fail(State::LeftOut, "this driver never reports the end of pooling tasks");
  const Result<Prepared> prepared = prepare(family, seed);
  if (!prepared) return fail(State::Failed, prepared.status().to_string());
  const Prepared& p = *prepared;
  const Result<Outcome> outcome = run_family(family, p, **unit);
  if (!outcome) return fail(State::Failed, outcome.status().to_string());
  result.tasks = outcome->tasks;
  result.milliseconds = outcome->milliseconds;
  result.elements = outcome->elements.size() / static_cast<size_t>(bytes_of(p.output.precision));
  result.checksum = checksum64(outcome->elements);
  if (result.checksum == family.checksum) return result;
  result.state = State::Different;
  compare(family, p, outcome->elements, result);
  return result;
}
}  // namespace

std::string_view state_name(FamilyResult::State state) {
  switch (state) {
    case FamilyResult::State::Equal: return "equal";
    case FamilyResult::State::Different: return "different";
    case FamilyResult::State::Failed: return "failed";
    case FamilyResult::State::LeftOut: return "left out";
  }
  return "";
}

std::vector<FamilyResult> check_families(const MakeUnit& make_unit) {
  std::vector<FamilyResult> results;
  uint32_t seed = 1;
  for (const Family& family : families()) results.push_back(check_family(family, seed++, make_unit));
  return results;
}

std::vector<ExpectedFamily> expected_families() {
  std::vector<ExpectedFamily> all;
  for (const Family& family : families()) all.push_back({family.name, family.checksum});
  return all;
}

}  // namespace orknn::silicon
