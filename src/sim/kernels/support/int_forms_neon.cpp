// The integer cores with NEON, on 64-bit ARM.
#if defined(__aarch64__)
#define ORKNN_INT_FORM int_neon
#include "sim/kernels/support/int_cores_neon.h"

#include "sim/kernels/support/int_forms_body.h"
#endif
