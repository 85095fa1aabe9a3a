// Normalizations by stored statistics or by those of the values themselves.
#include <numeric>

#include "import/keras/layer.h"
#include "import/lower/functions.h"
#include "import/lower/norms.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
// Factors and offsets that the layer learned, if it did; none where not.
Result<NormParameters> parameters(Layer& l, double epsilon, const char* scales = "scale", const char* shifts = "center") {
  NormParameters p{.scale = {}, .shift = {}, .epsilon = l.number("epsilon", epsilon)};
  size_t next = 0;
  if (l.flag(scales, true)) {
    ORKNN_TRY_ASSIGN(p.scale, l.weight(next++));
  }
  if (l.flag(shifts, true)) {
    ORKNN_TRY_ASSIGN(p.shift, l.weight(next));
  }
  return p;
}

Result<int64_t> only_axis(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.axes(x));
  if (axes.size() != 1) return unsupported("several axes of the layer are not supported").found(to_string(axes));
  return axes[0];
}

// What `make` builds from x with this axis second, and the axis back in its place.
template <class Make>
Result<TensorId> with_axis_second(Layer& l, TensorId x, int64_t axis, Make make) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to move its axis"));
  if (axis == 0) return unsupported("the samples themselves cannot be the axis of the layer");
  if (axis == rank - 1 && rank > 2) return in_channels_first(l, {true, static_cast<size_t>(rank) - 2}, x, make);
  std::vector<int64_t> swapped(static_cast<size_t>(rank));  // its own inverse
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[1], swapped[static_cast<size_t>(axis)]);
  ORKNN_TRY_ASSIGN(const TensorId y, Result<TensorId>(make(l.transpose(x, swapped))));
  return l.transpose(y, swapped);
}

Result<TensorId> batch_normalization(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, only_axis(l, x));
  ORKNN_TRY_ASSIGN(NormParameters p, parameters(l, 1e-3));
  const size_t next = (p.scale ? 1 : 0) + (p.shift ? 1 : 0);
  ORKNN_TRY_ASSIGN(const TensorId mean, l.weight(next));
  ORKNN_TRY_ASSIGN(const TensorId variance, l.weight(next + 1));
  const Dims dims = *l.dims_of(mean);
  if (!p.scale) p.scale = l.full(dims, 1, DType::Float32);
  if (!p.shift) p.shift = l.full(dims, 0, DType::Float32);
  for (TensorId t : {p.scale, p.shift, variance})
    if (l.dims_of(t) != dims || dims.size() != 1) return shape_mismatch("the weights of the layer have different sizes");
  return with_axis_second(l, x, axis, [&](TensorId first) {
    return l.emit("BatchNormalization", {first, p.scale, p.shift, mean, variance}, {{"epsilon", p.epsilon}});
  });
}

bool are_last(const std::vector<int64_t>& axes, int64_t rank) { return axes.front() == rank - std::ssize(axes); }

// A weight over these axes, shaped to be combined with the whole tensor.
TensorId over(Layer& l, TensorId weight, const std::vector<int64_t>& axes, const Dims& dims) {
  Dims shape(dims.size(), 1);
  for (int64_t axis : axes) shape[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
  return l.reshape(weight, shape);
}

Result<TensorId> layer_normalization(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.axes(x));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to normalize it"));
  ORKNN_TRY_ASSIGN(const NormParameters p, parameters(l, 1e-3));
  if (l.flag("rms_scaling", false)) {
    const TensorId variance = moments(l, x, axes, true).variance;
    const TensorId y = l.mul(x, rsqrt(l, l.add(variance, p.epsilon)));
    return p.scale ? l.mul(y, over(l, p.scale, axes, dims)) : y;
  }
  if (are_last(axes, std::ssize(dims))) return layer_norm(l, x, {dims.begin() + axes.front(), dims.end()}, p);
  TensorId y = standardized(l, x, axes, p.epsilon);
  if (p.scale) y = l.mul(y, over(l, p.scale, axes, dims));
  return p.shift ? l.add(y, over(l, p.shift, axes, dims)) : y;
}

// Mean and variance of each group of channels; as many groups as channels where it states none.
Result<TensorId> group_normalization(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, only_axis(l, x));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to group its channels"));
  ORKNN_TRY_ASSIGN(const NormParameters p, parameters(l, 1e-3));
  const int64_t groups = l.integer("groups", 32);
  return with_axis_second(
      l, x, axis, [&](TensorId first) { return group_norm(l, first, groups > 0 ? groups : dims[static_cast<size_t>(axis)], p); });
}

Result<TensorId> rms_normalization(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.axes(x));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to normalize it"));
  const double epsilon = l.number("epsilon", 1e-6);
  ORKNN_TRY_ASSIGN(const TensorId scale, l.weight(0));
  if (are_last(axes, std::ssize(dims)))
    return rms_norm(l, x, {dims.begin() + axes.front(), dims.end()}, {.scale = scale, .shift = {}, .epsilon = epsilon});
  const TensorId mean = l.reduce("ReduceMean", square(l, x), axes, true);
  return l.mul(l.mul(x, rsqrt(l, l.add(mean, epsilon))), over(l, scale, axes, dims));
}

// Vectors of length 1. What is too short for that stays short: Keras 2 and 3 draw the line at different lengths.
Result<TensorId> unit_normalization(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.axes(x));
  const TensorId sum = l.reduce("ReduceSum", square(l, x), axes, true);
  return l.mul(x, rsqrt(l, l.binary("Max", sum, l.scalar_like(sum, l.generation() >= 3 ? 1e-24 : 1e-12))));
}
}  // namespace

std::span<const Row> normalization_rows() {
  static const Row rows[] = {
      {"BatchNormalization|BatchNormalizationV1|SyncBatchNormalization", batch_normalization},
      {"LayerNormalization", layer_normalization},
      {"GroupNormalization", group_normalization},
      {"RMSNormalization", rms_normalization},
      {"UnitNormalization", unit_normalization},
  };
  return rows;
}

}  // namespace orknn::importer::keras
