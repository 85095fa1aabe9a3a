// Tensors made from a shape or a rule: ConstantOfShape, EyeLike, Range.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

// A model states these shapes in a few bytes, so they are no proof that somebody wants so much memory.
constexpr int64_t kMaxElements = int64_t{1} << 31;
constexpr int64_t kMaxContent = 64;

// ---- ConstantOfShape

Result<TensorData> fill_value(const NodeReader& c) {
  const TensorData* value = c.find<TensorData>("value");
  if (!value) return TensorData::scalar(0.0f);
  if (value->count() != 1) return invalid_model("attribute 'value' is one element").found(std::to_string(value->count()));
  return *value;
}

Status check_extent(int64_t extent) {
  return extent < 0 ? invalid_model("a shape has a negative extent").found(std::to_string(extent)) : Status();
}

Status infer_constant(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return t == DType::Int64; }, "an int64 shape"));
  if (c.shape(0) && c.shape(0)->size() > 1) return shape_mismatch("a shape is a vector").found(to_string(*c.shape(0)));
  ORKNN_TRY_ASSIGN(const TensorData value, fill_value(c));
  const std::optional<std::vector<Dim>> extents = c.content(0);
  if (!extents) {
    c.set_output(0, value.dtype(), std::nullopt);
    return {};
  }
  for (const Dim& d : *extents)
    if (d.is_known()) ORKNN_TRY(check_extent(d.value()));
  const std::optional<Dims> dims = to_dims(*extents);
  c.set_output(0, value.dtype(), *extents);
  if (!dims) return {};
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(*dims, kMaxElements));
  if (is_integer(value.dtype()) && count <= kMaxContent)
    c.set_content(0, std::vector<Dim>(static_cast<size_t>(count), Dim(to_ints(value.view())[0])));
  return {};
}

Status run_constant(RunContext& c) {
  const std::vector<int64_t> dims = to_ints(c.input(0));
  for (const int64_t d : dims) ORKNN_TRY(check_extent(d));
  ORKNN_TRY_ASSIGN(const TensorData value, fill_value(c));
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(dims, kMaxElements));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, value.dtype(), dims));
  visit_element_bytes(value.dtype(), [&]<class T>(TypeTag<T>) { std::fill_n(y.as<T>(), count, value.as<T>()[0]); });
  return {};
}

// ---- EyeLike

Status infer_eye(InferContext& c) {
  if (c.shape(0) && c.shape(0)->size() != 2) return shape_mismatch("a matrix is needed").found(to_string(*c.shape(0)));
  ORKNN_TRY_ASSIGN(const DType type, type_attribute(c, "dtype", c.dtype(0)));
  c.set_output(0, type, c.input(0).shape ? c.input(0).shape : Shape(2));
  return {};
}

Status run_eye(RunContext& c) {
  const TensorView x = c.input(0);
  if (x.rank() != 2) return shape_mismatch("a matrix is needed").found(to_string(x.dims));
  ORKNN_TRY_ASSIGN(const DType type, type_attribute(c, "dtype", x.dtype));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, x.dims));
  std::memset(y.data, 0, y.bytes());
  const int64_t rows = x.dims[0], columns = x.dims[1], k = c.get_int("k");
  if (k >= columns || k <= -rows) return {};
  const TensorData one = convert(TensorData::scalar(1.0f).view(), type);
  visit_element_bytes(type, [&]<class T>(TypeTag<T>) {
    for (int64_t r = std::max<int64_t>(0, -k); r < rows && r + k < columns; ++r) y.as<T>()[r * columns + r + k] = one.as<T>()[0];
  });
  return {};
}

// ---- Range

// Number of values from start up to, not including, limit.
Result<int64_t> range_count(double start, double limit, double delta) {
  if (delta == 0 || delta != delta) return invalid_model("the step of a range is zero");
  const double n = std::ceil((limit - start) / delta);
  if (!(n < static_cast<double>(kMaxElements))) return invalid_model("the range is endless or too long");
  return n > 0 ? static_cast<int64_t>(n) : 0;
}

