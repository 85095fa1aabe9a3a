// Operators that move elements without changing them: shapes, axes, cutting and joining.
#include <algorithm>

#include "import/lower/gather.h"
#include "import/lower/one_hot.h"
#include "import/lower/strided_slice.h"
#include "import/tflite/graph_builder.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// --- shapes and axes

// Complex numbers carry an extra axis that the file does not know of.
std::vector<int64_t> with_pairs(const Layer& l, std::vector<int64_t> shape) {
  if (l.is_complex_input(0)) shape.push_back(2);
  return shape;
}

// Our Reshape keeps the extent where a zero is, theirs means zero.
TensorId reshape_to(Layer& l, TensorId x, const std::vector<int64_t>& shape) {
  if (std::ranges::find(shape, 0) == shape.end()) return l.reshape(x, shape);
  return l.emit("Reshape", {x, l.add_ints("shape", shape)}, {{"allowzero", int64_t{1}}});
}

Result<TensorId> reshape(Layer& l, TensorId x) {
  if (!l.has_input(1)) return reshape_to(l, x, with_pairs(l, l.options().numbers<int32_t>(0).to_ints()));
  ORKNN_TRY_ASSIGN(const TensorId shape, l.stored(1));
  const auto known = l.dims_of(x);
  if (l.constant_of(shape)) {
    ORKNN_TRY_ASSIGN(std::vector<int64_t> wanted, l.ints(1, "to reshape to it"));
    if (wanted == std::vector<int64_t>{0} && known && element_count(*known) == 1)
      wanted.clear();  // how old converters write a scalar
    return reshape_to(l, x, with_pairs(l, std::move(wanted)));
  }
  // Computed while running: the converter's own result where it fits.
  const std::vector<int64_t> stated = with_pairs(l, l.has_output(0) ? l.output_info(0).shape.to_ints() : std::vector<int64_t>{});
  if (known && std::ranges::all_of(stated, [](int64_t d) { return d > 0; }))
    if (const auto count = checked_element_count(stated); count && *count == element_count(*known)) return l.reshape(x, stated);
  return l.emit("Reshape", {x, l.cast(shape, DType::Int64)}, {{"allowzero", int64_t{1}}});
}

Result<TensorId> stablehlo_reshape(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> shape, l.stated_shape());
  return reshape_to(l, x, with_pairs(l, std::move(shape)));
}

Result<TensorId> squeeze(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to drop its extents of 1"));
  const int64_t rank = static_cast<int64_t>(dims.size()) - l.is_complex_input(0);
  const std::vector<int64_t> given = l.options().numbers<int32_t>(0).to_ints();
  ORKNN_TRY_ASSIGN(std::vector<int64_t> axes, l.axes_of(given, rank));
  if (given.empty()) std::erase_if(axes, [&](int64_t axis) { return dims[static_cast<size_t>(axis)] != 1; });
  return l.squeeze(x, axes);
}

Result<TensorId> expand_dims(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to add an axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(1, "to add an axis there"));
  ORKNN_TRY_ASSIGN(const int64_t place, normalize_axis(axis, rank + 1 - l.is_complex_input(0)));
  return l.unsqueeze(x, {place});
}

Result<TensorId> permute(Layer& l, TensorId x, std::vector<int64_t> permutation) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to permute its axes"));
  const auto given = static_cast<int64_t>(permutation.size());
  for (int64_t& axis : permutation) {
    ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, given));
  }
  if (l.is_complex_input(0)) permutation.push_back(rank - 1);
  std::vector<int64_t> sorted = permutation;
  std::ranges::sort(sorted);
  if (static_cast<int64_t>(sorted.size()) != rank || std::ranges::adjacent_find(sorted) != sorted.end())
    return invalid_model("the axes are not a permutation")
        .expected(std::to_string(rank) + " different axes")
        .found(to_string(permutation));
  return l.transpose(x, std::move(permutation));
}
Result<TensorId> transpose(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> permutation, l.ints(1, "to permute the axes"));
  return permute(l, x, std::move(permutation));
}
Result<TensorId> stablehlo_transpose(Layer& l, TensorId x) { return permute(l, x, l.options().numbers<int64_t>(0).to_ints()); }

TensorId shape(Layer& l, TensorId x) {
  return l.emit("Shape", {x}, l.is_complex_input(0) ? Attributes{{"end", int64_t{-1}}} : Attributes{});
}
Result<TensorId> rank(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to return it"));
  return l.add_int_scalar("rank", rank - l.is_complex_input(0));
}

