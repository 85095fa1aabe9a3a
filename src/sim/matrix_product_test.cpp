// Products in layouts and shapes that no chip offers, against plain loops: padding of blocks, segments and groups of any size.
#include "sim/matrix_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace orknn::sim {
namespace {

struct Case {
  const char* name;
  int64_t rows, depth, columns, left_block, result_block;
  RightLayout right;
  int64_t group;
};

// Blocks that divide nothing evenly.
std::vector<Case> cases() {
  const auto blocks = [](int64_t depth, int64_t columns, int64_t block_columns, int64_t block_depth, int64_t segment) {
    return RightLayout{.depth = depth,
                       .columns = columns,
                       .row_major = false,
                       .block_columns = block_columns,
                       .block_depth = block_depth,
                       .segment = segment,
                       .high_nibble_first = true};
  };
  return {{"plain", 5, 37, 50, 37, 50, {.depth = 37, .columns = 50}, 37},
          {"one row", 1, 37, 50, 37, 50, {.depth = 37, .columns = 50}, 37},
          {"blocks", 35, 37, 50, 8, 4, blocks(37, 50, 16, 8, 0), 37},
          {"segments", 9, 100, 70, 16, 16, blocks(100, 70, 32, 16, 48), 100},
          {"by columns", 3, 41, 49, 41, 49, blocks(41, 49, 49, 41, 0), 41},
          {"groups", 17, 42, 97, 42, 97, {.depth = 42, .columns = 97}, 7}};
}

TEST(MatrixLayout, PlacesDifferAndLieInside) {
  for (const Case& c : cases()) {
    std::vector<int> seen(static_cast<size_t>(c.right.elements()));
    for (int64_t n = 0; n < c.columns; ++n)
      for (int64_t k = 0; k < c.depth; ++k) ++seen.at(static_cast<size_t>(c.right.place(k, n)));
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), c.depth * c.columns) << c.name;
    for (int64_t k = 0; k < c.depth; ++k)
      for (int64_t j = 0; j < c.right.run(k); ++j) EXPECT_EQ(c.right.place(k + j, 1), c.right.place(k, 1) + j) << c.name;
    const RowLayout rows{c.rows, c.columns, c.result_block};
    for (int64_t r = 0; r < c.rows; ++r)
      for (int64_t n = 0; n < c.columns; ++n) EXPECT_LT(rows.place(r, n), rows.elements()) << c.name;
  }
}

TEST(MatrixLayout, NibblesAreSigned) {
  uint8_t bytes[2] = {};
  for (bool high_first : {false, true})
    for (int8_t value = -8; value < 8; ++value)
      for (int64_t at = 0; at < 4; ++at) {
        set_nibble(bytes, at, high_first, value);
        EXPECT_EQ(nibble(bytes, at, high_first), value);
        EXPECT_EQ(nibble(bytes, at ^ 1, !high_first), value);
      }
  set_nibble(bytes, 0, false, 1);
  set_nibble(bytes, 1, false, 2);
  EXPECT_EQ(bytes[0], 0x21);
}

TEST(MatrixProduct, IsThatOfPlainLoops) {
  std::mt19937 random(7);
  ThreadPool pool(2);
  for (const Case& c : cases())
    for (DType right : {DType::Int8, DType::Int4}) {
      const bool small = right == DType::Int4;
      std::vector<int8_t> a(static_cast<size_t>(c.rows * c.depth)), b(static_cast<size_t>(c.depth * c.columns));
      for (int8_t& v : a) v = static_cast<int8_t>(random() % 256);
      for (int8_t& v : b) v = static_cast<int8_t>(static_cast<int>(random() % (small ? 16 : 256)) - (small ? 8 : 128));
      const RowLayout left{c.rows, c.depth, c.left_block}, result{c.rows, c.columns, c.result_block};
      std::vector<uint8_t> stored_a(static_cast<size_t>(left.elements())), stored_b(static_cast<size_t>(c.right.elements()));
      for (int64_t r = 0; r < c.rows; ++r)
        for (int64_t k = 0; k < c.depth; ++k)
          stored_a[static_cast<size_t>(left.place(r, k))] = static_cast<uint8_t>(a[static_cast<size_t>(r * c.depth + k)]);
      for (int64_t k = 0; k < c.depth; ++k)
        for (int64_t n = 0; n < c.columns; ++n) {
          const int8_t value = b[static_cast<size_t>(k * c.columns + n)];
          if (small)
            set_nibble(stored_b.data(), c.right.place(k, n), c.right.high_nibble_first, value);
          else
            stored_b[static_cast<size_t>(c.right.place(k, n))] = static_cast<uint8_t>(value);
        }
      const int64_t groups = c.depth / c.group;
      ProductScaling scaling;
      scaling.left_zero = -5;
      for (int64_t i = 0; i < groups * c.columns; ++i) {
        scaling.right_zero.push_back(static_cast<int>(random() % 15) - 7);
        if (groups > 1) scaling.right_scale.push_back(static_cast<float>(random() % 7 + 1) / 8);
      }
      MatrixProduct product(DType::Int8, right, c.depth, c.columns, c.group);
      ASSERT_TRUE(product.pack_left(stored_a.data(), left, LeftData::Copied, pool));
      ASSERT_TRUE(product.pack_right(stored_b.data(), c.right, scaling, pool));
      std::vector<float> y(static_cast<size_t>(result.elements()), NAN);
      ASSERT_TRUE(product.run(scaling, y.data(), DType::Float32, result, pool));
      for (int64_t r = 0; r < c.rows; ++r)
        for (int64_t n = 0; n < c.columns; ++n) {
          float total = 0;
          for (int64_t g = 0; g < groups; ++g) {
            const auto at = static_cast<size_t>(g * c.columns + n);
            int32_t sum = 0;
            for (int64_t k = g * c.group; k < (g + 1) * c.group; ++k)
              sum += (a[static_cast<size_t>(r * c.depth + k)] - scaling.left_zero) *
                     (b[static_cast<size_t>(k * c.columns + n)] - scaling.right_zero[at]);
            total += static_cast<float>(sum) * (groups > 1 ? scaling.right_scale[at] : 1);
          }
          ASSERT_EQ(y[static_cast<size_t>(result.place(r, n))], total) << c.name << " " << r << "," << n;
        }
    }
}

