#include "quantize/layer_forms.h"

#include <algorithm>
#include <cmath>

#include "ir/known_dims.h"
#include "ops/facts.h"
#include "ops/support/elementwise.h"
#include "quantize/tails.h"

namespace orknn::quantize {
using namespace ir;
namespace {

QuantRule rule_of(std::string_view op) { return ops::facts_of(op).quant; }
bool is_function_op(std::string_view op) {
  const QuantRule rule = rule_of(op);
  return rule == QuantRule::Table || rule == QuantRule::Fixed01 || rule == QuantRule::Fixed11;
}

bool is_float_tensor(const Graph& g, TensorId t) { return t && g.tensor(t).dtype == DType::Float32; }
LayerForm no(std::string reason) { return {Form::Float, std::move(reason)}; }

// Operands after the first have to be constants for the form to be known ahead.
bool other_inputs_constant(const Graph& g, const Node& n) {
  for (size_t i = 1; i < n.own_input_count(); ++i)
    if (n.inputs[i] && !g.is_constant(n.inputs[i])) return false;
  return true;
}

bool is_nearest_copy(const Node& n) {
  return n.attributes.string_or("mode", "nearest") == "nearest" &&
         n.attributes.string_or("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
}

LayerForm convolution(const Graph& g, const Node& n) {
  if (!g.is_constant(n.input(1))) return no("its weights are computed");
  if (n.has_input(2) && !g.is_constant(n.input(2))) return no("its bias is computed");
  const auto x = dims_of(g, n.input(0));
  if (!x) return no("its shape is known only at run time");
  return {Form::Conv, ""};
}

LayerForm product(const Graph& g, const Node& n) {
  const auto a = dims_of(g, n.input(0)), b = dims_of(g, n.input(1));
  if (!a || !b) return no("its shape is known only at run time");
  if (a->empty() || b->size() < 2) return no("an operand is a vector");
  if (g.is_constant(n.input(0))) return no("its first operand is a constant");
  if (n.op == "Gemm") {
    if (n.attributes.int_or("transA", 0) != 0) return no("its data is transposed");
    if (!g.is_constant(n.input(1))) return no("its weights are computed");
    if (n.has_input(2)) {
      const auto c = dims_of(g, n.input(2));
      if (!g.is_constant(n.input(2)) || !c) return no("its addend is computed");
      if (!c->empty() && element_count(*c) != c->back()) return no("its addend is a matrix");
    }
  }
  return {Form::MatMul, ""};
}
}  // namespace

bool multiplies_or_divides(const Node& n) {
  const Arithmetic a = ops::facts_of(n).arithmetic;
  return a == Arithmetic::Mul || a == Arithmetic::Div;
}

bool is_function(const Graph& g, const Node& n, const TailStep& step) {
  if (step.operand < 0) return is_function_op(step.op);
  const TensorData* other = g.constant(n.inputs[static_cast<size_t>(step.operand)]);
  return other && other->dtype() == DType::Float32 && other->count() == 1 && ops::is_basic_arithmetic(step.op);
}

bool is_function(const Graph& g, const Node& n) {
  if (rule_of(n.op) == QuantRule::Slopes || rule_of(n.op) == QuantRule::Exponent) {
    const TensorData* other = g.constant(n.input(1));
    return other && other->count() == 1;
  }
  return is_function_op(n.op) && other_inputs_constant(g, n);
}

std::optional<Interval> bounds_of(const TailStep& step) {
  switch (ops::facts_of(step.op).bounds) {
    case Bounds::Zero: return Interval{0, INFINITY};
    case Bounds::Given: return Interval{step.attributes.float_or("min", -INFINITY), step.attributes.float_or("max", INFINITY)};
    case Bounds::None: break;
  }
  return std::nullopt;
}

std::optional<Slopes> slopes_of(const Graph& g, TensorId x, TensorId slope) {
  const TensorData* value = g.constant(slope);
  const auto dims = dims_of(g, x);
  if (!value || value->dtype() != DType::Float32 || !dims) return std::nullopt;
  Slopes s{to_doubles(value->view()), 1};
  if (s.values.size() == 1) return s;
  const Dims own = ops::slope_dims(*dims, value->dims());
  if (own.size() > dims->size()) return std::nullopt;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i] == 1) continue;
    const size_t axis = dims->size() - own.size() + i;
    if (own[i] != (*dims)[axis] || own[i] != value->count()) return std::nullopt;
    s.axis = static_cast<int64_t>(axis);
  }
  return s;
}

