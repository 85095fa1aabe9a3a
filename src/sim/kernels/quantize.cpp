// QuantizeLinear and DequantizeLinear with one scale per tensor, between float32 or float16 and 8- or 16-bit integers.
#include "sim/kernels/support/forms.h"
#include "sim/kernels/support/int_stage.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 14;  // elements per piece of work
constexpr int64_t kChunk = 1 << 10;  // elements of float16 that become float32 at once

struct State : KernelState {
  Int type = Int::Signed8;
  float scale = 1;
  int32_t zero = 0;
};

// `real` and `integer` are the node's data and result, or the other way round.
std::unique_ptr<State> plan(const KernelQuery& q, const OperandFacts& real, const OperandFacts& integer) {
  const std::optional<Int> type = int_of(integer.dtype);
  const OperandFacts& scale = q.inputs[1];
  const bool has_zero = q.inputs.size() > 2 && q.inputs[2].exists();
  if (!type || (real.dtype != DType::Float32 && real.dtype != DType::Float16) || real.dims != integer.dims ||
      !q.node.tail.empty() || q.attributes().get_int("block_size") != 0)
    return nullptr;
  if (scale.dtype != DType::Float32 || !scale.constant || scale.constant->count() != 1) return nullptr;
  if (has_zero && (!q.inputs[2].constant || q.inputs[2].constant->count() != 1 || q.inputs[2].dtype != integer.dtype))
    return nullptr;
  auto s = std::make_unique<State>();
  s->type = *type;
  s->scale = scale.constant->as<float>()[0];
  if (has_zero) s->zero = static_cast<int32_t>(ir::to_ints(q.inputs[2].constant->view())[0]);
  return s;
}

std::unique_ptr<State> plan_quantize(const KernelQuery& q) {
  if (q.def.conversion != ir::Conversion::ToIntegers) return nullptr;
  const int64_t precision = q.attributes().get_int("precision");
  if (precision != 0 && precision != static_cast<int64_t>(DType::Float32)) return nullptr;
  return plan(q, q.inputs[0], q.outputs[0]);
}
std::unique_ptr<State> plan_dequantize(const KernelQuery& q) {
  return q.def.conversion == ir::Conversion::ToReals ? plan(q, q.outputs[0], q.inputs[0]) : nullptr;
}

bool accepts_quantize(const KernelQuery& q) { return plan_quantize(q) != nullptr; }
bool accepts_dequantize(const KernelQuery& q) { return plan_dequantize(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_quantize(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_quantize(q));
}
Result<std::unique_ptr<const KernelState>> prepare_dequantize(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_dequantize(q));
}

Status run_quantize(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const IntForms& f = int_forms();
  const ir::TensorView& x = c.inputs[0];
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  const auto quantize = [&](const float* from, int64_t at, int64_t count) {
    f.quantize(from, s.scale, s.zero, s.type, count, y + at * int_bytes(s.type));
  };
  c.pool.parallel_for(x.count(), kGrain, [&](int64_t begin, int64_t end) {
    if (x.dtype == DType::Float32) return quantize(x.as<float>() + begin, begin, end - begin);
    alignas(64) float values[kChunk];
    for (int64_t at = begin; at < end; at += kChunk) {
      const int64_t count = std::min(kChunk, end - at);
      forms().to_float(x.as<Half>() + at, values, count);
      quantize(values, at, count);
    }
  });
  return {};
}

Status run_dequantize(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const IntForms& f = int_forms();
  const auto* x = static_cast<const std::byte*>(c.inputs[0].data);
  const ir::MutableTensorView& y = c.outputs[0];
  const auto dequantize = [&](int64_t at, int64_t count, float* to) {
    f.dequantize(x + at * int_bytes(s.type), s.type, s.zero, s.scale, count, to);
  };
  c.pool.parallel_for(c.inputs[0].count(), kGrain, [&](int64_t begin, int64_t end) {
    if (y.dtype == DType::Float32) return dequantize(begin, end - begin, y.as<float>() + begin);
    alignas(64) float values[kChunk];
    for (int64_t at = begin; at < end; at += kChunk) {
      const int64_t count = std::min(kChunk, end - at);
      dequantize(at, count, values);
      forms().to_half(values, y.as<Half>() + at, count);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> quantize() {
  static const Kernel kernels[] = {{"quantize", accepts_quantize, prepare_quantize, run_quantize},
                                   {"dequantize", accepts_dequantize, prepare_dequantize, run_dequantize}};
  return kernels;
}

}  // namespace orknn::sim
