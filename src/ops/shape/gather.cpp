// Picks slices along an axis by index.
#include <algorithm>
#include <cstring>

#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

template <class Extents>
Extents gathered(const Extents& x, const Extents& indices, size_t axis) {
  Extents out(x.begin(), x.begin() + static_cast<int64_t>(axis));
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), x.begin() + static_cast<int64_t>(axis) + 1, x.end());
  return out;
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_integer(c, 1, "indices"));
  const Shape *x = c.shape(0), *indices = c.shape(1);
  if (!x || !indices) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), static_cast<int64_t>(x->size())));
  ORKNN_TRY(require_indices(c, 1, "index", (*x)[static_cast<size_t>(axis)]));
  c.set_output(0, c.dtype(0), gathered(*x, *indices, static_cast<size_t>(axis)));
  const auto content = small_content(c, 0), picks = small_content(c, 1);
  if (!content || !picks || x->size() != 1) return {};
  std::vector<Dim> out;
  for (const Dim& pick : *picks) {
    if (!pick.is_known()) {
      out.push_back({});
      continue;
    }
    ORKNN_TRY_ASSIGN(const int64_t at, checked_index(pick.value(), static_cast<int64_t>(content->size())));
    out.push_back((*content)[static_cast<size_t>(at)]);
  }
  c.set_content(0, std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), indices = c.input(1);
  ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(c.get_int("axis"), x.rank()));
  const auto axis = static_cast<size_t>(normalized);
  const int64_t extent = x.dims[axis];
  ScratchDims picks = scratch_ints(indices);
  for (int64_t& pick : picks) {
    ORKNN_TRY_ASSIGN(pick, checked_index(pick, extent));
  }
  const ScratchDims dims = gathered(scratch_dims(x.dims), scratch_dims(indices.dims), axis);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  const auto bytes = static_cast<int64_t>(dtype_bytes(x.dtype));
  const int64_t outer = extent_product(x.dims, 0, axis), run = extent_product(x.dims, axis + 1, x.dims.size()) * bytes;
  const auto count = static_cast<int64_t>(picks.size());
  if (outer * count * run == 0) return {};
  const auto* from = x.as<std::byte>();
  auto* to = y.as<std::byte>();
  c.pool.parallel_for(outer * count, std::max<int64_t>(1, (1 << 16) / run), [&](int64_t begin, int64_t end) {
    int64_t n = begin / count, k = begin % count;
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * run, from + (n * extent + picks[static_cast<size_t>(k)]) * run, static_cast<size_t>(run));
      if (++k == count) {
        k = 0;
        ++n;
      }
    }
  });
  return {};
}

// The rows of a table that the samples number, or rows of each sample.
BatchRule batch_rule(const NodeReader& n, size_t, uint32_t constants) {
  if (constants & input_slots({0})) return n.get_int("axis") == 0 ? BatchRule::Apart : BatchRule::Mixed;
  return n.get_int("axis") > 0 ? BatchRule::OfFirst : BatchRule::Mixed;
}
}  // namespace

std::span<const OpDef> gather() {
  static const OpDef def{.name = "Gather",
                         .summary = "picks slices along an axis by index",
                         .inputs = {2, 2},
                         .attributes = {axes_of_input(attr_int("axis", 0))},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::SameScale,
                         .engine = Engine::Move,
                         .pattern = Pattern::Move,
                         .batch = batch_rule,
                         .npu = {.form = NpuForm::Gather},
                         .cpu = {CpuList::AllChips},
                         .work = Work::Results};
  return {&def, 1};
}
}  // namespace orknn::ops
