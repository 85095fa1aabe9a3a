// Reductions over a set of axes. Axes come as an optional input; floats are accumulated in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/broadcast_ops.h"
#include "ops/support/copies.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Which axes are reduced. No axes given means all, or none when noop_with_empty_axes is set.
Result<Scratch<char>> reduced_axes(std::span<const int64_t> axes, int64_t rank, bool noop) {
  Scratch<char> reduced(static_cast<size_t>(rank), axes.empty() && !noop);
  for (int64_t a : axes) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(a, rank));
    reduced[static_cast<size_t>(axis)] = 1;
  }
  return reduced;
}

template <class Extents>
Extents reduced_shape(const Extents& dims, const Scratch<char>& reduced, bool keep) {
  Extents out;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i])
      out.push_back(dims[i]);
    else if (keep)
      out.emplace_back(1);
  }
  return out;
}

// The elements that make one output element lie at outer[k] + i * stride.
struct Cells {
  ScratchDims outer{0};
  int64_t inner = 1, stride = 1;
  int64_t count() const { return static_cast<int64_t>(outer.size()) * inner; }
  template <class T, class F>
  void each(const T* base, F&& f) const {
    for (const int64_t offset : outer)
      for (int64_t i = 0; i < inner; ++i) f(base[offset + i * stride]);
  }
};

struct Plan {
  ScratchDims kept, kept_strides;  // axes that stay, with their strides in the input
  Cells cells;
  int64_t start(int64_t out) const {
    int64_t at = 0;
    for (size_t i = kept.size(); i-- > 0;) {
      at += out % kept[i] * kept_strides[i];
      out /= kept[i];
    }
    return at;
  }
};

Plan make_plan(std::span<const int64_t> dims, const Scratch<char>& reduced) {
  Plan plan;
  const ScratchDims strides = scratch_strides(dims);
  ScratchDims extents, steps;  // reduced axes, neighbours joined
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    ScratchDims& e = reduced[i] ? extents : plan.kept;
    ScratchDims& s = reduced[i] ? steps : plan.kept_strides;
    if (!e.empty() && s.back() == strides[i] * dims[i]) {
      e.back() *= dims[i];
      s.back() = strides[i];
    } else {
      e.push_back(dims[i]);
      s.push_back(strides[i]);
    }
  }
  if (extents.empty()) return plan;
  plan.cells.inner = extents.back();
  plan.cells.stride = steps.back();
  for (size_t i = 0; i + 1 < extents.size(); ++i) {
    ScratchDims next;
    for (const int64_t offset : plan.cells.outer)
      for (int64_t k = 0; k < extents[i]; ++k) next.push_back(offset + k * steps[i]);
    plan.cells.outer = std::move(next);
  }
  return plan;
}

bool allows_bool(DType t) { return is_arithmetic(t) || t == DType::Bool; }

template <bool (*allowed)(DType)>
Status infer(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, allowed, "a number type of at least 8 bits"));
  if (c.has_input(1))
    ORKNN_TRY(check_type(
        c, 1, [](DType t) { return t == DType::Int64; }, "int64 axes"));
  const bool keep = c.get_int("keepdims") != 0, noop = c.get_int("noop_with_empty_axes") != 0;
  const Shape* x = c.shape(0);
  const std::optional<std::vector<int64_t>> axes = c.has_input(1) ? c.ints(1) : std::vector<int64_t>{};
  if (!x || !axes) {
    std::optional<Shape> shape;
    if (x && keep) shape.emplace(x->size());
    c.set_output(0, c.dtype(0), std::move(shape));
    return {};
  }
  ORKNN_TRY_ASSIGN(const Scratch<char> reduced, reduced_axes(*axes, static_cast<int64_t>(x->size()), noop));
  c.set_output(0, c.dtype(0), reduced_shape(*x, reduced, keep));
  return {};
}

// The elements of a shape are often multiplied or added up.
template <bool product>
Status infer_shape_total(InferContext& c) {
  ORKNN_TRY(infer<is_arithmetic>(c));
  const Shape* x = c.shape(0);
  if (!is_integer(c.dtype(0)) || !x || x->size() != 1 || !c.output(0).shape) return {};
  const bool all =
      c.output(0).shape->empty() || (c.output(0).shape->front().is_known() && c.output(0).shape->front().value() == 1);
  const std::optional<std::vector<Dim>> content =
      all && x->front().is_known() && x->front().value() <= 64 ? c.content(0) : std::nullopt;
  if (!content) return {};
  Dim total = product ? 1 : 0;
  for (const Dim& d : *content) total = product ? total * d : total + d;
  c.set_content(0, {total});
  return {};
}

struct Job {
  TensorView x;
  MutableTensorView y;
  Plan plan;
};

