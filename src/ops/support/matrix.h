// Matrix products with NumPy's rules for batches and vectors.
#pragma once

#include <algorithm>
#include <vector>

#include "base/threads.h"
#include "ir/op_def.h"

namespace orknn::ops {

// Integers are summed modulo 2^64, floats in double.
template <class T>
using ProductSum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

struct MatMulShape {
  int64_t rows = 1, depth = 1, columns = 1;
  std::vector<int64_t> a_offsets, b_offsets;  // per matrix of the batch, in elements
  ir::Dims output;                            // whole output shape

  int64_t macs() const { return static_cast<int64_t>(a_offsets.size()) * rows * depth * columns; }
};

// Fails when the shapes do not fit.
Result<MatMulShape> matmul_shape(std::span<const int64_t> a, std::span<const int64_t> b);
// Output shape of a product, symbols included.
Result<ir::Shape> matmul_output(const ir::Shape& a, const ir::Shape& b);

// Sums a [rows, depth] x b [depth, columns] row by row on the pool: calls store(row, sums) on some thread. The matrices are
// dense; A is the type of the sums.
template <class A, class X, class W, class Store>
void multiply(ThreadPool& pool, int64_t rows, int64_t depth, int64_t columns, const X* a, const W* b, Store&& store) {
  constexpr int64_t kRows = 4;  // each element of b is read once for so many rows
  const int64_t blocks = (rows + kRows - 1) / kRows;
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, kRows * depth * std::max<int64_t>(columns, 1)));
  pool.parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
    std::vector<A> sums(static_cast<size_t>(kRows * columns));
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kRows, count = std::min(kRows, rows - first);
      std::fill(sums.begin(), sums.end(), A{});
      A* s0 = sums.data();
      A *s1 = s0 + columns, *s2 = s1 + columns, *s3 = s2 + columns;
      for (int64_t k = 0; k < depth; ++k) {
        const W* from = b + k * columns;
        const auto factor = [&](int64_t r) { return r < count ? static_cast<A>(a[(first + r) * depth + k]) : A{}; };
        const A f0 = factor(0);
        if (count == 1) {
          for (int64_t j = 0; j < columns; ++j) s0[j] += f0 * static_cast<A>(from[j]);
          continue;
        }
        const A f1 = factor(1), f2 = factor(2), f3 = factor(3);
        for (int64_t j = 0; j < columns; ++j) {
          const A v = static_cast<A>(from[j]);
          s0[j] += f0 * v;
          s1[j] += f1 * v;
          s2[j] += f2 * v;
          s3[j] += f3 * v;
        }
      }
      for (int64_t r = 0; r < count; ++r) store(first + r, std::span<const A>(s0 + r * columns, static_cast<size_t>(columns)));
    }
  });
}

// A dense copy of the transpose of a [rows, columns] matrix.
template <class T>
std::vector<T> transposed(const T* from, int64_t rows, int64_t columns) {
  std::vector<T> to(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[static_cast<size_t>(c * rows + r)] = from[r * columns + c];
  return to;
}

// Checks that a shape, as far as it is known, is that of a batch of square matrices.
Status require_square(const ir::Shape& shape);

}  // namespace orknn::ops
