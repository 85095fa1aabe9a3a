// Inverse of each square matrix in a batch, by elimination with row pivots. A singular matrix gives infinities, not an error:
// which matrices arrive is known only when the network runs.
#include <cmath>
#include <limits>
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
    out = *x;
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

// `m` becomes the unit matrix while `inverse`, which begins as one, becomes the inverse.
void invert(std::vector<double>& m, std::vector<double>& inverse, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t r = k + 1; r < n; ++r)
      if (std::abs(m[r * n + k]) > std::abs(m[pivot * n + k])) pivot = r;
    if (m[pivot * n + k] == 0) {
      inverse.assign(inverse.size(), std::numeric_limits<double>::infinity());
      return;
    }
    for (size_t i = 0; i < n; ++i) {
      std::swap(m[pivot * n + i], m[k * n + i]);
      std::swap(inverse[pivot * n + i], inverse[k * n + i]);
    }
    const double scale = 1 / m[k * n + k];
    for (size_t i = 0; i < n; ++i) {
      m[k * n + i] *= scale;
      inverse[k * n + i] *= scale;
    }
    for (size_t r = 0; r < n; ++r) {
      const double factor = m[r * n + k];
      if (r == k || factor == 0) continue;
      for (size_t i = 0; i < n; ++i) {
        m[r * n + i] -= factor * m[k * n + i];
        inverse[r * n + i] -= factor * inverse[k * n + i];
      }
    }
  }
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const auto n = static_cast<size_t>(x.dims.back());
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  if (y.count() == 0) return {};
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t at = 0; at < y.count(); at += static_cast<int64_t>(n * n)) {
      std::vector<double> matrix(x.as<T>() + at, x.as<T>() + at + n * n), inverse(n * n, 0);
      for (size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
      invert(matrix, inverse, n);
      for (size_t i = 0; i < n * n; ++i) y.as<T>()[static_cast<size_t>(at) + i] = static_cast<T>(inverse[i]);
    }
    return Status();
  });
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims>) {
  return {.element_ops = inputs[0].empty() ? 0 : 2 * element_count(inputs[0]) * inputs[0].back()};
}
}  // namespace

std::span<const OpDef> inverse() {
  static const OpDef def{.name = "Inverse", .summary = "inverse of square matrices", .infer = infer, .run = run, .cost = cost};
  return {&def, 1};
}
}  // namespace orknn::ops
