// The integer kernels in every form this machine can run, on random shapes and parameters: the bytes of the reference kernels,
// for any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "ops/eval.h"
#include "ops/support/requantize.h"
#include "poisoned_context.h"
#include "sim/kernel.h"
#include "sim/kernels/support/blocked.h"

namespace orknn::sim {
namespace {
using ir::Dims;
using ir::Node;
using ir::TensorData;
using ir::TensorId;

// A node under construction, with random values.
struct Trial {
  std::mt19937 random;
  Node node;
  std::vector<TensorData> inputs;
  std::vector<char> constant;

  explicit Trial(uint32_t seed) : random(seed) {}
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }
  bool chance(int64_t percent) { return pick(1, 100) <= percent; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[pick(0, static_cast<int64_t>(list.size()) - 1)];
  }
  DType byte_type() { return chance(75) ? DType::Int8 : DType::UInt8; }
  DType any_type() { return chance(40) ? DType::Int16 : byte_type(); }
  int64_t least(DType t) { return t == DType::Int8 ? -128 : t == DType::UInt8 ? 0 : -32768; }
  int64_t most(DType t) { return t == DType::Int8 ? 127 : t == DType::UInt8 ? 255 : 32767; }
  int64_t zero_point(DType t) {
    return t == DType::Int16 ? pick(-300, 300)
                             : one_of<int64_t>({least(t), most(t), pick(least(t), most(t)), pick(least(t), most(t))});
  }

  // Extremes now and then, and sometimes nothing else: sums that would saturate 16 bits.
  TensorData data(DType t, Dims dims) {
    TensorData v = TensorData::allocate(t, std::move(dims));
    const int64_t extremes = one_of<int64_t>({0, 10, 100});
    for (int64_t i = 0; i < v.count(); ++i) {
      const int64_t value = chance(extremes) ? (chance(50) ? least(t) : most(t)) : pick(least(t), most(t));
      if (t == DType::Int16)
        static_cast<int16_t*>(v.mutable_data())[i] = static_cast<int16_t>(value);
      else
        static_cast<uint8_t*>(v.mutable_data())[i] = static_cast<uint8_t>(value);
    }
    return v;
  }
  // A function: neighbours differ by little.
  TensorData smooth(DType type, int64_t count) {
    TensorData v = TensorData::allocate(type, {count});
    const int64_t rise = pick(1, 40), fall = pick(0, 10);
    int64_t value = pick(least(type), most(type));
    for (int64_t i = 0; i < count; ++i) {
      value = std::clamp(value + (chance(rise) ? 1 : 0) - (chance(fall) ? 1 : 0), least(type), most(type));
      if (type == DType::Int16)
        static_cast<int16_t*>(v.mutable_data())[i] = static_cast<int16_t>(value);
      else
        static_cast<uint8_t*>(v.mutable_data())[i] = static_cast<uint8_t>(value);
    }
    return v;
  }
  void input(TensorData value, bool is_constant = false) {
    node.inputs.push_back(TensorId{static_cast<int32_t>(inputs.size())});
    inputs.push_back(std::move(value));
    constant.push_back(is_constant);
  }
  // Factors of values below zero, one or one per channel.
  void slopes(int64_t channels) {
    std::vector<int64_t> factors;
    const int64_t count = chance(70) ? channels : 1;
    for (int64_t c = 0; c < count; ++c) factors.push_back(one_of<int64_t>({0, 16384, pick(1, 32767), pick(-32768, 32767)}));
    set("slope_multiplier", factors);
    set("slope_shift", chance(10) ? pick(0, 62) : pick(13, 17));
  }
  void absent() {
    node.inputs.push_back(TensorId{});
    inputs.emplace_back();
    constant.push_back(false);
  }
  void set(std::string name, ir::Attribute value) { node.attributes.set(std::move(name), std::move(value)); }

  // Factors of channels; returns what sums are multiplied with in the middle.
  double channel_stage(int64_t channels) {
    const bool any = chance(15);
    const int64_t shift = any ? pick(0, 62) : pick(4, 15);
    std::vector<int64_t> factors;
    for (int64_t c = 0; c < channels; ++c) factors.push_back(any && chance(50) ? pick(-32768, 32767) : pick(4000, 32767));
    set("channel_multiplier", factors);
    set("channel_shift", shift);
    return std::ldexp(16384.0, -static_cast<int>(std::min<int64_t>(shift, 15)));
  }

