#include "import/pytorch/quantization.h"

#include <cmath>

namespace orknn::importer::pytorch {
using ir::Dims;
using ir::TensorId;

TensorId quantize_dequantize(Call& c, TensorId x, const Quantization& q) {
  const QuantizationConstants p = add_quantization(c, q);
  const TensorId quantized = c.emit_kept("QuantizeLinear", {c.cast(x, DType::Float32), p.scale, p.zero_point}, p.attributes);
  return c.emit_kept("DequantizeLinear", {quantized, p.scale, p.zero_point}, p.attributes);
}

Status check_quantization(const Quantization& q) {
  for (double s : q.scales)
    if (!(s > 0) || !std::isfinite(s)) return invalid_model("a quantization scale is not positive").found(std::to_string(s));
  for (int64_t z : q.zero_points)
    if (z < dtype_min(q.dtype) || (z > 0 && static_cast<uint64_t>(z) > dtype_max(q.dtype)))
      return invalid_model("a zero point is outside of its type").found(std::to_string(z));
  return {};
}

Result<Quantization> quantization_of(Call& c, bool as_a_whole) {
  const auto& q = c.handle().quantization;
  if (!q) return invalid_model("the tensor is not quantized");
  if (as_a_whole && q->axis >= 0) return invalid_model("the tensor is not quantized as a whole");
  return *q;
}

Result<Value> made_quantized(Call& c, TensorId x, Quantization q) {
  ORKNN_TRY(check_quantization(q));
  if (q.dtype == DType::Int32) {  // finer than float32 resolves: the value itself
    ORKNN_TRY_ASSIGN(const Value v, c.made(x));
    v.tensor().quantization = std::move(q);
    return v;
  }
  ORKNN_TRY_ASSIGN(const Value v, c.made(quantize_dequantize(c, x, q)));
  v.tensor().quantization = std::move(q);
  return v;
}

Result<Value> quantized_like_input(Call& c, const Value& result) {
  if (!result.is_tensor() || result.tensor().quantization || !result.tensor().id || !is_float(c.dtype_of(result.tensor().id)))
    return result;
  const Value first = c.first_tensor();
  if (!first.is_tensor() || !first.tensor().quantization || first.tensor().quantization->axis >= 0) return result;
  const std::string_view op = c.op();
  if (op.find("::") != std::string_view::npos || op.starts_with("dequantize") || op.starts_with("q_") ||
      op.starts_with("fake_quantize") || op.find("like") != std::string_view::npos || op.starts_with("new_") ||
      op.starts_with("fused_"))
    return result;
  Quantization q = *first.tensor().quantization;
  if (op == "sigmoid" || op == "hardsigmoid") {  // their range is known
    q.scales = {1.0 / 256};
    q.zero_points = {dtype_min(q.dtype)};
  } else if (op == "tanh") {
    q.scales = {2.0 / 256};
    q.zero_points = {q.dtype == DType::UInt8 ? 128 : 0};
  }
  return made_quantized(c, result.tensor().id, std::move(q));
}

namespace {
// A number or a constant of one element.
Result<double> number_argument(Call& c, std::string_view name) {
  const Value& v = c.value(name);
  if (v.is_number()) return v.number();
  if (v.is_tensor())
    if (const auto known = c.session().constant_number(c, v.tensor())) return known->number();
  return unsupported("'" + std::string(name) + "' must be a constant");
}
}  // namespace

Result<Quantization> output_quantization(Call& c, DType dtype) {
  Quantization q;
  q.dtype = dtype;
  ORKNN_TRY_ASSIGN(const double scale, number_argument(c, "scale"));
  ORKNN_TRY_ASSIGN(const double zero, number_argument(c, "zero_point"));
  q.scales = {scale};
  q.zero_points = {Value(zero).integer()};
  return q;
}

Result<Value> quantized_result(Call& c, TensorId y) {
  const auto& own = c.handle().quantization;
  ORKNN_TRY_ASSIGN(Quantization q, output_quantization(c, own ? own->dtype : DType::UInt8));
  return made_quantized(c, y, std::move(q));
}

TensorId dynamically_quantized(Call& c, TensorId x, double levels) {
  const auto axes = *Emitter::axes_of({}, c.rank_of(x).value_or(0));
  const TensorId least = c.with_scalar("Min", c.reduce("ReduceMin", x, axes, false), 0),
                 most = c.with_scalar("Max", c.reduce("ReduceMax", x, axes, false), 0);
  const TensorId range = c.div(c.sub(most, least), levels);
  const TensorId scale = c.where(c.with_scalar("Equal", range, 0), c.scalar_like(range, 0.1), range);
  const TensorId zero_point = c.clip(c.unary("Round", c.unary("Neg", c.div(least, scale))), 0, levels);
  const TensorId q = c.clip(c.add(c.unary("Round", c.div(x, scale)), zero_point), 0, levels);
  return c.mul(c.sub(q, zero_point), scale);
}

}  // namespace orknn::importer::pytorch
