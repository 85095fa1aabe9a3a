// Layers that move values: Concat, Slice, Reshape, Flatten, Permute, Crop, Tile and others of their kind.
#include <limits>

#include "import/caffe/layer.h"
#include "import/lower/reorganize.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
// Old descriptions call the axis `concat_dim` or `slice_dim`.
Result<int64_t> axis_or_dim(const Layer& l, const Message& p, const char* old_name, int64_t rank) {
  return l.axis_of(p, p.has("axis") || !p.has(old_name) ? "axis" : old_name, 1, rank);
}

Status concat(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 100000));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to find the axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_or_dim(l, l.parameters("concat_param"), "concat_dim", rank));
  std::vector<TensorId> parts;
  for (size_t i = 0; i < l.bottom_count(); ++i) parts.push_back(l.bottom(i));
  return l.set_top(parts.size() == 1 ? parts[0] : l.emit("Concat", std::move(parts), {{"axis", axis}}));
}

Status slice(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("slice_param");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to find the axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_or_dim(l, p, "slice_dim", rank));
  ORKNN_TRY_ASSIGN(const int64_t extent, l.extent(l.bottom(), axis, "to divide it"));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> points, p.get_ints("slice_point"));
  const auto count = static_cast<int64_t>(l.top_count());
  if (count < 1) return invalid_model("the layer has no tops");
  if (points.empty()) {
    if (extent % count != 0)
      return invalid_model("the axis cannot be divided equally")
          .expected("a multiple of " + std::to_string(count))
          .found(std::to_string(extent));
    for (int64_t i = 1; i < count; ++i) points.push_back(i * (extent / count));
  }
  if (static_cast<int64_t>(points.size()) != count - 1)
    return invalid_model("the number of 'slice_point' does not fit")
        .expected(std::to_string(count - 1))
        .found(std::to_string(points.size()));
  std::vector<int64_t> sizes;
  points.push_back(extent);
  for (int64_t before = 0; int64_t point : points) {
    if (point < before || point > extent)
      return invalid_model("'slice_point' is out of order")
          .expected("ascending, at most " + std::to_string(extent))
          .found(std::to_string(point));
    sizes.push_back(point - before);
    before = point;
  }
  if (count == 1) return l.set_top(l.bottom());
  const auto parts = l.emit_all("Split", {l.bottom(), l.add_ints("sizes", sizes)}, {{"axis", axis}}, static_cast<size_t>(count));
  for (size_t i = 0; i < parts.size(); ++i) ORKNN_TRY(l.set_top(parts[i], i));
  return {};
}

// `target` with 0 where an extent is kept in its place.
Status reshape_to(Layer& l, std::vector<int64_t> target) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to reshape it"));
  for (size_t i = 0; i < target.size(); ++i)
    if (target[i] == 0 && static_cast<int64_t>(i) >= rank)
      return invalid_model("extent " + std::to_string(i) + " cannot be kept")
          .expected("at most " + std::to_string(rank) + " axes");
  return l.set_top(l.emit("Reshape", {l.bottom(), l.add_ints("shape", target)}));
}

// An extent behind the changed axes: kept in its place when nothing moved, else it has to be known.
Result<int64_t> kept_extent(Layer& l, int64_t from, int64_t to) {
  if (from == to) return 0;
  return l.extent(l.bottom(), from, "to reshape it");
}

