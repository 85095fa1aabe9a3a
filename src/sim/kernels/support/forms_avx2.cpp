// The compute cores with AVX2, FMA and F16C; compiled with those flags and run only where the machine has them.
#if defined(__x86_64__)
#define ORKNN_FORM_AVX2
#include "sim/kernels/support/forms_body.h"
#endif
