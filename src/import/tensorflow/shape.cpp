// Operators that change shapes and put tensors together or apart.
#include <algorithm>
#include <limits>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
constexpr size_t kMostParts = 1 << 16;  // outputs of one node

Status lower_reshape(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId shape, layer.input(1));
  // A 0 is an empty extent here, not a copied one.
  if (const TensorData* value = layer.constant_of(shape); value && !is_float(value->dtype())) {
    const auto target = to_ints(value->view());
    if (const auto dims = layer.dims_of(x); dims && *dims == target) {
      layer.set(x);
      return {};
    }
  }
  layer.set(layer.emit("Reshape", {x, layer.cast(shape, DType::Int64)}, {{"allowzero", int64_t{1}}}));
  return {};
}

Status lower_squeeze(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  auto axes = layer.ints_or("squeeze_dims");
  if (axes.empty()) axes = layer.ints_or("axis");
  if (axes.empty()) {
    ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(x, "to drop extents of 1"));
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == 1) axes.push_back(static_cast<int64_t>(i));
  }
  layer.set(axes.empty() ? x : layer.squeeze(x, axes));
  return {};
}

Status lower_expand_dims(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const int64_t axis, layer.integer(1, "to insert an axis"));
  layer.set(layer.unsqueeze(x, {axis}));
  return {};
}

Status lower_transpose(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  std::vector<int64_t> permutation;
  if (layer.input_count() > 1) {
    ORKNN_TRY_ASSIGN(permutation, layer.ints(1, "to order the axes"));
  } else {
    ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to reverse its axes"));
    for (int64_t i = rank; i-- > 0;) permutation.push_back(i);
  }
  const auto rank = static_cast<int64_t>(permutation.size());
  for (int64_t& axis : permutation) {
    ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, rank));
  }
  layer.set(layer.transpose(x, std::move(permutation)));
  return {};
}

Result<std::vector<TensorId>> tensors(Layer& layer, size_t begin, size_t end) {
  std::vector<TensorId> list;
  for (size_t i = begin; i < end; ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, layer.input(i));
    list.push_back(x);
  }
  if (list.empty()) return invalid_model("inputs are missing");
  return list;
}

Status lower_pack(Layer& layer) {
  ORKNN_TRY_ASSIGN(auto parts, tensors(layer, 0, layer.input_count()));
  const int64_t axis = layer.int_or("axis", 0);
  for (TensorId& part : parts) part = layer.unsqueeze(part, {axis});
  layer.set(layer.concat(std::move(parts), axis));
  return {};
}

Status lower_unpack(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const int64_t axis = layer.int_or("axis", 0), count = layer.int_or("num", 0);
  if (count < 0 || count > static_cast<int64_t>(kMostParts))
    return invalid_model("the number of parts is out of range").found(std::to_string(count));
  if (count == 0) return {};
  const auto parts = layer.emit_all("Split", {x, layer.add_ints("sizes", std::vector<int64_t>(static_cast<size_t>(count), 1))},
                                    {{"axis", axis}}, static_cast<size_t>(count));
  for (TensorId part : parts) layer.set(layer.squeeze(part, {axis}));
  return {};
}

// Concat has its axis first, ConcatV2 last. Empty parts of rank 1 are legal everywhere.
Status lower_concat(Layer& layer) {
  ORKNN_TRY(layer.need_inputs(2));
  const size_t count = layer.input_count();
  const bool first = layer.op() == "Concat";
  ORKNN_TRY_ASSIGN(const int64_t axis, layer.integer(first ? 0 : count - 1, "to know the axis"));
  ORKNN_TRY_ASSIGN(const auto parts, tensors(layer, first ? 1 : 0, first ? count : count - 1));
  layer.set(layer.concat(parts, axis));
  return {};
}

// Where each part begins in the joined tensor.
Status lower_concat_offset(Layer& layer) {
  ORKNN_TRY_ASSIGN(int64_t axis, layer.integer(0, "to know the axis"));
  int64_t offset = 0;
  for (size_t i = 1; i < layer.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const auto shape, layer.ints(i, "to join shapes"));
    ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, static_cast<int64_t>(shape.size())));
    std::vector<int32_t> start(shape.size(), 0);
    start[static_cast<size_t>(axis)] = static_cast<int32_t>(offset);
    offset += shape[static_cast<size_t>(axis)] & 0x7fffffff;
    layer.set(layer.add_constant("offset", TensorData::from<int32_t>({static_cast<int64_t>(start.size())}, start)));
  }
  return {};
}

