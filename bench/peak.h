// What a core can multiply at best: loops whose operands never leave the registers.
#pragma once

#include "sim/kernels/support/cpu.h"

namespace orknn::bench {

// Multiply-accumulates per second of one core in the form's fastest exact way: of int8 values, or of floats. 0 where no such loop
// is written (portable).
double register_peak(sim::kernels::Isa isa, bool integer);

}  // namespace orknn::bench
