// Pooling over one, two or three axes, by windows, to a given size, or whole.
#include "import/keras/layer.h"
#include "import/lower/adaptive_pool.h"

namespace orknn::importer::keras {
using namespace ir;

Result<TensorId> pooled_pictures(Layer& l, const char* op, const PictureFormat& format, TensorId x, const Json& size,
                                 const Json& strides, const Json& padding) {
  Window w{.kernel = size.integers(format.spatial)};
  w.strides = strides.is_null() ? w.kernel : strides.integers(format.spatial);
  if (w.kernel.size() != format.spatial || w.strides.size() != format.spatial)
    return invalid_model("the layer has the wrong number of extents")
        .expected(std::to_string(format.spatial))
        .found(to_string(w.kernel));
  ORKNN_TRY(w.check());
  if (padding.string("valid") == "same") {
    w.padding = Window::Padding::Same;
    w = with_explicit_padding(std::move(w), spatial_extents(l, format, x));
  }
  return in_channels_first(l, format, x, [&](TensorId first) { return l.emit(op, {first}, w.attributes()); });
}

namespace {
template <OpName Op, size_t Spatial>
Result<TensorId> pool(Layer& l, TensorId x) {
  return pooled_pictures(l, Op.chars, l.format(Spatial), x, l.config["pool_size"], l.config["strides"], l.config["padding"]);
}

// Steps that a mask excludes do not count.
template <OpName Op, size_t Spatial>
Result<TensorId> global_pool(Layer& l, TensorId x) {
  const PictureFormat format = l.format(Spatial);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < Spatial; ++i) axes.push_back(static_cast<int64_t>(format.axis(i)));
  const bool keeps = l.flag("keepdims", false);
  const TensorId mask = l.mask_of(x);
  if (!mask || Op.string() != "ReduceMean" || Spatial != 1) return l.reduce(Op.chars, x, axes, keeps);
  const TensorId counts = l.unsqueeze(l.cast(mask, l.dtype_of(x)), {format.channels_last ? 2 : 1});
  return l.div(l.reduce("ReduceSum", l.mul(x, counts), axes, keeps), l.reduce("ReduceSum", counts, axes, keeps));
}

template <bool IsMax, size_t Spatial>
Result<TensorId> adaptive(Layer& l, TensorId x) {
  const std::vector<int64_t> size = l.config["output_size"].integers(Spatial);
  if (size.size() != Spatial) return invalid_model("the layer has no output_size");
  return in_channels_first(l, l.format(Spatial), x, [&](TensorId first) -> Result<TensorId> {
    if (!IsMax) return adaptive_average_pool(l, first, size);
    ORKNN_TRY_ASSIGN(const PooledMax pooled, adaptive_max_pool(l, first, size));
    return pooled.values;
  });
}
}  // namespace

std::span<const Row> pooling_rows() {
  static const Row rows[] = {
      {"MaxPooling1D", pool<"MaxPool", 1>},
      {"MaxPooling2D", pool<"MaxPool", 2>},
      {"MaxPooling3D", pool<"MaxPool", 3>},
      {"AveragePooling1D", pool<"AveragePool", 1>},
      {"AveragePooling2D", pool<"AveragePool", 2>},
      {"AveragePooling3D", pool<"AveragePool", 3>},
      {"GlobalMaxPooling1D", global_pool<"ReduceMax", 1>},
      {"GlobalMaxPooling2D", global_pool<"ReduceMax", 2>},
      {"GlobalMaxPooling3D", global_pool<"ReduceMax", 3>},
      {"GlobalAveragePooling1D", global_pool<"ReduceMean", 1>},
      {"GlobalAveragePooling2D", global_pool<"ReduceMean", 2>},
      {"GlobalAveragePooling3D", global_pool<"ReduceMean", 3>},
      {"AdaptiveMaxPooling1D", adaptive<true, 1>},
      {"AdaptiveMaxPooling2D", adaptive<true, 2>},
      {"AdaptiveMaxPooling3D", adaptive<true, 3>},
      {"AdaptiveAveragePooling1D", adaptive<false, 1>},
      {"AdaptiveAveragePooling2D", adaptive<false, 2>},
      {"AdaptiveAveragePooling3D", adaptive<false, 3>},
  };
  return rows;
}

}  // namespace orknn::importer::keras
