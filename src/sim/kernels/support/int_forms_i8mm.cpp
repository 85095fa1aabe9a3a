// The integer cores with NEON and its dot products of unsigned by signed bytes (part of i8mm); compiled with their
// flags and run only where the machine has them.
#if defined(__aarch64__)
#define ORKNN_INT_FORM int_i8mm
#define ORKNN_INT_USDOT
#include "sim/kernels/support/int_cores_neon.h"

#include "sim/kernels/support/int_forms_body.h"
#endif
