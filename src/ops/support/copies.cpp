#include "ops/support/copies.h"

#include <algorithm>

namespace orknn::ops {
using namespace ir;

int copies_always(const InferContext&) { return 0; }

bool keeps_shape(const InferContext& c, size_t input) {
  const auto &from = c.input(input).shape, &to = c.output(0).shape;
  return from && to && *from == *to;
}
int copies_in_same_shape(const InferContext& c) { return keeps_shape(c, 0) ? 0 : kNoCopy; }

int copies_in_same_type(const InferContext& c) {
  return c.dtype(0) != DType::Undefined && c.dtype(0) == c.output(0).dtype ? 0 : kNoCopy;
}

int copies_single_input(const InferContext& c) { return c.input_count() == 1 ? 0 : kNoCopy; }

int copies_unit_window(const InferContext& c) {
  const auto all = [&](std::string_view name, int64_t value) {
    const std::vector<int64_t> v = c.node().attributes.ints_or(name);
    return std::all_of(v.begin(), v.end(), [&](int64_t x) { return x == value; });
  };
  return c.node().attributes.has("kernel_shape") && all("kernel_shape", 1) && all("strides", 1) && all("pads", 0) &&
                 keeps_shape(c, 0)
             ? 0
             : kNoCopy;
}

std::optional<double> splat_of(const InferContext& c, size_t input) {
  const TensorData* value = input < c.input_count() ? c.input(input).constant : nullptr;
  if (!value || value->count() < 1) return std::nullopt;
  const std::vector<double> values = to_doubles(value->view());
  if (!std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; })) return std::nullopt;
  return values[0];
}

std::optional<double> scalar_of(const InferContext& c, size_t input) {
  const TensorData* value = input < c.input_count() ? c.input(input).constant : nullptr;
  return value && value->count() == 1 ? splat_of(c, input) : std::nullopt;
}

}  // namespace orknn::ops
