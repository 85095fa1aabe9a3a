// Reading and writing by index. Indices are floats in most files and are taken as whole numbers.
#include <algorithm>
#include <numeric>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// Indices brought into [0, extent): clipped or wrapped.
Result<TensorId> legal_indices(Layer& l, TensorId indices, int64_t extent, const std::string& mode) {
  const TensorId whole = l.cast(indices, DType::Int64);
  if (extent < 1) return shape_mismatch("nothing to take from");
  if (mode == "clip" || mode == "raise")
    return l.emit("Clip", {whole, l.add_scalar("first", 0, DType::Int64),
                           l.add_scalar("last", static_cast<double>(extent - 1), DType::Int64)});
  if (mode == "wrap") return l.binary("Mod", whole, l.add_int_scalar("extent", extent));
  return unsupported("unknown mode").expected("clip, wrap or raise").found(mode);
}

}  // namespace

Status embedding(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId indices, l.need(0));
  const int64_t rows = l.integer("input_dim", 0), columns = l.integer("output_dim", 0);
  const std::optional<Dims> dims = rows > 0 && columns > 0 ? std::optional(Dims{rows, columns}) : std::nullopt;
  ORKNN_TRY_ASSIGN(const TensorId weight, l.parameter(1, "weight", dims, Fill::Random, DType::Float32));
  ORKNN_TRY_ASSIGN(const Dims weight_dims, l.need_dims(weight, "to look up rows"));
  if (weight_dims.size() != 2) return shape_mismatch("the table must be a matrix").found(to_string(weight_dims));
  ORKNN_TRY_ASSIGN(const TensorId legal, legal_indices(l, indices, weight_dims[0], "clip"));
  l.set_output(l.gather_rows(weight, legal, 0));
  return {};
}

namespace {
Status take(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId indices, l.need(1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take from it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.integer("axis", 0), static_cast<int64_t>(dims.size())));
  ORKNN_TRY_ASSIGN(const TensorId legal, legal_indices(l, indices, dims[static_cast<size_t>(axis)], l.text("mode", "clip")));
  l.set_output(l.gather_rows(x, legal, axis));
  return {};
}

// One element of each row along an axis.
Status pick(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(TensorId indices, l.need(1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to pick from it"));
  ORKNN_TRY_ASSIGN(const Dims index_dims, l.need_dims(indices, "to pick by it"));
  ORKNN_TRY_ASSIGN(const int64_t axis,
                   normalize_axis(l.op() == "batch_take" ? 1 : l.integer("axis", -1), static_cast<int64_t>(dims.size())));
  ORKNN_TRY_ASSIGN(indices, legal_indices(l, indices, dims[static_cast<size_t>(axis)], l.text("mode", "clip")));
  if (index_dims.size() + 1 == dims.size())
    indices = l.unsqueeze(indices, {axis});
  else if (index_dims.size() != dims.size())
    return shape_mismatch("the indices do not fit the data")
        .expected("rank " + std::to_string(dims.size() - 1))
        .found(to_string(index_dims));
  const TensorId y = l.emit("GatherElements", {x, indices}, {{"axis", axis}});
  l.set_output(l.flag("keepdims", false) ? y : dims.size() == 1 ? l.reshape(y, {1}) : l.squeeze(y, {axis}));
  return {};
}

Status one_hot(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId indices, l.need(0));
  const int64_t depth = l.integer("depth", 0);
  if (depth < 1) return invalid_model("illegal depth").found(std::to_string(depth));
  const DType dtype = l.dtype("dtype", DType::Float32);
  const TensorId values = l.add_constant(
      "values",
      convert(TensorData::from<double>({2}, std::vector<double>{l.number("off_value", 0.0), l.number("on_value", 1.0)}).view(),
              dtype));
  l.set_output(
      l.emit("OneHot", {l.cast(indices, DType::Int64), l.add_int_scalar("depth", depth), values}, {{"axis", int64_t{-1}}}));
  return {};
}

// Index tuples lie along the first axis here and along the last one with us.
Result<TensorId> index_tuples(Layer& l, TensorId indices) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(indices, "to read index tuples"));
  if (rank < 1) return shape_mismatch("the indices must have a first axis");
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::rotate(order.begin(), order.begin() + 1, order.end());
  return l.transpose(l.cast(indices, DType::Int64), order);
}

