// The integer cores with AVX-512; compiled with its flags and run only where the machine has it.
#if defined(__x86_64__)
#define ORKNN_INT_FORM int_avx512
#include "sim/kernels/support/int_simd_avx512.h"

#include "sim/kernels/support/int_forms_body.h"
#endif
