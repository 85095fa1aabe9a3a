// Operators that move elements without changing them: shapes, axes, cutting and joining.
#include <algorithm>
#include <climits>

#include "import/tflite/window.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
constexpr int64_t kEnd = INT64_MAX;
constexpr int64_t kFar = int64_t{1} << 48;  // farther than any extent
constexpr int64_t kMaxMirrored = 1 << 20;   // elements of an axis

// Complex numbers carry an extra axis that the file does not know of.
std::vector<int64_t> with_pairs(const Layer& l, std::vector<int64_t> shape) {
  if (l.is_complex_input(0)) shape.push_back(2);
  return shape;
}

// Our Reshape keeps the extent where a zero is, theirs means zero.
TensorId reshaped(Layer& l, TensorId x, const std::vector<int64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0) == shape.end()) return l.reshape(x, shape);
  return l.emit("Reshape", {x, l.add_ints("shape", shape)}, {{"allowzero", int64_t{1}}});
}

Status reshape(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  const Numbers<int32_t> option = l.options().numbers<int32_t>(0);
  if (!l.has_input(1)) return l.set_moved(0, 0, reshaped(l, x, with_pairs(l, option.to_ints())));
  ORKNN_TRY_ASSIGN(const TensorId shape, l.stored(1));
  if (l.constant_of(shape)) {
    ORKNN_TRY_ASSIGN(std::vector<int64_t> wanted, l.ints(1, "to reshape to it"));
    if (wanted == std::vector<int64_t>{0} && l.shape_of(x) && l.dims_of(x) && element_count(*l.dims_of(x)) == 1)
      wanted.clear();  // how old converters write a scalar
    return l.set_moved(0, 0, reshaped(l, x, with_pairs(l, std::move(wanted))));
  }
  // Computed while running: the converter's own result where it fits.
  const auto known = l.dims_of(x);
  const std::vector<int64_t> stated = with_pairs(l, l.has_output(0) ? l.output_info(0).shape.to_ints() : std::vector<int64_t>{});
  const bool positive = std::all_of(stated.begin(), stated.end(), [](int64_t d) { return d > 0; });
  const auto count = positive ? checked_element_count(stated) : Result<int64_t>(invalid_model("open"));
  if (known && count && *count == element_count(*known)) return l.set_moved(0, 0, l.reshape(x, stated));
  return l.set_moved(0, 0, l.emit("Reshape", {x, l.cast(shape, DType::Int64)}, {{"allowzero", int64_t{1}}}));
}

Status squeeze(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to drop its extents of 1"));
  const int64_t rank = static_cast<int64_t>(dims.size()) - l.is_complex_input(0);
  std::vector<int64_t> axes;
  const Numbers<int32_t> given = l.options().numbers<int32_t>(0);
  for (size_t i = 0; i < given.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(given[i], rank));
    axes.push_back(axis);
  }
  for (int64_t i = 0; given.empty() && i < rank; ++i)
    if (dims[static_cast<size_t>(i)] == 1) axes.push_back(i);
  return l.set_moved(0, 0, l.squeeze(x, std::move(axes)));
}

Status expand_dims(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to add an axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.int_scalar(1, "to add an axis there"));
  ORKNN_TRY_ASSIGN(const int64_t place, normalize_axis(axis, rank + 1 - l.is_complex_input(0)));
  return l.set_moved(0, 0, l.unsqueeze(x, {place}));
}

Status transpose_to(Layer& l, std::vector<int64_t> permutation) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to permute its axes"));
  for (int64_t& axis : permutation) {
    ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, static_cast<int64_t>(permutation.size())));
  }
  if (l.is_complex_input(0)) permutation.push_back(rank - 1);
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool valid = static_cast<int64_t>(sorted.size()) == rank;
  for (size_t i = 0; i < sorted.size(); ++i) valid &= sorted[i] == static_cast<int64_t>(i);
  if (!valid)
    return invalid_model("the axes are no permutation")
        .expected(std::to_string(rank) + " different axes")
        .found(to_string(permutation));
  return l.set_moved(0, 0, l.transpose(x, std::move(permutation)));
}
Status transpose(Layer& l) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> permutation, l.ints(1, "to permute the axes"));
  return transpose_to(l, std::move(permutation));
}
Status stablehlo_transpose(Layer& l) { return transpose_to(l, l.options().numbers<int64_t>(0).to_ints()); }

