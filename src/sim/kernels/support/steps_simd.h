// Element-wise functions on vectors and the evaluator of fused tails.
#pragma once

#include "sim/kernels/support/forms.h"
#include "sim/kernels/support/simd_math.h"

namespace orknn::sim::kernels::ORKNN_FORM {

// Calls body(f) with f(x), a Vec function of one Vec; parameters are splatted once, outside of the loops in body.
template <class Body>
ORKNN_SIMD void with_unary(Fn fn, float pa, float pb, Body&& body) {
  const Vec a = splat(pa), b = splat(pb), zero = splat(0.0f), one = splat(1.0f);
  switch (fn) {
    case Fn::Relu: return body([=](Vec x) { return max(zero, x); });
    case Fn::Clip: return body([=](Vec x) { return min(b, max(a, x)); });
    case Fn::LeakyRelu: return body([=](Vec x) { return select(less(x, zero), x * a, x); });
    case Fn::Sigmoid: return body([=](Vec x) { return sigmoid(x); });
    case Fn::Swish: return body([=](Vec x) { return x / (one + exp(negate(a * x))); });
    case Fn::HardSwish: return body([=](Vec x) { return x * max(zero, min(one, fma(x, splat(1.0f / 6.0f), splat(0.5f)))); });
    case Fn::HardSigmoid: return body([=](Vec x) { return max(zero, min(one, fma(x, a, b))); });
    case Fn::Tanh: return body([=](Vec x) { return tanh(x); });
    case Fn::Gelu: return body([=](Vec x) { return gelu(x); });
    case Fn::GeluTanh: return body([=](Vec x) { return gelu_tanh(x); });
    case Fn::Mish: return body([=](Vec x) { return mish(x); });
    case Fn::Elu: return body([=](Vec x) { return select(less(x, zero), a * (exp(x) - one), x); });
    case Fn::Selu: return body([=](Vec x) { return b * select(less(x, zero), a * (exp(x) - one), x); });
    case Fn::Celu: return body([=](Vec x) { return select(less(x, zero), a * (exp(x / a) - one), x); });
    case Fn::Softplus: return body([=](Vec x) { return softplus(x); });
    case Fn::Softsign: return body([=](Vec x) { return x / (one + abs(x)); });
    case Fn::ThresholdedRelu: return body([=](Vec x) { return select(is_nan(x), x, select(less(a, x), x, zero)); });
    case Fn::Exp: return body([=](Vec x) { return exp(x); });
    case Fn::Log: return body([=](Vec x) { return log(x); });
    case Fn::Sqrt: return body([=](Vec x) { return sqrt(x); });
    case Fn::Reciprocal: return body([=](Vec x) { return one / x; });
    case Fn::Neg: return body([=](Vec x) { return negate(x); });
    case Fn::Abs: return body([=](Vec x) { return abs(x); });
    case Fn::Erf: return body([=](Vec x) { return erf(x); });
    case Fn::Floor: return body([=](Vec x) { return floor(x); });
    case Fn::Ceil: return body([=](Vec x) { return ceil(x); });
    case Fn::Round: return body([=](Vec x) { return round_even(x); });
    case Fn::Sin: return body([=](Vec x) { return sine(x, 0.0f); });
    case Fn::Cos: return body([=](Vec x) { return sine(x, 1.0f); });
    case Fn::Sign: return body([=](Vec x) { return select(less(zero, abs(x)), copy_sign(one, x), x); });
    case Fn::Cube: return body([=](Vec x) { return x * x * x; });
    case Fn::InverseSqrt: return body([=](Vec x) { return one / sqrt(x); });
    case Fn::Square: return body([=](Vec x) { return x * x; });
    case Fn::ScaleShift: return body([=](Vec x) { return fma(x, a, b); });
    default: return body([=](Vec x) { return x; });
  }
}

// Calls body(f) with f(x, y).
template <class Body>
ORKNN_SIMD void with_binary(Fn fn, Body&& body) {
  const Vec zero = splat(0.0f);
  switch (fn) {
    case Fn::Subtract: return body([](Vec x, Vec y) { return x - y; });
    case Fn::SubtractFrom: return body([](Vec x, Vec y) { return y - x; });
    case Fn::Multiply: return body([](Vec x, Vec y) { return x * y; });
    case Fn::Divide: return body([](Vec x, Vec y) { return x / y; });
    case Fn::DivideInto: return body([](Vec x, Vec y) { return y / x; });
    case Fn::Max: return body([](Vec x, Vec y) { return select(is_nan(x), x, max(x, y)); });
    case Fn::Min: return body([](Vec x, Vec y) { return select(is_nan(x), x, min(x, y)); });
    case Fn::PRelu: return body([=](Vec x, Vec y) { return select(less(x, zero), x * y, x); });
    default: return body([](Vec x, Vec y) { return x + y; });
  }
}

// values[r][c] = f(values[r][c]) over a block.
template <class F>
ORKNN_SIMD void map_block(float* values, int64_t row_stride, int64_t rows, int64_t columns, F f) {
  for (int64_t r = 0; r < rows; ++r) {
    float* p = values + r * row_stride;
    int64_t c = 0;
    for (; c + Vec::kWidth <= columns; c += Vec::kWidth) store(p + c, f(load(p + c)));
    if (c < columns) {
      const int rest = static_cast<int>(columns - c);
      store_part(p + c, f(load_part(p + c, rest)), rest);
    }
  }
}

template <class T, class F>
ORKNN_SIMD void map_block2(float* values, int64_t row_stride, int64_t rows, int64_t columns, const T* operand,
                           int64_t operand_row_stride, bool dense, F f) {
  for (int64_t r = 0; r < rows; ++r) {
    float* p = values + r * row_stride;
    const T* q = operand + r * operand_row_stride;
    int64_t c = 0;
    if (dense) {
      for (; c + Vec::kWidth <= columns; c += Vec::kWidth) store(p + c, f(load(p + c), load(q + c)));
      if (c < columns) {
        const int rest = static_cast<int>(columns - c);
        store_part(p + c, f(load_part(p + c, rest), load_part(q + c, rest)), rest);
      }
    } else {
      float y[Vec::kWidth];
      store(y, load_part(q, 1));
      const Vec all = splat(y[0]);
      for (; c + Vec::kWidth <= columns; c += Vec::kWidth) store(p + c, f(load(p + c), all));
      if (c < columns) {
        const int rest = static_cast<int>(columns - c);
        store_part(p + c, f(load_part(p + c, rest), all), rest);
      }
    }
  }
}

static void apply_steps(float* values, int64_t row_stride, int64_t rows, int64_t columns, const Step* steps, int64_t step_count,
                        int64_t batch, int64_t row, int64_t column) {
  for (int64_t i = 0; i < step_count; ++i) {
    const Step& s = steps[i];
    if (s.fn == Fn::Called) {
      for (int64_t r = 0; r < rows; ++r)
        for (float *p = values + r * row_stride, *end = p + columns; p != end; ++p) *p = s.call(*p, s.a, s.b);
      continue;
    }
    const int64_t offset = batch * s.batch_stride + row * s.row_stride + column * s.column_stride;
    const bool dense = s.column_stride != 0;
    // Rows without gaps between them, here and in the operand, are one.
    const bool joined = row_stride == columns && (!takes_operand(s.fn) || s.row_stride == (dense ? columns : 0));
    const int64_t lines = joined ? 1 : rows, length = joined ? rows * columns : columns;
    if (!takes_operand(s.fn)) {
      with_unary(s.fn, s.a, s.b, [&](auto f) { map_block(values, row_stride, lines, length, f); });
      continue;
    }
    with_binary(s.fn, [&](auto f) {
      if (s.storage == Storage::Half)
        map_block2(values, row_stride, lines, length, static_cast<const Half*>(s.operand) + offset, s.row_stride, dense, f);
      else
        map_block2(values, row_stride, lines, length, static_cast<const float*>(s.operand) + offset, s.row_stride, dense, f);
    });
  }
}

static void map(Fn fn, float a, float b, const float* x, float* y, int64_t count) {
  with_unary(fn, a, b, [&](auto f) {
    int64_t i = 0;
    for (; i + Vec::kWidth <= count; i += Vec::kWidth) store(y + i, f(load(x + i)));
    if (i < count) store_part(y + i, f(load_part(x + i, static_cast<int>(count - i))), static_cast<int>(count - i));
  });
}

static void map2(Fn fn, const float* x, bool x_dense, const float* y, bool y_dense, float* z, int64_t count) {
  with_binary(fn, [&](auto f) {
    const auto loop = [&](auto left, auto right) {
      int64_t i = 0;
      for (; i + Vec::kWidth <= count; i += Vec::kWidth) store(z + i, f(left(i, Vec::kWidth), right(i, Vec::kWidth)));
      if (i < count) {
        const int rest = static_cast<int>(count - i);
        store_part(z + i, f(left(i, rest), right(i, rest)), rest);
      }
    };
    const auto dense = [](const float* p) {
      return [p](int64_t i, int n) { return n == Vec::kWidth ? load(p + i) : load_part(p + i, n); };
    };
    const auto same = [](const float* p) { return [v = splat(*p)](int64_t, int) { return v; }; };
    if (x_dense && y_dense)
      loop(dense(x), dense(y));
    else if (x_dense)
      loop(dense(x), same(y));
    else if (y_dense)
      loop(same(x), dense(y));
    else
      loop(same(x), same(y));
  });
}

static void to_float(const Half* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + Vec::kWidth <= count; i += Vec::kWidth) store(to + i, load(from + i));
  if (i < count) store_part(to + i, load_part(from + i, static_cast<int>(count - i)), static_cast<int>(count - i));
}

static void to_half(const float* from, Half* to, int64_t count) {
  int64_t i = 0;
  for (; i + Vec::kWidth <= count; i += Vec::kWidth) store(to + i, load(from + i));
  if (i < count) store_part(to + i, load_part(from + i, static_cast<int>(count - i)), static_cast<int>(count - i));
}

}  // namespace orknn::sim::kernels::ORKNN_FORM
