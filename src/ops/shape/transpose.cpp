// Permutes axes; without `perm` they are reversed.
#include "ops/support/copies.h"
#include "ops/support/movement_plans.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(const auto perm, permutation_of(c, static_cast<int64_t>(x->size())));
  Shape out;
  for (int64_t axis : perm) out.push_back((*x)[static_cast<size_t>(axis)]);
  c.set_output(0, c.dtype(0), std::move(out));
  if (const auto content = small_content(c, 0)) c.set_content(0, copy_content(*content, permuted_axes(*to_dims(*x), perm)));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const auto perm, permutation_of(c, x.rank()));
  CopyAxes axes = permuted_axes(x.dims, perm);
  ScratchDims dims;
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

BatchRule batch_rule(const NodeReader& n, size_t, uint32_t) {
  const auto* perm = n.find<std::vector<int64_t>>("perm");
  return perm && !perm->empty() && (*perm)[0] == 0 ? BatchRule::OfFirst : BatchRule::Mixed;
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
                         .batch = batch_rule,
                         .copied_input = copied,
                         .npu = {.form = NpuForm::Transpose},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
