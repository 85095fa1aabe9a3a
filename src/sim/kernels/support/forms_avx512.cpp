// The compute cores with AVX-512; compiled with its flags and run only where the machine has it.
#if defined(__x86_64__)
#define ORKNN_FORM_AVX512
#include "sim/kernels/support/forms_body.h"
#endif
