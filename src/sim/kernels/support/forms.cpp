#include "sim/kernels/support/forms.h"

namespace orknn::sim::kernels {

namespace portable {
extern const Forms kForms;
}
namespace fused {
extern const Forms kForms;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Forms kForms;
}
namespace avx512 {
extern const Forms kForms;
}
#elif defined(__aarch64__)
namespace neon {
extern const Forms kForms;
}
#endif

const Forms& forms(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx2) return avx2::kForms;
  if (isa == Isa::Avx512 || isa == Isa::Avx512Vnni) return avx512::kForms;
#elif defined(__aarch64__)
  if (isa != Isa::Portable) return neon::kForms;
#endif
  (void)isa;
  return reproducible_floats() ? fused::kForms : portable::kForms;
}

}  // namespace orknn::sim::kernels
