#include <cmath>

#include "import/lower/norms.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
NormParameters parameters_of(Layer& l, size_t scale, size_t shift) {
  return {.scale = l.input(scale), .shift = l.input(shift), .epsilon = l.number("epsilon", 1e-5)};
}
Result<TensorId> batch_norm_of(Layer& l, TensorId x, TensorId mean, TensorId variance) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find its channels"));
  const PictureFormat format = l.format(static_cast<size_t>(std::max<int64_t>(rank - 2, 0)));
  const auto normalized = [&](TensorId first) { return batch_norm(l, first, parameters_of(l, 3, 4), {mean, variance}); };
  if (rank < 3) return normalized(x);
  return in_channels_first(l, format, x, normalized);
}
Result<TensorId> layer_norm_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to normalize it"));
  const int64_t begin = l.integer("begin_norm_axis", 1);
  if (begin < 0 || begin >= std::ssize(dims)) return invalid_model("illegal begin_norm_axis").found(std::to_string(begin));
  const Dims tail(dims.begin() + begin, dims.end());
  NormParameters p = parameters_of(l, 1, 2);
  if (p.scale) p.scale = l.reshape(p.scale, tail);
  if (p.shift) p.shift = l.reshape(p.shift, tail);
  return layer_norm(l, x, tail, p);
}
Result<TensorId> instance_norm_of(Layer& l, TensorId x) { return instance_norm(l, x, parameters_of(l, 1, 2)); }
Result<TensorId> group_norm_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find its channels"));
  const auto normalized = [&](TensorId first) { return group_norm(l, first, l.integer("groups", 1), parameters_of(l, 1, 2)); };
  if (rank < 3) return normalized(x);
  return in_channels_first(l, l.format(static_cast<size_t>(rank - 2)), x, normalized);
}
// x / |x|, and |x|.
Result<std::vector<TensorId>> unit_length(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("axis", 1), x));
  const TensorId squares = l.reduce("ReduceSumSquare", x, {axis}, true);
  const TensorId length = l.unary("Sqrt", l.add(squares, l.number("epsilon", 1e-10)));
  return std::vector<TensorId>{l.div(x, length), length};
}
Result<TensorId> p_norm(Layer& l, TensorId x) {
  const double order = l.number("porder", 2);
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find the axis"));
  std::vector<int64_t> axes;
  if (l.flag("asvector", false)) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  } else {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.integer("axis", -1), rank));
    axes = {axis};
  }
  const bool keep = l.flag("keepdim", false);
  if (order == 2) return l.reduce("ReduceL2", x, axes, keep);
  if (order == 1) return l.reduce("ReduceL1", x, axes, keep);
  const TensorId size = l.unary("Abs", x);
  if (std::isinf(order)) return l.reduce(order > 0 ? "ReduceMax" : "ReduceMin", size, axes, keep);
  if (order == 0) return l.reduce("ReduceSum", l.unary("Sign", size), axes, keep);
  return l.with_scalar("Pow", l.reduce("ReduceSum", l.with_scalar("Pow", size, order), axes, keep), 1 / order);
}
}  // namespace

std::span<const Row> normalization_rows() {
  static const Row rows[] = {
      {"batch_norm", batch_norm_of}, {"layer_norm", layer_norm_of}, {"instance_norm", instance_norm_of},
      {"group_norm", group_norm_of}, {"norm", unit_length},         {"p_norm", p_norm},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
