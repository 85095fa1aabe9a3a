// Operators that move elements and change shapes.
#include <algorithm>

#include "import/lower/axes.h"
#include "import/lower/gather.h"
#include "import/lower/space.h"
#include "import/lower/strided_slice.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
Result<TensorId> reshaped(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId shape, l.vector(1));
  if (!shape) return invalid_model("the new shape is missing");
  if (l.constant_of(shape)) {
    ORKNN_TRY_ASSIGN(const std::vector<int64_t> known, l.need_ints(shape, "to reshape"));
    return l.reshape(x, known);
  }
  return l.emit("Reshape", {x, shape});
}
TensorId transposed(Layer& l, TensorId x) { return l.emit("Transpose", {x}, {{"perm", l.integers("perm")}}); }

// Only axes of extent 1 go.
Result<TensorId> squeezed(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> stated, l.ints(1, "axes", "to squeeze them"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to squeeze it"));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> axes, Emitter::axes_of(stated, std::ssize(dims)));
  std::erase_if(axes, [&](int64_t a) { return dims[static_cast<size_t>(a)] != 1; });
  return l.squeeze(x, axes);
}
Result<TensorId> unsqueezed(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.ints(1, "axes", "to insert them"));
  ORKNN_TRY_ASSIGN(int64_t rank, l.need_rank(x, "to insert axes"));
  for (int64_t a : axes) {  // one after the other, as Paddle counts them
    ++rank;
    ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(a, rank));
    x = l.unsqueeze(x, {at});
  }
  return x;
}
Result<TensorId> flattened(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to flatten it"));
  if (rank == 0) return l.reshape(x, {1});
  ORKNN_TRY_ASSIGN(const int64_t begin, normalize_axis(l.integer("start_axis", 1), rank));
  ORKNN_TRY_ASSIGN(const int64_t end, normalize_axis(l.integer("stop_axis", -1), rank));
  if (end < begin) return invalid_model("the axes to flatten are in the wrong order");
  std::vector<int64_t> shape(static_cast<size_t>(begin), 0);
  shape.push_back(-1);
  if (end + 1 < rank) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to flatten it"));
    shape.insert(shape.end(), dims.begin() + end + 1, dims.end());
  }
  return l.reshape(x, shape);
}
TensorId flattened_to_matrix(Layer& l, TensorId x) { return l.emit("Flatten", {x}, {{"axis", l.integer("axis", 1)}}); }

Result<TensorId> concatenated(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> parts, l.list(0));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(1, "axis", 0, "to join along it"));
  if (parts.empty()) return invalid_model("there is nothing to join");
  return l.concat(parts, axis);
}
Result<TensorId> stacked(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> parts, l.list(0));
  if (parts.empty()) return invalid_model("there is nothing to stack");
  return l.stack(parts, l.integer("axis", 0));
}
Result<std::vector<TensorId>> split(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> sections, l.ints(1, "sections", "to split into them"));
  ORKNN_TRY_ASSIGN(int64_t axis, l.integer(2, "axis", 0, "to split along it"));
  ORKNN_TRY_ASSIGN(axis, l.axis(axis, x));
  if (sections.empty()) return split_equally(l, x, axis, l.integer("num", 0));
  return split_to_sizes(l, x, axis, sections);
}
Result<std::vector<TensorId>> split_with_num(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(int64_t axis, l.integer(1, "axis", 0, "to split along it"));
  ORKNN_TRY_ASSIGN(axis, l.axis(axis, x));
  return split_equally(l, x, axis, l.integer("num", 0));
}
Result<std::vector<TensorId>> unstacked(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("axis", 0), x));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take it apart"));
  const int64_t count = dims[static_cast<size_t>(axis)];
  if (count > 4096) return unsupported("a tensor is divided into too many").expected("at most 4096").found(std::to_string(count));
  return unstack(l, x, axis, count);
}