  // Multipliers, shifts, bounds, type; returns the type. `reach` is a magnitude the values have. Powers of two give many ties.
  DType stage(double reach, bool table, int64_t max_factor, int64_t multipliers = 1) {
    const bool any = chance(20), powers = chance(30);
    std::vector<int64_t> factors, shifts;
    const DType type = table ? one_of({DType::Int8, DType::UInt8, DType::Int16})
                             : one_of({DType::Int8, DType::Int8, DType::UInt8, DType::Int16});
    const double span = table ? 4096 : type == DType::Int16 ? 30000 : 200;
    for (int64_t c = 0; c < multipliers; ++c) {
      if (any && chance(40)) {
        factors.push_back(one_of<int64_t>({pick(-max_factor, max_factor), max_factor, -max_factor, 0, pick(-32767, 32767)}));
        shifts.push_back(pick(1, 62));
        continue;
      }
      const auto m = ops::make_multiplier(span / reach * std::uniform_real_distribution<double>(0.2, 4)(random));
      factors.push_back(!m ? 1 : powers ? 16384 : m->factor);
      shifts.push_back(m ? m->shift : 1);
    }
    set("multiplier", factors);
    set("shift", shifts);
    set("y_type", static_cast<int64_t>(type));
    set("y_zero_point", table ? pick(0, 3000) : type == DType::Int16 ? pick(-100, 100) : zero_point(type));
    const int64_t low = table ? 0 : least(type), high = table ? 4095 : most(type), cut = (high - low) / 3;
    set("low", chance(50) ? low : pick(low, low + cut));
    set("high", chance(50) ? high : pick(high - cut, high));
    return type;
  }
};

// The kernels that were compared so far, by name.
std::set<std::string_view> compared;

// The kernels of the query, which depend on the instruction set, give the reference's bytes in every form and for any number of
// threads.
void compare(const Trial& t, const KernelQuery& query, const TensorData& reference, const std::string& what) {
  const Form form = query.outputs[0].form;
  const auto bytes = form == Form::Blocked ? static_cast<size_t>(blocked_bytes(reference.dims())) : reference.bytes();
  const kernels::Isa before = kernels::current_isa();
  for (kernels::Isa isa : kernels::available_isas()) {
    kernels::set_current_isa(isa);
    const Kernel* found = find_kernel(query);
    if (!found) continue;
    const Kernel& kernel = *found;
    compared.insert(kernel.name);
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::vector<ir::TensorView> views;
      std::vector<TensorData> blocks(t.inputs.size());
      for (size_t i = 0; i < t.inputs.size(); ++i) {
        views.push_back(t.inputs[i].view());
        if (query.inputs[i].form == Form::Rows) continue;
        blocks[i] = TensorData::allocate(DType::UInt8, {blocked_bytes(t.inputs[i].dims())});
        kernels::to_blocks(t.inputs[i].view(), blocks[i].mutable_data(), pool);
        views[i].data = blocks[i].data();
      }
      std::unique_ptr<const KernelState> state;
      if (kernel.prepare) {
        auto prepared = kernel.prepare(query, pool);
        ASSERT_TRUE(prepared) << what;
        state = std::move(*prepared);
      }
      // Guards after the result: nothing may be written there.
      TensorData result = TensorData::allocate(DType::UInt8, {static_cast<int64_t>(bytes) + 64});
      std::memset(result.mutable_data(), 0x7e, result.bytes());
      const ir::MutableTensorView out[] = {{reference.dtype(), reference.dims(), result.mutable_data()}};
      tests::PoisonedContext context(t.node, query.def, views, out, pool);
      const Status status = kernel.run(context, state.get());
      const std::string where = what + " " + std::string(kernel.name) + " " + std::string(kernels::isa_name(isa)) + " " +
                                std::to_string(threads) + " threads";
      ASSERT_TRUE(status) << where << status.to_string();
      for (size_t i = 0; i < 64; ++i)
        ASSERT_EQ(+static_cast<const uint8_t*>(result.data())[bytes + i], 0x7e) << where << ": wrote after the result";
      TensorData rows = TensorData::allocate(reference.dtype(), reference.dims());
      if (form == Form::Blocked)
        kernels::from_blocks(result.data(), {rows.dtype(), rows.dims(), rows.mutable_data()}, pool);
      else
        std::memcpy(rows.mutable_data(), result.data(), bytes);
      const auto *e = static_cast<const uint8_t*>(reference.data()), *f = static_cast<const uint8_t*>(rows.data());
      for (size_t i = 0; i < reference.bytes(); ++i)
        ASSERT_EQ(+e[i], +f[i]) << where << ": byte " << i << " of " << reference.bytes();
    }
  }
  kernels::set_current_isa(before);
}

// Kernels of maps in blocks that were compared so far.
int blocked_trials = 0;

// The kernel for rows has this name; what kernels there are for blocks is compared as well.
void check(Trial& t, std::string_view kernel_name, const std::string& what) {
  t.node.name = what;
  t.node.outputs = {TensorId{100}};
  while (!t.node.inputs.empty() && !t.node.inputs.back()) {
    t.node.inputs.pop_back();
    t.inputs.pop_back();
  }
  const auto expected = ops::eval_node(t.node, ops::builtin_ops(), t.inputs);
  ASSERT_TRUE(expected) << what << ": " << expected.status().to_string();
  const TensorData& reference = (*expected)[0];
  std::vector<OperandFacts> facts;
  for (size_t i = 0; i < t.inputs.size(); ++i)
    facts.push_back({t.inputs[i].dtype(), t.inputs[i].dims(), t.constant[i] ? &t.inputs[i] : nullptr});
  const ir::OpDef& def = *ops::builtin_ops().find(t.node.op);
  OperandFacts outputs[] = {{reference.dtype(), reference.dims(), nullptr}};
  const KernelQuery query{t.node, def, facts, outputs};
  const Kernel* kernel = find_kernel(query);
  ASSERT_NE(kernel, nullptr) << what << ": no kernel accepts it";
  EXPECT_EQ(kernel->name, kernel_name) << what;
  compare(t, query, reference, what);
  if (!can_be_blocked(reference.dtype(), reference.dims())) return;
  outputs[0].form = Form::Blocked;
  for (const bool first_in_rows : {true, false}) {
    for (size_t i = first_in_rows ? 1 : 0; i < facts.size(); ++i)
      if (facts[i].exists() && !facts[i].constant && can_be_blocked(facts[i].dtype, facts[i].dims)) facts[i].form = Form::Blocked;
    if (!find_kernel(query)) continue;
    ++blocked_trials;
    compare(t, query, reference, what);
  }
}

// Bias, addend and table inputs, and the attributes of all.
void finish_product(Trial& t, int64_t channels, Dims output, double reach, bool bias, bool addend, bool table,
                    bool wide = false) {
  if (bias) {
    TensorData b = TensorData::allocate(DType::Int32, {channels});
    for (int64_t i = 0; i < channels; ++i)
      static_cast<int32_t*>(b.mutable_data())[i] =
          static_cast<int32_t>(t.chance(5) ? t.one_of<int64_t>({INT32_MIN, INT32_MAX}) : t.pick(-100000, 100000));
    t.input(std::move(b), true);
  } else {
    t.absent();
  }
  const double middle = t.chance(60) ? t.channel_stage(channels) : 1;
  const DType type = t.stage(reach * middle, table, wide ? ops::kMaxWideFactor : int64_t{1} << 30);
  if (addend) {
    const DType addend_type = t.one_of({DType::Int8, DType::Int8, DType::UInt8, DType::Int16});
    t.input(t.data(addend_type, std::move(output)));
    // About as large as the sums, or anything.
    const auto m = ops::make_multiplier(reach * middle / 100, ops::kMaxAddFactor);
    const bool any = t.chance(20) || !m;
    t.set("add_multiplier", any ? t.pick(0, ops::kMaxAddFactor) : t.chance(30) ? 32768 : m->factor);
    t.set("add_shift", any ? t.pick(0, 62) : m->shift);
    t.set("add_zero_point", t.zero_point(addend_type));
  } else {
    t.absent();
  }
  if (t.chance(30)) t.slopes(channels);
  if (table) t.input(t.chance(50) ? t.data(type, {4096}) : t.smooth(type, 4096), true);
}

