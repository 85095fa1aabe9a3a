// Operators that put tensors together, repeat, pad, turn and shuffle them.
#include <numeric>

#include "import/pytorch/ops.h"
#include "import/pytorch/views.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

// The tensors of a list in their common type.
Result<std::vector<TensorId>> tensors_of(Call& c, std::string_view name) {
  const auto& items = c.items(name);
  if (items.empty()) return invalid_model("a list of tensors is empty");
  for (const Value& v : items)
    if (!v.is_tensor()) return invalid_model("a list of tensors holds a " + describe(v));
  ORKNN_TRY_ASSIGN(const DType t, c.common_type(std::span<const Value>(items)));
  std::vector<TensorId> ids;
  for (const Value& v : items) ids.push_back(c.cast(v.tensor().id, t));
  return ids;
}

Result<Value> cat(Call& c) {
  ORKNN_TRY_ASSIGN(auto ids, tensors_of(c, "tensors"));
  // Old code starts a concatenation with an empty vector, which counts for nothing.
  std::vector<TensorId> parts;
  int64_t rank = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Dims& dims = c.items("tensors")[i].tensor().dims;
    if (dims == Dims{0}) continue;
    parts.push_back(ids[i]);
    rank = std::max(rank, static_cast<int64_t>(dims.size()));
  }
  if (parts.empty()) return c.made(ids[0]);
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", rank));
  return c.made(c.concat(std::move(parts), static_cast<int64_t>(axis)));
}

Result<Value> stacked(Call& c, std::vector<TensorId> ids, int64_t axis) {
  for (TensorId& id : ids) id = c.unsqueeze(id, {axis});
  return c.made(c.concat(std::move(ids), axis));
}
Result<Value> stack(Call& c) {
  ORKNN_TRY_ASSIGN(auto ids, tensors_of(c, "tensors"));
  ORKNN_TRY_ASSIGN(const size_t axis,
                   c.axis_of(c.integer("dim"), static_cast<int64_t>(c.items("tensors")[0].tensor().dims.size()) + 1));
  return stacked(c, std::move(ids), static_cast<int64_t>(axis));
}
// hstack, vstack, dstack, column_stack: bring every tensor to `rank` axes, then join along one.
Result<Value> joined_at_rank(Call& c, size_t rank, int64_t axis, bool grow_behind) {
  ORKNN_TRY_ASSIGN(auto ids, tensors_of(c, "tensors"));
  for (size_t i = 0; i < ids.size(); ++i) {
    Dims dims = c.items("tensors")[i].tensor().dims;
    while (dims.size() < rank) {
      const bool behind = grow_behind && (dims.size() == 1 || dims.size() == 2) && rank - dims.size() == 1;
      dims.insert(behind ? dims.end() : dims.begin(), 1);
    }
    ids[i] = c.reshape(ids[i], dims);
  }
  return c.made(c.concat(std::move(ids), axis));
}
Result<Value> hstack(Call& c) {
  const auto& items = c.items("tensors");
  const bool vectors = !items.empty() && items[0].is_tensor() && items[0].tensor().dims.size() <= 1;
  return joined_at_rank(c, 1, vectors ? 0 : 1, false);
}
Result<Value> vstack(Call& c) { return joined_at_rank(c, 2, 0, false); }
Result<Value> dstack(Call& c) { return joined_at_rank(c, 3, 2, true); }
Result<Value> column_stack(Call& c) { return joined_at_rank(c, 2, 1, true); }

