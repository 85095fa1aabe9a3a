// Moves Transposes down towards the one that undoes them. NHWC models arrive with a pair around every Conv; all but the outermost
// cancel this way, and activations meet the Conv before them.
//
// Before: %t = Transpose(%c) {perm = [0,2,3,1]} ; %y = Relu(%t)     After: %r = Relu(%c) ; %y = Transpose(%r) {perm = [0,2,3,1]}
// Legal: the op works element by element or its axes can be renamed (Concat, Split, Slice, Pad, Reduce, ArgMax, Softmax, Resize,
// Tile, Squeeze, QuantizeLinear, DequantizeLinear). Done when it cannot add work: channels-last Transposes always move down;
// others when a partner is in sight, when two become one, or when an activation or a constant factor thereby meets the Conv, Gemm
// or MatMul it can be fused with.
#include <algorithm>

#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"
#include "optimize/permute.h"

namespace orknn::optimize {
namespace {
using namespace ir;

bool broadcasts(const Node& n) { return ops::facts_of(n).pattern == Pattern::Broadcast; }
bool is_elementwise(const Node& n) { return ops::facts_of(n).is_elementwise(); }

// Ops that a Transpose on input 0 can pass, apart from the element-wise ones.
bool has_movable_axes(const Node& n) {
  const OpDef& def = ops::facts_of(n);
  if (def.pattern == Pattern::Rescale) return n.attributes.int_or("block_size", 0) == 0;
  return def.axes != AxisNames::None && def.axes != AxisNames::FromAttribute && n.attributes.int_or("flatten", 0) == 0;
}

bool is_passable(const Node& n) { return n.tail.empty() && (is_elementwise(n) || has_movable_axes(n)); }

// Inputs that go through a Transpose; the others are parameters.
size_t data_inputs(const Node& n) { return broadcasts(n) || ops::facts_of(n).inputs.max == Arity::kMany ? n.inputs.size() : 1; }

// Following single readers from `t` through passable ops, the next Transpose gives back the order before `perm`.
bool meets_inverse(const Graph& g, TensorId t, const Perm& perm) {
  for (int step = 0; step < 16; ++step) {
    const Node* reader = only_reader(g, t);
    if (!reader || rank_of(g, t) != static_cast<int64_t>(perm.size())) return false;
    if (reader->op == "Transpose") {
      const auto next = transpose_perm(g, *reader);
      return next && is_identity(compose(perm, *next));
    }
    if (!is_passable(*reader) || reader->outputs.size() != 1) return false;
    for (size_t i = 0; i < data_inputs(*reader); ++i)
      if (reader->inputs[i] && reader->inputs[i] != t && !g.is_constant(reader->inputs[i])) return false;
    t = reader->output(0);
  }
  return false;
}

// `t` is the result of a Conv, ConvTranspose, Gemm or MatMul, maybe with constant arithmetic after it, and is needed only here.
bool comes_from_weights(const Graph& g, TensorId t) {
  for (int step = 0; step < 4; ++step) {
    const Node* n = read_once(g, t) ? g.producer_node(t) : nullptr;
    if (!n || !n->tail.empty()) return false;
    if (ops::facts_of(*n).weights != Weights::None) return true;
    if (!ops::is_basic_arithmetic(n->op) || g.is_constant(n->input(0)) == g.is_constant(n->input(1))) return false;
    t = n->input(g.is_constant(n->input(0)) ? 1 : 0);
  }
  return false;
}

// One Transpose and constants, element by element.
bool is_simple(const Graph& g, const Node& n) {
  if (!is_elementwise(n)) return false;
  if (!broadcasts(n)) return true;
  return std::ranges::count_if(n.inputs, [&](TensorId t) { return t && !g.is_constant(t); }) == 1;
}

bool all_readers_pass(const Graph& g, TensorId t) {
  if (g.is_output(t)) return false;
  return std::ranges::all_of(g.users(t), [&](NodeId id) { return g.node(id).op == "Transpose" || is_passable(g.node(id)); });
}

int64_t elements(const Graph& g, TensorId t) {
  const auto dims = dims_of(g, t);
  return dims ? element_count(*dims) : -1;
}

// What the op becomes above the Transpose: its inputs and attributes, and the Transpose that is left for its outputs.
struct Moved {
  std::vector<TensorId> inputs;
  Attributes attributes;
  Perm perm;
};

std::optional<std::vector<int64_t>> normalized(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& a : axes) {
    if (a < 0) a += static_cast<int64_t>(rank);
    if (a < 0 || a >= static_cast<int64_t>(rank)) return std::nullopt;
  }
  return axes;
}

std::vector<int64_t> renamed(const std::vector<int64_t>& axes, const Perm& perm) {
  std::vector<int64_t> out;
  for (int64_t a : axes) out.push_back(perm[static_cast<size_t>(a)]);
  return out;
}

// The permutation of the axes that are left when `axes` (of the transposed tensor) go away.
Perm without(const Perm& perm, const std::vector<int64_t>& axes) {
  Perm left;
  for (size_t i = 0; i < perm.size(); ++i)
    if (!std::ranges::count(axes, static_cast<int64_t>(i))) left.push_back(perm[i]);
  Perm sorted = left;
  std::ranges::sort(sorted);
  for (int64_t& axis : left) axis = std::ranges::lower_bound(sorted, axis) - sorted.begin();
  return left;
}

// Renames the axes of `n`, whose inputs in m.inputs are already untransposed. False when that is not possible.
bool rename_axes(Patch& patch, const Graph& g, const Node& n, Moved& m) {
  const Perm perm = m.perm;
  const size_t rank = perm.size();
  const auto constant = [&](size_t i) {
    return i < n.inputs.size() && n.inputs[i] ? constant_ints(g, n.inputs[i]) : std::nullopt;
  };
  const auto set_ints = [&](size_t i, const std::vector<int64_t>& values) {
    if (m.inputs.size() <= i) m.inputs.resize(i + 1);
    m.inputs[i] = patch.add_constant(g.tensor(n.output(0)).name + "_axes", TensorData::vector(values));
  };
  const auto all_axes = [&] {
    std::vector<int64_t> axes(rank);
    for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
    return axes;
  };
  const OpDef& def = ops::facts_of(n);
  if (def.is_elementwise()) return true;
  if (def.pattern == Pattern::Rescale) {
    const auto scale = dims_of(g, n.input(1));
    if (!scale || scale->size() > 1) return false;
    if (scale->empty()) return true;  // one scale for all
    const auto axis = normalized({n.attributes.int_or("axis", 1)}, rank);
    if (!axis) return false;
    m.attributes.set("axis", renamed(*axis, perm)[0]);
    return true;
  }
  // The axes of the input, named as in `n`, that are missing in the result.
  const auto drop = [&](const std::vector<int64_t>& axes) { m.perm = without(perm, axes); };
  const bool drops = def.pattern == Pattern::View || (def.pattern == Pattern::Reduce && !n.attributes.int_or("keepdims", 1));
  switch (def.axes) {
    case AxisNames::None:
    case AxisNames::FromAttribute: return false;
    case AxisNames::Attribute: {
      const auto axis = normalized({NodeReader(n, def).get_int("axis")}, rank);
      if (!axis) return false;
      m.attributes.set("axis", renamed(*axis, perm)[0]);
      if (drops) drop(*axis);
      return true;
    }
    case AxisNames::Input1: {
      const auto given = def.pattern == Pattern::Reduce ? reduce_axes(g, n) : constant(1);
      const auto axes = given && !given->empty() ? normalized(*given, rank) : std::nullopt;
      if (!axes) return false;
      set_ints(1, renamed(*axes, perm));
      if (drops) drop(*axes);
      return true;
    }
    case AxisNames::Input3: {
      const auto given = n.has_input(3) ? constant(3) : std::optional(all_axes());
      const auto axes = given ? normalized(*given, rank) : std::nullopt;
      if (!axes) return false;
      if (n.op == "Slice" && !n.has_input(3)) {
        const auto starts = dims_of(g, n.input(1));
        if (!starts || starts->size() != 1 || (*starts)[0] != static_cast<int64_t>(rank)) return false;
      }
      set_ints(3, renamed(*axes, perm));
      return true;
    }
    case AxisNames::PerAxis: {
      const auto values = constant(1);
      if (!values || values->size() != rank) return false;
      std::vector<int64_t> moved;
      for (int64_t axis : inverse_perm(perm)) moved.push_back((*values)[static_cast<size_t>(axis)]);
      set_ints(1, moved);
      return true;
    }
    case AxisNames::ListAttribute: {
      const auto axes = normalized(n.attributes.ints_or("axes", all_axes()), rank);
      if (!axes || n.attributes.string_or("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return false;
      m.attributes.set("axes", renamed(*axes, perm));
      return true;
    }
  }
  return false;
}

Rewrite sink_transposes_rule(const Graph& g, const Node& n) {
  if (!is_passable(n) || !n.input(0)) return no_match();
  const size_t data = data_inputs(n);
  std::optional<Perm> perm;
  const Node* transpose = nullptr;
  for (size_t i = 0; i < data; ++i) {
    const Node* t = producer(g, n.inputs[i], "Transpose");
    if (!t) continue;
    const auto p = transpose_perm(g, *t);
    if (!p || (perm && *p != *perm)) return no_match();
    perm = p;
    transpose = t;
  }
  if (!perm || is_identity(*perm)) return no_match();
  if (data == 1 && !producer(g, n.input(0), "Transpose")) return no_match();

  Patch patch(g);
  Moved m{n.inputs, n.attributes, *perm};
  const Perm back = inverse_perm(*perm);
  size_t dying = 0;
  bool others_pass = true;
  for (size_t i = 0; i < data; ++i) {
    const TensorId in = n.inputs[i];
    if (!in) continue;
    if (const Node* t = producer(g, in, "Transpose")) {
      m.inputs[i] = t->input(0);
      dying += read_once(g, in);
      others_pass &= read_once(g, in) || all_readers_pass(g, in);
    } else if (const TensorData* c = g.constant(in)) {
      if (c->dims().size() > perm->size()) return no_match();
      if (c->count() == 1 && broadcasts(n)) continue;
      m.inputs[i] = patch.add_constant(g.tensor(in).name, permuted_operand(*c, back));
    } else if (broadcasts(n) && elements(g, in) == 1 && rank_of(g, in) <= static_cast<int64_t>(perm->size())) {
      continue;
    } else if (broadcasts(n) && rank_of(g, in) == static_cast<int64_t>(perm->size()) && elements(g, in) >= 0 &&
               4 * elements(g, in) <= elements(g, n.output(0))) {
      m.inputs[i] = patch.add_node("Transpose", transpose->name, {in}, {{"perm", back}}, transpose->origin);
    } else {
      return no_match();
    }
  }
  const bool in_sight = n.outputs.size() == 1 && meets_inverse(g, n.output(0), *perm);
  const bool meets_weights = dying == 1 && is_simple(g, n) && comes_from_weights(g, transpose->input(0));
  const bool allowed =
      is_channels_last(*perm) ? others_pass || in_sight : dying >= 2 || (in_sight && dying >= 1) || meets_weights;
  if (!allowed || !rename_axes(patch, g, n, m)) return no_match();

  Node above = n;
  above.inputs = m.inputs;
  above.attributes = m.attributes;
  patch.remove_node(id_of(g, n));
  if (is_identity(m.perm)) {
    patch.add_node(std::move(above));
    return rewrite(std::move(patch));
  }
  std::vector<Node> below;
  for (TensorId& out : above.outputs) {
    if (!out) continue;
    Node t = successor(*transpose, "Transpose", {patch.add_tensor(g.tensor(out).name)}, {{"perm", m.perm}});
    t.outputs = {out};
    out = t.inputs[0];
    below.push_back(std::move(t));
  }
  patch.add_node(std::move(above));
  for (Node& t : below) patch.add_node(std::move(t));
  return rewrite(std::move(patch));
}
}  // namespace

Pass sink_transposes() {
  return {.name = "sink_transposes",
          .summary = "Transposes down through ops that do not mind, until they cancel",
          .min_level = 2,
          .rule = sink_transposes_rule};
}
}  // namespace orknn::optimize