// --- joining

bool same_parameters(const TensorInfo& a, const TensorInfo& b) {
  const auto zero = [](const TensorInfo& t) {
    return t.quantization.zero_point.empty() ? int64_t{0} : t.quantization.zero_point[0];
  };
  if (!a.is_quantized() || !b.is_quantized()) return true;
  return a.quantization.scale.size() == 1 && b.quantization.scale.size() == 1 &&
         a.quantization.scale[0] == b.quantization.scale[0] && zero(a) == zero(b);
}

// All inputs, as they are stored when nothing has to be rescaled.
Result<std::vector<TensorId>> all_inputs(Layer& l, bool& stored) {
  if (l.input_count() == 0 || !l.has_output(0)) return invalid_model("the operator has no inputs or no output");
  for (size_t i = 0; i < l.input_count(); ++i)
    stored &= l.has_input(i) && l.moves_stored(i, 0) && same_parameters(l.input_info(i), l.output_info(0));
  std::vector<TensorId> all;
  for (size_t i = 0; i < l.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, stored ? l.stored(i) : l.real(i));
    all.push_back(x);
  }
  return all;
}

Status concatenation(Layer& l, int64_t axis, Activation activation) {
  bool stored = activation == Activation::None;
  ORKNN_TRY_ASSIGN(std::vector<TensorId> parts, all_inputs(l, stored));
  // Empty parts may have any shape.
  std::erase_if(parts, [&](TensorId t) {
    const auto d = l.dims_of(t);
    return parts.size() > 1 && d && *d == Dims{0};
  });
  if (parts.empty()) return invalid_model("all inputs are empty");
  ORKNN_TRY_ASSIGN(const TensorId y, l.activate(l.concat(std::move(parts), axis), activation));
  return stored ? l.set_stored(0, y) : l.set(0, y);
}
Status concatenation(Layer& l) { return concatenation(l, l.options().number<int32_t>(0), l.activation(1)); }
Status stablehlo_concatenate(Layer& l) { return concatenation(l, l.options().number<int64_t>(0), Activation::None); }

Status pack(Layer& l) {
  bool stored = true;
  ORKNN_TRY_ASSIGN(std::vector<TensorId> parts, all_inputs(l, stored));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(parts[0], "to stack it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.options().number<int32_t>(1), rank + 1));
  for (TensorId& part : parts) part = l.unsqueeze(part, {axis});
  const TensorId y = l.concat(std::move(parts), axis);
  return stored ? l.set_stored(0, y) : l.set(0, y);
}

// --- cutting

Status split_to(Layer& l, size_t input, int64_t axis, const std::vector<int64_t>& sizes, bool drop_axis) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(input, 0));
  if (sizes.size() != l.output_count())
    return invalid_model("the number of parts is wrong")
        .expected(std::to_string(l.output_count()))
        .found(std::to_string(sizes.size()));
  const std::vector<TensorId> parts = sizes.size() == 1
                                          ? std::vector<TensorId>{x}
                                          : l.emit_all("Split", {x, l.add_ints("split", sizes)}, {{"axis", axis}}, sizes.size());
  for (size_t i = 0; i < parts.size(); ++i) ORKNN_TRY(l.set_moved(input, i, drop_axis ? l.squeeze(parts[i], {axis}) : parts[i]));
  return {};
}

Result<int64_t> extent_along(Layer& l, size_t input, int64_t& axis) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.stored(input));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to split it"));
  ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, static_cast<int64_t>(dims.size())));
  return dims[static_cast<size_t>(axis)];
}