bool pads_below_all(const Graph& g, const Node& n) {
  constexpr double kLowestHalf = -65504;  // what stands for -inf in float16 models
  const bool is_constant = rule_of(n.op) == QuantRule::Padding && n.attributes.string_or("mode", "constant") == "constant";
  const TensorData* value = is_constant ? g.constant(n.input(2)) : nullptr;
  if (!value || value->count() != 1 || !(to_doubles(value->view())[0] <= kLowestHalf) || g.is_output(n.output())) return false;
  const auto users = g.users(n.output());
  return std::all_of(users.begin(), users.end(), [&](NodeId u) { return ops::facts_of(g.node(u)).takes_largest; });
}

bool has_unit_range(std::string_view op) { return rule_of(op) == QuantRule::Fixed01 || rule_of(op) == QuantRule::Softmax; }
bool has_symmetric_range(std::string_view op) { return rule_of(op) == QuantRule::Fixed11; }

std::optional<AxisRange> mean_axes(const Graph& g, const Node& n) {
  const auto dims = dims_of(g, n.input(0));
  if (!dims) return std::nullopt;
  const auto rank = static_cast<int64_t>(dims->size());
  if (ops::facts_of(n).pattern == Pattern::GlobalWindow) return AxisRange{2, rank};
  const TensorData* constant = g.constant(n.input(1));
  if (!constant || n.attributes.int_or("noop_with_empty_axes", 0) != 0) return std::nullopt;
  std::vector<int64_t> axes = to_ints(constant->view());
  if (axes.empty()) return std::nullopt;
  for (int64_t& a : axes) {
    const auto positive = normalize_axis(a, rank);
    if (!positive) return std::nullopt;
    a = *positive;
  }
  std::sort(axes.begin(), axes.end());
  if (axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size())) return std::nullopt;
  return AxisRange{axes.front(), axes.back() + 1};
}

