// The discrete Fourier transform of any length in double precision.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace orknn::ops {

// Lengths beyond this are refused by the ops: nothing that is meant seriously comes near.
constexpr int64_t kMaxFourierLength = int64_t{1} << 26;

// Transforms signals of one length again and again. Powers of two take n log n steps directly, other lengths are carried
// by a convolution of such a length (Bluestein).
class Fourier {
 public:
  Fourier(size_t length, bool inverse);
  size_t length() const { return length_; }
  // In place; the inverse divides by the length.
  void transform(std::span<std::complex<double>> signal) const;

 private:
  using Complex = std::complex<double>;
  size_t length_;
  bool inverse_;
  size_t inner_;                 // the power of two that does the work
  std::vector<Complex> roots_;   // of unity for `inner_`, first half
  std::vector<Complex> chirp_;   // Bluestein: exp(-+ i pi k^2 / n); empty for a power of two
  std::vector<Complex> kernel_;  // transformed chirp
};

}  // namespace orknn::ops