// --- repetition
Result<Value> repeat(Call& c) {
  const auto times = c.ints("repeats");
  if (static_cast<int64_t>(times.size()) < c.rank("self")) return invalid_model("repeat needs a number for every axis");
  for (int64_t n : times)
    if (n < 0) return invalid_model("a tensor is repeated less than never");
  Dims dims(times.size() - c.dims("self").size(), 1);
  dims.insert(dims.end(), c.dims("self").begin(), c.dims("self").end());
  const TensorId x = c.reshape(c.tensor("self"), dims);
  if (std::all_of(times.begin(), times.end(), [](int64_t n) { return n == 1; })) return c.made(x);
  return c.made(c.emit("Tile", {x, c.add_ints("repeats", times)}));
}
Result<Value> tile(Call& c) {
  auto times = c.ints("dims");
  if (static_cast<int64_t>(times.size()) < c.rank("self"))
    times.insert(times.begin(), static_cast<size_t>(c.rank("self")) - times.size(), 1);
  Dims dims(times.size() - c.dims("self").size(), 1);
  dims.insert(dims.end(), c.dims("self").begin(), c.dims("self").end());
  return c.made(c.emit("Tile", {c.reshape(c.tensor("self"), dims), c.add_ints("repeats", times)}));
}
// Each element several times in a row.
Result<Value> repeat_interleave(Call& c) {
  TensorId x = c.tensor("self");
  int64_t rank = c.rank("self");
  if (!c.has("dim")) {
    x = c.reshape(x, {-1});
    rank = 1;
  }
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis_of(c.integer_or("dim", 0), rank));
  const auto dims = c.dims_of(x);
  if (!dims || dims->empty()) return c.fail("a tensor without axes cannot be repeated");
  const int64_t extent = (*dims)[axis];
  std::vector<int64_t> times;
  if (c.value("repeats").is_tensor()) {
    ORKNN_TRY_ASSIGN(times, c.constant_ints("repeats", "to repeat elements"));
  } else {
    times = {c.integer("repeats")};
  }
  if (times.size() == 1) times.resize(static_cast<size_t>(std::min<int64_t>(extent, int64_t{1} << 24)), times[0]);
  if (static_cast<int64_t>(times.size()) != extent) return invalid_model("repeat_interleave needs a number for every element");
  std::vector<int64_t> positions;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] < 0 || times[i] > (int64_t{1} << 24) - static_cast<int64_t>(positions.size()))
      return c.fail("elements are repeated too often");
    positions.insert(positions.end(), static_cast<size_t>(times[i]), static_cast<int64_t>(i));
  }
  return c.made(c.gather(x, c.add_ints("positions", positions), static_cast<int64_t>(axis)));
}

// --- padding
// PyTorch lists pads from the last axis on, before and after in turn.
Result<Value> padded(Call& c, std::span<const int64_t> pads, const std::string& mode, const Value& value) {
  const int64_t rank = c.rank("self");
  if (pads.size() % 2 != 0 || static_cast<int64_t>(pads.size() / 2) > rank)
    return invalid_model("padding does not fit the tensor").found(ir::to_string(Dims(pads.begin(), pads.end())));
  std::vector<int64_t> ordered(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const size_t axis = static_cast<size_t>(rank) - 1 - i;
    for (const int64_t p : {pads[2 * i], pads[2 * i + 1]})
      if (p < -(int64_t{1} << 34) || p > (int64_t{1} << 34)) return invalid_model("padding is absurdly large");
    ordered[axis] = pads[2 * i];
    ordered[axis + static_cast<size_t>(rank)] = pads[2 * i + 1];
  }
  if (std::all_of(ordered.begin(), ordered.end(), [](int64_t p) { return p == 0; })) return c.copy_of(c.handle("self"));
  std::vector<TensorId> inputs{c.tensor("self"), c.add_ints("pads", ordered)};
  if (mode == "constant" && !value.is_none()) inputs.push_back(c.as(value, c.dtype("self")));
  return c.made(c.emit("Pad", std::move(inputs), {{"mode", mode}}));
}
Result<Value> constant_pad(Call& c) { return padded(c, c.ints("pad"), "constant", c.value("value")); }
template <OpName Mode>
Result<Value> pad_mode(Call& c) {
  return padded(c, c.ints("padding"), Mode.string(), Value());
}
Result<Value> pad(Call& c) {
  const std::string_view mode = c.text("mode");
  const std::string ours = mode == "constant"    ? "constant"
                           : mode == "reflect"   ? "reflect"
                           : mode == "replicate" ? "edge"
                           : mode == "circular"  ? "wrap"
                                                 : "";
  if (ours.empty()) return c.fail("padding mode '" + std::string(mode) + "' is not known");
  return padded(c, c.ints("pad"), ours, c.value("value"));
}

