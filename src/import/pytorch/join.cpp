// Operators that put tensors together, repeat, pad, reverse and shuffle them.
#include <functional>

#include "import/lower/axes.h"
#include "import/lower/strided_slice.h"
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

// The tensors of a list in their common type.
Result<std::vector<TensorId>> tensors_of(Call& c) {
  if (c.items("tensors").empty()) return invalid_model("a list of tensors is empty");
  ORKNN_TRY_ASSIGN(std::vector<TensorId> ids, c.tensors("tensors"));
  ORKNN_TRY_ASSIGN(const DType t, c.common_type(c.items("tensors")));
  for (TensorId& id : ids) id = c.cast(id, t);
  return ids;
}
const Dims& dims_of_item(Call& c, size_t i) { return c.items("tensors")[i].tensor().dims; }

Result<TensorId> cat(Call& c) {
  ORKNN_TRY_ASSIGN(auto ids, tensors_of(c));
  // Old code starts a concatenation with an empty vector, which counts for nothing.
  std::vector<TensorId> parts;
  int64_t rank = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (dims_of_item(c, i) == Dims{0}) continue;
    parts.push_back(ids[i]);
    rank = std::max(rank, static_cast<int64_t>(dims_of_item(c, i).size()));
  }
  if (parts.empty()) return ids[0];
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(c.integer("dim"), rank));
  return c.concat(std::move(parts), axis);
}
Result<TensorId> stack(Call& c) {
  ORKNN_TRY_ASSIGN(auto ids, tensors_of(c));
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(c.integer("dim"), static_cast<int64_t>(dims_of_item(c, 0).size()) + 1));
  return c.stack(std::move(ids), axis);
}
// hstack, vstack, dstack, column_stack: bring every tensor to `rank` axes, then join along one.
Result<TensorId> joined_at_rank(Call& c, size_t rank, int64_t axis, bool grow_at_end) {
  ORKNN_TRY_ASSIGN(auto ids, tensors_of(c));
  for (size_t i = 0; i < ids.size(); ++i) {
    Dims dims = dims_of_item(c, i);
    while (dims.size() < rank) {
      const bool at_end = grow_at_end && !dims.empty() && rank - dims.size() == 1;
      dims.insert(at_end ? dims.end() : dims.begin(), 1);
    }
    ids[i] = c.reshape(ids[i], dims);
  }
  return c.concat(std::move(ids), axis);
}
template <size_t Rank, int64_t Axis, bool GrowAtEnd>
Result<TensorId> joined_along(Call& c) {
  return joined_at_rank(c, Rank, Axis, GrowAtEnd);
}
Result<TensorId> hstack(Call& c) {
  const auto& items = c.items("tensors");
  const bool vectors = !items.empty() && items[0].is_tensor() && items[0].tensor().dims.size() <= 1;
  return joined_at_rank(c, 1, vectors ? 0 : 1, false);
}

// --- repetition
// Lists that are shorter than the shape repeat the last axes only.
Result<TensorId> repeat(Call& c, TensorId x) {
  std::vector<int64_t> times = c.ints(c.op() == "repeat" ? "repeats" : "dims");
  if (static_cast<int64_t>(times.size()) < c.rank()) {
    if (c.op() == "repeat") return invalid_model("repeat needs a number for every axis");
    times.insert(times.begin(), static_cast<size_t>(c.rank()) - times.size(), 1);
  }
  for (int64_t n : times)
    if (n < 0) return invalid_model("a tensor is repeated a negative number of times");
  Dims dims(times.size() - c.dims().size(), 1);
  dims.insert(dims.end(), c.dims().begin(), c.dims().end());
  x = c.reshape(x, dims);
  if (std::ranges::all_of(times, [](int64_t n) { return n == 1; })) return x;
  return c.emit("Tile", {x, c.add_ints("repeats", times)});
}
// Each element several times in a row.
Result<TensorId> repeat_interleave(Call& c) {
  TensorId x = c.tensor("self");
  if (!c.has("dim")) x = c.reshape(x, {-1});
  const Dims dims = c.has("dim") ? c.dims() : Dims{ir::element_count(c.dims())};
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(c.integer_or("dim", 0), static_cast<int64_t>(dims.size())));
  if (dims.empty()) return unsupported("a tensor without axes cannot be repeated");
  const int64_t extent = dims[axis];
  std::vector<int64_t> times = c.value("repeats").is_tensor() ? std::vector<int64_t>{} : c.ints("repeats");
  if (times.empty()) {
    ORKNN_TRY_ASSIGN(times, c.need_ints(c.tensor("repeats"), "to repeat elements"));
  }
  if (times.size() == 1) times.resize(static_cast<size_t>(std::min<int64_t>(extent, int64_t{1} << 24)), times[0]);
  if (static_cast<int64_t>(times.size()) != extent) return invalid_model("repeat_interleave needs a number for every element");
  std::vector<int64_t> positions;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] < 0 || times[i] > (int64_t{1} << 24) - static_cast<int64_t>(positions.size()))
      return unsupported("elements are repeated too often");
    positions.insert(positions.end(), static_cast<size_t>(times[i]), static_cast<int64_t>(i));
  }
  return c.gather(x, c.add_ints("positions", positions), axis);
}

