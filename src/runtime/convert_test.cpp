// Feeding and fetching: every type, both axis orders, normalization, quantization.
#include "runtime/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace orknn::runtime {
namespace {
using ir::Layout;

struct Fixture {
  format::Port port;
  ir::Tensor tensor;
};

Fixture picture(DType dtype) {
  Fixture f;
  f.port.layout = Layout::NCHW;
  f.tensor.name = "x";
  f.tensor.dtype = dtype;
  f.tensor.shape = ir::Shape{2, 3, 1, 2};
  return f;
}

template <class T>
InputData data_of(const std::vector<T>& values, Layout layout) {
  return {.dtype = dtype_of<T>(), .data = values.data(), .bytes = values.size() * sizeof(T), .layout = layout};
}

std::vector<double> converted(const Fixture& f, const InputData& data) {
  auto value = convert_input(f.port, f.tensor, data, ThreadPool::shared());
  EXPECT_TRUE(value) << value.status().to_string();
  return value ? ir::to_doubles(value->view()) : std::vector<double>();
}

// Element (n, c, p) is n * 100 + c * 10 + p, in either order.
template <class T>
std::vector<T> numbers(Layout layout) {
  std::vector<T> out;
  for (int n = 0; n < 2; ++n)
    for (int a = 0; a < (layout == Layout::NCHW ? 3 : 2); ++a)
      for (int b = 0; b < (layout == Layout::NCHW ? 2 : 3); ++b)
        out.push_back(static_cast<T>(layout == Layout::NCHW ? n * 100 + a * 10 + b : n * 100 + b * 10 + a));
  return out;
}
const std::vector<double> kNchw{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121};

// Two pictures of three channels, one row and two pixels, with rows and pictures farther apart than they are long.
TEST(ConvertInput, PaddedRowsPicturesAndBlocks) {
  const Fixture f = picture(DType::Float32);
  constexpr int kRow = 5, kRows = 3;
  std::vector<uint8_t> pitched(2 * kRows * kRow * 3, 99);
  std::vector<uint8_t> blocks(2 * 2 * 2 * 2, 99);  // n, block, pixel, lane
  for (int n = 0; n < 2; ++n)
    for (int p = 0; p < 2; ++p)
      for (int c = 0; c < 3; ++c) {
        const auto value = static_cast<uint8_t>(n * 100 + c * 10 + p);
        pitched[static_cast<size_t>((n * kRows * kRow + p) * 3 + c)] = value;
        blocks[static_cast<size_t>(((n * 2 + c / 2) * 2 + p) * 2 + c % 2)] = value;
      }
  InputData data = data_of(pitched, Layout::NHWC);
  data.row_pixels = kRow;
  data.picture_rows = kRows;
  EXPECT_EQ(converted(f, data), kNchw);
  data.bytes = (kRows * kRow + kRow) * 3;  // nothing is needed after the last picture's rows
  EXPECT_EQ(converted(f, data), kNchw);
  --data.bytes;
  EXPECT_FALSE(convert_input(f.port, f.tensor, data, ThreadPool::shared()));
  data = data_of(blocks, Layout::NHWC);
  data.lanes = 2;
  EXPECT_EQ(converted(f, data), kNchw);
}

TEST(ConvertOutput, OtherLayoutsAndBlocks) {
  const Fixture f = picture(DType::Int32);
  const std::vector<int32_t> nchw{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121};
  const ir::Dims dims{2, 3, 1, 2};
  std::vector<float> nhwc(12), blocks(16, 99.f);
  OutputConverter(f.port, f.tensor, dims, {.dtype = DType::Float32, .layout = Layout::NHWC})
      .run({DType::Int32, dims, nchw.data()}, nhwc.data(), ThreadPool::shared());
  EXPECT_EQ(nhwc, (std::vector<float>{0, 10, 20, 1, 11, 21, 100, 110, 120, 101, 111, 121}));
  OutputConverter blocked(f.port, f.tensor, dims, {.dtype = DType::Float32, .lanes = 2});
  EXPECT_EQ(blocked.bytes(), blocks.size() * sizeof(float));
  blocked.run({DType::Int32, dims, nchw.data()}, blocks.data(), ThreadPool::shared());
  EXPECT_EQ(blocks, (std::vector<float>{0, 10, 1, 11, 20, 0, 21, 0, 100, 110, 101, 111, 120, 0, 121, 0}));
}

TEST(ConvertInput, EveryTypeInEitherOrder) {
  for (DType to : {DType::Float32, DType::Float16, DType::Int32, DType::Int64, DType::UInt8}) {
    const Fixture f = picture(to);
    for (Layout layout : {Layout::NCHW, Layout::NHWC}) {
      EXPECT_EQ(converted(f, data_of(numbers<uint8_t>(layout), layout)), kNchw);
      EXPECT_EQ(converted(f, data_of(numbers<float>(layout), layout)), kNchw);
      EXPECT_EQ(converted(f, data_of(numbers<double>(layout), layout)), kNchw);
      EXPECT_EQ(converted(f, data_of(numbers<Half>(layout), layout)), kNchw);
      EXPECT_EQ(converted(f, data_of(numbers<int64_t>(layout), layout)), kNchw);
    }
  }
}

TEST(ConvertInput, AModelInNhwcTakesNchwToo) {
  Fixture f = picture(DType::Float32);
  f.port.layout = Layout::NHWC;
  f.tensor.shape = ir::Shape{2, 1, 2, 3};
  const std::vector<float> nhwc = numbers<float>(Layout::NHWC);
  const std::vector<double> expected(nhwc.begin(), nhwc.end());
  EXPECT_EQ(converted(f, data_of(nhwc, Layout::NHWC)), expected);
  EXPECT_EQ(converted(f, data_of(numbers<float>(Layout::NCHW), Layout::NCHW)), expected);
}

TEST(ConvertInput, NormalizesPixelsAndFloatsAlike) {
  Fixture f = picture(DType::Float32);
  f.port.mean = {1, 2, 3};
  f.port.std = {2, 3, 7};
  std::vector<double> expected;
  for (size_t i = 0; i < kNchw.size(); ++i) {
    const size_t c = i / 2 % 3;
    expected.push_back((static_cast<float>(kNchw[i]) - f.port.mean[c]) / f.port.std[c]);
  }
  for (Layout layout : {Layout::NCHW, Layout::NHWC}) {
    EXPECT_EQ(converted(f, data_of(numbers<uint8_t>(layout), layout)), expected);
    EXPECT_EQ(converted(f, data_of(numbers<float>(layout), layout)), expected);
  }
  const std::vector<uint8_t> pixels = numbers<uint8_t>(Layout::NCHW);
  InputData raw = data_of(pixels, Layout::NCHW);
  raw.pass_through = true;
  EXPECT_EQ(converted(f, raw), kNchw);
}

TEST(ConvertInput, LargePicturesUseTheTableAndAgree) {
  Fixture f = picture(DType::Float16);
  f.tensor.shape = ir::Shape{1, 3, 40, 40};
  f.port.mean = {123.675f, 116.28f, 103.53f};
  f.port.std = {58.395f, 57.12f, 57.375f};
  std::vector<uint8_t> pixels(3 * 40 * 40);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  const std::vector<float> floats(pixels.begin(), pixels.end());
  for (Layout layout : {Layout::NCHW, Layout::NHWC})
    EXPECT_EQ(converted(f, data_of(pixels, layout)), converted(f, data_of(floats, layout)));
}

TEST(ConvertInput, QuantizesWithRoundHalfToEven) {
  Fixture f = picture(DType::Int8);
  f.tensor.quant = ir::QuantParams{{2.0f}, {-3}, -1, {}, {}};
  f.tensor.shape = ir::Shape{1, 1, 2, 4};
  const std::vector<float> x{0, 1, 3, 5, -1, 1000, -1000, 7.1f};
  EXPECT_EQ(converted(f, data_of(x, Layout::NCHW)), (std::vector<double>{-3, -3, -1, -1, -3, 127, -128, 1}));
}

// Long rows are quantized in groups: ties, neighbours of ties, infinities and what is no number are where they are in doubles.
TEST(ConvertInput, QuantizesGroupsAsSingleValues) {
  Fixture f = picture(DType::Int8);
  for (const float scale : {2.0f, 0.1f, 0.0173f, 1e-30f}) {
    f.tensor.quant = ir::QuantParams{{scale}, {-3}, -1, {}, {}};
    std::vector<float> x;
    for (int i = -600; i < 600; ++i)
      for (const float step : {0.f, 0.25f, 0.5f}) {
        const float at = (static_cast<float>(i) / 4 + step) * scale;
        x.insert(x.end(), {at, std::nextafter(at, 1e9f), std::nextafter(at, -1e9f)});
      }
    for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 1e38f, -1e38f, 1e-42f})
      for (int i = 0; i < 100; ++i) x.push_back(i % 9 == 0 ? odd : static_cast<float>(i) * scale);
    f.tensor.shape = ir::Shape{1, 1, 1, static_cast<int64_t>(x.size())};
    const std::vector<double> y = converted(f, data_of(x, Layout::NCHW));
    ASSERT_EQ(y.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double q = std::isnan(x[i]) ? 0 : std::clamp(static_cast<double>(x[i]) / scale, -125.0, 130.0);
      EXPECT_EQ(y[i], std::nearbyint(q) - 3) << x[i] << " / " << scale;
    }
  }
}

