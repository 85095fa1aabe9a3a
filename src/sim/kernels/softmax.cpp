// Softmax and LogSoftmax along any axis.
#include <algorithm>

#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 14;

// The tensor as [outer][count][inner], normalized over count.
struct State : KernelState {
  int64_t outer = 1, count = 1, inner = 1;
  bool logarithm = false;
};

bool accepts(const KernelQuery& q) {
  if ((q.node.op != "Softmax" && q.node.op != "LogSoftmax") || !q.node.tail.empty()) return false;
  return storage_of(q.inputs[0].dtype) && q.inputs[0].dtype == q.outputs[0].dtype && !q.inputs[0].dims.empty() &&
         ir::normalize_axis(q.node.attributes.int_or("axis", -1), static_cast<int64_t>(q.inputs[0].dims.size()));
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  const ir::Dims& dims = q.inputs[0].dims;
  const auto axis =
      static_cast<size_t>(*ir::normalize_axis(q.node.attributes.int_or("axis", -1), static_cast<int64_t>(dims.size())));
  const bool flatten = q.node.attributes.int_or("flatten", 0) != 0;
  for (size_t i = 0; i < dims.size(); ++i) (i < axis ? s->outer : i == axis || flatten ? s->count : s->inner) *= dims[i];
  s->logarithm = q.node.op == "LogSoftmax";
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  if (c.outputs[0].count() == 0) return {};
  const Forms& f = forms();
  const Storage storage = *storage_of(c.inputs[0].dtype);
  const auto bytes = static_cast<int64_t>(dtype_bytes(c.inputs[0].dtype));
  const auto* x = static_cast<const std::byte*>(c.inputs[0].data);
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  if (s.inner == 1) {
    const int64_t buffer_size = (s.count + 15) / 16 * 16, scratch_bytes = c.pool.threads() * buffer_size * 4;
    auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(scratch_bytes)));
    if (!scratch) return out_of_scratch(scratch_bytes);
    const int64_t rows = std::clamp<int64_t>(kGrain / s.count, 1, s.outer);
    for_each_job(c.pool, divide_up(s.outer, rows), [&](int64_t job, int64_t worker) {
      const int64_t row = job * rows;
      f.softmax_rows(x + row * s.count * bytes, y + row * s.count * bytes, storage, std::min(rows, s.outer - row), s.count,
                     s.logarithm, scratch + worker * buffer_size);
    });
    return {};
  }
  const int64_t columns = std::min(std::max<int64_t>(kGrain / s.count / 16 * 16, 16), s.inner),
                parts = divide_up(s.inner, columns);
  c.pool.parallel_for(s.outer * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % parts * columns, offset = (i / parts * s.count * s.inner + column) * bytes;
      f.softmax_columns(x + offset, y + offset, storage, s.count, s.inner, std::min(columns, s.inner - column), s.logarithm);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> softmax() {
  static const Kernel kernels[] = {{"softmax", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
