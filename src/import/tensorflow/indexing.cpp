// Gathering, scattering, reversing and everything else that moves elements by index.
#include <algorithm>
#include <limits>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// Gather of the first releases has no axis; GatherV2 has one, and may share leading axes between values and indices.
Status lower_gather(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId indices, layer.input(1));
  int64_t axis = 0, batch = layer.int_or("batch_dims", 0);
  if (layer.input_count() > 2) {
    ORKNN_TRY_ASSIGN(axis, layer.integer(2, "to know the axis"));
  }
  if (batch == 0) {
    layer.set(layer.emit("Gather", {x, indices}, {{"axis", axis}}));
    return {};
  }
  ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to gather from it"));
  ORKNN_TRY_ASSIGN(const int64_t index_rank, layer.need_rank(indices, "to gather with it"));
  if (batch < 0) batch += index_rank;
  ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, rank));
  if (batch < 0 || batch > index_rank || batch > axis)
    return invalid_model("batch_dims is out of range").found(std::to_string(batch));
  // The axis moves behind the shared ones, GatherND picks along it, and what it jumped over moves back in front.
  std::vector<int64_t> to_front, back;
  for (int64_t i = 0; i < batch; ++i) to_front.push_back(i);
  to_front.push_back(axis);
  for (int64_t i = batch; i < rank; ++i)
    if (i != axis) to_front.push_back(i);
  const TensorId picked =
      layer.emit("GatherND", {layer.transpose(x, to_front), layer.unsqueeze(layer.cast(indices, DType::Int64), {-1})},
                 {{"batch_dims", batch}});
  const int64_t between = axis - batch, own = index_rank - batch;
  for (int64_t i = 0; i < batch; ++i) back.push_back(i);
  for (int64_t i = 0; i < between; ++i) back.push_back(batch + own + i);
  for (int64_t i = 0; i < own; ++i) back.push_back(batch + i);
  for (int64_t i = batch + own + between; i < rank - 1 + own; ++i) back.push_back(i);
  layer.set(layer.transpose(picked, back));
  return {};
}

Status lower_gather_nd(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId indices, layer.input(1));
  layer.set(layer.emit("GatherND", {x, layer.cast(indices, DType::Int64)}));
  return {};
}

// Zeros with values added at indices.
Status lower_scatter_nd(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId indices, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId updates, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId shape, layer.input(2));
  const TensorId zeros = layer.emit("Expand", {layer.constant_like(updates, "zero", 0), layer.cast(shape, DType::Int64)});
  layer.set(layer.emit("ScatterND", {zeros, layer.cast(indices, DType::Int64), updates}, {{"reduction", std::string("add")}}));
  return {};
}

Status lower_tensor_scatter(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId indices, layer.input(1));
  ORKNN_TRY_ASSIGN(TensorId updates, layer.input(2));
  std::string reduction = "none";
  if (layer.op() == "TensorScatterAdd" || layer.op() == "ScatterNdNonAliasingAdd") reduction = "add";
  if (layer.op() == "TensorScatterMax") reduction = "max";
  if (layer.op() == "TensorScatterMin") reduction = "min";
  if (layer.op() == "TensorScatterSub") {
    reduction = "add";
    updates = layer.emit("Neg", {updates});
  }
  layer.set(layer.emit("ScatterND", {x, layer.cast(indices, DType::Int64), updates}, {{"reduction", reduction}}));
  return {};
}

// Rows written over: InplaceUpdate(x, numbers, rows).
Status lower_inplace(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId rows, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId updates, layer.input(2));
  const TensorId indices = layer.unsqueeze(layer.reshape(layer.cast(rows, DType::Int64), {-1}), {-1});
  layer.set(
      layer.emit("ScatterND", {x, indices, updates}, {{"reduction", std::string(layer.op() == "InplaceAdd" ? "add" : "none")}}));
  return {};
}

// A default with values at indices: SparseToDense(indices, shape, values, default).
Status lower_sparse_to_dense(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId indices, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId shape, layer.input(1));
  ORKNN_TRY_ASSIGN(TensorId values, layer.input(2));
  ORKNN_TRY_ASSIGN(const TensorId fill, layer.input(3));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(indices, "to place values"));
  indices = layer.cast(indices, DType::Int64);
  if (dims.size() < 2) indices = layer.reshape(indices, {dims.empty() ? 1 : dims[0], 1});
  const int64_t count = dims.empty() ? 1 : dims[0];
  if (const auto size = layer.dims_of(values); size && size->empty())
    values = layer.emit("Expand", {values, layer.add_ints("count", {count})});
  layer.set(layer.emit("ScatterND", {layer.emit("Expand", {fill, layer.cast(shape, DType::Int64)}), indices, values}));
  return {};
}

