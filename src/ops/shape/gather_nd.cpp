// Picks slices by index tuples: the last axis of `indices` addresses the axes after `batch_dims`.
#include <cstring>

#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Checks ranks and gives the number of axes a tuple addresses.
template <class Extents>
Status check_ranks(const Extents& x, const Extents& indices, int64_t batch, int64_t tuple) {
  const auto rank = static_cast<int64_t>(x.size());
  if (rank < 1 || indices.empty()) return shape_mismatch("data and indices need at least one axis");
  if (batch < 0 || batch >= rank || batch >= static_cast<int64_t>(indices.size()))
    return invalid_model("batch_dims out of range").found(std::to_string(batch));
  if (tuple < 1 || tuple > rank - batch)
    return shape_mismatch("an index tuple addresses too many or no axes")
        .expected("1 to " + std::to_string(rank - batch))
        .found(std::to_string(tuple));
  return {};
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "indices"));
  const Shape *x = c.shape(0), *indices = c.shape(1);
  if (!x || !indices || indices->empty() || !indices->back().is_known()) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  const int64_t batch = c.get_int("batch_dims"), tuple = indices->back().value();
  ORKNN_TRY(check_ranks(*x, *indices, batch, tuple));
  for (size_t i = 0; i < static_cast<size_t>(batch); ++i)
    if ((*x)[i].is_known() && (*indices)[i].is_known() && (*x)[i] != (*indices)[i])
      return shape_mismatch("data and indices differ in a batch axis").expected(to_string(*x)).found(to_string(*indices));
  ORKNN_TRY(require_index_tuples(c, 1, "index", std::span(*x).subspan(static_cast<size_t>(batch), static_cast<size_t>(tuple))));
  Shape out(indices->begin(), indices->end() - 1);
  out.insert(out.end(), x->begin() + batch + tuple, x->end());
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), indices = c.input(1);
  const int64_t batch = c.get_int("batch_dims"), tuple = indices.rank() > 0 ? indices.dims.back() : 0;
  ORKNN_TRY(check_ranks(x.dims, indices.dims, batch, tuple));
  for (size_t i = 0; i < static_cast<size_t>(batch); ++i)
    if (x.dims[i] != indices.dims[i])
      return shape_mismatch("data and indices differ in a batch axis").expected(to_string(x.dims)).found(to_string(indices.dims));
  ScratchDims dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + batch + tuple, x.dims.end());
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  const ScratchDims strides = scratch_strides(x.dims);
  const auto first = static_cast<size_t>(batch), width = static_cast<size_t>(tuple);
  const int64_t batches = extent_product(x.dims, 0, first);
  const int64_t per_batch = extent_product(indices.dims, first, indices.dims.size() - 1);
  const int64_t batch_stride = first == 0 ? 0 : strides[first - 1];
  const ScratchDims picks = scratch_ints(indices);
  ScratchDims offsets;
  offsets.reserve(static_cast<size_t>(batches * per_batch));
  for (int64_t n = 0; n < batches * per_batch; ++n) {
    int64_t at = n / per_batch * batch_stride;
    for (size_t k = 0; k < width; ++k) {
      ORKNN_TRY_ASSIGN(const int64_t index, checked_index(picks[static_cast<size_t>(n) * width + k], x.dims[first + k]));
      at += index * strides[first + k];
    }
    offsets.push_back(at);
  }
  const auto bytes = static_cast<int64_t>(dtype_bytes(x.dtype));
  const int64_t run = extent_product(x.dims, first + width, x.dims.size()) * bytes;
  for (size_t n = 0; n < offsets.size(); ++n)
    std::memcpy(y.as<std::byte>() + static_cast<int64_t>(n) * run, x.as<std::byte>() + offsets[n] * bytes,
                static_cast<size_t>(run));
  return {};
}
}  // namespace

std::span<const OpDef> gather_nd() {
  static const OpDef def{.name = "GatherND",
                         .summary = "picks slices by index tuples",
                         .inputs = {2, 2},
                         .attributes = {attr_int("batch_dims", 0)},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::SameScale,
                         .pattern = Pattern::Move,
                         .work = Work::Results};
  return {&def, 1};
}
}  // namespace orknn::ops
