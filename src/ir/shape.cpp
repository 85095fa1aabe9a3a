#include "ir/shape.h"

#include <algorithm>

namespace orknn::ir {
namespace {
Dim combine(const Dim& a, const Dim& b, const char* sign) {
  if (a.is_anonymous() || b.is_anonymous()) return {};
  return Dim::symbol("(" + a.to_string() + sign + b.to_string() + ")");
}
}  // namespace

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) {
    int64_t r;
    return __builtin_add_overflow(a.value(), b.value(), &r) ? Dim() : Dim(r);
  }
  if (a.is_known() && a.value() == 0) return b;
  if (b.is_known() && b.value() == 0) return a;
  return combine(a, b, "+");
}
Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) {
    int64_t r;
    return __builtin_sub_overflow(a.value(), b.value(), &r) ? Dim() : Dim(r);
  }
  if (b.is_known() && b.value() == 0) return a;
  if (a == b) return 0;
  return combine(a, b, "-");
}
Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) {
    int64_t r;
    return __builtin_mul_overflow(a.value(), b.value(), &r) ? Dim() : Dim(r);
  }
  if (a.is_known() && a.value() == 1) return b;
  if (b.is_known() && b.value() == 1) return a;
  return combine(a, b, "*");
}
Dim operator/(const Dim& a, const Dim& b) {
  if (b.is_known() && (b.value() == 0 || (b.value() == -1 && a.is_known() && a.value() == INT64_MIN))) return {};
  if (a.is_known() && b.is_known()) return a.value() / b.value();
  if (b.is_known() && b.value() == 1) return a;
  if (a == b) return 1;
  return combine(a, b, "/");
}

Shape to_shape(std::span<const int64_t> dims) { return Shape(dims.begin(), dims.end()); }

std::optional<Dims> to_dims(const Shape& shape) {
  Dims dims;
  dims.reserve(shape.size());
  for (const Dim& d : shape) {
    if (!d.is_known()) return std::nullopt;
    dims.push_back(d.value());
  }
  return dims;
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_known(); });
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + shape[i].to_string();
  return text + "]";
}
std::string to_string(std::span<const int64_t> dims) { return to_string(to_shape(dims)); }

int64_t element_count(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(n, d, &n)) return std::find(dims.begin(), dims.end(), 0) != dims.end() ? 0 : INT64_MAX;
  return n;
}

Result<int64_t> checked_element_count(std::span<const int64_t> dims, int64_t limit) {
  int64_t n = 1;
  bool has_zero = false;
  for (int64_t d : dims) {
    if (d < 0) return shape_mismatch("negative extent in shape " + to_string(dims));
    has_zero |= d == 0;
    if (d == 0) continue;
    if (__builtin_mul_overflow(n, d, &n) || n > limit)
      return shape_mismatch("shape " + to_string(dims) + " has too many elements");
  }
  return has_zero ? 0 : n;
}

Result<int64_t> normalize_axis(int64_t axis, int64_t rank) {
  if (rank == 0)
    return invalid_argument("axis out of range")
        .expected("a tensor with axes")
        .found("axis " + std::to_string(axis) + " of a single number");
  if (axis < -rank || axis >= rank)
    return invalid_argument("axis out of range")
        .expected("between " + std::to_string(-rank) + " and " + std::to_string(rank - 1))
        .found(std::to_string(axis));
  return axis < 0 ? axis + rank : axis;
}

Dims strides_of(std::span<const int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const size_t from_end = rank - i;
    const Dim x = from_end <= a.size() ? a[a.size() - from_end] : Dim(1);
    const Dim y = from_end <= b.size() ? b[b.size() - from_end] : Dim(1);
    if (x == y || (y.is_known() && y.value() == 1))
      out[i] = x;
    else if (x.is_known() && x.value() == 1)
      out[i] = y;
    else if (x.is_known() && y.is_known())
      return shape_mismatch("shapes do not broadcast")
          .expected("equal extents or 1")
          .found(to_string(a) + " and " + to_string(b));
    else if (x.is_known())
      out[i] = x;  // y is unknown: at run time it must be 1 or equal
    else if (y.is_known())
      out[i] = y;
  }
  return out;
}

Result<Dims> broadcast(std::span<const int64_t> a, std::span<const int64_t> b) {
  ORKNN_TRY_ASSIGN(Shape shape, broadcast(to_shape(a), to_shape(b)));
  return *to_dims(shape);
}

}  // namespace orknn::ir
