// Writes updates into a copy of a tensor: by element index, by index tuple, or at a running position of a cache.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

enum class Reduction { None, Add, Mul, Max, Min };

Result<Reduction> reduction_of(const NodeReader& c) {
  const std::string& name = c.get_string("reduction");
  if (name == "none") return Reduction::None;
  if (name == "add") return Reduction::Add;
  if (name == "mul") return Reduction::Mul;
  if (name == "max") return Reduction::Max;
  if (name == "min") return Reduction::Min;
  return unsupported("unknown reduction").expected("none, add, mul, max or min").found(name);
}

// Integers wrap as in NumPy.
template <class T>
T reduced(Reduction reduction, T old, T update) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (reduction) {
    case Reduction::None: return update;
    case Reduction::Add: return static_cast<T>(static_cast<Wide>(old) + static_cast<Wide>(update));
    case Reduction::Mul: return static_cast<T>(static_cast<Wide>(old) * static_cast<Wide>(update));
    case Reduction::Max: return update > old || update != update ? update : old;
    case Reduction::Min: return update < old || update != update ? update : old;
  }
  return update;
}

// Combines `count` elements into those at `to`. Half types arrive widened, so the two narrow ones never do arithmetic here.
template <class T>
void combine(Reduction reduction, T* to, const T* updates, int64_t count) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    std::copy(updates, updates + count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = reduced(reduction, to[i], updates[i]);
  }
}

Status same_types(const InferContext& c) {
  if (c.dtype(2) == c.dtype(0)) return {};
  return invalid_model("updates must have the type of the data")
      .expected(std::string(dtype_name(c.dtype(0))))
      .found(std::string(dtype_name(c.dtype(2))));
}

Status infer_elements(InferContext& c) {
  ORKNN_TRY(reduction_of(c).status());
  ORKNN_TRY(require_integer(c, 1, "indices"));
  ORKNN_TRY(same_types(c));
  const Shape *x = c.shape(0), *indices = c.shape(1), *updates = c.shape(2);
  if (x && indices && x->size() != indices->size())
    return shape_mismatch("data and indices must have the same rank").expected(to_string(*x)).found(to_string(*indices));
  if (x) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
    if (indices) ORKNN_TRY(check_other_axes(*x, *indices, static_cast<size_t>(axis)));
    ORKNN_TRY(require_indices(c, 1, "index", (*x)[static_cast<size_t>(axis)]));
  }
  if (indices && updates && is_static(*indices) && is_static(*updates) && *indices != *updates)
    return shape_mismatch("indices and updates must have the same shape")
        .expected(to_string(*indices))
        .found(to_string(*updates));
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

Status run_elements(RunContext& c) {
  const TensorView x = c.input(0), indices = c.input(1), updates = c.input(2);
  ORKNN_TRY_ASSIGN(const Reduction reduction, reduction_of(c));
  ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(c.get_int("axis"), x.rank()));
  const auto axis = static_cast<size_t>(normalized);
  if (indices.rank() != x.rank() || indices.count() != updates.count())
    return shape_mismatch("data, indices and updates do not fit together")
        .expected(to_string(x.dims))
        .found(to_string(indices.dims) + " and " + to_string(updates.dims));
  ORKNN_TRY(check_other_axes(x.dims, indices.dims, axis));
  ScratchDims places = scratch_ints(indices);
  for (int64_t& place : places) {
    ORKNN_TRY_ASSIGN(place, checked_index(place, x.dims[axis]));
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  std::memcpy(y.data, x.data, x.bytes());
  const ScratchDims strides = scratch_strides(x.dims);
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    for (size_t n = 0; n < places.size(); ++n) {
      int64_t rest = static_cast<int64_t>(n), at = places[n] * strides[axis];
      for (size_t i = indices.dims.size(); i-- > 0; rest /= indices.dims[i])
        if (i != axis) at += rest % indices.dims[i] * strides[i];
      combine(reduction, y.as<T>() + at, updates.as<T>() + n, 1);
    }
  });
  return {};
}

template <class Extents>
Status check_tuples(const Extents& x, const Extents& indices, const Extents& updates, int64_t tuple) {
  if (tuple < 0 || tuple > static_cast<int64_t>(x.size()))
    return shape_mismatch("an index tuple addresses too many axes")
        .expected("at most " + std::to_string(x.size()))
        .found(std::to_string(tuple));
  Extents wanted(indices.begin(), indices.end() - 1);
  wanted.insert(wanted.end(), x.begin() + tuple, x.end());
  bool same = wanted.size() == updates.size();
  for (size_t i = 0; same && i < wanted.size(); ++i) {
    if constexpr (std::is_same_v<Extents, Shape>)
      same = !wanted[i].is_known() || !updates[i].is_known() || wanted[i] == updates[i];
    else
      same = wanted[i] == updates[i];
  }
  return same ? Status() : shape_mismatch("updates do not fit the indices").expected(to_string(wanted)).found(to_string(updates));
}