void convolution(uint32_t seed, bool transposed, bool depthwise, bool wide = false) {
  Trial t(seed);
  t.node.op = transposed ? "int:ConvTranspose" : "int:Conv";
  const bool one_axis = t.chance(15);
  const int64_t groups = depthwise ? t.one_of<int64_t>({t.pick(2, 9), 16, t.pick(10, 40)}) : t.chance(20) ? t.pick(2, 4) : 1;
  const int64_t channels = depthwise ? 1 : t.one_of<int64_t>({1, 2, 3, 4, 5, 7, 8, 16, 33, t.pick(1, 70)});
  const int64_t outputs = depthwise ? t.one_of<int64_t>({1, 1, 1, 2}) : t.one_of<int64_t>({1, 3, 8, 9, 16, 40, t.pick(1, 50)});
  const int64_t batch = t.chance(20) ? 2 : 1, kernel_y = one_axis ? 1 : t.one_of<int64_t>({1, 2, 3, 3, 5, 7}),
                kernel_x = t.one_of<int64_t>({kernel_y, 1, 3, 4, 5, 9});
  const int64_t height = one_axis ? 1 : t.one_of<int64_t>({1, 2, 7, 14, t.pick(1, 40)}),
                width = t.one_of<int64_t>({1, 3, 7, 14, 16, 48, t.pick(1, 90)});
  std::vector<int64_t> stride{t.one_of<int64_t>({1, 1, 2, 3}), t.one_of<int64_t>({1, 1, 2, 3})},
      dilation{t.one_of<int64_t>({1, 1, 1, 2, 3}), t.one_of<int64_t>({1, 1, 1, 2, 3})};
  std::vector<int64_t> pads{t.pick(0, 3), t.pick(0, 3), t.pick(0, 3), t.pick(0, 3)};
  if (t.chance(40)) pads = {kernel_y / 2, kernel_x / 2, kernel_y / 2, kernel_x / 2};
  if (kernel_y == 1 && kernel_x == 1 && t.chance(60)) pads = {0, 0, 0, 0};
  if (kernel_y == 1 && kernel_x == 1 && t.chance(60)) stride = {1, 1};
  if (transposed) {  // something must be left between the pads
    const auto left = [&](int64_t in, size_t axis, int64_t kernel) {
      return (in - 1) * stride[axis] + (kernel - 1) * dilation[axis] + 1 - pads[axis] - pads[axis + 2];
    };
    if (left(height, 0, kernel_y) < 1) pads[0] = pads[2] = 0;
    if (left(width, 1, kernel_x) < 1) pads[1] = pads[3] = 0;
  } else {
    while (height + pads[0] + pads[2] < (kernel_y - 1) * dilation[0] + 1) ++pads[static_cast<size_t>(t.one_of<int64_t>({0, 2}))];
    while (width + pads[1] + pads[3] < (kernel_x - 1) * dilation[1] + 1) ++pads[static_cast<size_t>(t.one_of<int64_t>({1, 3}))];
  }
  if (one_axis) {
    stride = {stride[1]};
    dilation = {dilation[1]};
    pads = {pads[1], pads[3]};
  }
  const auto spatial = [&](Dims dims, int64_t y, int64_t x) {
    if (!one_axis) dims.push_back(y);
    dims.push_back(x);
    return dims;
  };
  t.set("strides", stride);
  t.set("dilations", dilation);
  t.set("pads", pads);
  t.set("group", groups);
  const bool words = wide && t.chance(70);
  const DType x_type = words ? DType::Int16 : t.byte_type(),
              w_type = wide && (!words || t.chance(80)) ? DType::Int16 : t.byte_type();
  t.set("x_zero_point", words && t.chance(60) ? t.one_of<int64_t>({0, -32768, 32767}) : t.zero_point(x_type));
  std::vector<int64_t> w_zero;
  const bool symmetric = t.chance(65);
  const int64_t w_zeros = t.chance(30) ? groups * outputs : 1;
  for (int64_t i = 0; i < w_zeros; ++i) w_zero.push_back(symmetric ? (w_type == DType::UInt8 ? 128 : 0) : t.zero_point(w_type));
  t.set("w_zero_point", w_zero);
  t.input(t.data(x_type, spatial({batch, groups * channels}, height, width)));
  t.input(t.data(w_type,
                 spatial(transposed ? Dims{groups * channels, outputs} : Dims{groups * outputs, channels}, kernel_y, kernel_x)),
          true);
  // The output's extents, for an added operand.
  const auto extent = [&](int64_t in, size_t axis, int64_t kernel) {
    const size_t axes = stride.size();
    const int64_t span = (kernel - 1) * dilation[axis] + 1, padding = pads[axis] + pads[axis + axes];
    return transposed ? (in - 1) * stride[axis] + span - padding : (in + padding - span) / stride[axis] + 1;
  };
  const Dims output = one_axis ? Dims{batch, groups * outputs, extent(width, 0, kernel_x)}
                               : Dims{batch, groups * outputs, extent(height, 0, kernel_y), extent(width, 1, kernel_x)};
  const double reach = 3000.0 * std::sqrt(static_cast<double>(channels * kernel_y * kernel_x)) *
                       (x_type == DType::Int16 ? 256 : 1) * (w_type == DType::Int16 ? 256 : 1);
  finish_product(t, groups * outputs, output, reach, t.chance(70), t.chance(30), t.chance(20), wide);
  check(t, !transposed && groups > 1 && channels == 1 && !wide ? "int_conv_depthwise" : "int_conv",
        t.node.op + " seed " + std::to_string(seed));
}

