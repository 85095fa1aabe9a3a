#include "import/lower/reorganize.h"

namespace orknn::importer {

ir::TensorId reorganize(Emitter& e, ir::TensorId x, const ir::Dims& view, int64_t stride, bool scatter, const ir::Dims& out) {
  const int64_t n = view[0], planes = view[1] / (stride * stride), height = view[2], width = view[3];
  const ir::TensorId y = scatter ? e.transpose(e.reshape(x, {n, stride, stride, planes, height, width}), {0, 3, 4, 1, 5, 2})
                                 : e.transpose(e.reshape(x, {n, planes, height, stride, width, stride}), {0, 3, 5, 1, 2, 4});
  return e.reshape(y, out);
}

}  // namespace orknn::importer