// --- padding
// PyTorch lists pads from the last axis on, before and after each axis.
Output padded(Call& c, std::span<const int64_t> pads, const std::string& mode, const Value& value) {
  const int64_t rank = c.rank();
  if (pads.size() % 2 != 0 || static_cast<int64_t>(pads.size() / 2) > rank)
    return invalid_model("padding does not fit the tensor").found(ir::to_string(Dims(pads.begin(), pads.end())));
  std::vector<int64_t> ordered(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] < -(int64_t{1} << 34) || pads[i] > (int64_t{1} << 34)) return invalid_model("the padding is too large");
    ordered[rank - 1 - static_cast<int64_t>(i / 2) + (i % 2 == 0 ? 0 : rank)] = pads[i];
  }
  if (std::ranges::all_of(ordered, [](int64_t p) { return p == 0; })) return c.copy_of();
  std::vector<TensorId> inputs{c.tensor("self"), c.add_ints("pads", ordered)};
  if (mode == "constant" && !value.is_none()) inputs.push_back(c.as(value, c.dtype()));
  return c.emit("Pad", std::move(inputs), {{"mode", mode}});
}
Output constant_pad(Call& c) { return padded(c, c.ints("pad"), "constant", c.value("value")); }
template <OpName Mode>
Output pad_mode(Call& c) {
  return padded(c, c.ints("padding"), Mode.string(), Value());
}
// By name, or by the number that exported programs have for it.
Output pad(Call& c) {
  static constexpr const char* kModes[][2] = {
      {"constant", "constant"}, {"reflect", "reflect"}, {"replicate", "edge"}, {"circular", "wrap"}};
  const Value& given = c.value("mode");
  for (int64_t i = 0; i < 4; ++i)
    if (given.is_number() ? given.integer() == i : given.text() == kModes[i][0])
      return padded(c, c.ints("pad"), kModes[i][1], c.value("value"));
  if (given.is_number()) return padded(c, c.ints("pad"), "constant", c.value("value"));
  return unsupported("padding mode '" + given.text() + "' is not known");
}

// --- reversal
Output flip(Call& c) {
  if (c.rank() == 0 || c.ints("dims").empty()) return c.copy_of();
  ORKNN_TRY_ASSIGN(const auto axes, c.axes("dims"));
  return c.reverse(c.tensor("self"), axes);
}
template <int64_t Axis>
Result<TensorId> flipped(Call& c, TensorId x) {
  if (c.rank() <= Axis) return invalid_model(Axis == 0 ? "flipud needs an axis" : "fliplr needs two axes");
  return c.reverse(x, {Axis});
}
Output rot90(Call& c) {
  ORKNN_TRY_ASSIGN(const auto given, c.ints("dims", 2));
  ORKNN_TRY_ASSIGN(const int64_t a, c.axis_of(given[0], c.rank()));
  ORKNN_TRY_ASSIGN(const int64_t b, c.axis_of(given[1], c.rank()));
  if (a == b || c.rank() < 2) return invalid_model("rot90 needs two axes");
  const TensorId x = c.tensor("self");
  switch (((c.integer("k") % 4) + 4) % 4) {
    case 0: return c.copy_of();
    case 1: return c.swap_axes(c.reverse(x, {b}), a, b);
    case 2: return c.reverse(x, {a, b});
    default: return c.reverse(c.swap_axes(x, a, b), {b});
  }
}
Result<TensorId> rolled(Call& c, TensorId x) {
  if (c.rank() == 0) return x;
  return roll(c, x, c.ints("shifts"), c.ints("dims"));
}