// Split: axis, value. SplitV: value, sizes, axis; one size of -1 takes what is left.
Status lower_split(Layer& layer) {
  const bool has_sizes = layer.op() == "SplitV";
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(has_sizes ? 0 : 1));
  ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to split it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, layer.axis(has_sizes ? 2 : 0, rank));
  const Dim extent = (*layer.shape_of(x))[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes;
  if (has_sizes) {
    ORKNN_TRY_ASSIGN(sizes, layer.ints(1, "to split"));
    if (sizes.empty() || sizes.size() > kMostParts)
      return invalid_model("the number of parts is out of range").found(std::to_string(sizes.size()));
    int64_t known = 0;
    int64_t* open = nullptr;
    for (int64_t& s : sizes) {
      if (s >= 0 && s <= (int64_t{1} << 40))
        known += s;
      else if (s == -1 && !open)
        open = &s;
      else
        return invalid_model("the sizes are not valid").found(to_string(sizes));
    }
    if (open) {
      if (!extent.is_known())
        return unsupported("the extent must be known to split it").hint("give the input shapes with input_size_list");
      *open = extent.value() - known;
      if (*open < 0) return shape_mismatch("the sizes do not fit").expected(extent.to_string()).found(to_string(sizes));
    }
  } else {
    const int64_t count = layer.int_or("num_split", 1);
    if (count < 1 || count > static_cast<int64_t>(kMostParts))
      return invalid_model("the number of parts is out of range").found(std::to_string(count));
    if (!extent.is_known())
      return unsupported("the extent must be known to split it").hint("give the input shapes with input_size_list");
    if (extent.value() % count != 0)
      return shape_mismatch("the parts are not equal")
          .expected("a multiple of " + std::to_string(count))
          .found(extent.to_string());
    sizes.assign(static_cast<size_t>(count), extent.value() / count);
  }
  if (sizes.size() == 1) {
    layer.set(x);
    return {};
  }
  for (TensorId part : layer.emit_all("Split", {x, layer.add_ints("sizes", sizes)}, {{"axis", axis}}, sizes.size()))
    layer.set(part);
  return {};
}

Status lower_slice(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId begin, layer.input(1));
  ORKNN_TRY_ASSIGN(const auto sizes, layer.ints(2, "to cut"));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  const TensorData* fixed = layer.constant_of(begin);
  if (!fixed) {  // a window that moves with the data
    const TensorId starts = layer.cast(begin, DType::Int64);
    if (std::any_of(sizes.begin(), sizes.end(), [](int64_t s) { return s < 0; }))
      return unsupported("a cut that begins where the data says needs fixed sizes").found(to_string(sizes));
    layer.set(layer.emit("Slice",
                         {x, starts, layer.emit("Add", {starts, layer.add_ints("sizes", sizes)}), layer.add_ints("axes", axes)}));
    return {};
  }
  ORKNN_TRY_ASSIGN(const auto starts, layer.ints(1, "to cut"));
  if (starts.size() != sizes.size())
    return invalid_model("begin and size have different lengths")
        .found(std::to_string(starts.size()) + " and " + std::to_string(sizes.size()));
  std::vector<int64_t> ends;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (starts[i] < 0 || sizes[i] < -1 || (sizes[i] > 0 && starts[i] > kToTheEnd - sizes[i]))
      return invalid_model("begin or size is negative").found(to_string(starts) + " and " + to_string(sizes));
    ends.push_back(sizes[i] < 0 ? kToTheEnd : starts[i] + sizes[i]);
  }
  layer.set(layer.slice(x, starts, ends, axes));
  return {};
}

