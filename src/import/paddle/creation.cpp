// Tensors made of attributes and shapes.
#include "import/lower/creation.h"

#include <cmath>

#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
constexpr int64_t kMaxMade = int64_t{1} << 26;  // elements that a few bytes of a file may ask for

Status check_made(const Dims& dims) {
  for (int64_t d : dims)
    if (d < 0) return invalid_model("a negative extent").found(to_string(dims));
  if (checked_element_count(dims, kMaxMade)) return {};
  return unsupported("the constant is too large")
      .expected("at most " + std::to_string(kMaxMade) + " elements")
      .found(to_string(dims));
}
// The value as text has all its digits.
double stated_value(const Layer& l) {
  const std::string text = l.text("str_value", "");
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0 ? value : l.number("value", 0);
}
Result<TensorId> full(Layer& l) {
  const DType dtype = l.dtype("dtype", DType::Float32);
  const bool is_old = !l.op().inputs.empty();
  ORKNN_TRY_ASSIGN(const TensorId shape, l.vector(0));
  const bool has_value = is_old && l.op().inputs.size() > 1 && !l.op().inputs[1].values.empty();
  const TensorId value = has_value ? l.reshape(l.cast(l.input(1), dtype), {}) : l.add_scalar("value", stated_value(l), dtype);
  if (shape && !l.constant_of(shape)) return l.emit("Expand", {value, shape});
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> dims, l.ints(0, "shape", "to fill it"));
  ORKNN_TRY(check_made(dims));
  return l.expand(value, dims);
}
// The value comes first here, then the shape.
Result<TensorId> full_with_tensor(Layer& l, TensorId value) {
  const DType dtype = l.dtype("dtype", l.dtype_of(value));
  ORKNN_TRY_ASSIGN(const TensorId shape, l.vector(1));
  const TensorId one = l.reshape(l.cast(value, dtype), {});
  if (shape && !l.constant_of(shape)) return l.emit("Expand", {one, shape});
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> dims, l.ints(1, "shape", "to fill it"));
  ORKNN_TRY(check_made(dims));
  return l.expand(one, dims);
}
TensorId full_int_array(Layer& l) { return l.cast(l.add_ints("values", l.integers("value")), l.dtype("dtype", DType::Int64)); }
Result<TensorId> full_like(Layer& l, TensorId x) {
  const DType dtype = l.dtype("dtype", l.dtype_of(x));
  const TensorId given = l.input(1);
  const TensorId value = given ? l.reshape(l.cast(given, dtype), {}) : l.add_scalar("value", l.number("value", 0), dtype);
  return l.emit("Expand", {value, l.unary("Shape", x)});
}
Result<TensorId> full_batch_size_like(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take its batch"));
  Dims shape = l.integers("shape");
  const int64_t from = l.integer("input_dim_idx", 0), to = l.integer("output_dim_idx", 0);
  if (from < 0 || from >= std::ssize(dims) || to < 0 || to >= std::ssize(shape))
    return invalid_model("the axis of the batch is illegal");
  shape[static_cast<size_t>(to)] = dims[static_cast<size_t>(from)];
  ORKNN_TRY(check_made(shape));
  return l.full(shape, stated_value(l), l.dtype("dtype", DType::Float32));
}
Result<TensorId> assigned_value(Layer& l) {
  std::vector<double> values;
  for (const char* key : {"values", "fp32_values", "fp64_values", "int32_values", "int64_values", "bool_values"})
    if (values.empty()) values = l.numbers(key);
  const Dims dims = l.integers("shape");
  ORKNN_TRY(check_made(dims));
  if (element_count(dims) != std::ssize(values))
    return invalid_model("the values do not fit the shape")
        .expected(to_string(dims))
        .found(std::to_string(values.size()) + " values");
  return l.cast(l.add_constant("values", TensorData::from<double>(dims, values)), l.dtype("dtype", DType::Float32));
}
Result<TensorId> arange(Layer& l, TensorId start, TensorId end, TensorId step) {
  const DType dtype = l.dtype("dtype", l.dtype_of(start));
  const auto scalar = [&](TensorId x) { return l.reshape(l.cast(x, dtype), {}); };
  return l.emit("Range", {scalar(start), scalar(end), scalar(step)});
}
Result<TensorId> linspace(Layer& l, TensorId start, TensorId stop, TensorId count) {
  ORKNN_TRY_ASSIGN(const double first, l.need_number(start, "to space numbers"));
  ORKNN_TRY_ASSIGN(const double last, l.need_number(stop, "to space numbers"));
  ORKNN_TRY_ASSIGN(const int64_t number, l.need_integer(count, "to space numbers"));
  return evenly_spaced(l, first, last, number, l.dtype("dtype", DType::Float32));
}
Result<TensorId> eye(Layer& l) {
  ORKNN_TRY_ASSIGN(const double rows, l.number(0, "num_rows", 0, "to make a matrix"));
  ORKNN_TRY_ASSIGN(const double columns, l.number(1, "num_columns", -1, "to make a matrix"));
  if (!(rows >= 0 && rows <= 65536 && columns <= 65536)) return invalid_model("the matrix is too large");
  return identity_matrix(l, static_cast<int64_t>(rows), static_cast<int64_t>(columns < 0 ? rows : columns), 0,
                         l.dtype("dtype", DType::Float32));
}
}  // namespace

std::span<const Row> creation_rows() {
  static const Row rows[] = {
      {"full", full},
      {"full_with_tensor", full_with_tensor},
      {"full_int_array", full_int_array},
      {"full_like", full_like},
      {"full_batch_size_like", full_batch_size_like},
      {"assign_value", assigned_value},
      {"arange", arange},
      {"linspace", linspace},
      {"eye", eye},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
