// Einsum: sums of products of any operands, named by index letters. Operands are contracted from left to right, two at a
// time, so that the work never grows to the product of all extents.
#include <algorithm>
#include <map>

#include "ops/support/matrix.h"
#include "ops/support/window.h"

namespace orknn::ops {
namespace {
using namespace ir;

// A letter, or an axis of the ellipsis counted from its end (above all letters).
using Label = int;
constexpr Label kEllipsis = 1000;
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

Status bad_equation(const std::string& equation, const std::string& problem) {
  return invalid_model("equation " + problem).found("'" + equation + "'");
}

// A term as written: letters, and kEllipsis once where "..." stands.
Result<Labels> read_term(const std::string& equation, std::string_view term) {
  Labels out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      if (term.substr(i, 3) != "..." || std::count(out.begin(), out.end(), kEllipsis)) return bad_equation(equation, "has a misplaced dot");
      out.push_back(kEllipsis);
      i += 2;
    } else if ((term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z')) {
      out.push_back(term[i]);
    } else {
      return bad_equation(equation, "has a character that is no letter");
    }
  }
  return out;
}

// Puts one label per axis in the place of kEllipsis.
Labels expand(const Labels& term, size_t axes) {
  Labels out;
  for (Label l : term) {
    if (l != kEllipsis) out.push_back(l);
    else
      for (size_t i = 0; i < axes; ++i) out.push_back(kEllipsis + static_cast<Label>(axes - i));
  }
  return out;
}

// The terms as written; without "->" the output is every letter that occurs once, sorted, after the ellipsis.
Result<Equation> read_equation(const std::string& text) {
  std::string equation = text;
  std::erase_if(equation, [](char c) { return c == ' ' || c == '\t'; });
  const size_t arrow = equation.find("->");
  const std::string_view left = std::string_view(equation).substr(0, arrow);
  Equation e;
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    ORKNN_TRY_ASSIGN(Labels term, read_term(text, left.substr(begin, end - begin)));
    e.inputs.push_back(std::move(term));
    begin = end + 1;
  }
  if (arrow != std::string::npos) {
    ORKNN_TRY_ASSIGN(e.output, read_term(text, std::string_view(equation).substr(arrow + 2)));
    for (Label l : e.output)
      if (std::count(e.output.begin(), e.output.end(), l) > 1) return bad_equation(text, "repeats an index of the output");
    return e;
  }
  std::map<Label, int> uses;
  for (const Labels& term : e.inputs)
    for (Label l : term) ++uses[l];
  if (uses.contains(kEllipsis)) e.output.push_back(kEllipsis);
  for (const auto& [label, count] : uses)
    if (count == 1 && label != kEllipsis) e.output.push_back(label);
  return e;
}

struct Plan {
  Equation equation;           // ellipses expanded
  std::map<Label, Dim> dims;
};

Result<Plan> make_plan(const NodeReader& node, std::span<const Shape> shapes) {
  const std::string& text = node.get_string("equation");
  ORKNN_TRY_ASSIGN(Equation e, read_equation(text));
  if (e.inputs.size() != shapes.size())
    return bad_equation(text, "has the wrong number of terms").expected(std::to_string(shapes.size()));
  Plan plan;
  size_t ellipsis_axes = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Labels& term = e.inputs[i];
    const bool ellipsis = std::count(term.begin(), term.end(), kEllipsis) > 0;
    const size_t letters = term.size() - (ellipsis ? 1 : 0);
    if (shapes[i].size() < letters || (!ellipsis && shapes[i].size() != letters))
      return shape_mismatch("operand " + std::to_string(i) + " does not fit its term in '" + text + "'").expected("rank " + std::to_string(letters)).found(to_string(shapes[i]));
    if (ellipsis) ellipsis_axes = std::max(ellipsis_axes, shapes[i].size() - letters);
    const Labels labels = expand(term, shapes[i].size() - letters);
    for (size_t k = 0; k < labels.size(); ++k) {
      const Dim& d = shapes[i][k];
      const auto [at, fresh] = plan.dims.try_emplace(labels[k], d);
      if (fresh || at->second == d) continue;
      if (at->second.is_known() && d.is_known() && at->second.value() != 1 && d.value() != 1)
        return shape_mismatch("an index of '" + text + "' has two extents").expected(at->second.to_string()).found(d.to_string());
      if (!at->second.is_known() ? d.is_known() && d.value() != 1 : at->second.value() == 1) at->second = d;
    }
    plan.equation.inputs.push_back(labels);
  }
  plan.equation.output = expand(e.output, ellipsis_axes);
  for (Label l : plan.equation.output)
    if (!plan.dims.contains(l)) return bad_equation(text, "has an output index that no operand has");
  return plan;
}

