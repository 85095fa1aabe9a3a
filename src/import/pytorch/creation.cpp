// New tensors: constants, ranges and filled shapes.
#include <cmath>
#include <numbers>

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorData;
using ir::TensorId;

// Elements of a range or window, and of matrices whose places are listed.
constexpr int64_t kMaxListed = 1 << 26, kMaxWindowLength = 1 << 24;

Status check_new_dims(const Dims& dims) {
  for (int64_t d : dims)
    if (d < 0) return invalid_model("a new tensor has a negative extent").found(ir::to_string(dims));
  return ir::checked_element_count(dims, int64_t{1} << 34).status();
}
Result<TensorId> filled(Call& c, const Dims& dims, const Value& value, DType fallback) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(fallback));
  ORKNN_TRY(check_new_dims(dims));
  if (value.is_tensor() || (value.kind() == Kind::Int && !is_float(t))) return c.expand(c.as(value, t), dims);
  return c.full(dims, value.number(), t);
}
// A vector of values as the element type asked for.
template <class T>
Result<TensorId> listed(Call& c, std::string_view role, std::span<const T> values, DType fallback = DType::Float32) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(fallback));
  const Dims dims{static_cast<int64_t>(values.size())};
  return c.add_constant(role, ir::convert(TensorData::from<T>(dims, values).view(), t));
}

template <int64_t N>
Result<TensorId> constant(Call& c) {
  return filled(c, c.ints("size"), N, DType::Float32);
}
template <int64_t N>
Result<TensorId> constant_like(Call& c) {
  return filled(c, c.dims(), N, c.dtype());
}
template <int64_t N>
Result<TensorId> new_constant(Call& c) {
  return filled(c, c.ints("size"), N, c.dtype());
}
Result<TensorId> full(Call& c) {
  const Value& v = c.value("value");
  const bool is_float = v.is_tensor() || c.session().divides_integers;
  return filled(c, c.ints("size"), v, is_float ? DType::Float32 : type_of_number(v));
}
Result<TensorId> full_like(Call& c) { return filled(c, c.dims(), c.value("value"), c.dtype()); }
Result<TensorId> new_full(Call& c) { return filled(c, c.ints("size"), c.value("value"), c.dtype()); }

// --- ranges
Result<TensorId> range(Call& c, const Value& start, const Value& end, const Value& step, bool inclusive = false) {
  const bool real = start.kind() == Kind::Float || end.kind() == Kind::Float || step.kind() == Kind::Float;
  const DType fallback = real || inclusive ? DType::Float32 : DType::Int64;
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(fallback));
  if (!(step.number() != 0) || !std::isfinite(start.number()) || !std::isfinite(end.number()) || !std::isfinite(step.number()))
    return invalid_model("a range has impossible bounds");
  const double length = (end.number() - start.number()) / step.number();
  const double count = inclusive ? std::floor(length) + 1 : std::ceil(length);
  if (count > static_cast<double>(kMaxListed)) return unsupported("the range is too long");
  const auto n = static_cast<size_t>(std::max<int64_t>(static_cast<int64_t>(count), 0));
  const auto real_at = [&](size_t i) { return start.number() + static_cast<double>(i) * step.number(); };
  if (is_float(t)) {
    std::vector<double> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = real_at(i);
    return listed<double>(c, "range", values, fallback);
  }
  std::vector<int64_t> values(n);
  for (size_t i = 0; i < n; ++i)
    values[i] = real ? Value(real_at(i)).integer()
                     : static_cast<int64_t>(static_cast<uint64_t>(start.integer()) + i * static_cast<uint64_t>(step.integer()));
  return listed<int64_t>(c, "range", values, fallback);
}
Result<TensorId> arange_to(Call& c) { return range(c, int64_t{0}, c.value("end"), int64_t{1}); }
Result<TensorId> arange_between(Call& c) { return range(c, c.value("start"), c.value("end"), int64_t{1}); }
Result<TensorId> arange(Call& c) { return range(c, c.value("start"), c.value("end"), c.value("step")); }
Result<TensorId> inclusive_range(Call& c) { return range(c, c.value("start"), c.value("end"), c.value("step"), true); }

