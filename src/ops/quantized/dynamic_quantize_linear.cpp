// Quantizes to uint8 with a scale and zero point computed from the data itself.
#include <algorithm>

#include "ops/support/quantization.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return t == DType::Float32; }, "float32"));
  c.set_output(0, DType::UInt8, c.input(0).shape);
  c.set_output(1, DType::Float32, Shape{});
  c.set_output(2, DType::UInt8, Shape{});
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  float low = 0, high = 0;  // the range always contains 0
  for (const float v : x.values<float>()) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  TensorScale s;
  s.scale = high == low ? 1.0f : (high - low) / 255.0f;
  s.zero_point = saturate(static_cast<double>(-low / s.scale), 0, 0, 255);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::UInt8, x.dims));
  quantize(x, s, y);
  if (c.has_output(1)) {
    ORKNN_TRY_ASSIGN(const MutableTensorView scale, c.output(1, DType::Float32, {}));
    scale.as<float>()[0] = s.scale;
  }
  if (c.has_output(2)) {
    ORKNN_TRY_ASSIGN(const MutableTensorView zero, c.output(2, DType::UInt8, {}));
    zero.as<uint8_t>()[0] = static_cast<uint8_t>(s.zero_point);
  }
  return {};
}
}  // namespace

std::span<const OpDef> dynamic_quantize_linear() {
  static const OpDef def{.name = "DynamicQuantizeLinear",
                         .summary = "quantizes to uint8 by the range of the data",
                         .outputs = {1, 3},
                         .infer = infer,
                         .run = run};
  return {&def, 1};
}
}  // namespace orknn::ops