// Sums that are the results go where they belong at once, whole tiles of them: plain rows, fours of columns, and what is left
// over.
TEST(MatrixProduct, SumsAreResults) {
  std::mt19937 random(11);
  ThreadPool pool(2);
  for (int64_t rows : {2, 32, 40, 45, 144, 520})
    for (int64_t columns : {16, 48, 96, 116})
      for (int64_t left_block : {16, 70})
        for (int64_t result_block : {int64_t{4}, columns}) {
          const int64_t depth = 70;
          std::vector<int8_t> a(static_cast<size_t>(rows * depth)), b(static_cast<size_t>(depth * columns));
          for (int8_t& v : a) v = static_cast<int8_t>(random() % 256);
          for (int8_t& v : b) v = static_cast<int8_t>(random() % 256);
          const RowLayout left{rows, depth, left_block}, result{rows, columns, result_block};
          std::vector<int8_t> stored(static_cast<size_t>(left.elements()));
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t k = 0; k < depth; ++k)
              stored[static_cast<size_t>(left.place(r, k))] = a[static_cast<size_t>(r * depth + k)];
          ProductScaling scaling;
          scaling.left_zero = 3;
          MatrixProduct product(DType::Int8, DType::Int8, depth, columns, depth);
          ASSERT_TRUE(product.pack_left(stored.data(), left, LeftData::Copied, pool));
          ASSERT_TRUE(product.pack_right(b.data(), {.depth = depth, .columns = columns}, scaling, pool));
          constexpr int32_t kUntouched = INT32_MIN;
          std::vector<int32_t> y(static_cast<size_t>(result.elements()) + 16, kUntouched);
          ASSERT_TRUE(product.run(scaling, y.data(), DType::Int32, result, pool));
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t n = 0; n < columns; ++n) {
              int32_t sum = 0;
              for (int64_t k = 0; k < depth; ++k)
                sum += (a[static_cast<size_t>(r * depth + k)] - 3) * b[static_cast<size_t>(k * columns + n)];
              ASSERT_EQ(y[static_cast<size_t>(result.place(r, n))], sum)
                  << rows << "x" << columns << " in " << result_block << ": " << r << "," << n;
            }
          for (size_t i = static_cast<size_t>(result.elements()); i < y.size(); ++i) ASSERT_EQ(y[i], kUntouched);
        }
}