TEST(ConvertInput, AnyNonZeroByteIsTrue) {
  Fixture f = picture(DType::Bool);
  f.tensor.shape = ir::Shape{4};
  const std::vector<uint8_t> bytes{0, 1, 2, 255};
  InputData data = data_of(bytes, Layout::Undefined);
  data.dtype = DType::Bool;
  EXPECT_EQ(converted(f, data), (std::vector<double>{0, 1, 1, 1}));
}

TEST(ConvertInput, DataMayLieAnywhere) {
  const Fixture f = picture(DType::Float32);
  for (Layout layout : {Layout::NCHW, Layout::NHWC}) {
    const std::vector<float> values = numbers<float>(layout);
    std::vector<char> shifted(values.size() * 4 + 1);
    std::memcpy(shifted.data() + 1, values.data(), values.size() * 4);
    EXPECT_EQ(converted(f, {.dtype = DType::Float32, .data = shifted.data() + 1, .bytes = values.size() * 4, .layout = layout}),
              kNchw);
  }
}

TEST(ConvertInput, Refusals) {
  const Fixture f = picture(DType::Float32);
  const std::vector<float> values(11);
  EXPECT_EQ(convert_input(f.port, f.tensor, data_of(values, Layout::NCHW), ThreadPool::shared()).status().code(),
            Code::InvalidArgument);
  const std::vector<float> enough(12);
  InputData data = data_of(enough, Layout::NCHW);
  const ir::Dims wrong{2, 3, 2, 1};
  data.dims = wrong;
  EXPECT_EQ(convert_input(f.port, f.tensor, data, ThreadPool::shared()).status().code(), Code::InvalidArgument);
}