// Counts the trials of kernels for blocks from here to the end of a test.
class BlockedTrials {
 public:
  explicit BlockedTrials(int least) : before_(blocked_trials), least_(least) {}
  ~BlockedTrials() { EXPECT_GE(blocked_trials - before_, least_); }

 private:
  int before_, least_;
};

TEST(IntKernels, Convolution) {
  const BlockedTrials trials(60);
  for (uint32_t seed = 0; seed < 160 && !HasFatalFailure(); ++seed) convolution(seed, false, false);
}

// 3x3 convolutions by tiles: all sizes of edges, blocks that are not full, and the largest sums that bytes can make, for which
// the depth is divided.
void tiles_of_3x3(uint32_t seed) {
  Trial t(seed);
  t.node.op = "int:Conv";
  const bool largest = t.chance(25);
  const int64_t channels = largest ? t.one_of<int64_t>({112, 130, 250}) : t.one_of<int64_t>({16, 17, 30, 33, 48, t.pick(16, 80)}),
                outputs = t.one_of<int64_t>({16, 20, 32, 40, t.pick(16, 50)}), batch = t.chance(20) ? 2 : 1,
                height = t.pick(8, largest ? 10 : 30), width = t.pick(8, largest ? 10 : 50);
  const std::vector<int64_t> pads{t.pick(0, 2), t.pick(0, 2), t.pick(0, 2), t.pick(0, 2)};
  t.set("pads", pads);
  const DType x_type = t.byte_type(), w_type = t.byte_type();
  t.set("x_zero_point", t.zero_point(x_type));
  const int64_t middle = w_type == DType::UInt8 ? 128 : 0;
  t.set("w_zero_point", std::vector<int64_t>{t.chance(65) ? middle : t.zero_point(w_type)});
  t.input(t.data(x_type, {batch, channels, height, width}));
  t.input(t.data(w_type, {outputs, channels, 3, 3}), true);
  if (largest) {
    std::memset(t.inputs[0].mutable_data(), x_type == DType::UInt8 ? 0xff : 0x7f, t.inputs[0].bytes());
    std::memset(t.inputs[1].mutable_data(), w_type == DType::UInt8 ? 0 : 0x80, t.inputs[1].bytes());
  }
  const Dims output{batch, outputs, height + pads[0] + pads[2] - 2, width + pads[1] + pads[3] - 2};
  const double reach = 3000.0 * (largest ? static_cast<double>(9 * channels) : std::sqrt(static_cast<double>(9 * channels)));
  finish_product(t, outputs, output, reach, t.chance(70), t.chance(30), t.chance(20));
  check(t, "int_conv", "3x3 seed " + std::to_string(seed));
}
TEST(IntKernels, TilesOf3x3) {
  const kernels::Isa before = kernels::current_isa();
  kernels::set_current_isa(kernels::Isa::Portable);  // where the kernel by tiles is the one that is found
  const BlockedTrials trials(25);
  for (uint32_t seed = 0; seed < 60 && !HasFatalFailure(); ++seed) tiles_of_3x3(seed);
  kernels::set_current_isa(before);
}
// Convolutions with as many channels as it takes to make sums with half the multiplications: of one tap and of several, whole
// and broken blocks and pairs, rows of pixels that are no multiple of four.
void many_channels(uint32_t seed) {
  Trial t(seed);
  t.node.op = "int:Conv";
  const int64_t channels = t.one_of<int64_t>({64, 65, 66, 67, 68, 70, 80, 96, t.pick(64, 150)}),
                outputs = t.one_of<int64_t>({64, 72, t.pick(64, 100)}), batch = t.chance(20) ? 2 : 1,
                kernel = t.one_of<int64_t>({1, 1, 1, 2, 3}), stride = kernel == 3 ? 2 : t.one_of<int64_t>({1, 1, 1, 2}),
                height = t.pick(kernel, 12), width = t.one_of<int64_t>({7, 14, t.pick(kernel, 30)}), pad = t.pick(0, kernel - 1);
  t.set("pads", std::vector<int64_t>(4, pad));
  t.set("strides", std::vector<int64_t>(2, stride));
  const DType x_type = t.byte_type(), w_type = t.byte_type();
  t.set("x_zero_point", t.zero_point(x_type));
  t.set("w_zero_point", std::vector<int64_t>{t.chance(50) ? (w_type == DType::UInt8 ? 128 : 0) : t.zero_point(w_type)});
  t.input(t.data(x_type, {batch, channels, height, width}));
  t.input(t.data(w_type, {outputs, channels, kernel, kernel}), true);
  const auto extent = [&](int64_t in) { return (in + 2 * pad - kernel) / stride + 1; };
  finish_product(t, outputs, {batch, outputs, extent(height), extent(width)},
                 3000.0 * std::sqrt(static_cast<double>(kernel * kernel * channels)), t.chance(70), t.chance(30), t.chance(20));
  check(t, "int_conv", "many channels, seed " + std::to_string(seed));
}
TEST(IntKernels, ManyChannels) {
  const BlockedTrials trials(40);
  for (uint32_t seed = 0; seed < 60 && !HasFatalFailure(); ++seed) many_channels(seed);
  EXPECT_EQ(compared.contains("blocked_pairs"), kernels::isa_available(kernels::Isa::Avx2));
}
TEST(IntKernels, Depthwise) {
  const BlockedTrials trials(20);
  for (uint32_t seed = 0; seed < 120 && !HasFatalFailure(); ++seed) convolution(seed, false, true);
}
// Channels whose factors lie far apart, so that the largest sums become numbers that barely fit an int32.
TEST(IntKernels, LargeChannelFactors) {
  const BlockedTrials trials(20);
  for (uint32_t seed = 0; seed < 20 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    constexpr int64_t kChannels = 20;
    t.node.op = "int:Conv";
    t.set("pads", std::vector<int64_t>{1, 1, 1, 1});
    t.set("group", kChannels);
    t.set("x_zero_point", int64_t{-128});
    t.set("y_type", static_cast<int64_t>(DType::Int8));
    t.set("y_zero_point", int64_t{-128});
    t.set("low", int64_t{-128});
    t.set("high", int64_t{127});
    std::vector<int64_t> factors;
    for (int64_t i = 0; i < kChannels; ++i) factors.push_back(t.one_of<int64_t>({2, 40, 3000, 32767}));
    t.set("channel_multiplier", factors);
    t.set("multiplier", std::vector<int64_t>{t.pick(16384, 32767)});
    t.set("shift", std::vector<int64_t>{t.pick(29, 31)});  // factors of up to 2
    t.input(t.data(DType::Int8, {1, kChannels, 9, 14}));
    t.input(t.data(DType::Int8, {kChannels, 1, 3, 3}), true);
    TensorData bias = TensorData::allocate(DType::Int32, {kChannels});
    for (int64_t i = 0; i < kChannels; ++i)
      static_cast<int32_t*>(bias.mutable_data())[i] = static_cast<int32_t>(
          t.chance(40) ? t.one_of<int64_t>({INT32_MIN, INT32_MIN + 300000, INT32_MAX - 300000, INT32_MAX}) : t.pick(-9999, 9999));
    t.input(std::move(bias), true);
    check(t, "int_conv_depthwise", "int:Conv seed " + std::to_string(seed));
  }
}