// --- turning
TensorId reversed(Call& c, TensorId x, int64_t axis, int64_t extent) { return c.slice(x, axis, -1, -extent - 1, -1); }
Result<Value> flipped(Call& c, std::span<const int64_t> axes) {
  TensorId x = c.tensor("self");
  for (int64_t axis : axes) x = reversed(c, x, axis, c.dims("self")[static_cast<size_t>(axis)]);
  return c.made(x);
}
Result<Value> flip(Call& c) {
  if (c.rank("self") == 0 || c.ints("dims").empty()) return c.copy_of(c.handle("self"));
  ORKNN_TRY_ASSIGN(const auto axes, c.axes("dims", c.rank("self")));
  return flipped(c, axes);
}
Result<Value> fliplr(Call& c) {
  if (c.rank("self") < 2) return invalid_model("fliplr needs two axes");
  return flipped(c, std::vector<int64_t>{1});
}
Result<Value> flipud(Call& c) {
  if (c.rank("self") < 1) return invalid_model("flipud needs an axis");
  return flipped(c, std::vector<int64_t>{0});
}
Result<Value> rot90(Call& c) {
  ORKNN_TRY_ASSIGN(const auto given, c.ints("dims", 2));
  ORKNN_TRY_ASSIGN(const size_t a, c.axis_of(given[0], c.rank("self")));
  ORKNN_TRY_ASSIGN(const size_t b, c.axis_of(given[1], c.rank("self")));
  if (a == b || c.rank("self") < 2) return invalid_model("rot90 needs two axes");
  const int64_t first = static_cast<int64_t>(a), second = static_cast<int64_t>(b), turns = ((c.integer("k") % 4) + 4) % 4;
  if (turns == 2) return flipped(c, std::vector<int64_t>{first, second});
  if (turns == 0) return c.copy_of(c.handle("self"));
  // Behind the exchange of axes the second has the extent of the first.
  const auto flip_of = [&](TensorId x, int64_t axis) { return reversed(c, x, axis, c.dims("self")[turns == 1 ? b : a]); };
  if (turns == 1) return c.made(c.swap_axes(flip_of(c.tensor("self"), second), first, second));
  return c.made(flip_of(c.swap_axes(c.tensor("self"), first, second), second));
}
Result<Value> roll(Call& c) {
  const auto shifts = c.ints("shifts"), given = c.ints("dims");
  TensorId x = c.tensor("self");
  Dims dims = c.dims("self");
  if (given.empty()) {
    if (shifts.size() != 1) return invalid_model("roll needs axes");
    x = c.reshape(x, {-1});
    dims = {ir::element_count(dims)};
  } else if (shifts.size() != given.size()) {
    return invalid_model("roll needs one shift per axis");
  }
  for (size_t i = 0; i < shifts.size(); ++i) {
    ORKNN_TRY_ASSIGN(const size_t axis, c.axis_of(given.empty() ? 0 : given[i], static_cast<int64_t>(dims.size())));
    if (dims.empty() || dims[axis] == 0) continue;
    const int64_t extent = dims[axis], shift = ((shifts[i] % extent) + extent) % extent, a = static_cast<int64_t>(axis);
    if (shift != 0) x = c.concat({c.slice(x, a, extent - shift, extent), c.slice(x, a, 0, extent - shift)}, a);
  }
  return c.made(given.empty() ? c.reshape(x, c.dims("self")) : x);
}

