// The integer cores with AVX-512 and its dot products of bytes (VNNI); compiled with their flags and run only where the machine
// has them.
#if defined(__x86_64__)
#define ORKNN_INT_FORM int_avx512vnni
#define ORKNN_INT_VNNI
#include "sim/kernels/support/int_simd_avx512.h"

#include "sim/kernels/support/int_forms_body.h"
#endif
