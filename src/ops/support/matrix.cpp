#include "ops/support/matrix.h"

namespace orknn::ops {
using namespace ir;

Result<Shape> matmul_output(const Shape& a, const Shape& b) {
  if (a.empty() || b.empty())
    return shape_mismatch("a matrix product takes no scalars").found(to_string(a) + " x " + to_string(b));
  const Dim& a_depth = a.back();
  const Dim& b_depth = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (a_depth.is_known() && b_depth.is_known() && a_depth.value() != b_depth.value())
    return shape_mismatch("inner extents of the product differ")
        .expected(a_depth.to_string())
        .found(b_depth.to_string() + " in " + to_string(a) + " x " + to_string(b));
  const auto leading = [](const Shape& s) { return s.size() > 2 ? Shape(s.begin(), s.end() - 2) : Shape(); };
  ORKNN_TRY_ASSIGN(Shape out, broadcast(leading(a), leading(b)));
  if (a.size() > 1) out.push_back(a[a.size() - 2]);
  if (b.size() > 1) out.push_back(b.back());
  return out;
}

Result<MatMulShape> matmul_shape(std::span<const int64_t> a, std::span<const int64_t> b) {
  ORKNN_TRY_ASSIGN(const Shape shape, matmul_output(to_shape(a), to_shape(b)));
  MatMulShape s;
  s.output = *to_dims(shape);
  s.depth = a.back();
  if (a.size() > 1) s.rows = a[a.size() - 2];
  if (b.size() > 1) s.columns = b.back();
  const auto batch =
      std::span<const int64_t>(s.output).first(std::max(a.size(), b.size()) > 2 ? std::max(a.size(), b.size()) - 2 : 0);
  const auto offsets = [&](std::span<const int64_t> dims, int64_t matrix) {
    // Walks the batch axes from the last; an axis the operand lacks or has once repeats what is there.
    std::vector<int64_t> out{0};
    int64_t stride = matrix;
    for (size_t i = batch.size(); i-- > 0;) {
      const size_t from_end = batch.size() - i + 2;
      const int64_t extent = from_end <= dims.size() ? dims[dims.size() - from_end] : 1;
      std::vector<int64_t> next;
      next.reserve(out.size() * static_cast<size_t>(batch[i]));
      for (int64_t j = 0; j < batch[i]; ++j)
        for (int64_t o : out) next.push_back(o + (extent == 1 ? 0 : j * stride));
      out = std::move(next);
      stride *= extent;
    }
    return out;
  };
  ORKNN_TRY(checked_element_count(s.output).status());
  s.a_offsets = offsets(a, s.rows * s.depth);
  s.b_offsets = offsets(b, s.depth * s.columns);
  return s;
}

Status require_square(const Shape& shape) {
  const size_t rank = shape.size();
  if (rank < 2 ||
      (shape[rank - 1].is_known() && shape[rank - 2].is_known() && shape[rank - 1].value() != shape[rank - 2].value()))
    return shape_mismatch("input 0 is not a batch of square matrices").expected("[..., M, M]").found(to_string(shape));
  return {};
}
}  // namespace orknn::ops
