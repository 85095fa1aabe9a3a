// New tensors: constants, ranges and filled shapes.
#include <cmath>
#include <numeric>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

Status check_dims(const Dims& dims) {
  for (int64_t d : dims)
    if (d < 0) return invalid_model("a new tensor has a negative extent").found(ir::to_string(dims));
  return ir::checked_element_count(dims, int64_t{1} << 34).status();
}
Result<Value> filled(Call& c, const Dims& dims, const Value& value, DType dtype) {
  ORKNN_TRY(check_dims(dims));
  if (!value.is_tensor()) {
    if (value.kind() == Kind::Int && !is_float(dtype)) return c.made(c.expand(c.int_scalar(value.integer(), dtype), dims));
    return c.made(c.full(dims, value.number(), dtype));
  }
  return c.made(c.expand(c.as(value, dtype), dims));
}
DType type_of_number(const Value& v) {
  return v.kind() == Kind::Float || v.is_tensor() ? DType::Float32 : v.kind() == Kind::Int ? DType::Int64 : DType::Bool;
}

template <int N>
Result<Value> constant(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", DType::Float32));
  return filled(c, c.ints("size"), Value(static_cast<int64_t>(N)), t);
}
template <int N>
Result<Value> constant_like(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", c.dtype("self")));
  return filled(c, c.dims("self"), Value(static_cast<int64_t>(N)), t);
}
template <int N>
Result<Value> new_constant(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", c.dtype("self")));
  return filled(c, c.ints("size"), Value(static_cast<int64_t>(N)), t);
}
Result<Value> full(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t,
                   c.dtype_argument("dtype", c.session().divides_integers ? DType::Float32 : type_of_number(c.value("value"))));
  return filled(c, c.ints("size"), c.value("value"), t);
}
Result<Value> full_like(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", c.dtype("self")));
  return filled(c, c.dims("self"), c.value("value"), t);
}
Result<Value> new_full(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", c.dtype("self")));
  return filled(c, c.ints("size"), c.value("value"), t);
}

// --- ranges
Result<Value> range(Call& c, const Value& start, const Value& end, const Value& step, bool inclusive) {
  const bool real = start.kind() == Kind::Float || end.kind() == Kind::Float || step.kind() == Kind::Float;
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", real || inclusive ? DType::Float32 : DType::Int64));
  if (!(step.number() != 0) || !std::isfinite(start.number()) || !std::isfinite(end.number()) || !std::isfinite(step.number()))
    return invalid_model("a range has impossible bounds");
  const double length = (end.number() - start.number()) / step.number();
  const double count = inclusive ? std::floor(length) + 1 : std::ceil(length);
  if (count > double(1 << 26)) return c.fail("the range is too long");
  const int64_t n = std::max<int64_t>(static_cast<int64_t>(count), 0);
  if (is_float(t)) {
    std::vector<double> values(static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); ++i) values[i] = start.number() + static_cast<double>(i) * step.number();
    return c.made(c.add_constant("range", ir::convert(ir::TensorData::from<double>({n}, values).view(), t)));
  }
  std::vector<int64_t> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = real ? Value(start.number() + static_cast<double>(i) * step.number()).integer()
                     : static_cast<int64_t>(static_cast<uint64_t>(start.integer()) + i * static_cast<uint64_t>(step.integer()));
  return c.made(c.add_constant("range", ir::convert(ir::TensorData::from<int64_t>({n}, values).view(), t)));
}
Result<Value> arange_to(Call& c) { return range(c, Value(int64_t{0}), c.value("end"), Value(int64_t{1}), false); }
Result<Value> arange(Call& c) { return range(c, c.value("start"), c.value("end"), c.value("step"), false); }
Result<Value> inclusive_range(Call& c) { return range(c, c.value("start"), c.value("end"), c.value("step"), true); }

Result<Value> linspace(Call& c, bool logarithmic) {
  const int64_t steps = c.integer_or("steps", 100);
  if (steps < 0 || steps > (1 << 26)) return c.fail("the range is too long");
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", DType::Float32));
  const double start = c.number("start"), end = c.number("end"),
               step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  std::vector<double> values(static_cast<size_t>(steps));
  for (size_t i = 0; i < values.size(); ++i) {
    // From both ends to the middle: the last value is exact.
    values[i] = static_cast<int64_t>(i) < (steps + 1) / 2 ? start + static_cast<double>(i) * step
                                                          : end - static_cast<double>(steps - 1 - static_cast<int64_t>(i)) * step;
    if (logarithmic) values[i] = std::pow(c.number("base"), values[i]);
  }
  return c.made(c.add_constant("linspace", ir::convert(ir::TensorData::from<double>({steps}, values).view(), t)));
}
Result<Value> linspace(Call& c) { return linspace(c, false); }
Result<Value> logspace(Call& c) { return linspace(c, true); }

