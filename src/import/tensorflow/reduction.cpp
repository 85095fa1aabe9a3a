// Reductions, running sums, extremes and sums by segment.
#include <algorithm>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
struct ReduceRow {
  std::string_view theirs, ours;
};
constexpr ReduceRow kReductions[] = {{"Sum", "ReduceSum"}, {"Mean", "ReduceMean"}, {"Max", "ReduceMax"},
                                     {"Min", "ReduceMin"}, {"Prod", "ReduceProd"}, {"EuclideanNorm", "ReduceL2"},
                                     {"All", "ReduceMin"}, {"Any", "ReduceMax"}};

Status lower_reduction(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const auto axes, layer.ints(1, "to reduce"));
  std::string_view ours;
  for (const ReduceRow& row : kReductions)
    if (row.theirs == layer.op()) ours = row.ours;
  if (axes.empty()) {  // no axis reduces nothing
    layer.set(x);
    return {};
  }
  const bool keeps = layer.bool_or("keep_dims", layer.bool_or("keepdims", false));
  const bool is_logical = layer.op() == "All" || layer.op() == "Any";
  if (is_logical) x = layer.cast(x, DType::Int32);
  TensorId y = layer.emit(std::string(ours), {x, layer.add_ints("axes", axes)}, {{"keepdims", int64_t{keeps}}});
  if (is_logical) y = layer.cast(y, DType::Bool);
  layer.set(y);
  return {};
}

Status lower_arg_extreme(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId x, layer.input(0));
  int64_t axis = 0;
  if (layer.input_count() > 1) {
    ORKNN_TRY_ASSIGN(axis, layer.integer(1, "to know the axis"));
  }
  if (layer.dtype_of(x) == DType::Bool) x = layer.cast(x, DType::Int32);
  const TensorId y = layer.emit(std::string(layer.op()), {x}, {{"axis", axis}, {"keepdims", int64_t{0}}});
  layer.set(layer.cast(y, layer.dtype_or("output_type", DType::Int64)));
  return {};
}

Status lower_running(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const int64_t axis, layer.integer(1, "to know the axis"));
  layer.set(layer.emit(
      layer.op() == "Cumsum" ? "CumSum" : "CumProd", {x, layer.add_int_scalar("axis", axis)},
      {{"exclusive", int64_t{layer.bool_or("exclusive", false)}}, {"reverse", int64_t{layer.bool_or("reverse", false)}}}));
  return {};
}

Status lower_top_k(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  TensorId k;
  if (layer.op() == "TopK") {
    k = layer.add_ints("k", {layer.int_or("k", 1)});
  } else {
    ORKNN_TRY_ASSIGN(const TensorId count, layer.input(1));
    k = layer.reshape(layer.cast(count, DType::Int64), {1});
  }
  const auto results =
      layer.emit_all("TopK", {x, k}, {{"axis", int64_t{-1}}, {"sorted", int64_t{layer.bool_or("sorted", true)}}}, 2);
  layer.set(0, results[0]);
  layer.set(1, layer.cast(results[1], layer.dtype_or("index_type", DType::Int32)));
  return {};
}

// True for the k best of each row; ties at the border all count, so ranks decide.
Status lower_in_top_k(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId predictions, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId targets, layer.input(1));
  TensorId k;
  if (layer.input_count() > 2) {
    ORKNN_TRY_ASSIGN(k, layer.input(2));
    k = layer.cast(k, DType::Int32);
  } else {
    k = layer.add_scalar("k", static_cast<double>(layer.int_or("k", 1)), DType::Int32);
  }
  const TensorId own = layer.emit("GatherElements", {predictions, layer.unsqueeze(layer.cast(targets, DType::Int64), {1})},
                                  {{"axis", int64_t{1}}});
  const TensorId better = layer.cast(layer.emit("Greater", {predictions, own}), DType::Int32);
  layer.set(layer.emit("Less", {layer.emit("ReduceSum", {better, layer.add_ints("axes", {1})}, {{"keepdims", int64_t{0}}}), k}));
  return {};
}

// Rows added up by constant segment numbers: one gather and one reduction per segment would be long, a product with a 0/1 matrix
// is not.
Status lower_segments(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const auto ids, layer.ints(1, "to know the segments"));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to add up its rows"));
  const auto rows = static_cast<int64_t>(ids.size());
  if (dims.empty() || dims[0] != rows)
    return unsupported("the segments must number the first axis")
        .expected(dims.empty() ? "a value with rows" : std::to_string(dims[0]))
        .found(std::to_string(rows));
  if (!is_float(layer.dtype_of(x))) return unsupported("segments of integers are not supported");
  int64_t segments = 0;
  if (layer.op().starts_with("Unsorted")) {
    ORKNN_TRY_ASSIGN(segments, layer.integer(2, "to know the number of segments"));
  } else {
    for (int64_t id : ids) segments = std::max(segments, id + 1);
  }
  constexpr int64_t kMost = 1 << 24;
  if (segments < 0 || segments > kMost || rows > kMost || (rows > 0 && segments > kMost / rows))
    return unsupported("there are too many segments").found(std::to_string(segments));
  TensorData matrix = TensorData::zeros(DType::Float32, {segments, rows});
  auto* values = static_cast<float*>(matrix.mutable_data());
  std::vector<int64_t> counts(static_cast<size_t>(segments), 0);
  for (int64_t i = 0; i < rows; ++i)
    if (const int64_t id = ids[static_cast<size_t>(i)]; id >= 0 && id < segments) {
      values[id * rows + i] = 1;
      ++counts[static_cast<size_t>(id)];
    }
  if (layer.op() == "SegmentMean")
    for (int64_t id = 0; id < segments; ++id)
      for (int64_t i = 0; i < rows; ++i)
        values[id * rows + i] /= static_cast<float>(std::max<int64_t>(counts[static_cast<size_t>(id)], 1));
  Dims result = dims;
  result[0] = segments;
  const TensorId weights = layer.cast(layer.add_constant("segments", std::move(matrix)), layer.dtype_of(x));
  layer.set(layer.reshape(
      layer.emit("MatMul", {weights, layer.reshape(x, {rows, element_count(dims) / std::max<int64_t>(rows, 1)})}), result));
  return {};
}

constexpr Row kMore[] = {
    {"ArgMax", lower_arg_extreme},
    {"ArgMin", lower_arg_extreme},
    {"Cumsum", lower_running},
    {"Cumprod", lower_running},
    {"TopK", lower_top_k},
    {"TopKV2", lower_top_k},
    {"InTopK", lower_in_top_k},
    {"InTopKV2", lower_in_top_k},
    {"SegmentSum", lower_segments},
    {"SegmentMean", lower_segments},
    {"UnsortedSegmentSum", lower_segments},
};
}  // namespace

std::span<const Row> reduction_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list(std::begin(kMore), std::end(kMore));
    for (const ReduceRow& row : kReductions) list.push_back({row.theirs, lower_reduction});
    return list;
  }();
  return rows;
}

}  // namespace orknn::importer::tensorflow