Status split(Layer& l) {
  ORKNN_TRY_ASSIGN(int64_t axis, l.int_scalar(0, "to split along it"));
  ORKNN_TRY_ASSIGN(const int64_t extent, extent_along(l, 1, axis));
  const auto parts = static_cast<int64_t>(l.output_count());
  if (parts == 0 || extent % parts != 0)
    return invalid_model("the input does not split into equal parts")
        .expected("a multiple of " + std::to_string(parts))
        .found(std::to_string(extent));
  return split_to(l, 1, axis, std::vector<int64_t>(static_cast<size_t>(parts), extent / parts), false);
}

Status split_v(Layer& l) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> sizes, l.ints(1, "to split into them"));
  ORKNN_TRY_ASSIGN(int64_t axis, l.int_scalar(2, "to split along it"));
  ORKNN_TRY_ASSIGN(const int64_t extent, extent_along(l, 0, axis));
  int64_t known = 0, open = 0;
  for (int64_t s : sizes) {
    if (s < -1 || s > extent) return invalid_model("a part has an impossible size").found(to_string(sizes));
    (s < 0 ? open : known) += s < 0 ? 1 : s;
  }
  if (open > 1 || known > extent || (open == 0 && known != extent))
    return invalid_model("the parts do not add up").expected(std::to_string(extent)).found(to_string(sizes));
  for (int64_t& s : sizes) s = s < 0 ? extent - known : s;
  return split_to(l, 0, axis, sizes, false);
}

Status unpack(Layer& l) {
  int64_t axis = l.options().number<int32_t>(1);
  ORKNN_TRY_ASSIGN(const int64_t extent, extent_along(l, 0, axis));
  if (extent < 0 || static_cast<uint64_t>(extent) != l.output_count())
    return invalid_model("the number of parts is wrong").expected(std::to_string(extent)).found(std::to_string(l.output_count()));
  return split_to(l, 0, axis, std::vector<int64_t>(static_cast<size_t>(extent), 1), true);
}

