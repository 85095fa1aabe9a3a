// Moves blocks between channels and space, and shuffles channel groups: all are a split, a permutation and a join of axes.
#include "ops/support/movement_plans.h"

namespace orknn::ops {
namespace {
using namespace ir;

Result<int64_t> block_size(const NodeReader& c) {
  const int64_t block = c.get_int("blocksize");
  if (block < 1 || block > (1 << 20)) return invalid_model("illegal blocksize").found(std::to_string(block));
  return block;
}

// a / b for extents; an error when it leaves a rest.
Result<Dim> divided(const Dim& a, int64_t b, const char* what) {
  if (a.is_known() && a.value() % b != 0)
    return shape_mismatch(std::string(what) + " must be divisible by " + std::to_string(b)).found(a.to_string());
  return a / Dim(b);
}

Status require_image(const Shape& x) {
  return x.size() == 4 ? Status() : shape_mismatch("a tensor of four axes is needed").expected("[N,C,H,W]").found(to_string(x));
}

Result<Shape> space_shape(const NodeReader& c, const Shape& x) {
  ORKNN_TRY_ASSIGN(const int64_t block, block_size(c));
  if (const std::string& mode = c.get_string("mode"); mode != "DCR" && mode != "CRD")
    return unsupported("unknown mode").expected("DCR or CRD").found(mode);
  ORKNN_TRY(require_image(x));
  ORKNN_TRY_ASSIGN(const Dim channels, divided(x[1], block * block, "the number of channels"));
  return Shape{x[0], channels, x[2] * Dim(block), x[3] * Dim(block)};
}

Result<Shape> depth_shape(const NodeReader& c, const Shape& x) {
  ORKNN_TRY_ASSIGN(const int64_t block, block_size(c));
  ORKNN_TRY(require_image(x));
  ORKNN_TRY_ASSIGN(const Dim height, divided(x[2], block, "the height"));
  ORKNN_TRY_ASSIGN(const Dim width, divided(x[3], block, "the width"));
  return Shape{x[0], x[1] * Dim(block * block), height, width};
}

Result<Shape> shuffled_shape(const NodeReader& c, const Shape& x) {
  const int64_t group = c.get_int("group");
  if (group < 1) return invalid_model("illegal group").found(std::to_string(group));
  if (x.size() < 2) return shape_mismatch("a channel axis is needed").found(to_string(x));
  ORKNN_TRY(divided(x[1], group, "the number of channels").status());
  return x;
}

template <Result<Shape> (*rule)(const NodeReader&, const Shape&)>
Status infer(InferContext& c) {
  std::optional<Shape> out;
  if (c.shape(0)) {
    ORKNN_TRY_ASSIGN(out, rule(c, *c.shape(0)));
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

// The concrete output shape by the same rule.
template <Result<Shape> (*rule)(const NodeReader&, const Shape&)>
Result<Dims> output_dims(const RunContext& c) {
  ORKNN_TRY_ASSIGN(const Shape shape, rule(c, to_shape(c.input(0).dims)));
  const std::optional<Dims> dims = to_dims(shape);
  if (!dims) return shape_mismatch("the result is too large");
  return *dims;
}

Status run_depth_to_space(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Dims out, output_dims<space_shape>(c));
  const SplitPermutation p = depth_to_space_permutation(c.input(0).dims, c.get_int("blocksize"), c.get_string("mode"));
  return copy_permuted(c, p.split, p.perm, out);
}

Status run_space_to_depth(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Dims out, output_dims<depth_shape>(c));
  const SplitPermutation p = space_to_depth_permutation(c.input(0).dims, c.get_int("blocksize"));
  return copy_permuted(c, p.split, p.perm, out);
}

Status run_shuffle(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Dims out, output_dims<shuffled_shape>(c));
  const SplitPermutation p = channel_shuffle_permutation(c.input(0).dims, c.get_int("group"));
  return copy_permuted(c, p.split, p.perm, out);
}
}  // namespace

std::span<const OpDef> depth_to_space() {
  static const OpDef defs[] = {
      {.name = "DepthToSpace",
       .summary = "channels become blocks of pixels",
       .attributes = {required(attr_int("blocksize")), attr_string("mode", "DCR")},
       .infer = infer<space_shape>,
       .run = run_depth_to_space,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::Move,
       .samples_apart = true,
       .cpu = {CpuList::LargeChips}},
      {.name = "SpaceToDepth",
       .summary = "blocks of pixels become channels",
       .attributes = {required(attr_int("blocksize"))},
       .infer = infer<depth_shape>,
       .run = run_space_to_depth,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::Move,
       .samples_apart = true,
       .cpu = {CpuList::LargeChips}},
      {.name = "ShuffleChannel",
       .summary = "interleaves groups of channels",
       .attributes = {required(attr_int("group"))},
       .infer = infer<shuffled_shape>,
       .run = run_shuffle,
       .widen_half = false,
       .quant = QuantRule::SameScale,
       .engine = Engine::Move,
       .pattern = Pattern::Move,
       .samples_apart = true,
       .npu = {.form = NpuForm::Shuffle, .listed_as = "Conv"}},
  };
  return defs;
}
}  // namespace orknn::ops
