// Everything of one form, gathered into its table. Included once by each forms_*.cpp.
#pragma once

#include "sim/kernels/support/gemm_simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

extern const Forms kForms;
const Forms kForms = {
    .gemm = gemm,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .pack_conv = pack_conv,
    .apply_steps = apply_steps,
    .to_float = to_float,
    .to_half = to_half,
};

}  // namespace orknn::sim::kernels::ORKNN_FORM
