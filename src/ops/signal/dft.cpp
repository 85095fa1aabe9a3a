// Discrete Fourier transforms: of an axis, and of windows sliding over a signal. The last axis holds real and imaginary parts.
#include <algorithm>

#include "ops/support/fourier.h"
#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;
using Complex = std::complex<double>;

Status check_parts(DType dtype, const Dim& parts) {
  if (!is_float(dtype)) return invalid_model("a signal must be floats").found(std::string(dtype_name(dtype)));
  if (parts.is_known() && parts.value() != 1 && parts.value() != 2)
    return shape_mismatch("the last axis holds the real part, or both parts").expected("1 or 2").found(parts.to_string());
  return {};
}

Result<int64_t> signal_axis(int64_t axis, int64_t rank) {
  ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(axis, rank));
  if (normalized == rank - 1) return invalid_model("the axis of real and imaginary parts cannot be transformed");
  return normalized;
}

Result<int64_t> checked_length(int64_t length) {
  if (length < 1 || length > kMaxFourierLength)
    return invalid_argument("illegal length of a transform")
        .expected("1 to " + std::to_string(kMaxFourierLength))
        .found(std::to_string(length));
  return length;
}

// The only element of an integer input, as far as it is known.
Dim single_content(const InferContext& c, size_t i) {
  const auto content = small_content(c, i);
  return content && content->size() == 1 ? content->front() : Dim();
}

Result<int64_t> single(const TensorView& t, const char* what) {
  const std::vector<int64_t> values = to_ints(t);
  if (values.size() != 1) return invalid_argument(std::string(what) + " must be one number").found(to_string(t.dims));
  return values[0];
}

Status infer_dft(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "dft_length"));
  ORKNN_TRY(require_integer(c, 2, "axis"));
  const Shape* x = c.shape(0);
  if (!x) {
    ORKNN_TRY(check_parts(c.dtype(0), {}));
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  if (x->size() < 2) return shape_mismatch("a signal has at least two axes").found(to_string(*x));
  ORKNN_TRY(check_parts(c.dtype(0), x->back()));
  const bool inverse = c.get_int("inverse") != 0, onesided = c.get_int("onesided") != 0;
  const Dim parts = inverse && onesided ? 1 : 2;
  const Dim axis_given = c.has_input(2) ? single_content(c, 2) : Dim(-2);
  if (!axis_given.is_known()) {
    Shape out(x->size());
    out.back() = parts;
    c.set_output(0, c.dtype(0), std::move(out));
    return {};
  }
  ORKNN_TRY_ASSIGN(const int64_t axis, signal_axis(axis_given.value(), static_cast<int64_t>(x->size())));
  const Dim extent = (*x)[static_cast<size_t>(axis)];
  Dim length = extent;
  if (c.has_input(1))
    length = single_content(c, 1);
  else if (inverse && onesided)
    length = Dim(2) * (extent - Dim(1));
  if (length.is_known()) ORKNN_TRY(checked_length(length.value()).status());
  Shape out = *x;
  out[static_cast<size_t>(axis)] = onesided && !inverse ? length / Dim(2) + Dim(1) : length;
  out.back() = parts;
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run_dft(RunContext& c) {
  const TensorView x = c.input(0);
  int64_t axis_given = -2;
  if (c.has_input(2)) {
    ORKNN_TRY_ASSIGN(axis_given, single(c.input(2), "axis"));
  }
  if (x.rank() < 2) return shape_mismatch("a signal has at least two axes").found(to_string(x.dims));
  ORKNN_TRY(check_parts(x.dtype, x.dims.back()));
  ORKNN_TRY_ASSIGN(const int64_t normalized, signal_axis(axis_given, x.rank()));
  const auto axis = static_cast<size_t>(normalized);
  const bool inverse = c.get_int("inverse") != 0, onesided = c.get_int("onesided") != 0, to_real = inverse && onesided;
  const int64_t extent = x.dims[axis], parts = x.dims.back();
  int64_t wanted = to_real ? 2 * (extent - 1) : extent;
  if (c.has_input(1)) {
    ORKNN_TRY_ASSIGN(wanted, single(c.input(1), "dft_length"));
  }
  ORKNN_TRY_ASSIGN(const int64_t length, checked_length(wanted));
  const int64_t bins = onesided && !inverse ? length / 2 + 1 : length, out_parts = to_real ? 1 : 2;
  Dims dims(x.dims.begin(), x.dims.end());
  dims[axis] = bins;
  dims.back() = out_parts;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  const Fourier fourier(static_cast<size_t>(length), inverse);
  const int64_t outer = extent_product(x.dims, 0, axis), inner = extent_product(x.dims, axis + 1, x.dims.size() - 1);
  const int64_t used = std::min(extent, to_real ? length / 2 + 1 : length);
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      c.pool.parallel_for(outer * inner, std::max<int64_t>(1, (1 << 12) / length), [&](int64_t begin, int64_t end) {
        std::vector<Complex> signal(static_cast<size_t>(length));
        for (int64_t n = begin; n < end; ++n) {
          const int64_t o = n / inner, i = n % inner;
          std::fill(signal.begin(), signal.end(), Complex());
          for (int64_t k = 0; k < used; ++k) {
            const T* v = x.as<T>() + ((o * extent + k) * inner + i) * parts;
            signal[static_cast<size_t>(k)] = {static_cast<double>(v[0]), parts == 2 ? static_cast<double>(v[1]) : 0.0};
          }
          // The missing half of a real signal's spectrum mirrors the one given.
          if (to_real)
            for (int64_t k = length / 2 + 1; k < length; ++k)
              signal[static_cast<size_t>(k)] = std::conj(signal[static_cast<size_t>(length - k)]);
          fourier.transform(signal);
          for (int64_t k = 0; k < bins; ++k) {
            T* v = y.as<T>() + ((o * bins + k) * inner + i) * out_parts;
            v[0] = static_cast<T>(signal[static_cast<size_t>(k)].real());
            if (!to_real) v[1] = static_cast<T>(signal[static_cast<size_t>(k)].imag());
          }
        }
      });
    }
  });
  return {};
}

