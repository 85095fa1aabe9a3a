#include "quantize/given_parameters.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "ir/index_of.h"
#include "ir/infer.h"
#include "ir/patch.h"
#include "ops/eval.h"
#include "ops/facts.h"
#include "ops/support/quantization.h"
#include "quantize/integer_graph.h"
#include "quantize/layer_weights.h"

namespace orknn::quantize {
using namespace ir;
namespace {

bool is_stored_type(DType t) { return t == DType::Int8 || t == DType::UInt8 || t == DType::Int16; }
bool quantizes(const Node& n) { return ops::facts_of(n).conversion == Conversion::ToIntegers; }
bool dequantizes(const Node& n) { return ops::facts_of(n).conversion == Conversion::ToReals; }
bool pads(const Node& n) { return ops::facts_of(n).quant == QuantRule::Padding; }
bool joins(const Node& n) { return ops::facts_of(n).quant == QuantRule::SharedScale; }
bool is_conversion(const Node& n) { return quantizes(n) || dequantizes(n); }

// The sides of a conversion.
TensorId integers_of(const Node& n) { return quantizes(n) ? n.output() : n.input(0); }
TensorId reals_of(const Node& n) { return quantizes(n) ? n.input(0) : n.output(); }

// What the values of a tensor are rounded to.
struct Grid {
  QuantParams parameters;
  DType type = DType::Int8;  // or Int16
  bool operator==(const Grid& other) const {
    return type == other.type && parameters.scale == other.parameters.scale &&
           parameters.zero_point == other.parameters.zero_point;
  }
};

// uint8 as int8 has it, with the range spanned.
std::optional<Grid> make_grid(double scale, int64_t zero, DType type) {
  if (!is_stored_type(type) || !(scale > 0) || !std::isfinite(scale)) return std::nullopt;
  if (type == DType::UInt8) zero -= 128;
  Grid g;
  if (type == DType::Int16) g.type = type;
  const Limits l = limits_of(g.type);
  if (zero < l.low || zero > l.high) return std::nullopt;
  QuantParams& p = g.parameters;
  p.scale = {static_cast<float>(scale)};
  p.zero_point = {static_cast<int32_t>(zero)};
  p.min = {static_cast<float>(static_cast<double>(l.low - zero) * scale)};
  p.max = {static_cast<float>(static_cast<double>(l.high - zero) * scale)};
  return g;
}

// Of a QuantizeLinear or DequantizeLinear between a stored and a float32 tensor, when one constant scale belongs to all values.
std::optional<Grid> stated_grid(const Graph& g, const Node& n) {
  if (!n.tail.empty() || g.tensor(reals_of(n)).dtype != DType::Float32) return std::nullopt;
  const TensorData *scale = g.constant(n.input(1)), *zero = g.constant(n.input(2));
  if (!scale || scale->count() != 1 || n.attributes.int_or("block_size", 0) != 0) return std::nullopt;
  if (n.has_input(2) && (!zero || zero->count() != 1)) return std::nullopt;
  return make_grid(to_doubles(scale->view())[0], zero ? to_ints(zero->view())[0] : 0, g.tensor(integers_of(n)).dtype);
}

class Reader {
 public:
  Reader(Graph& graph, const OpSet& ops) : graph_(graph), ops_(ops) {}

  Result<Plan> run() {
    ORKNN_TRY(fold_constants());
    group_integers();
    for (NodeId id : std::vector<NodeId>(graph_.order())) absorb(id);
    ORKNN_TRY(infer_shapes(graph_, ops_));
    forms_ = LayerForms(graph_);  // only now layers read and make real numbers
    spread();
    separate_moves();
    for (NodeId id : graph_.order()) forms_[id] = possible_form(id);
    round_float_results();
    return plan();
  }

 private:
  // Constants before conversions; the optimizer leaves large ones alone at level 0.
  Status fold_constants() {
    for (NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node n = graph_.node(id);
      if (!is_conversion(n) || !n.tail.empty() || graph_.is_output(n.output())) continue;
      if (!std::all_of(n.inputs.begin(), n.inputs.end(), [&](TensorId t) { return !t || graph_.is_constant(t); })) continue;
      std::vector<TensorData> values;
      for (TensorId t : n.inputs) values.push_back(t ? graph_.tensor(t).constant : TensorData());
      ORKNN_TRY_ASSIGN(auto results, ops::eval_node(n, ops_, values));
      const TensorId made = graph_.add_constant(graph_.tensor(n.output()).name + "_value", results[0]);
      graph_.tensor(made).quant = ops::stored_grid(graph_, n);
      graph_.remove_node(id);
      graph_.replace_uses(n.output(), made);
    }
    return {};
  }

