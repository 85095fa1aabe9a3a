#include "ops/support/operands.h"

#include <charconv>
#include <limits>

namespace orknn::ops {
using namespace ir;

namespace {
bool differ(const Dim& a, const Dim& b) { return a.is_known() && b.is_known() && a.value() != b.value(); }

Status wrong(std::string_view what, std::string expected, const Shape& found) {
  return shape_mismatch(std::string(what) + " has the wrong shape").expected(std::move(expected)).found(to_string(found));
}
}  // namespace

std::optional<int64_t> known_count(const InferContext& c, size_t i) {
  const Shape* shape = c.shape(i);
  const std::optional<Dims> dims = shape ? to_dims(*shape) : std::nullopt;
  const Result<int64_t> count = dims ? checked_element_count(*dims) : Result<int64_t>(Status::error(Code::Fail, "unknown"));
  return count ? std::optional(*count) : std::nullopt;
}

Status require_shape(const InferContext& c, size_t i, std::string_view what, const Shape& expected) {
  const Shape* shape = c.shape(i);
  if (!shape) return {};
  bool fits = shape->size() == expected.size();
  for (size_t k = 0; fits && k < expected.size(); ++k) fits = !differ((*shape)[k], expected[k]);
  return fits ? Status() : wrong(what, to_string(expected), *shape);
}

Status require_one_value(const InferContext& c, size_t i, std::string_view what) {
  const std::optional<int64_t> count = known_count(c, i);
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
  const std::optional<int64_t> found = known_count(c, i);
  if (!found || *found == 1 || !count.is_known() || *found == count.value()) return {};
  return wrong(what, "1 or " + count.to_string() + " values", *c.shape(i));
}

namespace {
// The shortest text that reads back the same.
template <class Number>
std::string text_of(Number value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

template <class Number>
Status out_of_range(std::string_view what, Number low, Number high, Number value) {
  const bool open = high == std::numeric_limits<Number>::max();
  return invalid_model(std::string(what) + " out of range")
      .expected(open ? "at least " + text_of(low) : "between " + text_of(low) + " and " + text_of(high))
      .found(text_of(value));
}

Status check_value(std::string_view what, int64_t value, int64_t low, int64_t high) {
  return value >= low && value <= high ? Status() : out_of_range(what, low, high, value);
}

// Calls check(n, value) for the elements that are known: those of a constant, or of a small computed tensor.
template <class Check>
Status check_known(const InferContext& c, size_t i, const Check& check) {
  if (const TensorData* constant = c.constant(i)) {
    const std::vector<int64_t> values = to_ints(constant->view());
    for (size_t n = 0; n < values.size(); ++n) ORKNN_TRY(check(n, values[n]));
    return {};
  }
  const std::vector<Dim> values = c.content(i).value_or(std::vector<Dim>());
  for (size_t n = 0; n < values.size(); ++n)
    if (values[n].is_known()) ORKNN_TRY(check(n, values[n].value()));
  return {};
}
}  // namespace

Status require_values(const InferContext& c, size_t i, std::string_view what, const Dim& low, const Dim& high) {
  if (!low.is_known() || !high.is_known()) return {};
  return check_known(c, i, [&](size_t, int64_t value) { return check_value(what, value, low.value(), high.value()); });
}

Status require_numbers(const InferContext& c, size_t i, std::string_view what, double low, double high) {
  const TensorData* constant = c.constant(i);
  if (!constant) return {};
  for (const double value : to_doubles(constant->view()))
    if (!(value >= low && value <= high)) return out_of_range(what, low, high, value);
  return {};
}

Status require_indices(const InferContext& c, size_t i, std::string_view what, const Dim& extent) {
  return extent.is_known() ? require_values(c, i, what, -extent.value(), extent.value() - 1) : Status();
}

Status require_index_tuples(const InferContext& c, size_t i, std::string_view what, std::span<const Dim> axes) {
  if (axes.empty()) return {};
  return check_known(c, i, [&](size_t n, int64_t value) {
    const Dim& extent = axes[n % axes.size()];
    return extent.is_known() ? check_value(what, value, -extent.value(), extent.value() - 1) : Status();
  });
}

}  // namespace orknn::ops
