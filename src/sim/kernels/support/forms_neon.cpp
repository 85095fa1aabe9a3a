// The compute cores with NEON, on 64-bit ARM.
#if defined(__aarch64__)
#define ORKNN_FORM_NEON
#include "sim/kernels/support/forms_body.h"
#endif