// The same without rounding, for integers of any size.
Result<int64_t> range_count(int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) return invalid_model("the step of a range is zero");
  if (delta > 0 ? limit <= start : limit >= start) return int64_t{0};
  const auto distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                  : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
  const uint64_t n = (distance - 1) / step + 1;
  if (n >= static_cast<uint64_t>(kMaxElements)) return invalid_model("the range is too long");
  return static_cast<int64_t>(n);
}

Status infer_range(InferContext& c) {
  ORKNN_TRY(check_types(c, is_arithmetic, "a number type of at least 8 bits"));
  for (size_t i = 0; i < 3; ++i) {
    const std::optional<Dims> dims = c.shape(i) ? to_dims(*c.shape(i)) : std::nullopt;
    if (dims && element_count(*dims) != 1)
      return shape_mismatch("start, limit and step are single values").found(to_string(*dims));
  }
  const DType type = c.dtype(0);
  c.set_output(0, type, Shape(1));
  if (is_float(type)) {
    double v[3];
    for (size_t i = 0; i < 3; ++i) {
      if (!c.constant(i) || c.constant(i)->count() != 1) return {};
      v[i] = to_doubles(c.constant(i)->view())[0];
    }
    ORKNN_TRY_ASSIGN(const int64_t n, range_count(v[0], v[1], v[2]));
    c.set_output(0, type, Shape{n});
    return {};
  }
  int64_t v[3];
  for (size_t i = 0; i < 3; ++i) {
    const auto values = c.ints(i);
    if (!values || values->size() != 1) return {};
    v[i] = (*values)[0];
  }
  ORKNN_TRY_ASSIGN(const int64_t n, range_count(v[0], v[1], v[2]));
  c.set_output(0, type, Shape{n});
  if (n > kMaxContent) return {};
  std::vector<Dim> content;
  for (int64_t i = 0; i < n; ++i) content.emplace_back(v[0] + i * v[2]);
  c.set_content(0, std::move(content));
  return {};
}

Status run_range(RunContext& c) {
  for (size_t i = 0; i < 3; ++i)
    if (c.input(i).count() != 1)
      return shape_mismatch("start, limit and step are single values").found(to_string(c.input(i).dims));
  const DType type = c.input(0).dtype;
  int64_t n = 0;
  if (is_float(type)) {
    ORKNN_TRY_ASSIGN(n, range_count(to_doubles(c.input(0))[0], to_doubles(c.input(1))[0], to_doubles(c.input(2))[0]));
  } else {
    ORKNN_TRY_ASSIGN(n, range_count(to_ints(c.input(0))[0], to_ints(c.input(1))[0], to_ints(c.input(2))[0]));
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, std::span<const int64_t>(&n, 1)));
  visit_arithmetic(type, [&]<class T>(TypeTag<T>) {
    const T start = c.input(0).as<T>()[0], delta = c.input(2).as<T>()[0];
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_floating_point_v<T>)
        y.as<T>()[i] = start + static_cast<T>(i) * delta;
      else
        y.as<T>()[i] = static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
    }
  });
  return {};
}
}  // namespace

std::span<const OpDef> constant_of_shape() {
  static const OpDef defs[] = {
      {.name = "ConstantOfShape",
       .summary = "a tensor of one repeated value",
       .attributes = {attr_tensor("value")},
       .infer = infer_constant,
       .run = run_constant,
       .widen_half = false,
       .quant = QuantRule::Integer},
      {.name = "EyeLike",
       .summary = "ones on a diagonal, shaped like the input",
       .attributes = {attr_int("dtype"), attr_int("k", 0)},
       .infer = infer_eye,
       .run = run_eye,
       .widen_half = false},
      {.name = "Range",
       .summary = "start, start + step, ... below limit",
       .inputs = {3, 3},
       .attributes = {attr_int("stash_type", 1)},
       .infer = infer_range,
       .run = run_range,
       .quant = QuantRule::Integer,
       .exact_inputs = input_slots({0, 1, 2})},
  };
  return defs;
}
}  // namespace orknn::ops
