// Determinant of each square matrix in a batch, by elimination with row pivots.
#include <cmath>
#include <vector>

#include "ops/support/floating.h"
#include "ops/support/matrix.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  std::optional<Shape> out;
  if (const Shape* x = c.shape(0)) {
    ORKNN_TRY(require_square(*x));
    out = Shape(x->begin(), x->end() - 2);
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

double determinant(std::vector<double> m, size_t n) {
  double result = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t r = k + 1; r < n; ++r)
      if (std::abs(m[r * n + k]) > std::abs(m[pivot * n + k])) pivot = r;
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      for (size_t i = 0; i < n; ++i) std::swap(m[pivot * n + i], m[k * n + i]);
      result = -result;
    }
    result *= m[k * n + k];
    for (size_t r = k + 1; r < n; ++r) {
      const double factor = m[r * n + k] / m[k * n + k];
      for (size_t i = k; i < n; ++i) m[r * n + i] -= factor * m[k * n + i];
    }
  }
  return result;
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const int64_t n = x.dims.back();
  const std::span<const int64_t> dims = x.dims.first(x.dims.size() - 2);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < y.count(); ++i) {
      const T* from = x.as<T>() + i * n * n;
      y.as<T>()[i] = static_cast<T>(determinant(std::vector<double>(from, from + n * n), static_cast<size_t>(n)));
    }
    return Status();
  });
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims>) {
  return {.element_ops = inputs[0].empty() ? 0 : element_count(inputs[0]) * inputs[0].back() / 3};
}
}  // namespace

std::span<const OpDef> det() {
  static const OpDef def{.name = "Det", .summary = "determinant", .infer = infer, .run = run, .cost = cost};
  return {&def, 1};
}
}  // namespace orknn::ops