// --- channels and pixels
Result<Value> on_images(Call& c, TensorId x, const std::function<TensorId(TensorId)>& f) {
  // Axes in front of (C, H, W) count as one batch.
  const int64_t rank = c.rank("self");
  if (rank < 3) return invalid_model("the operator needs channels, rows and columns").found(ir::to_string(c.dims("self")));
  if (rank == 4) return c.made(f(x));
  const Dims& dims = c.dims("self");
  const TensorId y = f(c.reshape(
      x, {-1, dims[static_cast<size_t>(rank) - 3], dims[static_cast<size_t>(rank) - 2], dims[static_cast<size_t>(rank) - 1]}));
  const auto made = c.dims_of(y);
  if (!made) return c.made(y);
  Dims back(dims.begin(), dims.end() - 3);
  back.insert(back.end(), made->begin() + 1, made->end());
  return c.made(c.reshape(y, back));
}
Result<Value> pixel_shuffle(Call& c) {
  return on_images(c, c.tensor("self"), [&](TensorId x) {
    return c.emit("DepthToSpace", {x}, {{"blocksize", c.integer("factor")}, {"mode", std::string("CRD")}});
  });
}
// SpaceToDepth with the blocks behind the channels: PyTorch keeps the blocks of one channel together.
Result<Value> pixel_unshuffle(Call& c) {
  const int64_t rank = c.rank("self"), r = c.integer("factor");
  if (rank < 3 || r < 1) return invalid_model("pixel_unshuffle needs channels, rows and columns");
  const Dims& dims = c.dims("self");
  const int64_t channels = dims[static_cast<size_t>(rank) - 3], height = dims[static_cast<size_t>(rank) - 2],
                width = dims[static_cast<size_t>(rank) - 1];
  if (height % r != 0 || width % r != 0) return invalid_model("the image does not divide into blocks").found(ir::to_string(dims));
  return on_images(c, c.tensor("self"), [&](TensorId x) {
    const TensorId blocks = c.transpose(c.reshape(x, {-1, channels, height / r, r, width / r, r}), {0, 1, 3, 5, 2, 4});
    return c.reshape(blocks, {-1, channels * r * r, height / r, width / r});
  });
}
Result<Value> channel_shuffle(Call& c) {
  const int64_t groups = c.integer("groups");
  if (c.rank("self") < 3 || groups < 1 || c.dims("self")[1] % groups != 0)
    return invalid_model("the channels do not divide into groups").found(ir::to_string(c.dims("self")));
  if (c.rank("self") == 4) return c.made(c.emit("ShuffleChannel", {c.tensor("self")}, {{"group", groups}}));
  const Dims& dims = c.dims("self");
  Dims split = dims;
  split[1] = dims[1] / groups;
  split.insert(split.begin() + 1, groups);
  return c.made(c.reshape(c.swap_axes(c.reshape(c.tensor("self"), split), 1, 2), dims));
}

