#include "ops/support/operands.h"

namespace orknn::ops {
using namespace ir;

namespace {
bool differ(const Dim& a, const Dim& b) { return a.is_known() && b.is_known() && a.value() != b.value(); }

Status wrong(std::string_view what, std::string expected, const Shape& found) {
  return shape_mismatch(std::string(what) + " has the wrong shape").expected(std::move(expected)).found(to_string(found));
}

// The number of elements, where every extent is known.
std::optional<int64_t> count_of(const InferContext& c, size_t i) {
  const Shape* shape = c.shape(i);
  const std::optional<Dims> dims = shape ? to_dims(*shape) : std::nullopt;
  const Result<int64_t> count = dims ? checked_element_count(*dims) : Result<int64_t>(Status::error(Code::Fail, "unknown"));
  return count ? std::optional(*count) : std::nullopt;
}
}  // namespace

Status require_shape(const InferContext& c, size_t i, std::string_view what, const Shape& expected) {
  const Shape* shape = c.shape(i);
  if (!shape) return {};
  bool fits = shape->size() == expected.size();
  for (size_t k = 0; fits && k < expected.size(); ++k) fits = !differ((*shape)[k], expected[k]);
  return fits ? Status() : wrong(what, to_string(expected), *shape);
}

Status require_one_value(const InferContext& c, size_t i, std::string_view what) {
  const std::optional<int64_t> count = count_of(c, i);
  return !count || *count == 1 ? Status()
                               : shape_mismatch(std::string(what) + " must be one value").found(to_string(*c.shape(i)));
}

Status require_broadcast(const InferContext& c, size_t i, std::string_view what, const Shape& to) {
  const Shape* shape = c.shape(i);
  if (!shape) return {};
  bool fits = shape->size() <= to.size();
  for (size_t k = 0; fits && k < shape->size(); ++k) {
    const Dim& own = (*shape)[k];
    fits = !differ(own, to[to.size() - shape->size() + k]) || own.value() == 1;
  }
  return fits ? Status() : wrong(what, "something that broadcasts to " + to_string(to), *shape);
}

Status require_one_or_each(const InferContext& c, size_t i, std::string_view what, const Dim& count) {
  const std::optional<int64_t> found = count_of(c, i);
  if (!found || *found == 1 || !count.is_known() || *found == count.value()) return {};
  return wrong(what, "1 or " + count.to_string() + " values", *c.shape(i));
}

}  // namespace orknn::ops