TEST(IntKernels, Transposed) {
  for (uint32_t seed = 0; seed < 100 && !HasFatalFailure(); ++seed) convolution(seed, true, false);
}

// Results that no element of the input reaches: in all rows, and in the longest rows only.
TEST(IntKernels, TransposedWithoutTaps) {
  for (const std::vector<int64_t>& pads : {std::vector<int64_t>{1, 2, 1, 3}, std::vector<int64_t>{0, 1, 0, 1}}) {
    Trial t(0);
    t.node.op = "int:ConvTranspose";
    t.set("strides", std::vector<int64_t>{3, 3});
    t.set("pads", pads);
    t.set("multiplier", std::vector<int64_t>{20000});
    t.set("shift", std::vector<int64_t>{26});
    t.set("low", int64_t{-128});
    t.set("high", int64_t{127});
    t.input(t.data(DType::Int8, {1, 2, 2, 20}));
    t.input(t.data(DType::Int8, {2, 3, 1, 2}), true);
    check(t, "int_conv", "transposed without taps");
  }
}

TEST(IntKernels, WideConvolution) {
  for (uint32_t seed = 0; seed < 100 && !HasFatalFailure(); ++seed) convolution(1000 + seed, seed % 4 == 0, seed % 5 == 1, true);
}

// Every sum at its largest, far beyond 32 bits.
TEST(IntKernels, LargestWideSums) {
  for (const int64_t value : {-32768, 32767}) {
    Trial t(0);
    t.node.op = "int:Conv";
    const int64_t channels = 300;
    TensorData x = TensorData::allocate(DType::Int16, {1, channels, 7, 7}),
               w = TensorData::allocate(DType::Int16, {9, channels, 3, 3});
    std::fill_n(static_cast<int16_t*>(x.mutable_data()), x.count(), static_cast<int16_t>(value));
    std::fill_n(static_cast<int16_t*>(w.mutable_data()), w.count(), INT16_MIN);
    t.input(std::move(x));
    t.input(std::move(w), true);
    t.set("multiplier", std::vector<int64_t>{20000});
    t.set("shift", std::vector<int64_t>{41});
    t.set("low", int64_t{-32768});
    t.set("high", int64_t{32767});
    t.set("y_type", static_cast<int64_t>(DType::Int16));
    check(t, "int_conv", "largest sums of " + std::to_string(value));
  }
}

void matrix_product(uint32_t seed, bool wide) {
  Trial t(seed);
  t.node.op = "int:MatMul";
  const int64_t rows = t.one_of<int64_t>({1, 2, 8, 9, t.pick(1, 80)}), depth = t.one_of<int64_t>({1, 3, 4, 64, t.pick(1, 300)}),
                columns = t.one_of<int64_t>({1, 16, 48, 49, t.pick(1, 200)});
  const bool constant = t.chance(50);
  Dims a{rows, depth}, b{depth, columns}, y{rows, columns};
  if (t.chance(50)) {
    const int64_t outer = t.pick(1, 3), inner = t.pick(1, 3);
    a.insert(a.begin(), {t.chance(70) ? outer : 1, inner});
    y.insert(y.begin(), {a[0], inner});
    if (t.chance(60)) {
      b.insert(b.begin(), {outer, t.chance(50) ? inner : 1});
      y[0] = outer;
    }
  }
  const bool words = wide && t.chance(70);
  const DType b_type = words ? DType::Int16 : t.byte_type(),
              a_type = wide && (!words || t.chance(80)) ? DType::Int16 : t.byte_type();
  t.set("x_zero_point", t.zero_point(a_type));
  std::vector<int64_t> b_zero;
  const bool symmetric = t.chance(60);
  const int64_t b_zeros = constant && t.chance(30) ? columns : 1;
  for (int64_t i = 0; i < b_zeros; ++i)
    b_zero.push_back(words ? 0 : symmetric ? (b_type == DType::Int8 ? 0 : 128) : t.zero_point(b_type));
  t.set("w_zero_point", b_zero);
  t.input(t.data(a_type, a));
  t.input(t.data(b_type, b), constant);
  const double reach =
      5000.0 * std::sqrt(static_cast<double>(depth)) * (a_type == DType::Int16 ? 256 : 1) * (b_type == DType::Int16 ? 256 : 1);
  finish_product(t, columns, y, reach, t.chance(60), t.chance(30), t.chance(20), wide);
  // One matrix of constant bytes, results of bytes.
  const bool one_matrix = b.size() == 2 || (b[0] == 1 && b[1] == 1);
  const DType y_type = static_cast<DType>(t.node.attributes.int_or("y_type", 0));
  const bool bytes = y_type != DType::Int16 && (t.inputs.size() < 4 || t.inputs[3].dtype() != DType::Int16);
  check(t, constant && one_matrix && !wide && bytes ? "int_linear" : "int_matmul", "int:MatMul seed " + std::to_string(seed));
}
TEST(IntKernels, MatMul) {
  for (uint32_t seed = 0; seed < 160 && !HasFatalFailure(); ++seed) matrix_product(seed, false);
}
TEST(IntKernels, WideMatMul) {
  for (uint32_t seed = 0; seed < 100 && !HasFatalFailure(); ++seed) matrix_product(1000 + seed, true);
}