// --- triangles and grids
template <int Upper>
Result<Value> triangle(Call& c) {
  if (c.rank("self") < 2) return invalid_model("a triangle needs a matrix");
  const DType t = c.dtype("self");
  TensorId x = c.tensor("self");
  if (t == DType::Bool) x = c.cast(x, DType::Int32);
  return c.made(c.cast(c.emit("Trilu", {x, c.int_scalar(c.integer("diagonal"), DType::Int64)}, {{"upper", int64_t{Upper}}}), t));
}
Result<Value> meshgrid(Call& c) {
  const auto& items = c.items("tensors");
  Dims dims;
  for (const Value& v : items) {
    if (!v.is_tensor() || v.tensor().dims.size() > 1) return invalid_model("meshgrid works on vectors");
    dims.push_back(ir::element_count(v.tensor().dims));
  }
  const bool swap = c.has("indexing") && c.text("indexing") == "xy" && dims.size() >= 2;
  if (swap) std::swap(dims[0], dims[1]);
  std::vector<Value> grids;
  for (size_t i = 0; i < items.size(); ++i) {
    Dims shape(dims.size(), 1);
    shape[swap && i < 2 ? 1 - i : i] = ir::element_count(items[i].tensor().dims);
    ORKNN_TRY_ASSIGN(const Value grid, c.made(c.expand(c.reshape(items[i].tensor().id, shape), dims)));
    grids.push_back(grid);
  }
  return c.list(std::move(grids));
}
// A vector on the diagonal of a matrix, or the diagonal of a matrix.
TensorId on_diagonal(Call& c, TensorId x, int64_t extent, int64_t offset) {
  const int64_t size = extent + std::abs(offset);
  std::vector<int64_t> positions(static_cast<size_t>(size));
  // Row r holds element r (or r + offset) at column r + offset; the others are masked.
  for (int64_t r = 0; r < size; ++r)
    positions[static_cast<size_t>(r)] = std::clamp<int64_t>(offset < 0 ? r + offset : r, 0, std::max<int64_t>(extent - 1, 0));
  const TensorId rows = c.unsqueeze(c.gather(x, c.add_ints("rows", positions), -1), {-1});
  const TensorId eye = c.emit("EyeLike", {c.full(Dims{size, size}, 0, c.dtype_of(x))},
                              {{"k", offset}, {"dtype", static_cast<int64_t>(c.dtype_of(x))}});
  return c.mul(rows, eye);
}
Result<Value> diag_embed(Call& c) {
  if (c.rank("self") == 0 || c.integer("dim1") != -2 || c.integer("dim2") != -1)
    return c.fail("this form of diag_embed is not supported");
  const int64_t extent = c.dims("self").back();
  if (extent == 0 || extent > 65536 || c.integer("offset") > 65536 || c.integer("offset") < -65536)
    return c.fail("the diagonal has a strange length");
  return c.made(on_diagonal(c, c.tensor("self"), extent, c.integer("offset")));
}
Result<Value> diagflat(Call& c) {
  const TensorId x = c.reshape(c.tensor("self"), {-1});
  const auto dims = c.dims_of(x);
  const int64_t extent = dims ? (*dims)[0] : 0, offset = c.integer("offset");
  if (extent < 1 || extent > 65536 || offset > 65536 || offset < -65536) return c.fail("the diagonal has a strange length");
  return c.made(on_diagonal(c, x, extent, offset));
}
// Matrices along a diagonal, zeros around them.
Result<Value> block_diag(Call& c) {
  int64_t columns = 0, before = 0;
  std::vector<std::pair<TensorId, int64_t>> blocks;
  for (const Value& v : c.items("tensors")) {
    if (!v.is_tensor() || v.tensor().dims.size() > 2) return invalid_model("block_diag needs matrices").found(describe(v));
    const Dims& dims = v.tensor().dims;
    blocks.emplace_back(dims.size() == 2 ? v.tensor().id : c.reshape(v.tensor().id, {1, -1}), dims.empty() ? 1 : dims.back());
    columns += blocks.back().second;
  }
  std::vector<TensorId> rows;
  for (const auto& [block, width] : blocks) {
    rows.push_back(c.emit("Pad", {block, c.add_ints("pads", {0, before, 0, columns - before - width})}));
    before += width;
  }
  if (rows.empty()) return c.fail("block_diag without matrices");
  return c.made(c.concat(std::move(rows), 0));
}
// Every combination of one element of each vector.
Result<Value> cartesian_prod(Call& c) {
  const auto& vectors = c.items("tensors");
  Dims extents;
  for (const Value& v : vectors) {
    if (!v.is_tensor() || v.tensor().dims.size() != 1) return invalid_model("cartesian_prod needs vectors").found(describe(v));
    extents.push_back(v.tensor().dims[0]);
  }
  if (vectors.size() < 2 || !ir::checked_element_count(extents)) return c.fail("this form of cartesian_prod is not supported");
  std::vector<TensorId> columns;
  for (size_t i = 0; i < vectors.size(); ++i) {
    Dims shape(extents.size(), 1);
    shape[i] = extents[i];
    columns.push_back(c.reshape(c.expand(c.reshape(vectors[i].tensor().id, shape), extents), {-1, 1}));
  }
  return c.made(c.concat(std::move(columns), 1));
}
Result<Value> diag(Call& c) {
  const int64_t offset = c.integer("diagonal");
  if (offset > 65536 || offset < -65536) return c.fail("the diagonal lies outside of the matrix");
  if (c.rank("self") == 1) {
    const int64_t extent = c.dims("self")[0];
    if (extent == 0 || extent > 65536) return c.fail("the diagonal has a strange length");
    return c.made(on_diagonal(c, c.tensor("self"), extent, offset));
  }
  if (c.rank("self") != 2) return invalid_model("diag works on vectors and matrices");
  const int64_t rows = c.dims("self")[0], columns = c.dims("self")[1];
  std::vector<int64_t> positions;
  for (int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0);
       row < rows && column < columns && positions.size() < 65536; ++row, ++column)
    positions.push_back(row * columns + column);
  return c.made(c.gather(c.reshape(c.tensor("self"), {-1}), c.add_ints("diagonal", positions), 0));
}
}  // namespace

