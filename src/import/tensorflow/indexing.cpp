// Gathering, scattering, reversing and everything else that moves elements by index.
#include <algorithm>

#include "import/lower/gather.h"
#include "import/lower/one_hot.h"
#include "import/lower/strided_slice.h"
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// Gather of the first releases has no axis; GatherV2 has one, and may share leading axes between values and indices.
Result<TensorId> gather(Layer& l, TensorId x, TensorId indices) {
  int64_t axis = 0;
  if (l.operand_count() > 2) {
    ORKNN_TRY_ASSIGN(axis, l.integer(2, "to know the axis"));
  }
  return gather_along(l, x, indices, axis, l.int_or("batch_dims", 0));
}

template <OpName Reduction>
TensorId scatter_into(Emitter& e, TensorId x, TensorId indices, TensorId updates) {
  return e.emit("ScatterND", {x, e.cast(indices, DType::Int64), updates}, {{"reduction", Reduction.string()}});
}
TensorId scatter_sub(Emitter& e, TensorId x, TensorId indices, TensorId updates) {
  return scatter_into<"add">(e, x, indices, e.unary("Neg", updates));
}
// Rows written over: InplaceUpdate(x, numbers, rows).
template <OpName Reduction>
TensorId inplace(Emitter& e, TensorId x, TensorId rows, TensorId updates) {
  return scatter_into<Reduction>(e, x, e.unsqueeze(e.reshape(e.cast(rows, DType::Int64), {-1}), {-1}), updates);
}

Result<TensorId> one_hot_of_depth(Layer& l, TensorId indices) {
  ORKNN_TRY_ASSIGN(const int64_t depth, l.integer(1, "to size the result"));
  ORKNN_TRY_ASSIGN(const TensorId on, l.operand(2));
  ORKNN_TRY_ASSIGN(const TensorId off, l.operand(3));
  return one_hot(l, indices, depth, l.int_or("axis", -1), on, off);
}

// A flag per axis.
Result<TensorId> reverse_flagged(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto flags, l.ints(1, "to know the axes"));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) axes.push_back(static_cast<int64_t>(i));
  return l.reverse(x, axes);
}
Result<TensorId> reverse_axes(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, l.ints(1, "to know the axes"));
  return l.reverse(x, axes);
}

Result<TensorId> reverse_sequences(Layer& l, TensorId x, TensorId lengths) {
  return reverse_sequence(l, x, lengths, l.int_or("seq_dim", 0), l.int_or("batch_dim", 0));
}

Result<TensorId> rolled(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto shifts, l.ints(1, "to roll"));
  ORKNN_TRY_ASSIGN(const auto axes, l.ints(2, "to roll"));
  if (axes.empty()) return x;
  return roll(l, x, shifts, axes);
}

Result<TensorId> invert_permutation(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto order, l.ints(0, "to invert it"));
  std::vector<int64_t> inverse(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= static_cast<int64_t>(order.size()) || inverse[static_cast<size_t>(order[i])] >= 0)
      return invalid_model("the numbers are not a permutation").found(to_string(order));
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return l.cast(l.add_ints("inverse", inverse), l.dtype_of(x));
}

std::vector<TensorId> unique(Layer& l, TensorId x) {
  const auto results = l.emit_all("Unique", {x}, {{"sorted", int64_t{0}}}, 4);
  const DType index = l.dtype_or("out_idx", DType::Int32);
  return {results[0], l.cast(results[2], index), l.cast(results[3], index)};
}

// Elements of the first list that the second lacks, and where they stood.
Result<std::vector<TensorId>> list_difference(Layer& l, TensorId list) {
  ORKNN_TRY_ASSIGN(const auto all, l.ints(0, "to compare lists"));
  ORKNN_TRY_ASSIGN(const auto without, l.ints(1, "to compare lists"));
  std::vector<int64_t> left, places;
  for (size_t i = 0; i < all.size(); ++i)
    if (std::ranges::find(without, all[i]) == without.end()) {
      left.push_back(all[i]);
      places.push_back(static_cast<int64_t>(i));
    }
  return std::vector{l.cast(l.add_ints("left", left), l.dtype_of(list)),
                     l.cast(l.add_ints("places", places), l.dtype_or("out_idx", DType::Int32))};
}