  // --- integer tensors
  // Tensors joined by nodes that copy values have one grid. A group is understood when every node that makes or reads one of its
  // tensors is a conversion with the same parameters or such a copy; what is not understood stays as it is.
  struct Group {
    std::optional<Grid> grid;
    bool understood = true;
  };

  size_t root(size_t t) const {
    while (parent_[t] != t) t = parent_[t];
    return t;
  }
  Group& group(TensorId t) { return groups_[root(index_of(t))]; }
  // Types change while conversions go; groups are about what was there before.
  bool was_integer(TensorId t) const { return t && index_of(t) < was_integer_.size() && was_integer_[index_of(t)]; }
  bool is_small_integer(TensorId t) const { return t && !graph_.is_constant(t) && is_stored_type(graph_.tensor(t).dtype); }

  void agree(TensorId t, const std::optional<Grid>& grid) {
    Group& g = group(t);
    if (!grid || (g.grid && *g.grid != *grid))
      g.understood = false;
    else
      g.grid = grid;
  }

  void group_integers() {
    parent_.resize(graph_.tensor_count());
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    groups_.resize(graph_.tensor_count());
    for (size_t i = 0; i < graph_.tensor_count(); ++i) was_integer_.push_back(is_small_integer({static_cast<int32_t>(i)}));
    for (NodeId id : graph_.order()) {
      const Node& n = graph_.node(id);
      if (!is_small_integer(n.input(0)) || !copies_values(graph_, n)) continue;
      for (TensorId t : n.outputs)
        if (is_small_integer(t)) parent_[root(index_of(t))] = root(index_of(n.input(0)));
    }
    for (NodeId id : graph_.order()) {
      const Node& n = graph_.node(id);
      const bool copies = is_small_integer(n.input(0)) && copies_values(graph_, n);
      for (size_t i = 0; i < n.inputs.size(); ++i)
        if (is_small_integer(n.inputs[i]) && !(copies && i == 0))
          agree(n.inputs[i], dequantizes(n) && i == 0 ? stated_grid(graph_, n) : std::nullopt);
      for (TensorId t : n.outputs)
        if (is_small_integer(t) && !copies) agree(t, quantizes(n) ? stated_grid(graph_, n) : std::nullopt);
    }
    for (const auto& ports : {graph_.inputs(), graph_.outputs()})
      for (TensorId t : ports) {
        if (!is_small_integer(t)) continue;
        const auto& q = graph_.tensor(t).quant;
        agree(t, q && q->scale.size() == 1 && q->zero_point.size() == 1
                     ? make_grid(q->scale[0], q->zero_point[0], graph_.tensor(t).dtype)
                     : std::nullopt);
      }
    // Only now: its parameters may be those of an input.
    for (NodeId id : graph_.order())
      if (const Node& n = graph_.node(id); pads(n) && is_small_integer(n.input(0)) && !pads_with_zero_point(n))
        group(n.input(0)).understood = false;
  }

  bool pads_with_zero_point(const Node& n) {
    if (n.attributes.string_or("mode", "constant") != "constant") return true;
    const Group& g = group(n.input(0));
    if (!g.grid) return false;
    const TensorData* value = graph_.constant(n.input(2));
    if (n.has_input(2) && (!value || value->count() != 1)) return false;
    const int64_t stored = value ? to_ints(value->view())[0] : 0;
    return stored - (graph_.tensor(n.input(0)).dtype == DType::UInt8 ? 128 : 0) == g.grid->parameters.zero_point[0];
  }

  std::optional<Grid>& grid(TensorId t) {
    if (grids_.size() < graph_.tensor_count()) grids_.resize(graph_.tensor_count());
    return grids_[index_of(t)];
  }
  void become_real(TensorId t, const Grid& p) {
    graph_.tensor(t).dtype = DType::Float32;
    graph_.tensor(t).quant.reset();
    grid(t) = p;
  }