template <bool Logarithmic>
Result<TensorId> linspace(Call& c) {
  const int64_t steps = c.integer_or("steps", 100);
  if (steps < 0 || steps > kMaxListed) return unsupported("the range is too long");
  const double start = c.number("start"), end = c.number("end"),
               step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  std::vector<double> values(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    // From both ends to the middle: the last value is exact.
    values[i] = i < (steps + 1) / 2 ? start + static_cast<double>(i) * step : end - static_cast<double>(steps - 1 - i) * step;
    if (Logarithmic) values[i] = std::pow(c.number("base"), values[i]);
  }
  return listed<double>(c, "linspace", values);
}

// --- contents given in the code
struct WrittenNumbers {
  Dims dims;
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  DType type = DType::Bool;
};
Status collect(const Value& v, size_t depth, WrittenNumbers& out) {
  if (v.is_number()) {
    if (depth != out.dims.size()) return invalid_model("a tensor is made of lists of different lengths");
    out.numbers.push_back(v.number());
    out.integers.push_back(v.integer());
    if (v.kind() == Kind::Float || (v.kind() == Kind::Int && out.type == DType::Bool)) out.type = type_of_number(v);
    return {};
  }
  if (!v.is_sequence() || depth > 8) return invalid_model("a tensor is made of a " + describe(v));
  const auto& items = v.sequence().items;
  if (depth == out.dims.size() && out.numbers.empty()) out.dims.push_back(static_cast<int64_t>(items.size()));
  if (depth >= out.dims.size() || out.dims[depth] != static_cast<int64_t>(items.size()))
    return invalid_model("a tensor is made of lists of different lengths");
  for (const Value& item : items) {
    if (out.numbers.size() > (size_t{1} << 24)) return unsupported("a tensor written in the code is too large");
    ORKNN_TRY(collect(item, depth + 1, out));
  }
  return {};
}
Result<TensorId> tensor(Call& c) {
  const Value& data = c.value("data");
  if (data.is_tensor()) {
    ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(c.dtype("data")));
    return c.cast(c.tensor("data"), t);
  }
  if (data.is_sequence() && std::ranges::any_of(c.items("data"), &Value::is_tensor)) {
    std::vector<TensorId> parts;
    ORKNN_TRY_ASSIGN(const DType common, c.common_type(c.items("data")));
    ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(common));
    for (const Value& v : c.items("data")) {
      if (!v.is_number() && !(v.is_tensor() && ir::element_count(v.tensor().dims) == 1))
        return invalid_model("a tensor is made of numbers");
      parts.push_back(c.reshape(c.as(v, t), {1}));
    }
    return c.concat(std::move(parts), 0);
  }
  WrittenNumbers content;
  ORKNN_TRY(collect(data, 0, content));
  if (content.numbers.empty()) content.type = DType::Float32;
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(content.type));
  const TensorData value = content.type == DType::Float32 ? TensorData::from<double>(content.dims, content.numbers)
                                                          : TensorData::from<int64_t>(content.dims, content.integers);
  return c.add_constant("tensor", ir::convert(value.view(), t));
}
Result<TensorId> eye(Call& c) {
  const int64_t rows = c.integer("n"), columns = c.integer_or("m", rows);
  ORKNN_TRY(check_new_dims({rows, columns}));
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(DType::Float32));
  return c.cast(c.unary("EyeLike", c.full(Dims{rows, columns}, 0, DType::Float32)), t);
}
template <bool Upper>
Result<TensorId> triangle_indices(Call& c) {
  const int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset");
  if (rows < 0 || columns < 0 || (rows > 0 && columns > kMaxWindowLength / rows)) return unsupported("the matrix is too large");
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (Upper ? j - i >= offset : j - i <= offset) {
        first.push_back(i);
        second.push_back(j);
      }
  const int64_t count = static_cast<int64_t>(first.size());
  first.insert(first.end(), second.begin(), second.end());
  return c.add_constant("indices", TensorData::from<int64_t>({2, count}, first));
}

