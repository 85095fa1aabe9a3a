// Which channels the weights of a layer join.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>

#include "base/threads.h"
#include "ops/facts.h"

namespace orknn::quantize {

// The weights of a Conv, ConvTranspose, Gemm or MatMul as they are stored: rows of columns of taps. A row belongs to a channel of
// one side of the layer, a column of it to a channel of the other.
struct WeightGrid {
  int64_t rows = 0, columns = 0, taps = 1;
  int64_t rows_per_group = 1;
  bool rows_are_outputs = true;

  WeightGrid(const ir::Node& n, const ir::Dims& w) : rows(w[0]), columns(w[1]), rows_per_group(std::max<int64_t>(w[0], 1)) {
    const ir::Weights order = ops::facts_of(n).weights;
    if (order == ir::Weights::Matrix) {
      rows_are_outputs = n.attributes.int_or("transB", 0) != 0;
      return;
    }
    rows_are_outputs = order != ir::Weights::InOut;
    for (size_t i = 2; i < w.size(); ++i) taps *= w[i];
    rows_per_group = std::max<int64_t>(w[0] / std::max<int64_t>(n.attributes.int_or("group", 1), 1), 1);
  }

  // The channel of the first column of a row.
  int64_t first_column(int64_t row) const { return row / rows_per_group * columns; }
  int64_t outputs() const { return rows_are_outputs ? rows : channels_of_columns(); }
  int64_t inputs() const { return rows_are_outputs ? channels_of_columns() : rows; }

 private:
  int64_t channels_of_columns() const { return rows > 0 ? first_column(rows - 1) + columns : 0; }
};

// Calls f(index, output channel, input channel) for all weights in storage order.
template <class F>
void visit_weights(const ir::Node& n, const ir::Dims& w, F&& f) {
  const WeightGrid g(n, w);
  int64_t at = 0;
  for (int64_t row = 0; row < g.rows; ++row) {
    const int64_t first = g.first_column(row);
    for (int64_t column = first; column < first + g.columns; ++column)
      for (int64_t t = 0; t < g.taps; ++t) g.rows_are_outputs ? f(at++, row, column) : f(at++, column, row);
  }
}

// Adds term(index, channel of the row, channel of the column) of every weight to the sum of its row's channel: to each in storage
// order, so that sums do not depend on threads. Some rows take turns, because each addition waits for the one before.
template <class Term>
void sum_rows(const WeightGrid& g, std::span<double> sums, Term&& term) {
  constexpr int64_t kTogether = 4;
  const int64_t row_weights = g.columns * g.taps, grain = std::max<int64_t>(16, (1 << 17) / std::max<int64_t>(row_weights, 1));
  const auto add = [&]<int64_t kRows>(int64_t row, std::integral_constant<int64_t, kRows>) {
    double sum[kRows];
    int64_t first[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      sum[r] = sums[static_cast<size_t>(row + r)];
      first[r] = g.first_column(row + r);
    }
    int64_t at = row * row_weights;
    for (int64_t column = 0; column < g.columns; ++column)
      for (int64_t t = 0; t < g.taps; ++t, ++at)
        for (int64_t r = 0; r < kRows; ++r) sum[r] += term(at + r * row_weights, row + r, first[r] + column);
    std::copy_n(sum, kRows, sums.begin() + row);
  };
  ThreadPool::shared().parallel_for(g.rows, grain, [&](int64_t begin, int64_t end) {
    int64_t row = begin;
    for (; row + kTogether <= end; row += kTogether) add(row, std::integral_constant<int64_t, kTogether>{});
    for (; row < end; ++row) add(row, std::integral_constant<int64_t, 1>{});
  });
}

// Calls add_part(row, first column, columns, sums) for all rows and columns, where `sums` are those of the columns' channels: for
// each column in the order of the rows, so that sums do not depend on threads.
template <class AddPart>
void sum_columns(const WeightGrid& g, std::span<double> sums, AddPart&& add_part) {
  const int64_t grain = std::max<int64_t>(16, (1 << 17) / std::max<int64_t>(g.rows * g.taps, 1));
  ThreadPool::shared().parallel_for(g.columns, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < g.rows; ++row) add_part(row, begin, end - begin, sums.data() + g.first_column(row) + begin);
  });
}

}  // namespace orknn::quantize