  // Node by node in execution order: tensors of understood groups become real ones that have a grid, and conversions go.
  void absorb(NodeId id) {
    const Node n = graph_.node(id);
    if (is_conversion(n)) {
      const TensorId integers = integers_of(n), reals = reals_of(n);
      if (!was_integer(integers)) return;
      const Group& g = group(integers);
      if (!g.understood || !g.grid) {
        // The conversion stays; what stands on its other side lies on the same grid all the same.
        const auto stated = stated_grid(graph_, n);
        if (!stated || graph_.is_constant(reals) || grid(reals) || graph_.is_input(reals)) return;
        if (dequantizes(n) || only_read_on(reals, *stated, id)) grid(reals) = stated;
        return;
      }
      const Grid p = *g.grid;
      become_real(integers, p);
      quantizes(n) ? absorb_quantization(id, reals, integers, p) : absorb_dequantization(id, integers, reals, p);
      return;
    }
    const TensorId x = n.input(0);
    if (!was_integer(x) || !was_integer(n.output()) || !copies_values(graph_, n)) return;
    const Group& g = group(x);
    if (!g.understood || !g.grid) return;
    become_real(x, *g.grid);
    for (TensorId t : n.outputs)
      if (was_integer(t)) become_real(t, *g.grid);
    if (pads(n) && n.has_input(2)) {
      Node pad = n;
      pad.inputs[2] = TensorId{};
      graph_.replace_node(id, std::move(pad));
    }
  }

  void become_identity(NodeId id) {
    Node n = graph_.node(id);
    n.op = "Identity";
    n.inputs.resize(1);
    n.attributes = {};
    graph_.replace_node(id, std::move(n));
  }

  // True when every reader of `x` besides the conversion `self` rounds it to `p`: others see values that are neither rounded nor
  // clipped.
  bool only_read_on(TensorId x, const Grid& p, NodeId self) const {
    if (graph_.is_output(x)) return false;
    const auto users = graph_.users(x);
    return std::all_of(users.begin(), users.end(), [&](NodeId u) {
      if (u == self) return true;
      const auto stated = quantizes(graph_.node(u)) ? stated_grid(graph_, graph_.node(u)) : std::nullopt;
      return stated && *stated == p;
    });
  }

  void absorb_quantization(NodeId id, TensorId x, TensorId y, const Grid& p) {
    const bool computed_once =
        graph_.producer(x) && graph_.tensor(x).dtype == DType::Float32 && (grid(x) ? *grid(x) == p : only_read_on(x, p, id));
    const bool input_of_its_own = graph_.is_input(x) && !grid(x) && graph_.reader_count(x) == 1 && !graph_.is_output(y);
    if ((!computed_once && !input_of_its_own) || (graph_.is_output(x) && graph_.is_output(y))) return become_identity(id);
    grid(x) = p;
    stated_.insert(x.index);
    // Whoever reads `y` reads `x` from here on.
    parent_[index_of(x)] = root(index_of(y));
    was_integer_[index_of(x)] = true;
    take_place(id, y, x);
  }

  void absorb_dequantization(NodeId id, TensorId x, TensorId y, const Grid& p) {
    if (graph_.is_output(y) && (graph_.is_output(x) || graph_.is_input(x))) {
      become_identity(id);
      grid(y) = p;
      return;
    }
    take_place(id, y, x);
  }

  // `by` stands where the result `t` of node `id` stood; an output keeps its name and layout.
  void take_place(NodeId id, TensorId t, TensorId by) {
    const bool output = graph_.is_output(t);
    const std::string name = graph_.tensor(t).name;
    const Layout layout = graph_.tensor(t).layout;
    graph_.remove_node(id);
    graph_.replace_uses(t, by);
    if (!output) return;
    graph_.rename_tensor(t, name + "_before");
    graph_.rename_tensor(by, name);
    if (graph_.tensor(by).layout == Layout::Undefined) graph_.tensor(by).layout = layout;
  }

