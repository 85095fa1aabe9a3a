// Operators that gather one number from many: sums and extremes along axes, positions, running sums, segments.
#include <algorithm>

#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
struct Name {
  std::string_view theirs;
  const char* ours;
};
constexpr Name kReductions[] = {
    {"MEAN", "ReduceMean"},        {"SUM", "ReduceSum"},        {"REDUCE_MAX", "ReduceMax"}, {"REDUCE_MIN", "ReduceMin"},
    {"REDUCE_PROD", "ReduceProd"}, {"REDUCE_ANY", "ReduceMax"}, {"REDUCE_ALL", "ReduceMin"},
};

Status reduce(Layer& l) {
  const char* ours = nullptr;
  for (const Name& n : kReductions)
    if (n.theirs == l.op().name) ours = n.ours;
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> axes, l.ints(1, "to reduce along them"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to reduce it"));
  std::vector<int64_t> distinct;  // an axis may be named twice
  for (int64_t axis : axes) {
    ORKNN_TRY_ASSIGN(const int64_t a, normalize_axis(axis, rank));
    if (std::find(distinct.begin(), distinct.end(), a) == distinct.end()) distinct.push_back(a);
  }
  const int64_t keep = l.options().flag(0);
  return l.set(0, l.emit(ours, {x, l.add_ints("axes", distinct)}, {{"keepdims", keep}, {"noop_with_empty_axes", int64_t{1}}}));
}

Status arg_extreme(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.int_scalar(1, "to search along it"));
  return l.set(0, l.emit(l.op().name == "ARG_MAX" ? "ArgMax" : "ArgMin", {x}, {{"axis", axis}, {"keepdims", int64_t{0}}}));
}

Status cumsum(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.int_scalar(1, "to sum along it"));
  return l.set(0, l.emit("CumSum", {x, l.add_int_scalar("axis", axis)},
                         {{"exclusive", int64_t{l.options().flag(0)}}, {"reverse", int64_t{l.options().flag(1)}}}));
}

Status top_k(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const int64_t k, l.int_scalar(1, "to size the outputs"));
  if (k < 0) return invalid_model("the number of elements is negative").found(std::to_string(k));
  const std::vector<TensorId> both = l.emit_all("TopK", {x, l.add_ints("k", {k})}, {{"axis", int64_t{-1}}}, 2);
  ORKNN_TRY(l.set(0, both[0]));
  return l.set(1, both[1]);
}

// How many boundaries a value has reached.
Status bucketize(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to compare it with the boundaries"));
  const Numbers<float> boundaries = l.options().numbers<float>(0);
  std::vector<float> values(boundaries.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = boundaries[i];
  const TensorId limits = l.add_constant("boundaries", TensorData::from<float>({static_cast<int64_t>(values.size())}, values));
  const TensorId reached = l.emit("GreaterOrEqual", {l.unsqueeze(l.cast(x, DType::Float32), {rank}), limits});
  return l.set(0, l.emit("ReduceSum", {l.cast(reached, DType::Int32), l.add_ints("axes", {-1})}, {{"keepdims", int64_t{0}}}));
}

// Rows of the data are combined by the segment they belong to.
Status segments(Layer& l, const char* reduction, double start) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId ids, l.int64_input(1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to combine its rows"));
  ORKNN_TRY_ASSIGN(const Dims of_ids, l.need_dims(ids, "to combine rows by them"));
  int64_t count = 0;
  if (l.has_input(2)) {
    ORKNN_TRY_ASSIGN(count, l.int_scalar(2, "to size the output"));
  } else {
    ORKNN_TRY_ASSIGN(const std::vector<int64_t> values, l.ints(1, "to count the segments"));
    for (int64_t v : values) count = std::max(count, v < INT32_MAX ? v + 1 : int64_t{0});
  }
  if (count < 0 || of_ids.size() > dims.size())
    return invalid_model("the segments do not fit the data").found(std::to_string(count) + " segments for " + to_string(dims));
  Dims shape{count};
  shape.insert(shape.end(), dims.begin() + static_cast<int64_t>(of_ids.size()), dims.end());
  ORKNN_TRY(checked_element_count(shape).status());
  const TensorId empty = l.emit("Expand", {l.add_scalar("start", start, l.dtype_of(x)), l.add_ints("shape", shape)});
  const TensorId index = l.unsqueeze(ids, {static_cast<int64_t>(of_ids.size())});
  return l.set(0, l.emit("ScatterND", {empty, index, x}, {{"reduction", std::string(reduction)}}));
}
double lowest(Layer& l) {
  return l.has_input(0) && is_float(to_dtype(l.input_info(0).type)) ? -3.4028234663852886e38 : -2147483648.0;
}
double highest(Layer& l) {
  return l.has_input(0) && is_float(to_dtype(l.input_info(0).type)) ? 3.4028234663852886e38 : 2147483647.0;
}
Status segment_sum(Layer& l) { return segments(l, "add", 0); }
Status segment_prod(Layer& l) { return segments(l, "mul", 1); }
Status segment_max(Layer& l) { return segments(l, "max", lowest(l)); }
Status segment_min(Layer& l) { return segments(l, "min", highest(l)); }
}  // namespace

std::span<const Row> reduce_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list;
    for (const Name& n : kReductions) list.push_back({n.theirs, reduce});
    static constexpr Row others[] = {
        {"ARG_MAX", arg_extreme},
        {"ARG_MIN", arg_extreme},
        {"CUMSUM", cumsum},
        {"TOPK_V2", top_k},
        {"BUCKETIZE", bucketize},
        {"SEGMENT_SUM", segment_sum},
        {"UNSORTED_SEGMENT_SUM", segment_sum},
        {"UNSORTED_SEGMENT_PROD", segment_prod},
        {"UNSORTED_SEGMENT_MAX", segment_max},
        {"UNSORTED_SEGMENT_MIN", segment_min},
    };
    list.insert(list.end(), std::begin(others), std::end(others));
    return list;
  }();
  return rows;
}

}  // namespace orknn::importer::tflite
