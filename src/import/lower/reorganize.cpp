#include "import/lower/reorganize.h"

namespace orknn::importer {
using namespace ir;

TensorId reorganize(Emitter& e, TensorId x, const Dims& view, int64_t stride, bool scatter, const Dims& out) {
  const int64_t n = view[0], planes = view[1] / (stride * stride), height = view[2], width = view[3];
  const TensorId y = scatter ? e.transpose(e.reshape(x, {n, stride, stride, planes, height, width}), {0, 3, 4, 1, 5, 2})
                             : e.transpose(e.reshape(x, {n, planes, height, stride, width, stride}), {0, 3, 5, 1, 2, 4});
  return e.reshape(y, out);
}

Result<Dims> reorganized_dims(Emitter& e, TensorId x, int64_t stride, bool reverse) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to reorganize it"));
  const int64_t area = stride * stride;
  if (dims.size() != 4 || (reverse ? dims[1] % area != 0 : dims[2] % stride != 0 || dims[3] % stride != 0))
    return shape_mismatch("the picture cannot be reorganized by " + std::to_string(stride)).found(to_string(dims));
  if (reverse) return Dims{dims[0], dims[1] / area, dims[2] * stride, dims[3] * stride};
  return Dims{dims[0], dims[1] * area, dims[2] / stride, dims[3] / stride};
}

Result<TensorId> reorganize_pixels(Emitter& e, TensorId x, int64_t stride, bool reverse) {
  ORKNN_TRY_ASSIGN(const Dims out, reorganized_dims(e, x, stride, reverse));
  const Dims dims = *e.dims_of(x);
  if (dims[1] % (stride * stride) != 0)
    return shape_mismatch("the channels cannot be reorganized")
        .expected("a multiple of " + std::to_string(stride * stride))
        .found(to_string(dims));
  return reorganize(e, x, dims, stride, reverse, out);
}

TensorId repeat_pixels(Emitter& e, TensorId x, int64_t factor_y, int64_t factor_x) {
  const float factors[] = {1, 1, static_cast<float>(factor_y), static_cast<float>(factor_x)};
  const TensorId scales = e.add_constant("scales", TensorData::from<float>({4}, std::span(factors)));
  return e.emit("Resize", {x, TensorId{}, scales},
                {{"mode", std::string("nearest")},
                 {"coordinate_transformation_mode", std::string("asymmetric")},
                 {"nearest_mode", std::string("floor")}});
}

}  // namespace orknn::importer