// Numbers outside of [0, depth) give a row of `off`; ours would count negative ones from the end, so they are compared instead.
Status lower_one_hot(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId indices, layer.input(0));
  ORKNN_TRY_ASSIGN(const int64_t depth, layer.integer(1, "to size the result"));
  ORKNN_TRY_ASSIGN(const TensorId on, layer.input(2));
  ORKNN_TRY_ASSIGN(const TensorId off, layer.input(3));
  ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(indices, "to insert an axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(layer.int_or("axis", -1), rank + 1));
  constexpr int64_t kMost = 1 << 24;
  if (depth < 0 || depth > kMost) return invalid_model("the depth is out of range").found(std::to_string(depth));
  std::vector<int64_t> numbers(static_cast<size_t>(depth)), shape(static_cast<size_t>(rank - axis) + 1, 1);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  shape[0] = depth;
  const TensorId range = layer.add_constant("numbers", TensorData::from<int64_t>(shape, numbers));
  layer.set(
      layer.emit("Where", {layer.emit("Equal", {layer.unsqueeze(layer.cast(indices, DType::Int64), {axis}), range}), on, off}));
  return {};
}

TensorId reversed(Layer& layer, TensorId x, const std::vector<int64_t>& axes) {
  if (axes.empty()) return x;
  const std::vector<int64_t> starts(axes.size(), -1), ends(axes.size(), std::numeric_limits<int64_t>::min()),
      steps(axes.size(), -1);
  return layer.slice(x, starts, ends, axes, steps);
}

// Reverse tells each axis whether, ReverseV2 lists them.
Status lower_reverse(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(auto axes, layer.ints(1, "to know the axes"));
  if (layer.op() == "Reverse") {
    std::vector<int64_t> chosen;
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i]) chosen.push_back(static_cast<int64_t>(i));
    axes = std::move(chosen);
  }
  layer.set(reversed(layer, x, axes));
  return {};
}

// Ours works with batch and time in the first two axes.
Status lower_reverse_sequence(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId lengths, layer.input(1));
  ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to order its axes"));
  ORKNN_TRY_ASSIGN(const int64_t time, normalize_axis(layer.int_or("seq_dim", 0), rank));
  ORKNN_TRY_ASSIGN(const int64_t batch, normalize_axis(layer.int_or("batch_dim", 0), rank));
  if (time == batch) return invalid_model("batch and time are the same axis").found(std::to_string(time));
  std::vector<int64_t> order{batch, time}, back(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i)
    if (i != time && i != batch) order.push_back(i);
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const TensorId y = layer.emit("ReverseSequence", {layer.transpose(x, order), layer.cast(lengths, DType::Int64)},
                                {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}});
  layer.set(layer.transpose(y, back));
  return {};
}

Status lower_roll(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const auto shifts, layer.ints(1, "to roll"));
  ORKNN_TRY_ASSIGN(const auto axes, layer.ints(2, "to roll"));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to roll it"));
  if (shifts.size() != axes.size()) return invalid_model("shift and axis have different lengths");
  for (size_t i = 0; i < axes.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(axes[i], static_cast<int64_t>(dims.size())));
    const int64_t extent = dims[static_cast<size_t>(axis)];
    if (extent == 0) continue;
    const int64_t shift = ((shifts[i] % extent) + extent) % extent;
    if (shift == 0) continue;
    x = layer.concat({layer.slice(x, {extent - shift}, {extent}, {axis}), layer.slice(x, {0}, {extent - shift}, {axis})}, axis);
  }
  layer.set(x);
  return {};
}

Status lower_invert_permutation(Layer& layer) {
  ORKNN_TRY_ASSIGN(const auto order, layer.ints(0, "to invert it"));
  std::vector<int64_t> inverse(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= static_cast<int64_t>(order.size()) || inverse[static_cast<size_t>(order[i])] >= 0)
      return invalid_model("no permutation").found(to_string(order));
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  layer.set(layer.cast(layer.add_ints("inverse", inverse), layer.dtype_of(layer.value(0).tensor)));
  return {};
}

// Indices of what is not zero: as many as the data says.
Status lower_where(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.transpose(layer.emit("NonZero", {x}), {1, 0}));
  return {};
}

Status lower_unique(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const auto results = layer.emit_all("Unique", {x}, {{"sorted", int64_t{0}}}, 4);
  const DType index = layer.dtype_or("out_idx", DType::Int32);
  layer.set(0, results[0]);
  layer.set(1, layer.cast(results[2], index));
  layer.set(2, layer.cast(results[3], index));
  return {};
}

