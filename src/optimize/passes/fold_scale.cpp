// Multiplies constant per-channel factors and offsets into the weights next to them.
//
// Before: %c = Conv(%x, %w) ; %y = Mul(%c, const[C,1,1])     After: %y = Conv(%x, %w')
// Before: %m = Div(%x, const[C,1,1]) ; %y = Conv(%m, %w)     After: %y = Conv(%x, %w')
// Legal: constants along the channel axis only, the tensor between has no other reader; an offset ahead of a Conv also needs a
// Conv without padding. ConvTranspose, Gemm and MatMul likewise.
#include <algorithm>
#include <cmath>

#include "optimize/linear.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// y = x * scale + shift with one operand of `n` constant.
struct Affine {
  TensorId x;
  std::vector<double> scale, shift;
};

std::optional<Affine> affine_of(const Graph& g, const Node& n, int64_t axis, int64_t rank, int64_t channels) {
  if (n.op == "Neg") return Affine{n.input(0), std::vector<double>(static_cast<size_t>(channels), -1.0), std::vector<double>(static_cast<size_t>(channels), 0.0)};
  const bool constant_first = g.is_constant(n.input(0));
  const TensorId constant = n.input(constant_first ? 0 : 1);
  Affine a;
  a.x = n.input(constant_first ? 1 : 0);
  if (!same_shape(g, a.x, n.output(0))) return std::nullopt;
  const auto values = per_channel(g, constant, axis, rank, channels);
  if (!values || !std::ranges::all_of(*values, [](double v) { return std::isfinite(v); })) return std::nullopt;
  a.scale.assign(values->size(), 1.0);
  a.shift.assign(values->size(), 0.0);
  if (n.op == "Mul") {
    a.scale = *values;
  } else if (n.op == "Div") {
    if (constant_first || std::ranges::count(*values, 0.0)) return std::nullopt;
    for (size_t i = 0; i < values->size(); ++i) a.scale[i] = 1 / (*values)[i];
  } else {
    a.shift = *values;
    if (n.op == "Sub" && constant_first) a.scale.assign(values->size(), -1.0);
    if (n.op == "Sub" && !constant_first) for (double& s : a.shift) s = -s;
  }
  return a;
}

bool shifts(const Affine& a) { return std::ranges::any_of(a.shift, [](double s) { return s != 0; }); }

Rewrite rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !is_float_tensor(g, n.output(0))) return no_match();
  if (n.op != "Neg" && g.is_constant(n.input(0)) == g.is_constant(n.input(1))) return no_match();
  const TensorId x = n.input(g.is_constant(n.input(0)) ? 1 : 0);

  if (const Node* before = g.producer_node(x); before && read_once(g, x)) {
    const auto linear = linear_of(g, *before);
    const auto affine = linear ? affine_of(g, n, linear->channel_axis, linear->rank, linear->out_channels) : std::nullopt;
    if (affine && (!shifts(*affine) || linear->can_have_bias)) {
      Patch patch(g);
      Node fused = scale_output(patch, g, *linear, affine->scale, affine->shift, n);
      replace_node(g, patch, n, std::move(fused), {before});
      return rewrite(std::move(patch));
    }
  }
  const Node* after = only_reader(g, n.output(0));
  if (!after || after->input(0) != n.output(0)) return no_match();
  const auto linear = linear_of(g, *after);
  if (!linear) return no_match();
  const auto affine = affine_of(g, n, linear->input_axis, rank_of(g, n.output(0)), linear->in_channels);
  if (!affine || (shifts(*affine) && (linear->is_padded || !linear->can_have_bias))) return no_match();
  Patch patch(g);
  Node fused = scale_input(patch, g, *linear, affine->x, affine->scale, affine->shift);
  replace_node(g, patch, *after, std::move(fused), {&n});
  return rewrite(std::move(patch));
}
}  // namespace

Pass fold_scale() {
  return {.name = "fold_scale", .summary = "constant per-channel Mul, Div, Add, Sub, Neg into the weights before or after", .min_level = 1,
          .rule = rule, .roots = {"Mul", "Div", "Add", "Sub", "Neg"}};
}
}  // namespace orknn::optimize
