#include "ops/support/floating.h"

namespace orknn::ops {
using namespace ir;

Status require_float(const InferContext& c, size_t i) {
  if (!c.has_input(i) || is_float(c.dtype(i))) return {};
  return invalid_model("input " + std::to_string(i) + " has the wrong type")
      .expected("a floating-point type")
      .found(std::string(dtype_name(c.dtype(i))));
}

Status require_same_type(const InferContext& c, size_t i, size_t j) {
  if (!c.has_input(i) || !c.has_input(j)) return {};
  return require_type(c, j, c.dtype(i));
}

Status require_type(const InferContext& c, size_t i, DType expected) {
  if (!c.has_input(i) || c.dtype(i) == expected) return {};
  return invalid_model("input " + std::to_string(i) + " has the wrong type")
      .expected(std::string(dtype_name(expected)))
      .found(std::string(dtype_name(c.dtype(i))));
}

Status require_rank(const InferContext& c, size_t i, size_t rank) {
  const Shape* s = c.shape(i);
  if (!s || s->size() == rank) return {};
  return shape_mismatch("input " + std::to_string(i) + " has the wrong rank").expected(std::to_string(rank)).found(to_string(*s));
}

Status wrong_shape(std::string_view what, std::string expected, std::span<const int64_t> found) {
  return shape_mismatch(std::string(what) + " has the wrong shape").expected(std::move(expected)).found(to_string(found));
}

}  // namespace orknn::ops