// --- contents given in the code
Status collect(const Value& v, size_t depth, Dims& dims, std::vector<double>& values, std::vector<int64_t>& integers,
               DType& type) {
  if (v.is_number()) {
    if (depth != dims.size()) return invalid_model("a tensor is made of lists of different lengths");
    values.push_back(v.number());
    integers.push_back(v.integer());
    if (v.kind() == Kind::Float)
      type = DType::Float32;
    else if (v.kind() == Kind::Int && type == DType::Bool)
      type = DType::Int64;
    return {};
  }
  if (!v.is_sequence() || depth > 8) return invalid_model("a tensor is made of a " + describe(v));
  const auto& items = v.sequence().items;
  if (depth == dims.size() && values.empty()) dims.push_back(static_cast<int64_t>(items.size()));
  if (depth >= dims.size() || dims[depth] != static_cast<int64_t>(items.size()))
    return invalid_model("a tensor is made of lists of different lengths");
  for (const Value& item : items) {
    if (values.size() > (size_t{1} << 24)) return unsupported("a tensor written in the code is too large");
    ORKNN_TRY(collect(item, depth + 1, dims, values, integers, type));
  }
  return {};
}
Result<Value> tensor(Call& c) {
  const Value& data = c.value("data");
  if (data.is_tensor()) {
    ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", c.dtype("data")));
    return c.made(c.cast(c.tensor("data"), t));
  }
  if (data.is_sequence() &&
      std::any_of(c.items("data").begin(), c.items("data").end(), [](const Value& v) { return v.is_tensor(); })) {
    std::vector<TensorId> parts;
    ORKNN_TRY_ASSIGN(const DType common, c.common_type(std::span<const Value>(c.items("data"))));
    ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", common));
    for (const Value& v : c.items("data")) {
      if (!v.is_number() && !(v.is_tensor() && ir::element_count(v.tensor().dims) == 1))
        return invalid_model("a tensor is made of numbers");
      parts.push_back(c.reshape(c.as(v, t), {1}));
    }
    return c.made(c.concat(std::move(parts), 0));
  }
  Dims dims;
  std::vector<double> values;
  std::vector<int64_t> integers;
  DType type = DType::Bool;
  ORKNN_TRY(collect(data, 0, dims, values, integers, type));
  if (values.empty()) type = DType::Float32;
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", type));
  const ir::TensorData content =
      type == DType::Float32 ? ir::TensorData::from<double>(dims, values) : ir::TensorData::from<int64_t>(dims, integers);
  return c.made(c.add_constant("tensor", ir::convert(content.view(), t)));
}
Result<Value> eye(Call& c) {
  const int64_t rows = c.integer("n"), columns = c.integer_or("m", rows);
  ORKNN_TRY(check_dims({rows, columns}));
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", DType::Float32));
  return c.made(c.cast(c.emit("EyeLike", {c.full(Dims{rows, columns}, 0, DType::Float32)}), t));
}
template <bool Upper>
Result<Value> triangle_indices(Call& c) {
  const int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset");
  if (rows < 0 || columns < 0 || (rows > 0 && columns > (1 << 24) / rows)) return c.fail("the matrix is too large");
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (Upper ? j - i >= offset : j - i <= offset) {
        first.push_back(i);
        second.push_back(j);
      }
  const int64_t count = static_cast<int64_t>(first.size());
  first.insert(first.end(), second.begin(), second.end());
  return c.made(c.add_constant("indices", ir::TensorData::from<int64_t>({2, count}, first)));
}

// --- windows
// `shape` gives the weight at a place between 0 and 1.
template <class Shape>
Result<Value> window(Call& c, Shape&& shape) {
  const int64_t length = c.integer("length");
  const bool periodic = c.flag("periodic");
  if (length < 0 || length > (1 << 24)) return c.fail("the window is too long");
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", DType::Float32));
  std::vector<double> values(static_cast<size_t>(length), 1);
  const double period = static_cast<double>(periodic ? length : length - 1);
  for (size_t i = 0; i < values.size() && length > 1; ++i) values[i] = shape(static_cast<double>(i) / period);
  return c.made(c.add_constant("window", ir::convert(ir::TensorData::from<double>({length}, values).view(), t)));
}
Result<Value> cosine_window(Call& c, double alpha, double beta, double gamma = 0) {
  return window(c, [=](double at) { return alpha - beta * std::cos(2 * M_PI * at) + gamma * std::cos(4 * M_PI * at); });
}
Result<Value> blackman_window(Call& c) { return cosine_window(c, 0.42, 0.5, 0.08); }
Result<Value> bartlett_window(Call& c) {
  return window(c, [](double at) { return 1 - std::fabs(2 * at - 1); });
}
Result<Value> hann_window(Call& c) { return cosine_window(c, 0.5, 0.5); }
Result<Value> hamming_window(Call& c) { return cosine_window(c, c.number("alpha"), c.number("beta")); }