// Python's x[a:b:c, ..., newaxis, i]. Each entry of begin, end and strides is one of these forms, told by bits of the masks.
Status lower_strided_slice(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId begin, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId end, layer.input(2));
  ORKNN_TRY_ASSIGN(const auto strides, layer.ints(3, "to cut"));
  const size_t entries = strides.size();
  if (entries > 32) return unsupported("a cut of more than 32 axes is not supported").found(std::to_string(entries));
  const auto mask = [&](std::string_view name) { return static_cast<uint64_t>(layer.int_or(name, 0)); };
  const uint64_t begin_mask = mask("begin_mask"), end_mask = mask("end_mask"), ellipsis = mask("ellipsis_mask"),
                 new_axis = mask("new_axis_mask"), shrink = mask("shrink_axis_mask");
  const auto has = [](uint64_t bits, size_t i) { return (bits >> i & 1) != 0; };
  if (ellipsis & (ellipsis - 1)) return invalid_model("more than one ellipsis in a cut");

  const TensorData *fixed_begin = layer.constant_of(begin), *fixed_end = layer.constant_of(end);
  const auto starts_in = fixed_begin ? to_ints(fixed_begin->view()) : std::vector<int64_t>(entries, 0),
             ends_in = fixed_end ? to_ints(fixed_end->view()) : std::vector<int64_t>(entries, 0);
  if (starts_in.size() != entries || ends_in.size() != entries)
    return invalid_model("begin, end and strides have different lengths");

  // Axes of x that an ellipsis stands for.
  int64_t skipped = 0;
  if (ellipsis) {
    ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to resolve the ellipsis"));
    int64_t used = 0;
    for (size_t i = 0; i < entries; ++i) used += !has(ellipsis, i) && !has(new_axis, i);
    skipped = rank - used;
    if (skipped < 0)
      return shape_mismatch("the cut has more axes than the value").expected(std::to_string(rank)).found(std::to_string(used));
  }

  TensorId y = x;
  std::vector<int64_t> starts, ends, steps, axes, dropped, inserted;
  std::vector<std::pair<int64_t, TensorId>> picked, moving_starts, moving_ends;  // positions only the data tells
  int64_t axis = 0, out = 0;
  const auto entry_of = [&](TensorId list, size_t i) {
    return layer.cast(layer.slice(list, {static_cast<int64_t>(i)}, {static_cast<int64_t>(i) + 1}, {0}), DType::Int64);
  };
  for (size_t i = 0; i < entries; ++i) {
    if (has(ellipsis, i)) {
      axis += skipped;
      out += skipped;
    } else if (has(new_axis, i)) {
      inserted.push_back(out++);
    } else if (has(shrink, i)) {
      if (fixed_begin) {
        starts.push_back(starts_in[i]);
        ends.push_back(starts_in[i] == -1 || starts_in[i] == kToTheEnd ? kToTheEnd : starts_in[i] + 1);
        steps.push_back(1);
        axes.push_back(axis);
        dropped.push_back(axis);
      } else {
        picked.emplace_back(axis, entry_of(begin, i));
        dropped.push_back(axis);
      }
      ++axis;
    } else {
      if (strides[i] == 0) return invalid_model("a cut has a stride of 0");
      const bool backwards = strides[i] < 0, open_start = has(begin_mask, i), open_end = has(end_mask, i);
      const bool whole = open_start && open_end && strides[i] == 1;
      if (!whole) {
        if (!open_start && !fixed_begin) moving_starts.emplace_back(static_cast<int64_t>(starts.size()), entry_of(begin, i));
        if (!open_end && !fixed_end) moving_ends.emplace_back(static_cast<int64_t>(starts.size()), entry_of(end, i));
        starts.push_back(open_start ? (backwards ? kToTheEnd : 0) : starts_in[i]);
        ends.push_back(open_end ? (backwards ? std::numeric_limits<int64_t>::min() : kToTheEnd) : ends_in[i]);
        steps.push_back(strides[i]);
        axes.push_back(axis);
      }
      ++axis;
      ++out;
    }
  }
  if (!axes.empty()) {
    const auto with_moving = [&](const std::vector<int64_t>& fixed, const std::vector<std::pair<int64_t, TensorId>>& moving,
                                 std::string_view role) {
      if (moving.empty()) return layer.add_ints(role, fixed);
      std::vector<TensorId> parts;
      for (size_t i = 0; i < fixed.size(); ++i) {
        const auto found =
            std::find_if(moving.begin(), moving.end(), [&](const auto& m) { return m.first == static_cast<int64_t>(i); });
        parts.push_back(found != moving.end() ? found->second : layer.add_ints(role, {fixed[i]}));
      }
      return layer.concat(parts, 0);
    };
    y = layer.emit("Slice", {y, with_moving(starts, moving_starts, "starts"), with_moving(ends, moving_ends, "ends"),
                             layer.add_ints("axes", axes), layer.add_ints("steps", steps)});
  }
  for (const auto& [at, index] : picked) y = layer.emit("Gather", {y, index}, {{"axis", at}});
  if (!dropped.empty()) y = layer.squeeze(y, dropped);
  if (!inserted.empty()) y = layer.unsqueeze(y, inserted);
  layer.set(y);
  return {};
}

// Paddings come as [rank, 2]; ours are all begins, then all ends.
Result<std::vector<int64_t>> pads_of(Layer& layer) {
  ORKNN_TRY_ASSIGN(const auto list, layer.ints(1, "to pad"));
  if (list.size() % 2 != 0) return invalid_model("the paddings must be pairs").found(std::to_string(list.size()) + " numbers");
  std::vector<int64_t> pads;
  for (size_t side = 0; side < 2; ++side)
    for (size_t i = side; i < list.size(); i += 2) {
      if (list[i] < 0) return invalid_model("the paddings must not be negative").found(to_string(list));
      pads.push_back(list[i]);
    }
  return pads;
}

