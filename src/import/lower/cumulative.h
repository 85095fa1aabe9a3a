// Running sums and products.
#pragma once

#include "import/lower/emitter.h"

namespace orknn::importer {

// `op` is CumSum or CumProd. `exclusive` leaves out the element itself, `reverse` runs from the end.
inline ir::TensorId cumulative(Emitter& e, std::string_view op, ir::TensorId x, int64_t axis, bool exclusive, bool reverse) {
  return e.emit(std::string(op), {x, e.add_int_scalar("axis", axis)},
                {{"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}});
}

}  // namespace orknn::importer
