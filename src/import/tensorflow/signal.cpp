// Fourier transforms and the audio front ends built on them. A complex tensor is one of ours with real and imaginary parts in an
// axis of its own at the end; only the operators of this file read those.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// What the layer reads, and what it makes, is complex.
Result<TensorId> complex_input(Layer& l) {
  const TensorId x = l.operand_count() > 0 ? l.value(0).tensor : TensorId{};
  if (!x || !l.import.complex_tensors.contains(x.index))
    return unsupported("complex numbers are read only as the transforms write them").found("input 0");
  return x;
}
TensorId as_complex(Layer& l, TensorId y) {
  l.import.complex_tensors.insert(y.index);
  return y;
}

// The half of the spectrum that a real signal has.
TensorId half_spectrum(Layer& l, TensorId x, int64_t length) {
  return l.emit("DFT", {l.unsqueeze(x, {-1}), l.add_int_scalar("length", length), l.add_int_scalar("axis", -2)},
                {{"onesided", int64_t{1}}});
}

Result<TensorId> rfft(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t length, l.integer(1, "to size the transform"));
  return as_complex(l, half_spectrum(l, x, length));
}

Result<TensorId> irfft(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, complex_input(l));
  ORKNN_TRY_ASSIGN(const int64_t length, l.integer(1, "to size the transform"));
  const TensorId y = l.emit("DFT", {x, l.add_int_scalar("length", length), l.add_int_scalar("axis", -2)},
                            {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}});
  return l.squeeze(y, {-1});
}

Result<TensorId> fft(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, complex_input(l));
  return as_complex(l, l.emit("DFT", {x, {}, l.add_int_scalar("axis", -2)}, {{"inverse", int64_t{l.op() == "IFFT"}}}));
}

TensorId complex(Layer& l, TensorId real, TensorId imaginary) { return as_complex(l, l.stack({real, imaginary}, -1)); }

template <int64_t Index>
Result<TensorId> complex_part(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, complex_input(l));
  return l.squeeze(l.slice(x, -1, Index, Index + 1), {-1});
}

Result<TensorId> magnitude(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, complex_input(l));
  return l.reduce("ReduceL2", x, {-1}, false);
}

constexpr int64_t kMostSamples = 1 << 24;

// Windows of a signal [samples, channels], weighted, transformed: [channels, windows, frequencies].
Result<TensorId> spectrogram(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to cut windows"));
  const int64_t window = l.int_or("window_size", 0), stride = l.int_or("stride", 0);
  if (dims.size() != 2 || window < 2 || stride < 1 || window > dims[0])
    return shape_mismatch("the signal does not fit the window")
        .expected("[samples, channels] of at least " + std::to_string(window))
        .found(to_string(dims));
  const int64_t count = 1 + (dims[0] - window) / stride;
  if (count > kMostSamples / window) return unsupported("the signal is too long").found(to_string(dims));
  int64_t length = 1;
  while (length < window) length *= 2;
  std::vector<int64_t> samples;
  std::vector<float> weights;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < window; ++k) samples.push_back(i * stride + k);
  for (int64_t k = 0; k < window; ++k)
    weights.push_back(
        static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(window))));
  const TensorId order = l.add_constant("samples", TensorData::from<int64_t>({count, window}, samples));
  const TensorId window_weights = l.add_constant("window", TensorData::from<float>({window}, weights));
  const TensorId spectrum = half_spectrum(l, l.mul(l.gather(l.transpose(x, {1, 0}), order, 1), window_weights), length);
  return l.reduce(l.bool_or("magnitude_squared", false) ? "ReduceSumSquare" : "ReduceL2", spectrum, {-1}, false);
}

double mel(double frequency) { return 1127.0 * std::log1p(frequency / 700.0); }

// Triangles evenly spaced on the mel scale, as a matrix [frequencies, bands].
TensorData mel_matrix(int64_t frequencies, int64_t bands, double rate, double low, double high) {
  const double base = mel(low), spacing = (mel(high) - base) / static_cast<double>(bands + 1),
               step = 0.5 * rate / static_cast<double>(frequencies - 1);
  const auto first = static_cast<int64_t>(1.5 + low / step), last = static_cast<int64_t>(high / step);
  const auto center = [&](int64_t band) { return base + spacing * static_cast<double>(band + 1); };  // band -1 is the lower limit
  TensorData matrix = TensorData::zeros(DType::Float32, {frequencies, bands});
  auto* values = static_cast<float*>(matrix.mutable_data());
  int64_t band = 0;
  for (int64_t i = std::max<int64_t>(first, 0); i <= std::min(last, frequencies - 1); ++i) {
    const double at = mel(static_cast<double>(i) * step);
    while (band < bands && center(band) < at) ++band;
    // Between the centers of band - 1 and band: the share falls towards the one and rises towards the other.
    const double share = (center(band) - at) / spacing;
    if (band > 0) values[i * bands + band - 1] += static_cast<float>(share);
    if (band < bands) values[i * bands + band] += static_cast<float>(1 - share);
  }
  return matrix;
}

// Mel-frequency cepstral coefficients of a squared spectrogram.
Result<TensorId> mfcc(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const double rate, l.number(1, "to know the frequencies"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to know the frequencies"));
  const int64_t bands = l.int_or("filterbank_channel_count", 40), coefficients = l.int_or("dct_coefficient_count", 13);
  const double low = l.float_or("lower_frequency_limit", 20), high = l.float_or("upper_frequency_limit", 4000);
  constexpr int64_t kMost = 1 << 12;
  if (dims.size() != 3 || dims[2] < 2 || dims[2] > (1 << 20) || bands < 1 || bands > kMost || coefficients < 1 ||
      coefficients > bands || !(rate > 0) || !(low >= 0) || !(high > low) || !std::isfinite(rate) || !std::isfinite(high))
    return invalid_model("the filter bank is not valid").found(to_string(dims));
  const TensorId energies = l.matmul(l.unary("Sqrt", x), l.add_constant("mel", mel_matrix(dims[2], bands, rate, low, high)));
  const TensorId logs = l.unary("Log", l.with_scalar("Max", energies, 1e-12));
  std::vector<float> cosines(static_cast<size_t>(bands * coefficients));
  for (int64_t j = 0; j < bands; ++j)
    for (int64_t i = 0; i < coefficients; ++i)
      cosines[static_cast<size_t>(j * coefficients + i)] = static_cast<float>(
          std::sqrt(2.0 / static_cast<double>(bands)) *
          std::cos(static_cast<double>(i) * std::numbers::pi / static_cast<double>(bands) * (static_cast<double>(j) + 0.5)));
  return l.matmul(logs, l.add_constant("cosines", TensorData::from<float>({bands, coefficients}, cosines)));
}
}  // namespace

std::span<const Row> signal_rows() {
  static const Row rows[] = {
      {"RFFT", rfft},
      {"IRFFT", irfft},
      {"FFT|IFFT", fft},
      {"Complex", complex},
      {"Real", complex_part<0>},
      {"Imag", complex_part<1>},
      {"ComplexAbs", magnitude},
      {"AudioSpectrogram", spectrogram},
      {"Mfcc", mfcc},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
