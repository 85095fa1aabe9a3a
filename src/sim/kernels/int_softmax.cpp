// Softmax of integers. A long row of bytes has at most 256 different results: they are computed once and looked up. All other
// data goes through double, which holds numerator and denominator exactly.
#include <algorithm>
#include <vector>

#include "ops/support/moments.h"
#include "ops/support/requantize.h"
#include "sim/kernels/support/int_stage.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 13;  // elements per piece of work
constexpr int64_t kColumns = 64;     // columns taken together
constexpr int64_t kLongRow = 64;     // bytes from which on counting values pays
constexpr int64_t kExact = int64_t{1} << 52;

struct State : KernelState {
  ops::AxisSplit split;
  IntSoftmax core;  // without addresses
  bool counts = false;
};

std::optional<State> plan(const KernelQuery& q) {
  const std::optional<Int> type = q.node.op == "int:Softmax" ? int_of(q.inputs[0].dtype) : std::nullopt;
  if (!type || !q.node.tail.empty() || q.outputs[0].dtype != q.inputs[0].dtype || q.outputs[0].dims != q.inputs[0].dims)
    return std::nullopt;
  const OperandFacts& table = q.inputs[1];
  const ir::NodeReader node = q.attributes();
  if (table.dtype != DType::Int32 || !table.constant || table.constant->count() != ops::softmax_entries(q.inputs[0].dtype))
    return std::nullopt;
  const int32_t* powers = table.constant->as<int32_t>();
  if (powers[0] == 0 || std::any_of(powers, powers + table.constant->count(), [](int32_t p) { return p < 0 || p > 1 << 24; }))
    return std::nullopt;
  const auto axis = ir::normalize_axis(node.get_int("axis"), static_cast<int64_t>(q.inputs[0].dims.size()));
  const auto zero = ops::read_zero_point(node, "y_zero_point");
  const int64_t factor = node.get_int("y_factor");
  if (!axis || !zero || factor < 1 || factor > ops::kMaxSoftmaxFactor) return std::nullopt;
  State s;
  s.split = ops::split_at(q.inputs[0].dims, *axis);
  // Every sum is at most extent * 2^24.
  if (s.split.extent < 1 || s.split.extent > kExact >> 34 || factor > kExact >> 27) return std::nullopt;
  s.core.type = *type;
  s.core.powers = powers;
  s.core.factor = factor;
  s.core.zero = static_cast<int32_t>(*zero);
  s.core.low = static_cast<int32_t>(dtype_min(q.inputs[0].dtype));
  s.core.high = static_cast<int32_t>(dtype_max(q.inputs[0].dtype));
  s.core.extent = s.split.extent;
  s.core.stride = s.split.inner;
  s.counts = s.split.inner == 1 && s.split.extent >= kLongRow && is_byte(q.inputs[0].dtype);
  return s;
}

bool accepts(const KernelQuery& q) { return plan(q).has_value(); }
Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(std::make_unique<State>(*plan(q)));
}

// With the sign bit changed the order of int8 is that of uint8.
void count_row(const IntForms& f, const IntSoftmax& s, const uint8_t* x, uint8_t* y) {
  const uint8_t flip = s.type == Int::Signed8 ? 0x80 : 0;
  int64_t counts[256] = {};
  for (int64_t i = 0; i < s.extent; ++i) ++counts[x[i] ^ flip];
  int64_t top = 255, sum = 0;
  while (counts[top] == 0) --top;
  for (int64_t v = 0; v <= top; ++v) sum += counts[v] * s.powers[top - v];
  uint8_t results[256] = {};
  for (int64_t v = 0; v <= top; ++v)
    if (counts[v] != 0)
      results[v ^ flip] = static_cast<uint8_t>(
          std::clamp<int64_t>((2 * s.factor * s.powers[top - v] + 256 * sum) / (512 * sum) + s.zero, s.low, s.high));
  f.lookup(x, results, y, s.extent);
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const IntForms& f = int_forms();
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  const int64_t extent = s.split.extent, inner = s.split.inner, bytes = int_bytes(s.core.type);
  if (s.counts) {
    c.pool.parallel_for(s.split.outer, std::max<int64_t>(1, kGrain / extent), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) count_row(f, s.core, x + row * extent, y + row * extent);
    });
    return {};
  }
  // Rows of neighbours, and columns of whole planes, are both columns with a stride.
  const bool rows = inner == 1;
  const int64_t across = rows ? s.split.outer : inner, blocks = divide_up(across, kColumns), planes = rows ? 1 : s.split.outer;
  c.pool.parallel_for(planes * blocks, std::max<int64_t>(1, kGrain / (extent * kColumns)), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      IntSoftmax core = s.core;
      const int64_t first = block % blocks * kColumns, at = rows ? first * extent : block / blocks * extent * inner + first;
      core.columns = std::min(kColumns, across - first);
      core.column_step = rows ? extent : 1;
      core.x = x + at * bytes;
      core.y = y + at * bytes;
      f.softmax(core);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_softmax() {
  static const Kernel kernels[] = {{"int_softmax", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
