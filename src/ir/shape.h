// Shapes. `Dims` are concrete extents (what kernels see); `Shape` may hold symbols (what inference sees).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace orknn::ir {

using Dims = std::vector<int64_t>;

// One extent: a number, a named unknown ("batch", or an expression such as "(2*batch)"), or an anonymous unknown.
class Dim {
 public:
  Dim() = default;  // anonymous unknown
  Dim(int64_t value) : value_(value) {}
  static Dim symbol(std::string name) {
    Dim d;
    d.symbol_ = std::move(name);
    return d;
  }
  bool is_known() const { return value_ != kUnknown; }
  int64_t value() const { return value_; }  // only when known
  const std::string& symbol() const { return symbol_; }
  bool is_anonymous() const { return !is_known() && symbol_.empty(); }
  std::string to_string() const { return is_known() ? std::to_string(value_) : symbol_.empty() ? "?" : symbol_; }
  // True when both are surely the same extent.
  friend bool operator==(const Dim& a, const Dim& b) {
    return a.value_ == b.value_ && a.symbol_ == b.symbol_ && !a.is_anonymous();
  }

 private:
  static constexpr int64_t kUnknown = INT64_MIN;
  int64_t value_ = kUnknown;  // may be negative where a Dim carries the content of a shape tensor
  std::string symbol_;
};

// Arithmetic keeps numbers as numbers and builds expressions from symbols; an anonymous unknown absorbs.
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim operator/(const Dim& a, const Dim& b);  // rounds towards zero; division by zero is an anonymous unknown

using Shape = std::vector<Dim>;

Shape to_shape(std::span<const int64_t> dims);
// Concrete extents, or nothing when one is unknown.
std::optional<Dims> to_dims(const Shape& shape);
bool is_static(const Shape& shape);
std::string to_string(const Shape& shape);             // "[1,3,H,W]"
std::string to_string(std::span<const int64_t> dims);  // "[1,3,224,224]"

// Number of elements, INT64_MAX when there are more; extents must not be negative. The checked form fails on overflow or more
// than `limit` elements.
int64_t element_count(std::span<const int64_t> dims);
Result<int64_t> checked_element_count(std::span<const int64_t> dims, int64_t limit = int64_t{1} << 40);

// Maps an axis in [-rank, rank) to [0, rank).
Result<int64_t> normalize_axis(int64_t axis, int64_t rank);

// Row-major strides in elements.
Dims strides_of(std::span<const int64_t> dims);

// NumPy broadcasting of two shapes.
Result<Shape> broadcast(const Shape& a, const Shape& b);
Result<Dims> broadcast(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace orknn::ir
