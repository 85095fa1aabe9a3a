// Permutes axes; without `perm` they are reversed.
#include <numeric>

#include "ops/support/copies.h"
#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

Result<std::vector<int64_t>> permutation(const NodeReader& c, int64_t rank) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  const auto* given = c.find<std::vector<int64_t>>("perm");
  if (!given) {
    std::iota(perm.rbegin(), perm.rend(), 0);
    return perm;
  }
  if (given->size() != perm.size())
    return invalid_model("perm must name every axis once").expected(std::to_string(rank) + " axes").found(to_string(*given));
  std::vector<bool> seen(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    ORKNN_TRY_ASSIGN(perm[i], normalize_axis((*given)[i], rank));
    if (seen[static_cast<size_t>(perm[i])]) return invalid_model("perm must name every axis once").found(to_string(*given));
    seen[static_cast<size_t>(perm[i])] = true;
  }
  return perm;
}

std::vector<CopyAxis> axes_of(std::span<const int64_t> dims, std::span<const int64_t> perm) {
  const Dims strides = strides_of(dims);
  Dims out, from;
  for (int64_t axis : perm) {
    out.push_back(dims[static_cast<size_t>(axis)]);
    from.push_back(strides[static_cast<size_t>(axis)]);
  }
  return into_dense(out, from);
}

Status infer(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(const auto perm, permutation(c, static_cast<int64_t>(x->size())));
  Shape out;
  for (int64_t axis : perm) out.push_back((*x)[static_cast<size_t>(axis)]);
  c.set_output(0, c.dtype(0), std::move(out));
  if (const auto content = small_content(c, 0)) c.set_content(0, copy_content(*content, axes_of(*to_dims(*x), perm)));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const auto perm, permutation(c, x.rank()));
  std::vector<CopyAxis> axes = axes_of(x.dims, perm);
  Dims dims;
  for (const CopyAxis& a : axes) dims.push_back(a.extent);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  copy_strided(std::move(axes), x.data, y.data, dtype_bytes(x.dtype), c.pool);
  return {};
}

// Axes of extent 1 may move; the others keep their order.
int copied(const InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) return kNoCopy;
  std::vector<int64_t> reversed(shape->size());
  for (size_t i = 0; i < reversed.size(); ++i) reversed[i] = static_cast<int64_t>(reversed.size() - 1 - i);
  const std::vector<int64_t> perm = c.node().attributes.ints_or("perm", reversed);
  if (perm.size() != shape->size()) return kNoCopy;
  if (std::is_sorted(perm.begin(), perm.end())) return 0;
  const auto dims = to_dims(*shape);
  if (!dims || !keeps_shape(c, 0)) return kNoCopy;
  int64_t last = -1;
  for (int64_t axis : perm) {
    if ((*dims)[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return kNoCopy;
    last = axis;
  }
  return 0;
}
}  // namespace

std::span<const OpDef> transpose() {
  static const OpDef def{.name = "Transpose",
                         .summary = "permutes axes",
                         .attributes = {axes_of_input(attr_ints("perm"))},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::SameScale,
                         .engine = Engine::Move,
                         .pattern = Pattern::Move,
                         .copied_input = copied,
                         .npu = {.form = NpuForm::Transpose},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