// Elements of the first list that the second lacks, and where they stood.
Status lower_list_difference(Layer& layer) {
  ORKNN_TRY_ASSIGN(const auto all, layer.ints(0, "to compare lists"));
  ORKNN_TRY_ASSIGN(const auto without, layer.ints(1, "to compare lists"));
  std::vector<int64_t> left, places;
  for (size_t i = 0; i < all.size(); ++i)
    if (std::find(without.begin(), without.end(), all[i]) == without.end()) {
      left.push_back(all[i]);
      places.push_back(static_cast<int64_t>(i));
    }
  layer.set(0, layer.cast(layer.add_ints("left", left), layer.dtype_of(layer.value(0).tensor)));
  layer.set(1, layer.cast(layer.add_ints("places", places), layer.dtype_or("out_idx", DType::Int32)));
  return {};
}

// Pieces put in the order their constant numbers say; a number given twice is that of the later piece.
Status lower_stitch(Layer& layer) {
  const size_t count = layer.input_count() / 2;
  if (count == 0) return invalid_model("inputs are missing");
  std::vector<int64_t> source;
  std::vector<TensorId> pieces;
  int64_t position = 0;
  constexpr int64_t kMost = 1 << 24;
  for (size_t i = 0; i < count; ++i) {
    ORKNN_TRY_ASSIGN(const auto numbers, layer.ints(i, "to order the pieces"));
    ORKNN_TRY_ASSIGN(const TensorId data, layer.input(count + i));
    ORKNN_TRY_ASSIGN(const Dims index_dims, layer.need_dims(layer.value(i).tensor, "to order the pieces"));
    ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(data, "to order the pieces"));
    if (dims.size() < index_dims.size()) return shape_mismatch("a piece has fewer axes than its numbers").found(to_string(dims));
    Dims rows{static_cast<int64_t>(numbers.size())};
    rows.insert(rows.end(), dims.begin() + static_cast<std::ptrdiff_t>(index_dims.size()), dims.end());
    pieces.push_back(layer.reshape(data, rows));
    for (int64_t number : numbers) {
      if (number < 0 || number > kMost) return invalid_model("a number is out of range").found(std::to_string(number));
      if (static_cast<size_t>(number) >= source.size()) source.resize(static_cast<size_t>(number) + 1, 0);
      source[static_cast<size_t>(number)] = position++;
    }
  }
  layer.set(layer.emit("Gather", {layer.concat(pieces, 0), layer.add_ints("order", source)}, {{"axis", int64_t{0}}}));
  return {};
}

Status lower_partition(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const auto parts, layer.ints(1, "to size the parts"));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to part it"));
  ORKNN_TRY_ASSIGN(const Dims part_dims, layer.need_dims(layer.value(1).tensor, "to part it"));
  const int64_t count = layer.int_or("num_partitions", 1);
  if (count < 1 || count > (1 << 16)) return invalid_model("the number of parts is out of range").found(std::to_string(count));
  if (dims.size() < part_dims.size()) return shape_mismatch("the value has fewer axes than its numbers").found(to_string(dims));
  Dims rows{static_cast<int64_t>(parts.size())};
  rows.insert(rows.end(), dims.begin() + static_cast<std::ptrdiff_t>(part_dims.size()), dims.end());
  const TensorId flat = layer.reshape(x, rows);
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(count));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] < 0 || parts[i] >= count) return invalid_model("a number is out of range").found(std::to_string(parts[i]));
    members[static_cast<size_t>(parts[i])].push_back(static_cast<int64_t>(i));
  }
  for (const auto& list : members)
    layer.set(layer.emit("Gather", {flat, layer.add_ints("members", list)}, {{"axis", int64_t{0}}}));
  return {};
}
}  // namespace

std::span<const Row> indexing_rows() {
  static constexpr Row kRows[] = {
      {"Gather", lower_gather},
      {"GatherV2", lower_gather},
      {"GatherNd", lower_gather_nd},
      {"ScatterNd", lower_scatter_nd},
      {"TensorScatterUpdate", lower_tensor_scatter},
      {"TensorScatterAdd", lower_tensor_scatter},
      {"TensorScatterSub", lower_tensor_scatter},
      {"TensorScatterMax", lower_tensor_scatter},
      {"TensorScatterMin", lower_tensor_scatter},
      {"ScatterNdNonAliasingAdd", lower_tensor_scatter},
      {"InplaceUpdate", lower_inplace},
      {"InplaceAdd", lower_inplace},
      {"SparseToDense", lower_sparse_to_dense},
      {"OneHot", lower_one_hot},
      {"Reverse", lower_reverse},
      {"ReverseV2", lower_reverse},
      {"ReverseSequence", lower_reverse_sequence},
      {"Roll", lower_roll},
      {"InvertPermutation", lower_invert_permutation},
      {"Where", lower_where},
      {"Unique", lower_unique},
      {"UniqueWithCounts", lower_unique},
      {"ListDiff", lower_list_difference},
      {"DynamicStitch", lower_stitch},
      {"ParallelDynamicStitch", lower_stitch},
      {"DynamicPartition", lower_partition},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