Status slice(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const TensorId begin, l.stored(1));
  ORKNN_TRY_ASSIGN(const TensorId size, l.stored(2));
  if (!l.constant_of(begin) || !l.constant_of(size)) {
    // Where the cut begins is computed while running; a size of -1 would mean an end that depends on it.
    const TensorId first = l.cast(begin, DType::Int64), count = l.cast(size, DType::Int64);
    if (const TensorData* sizes = l.constant_of(size)) {
      const std::vector<int64_t> values = to_ints(sizes->view());
      if (std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 0; }))
        return unsupported("a slice to the end must begin at a constant");
    }
    const auto rank = l.rank_of(x);
    std::vector<int64_t> axes;
    for (int64_t i = 0; rank && i < *rank; ++i) axes.push_back(i);
    return l.set_moved(0, 0, l.emit("Slice", {x, first, l.emit("Add", {first, count}), l.add_ints("axes", axes)}));
  }
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> first, l.ints(1, "to cut there"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> count, l.ints(2, "to cut there"));
  if (first.size() != count.size())
    return invalid_model("begin and size differ in length")
        .expected(std::to_string(first.size()))
        .found(std::to_string(count.size()));
  std::vector<int64_t> ends, axes;
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i] < 0 || count[i] < -1 || first[i] > INT32_MAX || count[i] > INT32_MAX)
      return invalid_model("the slice is impossible").found("begin " + to_string(first) + ", size " + to_string(count));
    ends.push_back(count[i] < 0 ? kEnd : first[i] + count[i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  return l.set_moved(0, 0, l.slice(x, first, std::move(ends), std::move(axes)));
}

Status stablehlo_slice(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  std::vector<int64_t> axes;
  const std::vector<int64_t> starts = l.options().numbers<int64_t>(0).to_ints(), ends = l.options().numbers<int64_t>(1).to_ints(),
                             steps = l.options().numbers<int64_t>(2).to_ints();
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return l.set_moved(0, 0, l.slice(x, starts, ends, std::move(axes), steps));
}

// Entries of begin, end and strides belong to axes of the input, except those that stand for many axes or for a new one.
Status strided_slice(Layer& l) {
  const Table& o = l.options();
  const auto bit = [&](unsigned field, size_t i) {
    return i < 32 && (static_cast<uint32_t>(o.number<int32_t>(field)) >> i & 1u);
  };
  enum : unsigned { BeginMask, EndMask, EllipsisMask, NewAxisMask, ShrinkMask, Offset };
  ORKNN_TRY_ASSIGN(TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to slice it"));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> begin, l.ints(1, "to slice there"));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> end, l.ints(2, "to slice there"));
  for (std::vector<int64_t>* list : {&begin, &end})
    for (int64_t& v : *list) v = std::clamp<int64_t>(v, -kFar, kFar);
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> strides, l.ints(3, "to slice there"));
  if (end.size() != begin.size() || strides.size() != begin.size())
    return invalid_model("begin, end and strides differ in length").expected(std::to_string(begin.size()));
  int64_t used = 0;
  for (size_t i = 0; i < begin.size(); ++i) used += !bit(EllipsisMask, i) && !bit(NewAxisMask, i);
  if (used > rank)
    return invalid_model("more axes are sliced than the input has")
        .expected("at most " + std::to_string(rank))
        .found(std::to_string(used));

  std::vector<int64_t> starts, ends, axes, steps, dropped, added;
  int64_t axis = 0, place = 0;  // in the input, in the output
  bool expanded = false;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (bit(EllipsisMask, i)) {
      if (!expanded) axis += rank - used, place += rank - used;
      expanded = true;
      continue;
    }
    if (bit(NewAxisMask, i)) {
      added.push_back(place++);
      continue;
    }
    const int64_t step = strides[i];
    if (step == 0) return invalid_model("a stride is 0");
    axes.push_back(axis);
    if (bit(ShrinkMask, i)) {
      starts.push_back(begin[i]);
      ends.push_back(begin[i] == -1 ? kEnd : begin[i] + 1);
      steps.push_back(1);
      dropped.push_back(axis++);
      continue;
    }
    starts.push_back(!bit(BeginMask, i) ? begin[i] : step > 0 ? 0 : kEnd);
    ends.push_back(bit(EndMask, i) ? (step > 0 ? kEnd : INT64_MIN) : o.flag(Offset) ? begin[i] + end[i] : end[i]);
    steps.push_back(step);
    ++axis, ++place;
  }
  if (!axes.empty()) x = l.slice(x, std::move(starts), std::move(ends), std::move(axes), std::move(steps));
  x = l.unsqueeze(l.squeeze(x, std::move(dropped)), std::move(added));
  return l.set_moved(0, 0, x);
}

Status reverse(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.ints(1, "to reverse along them"));
  const size_t n = axes.size();
  const TensorId y =
      n == 0 ? x : l.slice(x, std::vector<int64_t>(n, -1), std::vector<int64_t>(n, INT64_MIN), axes, std::vector<int64_t>(n, -1));
  return l.set_moved(0, 0, y);
}

// Ours wants batch and time in front.
Status reverse_sequence(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const TensorId lengths, l.int64_input(1));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to reverse its sequences"));
  ORKNN_TRY_ASSIGN(const int64_t time, normalize_axis(l.options().number<int32_t>(0), rank));
  ORKNN_TRY_ASSIGN(const int64_t batch, normalize_axis(l.options().number<int32_t>(1), rank));
  if (time == batch) return invalid_model("time and batch are the same axis");
  std::vector<int64_t> permutation{batch, time};
  for (int64_t i = 0; i < rank; ++i)
    if (i != time && i != batch) permutation.push_back(i);
  std::vector<int64_t> back(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) back[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  const TensorId y =
      l.emit("ReverseSequence", {l.transpose(x, permutation), lengths}, {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}});
  return l.set_moved(0, 0, l.transpose(y, back));
}

// --- growing