std::span<const Row> join_rows() {
  static constexpr Row kRows[] = {
      {"cat(Tensor[] tensors, int dim=0)", cat},
      {"concat(Tensor[] tensors, int dim=0)", cat},
      {"concatenate(Tensor[] tensors, int dim=0)", cat},
      {"stack(Tensor[] tensors, int dim=0)", stack},
      {"hstack(Tensor[] tensors)", hstack},
      {"vstack(Tensor[] tensors)", vstack},
      {"dstack(Tensor[] tensors)", dstack},
      {"row_stack(Tensor[] tensors)", vstack},
      {"column_stack(Tensor[] tensors)", column_stack},
      {"repeat(Tensor self, int[] repeats)", repeat},
      {"tile(Tensor self, int[] dims)", tile},
      {"repeat_interleave(Tensor self, operand repeats, int? dim=None, *, int? output_size=None)", repeat_interleave},
      {"constant_pad_nd(Tensor self, int[] pad, Scalar value=0)", constant_pad},
      {"pad(Tensor self, int[] pad, str mode=\"constant\", Scalar? value=None)", pad},
      {"_pad_enum(Tensor self, int[] pad, int mode, Scalar? value=None)",
       [](Call& c) {
         return padded(c, c.ints("pad"),
                       c.integer("mode") == 1   ? "reflect"
                       : c.integer("mode") == 2 ? "edge"
                       : c.integer("mode") == 3 ? "wrap"
                                                : "constant",
                       c.value("value"));
       }},
      {"reflection_pad1d(Tensor self, int[] padding)", pad_mode<"reflect">},
      {"reflection_pad2d(Tensor self, int[] padding)", pad_mode<"reflect">},
      {"reflection_pad3d(Tensor self, int[] padding)", pad_mode<"reflect">},
      {"replication_pad1d(Tensor self, int[] padding)", pad_mode<"edge">},
      {"replication_pad2d(Tensor self, int[] padding)", pad_mode<"edge">},
      {"replication_pad3d(Tensor self, int[] padding)", pad_mode<"edge">},
      {"_pad_circular(Tensor self, int[] padding)", pad_mode<"wrap">},
      {"flip(Tensor self, int[] dims)", flip},
      {"fliplr(Tensor self)", fliplr},
      {"flipud(Tensor self)", flipud},
      {"rot90(Tensor self, int k=1, int[] dims=[0, 1])", rot90},
      {"roll(Tensor self, int[] shifts, int[] dims=[])", roll},
      {"pixel_shuffle(Tensor self, int factor)", pixel_shuffle},
      {"pixel_unshuffle(Tensor self, int factor)", pixel_unshuffle},
      {"channel_shuffle(Tensor self, int groups)", channel_shuffle},
      {"native_channel_shuffle(Tensor self, int groups)", channel_shuffle},
      {"triu(Tensor self, int diagonal=0)", triangle<1>},
      {"tril(Tensor self, int diagonal=0)", triangle<0>},
      {"meshgrid(Tensor[] tensors, *, str? indexing=None)", meshgrid},
      {"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1)", diag_embed},
      {"diag(Tensor self, int diagonal=0)", diag},
      {"diagflat(Tensor self, int offset=0)", diagflat},
      {"block_diag(Tensor[] tensors)", block_diag},
      {"cartesian_prod(Tensor[] tensors)", cartesian_prod},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