  // --- tensors without a statement of their own
  // A copy of values that lie on a grid loses nothing. Other operators are rounded to a neighbour's or their function's grid only
  // between quantized layers.
  void spread() {
    spread_back();  // what is stated after a copy is finer than what a neighbour before it has
    const std::vector<char> needed = find_needed();
    for (NodeId id : graph_.order()) {
      const Node& n = graph_.node(id);
      if (!lends(id)) continue;
      for (TensorId y : n.outputs) {
        if (!y || graph_.tensor(y).dtype != DType::Float32 || grid(y)) continue;
        if (joins(n)) {
          if (const auto all = joined(n); all && (all->equal || needed[index_of(y)])) grid(y) = all->grid;
          continue;
        }
        const std::optional<Grid> before = grid(n.input(0));
        if (!before) continue;
        if (is_move(id))
          grid(y) = before;
        else if (!needed[index_of(y)])
          continue;
        else if (has_unit_range(n.op))
          grid(y) = Grid{parameters_of({0, 1}, before->type), before->type};
        else if (has_symmetric_range(n.op))
          grid(y) = Grid{parameters_of({-1, 1}, before->type), before->type};
        else
          grid(y) = before;
      }
    }
    spread_back();
  }

  // To layers that only a copy reads: they compute in the parameters of the copy.
  void spread_back() {
    const std::vector<NodeId> order = graph_.order();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& n = graph_.node(*it);
      const TensorId x = n.input(0);
      if (n.outputs.size() != 1 || !n.output() || !x || !is_move(*it) || !grid(n.output()) || grid(x)) continue;
      if (graph_.producer(x) && graph_.reader_count(x) == 1 && graph_.tensor(x).dtype == DType::Float32)
        grid(x) = grid(n.output());
    }
  }

  bool is_move(NodeId id) const { return graph_.node(id).tail.empty() && forms_[id].form == Form::Move; }

  // The result of such a node can take parameters that are not stated.
  bool lends(NodeId id) const {
    const Node& n = graph_.node(id);
    return n.output() && n.input(0) && n.tail.empty() &&
           (joins(n) || is_move(id) || ops::facts_of(n).keeps_range || has_unit_range(n.op) || has_symmetric_range(n.op));
  }

  // Tensors that a quantized layer reads, directly or after layers that take a neighbour's parameters.
  std::vector<char> find_needed() {
    std::vector<char> needed(graph_.tensor_count(), 0);
    const std::vector<NodeId>& order = graph_.order();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& n = graph_.node(*it);
      const bool reached = std::any_of(n.outputs.begin(), n.outputs.end(),
                                       [&](TensorId y) { return y && (grid(y) || (lends(*it) && needed[index_of(y)])); });
      if (!reached) continue;
      for (TensorId x : n.inputs)
        if (x) needed[index_of(x)] = 1;
    }
    return needed;
  }

  struct Joined {
    Grid grid;
    bool equal = true;  // all tensors had it
  };
  std::optional<Joined> joined(const Node& n) {
    Range range;
    std::optional<Grid> first;
    bool equal = true;
    for (TensorId t : n.inputs) {
      if (!t || graph_.is_constant(t)) continue;
      if (!grid(t)) return std::nullopt;
      if (first && first->type != grid(t)->type) return std::nullopt;
      equal &= !first || *first == *grid(t);
      first = grid(t);
      range.low = std::min<double>(range.low, grid(t)->parameters.min[0]);
      range.high = std::max<double>(range.high, grid(t)->parameters.max[0]);
    }
    if (!first) return std::nullopt;
    return Joined{equal ? *first : Grid{parameters_of(range, first->type), first->type}, equal};
  }

  // A copy gives the grid of what it reads; where another one is stated, a step of its own brings the values to it.
  void separate_moves() {
    for (NodeId id : std::vector<NodeId>(graph_.order())) {
      Node n = graph_.node(id);
      if (n.op == "Identity" || !n.input(0) || !is_move(id) || !grid(n.input(0))) continue;
      const Grid before = *grid(n.input(0));
      std::vector<Node> steps;
      for (TensorId& t : n.outputs) {
        if (!t || !grid(t) || *grid(t) == before) continue;
        steps.push_back(step_after(n, t, "/moved"));
        t = steps.back().inputs[0];
        grid(t) = before;
      }
      if (steps.empty()) continue;
      graph_.replace_node(id, std::move(n));
      for (Node& step : steps) forms_.add(graph_, graph_.add_node(std::move(step)));
    }
  }