std::optional<std::vector<AxisResize>> linear_resize(const Graph& g, const Node& n) {
  const auto from = dims_of(g, n.input(0)), to = dims_of(g, n.output());
  if (!from || !to || from->size() < 2 || from->size() != to->size() || !other_inputs_constant(g, n) || element_count(*from) == 0)
    return std::nullopt;
  const Attributes& a = n.attributes;
  if (a.string_or("mode", "nearest") != "linear" || a.int_or("antialias", 0) != 0 ||
      a.string_or("keep_aspect_ratio_policy", "stretch") != "stretch" ||
      a.string_or("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    return std::nullopt;
  std::vector<AxisResize> axes;
  for (size_t i = 0; i < from->size(); ++i) axes.push_back({(*from)[i], (*to)[i], 0});
  const TensorData* scales = n.has_input(2) ? g.constant(n.input(2)) : nullptr;
  if (scales && scales->count() > 0 && !(n.has_input(3) && g.constant(n.input(3))->count() > 0)) {
    const std::vector<double> values = to_doubles(scales->view());
    const std::vector<int64_t> named = a.ints_or("axes");
    for (size_t i = 0; i < values.size(); ++i) {
      const auto axis = named.empty() ? Result<int64_t>(static_cast<int64_t>(i))
                                      : normalize_axis(named[i < named.size() ? i : 0], static_cast<int64_t>(from->size()));
      if (!axis || *axis >= static_cast<int64_t>(axes.size())) return std::nullopt;
      axes[static_cast<size_t>(*axis)].scale = values[i];
    }
  }
  for (size_t i = 0; i + 2 < axes.size(); ++i)
    if (axes[i].from != axes[i].to || (axes[i].scale != 0 && axes[i].scale != 1)) return std::nullopt;
  return axes;
}

bool copies_values(const Graph& g, const Node& n) {
  if (!other_inputs_constant(g, n) || !n.tail.empty()) return false;
  const QuantRule rule = rule_of(n.op);
  return rule == QuantRule::SameScale || rule == QuantRule::Padding || (rule == QuantRule::Resample && is_nearest_copy(n));
}

namespace {

LayerForm arithmetic(const Graph& g, const Node& n) {
  if (n.own_input_count() != 2) return no("it does not have two operands");
  if (ops::facts_of(n).arithmetic == Arithmetic::Div && !g.is_constant(n.input(1))) return no("it divides by a computed tensor");
  if (g.is_constant(n.input(0)) && g.is_constant(n.input(1))) return no("both operands are constants");
  return {Form::Binary, ""};
}

LayerForm padding(const Graph& g, const Node& n) {
  const TensorData* value = g.constant(n.input(2));
  const bool zero = !n.has_input(2) || (value && value->count() == 1 && to_doubles(value->view())[0] == 0);
  if (!other_inputs_constant(g, n)) return no("its padding is computed");
  if (n.attributes.string_or("mode", "constant") == "constant" && !zero && !pads_below_all(g, n))
    return no("it pads with a value other than zero");
  return {Form::Move, ""};
}

LayerForm mean(const Graph& g, const Node& n) {
  const auto axes = mean_axes(g, n);
  if (!axes) return no("the axes it averages over are not neighbours");
  int64_t count = 1;
  const auto dims = dims_of(g, n.input(0));
  for (int64_t i = axes->first; i < axes->end; ++i) count *= (*dims)[static_cast<size_t>(i)];
  return count > 0 && count <= 1 << 16 ? LayerForm{Form::Mean, ""} : no("it averages too many values");
}

LayerForm form_of_operator(const Graph& g, const Node& n) {
  const OpDef& facts = ops::facts_of(n);
  for (TensorId t : n.outputs)
    if (t && !is_float_tensor(g, t)) return no("its result is not a float tensor");
  if (!is_float_tensor(g, n.input(0)) || (n.outputs.size() != 1 && facts.parts != Parts::Divided))
    return no("it does not map one float tensor to another");
  if (is_function(g, n)) return {Form::Table, ""};
  switch (facts.quant) {
    case QuantRule::Slopes:
      return slopes_of(g, n.input(0), n.input(1)) ? LayerForm{Form::PRelu, ""}
                                                  : no("its slopes are computed or not one per channel");
    case QuantRule::Compute:
      if (facts.arithmetic != Arithmetic::None) return arithmetic(g, n);
      return facts.weights == Weights::Matrix ? product(g, n) : convolution(g, n);
    case QuantRule::SharedScale: return {Form::Concat, ""};
    case QuantRule::Padding: return padding(g, n);
    case QuantRule::Resample:
      if (is_nearest_copy(n) && other_inputs_constant(g, n)) return {Form::Move, ""};
      return linear_resize(g, n) ? LayerForm{Form::Resize, ""}
                                 : no("it interpolates other than linearly between rows and columns");
    case QuantRule::SameScale:
      return other_inputs_constant(g, n) ? LayerForm{Form::Move, ""} : no("an operand that decides what it does is computed");
    case QuantRule::Average:
      return dims_of(g, n.input(0)) ? LayerForm{Form::Average, ""} : no("its shape is known only at run time");
    case QuantRule::Mean: return mean(g, n);
    case QuantRule::Softmax:
      if (n.attributes.int_or("flatten", 0) == 0) return {Form::Softmax, ""};
      break;
    default: break;
  }
  return no("there is no integer form of " + n.op);
}

}  // namespace

LayerForm form_of(const Graph& g, const Node& n) {
  const LayerForm form = form_of_operator(g, n);
  // The optimizer folds what it can; at low levels and for large results it does not.
  if (form.form != Form::Float && form.form != Form::Binary && form.form != Form::Concat && g.is_constant(n.input(0)))
    return no("its data is a constant");
  return form;
}

LayerForms::LayerForms(const Graph& graph) {
  for (NodeId id : graph.order()) add(graph, id);
}

void LayerForms::add(const Graph& graph, NodeId id) {
  if (id && forms_.size() <= static_cast<size_t>(id.index)) forms_.resize(static_cast<size_t>(id.index) + 1);
  const Node& n = graph.node(id);
  LayerForm& form = (*this)[id] = form_of(graph, n);
  if (tail_steps_taken(graph, n, form.form) != n.tail.size()) form = no("its fused steps have no integer form");
}

size_t data_inputs(const Node& n, Form form) {
  const size_t count = form == Form::Concat ? n.own_input_count() : form == Form::Binary || form == Form::MatMul ? 2 : 1;
  return std::min(count, n.own_input_count());
}

}  // namespace orknn::quantize