// --- randomness has no place in inference, except as shapes
Result<Value> random(Call& c) {
  return c.fail("the network draws random numbers")
      .hint("make it deterministic: call model.eval(), or pass the noise as an input");
}

#define ORKNN_NEW_TENSOR \
  "*, int? dtype=None, any layout=None, any device=None, any pin_memory=None, any memory_format=None, any requires_grad=None)"
}  // namespace

std::span<const Row> create_rows() {
  static constexpr Row kRows[] = {
      {"zeros(int[] size, " ORKNN_NEW_TENSOR, constant<0>},
      {"ones(int[] size, " ORKNN_NEW_TENSOR, constant<1>},
      {"empty(int[] size, " ORKNN_NEW_TENSOR, constant<0>},
      {"empty_strided(int[] size, int[] stride, " ORKNN_NEW_TENSOR, constant<0>},
      {"full(int[] size, operand value, " ORKNN_NEW_TENSOR, full},
      {"zeros_like(Tensor self, " ORKNN_NEW_TENSOR, constant_like<0>},
      {"ones_like(Tensor self, " ORKNN_NEW_TENSOR, constant_like<1>},
      {"empty_like(Tensor self, " ORKNN_NEW_TENSOR, constant_like<0>},
      {"full_like(Tensor self, operand value, " ORKNN_NEW_TENSOR, full_like},
      {"new_zeros(Tensor self, int[] size, " ORKNN_NEW_TENSOR, new_constant<0>},
      {"new_ones(Tensor self, int[] size, " ORKNN_NEW_TENSOR, new_constant<1>},
      {"new_empty(Tensor self, int[] size, " ORKNN_NEW_TENSOR, new_constant<0>},
      {"new_empty_strided(Tensor self, int[] size, int[] stride, " ORKNN_NEW_TENSOR, new_constant<0>},
      {"new_full(Tensor self, int[] size, operand value, " ORKNN_NEW_TENSOR, new_full},
      {"arange(Scalar end, " ORKNN_NEW_TENSOR, arange_to},
      {"arange(Scalar start, Scalar end, " ORKNN_NEW_TENSOR,
       [](Call& c) { return range(c, c.value("start"), c.value("end"), Value(int64_t{1}), false); }},
      {"arange(Scalar start, Scalar end, Scalar step, " ORKNN_NEW_TENSOR, arange},
      {"range(Scalar start, Scalar end, Scalar step=1, " ORKNN_NEW_TENSOR, inclusive_range},
      {"linspace(Scalar start, Scalar end, int? steps=None, " ORKNN_NEW_TENSOR, linspace},
      {"logspace(Scalar start, Scalar end, int? steps=None, float base=10, " ORKNN_NEW_TENSOR, logspace},
      {"tensor(any data, *, int? dtype=None, any device=None, any requires_grad=None)", tensor},
      {"as_tensor(any data, *, int? dtype=None, any device=None)", tensor},
      {"eye(int n, int? m=None, " ORKNN_NEW_TENSOR, eye},
      {"tril_indices(int row, int col, int offset=0, " ORKNN_NEW_TENSOR, triangle_indices<false>},
      {"triu_indices(int row, int col, int offset=0, " ORKNN_NEW_TENSOR, triangle_indices<true>},
      {"hann_window(int length, bool periodic=True, " ORKNN_NEW_TENSOR, hann_window},
      {"blackman_window(int length, bool periodic=True, " ORKNN_NEW_TENSOR, blackman_window},
      {"bartlett_window(int length, bool periodic=True, " ORKNN_NEW_TENSOR, bartlett_window},
      {"hamming_window(int length, bool periodic=True, float alpha=0.54, float beta=0.46, " ORKNN_NEW_TENSOR, hamming_window},
      {"rand(...)", random},
      {"randn(...)", random},
      {"rand_like(...)", random},
      {"randn_like(...)", random},
      {"randint(...)", random},
      {"randperm(...)", random},
      {"bernoulli(...)", random},
      {"normal(...)", random},
      {"uniform_(...)", random},
      {"normal_(...)", random},
      {"multinomial(...)", random},
  };
  return kRows;
}
#undef ORKNN_NEW_TENSOR

}  // namespace orknn::importer::pytorch
