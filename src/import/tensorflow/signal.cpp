// Fourier transforms and the audio front ends built on them. A complex tensor is one of ours with real and imaginary parts in an
// axis of its own at the end; only the operators of this file read those.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
Result<TensorId> complex_input(Layer& layer, size_t i) {
  ORKNN_TRY(layer.need_inputs(i + 1));
  const TensorId x = layer.value(i).tensor;
  if (!x || !layer.import.complex_tensors.contains(x.index))
    return unsupported("complex numbers are read only as the transforms write them").found("input " + std::to_string(i));
  return x;
}

void set_complex(Layer& layer, TensorId y) {
  layer.import.complex_tensors.insert(y.index);
  layer.set(y);
}

// RFFT: the half of the spectrum that a real signal has. IRFFT: back to the signal.
Status lower_rfft(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const int64_t length, layer.integer(1, "to size the transform"));
  set_complex(
      layer,
      layer.emit("DFT", {layer.unsqueeze(x, {-1}), layer.add_int_scalar("length", length), layer.add_int_scalar("axis", -2)},
                 {{"onesided", int64_t{1}}}));
  return {};
}

Status lower_irfft(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, complex_input(layer, 0));
  ORKNN_TRY_ASSIGN(const int64_t length, layer.integer(1, "to size the transform"));
  const TensorId y = layer.emit("DFT", {x, layer.add_int_scalar("length", length), layer.add_int_scalar("axis", -2)},
                                {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}});
  layer.set(layer.squeeze(y, {-1}));
  return {};
}

Status lower_fft(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, complex_input(layer, 0));
  set_complex(layer, layer.emit("DFT", {x, {}, layer.add_int_scalar("axis", -2)}, {{"inverse", int64_t{layer.op() == "IFFT"}}}));
  return {};
}

Status lower_complex(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId real, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId imaginary, layer.input(1));
  set_complex(layer, layer.concat({layer.unsqueeze(real, {-1}), layer.unsqueeze(imaginary, {-1})}, -1));
  return {};
}

TensorId part(Layer& layer, TensorId x, int64_t i) { return layer.squeeze(layer.slice(x, {i}, {i + 1}, {-1}), {-1}); }

Status lower_part(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, complex_input(layer, 0));
  layer.set(part(layer, x, layer.op() == "Imag" ? 1 : 0));
  return {};
}

Status lower_magnitude(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, complex_input(layer, 0));
  layer.set(layer.emit("ReduceL2", {x, layer.add_ints("axes", {-1})}, {{"keepdims", int64_t{0}}}));
  return {};
}

constexpr int64_t kMostSamples = 1 << 24;

// Windows of a signal [samples, channels], weighted, transformed: [channels, windows, frequencies].
Status lower_spectrogram(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to cut windows"));
  const int64_t window = layer.int_or("window_size", 0), stride = layer.int_or("stride", 0);
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
  const TensorId order = layer.add_constant("samples", TensorData::from<int64_t>({count, window}, samples));
  const TensorId windows = layer.emit("Gather", {layer.transpose(x, {1, 0}), order}, {{"axis", int64_t{1}}});
  const TensorId weighted =
      layer.emit("Mul", {windows, layer.add_constant("window", TensorData::from<float>({window}, weights))});
  const TensorId spectrum = layer.emit(
      "DFT", {layer.unsqueeze(weighted, {-1}), layer.add_int_scalar("length", length), layer.add_int_scalar("axis", -2)},
      {{"onesided", int64_t{1}}});
  layer.set(layer.emit(layer.bool_or("magnitude_squared", false) ? "ReduceSumSquare" : "ReduceL2",
                       {spectrum, layer.add_ints("axes", {-1})}, {{"keepdims", int64_t{0}}}));
  return {};
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
Status lower_mfcc(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const double rate, layer.number(1, "to know the frequencies"));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to know the frequencies"));
  const int64_t bands = layer.int_or("filterbank_channel_count", 40), coefficients = layer.int_or("dct_coefficient_count", 13);
  const double low = layer.float_or("lower_frequency_limit", 20), high = layer.float_or("upper_frequency_limit", 4000);
  constexpr int64_t kMost = 1 << 12;
  if (dims.size() != 3 || dims[2] < 2 || dims[2] > (1 << 20) || bands < 1 || bands > kMost || coefficients < 1 ||
      coefficients > bands || !(rate > 0) || !(low >= 0) || !(high > low) || !std::isfinite(rate) || !std::isfinite(high))
    return invalid_model("the filter bank is not valid").found(to_string(dims));
  const TensorId energies =
      layer.emit("MatMul", {layer.emit("Sqrt", {x}), layer.add_constant("mel", mel_matrix(dims[2], bands, rate, low, high))});
  const TensorId logs = layer.emit("Log", {layer.emit("Max", {energies, layer.add_scalar("floor", 1e-12)})});
  std::vector<float> cosines(static_cast<size_t>(bands * coefficients));
  for (int64_t j = 0; j < bands; ++j)
    for (int64_t i = 0; i < coefficients; ++i)
      cosines[static_cast<size_t>(j * coefficients + i)] = static_cast<float>(
          std::sqrt(2.0 / static_cast<double>(bands)) *
          std::cos(static_cast<double>(i) * std::numbers::pi / static_cast<double>(bands) * (static_cast<double>(j) + 0.5)));
  layer.set(layer.emit("MatMul", {logs, layer.add_constant("cosines", TensorData::from<float>({bands, coefficients}, cosines))}));
  return {};
}
}  // namespace

std::span<const Row> signal_rows() {
  static constexpr Row kRows[] = {
      {"RFFT", lower_rfft}, {"IRFFT", lower_irfft},          {"FFT", lower_fft},
      {"IFFT", lower_fft},  {"Complex", lower_complex},      {"Real", lower_part},
      {"Imag", lower_part}, {"ComplexAbs", lower_magnitude}, {"AudioSpectrogram", lower_spectrogram},
      {"Mfcc", lower_mfcc},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
