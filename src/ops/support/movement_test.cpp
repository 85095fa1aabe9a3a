// Strided copies of every element size against an element by element walk: whole squares, rests, repeated and reversed axes.
#include "ops/support/movement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace orknn::ops {
namespace {

void check(const CopyAxes& axes, int64_t from_offset, size_t bytes) {
  int64_t count = 1, low = from_offset, high = from_offset;
  for (const CopyAxis& a : axes) {
    count *= a.extent;
    (a.from_stride < 0 ? low : high) += (a.extent - 1) * a.from_stride;
  }
  ASSERT_GE(low, 0);
  std::vector<std::byte> source(static_cast<size_t>(high + 1) * bytes), expected(static_cast<size_t>(count) * bytes);
  uint32_t state = 1;
  for (std::byte& b : source) b = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, from = from_offset, to = 0;
    for (size_t i = axes.size(); i-- > 0; rest /= axes[i].extent) {
      from += rest % axes[i].extent * axes[i].from_stride;
      to += rest % axes[i].extent * axes[i].to_stride;
    }
    std::memcpy(offset_by(static_cast<void*>(expected.data()), to, bytes),
                offset_by(static_cast<const void*>(source.data()), from, bytes), bytes);
  }
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::vector<std::byte> found(expected.size());
    copy_strided(axes, offset_by(static_cast<const void*>(source.data()), from_offset, bytes), found.data(), bytes, pool);
    EXPECT_EQ(found, expected) << bytes << " bytes, " << threads << " threads";
  }
}

TEST(Movement, PermutesElementsOfEverySize) {
  for (size_t bytes : {1u, 2u, 4u, 8u})
    for (const ir::Dims& dims :
         {ir::Dims{1, 64, 80}, {2, 16, 33}, {3, 37, 70}, {5, 3, 200}, {64, 64, 4}, {2, 2, 2}, {2, 5000, 3}}) {
      const ir::Dims strides = ir::strides_of(dims);
      std::vector<size_t> order{0, 1, 2};
      do {
        ir::Dims out, from;
        for (size_t axis : order) {
          out.push_back(dims[axis]);
          from.push_back(strides[axis]);
        }
        check(into_dense(out, from), 0, bytes);
      } while (std::next_permutation(order.begin(), order.end()));
    }
}

TEST(Movement, RepeatsAndReverses) {
  for (size_t bytes : {1u, 2u, 4u, 8u}) {
    check(into_dense(ir::Dims{7, 100}, ir::Dims{1, 0}), 0, bytes);  // one value along the last axis
    check(into_dense(ir::Dims{7, 100}, ir::Dims{0, 1}), 0, bytes);
    check(into_dense(ir::Dims{3, 50, 2}, ir::Dims{2, 0, 1}), 0, bytes);  // pairs
    check(into_dense(ir::Dims{40, 50}, ir::Dims{50, -1}), 49, bytes);
    check(into_dense(ir::Dims{40, 50}, ir::Dims{1, -40}), 40 * 49, bytes);  // transposed and reversed
    check(into_dense(ir::Dims{40, 25}, ir::Dims{1, 80}), 0, bytes);
  }
}

}  // namespace
}  // namespace orknn::ops
