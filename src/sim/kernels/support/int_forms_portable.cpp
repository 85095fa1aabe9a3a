// The integer cores in plain C++.
#include "sim/kernels/support/int_simd_portable.h"

#include "sim/kernels/support/int_forms_body.h"
