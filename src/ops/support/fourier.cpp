#include "ops/support/fourier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace orknn::ops {
namespace {
using Complex = std::complex<double>;

// Forward transform of a power-of-two length with the given roots exp(-2 pi i k / n).
void transform_power_of_two(std::span<Complex> x, std::span<const Complex> roots) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t half = 1; half < n; half *= 2) {
    const size_t step = n / (2 * half);
    for (size_t block = 0; block < n; block += 2 * half)
      for (size_t k = 0; k < half; ++k) {
        const Complex odd = x[block + half + k] * roots[k * step], even = x[block + k];
        x[block + k] = even + odd;
        x[block + half + k] = even - odd;
      }
  }
}
}  // namespace

Fourier::Fourier(size_t length, bool inverse) : length_(length), inverse_(inverse), inner_(length) {
  const bool direct = std::has_single_bit(length);
  if (!direct) inner_ = std::bit_ceil(2 * std::max<size_t>(length, 1) - 1);
  for (size_t k = 0; k < inner_ / 2; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(inner_);
    roots_.emplace_back(std::cos(angle), std::sin(angle));
  }
  if (direct) return;
  const uint64_t circle = uint64_t{2} * length;
  uint64_t phase = 0;  // k^2 modulo 2n, which keeps the angle small and exact
  for (size_t k = 0; k < length; ++k) {
    const double angle = -std::numbers::pi * static_cast<double>(phase) / static_cast<double>(length);
    chirp_.emplace_back(std::cos(angle), std::sin(angle));
    phase = (phase + uint64_t{2} * k + 1) % circle;
  }
  kernel_.assign(inner_, 0.0);
  for (size_t k = 0; k < length; ++k) {
    kernel_[k] = std::conj(chirp_[k]);
    if (k > 0) kernel_[inner_ - k] = std::conj(chirp_[k]);
  }
  transform_power_of_two(kernel_, roots_);
}

void Fourier::transform(std::span<Complex> signal) const {
  if (length_ <= 1) return;
  // The inverse is the forward transform between two conjugations.
  if (inverse_)
    for (Complex& v : signal) v = std::conj(v);
  if (chirp_.empty()) {
    transform_power_of_two(signal, roots_);
  } else {
    std::vector<Complex> work(inner_);
    for (size_t k = 0; k < length_; ++k) work[k] = signal[k] * chirp_[k];
    transform_power_of_two(work, roots_);
    for (size_t k = 0; k < inner_; ++k) work[k] = std::conj(work[k] * kernel_[k]);
    transform_power_of_two(work, roots_);
    const double scale = 1.0 / static_cast<double>(inner_);
    for (size_t k = 0; k < length_; ++k) signal[k] = std::conj(work[k]) * scale * chirp_[k];
  }
  if (inverse_)
    for (Complex& v : signal) v = std::conj(v) / static_cast<double>(length_);
}

}  // namespace orknn::ops
