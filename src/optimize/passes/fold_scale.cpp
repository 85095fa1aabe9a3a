// Multiplies constant per-channel factors and offsets into the weights next to them.
//
// Before: %c = Conv(%x, %w) ; %y = Mul(%c, const[C,1,1])     After: %y = Conv(%x, %w')
// Before: %m = Div(%x, const[C,1,1]) ; %y = Conv(%m, %w)     After: %y = Conv(%x, %w')
// Legal: constants along the channel axis only, the tensor between has no other reader; an offset ahead of a Conv also needs a
// Conv without padding. ConvTranspose, Gemm and MatMul likewise.
#include <algorithm>
#include <cmath>

#include "ops/facts.h"
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
  if (n.op == "Neg")
    return Affine{n.input(0), std::vector<double>(static_cast<size_t>(channels), -1.0),
                  std::vector<double>(static_cast<size_t>(channels), 0.0)};
  const bool constant_first = g.is_constant(n.input(0));
  const TensorId constant = n.input(constant_first ? 0 : 1);
  Affine a;
  a.x = n.input(constant_first ? 1 : 0);
  if (!same_shape(g, a.x, n.output(0))) return std::nullopt;
  const auto values = per_channel(g, constant, axis, rank, channels);
  if (!values || !std::ranges::all_of(*values, [](double v) { return std::isfinite(v); })) return std::nullopt;
  a.scale.assign(values->size(), 1.0);
  a.shift.assign(values->size(), 0.0);
  switch (ops::facts_of(n).arithmetic) {
    case Arithmetic::Mul: a.scale = *values; break;
    case Arithmetic::Div:
      if (constant_first || std::ranges::count(*values, 0.0)) return std::nullopt;
      for (size_t i = 0; i < values->size(); ++i) a.scale[i] = 1 / (*values)[i];
      break;
    case Arithmetic::Sub:
      a.shift = *values;
      for (double& v : constant_first ? a.scale : a.shift) v = -v;
      break;
    default: a.shift = *values;
  }
  return a;
}

bool shifts(const Affine& a) {
  return std::ranges::any_of(a.shift, [](double s) { return s != 0; });
}

// `first` followed by `second`; what it reads is the first's.
Affine compose_affine(const Affine& first, const Affine& second) {
  Affine both = first;
  for (size_t i = 0; i < both.scale.size(); ++i) {
    both.scale[i] *= second.scale[i];
    both.shift[i] = first.shift[i] * second.scale[i] + second.shift[i];
  }
  return both;
}

bool is_finite(const Affine& a) {
  const auto finite = [](double v) { return std::isfinite(v); };
  return std::ranges::all_of(a.scale, finite) && std::ranges::all_of(a.shift, finite);
}

// The operand of an affine node that is computed; nothing when `n` is no such node.
TensorId operand_of(const Graph& g, const Node& n) {
  if ((!ops::is_basic_arithmetic(n.op) && n.op != "Neg") || !n.tail.empty() || !is_float_tensor(g, n.output(0))) return {};
  if (n.op != "Neg" && g.is_constant(n.input(0)) == g.is_constant(n.input(1))) return {};
  return n.input(g.is_constant(n.input(0)) ? 1 : 0);
}

// A row of affine nodes goes into the weights at once, because every time costs a copy of them.
Rewrite fold_after(const Graph& g, const Node& n, const Node& before) {
  const auto linear = linear_of(g, before);
  if (!linear) return no_match();
  std::optional<Affine> all;
  std::vector<const Node*> merged{&before};
  const Node* last = nullptr;
  for (const Node* next = &n; next && operand_of(g, *next); next = only_reader(g, next->output(0))) {
    const auto step = affine_of(g, *next, linear->channel_axis, linear->rank, linear->out_channels);
    if (!step || (shifts(*step) && !linear->can_have_bias)) break;
    const Affine more = all ? compose_affine(*all, *step) : *step;
    if (!is_finite(more)) break;
    if (last) merged.push_back(last);
    all = more;
    last = next;
  }
  if (!all) return no_match();
  Patch patch(g);
  Node fused = scale_output(patch, g, *linear, all->scale, all->shift, *last);
  replace_node(g, patch, *last, std::move(fused), std::move(merged));
  return rewrite(std::move(patch));
}

Rewrite fold_ahead(const Graph& g, const Node& n, const Node& after) {
  const auto linear = linear_of(g, after);
  if (!linear) return no_match();
  std::optional<Affine> all;
  std::vector<const Node*> merged;
  const Node* next = &n;
  while (next && operand_of(g, *next)) {
    const auto step = affine_of(g, *next, linear->input_axis, rank_of(g, n.output(0)), linear->in_channels);
    if (!step || (shifts(*step) && (linear->is_padded || !linear->can_have_bias))) break;
    const Affine more = all ? compose_affine(*step, *all) : *step;
    if (!is_finite(more)) break;
    merged.push_back(next);
    all = more;
    next = read_once(g, step->x) ? g.producer_node(step->x) : nullptr;
  }
  if (!all) return no_match();
  std::ranges::reverse(merged);  // as in the model
  Patch patch(g);
  Node fused = scale_input(patch, g, *linear, all->x, all->scale, all->shift);
  replace_node(g, patch, after, std::move(fused), std::move(merged));
  return rewrite(std::move(patch));
}

Rewrite fold_scale_rule(const Graph& g, const Node& n) {
  const TensorId x = operand_of(g, n);
  if (!x) return no_match();
  if (const Node* before = g.producer_node(x); before && read_once(g, x))
    if (Rewrite after = fold_after(g, n, *before); !after || *after) return after;
  const Node* after = only_reader(g, n.output(0));
  return after && after->input(0) == n.output(0) ? fold_ahead(g, n, *after) : no_match();
}
}  // namespace

Pass fold_scale() {
  return {.name = "fold_scale",
          .summary = "constant per-channel Mul, Div, Add, Sub, Neg into the weights before or after",
          .min_level = 1,
          .rule = fold_scale_rule,
          .roots = {"Mul", "Div", "Add", "Sub", "Neg"}};
}
}  // namespace orknn::optimize
