// Patterns of sparse weights, who may use them, and the size of compressed ones.
#include "compile/weight_forms.h"

#include <gtest/gtest.h>

#include <functional>

namespace orknn::compile {
namespace {
using format::Sparsity;

// [out, in, 3, 3] weights; `keep` says which of each 4x4 block of channels are not zero.
ir::TensorData weights(DType type, int64_t out, int64_t in, const std::function<bool(int64_t o, int64_t i)>& keep) {
  ir::TensorData data = ir::TensorData::zeros(type, {out, in, 3, 3});
  auto* bytes = static_cast<std::byte*>(data.mutable_data());
  const int64_t size = static_cast<int64_t>(dtype_bytes(type));
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i)
      for (int64_t t = 0; t < 9; ++t)
        if (keep(o % 4, i % 4)) bytes[((o * in + i) * 9 + t) * size] = std::byte{3};
  return data;
}

TEST(WeightForms, PatternsAreRecognized) {
  for (DType type : {DType::Int8, DType::Float32}) {
    EXPECT_EQ(sparsity_of(weights(type, 32, 32, [](int64_t, int64_t) { return true; })), Sparsity::None);
    EXPECT_EQ(sparsity_of(weights(type, 32, 32, [](int64_t o, int64_t i) { return o < 3 && i % 2 == 0; })), Sparsity::Inputs);
    EXPECT_EQ(sparsity_of(weights(type, 32, 32, [](int64_t o, int64_t i) { return o > 1 && i < 3; })), Sparsity::Outputs);
    EXPECT_EQ(sparsity_of(weights(type, 32, 32, [](int64_t o, int64_t i) { return o < 2 && i < 2; })), Sparsity::Both);
    EXPECT_EQ(sparsity_of(weights(type, 32, 32, [](int64_t o, int64_t i) { return o < 3 && i < 3; })), Sparsity::None);
  }
  EXPECT_EQ(sparsity_of(weights(DType::Int8, 6, 32, [](int64_t, int64_t) { return false; })), Sparsity::None)
      << "no multiple of four";
}

TEST(WeightForms, ANegativeZeroIsZero) {
  ir::TensorData data = ir::TensorData::zeros(DType::Float32, {4, 4});
  for (int i = 0; i < 16; ++i) static_cast<float*>(data.mutable_data())[i] = -0.0f;
  EXPECT_EQ(sparsity_of(data), Sparsity::Both);
}

TEST(WeightForms, LimitsOfSparseKernels) {
  const platform::Platform &sparse = *platform::find("rk3576"), &dense = *platform::find("rk3588");
  Window w;
  w.in_channels = w.out_channels = 64;
  EXPECT_TRUE(can_be_sparse(sparse, w, DType::Int8));
  EXPECT_FALSE(can_be_sparse(dense, w, DType::Int8));
  w.out_channels = 80;
  EXPECT_FALSE(can_be_sparse(sparse, w, DType::Int8)) << "no multiple of 32";
  w.out_channels = w.group = 64;
  EXPECT_FALSE(can_be_sparse(sparse, w, DType::Int8)) << "groups";
  EXPECT_EQ(work_left(Sparsity::None), 1);
  EXPECT_EQ(work_left(Sparsity::Outputs), 0.5);
  EXPECT_EQ(work_left(Sparsity::Both), 0.25);
}

TEST(WeightForms, CompressionLeavesZerosOut) {
  const ir::TensorData half = weights(DType::Int8, 32, 32, [](int64_t, int64_t i) { return i % 2 == 0; });
  EXPECT_EQ(compressed_bytes(half, 32 * 32 * 9, 1), 32u * 32 * 9 / 2 + 32 * 32 * 9 / 8);
}

}  // namespace
}  // namespace orknn::compile
