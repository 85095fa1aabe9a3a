// Reading and writing by index. Indices are floats in most files and are taken as whole numbers.
#include <algorithm>
#include <numeric>

#include "import/lower/one_hot.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// Indices brought into [0, extent): clipped or wrapped.
Result<TensorId> legal_indices(Layer& l, TensorId indices, int64_t extent, const std::string& mode) {
  const TensorId whole = l.cast(indices, DType::Int64);
  if (extent < 1) return shape_mismatch("the axis to take elements from is empty");
  if (mode == "clip" || mode == "raise") return l.clip(whole, 0.0, static_cast<double>(extent - 1));
  if (mode == "wrap") return l.binary("Mod", whole, l.add_int_scalar("extent", extent));
  return unsupported("unknown mode").expected("clip, wrap or raise").found(mode);
}
}  // namespace

Result<TensorId> embedding(Layer& l, TensorId indices) {
  const int64_t rows = l.integer("input_dim", 0), columns = l.integer("output_dim", 0);
  const std::optional<Dims> dims = rows > 0 && columns > 0 ? std::optional(Dims{rows, columns}) : std::nullopt;
  ORKNN_TRY_ASSIGN(const TensorId weight, l.parameter(1, "weight", dims, Fill::Random, DType::Float32));
  ORKNN_TRY_ASSIGN(const Dims weight_dims, l.need_dims(weight, "to look up rows", 2));
  ORKNN_TRY_ASSIGN(const TensorId legal, legal_indices(l, indices, weight_dims[0], "clip"));
  return l.gather(weight, legal, 0);
}

namespace {
Result<TensorId> take(Layer& l, TensorId x, TensorId indices) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take from it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis("axis", 0, std::ssize(dims)));
  ORKNN_TRY_ASSIGN(const TensorId legal, legal_indices(l, indices, dims[static_cast<size_t>(axis)], l.text("mode", "clip")));
  return l.gather(x, legal, axis);
}

// One element of each row along an axis; `Axis` unless another is stated.
template <int64_t Axis>
Result<TensorId> pick(Layer& l, TensorId x, TensorId indices) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to pick from it"));
  ORKNN_TRY_ASSIGN(const Dims index_dims, l.need_dims(indices, "to pick by it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis("axis", Axis, std::ssize(dims)));
  ORKNN_TRY_ASSIGN(indices, legal_indices(l, indices, dims[static_cast<size_t>(axis)], l.text("mode", "clip")));
  if (index_dims.size() + 1 == dims.size())
    indices = l.unsqueeze(indices, {axis});
  else if (index_dims.size() != dims.size())
    return shape_mismatch("the indices do not fit the data")
        .expected("rank " + std::to_string(dims.size() - 1))
        .found(to_string(index_dims));
  const TensorId y = l.gather_elements(x, indices, axis);
  return l.flag("keepdims", false) ? y : dims.size() == 1 ? l.reshape(y, {1}) : l.squeeze(y, {axis});
}

Result<TensorId> one_hot(Layer& l, TensorId indices) {
  const int64_t depth = l.integer("depth", 0);
  if (depth < 1) return invalid_model("illegal depth").found(std::to_string(depth));
  const DType dtype = l.dtype("dtype", DType::Float32);
  return importer::one_hot(l, l.cast(indices, DType::Int64), depth, -1, l.add_scalar("on", l.number("on_value", 1.0), dtype),
                           l.add_scalar("off", l.number("off_value", 0.0), dtype));
}

// Index tuples are along the first axis here and along the last one in our operators.
Result<TensorId> index_tuples(Layer& l, TensorId indices) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(indices, "to read index tuples"));
  if (rank < 1) return shape_mismatch("the indices must have a first axis");
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::rotate(order.begin(), order.begin() + 1, order.end());
  return l.transpose(l.cast(indices, DType::Int64), order);
}