Status gather_nd(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId indices, l.need(1));
  ORKNN_TRY_ASSIGN(const TensorId tuples, index_tuples(l, indices));
  l.set_output(l.binary("GatherND", x, tuples));
  return {};
}

Status scatter_nd(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId indices, l.need(1));
  ORKNN_TRY_ASSIGN(const TensorId tuples, index_tuples(l, indices));
  const std::vector<int64_t> shape = l.integers("shape");
  if (!checked_element_count(shape, int64_t{1} << 31)) return invalid_model("illegal shape").found(to_string(shape));
  const TensorId zeros = l.expand(l.add_scalar("zero", 0.0, l.dtype_of(x)), shape);
  l.set_output(l.emit("ScatterND", {zeros, tuples, x}));
  return {};
}

Status index_copy(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId old, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId indices, l.need(1));
  ORKNN_TRY_ASSIGN(const TensorId rows, l.need(2));
  l.set_output(l.emit("ScatterND", {old, l.unsqueeze(l.cast(indices, DType::Int64), {1}), rows}));
  return {};
}

// The coordinates of every element of the data, for the given axes or all.
Status index_array(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to count its elements"));
  std::vector<int64_t> axes = l.integers("axes");
  if (!l.has("axes"))
    for (size_t a = 0; a < dims.size(); ++a) axes.push_back(static_cast<int64_t>(a));
  const auto count = checked_element_count(dims, int64_t{1} << 20);
  if (!count) return unsupported("an array of so many coordinates").found(to_string(dims));
  const Dims strides = strides_of(dims);
  std::vector<int64_t> values;
  for (int64_t& a : axes) {
    ORKNN_TRY_ASSIGN(a, normalize_axis(a, static_cast<int64_t>(dims.size())));
  }
  for (int64_t i = 0; i < *count; ++i)
    for (int64_t a : axes) values.push_back(i / strides[static_cast<size_t>(a)] % dims[static_cast<size_t>(a)]);
  Dims shape = dims;
  shape.push_back(static_cast<int64_t>(axes.size()));
  l.set_output(l.add_constant("coordinates", TensorData::from<int64_t>(shape, values)));
  return {};
}

// The diagonal of a matrix, or the matrix of a diagonal.
Status diag(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to find its diagonal"));
  const int64_t k = l.integer("k", 0), right = std::max<int64_t>(k, 0), down = std::max<int64_t>(-k, 0);
  if (dims.size() > 2) return unsupported("diagonals of tensors of rank " + std::to_string(dims.size()));
  if (dims.empty()) return shape_mismatch("the data must be a vector or a matrix");
  std::vector<int64_t> indices;
  if (dims.size() == 1) {
    const int64_t size = dims[0] + right + down;
    if (!checked_element_count(std::vector<int64_t>{size, size}, int64_t{1} << 24))
      return unsupported("a matrix of this size").found(std::to_string(size));
    for (int64_t i = 0; i < dims[0]; ++i) {
      indices.push_back(i + down);
      indices.push_back(i + right);
    }
    const TensorId zeros = l.expand(l.add_scalar("zero", 0.0, l.dtype_of(x)), {size, size});
    l.set_output(l.emit("ScatterND", {zeros, l.add_constant("places", TensorData::from<int64_t>({dims[0], 2}, indices)), x}));
    return {};
  }
  for (int64_t i = 0; i + down < dims[0] && i + right < dims[1]; ++i) {
    indices.push_back(i + down);
    indices.push_back(i + right);
  }
  const int64_t length = static_cast<int64_t>(indices.size() / 2);
  l.set_output(l.binary("GatherND", x, l.add_constant("places", TensorData::from<int64_t>({length, 2}, indices))));
  return {};
}

Status value_dependent(Layer&) {
  return unsupported("the size of this operator's result depends on values")
      .expected("shapes that are known before the network runs")
      .hint("cut the model before it");
}
}  // namespace

std::span<const Row> index_rows() {
  static const Row rows[] = {
      {"Embedding", embedding},
      {"_contrib_SparseEmbedding", embedding},
      {"take", take},
      {"pick", pick},
      {"choose_element_0index", pick},
      {"batch_take", pick},
      {"one_hot", one_hot},
      {"gather_nd", gather_nd},
      {"scatter_nd", scatter_nd},
      {"_contrib_index_copy", index_copy},
      {"_contrib_index_array", index_array},
      {"diag", diag},
      {"_contrib_boolean_mask", value_dependent},
      {"_unique", value_dependent},
      {"_npx_nonzero", value_dependent},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