TEST(IntKernels, Binary) {
  const BlockedTrials trials(50);
  for (uint32_t seed = 0; seed < 200 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    t.node.op = t.one_of<std::string>({"int:Add", "int:Mul", "int:Max", "int:Min"});
    const Dims full{t.pick(1, 2), t.one_of<int64_t>({t.pick(1, 9), 16, t.pick(10, 40)}), t.one_of<int64_t>({1, 5, 14, 40}),
                    t.one_of<int64_t>({1, 7, 64, t.pick(1, 150)})};
    Dims other = full;
    switch (t.pick(0, 5)) {
      case 0: other = {1}; break;
      case 5: other = {}; break;
      case 1: other = {1, full[1], 1, 1}; break;
      case 2: other = {full[0], full[1], 1, 1}; break;
      case 3: other = {full[3]}; break;
      default: break;
    }
    const DType a = t.chance(85) ? t.byte_type() : DType::Int16, b = t.chance(85) ? t.byte_type() : DType::Int16;
    const bool swap = t.chance(30), table = t.chance(20);
    const bool constant = t.chance(30);
    t.input(t.data(a, swap ? other : full), swap && constant);
    t.input(t.data(b, swap ? full : other), !swap && constant);
    t.set("a_zero_point", t.zero_point(a));
    t.set("b_zero_point", t.zero_point(b));
    const bool product = t.node.op == "int:Mul", any = t.chance(20);
    t.set("a_multiplier", any ? t.pick(-128, 127) : t.one_of<int64_t>({-127, 64, 127, t.pick(1, 127)}));
    t.set("b_multiplier", any ? t.pick(0, ops::kMaxAddFactor) : t.pick(16384, ops::kMaxAddFactor));
    t.set("b_shift", any ? t.pick(0, 62) : t.pick(7, 11));
    const DType type = t.stage(product ? 20000 : 15000, table, ops::kMaxBinaryFactor);
    if (table) t.input(t.data(type, {4096}), true);
    check(t, "int_binary", t.node.op + " seed " + std::to_string(seed));
  }
}

TEST(IntKernels, Table) {
  const BlockedTrials trials(8);
  for (uint32_t seed = 0; seed < 60 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    t.node.op = "int:Table";
    const DType x = t.any_type(), y = t.any_type();
    const bool bytes = x != DType::Int16 && y != DType::Int16;
    const int64_t count = t.one_of<int64_t>({1, 63, 64, 65, 40000, t.pick(1, 300)});
    t.input(t.data(x, t.chance(50) ? Dims{t.pick(1, 3), count} : Dims{t.pick(1, 2), t.pick(1, 40), t.pick(1, 9), t.pick(1, 30)}));
    t.input(t.data(y, {x == DType::Int16 ? 65536 : 256}), true);
    check(t, bytes ? "int_table" : "int_large_table", "int:Table seed " + std::to_string(seed));
  }
}

TEST(IntKernels, PRelu) {
  for (uint32_t seed = 0; seed < 40 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    t.node.op = "int:PRelu";
    const DType type = t.byte_type();
    const int64_t axis = t.pick(0, 3);
    const Dims dims{t.pick(1, 3), t.pick(1, 9), t.pick(1, 20), t.one_of<int64_t>({1, 63, 64, t.pick(1, 100)})};
    t.input(t.data(type, dims));
    t.set("x_zero_point", t.zero_point(type));
    t.set("axis", axis);
    while (t.stage(150, false, int64_t{1} << 30) == DType::Int16) {
    }
    if (t.chance(90)) t.slopes(dims[static_cast<size_t>(axis)]);
    check(t, "int_prelu", "int:PRelu seed " + std::to_string(seed));
  }
}

TEST(IntKernels, MaxPool) {
  const BlockedTrials trials(60);
  for (uint32_t seed = 0; seed < 80 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    t.node.op = "MaxPool";
    const int64_t y = t.one_of<int64_t>({1, 2, 3, 5}), x = t.one_of<int64_t>({y, y, 1, 3, 4});
    std::vector<int64_t> dilation{t.one_of<int64_t>({1, 1, 1, 2}), t.one_of<int64_t>({1, 1, 1, 2})};
    const int64_t height = t.pick((y - 1) * dilation[0] + 1, 30), width = t.pick((x - 1) * dilation[1] + 1, 80);
    t.set("kernel_shape", std::vector<int64_t>{y, x});
    t.set("strides", std::vector<int64_t>{t.pick(1, 3), t.pick(1, 3)});
    t.set("dilations", dilation);
    t.set("pads",
          std::vector<int64_t>{t.pick(0, (y - 1) / 2), t.pick(0, (x - 1) / 2), t.pick(0, (y - 1) / 2), t.pick(0, (x - 1) / 2)});
    t.set("ceil_mode", t.pick(0, 1));
    t.input(t.data(t.byte_type(), {t.pick(1, 2), t.one_of<int64_t>({t.pick(1, 6), 16, 21}), height, width}));
    check(t, "int_max_pool", "MaxPool seed " + std::to_string(seed));
  }
}

