#include "ir/packed.h"

#include <gtest/gtest.h>

namespace orknn::ir {
namespace {

struct Case {
  const char* name;
  DType type;
  Dims dims, block;
};

const Case kCases[] = {
    {"one scale", DType::Int8, {3, 5}, {3, 5}},
    {"rows", DType::Int8, {3, 2, 2}, {1, 2, 2}},
    {"columns", DType::Int4, {4, 3}, {4, 1}},
    {"groups of uneven length", DType::Int4, {2, 7, 1, 3}, {1, 3, 1, 3}},
    {"middle axis", DType::Int8, {2, 3, 5}, {2, 1, 5}},
    {"outer and inner", DType::Int4, {3, 2, 3}, {1, 2, 2}},
    {"a number", DType::Int4, {}, {}},
    {"empty", DType::Int8, {0, 4}, {1, 4}},
};

TEST(Packed, ValuesAreIntegersTimesTheScaleOfTheirBlock) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto counts = block_counts(c.dims, c.block);
    ASSERT_TRUE(counts);
    const int64_t elements = element_count(c.dims), limit = c.type == DType::Int4 ? 8 : 128;
    std::vector<int8_t> integers;
    for (int64_t i = 0; i < elements; ++i) integers.push_back(static_cast<int8_t>(i * 37 % (2 * limit) - limit));
    std::vector<float> scales;
    for (int64_t i = 0; i < element_count(*counts); ++i) scales.push_back(0.1f * static_cast<float>(i + 1));
    const auto form = pack(c.type, c.dims, c.block, integers, scales);
    EXPECT_EQ(form->integers.bytes(), packed_integer_bytes(c.type, elements));
    const TensorData value = unpack(form, DType::Float32), half = unpack(form, DType::Float16);
    EXPECT_EQ(value.packed(), form);
    EXPECT_EQ(value.dims(), c.dims);
    for (int64_t i = 0; i < elements; ++i) {
      int64_t block = 0, rest = i, factor = 1;
      for (size_t k = c.dims.size(); k-- > 0;) {
        block += rest % c.dims[k] / c.block[k] * factor;
        rest /= c.dims[k];
        factor *= (*counts)[k];
      }
      const float wanted = static_cast<float>(integers[static_cast<size_t>(i)]) * scales[static_cast<size_t>(block)];
      EXPECT_EQ(value.as<float>()[i], wanted) << i;
      EXPECT_EQ(half.as<Half>()[i].bits, float_to_half(wanted)) << i;
    }
  }
}

TEST(Packed, BlocksHaveToFit) {
  EXPECT_FALSE(block_counts(Dims{2, 3}, Dims{1}));
  EXPECT_FALSE(block_counts(Dims{2, 3}, Dims{0, 1}));
  EXPECT_FALSE(block_counts(Dims{2, 3}, Dims{1, 4}));
  EXPECT_TRUE(block_counts(Dims{0}, Dims{1}));
}

TEST(Packed, OtherValuesForgetTheForm) {
  const int8_t integers[] = {1, 2, 3, 4};
  const float scales[] = {2};
  const TensorData value = unpack(pack(DType::Int8, {2, 2}, {2, 2}, integers, scales), DType::Float32);
  EXPECT_EQ(stored_bytes(value), 8u);
  EXPECT_FALSE(value.reshaped({4}).packed());
  EXPECT_FALSE(convert(value.view(), DType::Float16).packed());
}
}  // namespace
}  // namespace orknn::ir
