// Operators that change shapes, put tensors together or apart, and move elements between space, depth and batch.
#include <algorithm>

#include "import/lower/axes.h"
#include "import/lower/gather.h"
#include "import/lower/strided_slice.h"
#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// --- shapes and axes

// A 0 is an empty extent here, not a copied one.
TensorId reshape(Emitter& e, TensorId x, TensorId shape) {
  const TensorData* value = e.constant_of(shape);
  if (value && !is_float(value->dtype()) && e.dims_of(x) == to_ints(value->view())) return x;
  return e.emit("Reshape", {x, e.cast(shape, DType::Int64)}, {{"allowzero", int64_t{1}}});
}

Result<TensorId> squeeze(Layer& l, TensorId x) {
  auto axes = l.ints_or("squeeze_dims");
  if (axes.empty()) axes = l.ints_or("axis");
  if (axes.empty()) {
    ORKNN_TRY_ASSIGN(axes, axes_of_extent_one(l, x));
  }
  return l.squeeze(x, axes);
}

Result<TensorId> expand_dims(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(1, "to insert an axis"));
  return l.unsqueeze(x, {axis});
}

Result<TensorId> transpose(Layer& l, TensorId x) {
  std::vector<int64_t> order;
  if (l.operand_count() > 1) {
    ORKNN_TRY_ASSIGN(order, l.ints(1, "to order the axes"));
  }
  return permuted(l, x, std::move(order));
}

std::vector<TensorId> shapes(Layer& l, Operands inputs) {
  std::vector<TensorId> results;
  for (TensorId x : inputs) results.push_back(l.cast(l.unary("Shape", x), l.dtype_or("out_type", DType::Int32)));
  return results;
}
TensorId size(Layer& l, TensorId x) { return l.cast(l.unary("Size", x), l.dtype_or("out_type", DType::Int32)); }
Result<TensorId> rank(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to return it"));
  return l.add_scalar("rank", static_cast<double>(rank), DType::Int32);
}

// --- joining

TensorId pack(Layer& l, Operands parts) { return l.stack({parts.begin(), parts.end()}, l.int_or("axis", 0)); }

Result<TensorId> concat(Layer& l, Operands inputs, size_t axis_at) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(axis_at, "to know the axis"));
  std::vector<TensorId> parts(inputs.begin(), inputs.end());
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(axis_at));
  return l.concat(std::move(parts), axis);
}
Result<TensorId> concat_axis_first(Layer& l, Operands inputs) { return concat(l, inputs, 0); }
Result<TensorId> concat_axis_last(Layer& l, Operands inputs) { return concat(l, inputs, inputs.size() - 1); }

// Where each part begins in the joined tensor.
Result<std::vector<TensorId>> concat_offset(Layer& l) {
  ORKNN_TRY_ASSIGN(int64_t axis, l.integer(0, "to know the axis"));
  int64_t offset = 0;
  std::vector<TensorId> offsets;
  for (size_t i = 1; i < l.operand_count(); ++i) {
    ORKNN_TRY_ASSIGN(const auto shape, l.ints(i, "to join shapes"));
    ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, static_cast<int64_t>(shape.size())));
    std::vector<int32_t> start(shape.size(), 0);
    start[static_cast<size_t>(axis)] = static_cast<int32_t>(offset);
    offset += shape[static_cast<size_t>(axis)] & 0x7fffffff;
    offsets.push_back(l.add_constant("offset", TensorData::from<int32_t>({static_cast<int64_t>(start.size())}, start)));
  }
  return offsets;
}

// --- cutting

Result<std::vector<TensorId>> unpack(Layer& l, TensorId x) {
  const int64_t count = l.int_or("num", 0);
  if (count < 0 || count > (1 << 16)) return invalid_model("the number of parts is out of range").found(std::to_string(count));
  return unstack(l, x, l.int_or("axis", 0), count);
}