Status check_window(const Dim& window, const Dim& length) {
  if (!window.is_known() || !length.is_known() || window == length) return {};
  return shape_mismatch("window and frame differ in length").expected(length.to_string()).found(window.to_string());
}

Status infer_stft(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "frame_step"));
  ORKNN_TRY(require_integer(c, 3, "frame_length"));
  if (c.has_input(2) && c.dtype(2) != c.dtype(0)) return invalid_model("window and signal must have the same type");
  const Shape *x = c.shape(0), *window = c.shape(2);
  if (x && x->size() != 3) return shape_mismatch("the signal must be [batch, length, parts]").found(to_string(*x));
  ORKNN_TRY(check_parts(c.dtype(0), x ? x->back() : Dim()));
  if (window && window->size() != 1) return shape_mismatch("the window must have one axis").found(to_string(*window));
  const Dim signal = x ? (*x)[1] : Dim(), step = single_content(c, 1);
  Dim length = signal;
  if (c.has_input(3))
    length = single_content(c, 3);
  else if (c.has_input(2))
    length = window ? window->front() : Dim();
  if (length.is_known()) ORKNN_TRY(checked_length(length.value()).status());
  if (window) ORKNN_TRY(check_window(window->front(), length));
  if (step.is_known() && step.value() < 1) return invalid_model("frame_step must be positive").found(step.to_string());
  if (signal.is_known() && length.is_known() && signal.value() < length.value())
    return shape_mismatch("the signal is shorter than a frame")
        .expected("at least " + length.to_string())
        .found(signal.to_string());
  Dim frames;
  if (signal.is_known() && length.is_known() && step.is_known()) frames = (signal - length) / step + Dim(1);
  c.set_output(0, c.dtype(0),
               Shape{x ? (*x)[0] : Dim(), frames, c.get_int("onesided") != 0 ? length / Dim(2) + Dim(1) : length, 2});
  return {};
}

Status run_stft(RunContext& c) {
  const TensorView x = c.input(0);
  if (x.rank() != 3) return shape_mismatch("the signal must be [batch, length, parts]").found(to_string(x.dims));
  ORKNN_TRY(check_parts(x.dtype, x.dims.back()));
  ORKNN_TRY_ASSIGN(const int64_t step, single(c.input(1), "frame_step"));
  int64_t wanted = c.has_input(2) ? c.input(2).count() : x.dims[1];
  if (c.has_input(3)) {
    ORKNN_TRY_ASSIGN(wanted, single(c.input(3), "frame_length"));
  }
  ORKNN_TRY_ASSIGN(const int64_t length, checked_length(wanted));
  if (step < 1) return invalid_argument("frame_step must be positive").found(std::to_string(step));
  if (x.dims[1] < length)
    return shape_mismatch("the signal is shorter than a frame")
        .expected("at least " + std::to_string(length))
        .found(std::to_string(x.dims[1]));
  std::vector<double> window(static_cast<size_t>(length), 1.0);
  if (c.has_input(2)) window = to_doubles(c.input(2));
  ORKNN_TRY(check_window(static_cast<int64_t>(window.size()), length));
  const int64_t frames = (x.dims[1] - length) / step + 1, parts = x.dims[2];
  const int64_t bins = c.get_int("onesided") != 0 ? length / 2 + 1 : length;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, Dims{x.dims[0], frames, bins, 2}));
  const Fourier fourier(static_cast<size_t>(length), false);
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      c.pool.parallel_for(x.dims[0] * frames, std::max<int64_t>(1, (1 << 12) / length), [&](int64_t begin, int64_t end) {
        std::vector<Complex> signal(static_cast<size_t>(length));
        for (int64_t n = begin; n < end; ++n) {
          const T* from = x.as<T>() + (n / frames * x.dims[1] + n % frames * step) * parts;
          for (int64_t k = 0; k < length; ++k)
            signal[static_cast<size_t>(k)] =
                Complex(static_cast<double>(from[k * parts]), parts == 2 ? static_cast<double>(from[k * parts + 1]) : 0.0) *
                window[static_cast<size_t>(k)];
          fourier.transform(signal);
          T* to = y.as<T>() + n * bins * 2;
          for (int64_t k = 0; k < bins; ++k) {
            to[2 * k] = static_cast<T>(signal[static_cast<size_t>(k)].real());
            to[2 * k + 1] = static_cast<T>(signal[static_cast<size_t>(k)].imag());
          }
        }
      });
    }
  });
  return {};
}
}  // namespace

std::span<const OpDef> dft() {
  static const OpDef defs[] = {
      {.name = "DFT",
       .summary = "discrete Fourier transform of an axis",
       .inputs = {1, 3},
       .attributes = {attr_int("inverse", 0), attr_int("onesided", 0)},
       .infer = infer_dft,
       .run = run_dft},
      {.name = "STFT",
       .summary = "Fourier transforms of sliding windows",
       .inputs = {2, 4},
       .attributes = {attr_int("onesided", 1)},
       .infer = infer_stft,
       .run = run_stft},
  };
  return defs;
}
}  // namespace orknn::ops