Status lower_pad(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const auto pads, pads_of(layer));
  if (std::all_of(pads.begin(), pads.end(), [](int64_t n) { return n == 0; })) {
    layer.set(x);
    return {};
  }
  std::vector<TensorId> inputs{x, layer.add_ints("pads", pads)};
  if (layer.op() == "PadV2") {
    ORKNN_TRY_ASSIGN(const TensorId value, layer.input(2));
    inputs.push_back(value);
  }
  layer.set(layer.emit("Pad", std::move(inputs)));
  return {};
}

// REFLECT mirrors at the edge element, which ours does too; SYMMETRIC repeats it: mirrored pieces are put around, axis by axis.
Status lower_mirror_pad(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const auto pads, pads_of(layer));
  if (std::all_of(pads.begin(), pads.end(), [](int64_t n) { return n == 0; })) {
    layer.set(x);
    return {};
  }
  if (layer.string_or("mode", "REFLECT") != "SYMMETRIC") {
    layer.set(layer.emit("Pad", {x, layer.add_ints("pads", pads)}, {{"mode", std::string("reflect")}}));
    return {};
  }
  const size_t rank = pads.size() / 2;
  if (std::all_of(pads.begin(), pads.end(), [](int64_t n) { return n <= 1; })) {
    layer.set(layer.emit("Pad", {x, layer.add_ints("pads", pads)}, {{"mode", std::string("edge")}}));
    return {};
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<int64_t>(axis);
    std::vector<TensorId> parts;
    if (pads[axis] > 0) parts.push_back(layer.slice(x, {pads[axis] - 1}, {std::numeric_limits<int64_t>::min()}, {at}, {-1}));
    parts.push_back(x);
    if (pads[rank + axis] > 0) parts.push_back(layer.slice(x, {-1}, {-pads[rank + axis] - 1}, {at}, {-1}));
    x = layer.concat(parts, at);
  }
  layer.set(x);
  return {};
}

Status lower_tile(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId repeats, layer.input(1));
  layer.set(layer.emit("Tile", {x, layer.cast(repeats, DType::Int64)}));
  return {};
}

Status lower_broadcast_to(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId shape, layer.input(1));
  layer.set(layer.emit("Expand", {x, layer.cast(shape, DType::Int64)}));
  return {};
}

Status lower_shape(Layer& layer) {
  for (size_t i = 0; i < layer.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, layer.input(i));
    layer.set(layer.cast(layer.emit("Shape", {x}), layer.dtype_or("out_type", DType::Int32)));
  }
  return {};
}

Status lower_size(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.cast(layer.emit("Size", {x}), layer.dtype_or("out_type", DType::Int32)));
  return {};
}

Status lower_rank(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to answer with it"));
  layer.set(layer.add_scalar("rank", static_cast<double>(rank), DType::Int32));
  return {};
}

// The shape two shapes broadcast to.
Status lower_broadcast_args(Layer& layer) {
  ORKNN_TRY_ASSIGN(const auto a, layer.ints(0, "to broadcast"));
  ORKNN_TRY_ASSIGN(const auto b, layer.ints(1, "to broadcast"));
  ORKNN_TRY_ASSIGN(const Dims shape, broadcast(a, b));
  layer.set(layer.cast(layer.add_ints("shape", shape), layer.dtype_or("T", DType::Int32)));
  return {};
}
}  // namespace

std::span<const Row> shape_rows() {
  static constexpr Row kRows[] = {
      {"Reshape", lower_reshape},
      {"Squeeze", lower_squeeze},
      {"ExpandDims", lower_expand_dims},
      {"Transpose", lower_transpose},
      {"ConjugateTranspose", lower_transpose},
      {"Pack", lower_pack},
      {"Unpack", lower_unpack},
      {"Concat", lower_concat},
      {"ConcatV2", lower_concat},
      {"ConcatOffset", lower_concat_offset},
      {"Split", lower_split},
      {"SplitV", lower_split},
      {"Slice", lower_slice},
      {"StridedSlice", lower_strided_slice},
      {"Pad", lower_pad},
      {"PadV2", lower_pad},
      {"MirrorPad", lower_mirror_pad},
      {"Tile", lower_tile},
      {"BroadcastTo", lower_broadcast_to},
      {"Shape", lower_shape},
      {"ShapeN", lower_shape},
      {"Size", lower_size},
      {"Rank", lower_rank},
      {"BroadcastArgs", lower_broadcast_args},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
