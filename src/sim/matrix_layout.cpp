#include "sim/matrix_layout.h"

#include <algorithm>

namespace orknn::sim {

int64_t RightLayout::segment_elements(int64_t rows) const {
  return blocks_of(columns, block_columns) * blocks_of(rows, block_depth) * block_columns * block_depth;
}

int64_t RightLayout::elements() const {
  if (row_major) return depth * columns;
  const int64_t whole = depth / segment_rows(), rest = depth % segment_rows();
  return whole * segment_elements(segment_rows()) + (rest > 0 ? segment_elements(rest) : 0);
}

int64_t RightLayout::place(int64_t k, int64_t column) const {
  if (row_major) return k * columns + column;
  const int64_t which = k / segment_rows(), in_segment = k % segment_rows(),
                rows = std::min(segment_rows(), depth - which * segment_rows());
  const int64_t block = column / block_columns * blocks_of(rows, block_depth) + in_segment / block_depth;
  return which * segment_elements(segment_rows()) + (block * block_columns + column % block_columns) * block_depth +
         in_segment % block_depth;
}

int64_t RightLayout::run(int64_t k) const {
  if (row_major) return 1;
  const int64_t in_segment = k % segment_rows();
  return std::min({block_depth - in_segment % block_depth, segment_rows() - in_segment, depth - k});
}

}  // namespace orknn::sim