TEST(IntKernels, AveragePool) {
  const BlockedTrials trials(25);
  for (uint32_t seed = 0; seed < 80 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    t.node.op = "int:AveragePool";
    const int64_t y = t.one_of<int64_t>({1, 2, 3, 5}), x = t.one_of<int64_t>({y, y, 1, 3, 4}),
                  dilation_y = t.one_of<int64_t>({1, 1, 1, 2}), dilation_x = t.one_of<int64_t>({1, 1, 1, 2});
    const int64_t height = t.pick((y - 1) * dilation_y + 1, 30), width = t.pick((x - 1) * dilation_x + 1, 80);
    const DType type = t.any_type();
    t.set("kernel_shape", std::vector<int64_t>{y, x});
    t.set("strides", std::vector<int64_t>{t.pick(1, 3), t.pick(1, 3)});
    t.set("dilations", std::vector<int64_t>{dilation_y, dilation_x});
    t.set("pads", std::vector<int64_t>{t.pick(0, y - 1), t.pick(0, x - 1), t.pick(0, y - 1), t.pick(0, x - 1)});
    t.set("ceil_mode", t.pick(0, 1));
    t.set("count_include_pad", t.pick(0, 1));
    t.set("x_zero_point", t.zero_point(type));
    t.input(t.data(type, {t.pick(1, 2), t.pick(1, 6), height, width}));
    const bool table = t.chance(20), same_scale = t.chance(40);
    if (same_scale) {
      t.set("same_scale", int64_t{1});
      t.set("y_type", static_cast<int64_t>(type));
    } else {
      const DType result = t.stage((type == DType::Int16 ? 20000.0 : 150.0) * static_cast<double>(x * y), table, int64_t{1} << 28,
                                   t.chance(60) ? x * y : 1);
      if (table) t.input(t.data(result, {4096}), true);
    }
    check(t, "int_average_pool", "int:AveragePool seed " + std::to_string(seed));
  }
}

TEST(IntKernels, ReduceMean) {
  const BlockedTrials trials(4);
  for (uint32_t seed = 0; seed < 40 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    t.node.op = "int:ReduceMean";
    const DType type = t.any_type();
    Dims dims{t.pick(1, 3), t.one_of<int64_t>({1, 7, 100}), t.pick(1, 20), t.one_of<int64_t>({1, 7, 64, 300})};
    const int64_t first = t.pick(0, 3);
    int64_t end = first == 2 ? 4 : t.pick(first + 1, 4);
    if (t.chance(5)) dims = {1, 256, 256, 1};
    while (ir::element_count(std::span(dims).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first))) > 1 << 16)
      --end;
    t.set("first_axis", first);
    t.set("end_axis", end);
    t.set("x_zero_point", t.zero_point(type));
    t.input(t.data(type, dims));
    const bool table = t.chance(20);
    const DType result = t.stage((type == DType::Int16 ? 20000.0 : 150.0) * 30, table, int64_t{1} << 28);
    if (table) t.input(t.data(result, {4096}), true);
    check(t, "int_mean", "int:ReduceMean seed " + std::to_string(seed));
  }
}

TEST(IntKernels, Quantize) {
  for (uint32_t seed = 0; seed < 60 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    const bool back = t.chance(40);
    t.node.op = back ? "DequantizeLinear" : "QuantizeLinear";
    const DType type = t.any_type();
    const Dims dims{t.pick(1, 3), t.one_of<int64_t>({1, 15, 64, 20000, t.pick(1, 300)})};
    const float scale = t.one_of({0.25f, 0.1f, 1e-3f, 1e-30f, 3e5f});
    if (back) {
      t.input(t.data(type, dims));
    } else {
      TensorData x = TensorData::allocate(DType::Float32, dims);
      for (int64_t i = 0; i < x.count(); ++i)
        static_cast<float*>(x.mutable_data())[i] = t.chance(5) ? t.one_of({INFINITY, -INFINITY, NAN, -0.0f, 3e38f, -3e38f})
                                                   : t.chance(50)
                                                       ? scale * static_cast<float>(t.pick(-600, 600)) / 2  // halves
                                                       : scale * std::uniform_real_distribution<float>(-300, 300)(t.random);
      t.input(std::move(x));
    }
    t.input(TensorData::scalar(scale), true);
    TensorData zero = t.data(type, {});
    if (type != DType::UInt8 || t.chance(70)) t.input(std::move(zero), true);
    check(t, back ? "dequantize" : "quantize", t.node.op + " seed " + std::to_string(seed));
  }
}

TEST(IntKernels, Resize) {
  for (uint32_t seed = 0; seed < 80 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    t.node.op = "int:Resize";
    const DType type = t.any_type();
    const int64_t one = int64_t{1} << ops::resize_bits(type), height = t.pick(1, 20), width = t.pick(1, 40);
    t.input(t.data(type, {t.pick(1, 2), t.pick(1, 5), height, width}));
    const bool ordered = t.chance(70);
    for (const int64_t from : {height, width}) {
      const int64_t to = t.one_of<int64_t>({1, 2 * from, 16, t.pick(1, 90)});
      TensorData places = TensorData::allocate(DType::Int32, {to, 2});
      auto* at = static_cast<int32_t*>(places.mutable_data());
      for (int64_t i = 0; i < to; ++i) {
        const int64_t position = ordered ? i * from / to : t.pick(0, from - 1);
        at[2 * i] = static_cast<int32_t>(position);
        at[2 * i + 1] = static_cast<int32_t>(position + 1 < from ? t.one_of<int64_t>({0, 1, one - 1, t.pick(0, one - 1)}) : 0);
      }
      t.input(std::move(places), true);
    }
    t.set("x_zero_point", t.zero_point(type));
    const bool table = t.chance(20);
    const DType result =
        t.stage((type == DType::Int16 ? 20000.0 : 150.0) * static_cast<double>(one * one), table, ops::kMaxResizeFactor);
    if (table) t.input(t.data(result, {4096}), true);
    check(t, "int_resize", "int:Resize seed " + std::to_string(seed));
  }
}