// --- cuts
Result<TensorId> cut(Layer& l, TensorId x, bool has_strides) {
  ORKNN_TRY_ASSIGN(const TensorId begin, l.vector(1));
  ORKNN_TRY_ASSIGN(const TensorId end, l.vector(2));
  if (!begin || !end) return invalid_model("'starts' or 'ends' of the slice is missing");
  const std::vector<int64_t> axes = l.integers("axes");
  const TensorId axes_id = l.add_ints("axes", axes);
  std::vector<TensorId> inputs{x, begin, end, axes_id};
  if (has_strides) {
    ORKNN_TRY_ASSIGN(const TensorId strides, l.vector(3));
    if (strides) inputs.push_back(strides);
  }
  const TensorId y = l.emit("Slice", inputs);
  const std::vector<int64_t> dropped = l.integers("decrease_axis");
  return dropped.empty() ? y : l.squeeze(y, dropped);
}
Result<TensorId> slice(Layer& l, TensorId x) { return cut(l, x, false); }
Result<TensorId> strided(Layer& l, TensorId x) { return cut(l, x, true); }

// --- repetition
Result<TensorId> expanded(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId shape, l.vector(1));
  if (!shape) return invalid_model("the new shape is missing");
  if (!l.constant_of(shape)) return l.emit("Expand", {x, l.binary("Max", shape, l.add_int_scalar("least", 1))});
  ORKNN_TRY_ASSIGN(std::vector<int64_t> known, l.need_ints(shape, "to expand"));
  for (int64_t& d : known) d = d == -1 ? 1 : d;  // stays what it is
  return l.expand(x, known);
}
Result<TensorId> expanded_as(Layer& l, TensorId x) {
  if (const TensorId like = l.input(1)) return l.emit("Expand", {x, l.unary("Shape", like)});
  return l.expand(x, l.integers("target_shape"));
}
Result<TensorId> tiled(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(TensorId times, l.vector(1));
  if (!times) return invalid_model("the numbers of repetitions are missing");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to repeat it"));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> known, l.need_ints(times, "to repeat it"));
  while (std::ssize(known) < rank) known.insert(known.begin(), 1);
  std::vector<int64_t> axes;
  for (int64_t i = rank; i < std::ssize(known); ++i) axes.push_back(i - rank);
  return tile(l, l.unsqueeze(x, axes), l.add_ints("times", known));
}
Result<TensorId> repeated(Layer& l, TensorId x) {
  const int64_t times = l.integer("repeats", 0);
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("axis", 0), x));
  return repeat_elements(l, x, axis, times);
}
Result<TensorId> rolled(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> shifts, l.ints(1, "shifts", "to roll by them"));
  return roll(l, x, shifts, l.integers("axis"));
}
Result<TensorId> flipped(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to flip it"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, Emitter::axes_of(l.integers("axis"), rank));
  return l.reverse(x, axes);
}

// --- padding. `sides` are begin and end of each axis in the order of the axes.
Result<TensorId> padded(Layer& l, TensorId x, const std::vector<int64_t>& sides, const std::string& mode, TensorId value) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pad it"));
  if (std::ssize(sides) != 2 * rank)
    return invalid_model("illegal paddings").expected(std::to_string(2 * rank) + " numbers").found(to_string(sides));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, pads_of_rows(sides));
  if (mode == "constant") return pad(l, x, pads, value);
  const std::string ours = mode == "replicate" || mode == "edge" ? "edge" : mode == "circular" ? "wrap" : mode;
  if (ours != "edge" && ours != "wrap" && ours != "reflect")
    return unsupported("unknown padding mode").expected("constant, reflect, replicate or circular").found("'" + mode + "'");
  return l.emit("Pad", {x, l.add_ints("pads", pads)}, {{"mode", ours}});
}
Result<TensorId> pad_all(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const double value, l.number(1, "pad_value", 0, "to pad with it"));
  return padded(l, x, l.integers("paddings"), "constant", l.scalar_like(x, value));
}
// Paddings begin with the last axis of the picture.
template <size_t Spatial>
Result<TensorId> pad_picture(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> stated, l.ints(1, "paddings", "to pad"));
  if (stated.size() != 2 * Spatial)
    return invalid_model("illegal paddings").expected(std::to_string(2 * Spatial) + " numbers").found(to_string(stated));
  std::vector<int64_t> sides;
  for (size_t i = Spatial; i-- > 0;) sides.insert(sides.end(), {stated[2 * i], stated[2 * i + 1]});
  const bool is_last = l.format(Spatial).channels_last;
  sides.insert(is_last ? sides.begin() : sides.begin(), {0, 0});
  sides.insert(is_last ? sides.end() : sides.begin(), {0, 0});
  return padded(l, x, sides, l.text("mode", "constant"), l.scalar_like(x, l.number("pad_value", 0)));
}
// Of Paddle 1: above, below, left, right.
Result<TensorId> pad_plane(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> sides, l.ints(1, "paddings", "to pad"));
  if (sides.size() != 4) return invalid_model("illegal paddings").expected("4 numbers").found(to_string(sides));
  const bool is_last = l.format(2).channels_last;
  sides.insert(is_last ? sides.end() : sides.begin(), {0, 0});
  sides.insert(sides.begin(), {0, 0});
  return padded(l, x, sides, l.text("mode", "constant"), l.scalar_like(x, l.number("pad_value", 0)));
}