Result<TensorId> gather_nd(Layer& l, TensorId x, TensorId indices) {
  ORKNN_TRY_ASSIGN(const TensorId tuples, index_tuples(l, indices));
  return l.binary("GatherND", x, tuples);
}

Result<TensorId> scatter_nd(Layer& l, TensorId x, TensorId indices) {
  ORKNN_TRY_ASSIGN(const TensorId tuples, index_tuples(l, indices));
  const std::vector<int64_t> shape = l.integers("shape");
  if (!checked_element_count(shape, int64_t{1} << 31)) return invalid_model("illegal shape").found(to_string(shape));
  return l.emit("ScatterND", {l.expand(l.scalar_like(x, 0.0), shape), tuples, x});
}

TensorId index_copy(Layer& l, TensorId old, TensorId indices, TensorId rows) {
  return l.emit("ScatterND", {old, l.unsqueeze(l.cast(indices, DType::Int64), {1}), rows});
}

// The coordinates of every element of the data, for the given axes or all.
Result<TensorId> index_array(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to count its elements"));
  const auto count = checked_element_count(dims, int64_t{1} << 20);
  if (!count) return unsupported("there are too many coordinates").found(to_string(dims));
  std::vector<int64_t> axes = l.integers("axes"), values;
  for (int64_t a = 0; !l.has("axes") && a < std::ssize(dims); ++a) axes.push_back(a);
  for (int64_t& a : axes) {
    ORKNN_TRY_ASSIGN(a, normalize_axis(a, std::ssize(dims)));
  }
  const Dims strides = strides_of(dims);
  for (int64_t i = 0; i < *count; ++i)
    for (int64_t a : axes) values.push_back(i / strides[static_cast<size_t>(a)] % dims[static_cast<size_t>(a)]);
  Dims shape = dims;
  shape.push_back(std::ssize(axes));
  return l.add_constant("coordinates", TensorData::from<int64_t>(shape, values));
}

// The diagonal of a matrix, or the matrix of a diagonal.
Result<TensorId> diag(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to find its diagonal"));
  const int64_t k = l.integer("k", 0), right = std::max<int64_t>(k, 0), down = std::max<int64_t>(-k, 0);
  if (dims.size() > 2) return unsupported("diagonals of tensors of rank " + std::to_string(dims.size()));
  if (dims.empty()) return shape_mismatch("the data must be a vector or a matrix");
  const bool makes_matrix = dims.size() == 1;
  const int64_t size = dims[0] + right + down,
                length = makes_matrix ? dims[0] : std::max<int64_t>(std::min(dims[0] - down, dims[1] - right), 0);
  if (makes_matrix && !checked_element_count(Dims{size, size}, int64_t{1} << 24))
    return unsupported("the matrix is too large").found(std::to_string(size));
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < length; ++i) indices.insert(indices.end(), {i + down, i + right});
  const TensorId places = l.add_constant("places", TensorData::from<int64_t>({length, 2}, indices));
  if (!makes_matrix) return l.binary("GatherND", x, places);
  return l.emit("ScatterND", {l.expand(l.scalar_like(x, 0.0), Dims{size, size}), places, x});
}

Status value_dependent(Layer&) {
  return unsupported("the size of this operator's result depends on values")
      .expected("shapes that are known before the network runs")
      .hint("cut the model before it");
}
}  // namespace

std::span<const Row> indexing_rows() {
  static const Row rows[] = {
      {"Embedding|_contrib_SparseEmbedding", embedding},
      {"take", take},
      {"pick|choose_element_0index", pick<-1>},
      {"batch_take", pick<1>},
      {"one_hot", one_hot},
      {"gather_nd", gather_nd},
      {"scatter_nd", scatter_nd},
      {"_contrib_index_copy", index_copy},
      {"_contrib_index_array", index_array},
      {"diag", diag},
      {"_contrib_boolean_mask|_unique|_npx_nonzero", value_dependent},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