Status infer_nd(InferContext& c) {
  ORKNN_TRY(reduction_of(c).status());
  ORKNN_TRY(require_integer(c, 1, "indices"));
  ORKNN_TRY(same_types(c));
  const Shape *x = c.shape(0), *indices = c.shape(1), *updates = c.shape(2);
  if (indices && indices->empty()) return shape_mismatch("indices need at least one axis");
  if (x && indices && updates && indices->back().is_known()) {
    const int64_t tuple = indices->back().value();
    ORKNN_TRY(check_tuples(*x, *indices, *updates, tuple));
    ORKNN_TRY(require_index_tuples(c, 1, "index", std::span(*x).first(static_cast<size_t>(tuple))));
  }
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

Status run_nd(RunContext& c) {
  const TensorView x = c.input(0), indices = c.input(1), updates = c.input(2);
  ORKNN_TRY_ASSIGN(const Reduction reduction, reduction_of(c));
  const auto width = static_cast<size_t>(indices.dims.back());
  ORKNN_TRY(check_tuples(scratch_dims(x.dims), scratch_dims(indices.dims), scratch_dims(updates.dims), indices.dims.back()));
  const ScratchDims strides = scratch_strides(x.dims);
  const int64_t tuples = extent_product(indices.dims, 0, indices.dims.size() - 1);
  const ScratchDims places = scratch_ints(indices);
  ScratchDims offsets;
  offsets.reserve(static_cast<size_t>(tuples));
  for (int64_t n = 0; n < tuples; ++n) {
    int64_t at = 0;
    for (size_t k = 0; k < width; ++k) {
      ORKNN_TRY_ASSIGN(const int64_t index, checked_index(places[static_cast<size_t>(n) * width + k], x.dims[k]));
      at += index * strides[k];
    }
    offsets.push_back(at);
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  std::memcpy(y.data, x.data, x.bytes());
  const int64_t run = extent_product(x.dims, width, x.dims.size());
  visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) {
    for (size_t n = 0; n < offsets.size(); ++n)
      combine(reduction, y.as<T>() + offsets[n], updates.as<T>() + static_cast<int64_t>(n) * run, run);
  });
  return {};
}

// Axis of a cache that updates are written along; the first axis is the batch.
Result<size_t> cache_axis(const NodeReader& c, int64_t rank) {
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), rank));
  if (axis == 0) return invalid_model("the batch axis cannot be written along");
  return static_cast<size_t>(axis);
}

Status infer_cache(InferContext& c) {
  ORKNN_TRY(require_integer(c, 2, "write indices"));
  const std::string& mode = c.get_string("mode");
  if (mode != "linear" && mode != "circular") return unsupported("unknown mode").expected("linear or circular").found(mode);
  if (c.dtype(1) != c.dtype(0)) return invalid_model("the update must have the type of the cache");
  const Shape *x = c.shape(0), *update = c.shape(1), *places = c.shape(2);
  if (x) {
    ORKNN_TRY_ASSIGN(const size_t axis, cache_axis(c, static_cast<int64_t>(x->size())));
    if (update && update->size() != x->size())
      return shape_mismatch("cache and update must have the same rank").expected(to_string(*x)).found(to_string(*update));
    for (size_t i = 0; update && i < x->size(); ++i)
      if ((*x)[i].is_known() && (*update)[i].is_known() &&
          (i == axis ? (*update)[i].value() > (*x)[i].value() : (*update)[i] != (*x)[i]))
        return shape_mismatch("the update does not fit into the cache").expected(to_string(*x)).found(to_string(*update));
    if (places && (places->size() != 1 || ((*places)[0].is_known() && (*x)[0].is_known() && (*places)[0] != (*x)[0])))
      return shape_mismatch("one write index per batch entry is needed").found(to_string(*places));
    // A circular cache goes on at its beginning.
    const Dim last = mode == "circular" ? Dim(INT64_MAX) : update ? (*x)[axis] + Dim(-1) * (*update)[axis] : Dim();
    ORKNN_TRY(require_values(c, 2, "write index", 0, last));
  }
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

Status run_cache(RunContext& c) {
  const TensorView x = c.input(0), update = c.input(1);
  ORKNN_TRY_ASSIGN(const size_t axis, cache_axis(c, x.rank()));
  const bool circular = c.get_string("mode") == "circular";
  const int64_t slots = x.dims[axis], length = update.dims[axis];
  std::vector<int64_t> places(static_cast<size_t>(x.dims[0]), 0);
  if (c.has_input(2)) places = to_ints(c.input(2));
  for (int64_t place : places)
    if (place < 0 || (circular ? slots == 0 && length > 0 : place > slots - length))
      return invalid_argument("write index out of range")
          .expected("0 to " + std::to_string(slots - length))
          .found(std::to_string(place));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  std::memcpy(y.data, x.data, x.bytes());
  const size_t bytes = dtype_bytes(x.dtype);
  const int64_t middle = extent_product(x.dims, 1, axis), run = extent_product(x.dims, axis + 1, x.dims.size());
  for (int64_t b = 0; b < x.dims[0]; ++b)
    for (int64_t m = 0; m < middle; ++m)
      for (int64_t i = 0; i < length; ++i) {
        const int64_t first = places[static_cast<size_t>(b)];
        const int64_t slot = circular ? (first % slots + i) % slots : first + i;
        const int64_t row = b * middle + m;
        std::memcpy(offset_by(y.data, (row * slots + slot) * run, bytes), offset_by(update.data, (row * length + i) * run, bytes),
                    static_cast<size_t>(run) * bytes);
      }
  return {};
}
}  // namespace

std::span<const OpDef> scatter() {
  static const OpDef defs[] = {
      {.name = "ScatterElements",
       .summary = "writes single elements along an axis",
       .inputs = {3, 3},
       .attributes = {axes_of_input(attr_int("axis", 0)), attr_string("reduction", "none")},
       .infer = infer_elements,
       .run = run_elements},
      {.name = "ScatterND",
       .summary = "writes slices at index tuples",
       .inputs = {3, 3},
       .attributes = {attr_string("reduction", "none")},
       .infer = infer_nd,
       .run = run_nd,
       .cpu = {CpuList::AllChips}},
      {.name = "TensorScatter",
       .summary = "writes updates at a running position of a cache",
       .inputs = {2, 3},
       .attributes = {axes_of_input(attr_int("axis", -2)), attr_string("mode", "linear")},
       .infer = infer_cache,
       .run = run_cache,
       .widen_half = false},
  };
  return defs;
}
}  // namespace orknn::ops
