// Softmax, LogSoftmax and Hardmax along one axis; with `flatten` along all axes from `axis` on together.
#include <cmath>
#include <limits>

#include "ops/support/elementwise.h"
#include "ops/support/floating.h"
#include "ops/support/moments.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  if (const Shape* x = c.shape(0); x && !(x->empty() && c.get_int("axis") == -1)) {  // a single number is a row of its own
    // With `flatten` an axis equal to the rank is legal: every element is a row of its own.
    const auto rank = static_cast<int64_t>(x->size());
    if (c.get_int("flatten") == 0 || c.get_int("axis") != rank) ORKNN_TRY(normalize_axis(c.get_int("axis"), rank).status());
  }
  return same_as_input(c);
}

// line(values, results) with both as std::span<double>.
template <class Line>
Status run(RunContext& c, Line&& line) {
  const TensorView x = c.input(0);
  AxisSplit split;
  if (x.rank() > 0 && c.get_int("axis") == x.rank()) {
    split = {x.count(), 1, 1};
  } else if (x.rank() > 0) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), x.rank()));
    split = split_at(x.dims, axis);
    if (c.get_int("flatten") != 0) split = {split.outer, split.extent * split.inner, 1};
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    c.pool.parallel_for(split.outer * split.inner, 64, [&](int64_t begin, int64_t end) {
      std::vector<double> values(static_cast<size_t>(split.extent)), results(values.size());
      for (int64_t item = begin; item < end; ++item) {
        const int64_t start = item / split.inner * split.extent * split.inner + item % split.inner;
        for (int64_t i = 0; i < split.extent; ++i)
          values[static_cast<size_t>(i)] = static_cast<double>(x.as<T>()[start + i * split.inner]);
        line(std::span<const double>(values), std::span<double>(results));
        for (int64_t i = 0; i < split.extent; ++i)
          y.as<T>()[start + i * split.inner] = static_cast<T>(results[static_cast<size_t>(i)]);
      }
    });
    return Status();
  });
}

Status run_softmax(RunContext& c) {
  return run(c, [](std::span<const double> x, std::span<double> y) {
    if (x.empty()) return;
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += y[i] = std::exp(x[i] - top);
    for (double& v : y) v /= sum;
  });
}

Status run_log_softmax(RunContext& c) {
  return run(c, [](std::span<const double> x, std::span<double> y) {
    if (x.empty()) return;
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (double v : x) sum += std::exp(v - top);
    const double log_sum = std::log(sum);
    for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] - top - log_sum;
  });
}

Status run_hardmax(RunContext& c) {
  return run(c, [](std::span<const double> x, std::span<double> y) {
    const auto top = std::max_element(x.begin(), x.end()) - x.begin();
    for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<std::ptrdiff_t>(i) == top ? 1 : 0;
  });
}

OpCost cost(const NodeReader&, std::span<const Dims>, std::span<const Dims> outputs) {
  return {.element_ops = 4 * element_count(outputs[0])};
}

OpDef make(std::string_view name, std::string_view summary, RunFn run, QuantRule quant, Engine engine, NpuFacts npu, CpuFacts cpu,
           Work work) {
  return {.name = name,
          .summary = summary,
          .attributes = {axes_of_input(attr_int("axis", -1)), attr_int("flatten", 0)},
          .infer = infer,
          .run = run,
          .quant = quant,
          .cost = cost,
          .engine = engine,
          .axes = AxisNames::Attribute,
          .npu = npu,
          .cpu = cpu,
          .work = work};
}
}  // namespace

std::span<const OpDef> softmax() {
  static const OpDef defs[] = {
      make("Softmax", "exp(x) divided by its sum along an axis", run_softmax, QuantRule::Softmax, Engine::Norm,
           {.form = NpuForm::Softmax, .listed_as = "exSoftmax13"}, {CpuList::AllChips, CpuLimit::OneSample}, Work::Softmax),
      make("LogSoftmax", "logarithm of Softmax", run_log_softmax, QuantRule::Float, Engine::Norm, {},
           {CpuList::LargeChips, CpuLimit::OneSample}, Work::Softmax),
      make("Hardmax", "1 at the first greatest element along an axis, else 0", run_hardmax, QuantRule::Float, Engine::None,
           {.form = NpuForm::Hardmax}, {}, Work::AllElements),
  };
  return defs;
}
}  // namespace orknn::ops