// --- between channels and places
Result<TensorId> pixel_shuffle(Layer& l, TensorId x) {
  return in_channels_first(l, l.format(2), x, [&](TensorId first) {
    return l.emit("DepthToSpace", {first}, {{"blocksize", l.integer("upscale_factor", 1)}, {"mode", std::string("CRD")}});
  });
}
Result<TensorId> pixel_unshuffle(Layer& l, TensorId x) {
  const int64_t f = l.integer("downscale_factor", 1);
  return in_channels_first(l, l.format(2), x, [&](TensorId first) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(first, "to move its elements"));
    if (f < 1 || d[2] % f != 0 || d[3] % f != 0)
      return invalid_model("the picture does not divide into blocks").found(to_string(d));
    const TensorId blocks = l.reshape(first, {d[0], d[1], d[2] / f, f, d[3] / f, f});
    return l.reshape(l.transpose(blocks, {0, 1, 3, 5, 2, 4}), {d[0], d[1] * f * f, d[2] / f, d[3] / f});
  });
}
Result<TensorId> channel_shuffle(Layer& l, TensorId x) {
  const int64_t groups = l.integer("groups", 1);
  return in_channels_first(l, l.format(2), x, [&](TensorId first) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(first, "to shuffle its channels"));
    if (groups < 1 || d[1] % groups != 0) return invalid_model("the channels do not divide into the groups").found(to_string(d));
    return l.reshape(l.transpose(l.reshape(first, {d[0], groups, d[1] / groups, d[2], d[3]}), {0, 2, 1, 3, 4}), d);
  });
}
template <bool Upper>
TensorId triangle(Layer& l, TensorId x) {
  return l.emit("Trilu", {x, l.add_int_scalar("diagonal", l.integer("diagonal", 0))}, {{"upper", int64_t{Upper}}});
}
TensorId tril_triu(Layer& l, TensorId x) { return l.flag("lower", false) ? triangle<false>(l, x) : triangle<true>(l, x); }
template <DType To>
TensorId shape_as(Layer& l, TensorId x) {
  return l.cast(l.unary("Shape", x), To);
}
Result<std::vector<TensorId>> meshgrid(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> parts, l.list(0));
  Dims dims;
  for (TensorId part : parts) {
    ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(part, "to make a grid"));
    dims.push_back(element_count(d));
  }
  std::vector<TensorId> grids;
  for (size_t i = 0; i < parts.size(); ++i) grids.push_back(along_axis_of_grid(l, parts[i], i, dims));
  return grids;
}
}  // namespace

std::span<const Row> shape_rows() {
  static const Row rows[] = {
      {"reshape", reshaped},
      {"transpose", transposed},
      {"squeeze", squeezed},
      {"unsqueeze", unsqueezed},
      {"flatten", flattened},
      {"flatten_to_matrix", flattened_to_matrix},
      {"concat", concatenated},
      {"stack", stacked},
      {"split", split},
      {"split_with_num", split_with_num},
      {"unstack|unbind", unstacked},
      {"slice", slice},
      {"strided_slice", strided},
      {"expand", expanded},
      {"expand_as", expanded_as},
      {"tile", tiled},
      {"repeat_interleave", repeated},
      {"roll", rolled},
      {"flip", flipped},
      {"pad", pad_all},
      {"pad2d", pad_plane},
      {"pad3d", pad_picture<3>},
      {"pixel_shuffle", pixel_shuffle},
      {"pixel_unshuffle", pixel_unshuffle},
      {"channel_shuffle", channel_shuffle},
      {"tril", triangle<false>},
      {"triu", triangle<true>},
      {"tril_triu", tril_triu},
      {"shape", shape_as<DType::Int32>},
      {"shape64", shape_as<DType::Int64>},
      {"meshgrid", meshgrid},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