// `shape` replaces the axes from `axis` on, `num_axes` of them; 0 keeps an extent, -1 takes what is left.
Status reshape(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("reshape_param");
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> shape, p.message("shape").get_ints("dim"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to reshape it"));
  ORKNN_TRY_ASSIGN(const int64_t first, p.get_int("axis", 0));
  ORKNN_TRY_ASSIGN(const int64_t count, p.get_int("num_axes", -1));
  const int64_t begin = first < 0 ? rank + first + 1 : first, end = count < 0 ? rank : begin + count;
  if (begin < 0 || begin > rank || count < -1 || count > rank || end > rank)
    return invalid_model("the axes to replace do not exist")
        .expected("within " + std::to_string(rank) + " axes")
        .found("axis " + std::to_string(first) + ", num_axes " + std::to_string(count));
  std::vector<int64_t> target(static_cast<size_t>(begin), 0);
  target.insert(target.end(), shape.begin(), shape.end());
  for (int64_t i = end; i < rank; ++i) {
    ORKNN_TRY_ASSIGN(const int64_t extent, kept_extent(l, i, static_cast<int64_t>(target.size())));
    target.push_back(extent);
  }
  return reshape_to(l, std::move(target));
}

Status flatten(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("flatten_param");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to flatten it"));
  if (rank < 2) return l.set_top(l.bottom());
  ORKNN_TRY_ASSIGN(const int64_t begin, l.axis_of(p, "axis", 1, rank));
  ORKNN_TRY_ASSIGN(const int64_t end, l.axis_of(p, "end_axis", -1, rank));
  if (begin == 1 && end == rank - 1) return l.set_top(l.emit("Flatten", {l.bottom()}, {{"axis", int64_t{1}}}));
  if (end < begin) return invalid_model("'end_axis' lies before 'axis'").found(std::to_string(end));
  std::vector<int64_t> target(static_cast<size_t>(begin), 0);
  target.push_back(-1);
  for (int64_t i = end + 1; i < rank; ++i) {
    ORKNN_TRY_ASSIGN(const int64_t extent, kept_extent(l, i, static_cast<int64_t>(target.size())));
    target.push_back(extent);
  }
  return reshape_to(l, std::move(target));
}

// Axes the order does not name follow in their own order.
Status permuted(Layer& l, std::vector<int64_t> order) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to permute it"));
  std::vector<char> seen(static_cast<size_t>(rank), 0);
  for (int64_t axis : order) {
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)])
      return invalid_model("the order of axes is illegal")
          .expected("each of 0 to " + std::to_string(rank - 1) + " once")
          .found(to_string(order));
    seen[static_cast<size_t>(axis)] = 1;
  }
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!seen[static_cast<size_t>(axis)]) order.push_back(axis);
  return l.set_top(l.transpose(l.bottom(), std::move(order)));
}

Status permute(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> order, l.parameters("permute_param").get_ints("order"));
  return permuted(l, std::move(order));
}

Status transpose(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> order, l.parameters("transpose_param").get_ints("dim"));
  if (order.empty()) {
    ORKNN_TRY_ASSIGN(order, l.parameters("permute_param").get_ints("order"));
  }
  return permuted(l, std::move(order));
}

// Cut to the size of the second bottom, from `axis` on.
Status crop(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 2));
  const Message& p = l.parameters("crop_param");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to crop it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(p, "axis", 2, rank));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> offsets, p.get_ints("offset"));
  const auto count = static_cast<size_t>(rank - axis);
  if (offsets.empty()) offsets = {0};
  if (offsets.size() == 1) offsets.assign(count, offsets[0]);
  if (offsets.size() != count)
    return invalid_model("the number of 'offset' does not fit")
        .expected("1 or " + std::to_string(count))
        .found(std::to_string(offsets.size()));
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < rank; ++i) axes.push_back(i);
  const TensorId size = l.emit("Shape", {l.bottom(1)}, {{"start", axis}});
  const TensorId starts = l.add_ints("offsets", offsets), ends = l.emit("Add", {size, starts});
  const TensorId y = l.emit("Slice", {l.bottom(), starts, ends, l.add_ints("axes", axes)});
  // A slice that reaches beyond the end would silently be smaller.
  if (const auto got = l.dims_of(y), from = l.dims_of(l.bottom()), wanted = l.dims_of(l.bottom(1)); got && from && wanted)
    for (size_t i = static_cast<size_t>(axis); i < from->size() && i < wanted->size(); ++i)
      if ((*got)[i] != (*wanted)[i])
        return shape_mismatch("the crop does not lie within the bottom")
            .expected(to_string(*wanted) + " from offset " + to_string(offsets))
            .found(to_string(*from));
  return l.set_top(y);
}