Result<std::vector<TensorId>> split(Layer& l) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(0, "to know the axis"));
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(1));
  return split_equally(l, x, axis, l.int_or("num_split", 1));
}
Result<std::vector<TensorId>> split_v(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto sizes, l.ints(1, "to split"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(2, "to know the axis"));
  return split_to_sizes(l, x, axis, sizes);
}

Result<TensorId> masked_slice(Layer& l, TensorId x, TensorId begin, TensorId end) {
  ORKNN_TRY_ASSIGN(const auto strides, l.ints(3, "to cut"));
  const auto mask = [&](std::string_view name) { return static_cast<uint64_t>(l.int_or(name, 0)); };
  return strided_slice(
      l, x, begin, end, strides,
      {mask("begin_mask"), mask("end_mask"), mask("ellipsis_mask"), mask("new_axis_mask"), mask("shrink_axis_mask")});
}

// --- growing

Result<std::vector<int64_t>> paddings(Layer& l) {
  ORKNN_TRY_ASSIGN(const auto rows, l.ints(1, "to pad"));
  return pads_of_rows(rows);
}
Result<TensorId> pad_constant(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto pads, paddings(l));
  TensorId value;
  if (l.op() == "PadV2") {
    ORKNN_TRY_ASSIGN(value, l.operand(2));
  }
  return pad(l, x, pads, value);
}
Result<TensorId> pad_mirrored(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto pads, paddings(l));
  return mirror_pad(l, x, pads, l.string_or("mode", "REFLECT") == "SYMMETRIC");
}

// --- space, depth and batch. NCHW_VECT_C and other layouts are for special hardware only.

Result<TensorId> space_to_channels(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const PictureFormat format, data_format_of(l, 2));
  return space_to_depth(l, format, x, l.int_or("block_size", 2));
}
Result<TensorId> channels_to_space(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const PictureFormat format, data_format_of(l, 2));
  return depth_to_space(l, format, x, l.int_or("block_size", 2));
}

// The first releases have one block size for two axes.
Result<Blocks> block_inputs(Layer& l) {
  const bool is_list = l.op().ends_with("ND");
  std::vector<int64_t> block(2, l.int_or("block_size", 2));
  if (is_list) {
    ORKNN_TRY_ASSIGN(block, l.ints(1, "to move blocks"));
  }
  ORKNN_TRY_ASSIGN(const auto sides, l.ints(is_list ? 2 : 1, "to move blocks"));
  return blocks_of(std::move(block), sides);
}
Result<TensorId> cut_into_batch(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Blocks blocks, block_inputs(l));
  return space_to_batch(l, x, blocks, 0, l.import.cut_tensors);
}
Result<TensorId> join_from_batch(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Blocks blocks, block_inputs(l));
  return batch_to_space(l, x, blocks, l.import.cut_tensors);
}
}  // namespace

std::span<const Row> shape_rows() {
  static const Row rows[] = {
      {"Reshape", reshape},
      {"Squeeze", squeeze},
      {"ExpandDims", expand_dims},
      {"Transpose|ConjugateTranspose", transpose},
      {"Shape|ShapeN", shapes},
      {"Size", size},
      {"Rank", rank},
      {"Pack", pack, {.inputs = {.least = 1}}},
      {"Concat", concat_axis_first, {.inputs = {.least = 2}}},
      {"ConcatV2", concat_axis_last, {.inputs = {.least = 2}}},
      {"ConcatOffset", concat_offset},
      {"Unpack", unpack},
      {"Split", split},
      {"SplitV", split_v},
      {"Slice", slice_of_size},
      {"StridedSlice", masked_slice},
      {"Pad|PadV2", pad_constant},
      {"MirrorPad", pad_mirrored},
      {"Tile", tile},
      {"BroadcastTo", broadcast_to},
      {"BroadcastArgs", broadcast_shapes},
      {"DepthToSpace", channels_to_space},
      {"SpaceToDepth", space_to_channels},
      {"SpaceToBatch|SpaceToBatchND", cut_into_batch},
      {"BatchToSpace|BatchToSpaceND", join_from_batch},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
