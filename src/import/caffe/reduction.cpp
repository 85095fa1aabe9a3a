// Layers that gather values along axes: Reduction, ArgMax.
#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
Result<TensorId> reduction(Layer& l, TensorId x) {
  static constexpr const char* kOps[] = {"ReduceSum", "ReduceL1", "ReduceSumSquare", "ReduceMean"};
  const Parameters p = l.parameters("reduction_param");
  const char* op = kOps[p.choice("operation", 0, {"SUM", "ASUM", "SUMSQ", "MEAN"}, 1)];
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(x, p, "axis", 0));
  return l.scaled(l.reduce(op, x, axes_between(axis, *l.rank_of(x)), false), p.number("coeff", 1));
}

// Positions of the greatest values, as floats; with out_max_val also or instead the values.
Result<TensorId> arg_max(Layer& l, TensorId x) {
  const Parameters p = l.parameters("argmax_param");
  const bool with_values = p.flag("out_max_val", false);
  const int64_t count = p.integer("top_k", 1);
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find the axis"));
  const TensorId k = l.add_ints("k", {count});
  if (p.has("axis")) {
    ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(x, p, "axis", 1));
    const auto best = l.top_k(x, k, axis);
    return with_values ? best[0] : l.cast(best[1], DType::Float32);
  }
  const auto best = l.emit_all("TopK", {l.emit("Flatten", {x}, {{"axis", int64_t{1}}}), k}, {{"axis", int64_t{1}}}, 2);
  std::vector<int64_t> shape{0, 1, count};
  shape.resize(static_cast<size_t>(std::max<int64_t>(rank, 3)), 1);
  const auto shaped = [&](TensorId list) { return l.emit("Reshape", {list, l.add_ints("shape", shape)}); };
  const TensorId places = shaped(l.cast(best[1], DType::Float32));
  return with_values ? l.concat({places, shaped(best[0])}, 1) : places;
}
}  // namespace

std::span<const Row> reduction_rows() {
  static const Row rows[] = {{"Reduction", reduction, kOne}, {"ArgMax", arg_max, kOne}};
  return rows;
}

}  // namespace orknn::importer::caffe