Result<Job> prepare(RunContext& c) {
  Job job;
  job.x = c.input(0);
  const ScratchDims axes = c.has_input(1) ? scratch_ints(c.input(1)) : ScratchDims{};
  ORKNN_TRY_ASSIGN(const Scratch<char> reduced, reduced_axes(axes, job.x.rank(), c.get_int("noop_with_empty_axes") != 0));
  const ScratchDims dims = scratch_dims(job.x.dims);
  ORKNN_TRY_ASSIGN(job.y, c.output(0, job.x.dtype, reduced_shape(dims, reduced, c.get_int("keepdims") != 0)));
  job.plan = make_plan(dims, reduced);
  return job;
}

// y[i] = f(cells, first element) for each output element.
template <class T, class Y, class F>
void for_outputs(ThreadPool& pool, const Plan& plan, const T* x, Y* y, int64_t n, F&& f) {
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, plan.cells.count()));
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<Y>(f(plan.cells, x + plan.start(i)));
  });
}

// Greatest or least; NaN wins. An empty set gives the value that never wins.
template <class F>
Status run_extreme(RunContext& c) {
  constexpr bool greatest = std::is_same_v<F, NanMax>;
  ORKNN_TRY_ASSIGN(const Job job, prepare(c));
  const bool boolean = job.x.dtype == DType::Bool;  // stored as 0 and 1
  visit_arithmetic(boolean ? DType::UInt8 : job.x.dtype, [&]<class T>(TypeTag<T>) {
    using Limits = std::numeric_limits<T>;
    T empty = greatest ? Limits::lowest() : Limits::max();
    if constexpr (Limits::has_infinity) empty = greatest ? -Limits::infinity() : Limits::infinity();
    if (boolean) empty = greatest ? 0 : 1;
    for_outputs(c.pool, job.plan, job.x.as<T>(), job.y.as<T>(), job.y.count(), [&](const Cells& cells, const T* base) {
      T best = empty;
      cells.each(base, [&](T v) { best = F{}(best, v); });
      return best;
    });
  });
  return {};
}

// `F` computes one result from cells of float, double or int64 (narrower integers are widened first).
template <class F>
Status run_total(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Job job, prepare(c));
  const int64_t n = job.y.count();
  if (is_float(job.x.dtype)) {
    visit_real(job.x.dtype, [&]<class T>(TypeTag<T>) { for_outputs(c.pool, job.plan, job.x.as<T>(), job.y.as<T>(), n, F{}); });
    return {};
  }
  const TensorData wide = convert(job.x, DType::Int64);
  TensorData result = TensorData::allocate(DType::Int64, Dims(job.y.dims.begin(), job.y.dims.end()));
  for_outputs(c.pool, job.plan, wide.as<int64_t>(), static_cast<int64_t*>(result.mutable_data()), n, F{});
  convert_elements(result.view(), job.y);
  return {};
}

// The whole-number part of a real result; beyond the type it is not defined, but must not trap.
template <class T>
T from_real(double v) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(v);
  else
    return v != v || std::abs(v) >= 9.2e18 ? T(0) : static_cast<T>(v);
}
template <class T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

struct Sum {
  template <class T>
  T operator()(const Cells& cells, const T* base) const {
    Accumulator<T> sum = 0;
    cells.each(base, [&](T v) { sum += static_cast<Accumulator<T>>(v); });
    return static_cast<T>(sum);
  }
};
struct Product {
  template <class T>
  T operator()(const Cells& cells, const T* base) const {
    Accumulator<T> product = 1;
    cells.each(base, [&](T v) { product *= static_cast<Accumulator<T>>(v); });
    return static_cast<T>(product);
  }
};
struct Mean {
  template <class T>
  T operator()(const Cells& cells, const T* base) const {
    const int64_t n = cells.count();
    if constexpr (std::is_floating_point_v<T>) {
      double sum = 0;
      cells.each(base, [&](T v) { sum += static_cast<double>(v); });
      return static_cast<T>(sum / static_cast<double>(n));
    } else {
      return n ? Sum{}(cells, base) / n : 0;
    }
  }
};
struct L1 {
  template <class T>
  T operator()(const Cells& cells, const T* base) const {
    Accumulator<T> sum = 0;
    cells.each(base, [&](T v) { sum += v < 0 ? -static_cast<Accumulator<T>>(v) : static_cast<Accumulator<T>>(v); });
    return static_cast<T>(sum);
  }
};
struct SumSquare {
  template <class T>
  T operator()(const Cells& cells, const T* base) const {
    Accumulator<T> sum = 0;
    cells.each(base, [&](T v) { sum += static_cast<Accumulator<T>>(v) * static_cast<Accumulator<T>>(v); });
    return static_cast<T>(sum);
  }
};
struct L2 {
  template <class T>
  T operator()(const Cells& cells, const T* base) const {
    double sum = 0;
    cells.each(base, [&](T v) { sum += static_cast<double>(v) * static_cast<double>(v); });
    return from_real<T>(std::sqrt(sum));
  }
};
struct LogSum {
  template <class T>
  T operator()(const Cells& cells, const T* base) const {
    double sum = 0;
    cells.each(base, [&](T v) { sum += static_cast<double>(v); });
    return from_real<T>(std::log(sum));
  }
};
struct LogSumExp {
  template <class T>
  T operator()(const Cells& cells, const T* base) const {
    double greatest = -std::numeric_limits<double>::infinity();
    cells.each(base, [&](T v) { greatest = NanMax{}(greatest, static_cast<double>(v)); });
    if (std::isinf(greatest)) return from_real<T>(greatest);
    double sum = 0;
    cells.each(base, [&](T v) { sum += std::exp(static_cast<double>(v) - greatest); });
    return from_real<T>(greatest + std::log(sum));
  }
};