Status infer(InferContext& c) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) return invalid_model("input " + std::to_string(i) + " is required but absent");
    if (c.dtype(i) != c.dtype(0) || c.dtype(i) == DType::Bool)
      return invalid_model("operands need one numeric type").expected(std::string(dtype_name(c.dtype(0)))).found(std::string(dtype_name(c.dtype(i))));
    if (c.shape(i)) shapes.push_back(*c.shape(i));
  }
  std::optional<Shape> out;
  if (shapes.size() == c.input_count()) {
    ORKNN_TRY_ASSIGN(const Plan plan, make_plan(c, shapes));
    out.emplace();
    for (Label l : plan.equation.output) out->push_back(plan.dims.at(l));
  } else {
    ORKNN_TRY_ASSIGN(const Equation e, read_equation(c.get_string("equation")));
    if (!std::count(e.output.begin(), e.output.end(), kEllipsis)) out = Shape(e.output.size());
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

// An operand: extents and strides per label. Stride 0 repeats an extent of 1; a label on two axes walks the diagonal.
template <class A>
struct Operand {
  std::map<Label, int64_t> strides;
  std::vector<A> values;
  int64_t stride(Label l) const {
    const auto it = strides.find(l);
    return it == strides.end() ? 0 : it->second;
  }
};

template <class A, class T>
Result<Operand<A>> load(const TensorView& t, const Labels& labels, const std::map<Label, int64_t>& extents) {
  Operand<A> out;
  const Dims strides = strides_of(t.dims);
  for (size_t i = 0; i < labels.size(); ++i) {
    int64_t& s = out.strides[labels[i]];
    if (t.dims[i] == extents.at(labels[i])) s += t.dims[i] == 1 ? 0 : strides[i];
  }
  out.values.reserve(static_cast<size_t>(t.count()));
  for (T v : t.values<T>()) out.values.push_back(static_cast<A>(v));
  return out;
}

// Sums a (times b, if given) over every label that is not in `keep`; the result is dense in the order of `keep`.
template <class A>
Result<Operand<A>> contract(ThreadPool& pool, const Operand<A>& a, const Operand<A>* b, const Labels& keep, const std::map<Label, int64_t>& extents) {
  Labels summed;
  for (const Operand<A>* operand : {&a, b})
    for (const auto& [label, stride] : operand ? operand->strides : std::map<Label, int64_t>())
      if (!std::count(keep.begin(), keep.end(), label) && !std::count(summed.begin(), summed.end(), label)) summed.push_back(label);
  // The label with the smallest steps runs innermost.
  std::stable_sort(summed.begin(), summed.end(), [&](Label x, Label y) {
    return a.stride(x) + (b ? b->stride(x) : 0) > a.stride(y) + (b ? b->stride(y) : 0);
  });
  Dims keep_dims, sum_dims;
  for (Label l : keep) keep_dims.push_back(extents.at(l));
  for (Label l : summed) sum_dims.push_back(extents.at(l));
  if (sum_dims.empty()) {
    summed.push_back(0);  // a label nobody has: one term
    sum_dims.push_back(1);
  }
  ORKNN_TRY_ASSIGN(const int64_t total, checked_element_count(keep_dims));
  const int64_t inner = sum_dims.back(), a_step = a.stride(summed.back()), b_step = b ? b->stride(summed.back()) : 0;
  const std::span<const int64_t> outer_dims(sum_dims.data(), sum_dims.size() - 1);
  const bool empty = element_count(sum_dims) == 0;
  Operand<A> out;
  out.values.resize(static_cast<size_t>(total));
  const Dims strides = strides_of(keep_dims);
  for (size_t i = 0; i < keep.size(); ++i) out.strides[keep[i]] = keep_dims[i] == 1 ? 0 : strides[i];
  pool.parallel_for(empty ? 0 : total, 256, [&](int64_t begin, int64_t end) {
    Dims at(outer_dims.size());
    for (int64_t o = begin; o < end; ++o) {
      int64_t a_base = 0, b_base = 0;
      for (size_t i = 0; i < keep.size(); ++i) {
        const int64_t index = o / strides[i] % keep_dims[i];
        a_base += index * a.stride(keep[i]);
        if (b) b_base += index * b->stride(keep[i]);
      }
      A sum{};
      std::fill(at.begin(), at.end(), 0);
      do {
        int64_t a_at = a_base, b_at = b_base;
        for (size_t i = 0; i < at.size(); ++i) {
          a_at += at[i] * a.stride(summed[i]);
          if (b) b_at += at[i] * b->stride(summed[i]);
        }
        const A* x = a.values.data() + a_at;
        if (b) {
          const A* y = b->values.data() + b_at;
          for (int64_t k = 0; k < inner; ++k) sum += x[k * a_step] * y[k * b_step];
        } else {
          for (int64_t k = 0; k < inner; ++k) sum += x[k * a_step];
        }
      } while (next_index(at, outer_dims));
      out.values[static_cast<size_t>(o)] = sum;
    }
  });
  return out;
}

Status run(RunContext& c) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < c.input_count(); ++i) shapes.push_back(to_shape(c.input(i).dims));
  ORKNN_TRY_ASSIGN(const Plan plan, make_plan(c, shapes));
  const Equation& e = plan.equation;
  std::map<Label, int64_t> extents{{0, 1}};
  for (const auto& [label, dim] : plan.dims) extents[label] = dim.value();
  Dims dims;
  for (Label l : e.output) dims.push_back(extents.at(l));
  const DType type = c.input(0).dtype;
  return visit_dtype(type, [&]<class T>(TypeTag<T>) -> Status {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, bool>) {
      return unsupported("element type is not supported").found(std::string(dtype_name(type)));
    } else {
      using A = ProductSum<T>;
      ORKNN_TRY_ASSIGN(Operand<A> current, (load<A, T>(c.input(0), e.inputs[0], extents)));
      const size_t count = e.inputs.size();
      for (size_t i = 1; i < count; ++i) {
        ORKNN_TRY_ASSIGN(const Operand<A> next, (load<A, T>(c.input(i), e.inputs[i], extents)));
        Labels keep = e.output;
        if (i + 1 < count) {
          // Kept: what the output or a later operand names.
          keep.clear();
          for (const Operand<A>* operand : {&std::as_const(current), &next})
            for (const auto& [label, stride] : operand->strides) {
              bool needed = std::count(e.output.begin(), e.output.end(), label) > 0;
              for (size_t k = i + 1; k < count; ++k) needed |= std::count(e.inputs[k].begin(), e.inputs[k].end(), label) > 0;
              if (needed && !std::count(keep.begin(), keep.end(), label)) keep.push_back(label);
            }
        }
        ORKNN_TRY_ASSIGN(current, contract(c.pool, current, &next, keep, extents));
      }
      if (count == 1) {
        ORKNN_TRY_ASSIGN(current, contract<A>(c.pool, current, nullptr, e.output, extents));
      }
      ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, dims));
      std::transform(current.values.begin(), current.values.end(), y.as<T>(), [](A v) { return static_cast<T>(v); });
      return {};
    }
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  std::vector<Shape> shapes;
  for (const Dims& d : inputs) shapes.push_back(to_shape(d));
  const auto plan = make_plan(node, shapes);
  if (!plan) return {};
  Dim work = 1;
  for (const auto& [label, dim] : plan->dims) work = work * dim;
  return {.macs = work.is_known() ? work.value() : 0};
}
}  // namespace

std::span<const OpDef> einsum() {
  static const OpDef def{.name = "Einsum", .summary = "sums of products named by index letters", .inputs = {1, Arity::kMany},
                         .attributes = {required(attr_string("equation"))}, .infer = infer, .run = run, .quant = QuantRule::Compute,
                         .cost = cost, .engine = Engine::MatMul};
  return {&def, 1};
}
}  // namespace orknn::ops
