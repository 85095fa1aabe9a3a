// Layers that move values: Concat, Slice, Reshape, Flatten, Permute, Crop, Tile and others of their kind.
#include "import/caffe/layer.h"
#include "import/lower/reorganize.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
constexpr int64_t kMostAxes = 1000;  // that a field may count

// Old descriptions call the axis `concat_dim` or `slice_dim`.
Result<int64_t> axis_or_dim(const Layer& l, TensorId x, const Parameters& p, const char* old_name) {
  return l.axis_of(x, p, p.has("axis") || !p.has(old_name) ? "axis" : old_name, 1);
}

Result<TensorId> concat(Layer& l, Operands bottoms) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_or_dim(l, bottoms[0], l.parameters("concat_param"), "concat_dim"));
  return l.concat({bottoms.begin(), bottoms.end()}, axis);
}

Result<std::vector<TensorId>> slice(Layer& l, TensorId x) {
  const Parameters p = l.parameters("slice_param");
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_or_dim(l, x, p, "slice_dim"));
  ORKNN_TRY_ASSIGN(const int64_t extent, l.extent(x, axis, "to divide it"));
  std::vector<int64_t> points = p.integers("slice_point");
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
  return l.split(x, axis, sizes);
}

// The axes from `begin` up to `end` replaced by `shape`, in which 0 keeps an extent and -1 takes what is left.
Result<TensorId> with_axes_replaced(Layer& l, TensorId x, int64_t begin, int64_t end, const std::vector<int64_t>& shape) {
  const int64_t rank = *l.rank_of(x);
  std::vector<int64_t> target = joined(std::vector<int64_t>(static_cast<size_t>(begin), 0), shape);
  for (int64_t i = end; i < rank; ++i) {  // kept in its place when nothing moved, else it has to be known
    int64_t extent = 0;
    if (i != static_cast<int64_t>(target.size())) {
      ORKNN_TRY_ASSIGN(extent, l.extent(x, i, "to reshape it"));
    }
    target.push_back(extent);
  }
  for (size_t i = 0; i < target.size(); ++i)
    if (target[i] == 0 && static_cast<int64_t>(i) >= rank)
      return invalid_model("extent " + std::to_string(i) + " cannot be kept")
          .expected("at most " + std::to_string(rank) + " axes");
  return l.emit("Reshape", {x, l.add_ints("shape", target)});
}

// `shape` replaces the axes from `axis` on, `num_axes` of them.
Result<TensorId> reshape(Layer& l, TensorId x) {
  const Parameters p = l.parameters("reshape_param");
  const int64_t first = p.integer("axis", 0, -kMostAxes, kMostAxes), count = p.integer("num_axes", -1, -1, kMostAxes);
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to reshape it"));
  const int64_t begin = first < 0 ? rank + first + 1 : first, end = count < 0 ? rank : begin + count;
  if (begin < 0 || begin > rank || end > rank)
    return invalid_model("the axes to replace do not exist")
        .expected("within " + std::to_string(rank) + " axes")
        .found("axis " + std::to_string(first) + ", num_axes " + std::to_string(count));
  return with_axes_replaced(l, x, begin, end, p.message("shape").integers("dim"));
}

Result<TensorId> flatten(Layer& l, TensorId x) {
  const Parameters p = l.parameters("flatten_param");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to flatten it"));
  if (rank < 2) return x;
  ORKNN_TRY_ASSIGN(const int64_t begin, l.axis_of(x, p, "axis", 1));
  ORKNN_TRY_ASSIGN(const int64_t end, l.axis_of(x, p, "end_axis", -1));
  if (begin == 1 && end == rank - 1) return l.emit("Flatten", {x}, {{"axis", int64_t{1}}});
  if (end < begin) return invalid_model("'end_axis' is before 'axis'").found(std::to_string(end));
  return with_axes_replaced(l, x, begin, end + 1, {-1});
}

// Axes the order does not name follow in their own order.
Result<TensorId> permuted(Layer& l, TensorId x, std::vector<int64_t> order) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to permute it"));
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
  return l.transpose(x, std::move(order));
}

Result<TensorId> permute(Layer& l, TensorId x) { return permuted(l, x, l.parameters("permute_param").integers("order")); }

Result<TensorId> transpose(Layer& l, TensorId x) {
  const std::vector<int64_t> order = l.parameters("transpose_param").integers("dim");
  return order.empty() ? permute(l, x) : permuted(l, x, order);
}