TEST(ConvertInput, OpenExtentsComeFromTheData) {
  Fixture f = picture(DType::Float32);
  f.tensor.shape = ir::Shape{ir::Dim::symbol("n"), 3, 1, 2};
  const std::vector<float> values = numbers<float>(Layout::NHWC);
  InputData data = data_of(values, Layout::NHWC);
  const ir::Dims dims{2, 1, 2, 3};
  data.dims = dims;
  EXPECT_EQ(converted(f, data), kNchw);
  EXPECT_FALSE(convert_input(f.port, f.tensor, data_of(values, Layout::NHWC), ThreadPool::shared()));
}

TEST(ConvertOutput, QuantizedValuesBecomeReal) {
  ir::Tensor t;
  t.dtype = DType::Int8;
  t.quant = ir::QuantParams{{0.5f, 2.0f}, {1, -1}, 0, {}, {}};
  const std::vector<int8_t> q{1, 3, -1, 4};
  const ir::Dims dims{2, 2};
  float out[4];
  convert_output(t, {DType::Int8, dims, q.data()}, DType::Float32, out, ThreadPool::shared());
  EXPECT_EQ(std::vector<float>(out, out + 4), (std::vector<float>{0, 1, 0, 10}));
  int8_t raw[4];
  convert_output(t, {DType::Int8, dims, q.data()}, DType::Int8, raw, ThreadPool::shared());
  EXPECT_EQ(std::vector<int8_t>(raw, raw + 4), q);
}
}  // namespace
}  // namespace orknn::runtime