TEST(IntKernels, Softmax) {
  for (uint32_t seed = 0; seed < 60 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    t.node.op = "int:Softmax";
    const DType type = t.any_type();
    const int64_t extent = t.one_of<int64_t>({1, 2, 16, 64, 257, t.pick(1, 900)}),
                  other = t.one_of<int64_t>({1, 63, 64, t.pick(1, 80)});
    const bool last = t.chance(50);
    t.input(t.data(type, last ? Dims{t.pick(1, 3), other, extent} : Dims{t.pick(1, 3), extent, other}));
    t.set("axis", int64_t{last ? 2 : 1});
    TensorData powers = TensorData::allocate(DType::Int32, {ops::softmax_entries(type)});
    const double scale = t.one_of({0.0, 0.001, 0.05, 1.0, 30.0}) / (type == DType::Int16 ? 256 : 1);
    for (int64_t i = 0; i < powers.count(); ++i)
      static_cast<int32_t*>(powers.mutable_data())[i] =
          static_cast<int32_t>(std::lround(std::exp(-scale * static_cast<double>(i)) * (1 << 24)));
    t.input(std::move(powers), true);
    t.set("y_zero_point", t.chance(50) ? t.least(type) : t.zero_point(type));
    t.set("y_factor", t.one_of<int64_t>({255 * 256, 65536, 20000, 256 * 32767, 1, t.pick(1, 1 << 25)}));
    check(t, "int_softmax", "int:Softmax seed " + std::to_string(seed));
  }
}

// Channels are joined and divided where blocks end.
TEST(IntKernels, BlockedMovement) {
  for (uint32_t seed = 0; seed < 30 && !HasFatalFailure(); ++seed) {
    Trial t(seed);
    const DType type = t.byte_type();
    const int64_t batch = t.pick(1, 2), height = t.pick(1, 9), width = t.pick(1, 20);
    if (t.chance(50)) {
      t.node.op = "Concat";
      t.set("axis", t.one_of<int64_t>({1, -3}));
      for (int64_t left = t.pick(1, 3); left > 0; --left)
        t.input(t.data(type, {batch, left == 1 ? t.pick(1, 40) : 16 * t.pick(1, 3), height, width}));
    } else {
      t.node.op = "Resize";
      t.set("nearest_mode", t.one_of<std::string>({"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}));
      t.set("coordinate_transformation_mode", t.one_of<std::string>({"asymmetric", "half_pixel", "align_corners"}));
      t.input(t.data(type, {batch, t.pick(1, 40), height, width}));
      t.absent();
      t.absent();
      const auto sizes = std::vector<int64_t>{batch, t.inputs[0].dims()[1], t.pick(1, 3) * height, t.pick(1, 40)};
      t.input(TensorData::vector(sizes), true);
    }
    t.node.name = t.node.op + " seed " + std::to_string(seed);
    t.node.outputs = {TensorId{100}};
    const auto expected = ops::eval_node(t.node, ops::builtin_ops(), t.inputs);
    ASSERT_TRUE(expected) << t.node.name << ": " << expected.status().to_string();
    std::vector<OperandFacts> facts;
    for (size_t i = 0; i < t.inputs.size(); ++i) {
      facts.emplace_back();
      if (!t.inputs[i].has_value()) continue;
      facts[i] = {t.inputs[i].dtype(), t.inputs[i].dims(), t.constant[i] ? &t.inputs[i] : nullptr};
      if (!t.constant[i]) facts[i].form = Form::Blocked;
    }
    const OperandFacts outputs[] = {{(*expected)[0].dtype(), (*expected)[0].dims(), nullptr, Form::Blocked}};
    const KernelQuery query{t.node, *ops::builtin_ops().find(t.node.op), facts, outputs};
    ASSERT_NE(find_kernel(query), nullptr) << t.node.name;
    compare(t, query, (*expected)[0], t.node.name);
  }
}

// NC1HWC2 of unsigned bytes, in every form of the conversion.
TEST(IntKernels, FormsOfMaps) {
  const kernels::Isa before = kernels::current_isa();
  for (kernels::Isa isa : kernels::available_isas()) {
    kernels::set_current_isa(isa);
    for (uint32_t seed = 0; seed < 20; ++seed) {
      Trial t(seed);
      const DType type = t.byte_type();
      const Dims dims{t.pick(1, 2), t.pick(1, 50), t.pick(1, 9), t.pick(1, 70)};
      const TensorData rows = t.data(type, dims);
      ThreadPool pool(static_cast<int>(t.pick(1, 3)));
      std::vector<uint8_t> blocks(static_cast<size_t>(blocked_bytes(dims)));
      kernels::to_blocks(rows.view(), blocks.data(), pool);
      const int64_t area = dims[2] * dims[3];
      for (int64_t i = 0; i < rows.count(); ++i) {
        const int64_t image = i / (dims[1] * area), channel = i / area % dims[1], pixel = i % area;
        const int64_t at = ((image * blocks_of(dims[1]) + channel / kBlock) * area + pixel) * kBlock + channel % kBlock;
        ASSERT_EQ(blocks[static_cast<size_t>(at)],
                  static_cast<const uint8_t*>(rows.data())[i] ^ (type == DType::Int8 ? 0x80 : 0));
      }
      TensorData back = TensorData::allocate(type, dims);
      kernels::from_blocks(blocks.data(), {type, dims, back.mutable_data()}, pool);
      ASSERT_EQ(std::memcmp(back.data(), rows.data(), rows.bytes()), 0);
    }
  }
  kernels::set_current_isa(before);
}
}  // namespace
}  // namespace orknn::sim
