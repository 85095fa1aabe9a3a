// Elements picked and placed by index.
#include "import/lower/gather.h"
#include "import/lower/one_hot.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
Result<TensorId> gathered(Layer& l, TensorId x, TensorId index) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(2, "axis", 0, "to pick along it"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(index, "to pick by it"));
  return l.gather(x, rank == 2 ? l.reshape(index, {-1}) : index, axis);  // a column of indices counts as a list
}
TensorId index_selected(Layer& l, TensorId x, TensorId index) { return l.gather(x, index, l.integer("axis", 0)); }
TensorId gathered_nd(Layer& l, TensorId x, TensorId index) { return gather_nd(l, x, index); }
TensorId taken_along(Layer& l, TensorId x, TensorId index) {
  return l.emit("GatherElements", {x, index}, {{"axis", l.integer("axis", 0)}});
}
TensorId sampled_by_index(Layer& l, TensorId x, TensorId index) {
  return l.emit("GatherElements", {x, index}, {{"axis", int64_t{1}}});
}

Result<TensorId> put_along(Layer& l, TensorId x, TensorId index, TensorId values) {
  const std::string how = l.text("reduce", "assign");
  std::string ours = how == "assign" ? "none" : how == "multiply" ? "mul" : how == "amax" ? "max" : how == "amin" ? "min" : how;
  if (ours != "none" && ours != "mul" && ours != "max" && ours != "min" && ours != "add")
    return unsupported("unknown reduction").expected("assign, add, multiply, amax or amin").found("'" + how + "'");
  if (ours != "none" && !l.flag("include_self", true)) return unsupported("a reduction without the values that are there");
  return l.emit("ScatterElements", {x, index, l.cast(values, l.dtype_of(x))},
                {{"axis", l.integer("axis", 0)}, {"reduction", ours}});
}
// Rows written, or added to rows of zeros.
Result<TensorId> scattered(Layer& l, TensorId x, TensorId index, TensorId rows) {
  const TensorId places = l.reshape(index, {-1, 1});
  if (l.flag("overwrite", true)) return l.emit("ScatterND", {x, places, rows});
  const TensorId cleared = l.emit("ScatterND", {x, places, l.mul(rows, 0.0)});
  return l.emit("ScatterND", {cleared, places, rows}, {{"reduction", std::string("add")}});
}
TensorId scatter_added(Layer& l, TensorId x, TensorId index, TensorId rows) {
  return l.emit("ScatterND", {x, index, rows}, {{"reduction", std::string("add")}});
}
Result<TensorId> one_hot_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t depth, l.integer(1, "depth", 0, "to make rows of that length"));
  const DType dtype = l.dtype("dtype", DType::Float32);
  return one_hot(l, x, depth, -1, l.add_scalar("on", 1, dtype), l.add_scalar("off", 0, dtype));
}
// Rows of the table; the one with the number of the padding is zero.
Result<TensorId> embedded(Layer& l, TensorId ids, TensorId table) {
  const TensorId rows = l.gather(table, ids, 0);
  const int64_t padding = l.integer("padding_idx", -1);
  if (padding < 0) return rows;
  const TensorId is_padding = l.unsqueeze(l.with_scalar("Equal", ids, static_cast<double>(padding)), {-1});
  return l.where(is_padding, l.scalar_like(rows, 0), rows);
}
TensorId places_of_nonzero(Layer& l, TensorId x) { return indices_of_nonzero(l, x); }
}  // namespace

std::span<const Row> indexing_rows() {
  static const Row rows[] = {
      {"gather", gathered},
      {"gather_nd", gathered_nd},
      {"index_select", index_selected},
      {"index_sample", sampled_by_index},
      {"take_along_axis", taken_along},
      {"put_along_axis", put_along},
      {"scatter", scattered},
      {"scatter_nd_add", scatter_added},
      {"one_hot", one_hot_of},
      {"embedding", embedded},
      {"nonzero", places_of_nonzero},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
