// Operators of the com.microsoft domain that ONNX Runtime's optimizer and quantizer write, said in standard ones. The quantized
// ones that have one operand, Add, Mul and Concat are operators of ours.
#include <algorithm>

#include "import/onnx/layer.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

// --- activations and norms

TensorId bias_gelu(Layer& l, TensorId x, TensorId bias) { return l.unary("Gelu", l.add(x, bias)); }
TensorId fast_gelu(Layer& l, TensorId x) {
  return l.emit("Gelu", {l.has_input(1) ? l.add(x, l.input(1)) : x}, {{"approximate", std::string("tanh")}});
}
TensorId quick_gelu(Layer& l, TensorId x) { return l.emit("Swish", {x}, {{"alpha", l.take_float("alpha").value_or(1.702)}}); }

// The sum that is normalized is output 3, which an Identity hands out when it is read.
Result<TensorId> skip_norm(Layer& l, const std::string& op, size_t bias, std::vector<TensorId> parameters) {
  const double epsilon = l.take_float("epsilon").value_or(1e-12);
  TensorId sum = l.add(l.input(0), l.input(1));
  if (l.has_input(bias)) sum = l.add(sum, l.input(bias));
  if (const TensorId handed_out = l.node.output(3)) {
    l.add_node("Identity", l.node.name + "/sum", {sum}, {handed_out});
    l.node.outputs.resize(3);
  }
  ORKNN_TRY(l.only_first_output());
  parameters.insert(parameters.begin(), sum);
  return l.emit(op, std::move(parameters), {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}
Result<TensorId> skip_layer_normalization(Layer& l) {
  std::vector<TensorId> parameters{l.input(2)};
  if (l.has_input(3)) parameters.push_back(l.input(3));
  return skip_norm(l, "LayerNormalization", 4, std::move(parameters));
}
Result<TensorId> skip_rms_normalization(Layer& l) { return skip_norm(l, "RMSNormalization", 3, {l.input(2)}); }

// --- fused pairs

// The last two axes swapped when the attribute says so.
Result<TensorId> transposed(Layer& l, TensorId x, const std::string& flag) {
  if (!l.take_flag(flag)) return x;
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to transpose it"));
  return rank < 2 ? x : l.swap_axes(x, -1, -2);
}

Result<TensorId> fused_matmul(Layer& l, TensorId a, TensorId b) {
  if (l.take_flag("transBatchA") || l.take_flag("transBatchB")) return unsupported("transposed batch axes are not supported");
  ORKNN_TRY_ASSIGN(a, transposed(l, a, "transA"));
  ORKNN_TRY_ASSIGN(b, transposed(l, b, "transB"));
  const double alpha = l.take_float("alpha").value_or(1);
  const TensorId y = l.matmul(a, b);
  return alpha == 1 ? y : l.mul(y, l.add_scalar("alpha", alpha, l.dtype(0)));
}

Result<TensorId> activate(Layer& l, TensorId x, const std::string& name, const std::vector<double>& parameters) {
  const auto parameter = [&](size_t i, double fallback) { return i < parameters.size() ? parameters[i] : fallback; };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid") return l.unary(name, x);
  if (name == "LeakyRelu") return l.emit(name, {x}, {{"alpha", parameter(0, 0.01)}});
  if (name == "HardSigmoid") return l.emit(name, {x}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (name == "Clip" && parameters.size() == 2) return l.clip(x, parameters[0], parameters[1]);
  return unsupported("this fused activation is not supported")
      .expected("Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid or Clip")
      .found(name);
}

Result<TensorId> fused_conv(Layer& l) {
  const std::string activation = l.take_string("activation").value_or("");
  const auto parameters = l.take_floats("activation_params").value_or(std::vector<double>{});
  std::vector<TensorId> inputs = l.node.inputs;
  if (inputs.size() > 3) inputs.resize(3);
  TensorId x = l.emit("Conv", std::move(inputs), l.node.attributes);
  if (l.has_input(3)) x = l.add(x, l.input(3));
  return activate(l, x, activation, parameters);
}

// Channels last, weights as in Conv.
Result<TensorId> channels_last_conv(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId first, l.channels_first(x));
  l.node.inputs[0] = first;
  ORKNN_TRY_ASSIGN(const TensorId y, fused_conv(l));
  return l.channels_last(y);
}

Result<TensorId> fused_gemm(Layer& l) {
  const std::string activation = l.take_string("activation").value_or("");
  const std::vector<double> parameters{l.take_float("activation_alpha").value_or(activation == "HardSigmoid" ? 0.2 : 0.01),
                                       l.take_float("activation_beta").value_or(0.5)};
  return activate(l, l.emit("Gemm", l.node.inputs, l.node.attributes), activation, parameters);
}

// --- quantized

// Integers as the numbers they mean; a scale per channel belongs to `axis`.
TensorId real(Layer& l, TensorId data, TensorId scale, TensorId zero_point, int64_t axis = 1) {
  std::vector<TensorId> inputs{data, scale};
  if (zero_point) inputs.push_back(zero_point);
  return l.emit_kept("DequantizeLinear", std::move(inputs), {{"axis", axis}});
}

// The integers of `x`, by the scale and zero point that begin at an input, of the type of another where there is no zero point.
Result<TensorId> quantized(Layer& l, TensorId x, size_t scale, size_t data) {
  ORKNN_TRY(l.need_inputs({scale}));
  std::vector<TensorId> inputs{x, l.input(scale)};
  Attributes attributes;
  if (l.has_input(scale + 1))
    inputs.push_back(l.input(scale + 1));
  else
    attributes.set("output_dtype", static_cast<int64_t>(l.dtype(data)));
  return l.emit_kept("QuantizeLinear", std::move(inputs), std::move(attributes));
}

// The bias is in units of alpha * a_scale * b_scale.
Result<TensorId> quantized_gemm(Layer& l) {
  const double alpha = l.take_float("alpha").value_or(1);
  const bool flips_a = l.take_flag("transA"), flips_b = l.take_flag("transB");
  ORKNN_TRY(l.need_inputs({0, 1, 3, 4}));
  std::vector<TensorId> inputs{real(l, l.input(0), l.input(1), l.input(2)),
                               real(l, l.input(3), l.input(4), l.input(5), flips_b ? 0 : 1)};
  if (l.has_input(6)) {
    TensorId unit = l.mul(l.input(1), l.input(4));
    if (alpha != 1) unit = l.mul(unit, l.add_scalar("alpha", alpha));
    inputs.push_back(l.mul(l.cast(l.input(6), DType::Float32), unit));
  }
  const TensorId y =
      l.emit("Gemm", std::move(inputs), {{"alpha", alpha}, {"transA", int64_t{flips_a}}, {"transB", int64_t{flips_b}}});
  return l.has_input(7) ? quantized(l, y, 7, 0) : y;
}

Result<TensorId> quantized_where(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2, 4, 5}));
  const TensorId x = real(l, l.input(1), l.input(2), l.input(3)), y = real(l, l.input(4), l.input(5), l.input(6));
  return quantized(l, l.where(l.input(0), x, y), 7, 1);
}