// Whole numbers, whose sums floats hold exactly: one pass over the depth and several, strips that are cut by rows and by columns.
TEST(MatrixProduct, FloatSumsAreResults) {
  std::mt19937 random(13);
  struct Shape {
    int64_t rows, depth, columns;
  };
  for (const Shape s :
       {Shape{1, 70, 50}, {8, 64, 16}, {40, 33, 48}, {45, 70, 116}, {520, 24, 96}, {72, 1700, 64}, {1100, 9, 512}})
    for (const int64_t left_block : {int64_t{8}, s.depth}) {
      const RowLayout left{s.rows, s.depth, left_block};
      std::vector<Half> a(static_cast<size_t>(left.elements())), b(static_cast<size_t>(s.depth * s.columns));
      std::vector<float> plain_a(static_cast<size_t>(s.rows * s.depth)), plain_b(b.size());
      for (int64_t r = 0; r < s.rows; ++r)
        for (int64_t k = 0; k < s.depth; ++k) {
          const auto value = static_cast<float>(static_cast<int>(random() % 17) - 8);
          plain_a[static_cast<size_t>(r * s.depth + k)] = value;
          a[static_cast<size_t>(left.place(r, k))] = Half(value);
        }
      for (size_t i = 0; i < b.size(); ++i) b[i] = Half(plain_b[i] = static_cast<float>(static_cast<int>(random() % 17) - 8));
      std::vector<float> sums(static_cast<size_t>(s.rows * s.columns));
      for (int64_t r = 0; r < s.rows; ++r)
        for (int64_t k = 0; k < s.depth; ++k)
          for (int64_t n = 0; n < s.columns; ++n)
            sums[static_cast<size_t>(r * s.columns + n)] +=
                plain_a[static_cast<size_t>(r * s.depth + k)] * plain_b[static_cast<size_t>(k * s.columns + n)];
      for (const int threads : {1, 3})
        for (const LeftData data : {LeftData::Copied, LeftData::Stays})
          for (const int64_t block : {int64_t{4}, s.columns})
            for (const int64_t offset : {0, 1}) {
              ThreadPool pool(threads);
              MatrixProduct product(DType::Float16, DType::Float16, s.depth, s.columns, s.depth);
              std::vector<Half> given = a;
              ASSERT_TRUE(product.pack_left(given.data(), left, data, pool));
              if (data == LeftData::Copied) std::ranges::fill(given, Half(1.0f));
              ASSERT_TRUE(product.pack_right(b.data(), {.depth = s.depth, .columns = s.columns}, {}, pool));
              const RowLayout layout{s.rows, s.columns, block};
              const AlignedPtr<float> memory(
                  static_cast<float*>(allocate_aligned(static_cast<size_t>(layout.elements() + offset + 16) * 4)));
              float* y = memory.get() + offset;
              std::fill_n(y, layout.elements() + 16, NAN);
              ASSERT_TRUE(product.run({}, y, DType::Float32, layout, pool));
              for (int64_t r = 0; r < s.rows; ++r)
                for (int64_t n = 0; n < s.columns; ++n)
                  ASSERT_EQ(y[layout.place(r, n)], sums[static_cast<size_t>(r * s.columns + n)])
                      << s.rows << "x" << s.depth << "x" << s.columns << " in " << block << " at " << offset << ": " << r << ","
                      << n;
              for (int64_t i = 0; i < 16; ++i) ASSERT_TRUE(std::isnan(y[layout.elements() + i]));
            }
    }
}

// A result that is too large for caches, at places that allow streaming and at others.
TEST(MatrixProduct, LargeResults) {
  std::mt19937 random(12);
  ThreadPool pool(2);
  constexpr int64_t kRows = 1024, kColumns = 528, kDepth = 8;
  std::vector<int8_t> a(kRows * kDepth), b(kDepth * kColumns);
  for (int8_t& v : a) v = static_cast<int8_t>(random() % 256);
  for (int8_t& v : b) v = static_cast<int8_t>(random() % 256);
  MatrixProduct product(DType::Int8, DType::Int8, kDepth, kColumns, kDepth);
  ASSERT_TRUE(product.pack_left(a.data(), {kRows, kDepth, kDepth}, LeftData::Copied, pool));
  ASSERT_TRUE(product.pack_right(b.data(), {.depth = kDepth, .columns = kColumns}, {}, pool));
  const AlignedPtr<int32_t> memory(static_cast<int32_t*>(allocate_aligned((kRows * kColumns + 16) * 4)));
  for (const int64_t block : {int64_t{4}, kColumns})
    for (const int64_t offset : {0, 4}) {
      int32_t* y = memory.get() + offset;
      const RowLayout layout{kRows, kColumns, block};
      ASSERT_TRUE(product.run({}, y, DType::Int32, layout, pool));
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t n = 0; n < kColumns; ++n) {
          int32_t sum = 0;
          for (int64_t k = 0; k < kDepth; ++k)
            sum += a[static_cast<size_t>(r * kDepth + k)] * b[static_cast<size_t>(k * kColumns + n)];
          ASSERT_EQ(y[layout.place(r, n)], sum) << block << " at " << offset << ": " << r << "," << n;
        }
    }
}

TEST(MatrixProduct, FingerprintsSeeEveryByte) {
  for (const size_t size : {size_t{1}, size_t{63}, size_t{512}, size_t{1500}}) {
    std::vector<std::byte> bytes(size + 1, std::byte{7});
    const std::span<std::byte> seen(bytes.data(), size);
    const uint64_t before = fingerprint(seen);
    for (std::byte& b : seen) {
      b ^= std::byte{1};
      EXPECT_NE(fingerprint(seen), before) << &b - bytes.data() << " of " << size;
      b ^= std::byte{1};
    }
    EXPECT_EQ(fingerprint(seen), before);
    bytes.back() = std::byte{8};
    EXPECT_EQ(fingerprint(seen), before);
    EXPECT_NE(fingerprint(bytes), before);
  }
}

}  // namespace
}  // namespace orknn::sim