// Rows of (before, behind) as our list of all befores, then all behinds.
Result<std::vector<int64_t>> paddings(Layer& l, size_t i, int64_t rank) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> rows, l.ints(i, "to pad by it"));
  if (static_cast<int64_t>(rows.size()) != 2 * rank)
    return invalid_model("the paddings do not fit the input")
        .expected(std::to_string(2 * rank) + " numbers")
        .found(std::to_string(rows.size()));
  std::vector<int64_t> pads(rows.size());
  for (size_t k = 0; k < rows.size(); ++k) {
    if (rows[k] < 0 || rows[k] > INT32_MAX) return invalid_model("a padding is impossible").found(std::to_string(rows[k]));
    pads[k % 2 * static_cast<size_t>(rank) + k / 2] = rows[k];
  }
  return pads;
}

// The stored number that stands for 0.
int64_t zero_of(const TensorInfo& info) {
  return info.is_quantized() && !info.quantization.zero_point.empty() ? info.quantization.zero_point[0] : 0;
}

Status pad(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pad it"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, paddings(l, 1, rank));
  std::vector<TensorId> inputs{x, l.add_ints("pads", pads)};
  const bool stored = l.moves_stored(0, 0);
  if (l.has_input(2)) {
    ORKNN_TRY_ASSIGN(const TensorId fill, stored ? l.stored(2) : l.real(2));
    inputs.push_back(l.reshape(l.cast(fill, l.dtype_of(x)), {}));
  } else if (stored && zero_of(l.input_info(0)) != 0) {
    inputs.push_back(l.add_scalar("fill", static_cast<double>(zero_of(l.input_info(0))), l.dtype_of(x)));
  }
  return l.set_moved(0, 0, l.emit("Pad", std::move(inputs)));
}

Status mirror_pad(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to mirror its borders"));
  const auto rank = static_cast<int64_t>(dims.size());
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, paddings(l, 1, rank));
  if (l.options().number<int8_t>(0) == 0)
    return l.set_moved(0, 0, l.emit("Pad", {x, l.add_ints("pads", pads)}, {{"mode", std::string("reflect")}}));
  // The border is repeated: no mode of ours, so elements are picked axis by axis.
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t before = pads[axis], behind = pads[dims.size() + axis], extent = dims[axis];
    if (before == 0 && behind == 0) continue;
    if (before > extent || behind > extent)
      return invalid_model("a padding is larger than what it mirrors")
          .expected("at most " + std::to_string(extent))
          .found(std::to_string(std::max(before, behind)));
    if (extent > kMaxMirrored)
      return unsupported("the axis to mirror is too long")
          .expected("at most " + std::to_string(kMaxMirrored))
          .found(std::to_string(extent));
    std::vector<int64_t> picked;
    for (int64_t i = before; i-- > 0;) picked.push_back(i);
    for (int64_t i = 0; i < extent; ++i) picked.push_back(i);
    for (int64_t i = 0; i < behind; ++i) picked.push_back(extent - 1 - i);
    x = l.emit("Gather", {x, l.add_ints("mirror", picked)}, {{"axis", static_cast<int64_t>(axis)}});
  }
  return l.set_moved(0, 0, x);
}

Status tile(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const TensorId times, l.int64_input(1));
  return l.set_moved(0, 0, l.emit("Tile", {x, times}));
}

Status broadcast_to(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const TensorId shape, l.int64_input(1));
  return l.set_moved(0, 0, l.emit("Expand", {x, shape}));
}

Status broadcast_args(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> a, l.ints(0, "to broadcast shapes"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> b, l.ints(1, "to broadcast shapes"));
  ORKNN_TRY_ASSIGN(const Dims both, broadcast(std::span<const int64_t>(a), std::span<const int64_t>(b)));
  return l.set(0, l.add_ints("shape", both));
}

Status fill(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId shape, l.int64_input(0));
  ORKNN_TRY_ASSIGN(const TensorId value, l.movable(1, 0));
  return l.set_moved(1, 0, l.emit("Expand", {value, shape}));
}

Status broadcast_in_dim(Layer& l) {
  if (!l.has_output(0)) return {};
  ORKNN_TRY_ASSIGN(TensorId x, l.movable(0, 0));
  const std::vector<int64_t> shape = l.output_info(0).shape.to_ints();
  ORKNN_TRY_ASSIGN(
      const std::vector<int64_t> places,
      l.has_input(1) ? l.ints(1, "to place the axes") : Result<std::vector<int64_t>>(l.options().numbers<int64_t>(0).to_ints()));
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
  return l.set_moved(0, 0, l.emit("Expand", {l.reshape(x, spread), l.add_ints("shape", shape)}));
}

