// What is known to have cost others days on boards, each with the check that keeps it away. (Handles in two lists and resets
// after a hang: drivers/drivers_test.cpp.)
#include <gtest/gtest.h>

#include <cmath>

#include "silicon/lint.h"
#include "silicon/recipe.h"

namespace orknn::silicon {
namespace {
using namespace field;

ConvLayer layer(int64_t height = 8, int64_t width = 8, int64_t channels = 40, int64_t kernels = 50) {
  ConvLayer l;
  l.height = l.out_height = height;
  l.width = l.out_width = width;
  l.channels = channels;
  l.kernels = kernels;
  l.in_zero_point = 7;
  l.out_multiplier = 0x5000;
  l.out_shift = 20;
  return l;
}
Stream stream_of(const ConvLayer& l) {
  auto streams = conv_streams(l, {0x10000, 0x200000, 0x400000, 0x600000, 0x800000});
  EXPECT_TRUE(streams) << streams.status().to_string();
  return streams ? streams->front() : Stream();
}
uint32_t value_of(const Stream& stream, Field f) {
  for (const uint64_t w : stream)
    if (const Command c = decode(w); c.offset == f.offset) return (c.value & f.mask()) >> f.low;
  ADD_FAILURE() << "not written";
  return 0;
}
// The stream with another value of a field.
Stream with(Stream stream, Field f, uint32_t value) {
  for (uint64_t& w : stream)
    if (Command c = decode(w); c.offset == f.offset) {
      c.value = (c.value & ~f.mask()) | value << f.low;
      w = encode(c);
    }
  return stream;
}
// It passes the lint.
bool accepts(const Stream& stream) {
  const auto task = decode_task(stream);
  return task && lint(*task).empty();
}
bool accepts(const Stream& stream, Field f, uint32_t value) { return accepts(with(stream, f, value)); }
// With results for every window that begins in the padded input.
ConvLayer windowed(ConvLayer l, const Window2d& w) {
  l.window = w;
  l.out_height = (l.height + w.top + w.bottom - w.reach_y()) / w.stride_y + 1;
  l.out_width = (l.width + w.left + w.right - w.reach_x()) / w.stride_x + 1;
  return l;
}
ConvLayer depthwise(ConvLayer l) {
  l.depthwise = true;
  l.kernels = l.channels;
  return l;
}

TEST(Traps, ReadersOfTheDpu) {
  Stream stream = stream_of(layer());
  EXPECT_TRUE(accepts(stream));
  EXPECT_FALSE(accepts(stream, RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE, 0));
  for (const uint32_t enable : {0x0du, 0x15u, 0x1fu}) {  // DPU_RDMA, DPU missing; a block of another chip
    stream.back() = encode({Target::Enable, reg::PC_OPERATION_ENABLE, enable});
    EXPECT_FALSE(accepts(stream)) << enable;
  }
}
TEST(Traps, SizesOfTheWriter) {
  const Stream stream = stream_of(layer());
  for (const Field f : {DPU_BS_OW_CFG_SIZE_E_0, DPU_BS_OW_CFG_SIZE_E_1, DPU_BS_OW_CFG_SIZE_E_2})
    EXPECT_FALSE(accepts(stream, f, value_of(stream, f) ^ 2));
  EXPECT_FALSE(accepts(stream, Field{reg::DPU_SURFACE_ADD}, 8 * 8 * 16));  // once the plane instead of twice
}
TEST(Traps, BanksOfFullyConnectedLayers) { EXPECT_FALSE(accepts(stream_of(layer()), CNA_CBUF_CON0_FC_DATA_BANK, 1)); }
TEST(Traps, PaddingStandsInAllLanes) {
  ConvLayer l = layer();
  l.depthwise = true;
  l.kernels = l.channels;
  EXPECT_EQ(value_of(stream_of(l), Field{reg::CNA_PAD_CON1}), 0x07070707u);
}
TEST(Traps, GroupsAreWhole) {
  ConvLayer l = layer();
  EXPECT_EQ(value_of(stream_of(l), CNA_WEIGHT_SIZE2_KERNELS), 64u);
  EXPECT_EQ(l.kernel().bytes(), 64 * 48);
  l.depthwise = true;
  l.kernels = l.channels;
  EXPECT_EQ(value_of(stream_of(l), CNA_DATA_SIZE1_CHANNELS), 64u);
}
TEST(Traps, ShiftsOfEitherSign) {
  ConvLayer l = layer();
  l.channel_multipliers.assign(static_cast<size_t>(l.kernels), 12345);
  l.channel_shift = 13;
  const Stream stream = stream_of(l);
  EXPECT_EQ(value_of(stream, DPU_BS_MUL_CFG_SHIFT), 13u);
  EXPECT_EQ(value_of(stream, DPU_DATA_FORMAT_BS_NEGATIVE_SHIFT), 13u);
  EXPECT_FALSE(accepts(stream, DPU_DATA_FORMAT_BS_NEGATIVE_SHIFT, 0));
}
TEST(Traps, PoolingWindowsStayInside) {
  PoolLayer l{.height = 9, .width = 9, .channels = 32, .out_height = 4, .out_width = 4};
  l.window = {.height = 2, .width = 2, .stride_y = 2, .stride_x = 2};
  const auto stream = pool_stream(l, 0x10000, 0x20000);
  ASSERT_TRUE(stream);
  EXPECT_EQ(value_of(*stream, PPU_DATA_CUBE_IN_WIDTH_WIDTH), 7u);  // the ninth column belongs to no window
  EXPECT_TRUE(accepts(*stream));
  EXPECT_FALSE(accepts(*stream, PPU_DATA_CUBE_OUT_WIDTH_WIDTH, 4));
}
TEST(Traps, ASingleColumnGetsABankMore) {
  const auto banks = [](int64_t height) { return value_of(stream_of(layer(height, 1, 64, 32)), CNA_CBUF_CON0_DATA_BANK); };
  EXPECT_EQ(banks(512), 2u);  // 512 entries fill a bank
  EXPECT_EQ(banks(513), 3u);
}
TEST(Traps, BandsOfASingleColumnLeaveABankFree) {
  const ConvLayer layers[]{layer(1000, 1, 512, 32), layer(700, 1, 1024, 32),
                           windowed(layer(500, 1, 640, 64), {.height = 3, .top = 1, .bottom = 1}), layer(300, 1, 16000, 32)};
  for (const ConvLayer& l : layers) {
    const auto streams = conv_streams(l, {});
    ASSERT_TRUE(streams) << streams.status().to_string();
    EXPECT_GT(streams->size(), 1u) << l.height;
    for (const Stream& s : *streams) {
      const uint32_t entries = value_of(s, CNA_DATA_SIZE0_HEIGHT) * value_of(s, CNA_CBUF_CON1_DATA_ENTRIES),
                     full = static_cast<uint32_t>(ceil_divide(entries, kBankEntries));
      EXPECT_LT(full, value_of(s, CNA_CBUF_CON0_DATA_BANK)) << l.height;
      EXPECT_TRUE(accepts(s)) << l.height;
      EXPECT_FALSE(accepts(s, CNA_CBUF_CON0_DATA_BANK, full)) << l.height;
    }
  }
}
TEST(Traps, RowsOfProductsComeInFours) {
  for (const ConvLayer& l : {layer(2000, 1, 64, 32), layer(1000, 1, 7 * 64, 32), layer(60, 1, 16000, 32)}) {
    const auto streams = conv_streams(l, {});
    ASSERT_TRUE(streams) << streams.status().to_string();
    EXPECT_GT(streams->size(), 1u) << l.height;
    for (const Stream& s : *streams) EXPECT_EQ(value_of(s, CNA_DATA_SIZE0_HEIGHT) % 4, 0u) << l.height;
  }
}
TEST(Traps, EveryWindowReadsTheInput) {
  const Window2d cases[]{{.top = 1, .bottom = 1, .left = 1, .right = 1},
                         {.bottom = 1},
                         {.right = 1},
                         {.height = 3, .width = 3, .top = 3, .bottom = 3, .left = 3, .right = 3},
                         {.height = 2, .width = 2, .top = 2, .bottom = 2, .left = 2, .right = 2},
                         {.height = 3, .width = 3, .bottom = 3, .right = 1},
                         {.height = 3, .width = 3, .stride_y = 2, .bottom = 6, .right = 3}};
  for (const ConvLayer& l : {layer(), depthwise(layer())})
    for (const Window2d& w : cases) {
      const auto streams = conv_streams(windowed(l, w), {});
      ASSERT_FALSE(streams) << w.height << " " << w.top << " " << w.bottom;
      EXPECT_EQ(streams.status().code(), Code::Unsupported) << streams.status().to_string();
    }
  const Window2d most{.height = 3, .width = 3, .dilation_y = 2, .dilation_x = 2, .top = 4, .bottom = 4, .left = 4, .right = 4};
  EXPECT_TRUE(accepts(stream_of(windowed(layer(), most))));
}
TEST(Traps, NobodyHasRunDepthwiseResultsOf32Bits) {
  ConvLayer l = layer(8, 8, 64, 64);
  l.has_bias = false;
  l.out = Precision::Int32;
  const Stream direct = stream_of(l);
  EXPECT_TRUE(accepts(direct));
  EXPECT_EQ(conv_streams(depthwise(l), {}).status().code(), Code::Unsupported);
  // What is particular to such results, in a depthwise stream.
  l.out = Precision::Int8;
  Stream stream = stream_of(depthwise(l));
  EXPECT_TRUE(accepts(stream));
  for (const Field f : {CORE_MISC_CFG_QD_EN, Field{reg::DPU_DATA_FORMAT}, Field{reg::DPU_BS_OW_CFG}, Field{reg::DPU_SURFACE_ADD},
                        Field{reg::DPU_OUT_CVT_SCALE}, Field{reg::DPU_OUT_CVT_SHIFT}, Field{reg::DPU_OUT_CVT_OFFSET}})
    stream = with(stream, f, value_of(direct, f));
  const auto task = decode_task(stream);
  ASSERT_TRUE(task);
  EXPECT_EQ(lint(*task), std::vector<std::string>{"no recipe for results of 32 bits of a depthwise convolution"});
  l.in = Precision::Half;
  l.out = Precision::Float;
  EXPECT_EQ(conv_streams(depthwise(l), {}).status().code(), Code::Unsupported);
}
TEST(Traps, MultipliersCarry) {
  const float just_below_one = std::nextafter(1.0f, 0.0f);
  const ScaleShift s = split_output_scale(just_below_one);
  EXPECT_EQ(s.scale, 0x4000);
  EXPECT_EQ(std::ldexp(static_cast<double>(s.scale), -static_cast<int>(s.shift)), 1.0);
}
TEST(Traps, PlanesLieAtTheirStride) {
  const Stream stream = stream_of(layer());
  EXPECT_EQ(value_of(stream, Field{reg::DPU_DST_SURF_STRIDE}), 8u * 8 * 16);
  EXPECT_FALSE(accepts(stream, Field{reg::DPU_DST_SURF_STRIDE}, 8 * 8 * 16 - 16));
}

}  // namespace
}  // namespace orknn::silicon