  // The stated range of a result may be its activation: converters drop a Relu where the smallest integer is zero. A layer that
  // stays in float leaves that to a step of its own.
  void round_float_results() {
    for (NodeId id : std::vector<NodeId>(graph_.order())) {
      if (forms_[id].form != Form::Float) continue;
      Node n = graph_.node(id);
      std::vector<Node> steps;
      for (TensorId& t : n.outputs)
        if (t && stated_.contains(t.index)) {
          steps.push_back(step_after(n, t, "/rounded"));
          t = steps.back().inputs[0];
        }
      if (steps.empty()) continue;
      graph_.replace_node(id, std::move(n));
      for (Node& step : steps) {
        const NodeId added = graph_.add_node(std::move(step));
        forms_.add(graph_, added);
        forms_[added] = possible_form(added);
      }
    }
  }

  // An Identity that makes `t` from a new tensor, which node `n` is to make.
  Node step_after(const Node& n, TensorId t, std::string_view suffix) {
    const Tensor described = graph_.tensor(t);
    Node step;
    step.op = "Identity";
    step.name = n.name + std::string(suffix);
    step.origin = n.origin;
    step.outputs = {t};
    step.inputs = {graph_.add_tensor(described.name + std::string(suffix), described.dtype, described.shape)};
    graph_.tensor(step.inputs[0]).layout = described.layout;
    return step;
  }

  // --- what each layer becomes
  Plan plan() {
    Plan result;
    result.integer_inputs = true;  // they are rounded even where only float layers read them
    grids_.resize(graph_.tensor_count());
    for (const std::optional<Grid>& g : grids_) {
      result.tensors.push_back(g ? std::optional(g->parameters) : std::nullopt);
      result.types.push_back(g ? g->type : DType::Int8);
    }
    result.forms = std::move(forms_);
    return result;
  }

  // Of a layer with the parameters that its tensors have.
  LayerForm possible_form(NodeId id) {
    const Node& n = graph_.node(id);
    LayerForm f = forms_[id];
    if (f.form == Form::Float) return f;
    if (n.op == "Identity" && grid(n.input(0)) && grid(n.output()) && *grid(n.input(0)) != *grid(n.output()))
      f.form = Form::Table;
    if (n.op == "Identity" && !grid(n.input(0)) && grid(n.output())) return f;  // a conversion that others read past: it rounds
    const auto stated = [&](TensorId t) { return !t || graph_.is_constant(t) || grid(t); };
    const size_t data = data_inputs(n, f.form);
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if ((i < data || i >= n.own_input_count()) && !stated(n.inputs[i]))
        return {Form::Float, "the model states no parameters for '" + graph_.tensor(n.inputs[i]).name + "'"};
    for (TensorId t : n.outputs)
      if (!stated(t)) return {Form::Float, "the model states no parameters for its result"};
    return f;
  }

  Graph& graph_;
  const OpSet& ops_;
  std::vector<size_t> parent_;
  std::vector<Group> groups_;
  std::vector<bool> was_integer_;
  std::vector<std::optional<Grid>> grids_;
  LayerForms forms_;
  std::set<int32_t> stated_;  // tensors that a conversion of the model's rounded
};
}  // namespace

Result<std::vector<LayerDecision>> use_given_parameters(Graph& graph, const OpSet& ops, const passes::Options& options,
                                                        passes::Trace* trace) {
  Plan plan;
  std::vector<LayerDecision> decisions;
  const auto read = [&](passes::Rewriter& rewriter) -> Status {
    Graph reals = rewriter.graph();
    ORKNN_TRY_ASSIGN(plan, Reader(reals, ops).run());
    return rewriter.replace_graph(std::move(reals));
  };
  ORKNN_TRY(run_steps(
      graph, ops,
      {pass_of(kReadParameters, read),
       pass_of(kRoundWeights, [&](passes::Rewriter& rewriter) { return round_layer_weights(rewriter, {}, {}, plan); }),
       pass_of(kLowerToIntegers, [&](passes::Rewriter& rewriter) { return lower_to_integers(rewriter, plan, decisions); })},
      options, trace));
  return decisions;
}

}  // namespace orknn::quantize