// One op over the number of input elements.
OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims>) {
  return {.element_ops = inputs.empty() ? 0 : element_count(inputs[0])};
}

// Mean, sum, largest or smallest of one element each.
int copied(const InferContext& c) {
  const auto dims = c.shape(0) ? to_dims(*c.shape(0)) : std::nullopt;
  if (!dims || !keeps_shape(c, 0) || (c.node().has_input(1) && !c.constant(1))) return kNoCopy;
  const auto rank = static_cast<int64_t>(dims->size());
  std::vector<int64_t> axes;
  if (c.node().has_input(1)) axes = to_ints(c.constant(1)->view());
  if (axes.empty() && c.get_int("noop_with_empty_axes") == 0)
    return std::all_of(dims->begin(), dims->end(), [](int64_t d) { return d == 1; }) ? 0 : kNoCopy;
  const auto is_single = [&](int64_t a) {
    return a >= -rank && a < rank && (*dims)[static_cast<size_t>(a < 0 ? a + rank : a)] == 1;
  };
  return std::all_of(axes.begin(), axes.end(), is_single) ? 0 : kNoCopy;
}

OpDef define(std::string_view name, std::string_view summary, RunFn run, Total total, InferFn infer_fn = infer<is_arithmetic>,
             QuantRule quant = QuantRule::Float, CpuFacts cpu = {}, CopyFn copied_input = nullptr) {
  return {.name = name,
          .summary = summary,
          .inputs = {1, 2},
          .attributes = {attr_int("keepdims", 1), attr_int("noop_with_empty_axes", 0)},
          .infer = infer_fn,
          .run = run,
          .quant = quant,
          .cost = cost,
          .pattern = Pattern::Reduce,
          .axes = AxisNames::Input1,
          .total = total,
          .copied_input = copied_input,
          .cpu = cpu};
}

OpDef mean() {
  OpDef def = define("ReduceMean", "mean", run_total<Mean>, Total::Mean, infer<is_arithmetic>, QuantRule::Mean,
                     {CpuList::LargeChips, CpuLimit::FourDimensions}, copied);
  def.keeps_range = true;
  def.npu = {.form = NpuForm::ChannelSum, .listed_as = "Conv"};
  return def;
}
OpDef sum() {
  OpDef def = define("ReduceSum", "sum", run_total<Sum>, Total::Sum, infer_shape_total<false>, QuantRule::Float,
                     {CpuList::LargeChips, CpuLimit::FourDimensions}, copied);
  def.npu = {.form = NpuForm::ChannelSum, .listed_as = "Conv"};
  return def;
}
}  // namespace

std::span<const OpDef> reduce() {
  static const OpDef defs[] = {
      define("ReduceL1", "sum of magnitudes", run_total<L1>, Total::SumOfMagnitudes),
      define("ReduceL2", "square root of the sum of squares", run_total<L2>, Total::RootOfSquares, infer<is_arithmetic>,
             QuantRule::Float, {CpuList::AllChips}),
      define("ReduceLogSum", "logarithm of the sum", run_total<LogSum>, Total::None),
      define("ReduceLogSumExp", "logarithm of the sum of exponentials", run_total<LogSumExp>, Total::None),
      define("ReduceMax", "greatest element", run_extreme<NanMax>, Total::Max, infer<allows_bool>, QuantRule::SameScale,
             {CpuList::AllChips, CpuLimit::FourDimensions}, copied),
      mean(),
      define("ReduceMin", "least element", run_extreme<NanMin>, Total::Min, infer<allows_bool>, QuantRule::SameScale,
             {CpuList::LargeChips, CpuLimit::FourDimensions}, copied),
      define("ReduceProd", "product", run_total<Product>, Total::None, infer_shape_total<true>),
      sum(),
      define("ReduceSumSquare", "sum of squares", run_total<SumSquare>, Total::SumOfSquares),
  };
  return defs;
}
}  // namespace orknn::ops