// --- windows
// `shape` gives the weight at a place between 0 and 1.
template <class Shape>
Result<TensorId> window(Call& c, Shape&& shape) {
  const int64_t length = c.integer("length");
  if (length < 0 || length > kMaxWindowLength) return unsupported("the window is too long");
  std::vector<double> values(static_cast<size_t>(length), 1);
  const double period = static_cast<double>(c.flag("periodic") ? length : length - 1);
  for (size_t i = 0; i < values.size() && length > 1; ++i) values[i] = shape(static_cast<double>(i) / period);
  return listed<double>(c, "window", values);
}
Result<TensorId> cosine_window(Call& c, double alpha, double beta, double gamma = 0) {
  constexpr double kTurn = 2 * std::numbers::pi;
  return window(c, [=](double at) { return alpha - beta * std::cos(kTurn * at) + gamma * std::cos(2 * kTurn * at); });
}
Result<TensorId> blackman_window(Call& c) { return cosine_window(c, 0.42, 0.5, 0.08); }
Result<TensorId> bartlett_window(Call& c) {
  return window(c, [](double at) { return 1 - std::fabs(2 * at - 1); });
}
Result<TensorId> hann_window(Call& c) { return cosine_window(c, 0.5, 0.5); }
Result<TensorId> hamming_window(Call& c) { return cosine_window(c, c.number("alpha"), c.number("beta")); }

// --- randomness has no place in inference, except as shapes
Status random(Call&) {
  return unsupported("the network draws random numbers")
      .hint("make it deterministic: call model.eval(), or pass the noise as an input");
}

#define ORKNN_NEW_TENSOR \
  "*, int? dtype=None, any layout=None, any device=None, any pin_memory=None, any memory_format=None, any requires_grad=None)"
}  // namespace

std::span<const Row> creation_rows() {
  static const Row rows[] = {
      {"zeros|empty(int[] size, " ORKNN_NEW_TENSOR, constant<0>},
      {"ones(int[] size, " ORKNN_NEW_TENSOR, constant<1>},
      {"empty_strided(int[] size, int[] stride, " ORKNN_NEW_TENSOR, constant<0>},
      {"full(int[] size, operand value, " ORKNN_NEW_TENSOR, full},
      {"zeros_like|empty_like(Tensor self, " ORKNN_NEW_TENSOR, constant_like<0>},
      {"ones_like(Tensor self, " ORKNN_NEW_TENSOR, constant_like<1>},
      {"full_like(Tensor self, operand value, " ORKNN_NEW_TENSOR, full_like},
      {"new_zeros|new_empty(Tensor self, int[] size, " ORKNN_NEW_TENSOR, new_constant<0>},
      {"new_ones(Tensor self, int[] size, " ORKNN_NEW_TENSOR, new_constant<1>},
      {"new_empty_strided(Tensor self, int[] size, int[] stride, " ORKNN_NEW_TENSOR, new_constant<0>},
      {"new_full(Tensor self, int[] size, operand value, " ORKNN_NEW_TENSOR, new_full},
      {"arange(Scalar end, " ORKNN_NEW_TENSOR, arange_to},
      {"arange(Scalar start, Scalar end, " ORKNN_NEW_TENSOR, arange_between},
      {"arange(Scalar start, Scalar end, Scalar step, " ORKNN_NEW_TENSOR, arange},
      {"range(Scalar start, Scalar end, Scalar step=1, " ORKNN_NEW_TENSOR, inclusive_range},
      {"linspace(Scalar start, Scalar end, int? steps=None, " ORKNN_NEW_TENSOR, linspace<false>},
      {"logspace(Scalar start, Scalar end, int? steps=None, float base=10, " ORKNN_NEW_TENSOR, linspace<true>},
      {"tensor|as_tensor(any data, *, int? dtype=None, any device=None, any requires_grad=None)", tensor},
      {"eye(int n, int? m=None, " ORKNN_NEW_TENSOR, eye},
      {"tril_indices(int row, int col, int offset=0, " ORKNN_NEW_TENSOR, triangle_indices<false>},
      {"triu_indices(int row, int col, int offset=0, " ORKNN_NEW_TENSOR, triangle_indices<true>},
      {"hann_window(int length, bool periodic=True, " ORKNN_NEW_TENSOR, hann_window},
      {"blackman_window(int length, bool periodic=True, " ORKNN_NEW_TENSOR, blackman_window},
      {"bartlett_window(int length, bool periodic=True, " ORKNN_NEW_TENSOR, bartlett_window},
      {"hamming_window(int length, bool periodic=True, float alpha=0.54, float beta=0.46, " ORKNN_NEW_TENSOR, hamming_window},
      {"rand|randn|rand_like|randn_like|randint|randperm|bernoulli|normal|uniform_|normal_|multinomial(...)", random},
  };
  return rows;
}
#undef ORKNN_NEW_TENSOR

}  // namespace orknn::importer::pytorch