// A value with one row per number that another tensor holds for its leading axes.
Result<TensorId> rows_for(Layer& l, TensorId x, TensorId numbers) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to order its pieces"));
  ORKNN_TRY_ASSIGN(const Dims of_numbers, l.need_dims(numbers, "to order pieces"));
  if (dims.size() < of_numbers.size()) return shape_mismatch("a piece has fewer axes than its numbers").found(to_string(dims));
  Dims rows{element_count(of_numbers)};
  rows.insert(rows.end(), dims.begin() + static_cast<std::ptrdiff_t>(of_numbers.size()), dims.end());
  return l.reshape(x, rows);
}

// Pieces put in the order their constant numbers say; a number given twice is that of the later piece.
Result<TensorId> stitch(Layer& l, Operands inputs) {
  const size_t count = inputs.size() / 2;
  std::vector<int64_t> source;
  std::vector<TensorId> pieces;
  int64_t position = 0;
  constexpr int64_t kMost = 1 << 24;
  for (size_t i = 0; i < count; ++i) {
    ORKNN_TRY_ASSIGN(const auto numbers, l.ints(i, "to order the pieces"));
    ORKNN_TRY_ASSIGN(const TensorId piece, rows_for(l, inputs[count + i], inputs[i]));
    pieces.push_back(piece);
    for (int64_t number : numbers) {
      if (number < 0 || number > kMost) return invalid_model("a number is out of range").found(std::to_string(number));
      if (static_cast<size_t>(number) >= source.size()) source.resize(static_cast<size_t>(number) + 1, 0);
      source[static_cast<size_t>(number)] = position++;
    }
  }
  return l.gather(l.concat(pieces, 0), l.add_ints("order", source), 0);
}

Result<std::vector<TensorId>> partition(Layer& l, TensorId x, TensorId numbers) {
  ORKNN_TRY_ASSIGN(const auto parts, l.ints(1, "to size the parts"));
  ORKNN_TRY_ASSIGN(const TensorId rows, rows_for(l, x, numbers));
  const int64_t count = l.int_or("num_partitions", 1);
  if (count < 1 || count > (1 << 16)) return invalid_model("the number of parts is out of range").found(std::to_string(count));
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(count));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] < 0 || parts[i] >= count) return invalid_model("a number is out of range").found(std::to_string(parts[i]));
    members[static_cast<size_t>(parts[i])].push_back(static_cast<int64_t>(i));
  }
  std::vector<TensorId> results;
  for (const auto& list : members) results.push_back(l.gather(rows, l.add_ints("members", list), 0));
  return results;
}

// How many of each row of sorted values come before each value.
template <OpName Before>
Result<TensorId> sorted_place(Layer& l, TensorId sorted, TensorId values) {
  const TensorId before = l.binary(Before.chars, l.unsqueeze(sorted, {1}), l.unsqueeze(values, {2}));
  return l.cast(l.reduce("ReduceSum", l.cast(before, DType::Int32), {2}, false), l.dtype_or("out_type", DType::Int32));
}