// Cut to the size of the second bottom, from `axis` on.
Result<TensorId> crop(Layer& l, TensorId x, TensorId like) {
  const Parameters p = l.parameters("crop_param");
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(x, p, "axis", 2));
  const std::vector<int64_t> axes = axes_between(axis, *l.rank_of(x));
  std::vector<int64_t> offsets = p.integers("offset");
  if (offsets.empty()) offsets = {0};
  if (offsets.size() == 1) offsets.assign(axes.size(), offsets[0]);
  if (offsets.size() != axes.size())
    return invalid_model("the number of 'offset' does not fit")
        .expected("1 or " + std::to_string(axes.size()))
        .found(std::to_string(offsets.size()));
  const TensorId size = l.emit("Shape", {like}, {{"start", axis}});
  const TensorId starts = l.add_ints("offsets", offsets);
  const TensorId y = l.emit("Slice", {x, starts, l.add(size, starts), l.add_ints("axes", axes)});
  // A slice that reaches beyond the end would silently be smaller.
  if (const auto got = l.dims_of(y), from = l.dims_of(x), wanted = l.dims_of(like); got && from && wanted)
    for (size_t i = static_cast<size_t>(axis); i < from->size() && i < wanted->size(); ++i)
      if ((*got)[i] != (*wanted)[i])
        return shape_mismatch("the crop is not inside the bottom")
            .expected(to_string(*wanted) + " from offset " + to_string(offsets))
            .found(to_string(*from));
  return y;
}

Result<TensorId> tile(Layer& l, TensorId x) {
  const Parameters p = l.parameters("tile_param");
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(x, p, "axis", 1));
  std::vector<int64_t> repeats(static_cast<size_t>(*l.rank_of(x)), 1);
  repeats[static_cast<size_t>(axis)] = p.integer("tiles", 1, 1, 1 << 24);
  return l.emit("Tile", {x, l.add_ints("repeats", repeats)});
}

Result<TensorId> reverse(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(x, l.parameters("reverse_param"), "axis", 0));
  return l.reverse(x, {axis});
}

TensorId shuffle_channel(Layer& l, TensorId x) {
  const int64_t group = l.parameters("shuffle_channel_param").integer("group", 1);
  return group == 1 ? x : l.emit("ShuffleChannel", {x}, {{"group", group}});
}

Result<TensorId> reorg(Layer& l, TensorId x) {
  const Parameters p = l.parameters("reorg_param");
  return reorganize_pixels(l, x, p.integer("stride", 2, 1, kMaxReorgStride), p.flag("reverse", false));
}

TensorId batch_reindex(Layer& l, TensorId x, TensorId items) {
  return l.gather(x, l.cast(l.reshape(items, {-1}), DType::Int64), 0);
}

// Keeps the items the last bottom marks with a number other than 0.
std::vector<TensorId> filter(Layer& l, Operands bottoms) {
  const TensorId keep = l.cast(l.reshape(bottoms.back(), {-1}), DType::Bool);
  std::vector<TensorId> kept;
  for (TensorId x : bottoms.first(bottoms.size() - 1)) kept.push_back(l.emit("Compress", {x, keep}, {{"axis", int64_t{0}}}));
  return kept;
}

// The padding layers of V0 networks, which later became a parameter of what follows.
TensorId padding(Layer& l, TensorId x) {
  const int64_t pad = l.parameters("padding_param").integer("pad", 1, 0, 1 << 16);
  return l.emit("Pad", {x, l.add_ints("pads", {0, 0, pad, pad, 0, 0, pad, pad})});
}
}  // namespace

std::span<const Row> shape_rows() {
  static const Row rows[] = {
      {"Concat", concat, kAtLeastOne},
      {"Slice", slice, kOne},
      {"Reshape", reshape, kOne},
      {"Flatten", flatten, kOne},
      {"Permute", permute, kOne},
      {"Transpose", transpose, kOne},
      {"Crop", crop, kTwo},
      {"Tile", tile, kOne},
      {"Reverse", reverse, kOne},
      {"ShuffleChannel", shuffle_channel, kOne},
      {"Reorg", reorg, kOne},
      {"BatchReindex", batch_reindex, kTwo},
      {"Padding", padding, kOne},
      {"Filter", filter, {.inputs = {.least = 2}}},
  };
  return rows;
}

}  // namespace orknn::importer::caffe