// --- channels and pixels
// `f` on [batch, channels, height, width]: all axes before these count as one batch.
Result<TensorId> on_images(Call& c, const std::function<TensorId(TensorId)>& f) {
  const Dims& dims = c.dims();
  if (dims.size() < 3) return invalid_model("the operator needs channels, rows and columns").found(ir::to_string(dims));
  const TensorId x = c.tensor("self");
  if (dims.size() == 4) return f(x);
  const auto image = dims.end() - 3;
  const TensorId y = f(c.reshape(x, {-1, image[0], image[1], image[2]}));
  const auto made = c.dims_of(y);
  if (!made) return y;
  Dims back(dims.begin(), image);
  back.insert(back.end(), made->begin() + 1, made->end());
  return c.reshape(y, back);
}
Result<TensorId> pixel_shuffle(Call& c) {
  return on_images(c, [&](TensorId x) {
    return c.emit("DepthToSpace", {x}, {{"blocksize", c.integer("factor")}, {"mode", std::string("CRD")}});
  });
}
// SpaceToDepth with the blocks after the channels: PyTorch keeps the blocks of one channel together.
Result<TensorId> pixel_unshuffle(Call& c) {
  const int64_t r = c.integer("factor");
  const Dims& dims = c.dims();
  if (dims.size() < 3 || r < 1) return invalid_model("pixel_unshuffle needs channels, rows and columns");
  const int64_t channels = dims.end()[-3], height = dims.end()[-2], width = dims.end()[-1];
  if (height % r != 0 || width % r != 0) return invalid_model("the image does not divide into blocks").found(ir::to_string(dims));
  return on_images(c, [&](TensorId x) {
    const TensorId blocks = c.transpose(c.reshape(x, {-1, channels, height / r, r, width / r, r}), {0, 1, 3, 5, 2, 4});
    return c.reshape(blocks, {-1, channels * r * r, height / r, width / r});
  });
}
Result<TensorId> channel_shuffle(Call& c, TensorId x) {
  const int64_t groups = c.integer("groups");
  const Dims& dims = c.dims();
  if (dims.size() < 3 || groups < 1 || dims[1] % groups != 0)
    return invalid_model("the channels do not divide into groups").found(ir::to_string(dims));
  if (dims.size() == 4) return c.emit("ShuffleChannel", {x}, {{"group", groups}});
  Dims split = dims;
  split[1] = dims[1] / groups;
  split.insert(split.begin() + 1, groups);
  return c.reshape(c.swap_axes(c.reshape(x, split), 1, 2), dims);
}

// --- triangles, diagonals and grids
template <int64_t Upper>
Result<TensorId> triangle(Call& c, TensorId x) {
  if (c.rank() < 2) return invalid_model("a triangle needs a matrix");
  const DType t = c.dtype();
  if (t == DType::Bool) x = c.cast(x, DType::Int32);
  return c.cast(c.emit("Trilu", {x, c.int_scalar(c.integer("diagonal"))}, {{"upper", Upper}}), t);
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
    ORKNN_TRY_ASSIGN(const Value grid, c.made(along_axis_of_grid(c, items[i].tensor().id, swap && i < 2 ? 1 - i : i, dims)));
    grids.push_back(grid);
  }
  return c.list(std::move(grids));
}
// Every combination of one element of each vector.
Result<TensorId> cartesian_prod(Call& c) {
  const auto& vectors = c.items("tensors");
  Dims extents;
  for (const Value& v : vectors) {
    if (!v.is_tensor() || v.tensor().dims.size() != 1) return invalid_model("cartesian_prod needs vectors").found(describe(v));
    extents.push_back(v.tensor().dims[0]);
  }
  if (vectors.size() < 2 || !ir::checked_element_count(extents))
    return unsupported("this form of cartesian_prod is not supported");
  std::vector<TensorId> columns;
  for (size_t i = 0; i < vectors.size(); ++i)
    columns.push_back(c.reshape(along_axis_of_grid(c, vectors[i].tensor().id, i, extents), {-1, 1}));
  return c.concat(std::move(columns), 1);
}
// The last axis on the diagonal of a matrix. Row r holds element r (or r + offset) at column r + offset; the others are masked.
Result<TensorId> on_diagonal(Call& c, TensorId x, int64_t extent, int64_t offset) {
  if (extent < 1 || extent > 65536 || offset > 65536 || offset < -65536)
    return unsupported("the length or the offset of the diagonal is out of range");
  const int64_t size = extent + std::abs(offset);
  std::vector<int64_t> positions;
  for (int64_t r = 0; r < size; ++r) positions.push_back(std::clamp<int64_t>(offset < 0 ? r + offset : r, 0, extent - 1));
  const TensorId rows = c.unsqueeze(c.gather(x, c.add_ints("rows", positions), -1), {-1});
  const TensorId eye = c.emit("EyeLike", {c.full(Dims{size, size}, 0, c.dtype_of(x))},
                              {{"k", offset}, {"dtype", static_cast<int64_t>(c.dtype_of(x))}});
  return c.mul(rows, eye);
}
Result<TensorId> diag_embed(Call& c, TensorId x) {
  if (c.rank() == 0 || c.integer("dim1") != -2 || c.integer("dim2") != -1)
    return unsupported("this form of diag_embed is not supported");
  return on_diagonal(c, x, c.dims().back(), c.integer("offset"));
}
Result<TensorId> diagflat(Call& c, TensorId x) {
  return on_diagonal(c, c.reshape(x, {-1}), ir::element_count(c.dims()), c.integer("offset"));
}
Result<TensorId> diag(Call& c, TensorId x) {
  const int64_t offset = c.integer("diagonal");
  if (offset > 65536 || offset < -65536) return unsupported("the diagonal is outside the matrix");
  if (c.rank() == 1) return on_diagonal(c, x, c.dims()[0], offset);
  if (c.rank() != 2) return invalid_model("diag works on vectors and matrices");
  ORKNN_TRY_ASSIGN(const auto positions, diagonal_positions(c.dims()[0], c.dims()[1], offset));
  return c.gather(c.reshape(x, {-1}), c.add_ints("diagonal", positions), 0);
}
// Matrices along a diagonal, zeros around them.
Result<TensorId> block_diag(Call& c) {
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
  if (rows.empty()) return unsupported("block_diag has no matrices");
  return c.concat(std::move(rows), 0);
}
}  // namespace

