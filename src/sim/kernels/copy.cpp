// Ops that only rename what the bytes mean: one copy, or nothing when input and output share their memory.
#include <cstring>

#include "sim/kernel.h"

namespace orknn::sim {
namespace {
constexpr int64_t kGrainBytes = 1 << 18;

bool accepts(const KernelQuery& q) {
  return (q.def.pattern == ir::Pattern::View || q.node.op == "Identity") && q.node.tail.empty() && q.outputs[0].exists() &&
         q.inputs[0].dtype == q.outputs[0].dtype && ir::element_count(q.inputs[0].dims) == ir::element_count(q.outputs[0].dims);
}

Status run(KernelContext& c, const KernelState*) {
  const auto* from = static_cast<const std::byte*>(c.inputs[0].data);
  auto* to = static_cast<std::byte*>(c.outputs[0].data);
  if (from == to) return {};
  c.pool.parallel_for(static_cast<int64_t>(c.outputs[0].bytes()), kGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
  return {};
}
}  // namespace

std::span<const Kernel> copy() {
  static const Kernel kernels[] = {{"copy", accepts, nullptr, run}};
  return kernels;
}

}  // namespace orknn::sim