Status tile(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("tile_param");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to repeat it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(p, "axis", 1, rank));
  ORKNN_TRY_ASSIGN(const int64_t count, p.get_int("tiles", 1));
  if (count < 1 || count > (1 << 24)) return invalid_model("'tiles' is out of range").found(std::to_string(count));
  std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
  repeats[static_cast<size_t>(axis)] = count;
  return l.set_top(l.emit("Tile", {l.bottom(), l.add_ints("repeats", repeats)}));
}

Status reverse(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to reverse it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(l.parameters("reverse_param"), "axis", 0, rank));
  return l.set_top(
      l.emit("Slice", {l.bottom(), l.add_ints("starts", {-1}), l.add_ints("ends", {std::numeric_limits<int64_t>::min()}),
                       l.add_ints("axes", {axis}), l.add_ints("steps", {-1})}));
}

Status shuffle_channel(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const int64_t group, l.parameters("shuffle_channel_param").get_int("group", 1));
  return l.set_top(group == 1 ? l.bottom() : l.emit("ShuffleChannel", {l.bottom()}, {{"group", group}}));
}

Status reorg(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("reorg_param");
  ORKNN_TRY_ASSIGN(const int64_t s, p.get_int("stride", 2));
  ORKNN_TRY_ASSIGN(const bool reverse, p.get_bool("reverse", false));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.bottom(), "to reorganize it"));
  if (dims.size() != 4 || s < 1 || s > 64 || dims[1] % (s * s) != 0 || (!reverse && (dims[2] % s != 0 || dims[3] % s != 0)))
    return shape_mismatch("the picture cannot be reorganized by " + std::to_string(s)).found(to_string(dims));
  const Dims out = reverse ? Dims{dims[0], dims[1] / (s * s), dims[2] * s, dims[3] * s}
                           : Dims{dims[0], dims[1] * s * s, dims[2] / s, dims[3] / s};
  return l.set_top(reorganize(l, l.bottom(), dims, s, reverse, out));
}

Status batch_reindex(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 2));
  return l.set_top(l.emit("Gather", {l.bottom(), l.cast(l.reshape(l.bottom(1), {-1}), DType::Int64)}, {{"axis", int64_t{0}}}));
}

// Keeps the items the last bottom marks with a number other than 0.
Status filter(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 1000));
  const size_t count = l.bottom_count() - 1;
  const TensorId keep = l.cast(l.reshape(l.bottom(count), {-1}), DType::Bool);
  for (size_t i = 0; i < count; ++i) ORKNN_TRY(l.set_top(l.emit("Compress", {l.bottom(i), keep}, {{"axis", int64_t{0}}}), i));
  return {};
}

// The padding layers of V0 networks, which later became a parameter of what follows.
Status padding(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const int64_t pad, l.parameters("padding_param").get_int("pad", 1));
  if (pad < 0 || pad > (1 << 16)) return invalid_model("'pad' is out of range").found(std::to_string(pad));
  return l.set_top(l.emit("Pad", {l.bottom(), l.add_ints("pads", {0, 0, pad, pad, 0, 0, pad, pad})}));
}
}  // namespace

std::span<const Row> shape_rows() {
  static constexpr Row kRows[] = {
      {"Concat", concat},   {"Slice", slice},
      {"Reshape", reshape}, {"Flatten", flatten},
      {"Permute", permute}, {"Transpose", transpose},
      {"Crop", crop},       {"Tile", tile},
      {"Reverse", reverse}, {"ShuffleChannel", shuffle_channel},
      {"Reorg", reorg},     {"BatchReindex", batch_reindex},
      {"Filter", filter},   {"Padding", padding},
  };
  return kRows;
}

}  // namespace orknn::importer::caffe
