// Einsum: sums of products of any operands, named by index letters. Operands are contracted from left to right, two at a
// time, so that the work never grows to the product of all extents.
#include <algorithm>
#include <map>

#include "ops/support/einsum_equation.h"
#include "ops/support/matrix.h"
#include "ops/support/window.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) return invalid_model("input " + std::to_string(i) + " is required but absent");
    if (c.dtype(i) != c.dtype(0) || c.dtype(i) == DType::Bool)
      return invalid_model("operands need one numeric type")
          .expected(std::string(dtype_name(c.dtype(0))))
          .found(std::string(dtype_name(c.dtype(i))));
    if (c.shape(i)) shapes.push_back(*c.shape(i));
  }
  std::optional<Shape> out;
  if (shapes.size() == c.input_count()) {
    ORKNN_TRY_ASSIGN(const EinsumPlan plan, plan_einsum(c, shapes));
    out.emplace();
    for (EinsumLabel l : plan.equation.output) out->push_back(plan.dims.at(l));
  } else {
    ORKNN_TRY_ASSIGN(const EinsumEquation e, read_einsum(c.get_string("equation")));
    if (!std::count(e.output.begin(), e.output.end(), kEllipsis)) out = Shape(e.output.size());
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

// An operand: extents and strides per label. Stride 0 repeats an extent of 1; a label on two axes walks the diagonal.
template <class A>
struct Operand {
  std::map<EinsumLabel, int64_t> strides;
  std::vector<A> values;
  int64_t stride(EinsumLabel l) const {
    const auto it = strides.find(l);
    return it == strides.end() ? 0 : it->second;
  }
};

template <class A, class T>
Result<Operand<A>> load(const TensorView& t, const EinsumLabels& labels, const std::map<EinsumLabel, int64_t>& extents) {
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
Result<Operand<A>> contract(ThreadPool& pool, const Operand<A>& a, const Operand<A>* b, const EinsumLabels& keep,
                            const std::map<EinsumLabel, int64_t>& extents) {
  EinsumLabels summed;
  for (const Operand<A>* operand : {&a, b})
    for (const auto& [label, stride] : operand ? operand->strides : std::map<EinsumLabel, int64_t>())
      if (!std::count(keep.begin(), keep.end(), label) && !std::count(summed.begin(), summed.end(), label))
        summed.push_back(label);
  // The label with the smallest steps runs innermost.
  std::stable_sort(summed.begin(), summed.end(), [&](EinsumLabel x, EinsumLabel y) {
    return a.stride(x) + (b ? b->stride(x) : 0) > a.stride(y) + (b ? b->stride(y) : 0);
  });
  Dims keep_dims, sum_dims;
  for (EinsumLabel l : keep) keep_dims.push_back(extents.at(l));
  for (EinsumLabel l : summed) sum_dims.push_back(extents.at(l));
  if (sum_dims.empty()) {
    summed.push_back(0);  // an unused label: one term
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
  ORKNN_TRY_ASSIGN(const EinsumPlan plan, plan_einsum(c, shapes));
  const EinsumEquation& e = plan.equation;
  std::map<EinsumLabel, int64_t> extents{{0, 1}};
  for (const auto& [label, dim] : plan.dims) extents[label] = dim.value();
  Dims dims;
  for (EinsumLabel l : e.output) dims.push_back(extents.at(l));
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
        EinsumLabels keep = e.output;
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
  const auto plan = plan_einsum(node, shapes);
  if (!plan) return {};
  Dim work = 1;
  for (const auto& [label, dim] : plan->dims) work = work * dim;
  return {.macs = work.is_known() ? work.value() : 0};
}
}  // namespace

std::span<const OpDef> einsum() {
  static const OpDef def{.name = "Einsum",
                         .summary = "sums of products named by index letters",
                         .inputs = {1, Arity::kMany},
                         .attributes = {required(attr_string("equation"))},
                         .infer = infer,
                         .run = run,
                         .cost = cost,
                         .engine = Engine::MatMul};
  return {&def, 1};
}
}  // namespace orknn::ops
