// Weights in fewer bytes: what comes back, how much shorter they are, and damaged sections.
#include "format/coded_weights.h"

#include <gtest/gtest.h>

#include <random>

namespace orknn::format {
namespace {
using ir::TensorData;

// Bell-shaped int8 values; every second one 0 when `sparse`.
TensorData int8_weights(int64_t count, bool sparse) {
  std::mt19937 random(7);
  std::normal_distribution<float> bell(0, 30);
  std::vector<int8_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(sparse && i % 2 ? int8_t{0} : static_cast<int8_t>(std::clamp(bell(random), -127.F, 127.F)));
  return TensorData::from<int8_t>({count}, values);
}

std::vector<std::byte> coded(const std::vector<TensorData>& tensors, WeightCollector& weights) {
  for (const TensorData& t : tensors) weights.add(t);
  return code_weights(weights);
}

TEST(CodedWeights, ComeBackUnchangedAndAreShorter) {
  std::vector<float> floats;
  std::mt19937 random(3);
  std::normal_distribution<float> bell(0, 1);
  for (int i = 0; i < 5000; ++i) floats.push_back(bell(random));
  const TensorData wide = TensorData::from<float>({5000}, floats);
  const std::vector<TensorData> tensors{int8_weights(10000, false),
                                        int8_weights(10001, true),
                                        ir::convert(wide.view(), DType::Float16),
                                        wide,
                                        TensorData::from<int8_t>({3}, std::vector<int8_t>{1, 2, 3}),
                                        TensorData::from<int8_t>({4000}, std::vector<int8_t>(4000, 5))};
  WeightCollector weights;
  const auto bytes = coded(tensors, weights);
  EXPECT_LT(bytes.size(), weights.section_bytes() * 9 / 10);
  const auto section = decode_weights(bytes);
  ASSERT_TRUE(section) << section.status().to_string();
  ASSERT_EQ(section->bytes.size(), weights.section_bytes());
  for (const WeightCollector::Piece& p : weights.pieces())
    EXPECT_TRUE(std::ranges::equal(section->bytes.subspan(p.offset, p.bytes.size()), p.bytes)) << p.offset;
}

TEST(CodedWeights, SparseOnesTakeLittleMoreThanHalf) {
  WeightCollector weights;
  const auto bytes = coded({int8_weights(64000, true)}, weights);
  EXPECT_LT(bytes.size(), 64000 * 6 / 10);
}

TEST(CodedWeights, NothingToCodeIsStoredPlainly) {
  std::mt19937 random(5);
  std::vector<uint8_t> noise;
  for (int i = 0; i < 4096; ++i) noise.push_back(static_cast<uint8_t>(random()));
  WeightCollector weights;
  const auto bytes = coded({TensorData::from<uint8_t>({4096}, noise)}, weights);
  EXPECT_LE(bytes.size(), 4096 + 64);
  ASSERT_TRUE(decode_weights(bytes));
  WeightCollector none;
  ASSERT_TRUE(decode_weights(code_weights(none)));
}

TEST(CodedWeights, DamageNeverReachesBeyondTheSection) {
  WeightCollector weights;
  const auto bytes = coded({int8_weights(3000, true), int8_weights(2000, false)}, weights);
  for (size_t at = 0; at < std::min<size_t>(bytes.size(), 400); ++at)
    for (const int change : {1, 0x80, 0xff}) {
      auto broken = bytes;
      broken[at] ^= static_cast<std::byte>(change);
      const auto section = decode_weights(broken);  // refused, or some values of the right number
      if (section) {
        EXPECT_LE(section->bytes.size(), 8 * bytes.size() + 128);
      }
    }
  for (size_t length = 0; length < bytes.size(); length += 37) (void)decode_weights(std::span(bytes).first(length));
}
}  // namespace
}  // namespace orknn::format