// --- joining

// Empty parts may have any shape.
Result<TensorId> join(Layer& l, Operands operands, int64_t axis) {
  std::vector<TensorId> parts(operands.begin(), operands.end());
  std::erase_if(parts, [&](TensorId t) { return operands.size() > 1 && l.dims_of(t) == Dims{0}; });
  if (parts.empty()) return invalid_model("the operator has no inputs, or all are empty");
  return l.concat(std::move(parts), axis);
}
Result<TensorId> join_and_activate(Layer& l, Operands parts) {
  ORKNN_TRY_ASSIGN(const TensorId y, join(l, parts, l.options().number<int32_t>(0)));
  return l.activate_by(y, 1);
}
Result<std::vector<Value>> concatenation(Layer& l) {
  const bool only_moves = l.activation(1) == Activation::None;
  return only_moves ? moved<join_and_activate, Layer::kAllInputs>(l) : Lowering<Layer>(join_and_activate)(l);
}
Result<TensorId> stablehlo_concatenate(Layer& l, Operands parts) { return join(l, parts, l.options().number<int64_t>(0)); }

Result<TensorId> pack(Layer& l, Operands parts) {
  if (parts.empty()) return invalid_model("the operator has no inputs");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(parts[0], "to stack it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.options().number<int32_t>(1), rank + 1));
  return l.stack({parts.begin(), parts.end()}, axis);
}

// --- cutting

Result<std::vector<TensorId>> split(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(1));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(0, "to split along it"));
  return split_equally(l, x, axis, static_cast<int64_t>(l.output_count()));
}

Result<std::vector<TensorId>> split_v(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> sizes, l.ints(1, "to split into them"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(2, "to split along it"));
  if (sizes.size() != l.output_count())
    return invalid_model("the number of parts is wrong")
        .expected(std::to_string(l.output_count()))
        .found(std::to_string(sizes.size()));
  return split_to_sizes(l, x, axis, sizes);
}

Result<std::vector<TensorId>> unpack(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to split it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.options().number<int32_t>(1), static_cast<int64_t>(dims.size())));
  const int64_t extent = dims[static_cast<size_t>(axis)];
  if (static_cast<uint64_t>(extent) != l.output_count())
    return invalid_model("the number of parts is wrong").expected(std::to_string(extent)).found(std::to_string(l.output_count()));
  return unstack(l, x, axis, extent);
}

TensorId stablehlo_slice(Layer& l, TensorId x) {
  const auto numbers = [&](unsigned field) { return l.options().numbers<int64_t>(field).to_ints(); };
  std::vector<int64_t> axes;
  for (size_t i = 0; i < l.options().numbers<int64_t>(0).size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return l.slice(x, numbers(0), numbers(1), axes, numbers(2));
}

Result<TensorId> masked_slice(Layer& l, TensorId x, TensorId begin, TensorId end) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> strides, l.ints(3, "to slice there"));
  const auto mask = [&](unsigned field) -> uint64_t { return static_cast<uint32_t>(l.options().number<int32_t>(field)); };
  return strided_slice(l, x, begin, end, strides, {mask(0), mask(1), mask(2), mask(3), mask(4), l.options().flag(5)});
}

Result<TensorId> reverse(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.ints(1, "to reverse along them"));
  return l.reverse(x, axes);
}

Result<TensorId> reverse_sequences(Layer& l, TensorId x, TensorId lengths) {
  return reverse_sequence(l, x, lengths, l.options().number<int32_t>(0), l.options().number<int32_t>(1));
}

// --- growing

Result<std::vector<int64_t>> paddings(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> rows, l.ints(1, "to pad by it"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pad it"));
  if (static_cast<int64_t>(rows.size()) != 2 * rank)
    return invalid_model("the paddings do not fit the input")
        .expected(std::to_string(2 * rank) + " numbers")
        .found(std::to_string(rows.size()));
  return pads_of_rows(rows);
}

// What stands for 0 in the numbers the first input is moved in.
int64_t outside_of(const Layer& l) {
  const TensorInfo& info = l.input_info(0);
  return l.is_moving() && info.is_quantized() && !info.quantization.zero_point.empty() ? info.quantization.zero_point[0] : 0;
}

Result<TensorId> pad_constant(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, paddings(l, x));
  TensorId fill;
  if (l.has_input(2)) {
    ORKNN_TRY_ASSIGN(fill, l.like_moved(2));
    fill = l.reshape(l.cast(fill, l.dtype_of(x)), {});
  } else if (const int64_t outside = outside_of(l)) {
    fill = l.scalar_like(x, static_cast<double>(outside), "fill");
  }
  return pad(l, x, pads, fill);
}