Status stablehlo_reshape(Layer& l) {
  if (!l.has_output(0)) return {};
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  return l.set_moved(0, 0, reshaped(l, x, with_pairs(l, l.output_info(0).shape.to_ints())));
}

Status range(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId start, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId limit, l.real(1));
  ORKNN_TRY_ASSIGN(const TensorId delta, l.real(2));
  return l.set(0, l.emit("Range", {l.reshape(start, {}), l.reshape(limit, {}), l.reshape(delta, {})}));
}

Status iota(Layer& l) {
  if (!l.has_output(0)) return {};
  const std::vector<int64_t> shape = l.output_info(0).shape.to_ints();
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.options().number<int64_t>(0), static_cast<int64_t>(shape.size())));
  const TensorId numbers = l.emit(
      "Range",
      {l.add_int_scalar("start", 0), l.add_int_scalar("limit", shape[static_cast<size_t>(axis)]), l.add_int_scalar("delta", 1)});
  std::vector<int64_t> along(shape.size(), 1);
  along[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
  return l.set(0, l.emit("Expand", {l.reshape(numbers, along), l.add_ints("shape", shape)}));
}

Status shape(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.stored(0));
  return l.set(0, l.emit("Shape", {x}, l.is_complex_input(0) ? Attributes{{"end", int64_t{-1}}} : Attributes{}));
}

Status rank(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.stored(0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to return it"));
  return l.set(0, l.add_int_scalar("rank", rank - l.is_complex_input(0)));
}

// --- blocks of the batch

Result<std::vector<int64_t>> block_shape(Layer& l, const Dims& dims) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> block, l.ints(1, "to cut blocks of that size"));
  if (block.empty() || block.size() + 1 > dims.size() ||
      std::any_of(block.begin(), block.end(), [](int64_t b) { return b < 1 || b > kMaxWindow; }))
    return invalid_model("the block shape is impossible").found(to_string(block));
  if (element_count(dims) == 0) return unsupported("an empty tensor cannot be cut into blocks").found(to_string(dims));
  return block;
}

Status space_to_batch(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(x, "to cut it into blocks"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> block, block_shape(l, dims));
  const size_t m = block.size();
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, paddings(l, 2, static_cast<int64_t>(m)));
  std::vector<int64_t> all(2 * dims.size(), 0);
  for (size_t i = 0; i < m; ++i) {
    all[i + 1] = pads[i];
    all[dims.size() + i + 1] = pads[m + i];
    dims[i + 1] += pads[i] + pads[m + i];
    if (dims[i + 1] % block[i] != 0)
      return invalid_model("the padded input does not split into blocks")
          .expected("a multiple of " + std::to_string(block[i]))
          .found(std::to_string(dims[i + 1]));
  }
  if (std::any_of(all.begin(), all.end(), [](int64_t p) { return p != 0; })) {
    std::vector<TensorId> inputs{x, l.add_ints("pads", all)};
    if (l.moves_stored(0, 0) && zero_of(l.input_info(0)) != 0)
      inputs.push_back(l.add_scalar("fill", static_cast<double>(zero_of(l.input_info(0))), l.dtype_of(x)));
    x = l.emit("Pad", std::move(inputs));
  }
  // [N, H/a, a, W/b, b, C] to [a, b, N, H/a, W/b, C] to [a*b*N, H/a, W/b, C]
  std::vector<int64_t> cut{dims[0]}, permutation, joined{dims[0]};
  for (size_t i = 0; i < m; ++i) {
    cut.push_back(dims[i + 1] / block[i]);
    cut.push_back(block[i]);
    permutation.push_back(static_cast<int64_t>(2 * i + 2));
    joined[0] *= block[i];
    joined.push_back(dims[i + 1] / block[i]);
  }
  permutation.push_back(0);
  for (size_t i = 0; i < m; ++i) permutation.push_back(static_cast<int64_t>(2 * i + 1));
  for (size_t i = m + 1; i < dims.size(); ++i) {
    permutation.push_back(static_cast<int64_t>(cut.size()));
    cut.push_back(dims[i]);
    joined.push_back(dims[i]);
  }
  ORKNN_TRY(checked_element_count(joined).status());
  return l.set_moved(0, 0, l.reshape(l.transpose(l.reshape(x, cut), permutation), joined));
}

