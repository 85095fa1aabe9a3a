// Softmax of 8-bit values over the last axis. A row has at most 256 different results: they are computed once and looked up.
#include <algorithm>

#include "sim/kernels/support/int_stage.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 13;  // elements per piece of work

bool accepts(const KernelQuery& q) {
  if (q.node.op != "int:Softmax" || !q.node.tail.empty() || !is_byte(q.inputs[0].dtype) || q.outputs[0].dtype != q.inputs[0].dtype) return false;
  const OperandFacts& table = q.inputs[1];
  if (table.dtype != DType::Int32 || !table.constant || table.constant->count() != 256 || q.inputs[0].dims.empty()) return false;
  const int32_t* powers = table.constant->as<int32_t>();
  if (powers[0] == 0 || std::any_of(powers, powers + 256, [](int32_t p) { return p < 0 || p > 1 << 24; })) return false;
  if (q.attributes().get_int("y_zero_point") != (q.inputs[0].dtype == DType::Int8 ? -128 : 0)) return false;
  const auto axis = ir::normalize_axis(q.attributes().get_int("axis"), static_cast<int64_t>(q.inputs[0].dims.size()));
  return axis && *axis + 1 == static_cast<int64_t>(q.inputs[0].dims.size()) && q.inputs[0].dims.back() >= 16;
}

Status run(KernelContext& c, const KernelState*) {
  const IntForms& f = int_forms();
  const int64_t extent = c.inputs[0].dims.back(), rows = c.inputs[0].count() / extent;
  // With the sign bit changed the order of int8 is that of uint8, and so are the results: their zero point is the least value.
  const uint8_t flip = c.inputs[0].dtype == DType::Int8 ? 0x80 : 0;
  const auto* powers = static_cast<const int32_t*>(c.inputs[1].data);
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  c.pool.parallel_for(rows, std::max<int64_t>(1, kGrain / extent), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* from = x + row * extent;
      int64_t counts[256] = {};
      for (int64_t i = 0; i < extent; ++i) ++counts[from[i] ^ flip];
      int64_t top = 255, sum = 0;
      while (counts[top] == 0) --top;
      for (int64_t v = 0; v <= top; ++v) sum += counts[v] * powers[top - v];
      uint8_t results[256] = {};
      for (int64_t v = 0; v <= top; ++v)
        if (counts[v] != 0) results[v ^ flip] = static_cast<uint8_t>(((2 * 255 * static_cast<int64_t>(powers[top - v]) + sum) / (2 * sum)) ^ flip);
      f.lookup(from, results, y + row * extent, extent);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_softmax() {
  static const Kernel kernels[] = {{"int_softmax", accepts, nullptr, run}};
  return kernels;
}

}  // namespace orknn::sim