Result<TensorId> quantized_reduce_mean(Layer& l, TensorId data, TensorId scale) {
  std::vector<TensorId> inputs{real(l, data, scale, l.input(2))};
  const int64_t keepdims = l.take_int("keepdims").value_or(1);
  if (const auto axes = l.take_ints("axes")) inputs.push_back(l.add_ints("axes", *axes));
  return quantized(l, l.emit("ReduceMean", std::move(inputs), {{"keepdims", keepdims}}), 3, 0);
}

// a @ b + bias, b of integers with a scale for all or per column.
Result<TensorId> product_to_float(Layer& l, TensorId a, TensorId scale, TensorId zero_point, TensorId bias) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.input(1), "its last axis has the scales"));
  const TensorId y = l.matmul(a, real(l, l.input(1), scale, zero_point, std::max<int64_t>(rank - 1, 0)));
  return bias ? l.add(y, bias) : y;
}
Result<TensorId> matmul_integer_to_float(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2, 3}));
  return product_to_float(l, real(l, l.input(0), l.input(2), l.input(4)), l.input(3), l.input(5), l.input(6));
}
Result<TensorId> dynamic_quantize_matmul(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  const std::vector<TensorId> a = l.emit_all("DynamicQuantizeLinear", {l.input(0)}, {}, 3);
  return product_to_float(l, real(l, a[0], a[1], a[2]), l.input(2), l.input(3), l.input(4));
}

}  // namespace

std::span<const Row> microsoft_rows() {
  static const Row rows[] = {
      {"com.microsoft:Gelu", same<"Gelu">},
      {"com.microsoft:BiasGelu", bias_gelu},
      {"com.microsoft:FastGelu", fast_gelu},
      {"com.microsoft:QuickGelu", quick_gelu},
      {"com.microsoft:LayerNormalization", same<"LayerNormalization">},
      {"com.microsoft:SkipLayerNormalization", skip_layer_normalization},
      {"com.microsoft:SkipSimplifiedLayerNormalization", skip_rms_normalization},
      {"com.microsoft:QuantizeLinear", same<"QuantizeLinear">},
      {"com.microsoft:DequantizeLinear", same<"DequantizeLinear">},
      {"com.microsoft:GridSample", same<"GridSample">},
      {"com.microsoft:ExpandDims", same<"Unsqueeze">},
      {"com.microsoft:GatherND", same<"GatherND">},
      {"com.microsoft:Inverse", same<"Inverse">},
      {"com.microsoft:Pad", same<"Pad">},
      {"com.microsoft:Range", same<"Range">},
      {"com.microsoft:Trilu", same<"Trilu">},
      {"com.microsoft:FusedMatMul|com.microsoft:TransposeMatMul", fused_matmul},
      {"com.microsoft:FusedConv", fused_conv},
      {"com.microsoft:NhwcConv", channels_last_conv, {.inputs = {2, 3}}},
      {"com.microsoft:FusedGemm", fused_gemm},
      {"com.microsoft:QGemm", quantized_gemm},
      {"com.microsoft:QLinearWhere", quantized_where},
      {"com.microsoft:QLinearReduceMean", quantized_reduce_mean},
      {"com.microsoft:MatMulIntegerToFloat", matmul_integer_to_float},
      {"com.microsoft:DynamicQuantizeMatMul", dynamic_quantize_matmul},
  };
  return rows;
}

}  // namespace orknn::importer::onnx
