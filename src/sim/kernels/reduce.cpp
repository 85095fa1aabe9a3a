// Reductions over neighbouring axes (sums, means, norms, extremes) and global pooling.
#include <algorithm>
#include <cmath>

#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 15;  // elements per piece of work

enum class Finish { None, Mean, Root };
struct Row {
  ir::Total total = ir::Total::None;
  Reduction reduction = Reduction::Sum;
  Finish finish = Finish::None;
};
constexpr Row kRows[] = {
    {ir::Total::Sum, Reduction::Sum, Finish::None},
    {ir::Total::Mean, Reduction::Sum, Finish::Mean},
    {ir::Total::Max, Reduction::Max, Finish::None},
    {ir::Total::Min, Reduction::Min, Finish::None},
    {ir::Total::SumOfMagnitudes, Reduction::SumOfMagnitudes, Finish::None},
    {ir::Total::SumOfSquares, Reduction::SumOfSquares, Finish::None},
    {ir::Total::RootOfSquares, Reduction::SumOfSquares, Finish::Root},
};

// The tensor as [outer][count][inner], reduced over count.
struct State : KernelState {
  Row row;
  int64_t outer = 1, count = 1, inner = 1;
};

std::unique_ptr<State> plan(const KernelQuery& q) {
  const Row* row = std::ranges::find(kRows, q.def.total, &Row::total);
  if (row == std::end(kRows) || !q.node.tail.empty() || !storage_of(q.inputs[0].dtype) || q.inputs[0].dtype != q.outputs[0].dtype)
    return nullptr;
  const ir::Dims& x = q.inputs[0].dims;
  std::vector<char> reduced(x.size(), 0);
  if (q.def.pattern == ir::Pattern::GlobalWindow) {
    if (x.size() < 3) return nullptr;
    std::fill(reduced.begin() + 2, reduced.end(), 1);
  } else {
    std::vector<int64_t> axes;
    if (q.node.has_input(1)) {
      if (!q.inputs[1].constant) return nullptr;
      axes = ir::to_ints(q.inputs[1].constant->view());
    }
    if (axes.empty() && q.node.attributes.int_or("noop_with_empty_axes", 0) != 0) return nullptr;
    if (axes.empty()) std::fill(reduced.begin(), reduced.end(), 1);
    for (int64_t a : axes) {
      const auto axis = ir::normalize_axis(a, static_cast<int64_t>(x.size()));
      if (!axis) return nullptr;
      reduced[static_cast<size_t>(*axis)] = 1;
    }
  }
  auto s = std::make_unique<State>();
  s->row = *row;
  // 0 before, 1 inside, 2 after the reduced axes; a second group of reduced axes is not for this kernel.
  int place = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 1) continue;
    if (reduced[i]) {
      if (place == 2) return nullptr;
      place = 1;
      s->count *= x[i];
    } else {
      if (place == 1) place = 2;
      (place == 0 ? s->outer : s->inner) *= x[i];
    }
  }
  return s->count > 0 && s->outer > 0 && s->inner > 0 ? std::move(s) : nullptr;
}

bool accepts(const KernelQuery& q) { return plan(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan(q));
}

double finish(const State& s, double total) {
  if (s.row.finish == Finish::Mean) return total / static_cast<double>(s.count);
  return s.row.finish == Finish::Root ? std::sqrt(total) : total;
}

void put(const ir::MutableTensorView& y, int64_t i, double value) {
  if (y.dtype == DType::Float16)
    y.as<Half>()[i] = Half(static_cast<float>(value));
  else
    y.as<float>()[i] = static_cast<float>(value);
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Forms& f = forms();
  const Storage storage = *storage_of(c.inputs[0].dtype);
  const auto bytes = static_cast<int64_t>(dtype_bytes(c.inputs[0].dtype));
  const auto* x = static_cast<const std::byte*>(c.inputs[0].data);
  if (s.inner == 1) {
    c.pool.parallel_for(s.outer, std::max<int64_t>(1, kGrain / s.count), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        put(c.outputs[0], i, finish(s, f.reduce_row(s.row.reduction, x + i * s.count * bytes, storage, s.count)));
    });
    return {};
  }
  constexpr int64_t kColumns = 256;
  const int64_t parts = divide_up(s.inner, kColumns);
  c.pool.parallel_for(s.outer * parts, std::max<int64_t>(1, kGrain / (s.count * std::min(kColumns, s.inner))),
                      [&](int64_t begin, int64_t end) {
                        alignas(64) float values[kColumns];
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t column = i % parts * kColumns, columns = std::min(kColumns, s.inner - column);
                          f.reduce_columns(s.row.reduction, x + (i / parts * s.count * s.inner + column) * bytes, storage,
                                           s.count, s.inner, columns, values);
                          for (int64_t k = 0; k < columns; ++k)
                            put(c.outputs[0], i / parts * s.inner + column + k, finish(s, static_cast<double>(values[k])));
                        }
                      });
  return {};
}
}  // namespace

std::span<const Kernel> reduce() {
  static const Kernel kernels[] = {{"reduce", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