Result<TensorId> pad_mirrored(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, paddings(l, x));
  return mirror_pad(l, x, pads, l.options().number<int8_t>(0) != 0);
}

TensorId fill(Emitter& e, TensorId shape, TensorId value) { return broadcast_to(e, value, shape); }

Result<TensorId> broadcast_in_dim(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> shape, l.stated_shape());
  std::vector<int64_t> places = l.options().numbers<int64_t>(0).to_ints();
  if (l.has_input(1)) {
    ORKNN_TRY_ASSIGN(places, l.ints(1, "to place the axes"));
  }
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to broadcast it"));
  if (places.size() != dims.size())
    return invalid_model("the broadcast axes do not fit the input")
        .expected(std::to_string(dims.size()))
        .found(to_string(places));
  std::vector<int64_t> spread(shape.size(), 1);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || static_cast<size_t>(places[i]) >= shape.size())
      return invalid_model("a broadcast axis is out of range").found(to_string(places));
    spread[static_cast<size_t>(places[i])] = dims[i];
  }
  return l.expand(l.reshape(x, spread), shape);
}

TensorId range(Emitter& e, TensorId start, TensorId limit, TensorId delta) {
  return e.emit("Range", {e.reshape(start, {}), e.reshape(limit, {}), e.reshape(delta, {})});
}

Result<TensorId> iota(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> shape, l.stated_shape());
  const auto rank = static_cast<int64_t>(shape.size());
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.options().number<int64_t>(0), rank));
  ORKNN_TRY(checked_element_count(shape).status());
  return l.expand(positions(l, shape[static_cast<size_t>(axis)], axis, rank), shape);
}

// --- blocks of the batch

Result<Blocks> block_inputs(Layer& l) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> block, l.ints(1, "to cut blocks of that size"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> sides, l.ints(2, "to pad or crop by it"));
  return blocks_of(std::move(block), sides);
}
Result<TensorId> cut_into_batch(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Blocks blocks, block_inputs(l));
  return space_to_batch(l, x, blocks, static_cast<double>(outside_of(l)), l.builder().cut_tensors());
}
Result<TensorId> join_from_batch(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Blocks blocks, block_inputs(l));
  return batch_to_space(l, x, blocks, l.builder().cut_tensors());
}
}  // namespace

std::span<const Row> shape_rows() {
  static const Row rows[] = {
      {"RESHAPE", moved<reshape>},
      {"SQUEEZE", moved<squeeze>},
      {"EXPAND_DIMS", moved<expand_dims>},
      {"TRANSPOSE", moved<transpose>},
      {"CONCATENATION", concatenation},
      {"PACK", moved<pack, Layer::kAllInputs>},
      {"UNPACK", moved<unpack>},
      {"SPLIT", moved<split, 1>},
      {"SPLIT_V", moved<split_v>},
      {"SLICE", moved<slice_of_size>},
      {"STRIDED_SLICE", moved<masked_slice>},
      {"REVERSE_V2", moved<reverse>},
      {"REVERSE_SEQUENCE", moved<reverse_sequences>},
      {"PAD|PADV2", moved<pad_constant>},
      {"MIRROR_PAD", moved<pad_mirrored>},
      {"TILE", moved<tile>},
      {"BROADCAST_TO", moved<broadcast_to>},
      {"BROADCAST_ARGS", broadcast_shapes},
      {"FILL", moved<fill, 1>},
      {"RANGE", range},
      {"SHAPE", shape},
      {"RANK", rank},
      {"SPACE_TO_BATCH_ND", moved<cut_into_batch>},
      {"BATCH_TO_SPACE_ND", moved<join_from_batch>},
      {"STABLEHLO_TRANSPOSE", moved<stablehlo_transpose>},
      {"STABLEHLO_CONCATENATE", moved<stablehlo_concatenate, Layer::kAllInputs>},
      {"STABLEHLO_SLICE", moved<stablehlo_slice>},
      {"STABLEHLO_BROADCAST_IN_DIM", moved<broadcast_in_dim>},
      {"STABLEHLO_RESHAPE", moved<stablehlo_reshape>},
      {"STABLEHLO_IOTA", iota},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
