#include "sim/kernels/support/int_forms.h"

#include "sim/kernels/support/int_scalar.h"

namespace orknn::sim::kernels {

namespace int_portable {
extern const IntForms kIntForms;
}
#if defined(__x86_64__)
namespace int_avx2 {
extern const IntForms kIntForms;
}
namespace int_avx512 {
extern const IntForms kIntForms;
}
namespace int_avx512vnni {
extern const IntForms kIntForms;
}
#elif defined(__aarch64__)
namespace int_neon {
extern const IntForms kIntForms;
}
namespace int_dotprod {
extern const IntForms kIntForms;
}
namespace int_i8mm {
extern const IntForms kIntForms;
}
#endif

const IntForms& int_forms(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx2) return int_avx2::kIntForms;
  if (isa == Isa::Avx512) return int_avx512::kIntForms;
  if (isa == Isa::Avx512Vnni) return int_avx512vnni::kIntForms;
#elif defined(__aarch64__)
  if (isa == Isa::Neon) return int_neon::kIntForms;
  if (isa == Isa::NeonDot) return int_dotprod::kIntForms;
  if (isa == Isa::NeonI8mm) return int_i8mm::kIntForms;
#endif
  (void)isa;
  return int_portable::kIntForms;
}

void convert_exactly(const IntConvert& convert, const int32_t* sums, int64_t count) { convert_scalar(convert, sums, count); }
void binary_exactly(const IntBinary& binary, int64_t count) { binary_scalar(binary, count); }

}  // namespace orknn::sim::kernels