Status batch_to_space(Layer& l) {
  ORKNN_TRY_ASSIGN(const bool done, lower_dilated(l));
  if (done) return {};
  ORKNN_TRY_ASSIGN(TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to join its blocks"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> block, block_shape(l, dims));
  const size_t m = block.size();
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> crops, paddings(l, 2, static_cast<int64_t>(m)));
  int64_t batch = dims[0];
  for (int64_t b : block) {
    if (batch % b != 0)
      return invalid_model("the batch does not split into blocks")
          .expected("a multiple of " + std::to_string(b))
          .found(std::to_string(batch));
    batch /= b;
  }
  // [a*b*N, H, W, C] to [a, b, N, H, W, C] to [N, H, a, W, b, C] to [N, H*a, W*b, C]
  std::vector<int64_t> cut(block.begin(), block.end()), permutation{static_cast<int64_t>(m)}, joined{batch}, starts, ends, axes;
  cut.push_back(batch);
  for (size_t i = 0; i < m; ++i) {
    cut.push_back(dims[i + 1]);
    permutation.push_back(static_cast<int64_t>(m + 1 + i));
    permutation.push_back(static_cast<int64_t>(i));
    joined.push_back(dims[i + 1] * block[i]);
    if (crops[i] + crops[m + i] > joined.back()) return invalid_model("more is cropped than there is").found(to_string(crops));
    starts.push_back(crops[i]);
    ends.push_back(joined.back() - crops[m + i]);
    axes.push_back(static_cast<int64_t>(i) + 1);
  }
  for (size_t i = m + 1; i < dims.size(); ++i) {
    permutation.push_back(static_cast<int64_t>(cut.size()));
    cut.push_back(dims[i]);
    joined.push_back(dims[i]);
  }
  x = l.reshape(l.transpose(l.reshape(x, cut), permutation), joined);
  if (std::any_of(crops.begin(), crops.end(), [](int64_t c) { return c != 0; })) x = l.slice(x, starts, ends, axes);
  return l.set_moved(0, 0, x);
}
}  // namespace

std::span<const Row> shape_rows() {
  static constexpr Row rows[] = {
      {"RESHAPE", reshape},
      {"SQUEEZE", squeeze},
      {"EXPAND_DIMS", expand_dims},
      {"TRANSPOSE", transpose},
      {"CONCATENATION", concatenation},
      {"PACK", pack},
      {"UNPACK", unpack},
      {"SPLIT", split},
      {"SPLIT_V", split_v},
      {"SLICE", slice},
      {"STRIDED_SLICE", strided_slice},
      {"REVERSE_V2", reverse},
      {"REVERSE_SEQUENCE", reverse_sequence},
      {"PAD", pad},
      {"PADV2", pad},
      {"MIRROR_PAD", mirror_pad},
      {"TILE", tile},
      {"BROADCAST_TO", broadcast_to},
      {"BROADCAST_ARGS", broadcast_args},
      {"FILL", fill},
      {"RANGE", range},
      {"SHAPE", shape},
      {"RANK", rank},
      {"SPACE_TO_BATCH_ND", space_to_batch},
      {"BATCH_TO_SPACE_ND", batch_to_space},
      {"STABLEHLO_TRANSPOSE", stablehlo_transpose},
      {"STABLEHLO_CONCATENATE", stablehlo_concatenate},
      {"STABLEHLO_SLICE", stablehlo_slice},
      {"STABLEHLO_BROADCAST_IN_DIM", broadcast_in_dim},
      {"STABLEHLO_RESHAPE", stablehlo_reshape},
      {"STABLEHLO_IOTA", iota},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