std::span<const Row> join_rows() {
  static const Row rows[] = {
      {"cat|concat|concatenate(Tensor[] tensors, int dim=0)", cat},
      {"stack(Tensor[] tensors, int dim=0)", stack},
      {"hstack(Tensor[] tensors)", hstack},
      {"vstack|row_stack(Tensor[] tensors)", joined_along<2, 0, false>},
      {"dstack(Tensor[] tensors)", joined_along<3, 2, true>},
      {"column_stack(Tensor[] tensors)", joined_along<2, 1, true>},
      {"repeat(Tensor self, int[] repeats)", repeat},
      {"tile(Tensor self, int[] dims)", repeat},
      {"repeat_interleave(Tensor self, operand repeats, int? dim=None, *, int? output_size=None)", repeat_interleave},
      {"constant_pad_nd(Tensor self, int[] pad, Scalar value=0)", constant_pad},
      {"pad(Tensor self, int[] pad, str mode=\"constant\", Scalar? value=None)", pad},
      {"_pad_enum(Tensor self, int[] pad, int mode, Scalar? value=None)", pad},
      {"reflection_pad1d|reflection_pad2d|reflection_pad3d(Tensor self, int[] padding)", pad_mode<"reflect">},
      {"replication_pad1d|replication_pad2d|replication_pad3d(Tensor self, int[] padding)", pad_mode<"edge">},
      {"_pad_circular(Tensor self, int[] padding)", pad_mode<"wrap">},
      {"flip(Tensor self, int[] dims)", flip},
      {"fliplr(Tensor self)", flipped<1>},
      {"flipud(Tensor self)", flipped<0>},
      {"rot90(Tensor self, int k=1, int[] dims=[0, 1])", rot90},
      {"roll(Tensor self, int[] shifts, int[] dims=[])", rolled},
      {"pixel_shuffle(Tensor self, int factor)", pixel_shuffle},
      {"pixel_unshuffle(Tensor self, int factor)", pixel_unshuffle},
      {"channel_shuffle|native_channel_shuffle(Tensor self, int groups)", channel_shuffle},
      {"triu(Tensor self, int diagonal=0)", triangle<1>},
      {"tril(Tensor self, int diagonal=0)", triangle<0>},
      {"meshgrid(Tensor[] tensors, *, str? indexing=None)", meshgrid},
      {"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1)", diag_embed},
      {"diag(Tensor self, int diagonal=0)", diag},
      {"diagflat(Tensor self, int offset=0)", diagflat},
      {"block_diag(Tensor[] tensors)", block_diag},
      {"cartesian_prod(Tensor[] tensors)", cartesian_prod},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
