// Fourier transforms. Complex numbers are tensors with a last axis of two, real and imaginary part.
#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {

Result<Value> refused(Call& c) {
  return c.fail("complex numbers are not supported").hint("compute the spectrum outside of the network, or as a convolution with cosines and sines");
}

constexpr Row kRows[] = {
    {"stft(...)", refused},
    {"istft(...)", refused},
    {"fft_fft(...)", refused},
    {"fft_ifft(...)", refused},
    {"fft_rfft(...)", refused},
    {"fft_irfft(...)", refused},
    {"fft_fft2(...)", refused},
    {"fft_rfft2(...)", refused},
    {"view_as_complex(...)", refused},
    {"view_as_real(...)", refused},
    {"complex(...)", refused},
};
}  // namespace

std::span<const Row> signal_rows() { return kRows; }

}  // namespace orknn::importer::pytorch