// `weights` summed per number along the last axis; numbers outside of [0, count) do not count.
TensorId summed_by_number(Layer& l, TensorId numbers, Dims dims, int64_t count, TensorId weights) {
  const int64_t axis = static_cast<int64_t>(dims.size()) - 1;
  numbers = l.cast(numbers, DType::Int64);
  const TensorId within =
      l.binary("And", l.with_scalar("GreaterOrEqual", numbers, 0), l.with_scalar("Less", numbers, static_cast<double>(count)));
  const TensorId index = l.where(within, numbers, l.scalar_like(numbers, static_cast<double>(count)));
  dims.back() = count + 1;
  const TensorId sums = l.emit("ScatterElements", {l.full(dims, 0, l.dtype_of(weights)), index, weights},
                               {{"axis", axis}, {"reduction", std::string("add")}});
  return l.slice(sums, axis, 0, count);
}
constexpr int64_t kMostNumbers = 1 << 24;
Result<TensorId> dense_bincount(Layer& l, TensorId numbers, TensorId size, TensorId weights) {
  ORKNN_TRY_ASSIGN(const int64_t count, l.need_integer(size, "to count so many numbers"));
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(numbers, "to count them"));
  ORKNN_TRY_ASSIGN(const Dims weighted, l.need_dims(weights, "to know whether there are any"));
  if (count < 0 || count > kMostNumbers) return unsupported("this many numbers are not supported").found(std::to_string(count));
  if (dims.empty()) {
    dims = {1};
    numbers = l.reshape(numbers, dims);
  }
  const bool has_weights = element_count(weighted) > 0;
  const TensorId ones = l.full(dims, 1, l.dtype_of(weights));
  const bool is_binary = l.bool_or("binary_output", false);
  const TensorId sums = summed_by_number(l, numbers, dims, count, has_weights && !is_binary ? weights : ones);
  return is_binary ? l.with_scalar("Min", sums, 1) : sums;
}
Result<TensorId> histogram(Layer& l, TensorId x, TensorId range, TensorId bins) {
  ORKNN_TRY_ASSIGN(const int64_t count, l.need_integer(bins, "to count so many bins"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to count its values"));
  if (count < 1 || count > kMostNumbers) return unsupported("this many bins are not supported").found(std::to_string(count));
  const Dims flat{element_count(dims)};
  x = l.reshape(x, flat);
  const TensorId low = l.gather(range, l.add_int_scalar("low", 0), 0), high = l.gather(range, l.add_int_scalar("high", 1), 0);
  const double last = static_cast<double>(count - 1);
  const TensorId place = l.mul(l.div(l.sub(x, low), l.sub(high, low)), static_cast<double>(count));
  const TensorId bin = l.clip(l.unary("Floor", place), 0, last);
  return summed_by_number(l, bin, flat, count, l.full(flat, 1, l.dtype_or("dtype", DType::Int32)));
}
}  // namespace

std::span<const Row> indexing_rows() {
  static const Row rows[] = {
      {"Gather|GatherV2", gather},
      {"GatherNd", gather_nd},
      {"ScatterNd", scatter_nd},
      {"TensorScatterUpdate", scatter_into<"none">},
      {"TensorScatterAdd|ScatterNdNonAliasingAdd", scatter_into<"add">},
      {"TensorScatterSub", scatter_sub},
      {"TensorScatterMax", scatter_into<"max">},
      {"TensorScatterMin", scatter_into<"min">},
      {"InplaceUpdate", inplace<"none">},
      {"InplaceAdd", inplace<"add">},
      {"SparseToDense", sparse_to_dense},
      {"OneHot", one_hot_of_depth},
      {"Reverse", reverse_flagged},
      {"ReverseV2", reverse_axes},
      {"ReverseSequence", reverse_sequences},
      {"Roll", rolled},
      {"InvertPermutation", invert_permutation},
      {"LowerBound", sorted_place<"Less">},
      {"UpperBound", sorted_place<"LessOrEqual">},
      {"DenseBincount", dense_bincount},
      {"HistogramFixedWidth", histogram},
      {"Where", indices_of_nonzero},
      {"Unique|UniqueWithCounts", unique},
      {"ListDiff", list_difference},
      {"DynamicStitch|ParallelDynamicStitch", stitch, {.inputs = {.least = 2}}},
      {"DynamicPartition", partition},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
