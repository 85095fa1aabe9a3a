// Operators of the com.microsoft domain that ONNX Runtime's optimizer and quantizer write, said in standard ones. The quantized
// ones that have one operand, Add, Mul and Concat are operators of ours.
#include <algorithm>

#include "import/onnx/upgrade.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

// --- activations and norms

Status gelu(Upgrade& u) {
  u.become("Gelu", {u.input(0)});
  return {};
}
Status bias_gelu(Upgrade& u) {
  u.become("Gelu", {u.emit("Add", {u.input(0), u.input(1)})});
  return {};
}
Status fast_gelu(Upgrade& u) {
  const TensorId x = u.has_input(1) ? u.emit("Add", {u.input(0), u.input(1)}) : u.input(0);
  u.become("Gelu", {x}, {{"approximate", std::string("tanh")}});
  return {};
}
Status quick_gelu(Upgrade& u) {
  const double alpha = u.take_float("alpha").value_or(1.702);
  u.become("Swish", {u.input(0)}, {{"alpha", alpha}});
  return {};
}

// The sum that is normalized is output 3, which an Identity hands out when it is read.
Status skip_norm(Upgrade& u, const std::string& op, size_t bias, std::vector<TensorId> parameters) {
  const double epsilon = u.take_float("epsilon").value_or(1e-12);
  TensorId sum = u.emit("Add", {u.input(0), u.input(1)});
  if (u.has_input(bias)) sum = u.emit("Add", {sum, u.input(bias)});
  if (const TensorId handed_out = u.node.output(3)) {
    Node copy;
    copy.op = "Identity";
    copy.name = u.node.name + "/sum";
    copy.origin = u.node.origin;
    copy.inputs = {sum};
    copy.outputs = {handed_out};
    infer_added_node(u.graph(), u.ops(), u.graph().add_node(std::move(copy)));
    u.node.outputs.resize(3);
  }
  ORKNN_TRY(u.only_first_output());
  parameters.insert(parameters.begin(), sum);
  u.become(op, std::move(parameters), {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return {};
}
Status skip_layer_normalization(Upgrade& u) {
  std::vector<TensorId> parameters{u.input(2)};
  if (u.has_input(3)) parameters.push_back(u.input(3));
  return skip_norm(u, "LayerNormalization", 4, std::move(parameters));
}
Status skip_rms_normalization(Upgrade& u) { return skip_norm(u, "RMSNormalization", 3, {u.input(2)}); }

Status same_name(Upgrade& u) {
  u.node.op = u.node.op.substr(u.node.op.find(':') + 1);
  return {};
}

// --- fused pairs

// Swaps the last two axes of input `i`.
Result<TensorId> transposed(Upgrade& u, size_t i) {
  ORKNN_TRY_ASSIGN(const int64_t rank, u.need_rank(u.input(i), "to transpose it"));
  if (rank < 2) return u.input(i);
  std::vector<int64_t> order(static_cast<size_t>(rank));
  for (int64_t k = 0; k < rank; ++k) order[static_cast<size_t>(k)] = k;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return u.emit("Transpose", {u.input(i)}, {{"perm", order}});
}

Status fused_matmul(Upgrade& u) {
  if (u.take_int("transBatchA").value_or(0) || u.take_int("transBatchB").value_or(0))
    return unsupported("transposed batch axes are not supported");
  TensorId a = u.input(0), b = u.input(1);
  if (u.take_int("transA").value_or(0)) {
    ORKNN_TRY_ASSIGN(a, transposed(u, 0));
  }
  if (u.take_int("transB").value_or(0)) {
    ORKNN_TRY_ASSIGN(b, transposed(u, 1));
  }
  const double alpha = u.take_float("alpha").value_or(1);
  if (alpha == 1) {
    u.become("MatMul", {a, b});
    return {};
  }
  u.become("Mul", {u.emit("MatMul", {a, b}), u.add_scalar("alpha", alpha, u.dtype(0))});
  return {};
}

// Makes this node the activation of `x`.
Status activate(Upgrade& u, TensorId x, const std::string& name, const std::vector<double>& parameters) {
  const auto parameter = [&](size_t i, double fallback) { return i < parameters.size() ? parameters[i] : fallback; };
  if (name.empty())
    u.become("Identity", {x});
  else if (name == "Relu" || name == "Tanh" || name == "Sigmoid")
    u.become(name, {x});
  else if (name == "LeakyRelu")
    u.become(name, {x}, {{"alpha", parameter(0, 0.01)}});
  else if (name == "HardSigmoid")
    u.become(name, {x}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  else if (name == "Clip" && parameters.size() == 2)
    u.become(name, {x, u.add_scalar("min", parameters[0], u.dtype(0)), u.add_scalar("max", parameters[1], u.dtype(0))});
  else
    return unsupported("this fused activation is not supported")
        .expected("Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid or Clip")
        .found(name);
  return {};
}

Status fused_conv(Upgrade& u) {
  const std::string activation = u.take_string("activation").value_or("");
  const auto parameters = u.take_floats("activation_params").value_or(std::vector<double>{});
  std::vector<TensorId> inputs = u.node.inputs;
  if (inputs.size() > 3) inputs.resize(3);
  TensorId x = u.emit("Conv", std::move(inputs), u.node.attributes);
  if (u.has_input(3)) x = u.emit("Add", {x, u.input(3)});
  return activate(u, x, activation, parameters);
}

Status fused_gemm(Upgrade& u) {
  const std::string activation = u.take_string("activation").value_or("");
  const std::vector<double> parameters{u.take_float("activation_alpha").value_or(activation == "HardSigmoid" ? 0.2 : 0.01),
                                       u.take_float("activation_beta").value_or(0.5)};
  return activate(u, u.emit("Gemm", u.node.inputs, u.node.attributes), activation, parameters);
}

// --- quantized

Status need_inputs(const Upgrade& u, std::initializer_list<size_t> slots) {
  for (size_t i : slots)
    if (!u.has_input(i)) return invalid_model("input " + std::to_string(i) + " is required but absent");
  return {};
}

// Integers as the numbers they mean; a scale per channel belongs to `axis`.
TensorId real(Upgrade& u, TensorId data, TensorId scale, TensorId zero_point, int64_t axis = 1) {
  std::vector<TensorId> inputs{data, scale};
  if (zero_point) inputs.push_back(zero_point);
  return u.emit_kept("DequantizeLinear", std::move(inputs), {{"axis", axis}});
}

// Makes this node the integers of `x`.
Status quantized(Upgrade& u, TensorId x, size_t scale, size_t data) {
  ORKNN_TRY(need_inputs(u, {scale}));
  std::vector<TensorId> inputs{x, u.input(scale)};
  Attributes attributes;
  if (u.has_input(scale + 1))
    inputs.push_back(u.input(scale + 1));
  else
    attributes.set("output_dtype", static_cast<int64_t>(u.dtype(data)));
  u.become("QuantizeLinear", std::move(inputs), std::move(attributes));
  return {};
}

// The bias is in units of alpha * a_scale * b_scale.
Status quantized_gemm(Upgrade& u) {
  const double alpha = u.take_float("alpha").value_or(1);
  const int64_t turned_a = u.take_int("transA").value_or(0), turned_b = u.take_int("transB").value_or(0);
  ORKNN_TRY(need_inputs(u, {0, 1, 3, 4}));
  std::vector<TensorId> inputs{real(u, u.input(0), u.input(1), u.input(2)),
                               real(u, u.input(3), u.input(4), u.input(5), turned_b ? 0 : 1)};
  if (u.has_input(6)) {
    TensorId unit = u.emit("Mul", {u.input(1), u.input(4)});
    if (alpha != 1) unit = u.emit("Mul", {unit, u.add_scalar("alpha", alpha)});
    inputs.push_back(u.emit("Mul", {u.cast(u.input(6), DType::Float32), unit}));
  }
  Attributes attributes{{"alpha", alpha}, {"transA", turned_a}, {"transB", turned_b}};
  if (u.has_input(7)) return quantized(u, u.emit("Gemm", std::move(inputs), std::move(attributes)), 7, 0);
  u.become("Gemm", std::move(inputs), std::move(attributes));
  return {};
}

Status quantized_where(Upgrade& u) {
  ORKNN_TRY(need_inputs(u, {0, 1, 2, 4, 5}));
  const TensorId x = real(u, u.input(1), u.input(2), u.input(3)), y = real(u, u.input(4), u.input(5), u.input(6));
  return quantized(u, u.emit("Where", {u.input(0), x, y}), 7, 1);
}

Status quantized_reduce_mean(Upgrade& u) {
  ORKNN_TRY(need_inputs(u, {0, 1}));
  std::vector<TensorId> inputs{real(u, u.input(0), u.input(1), u.input(2))};
  const int64_t keepdims = u.take_int("keepdims").value_or(1);
  if (const auto axes = u.take_ints("axes")) inputs.push_back(u.add_ints("axes", *axes));
  return quantized(u, u.emit("ReduceMean", std::move(inputs), {{"keepdims", keepdims}}), 3, 0);
}

// Makes this node a @ b + bias, b of integers with a scale for all or per column.
Status product_to_float(Upgrade& u, TensorId a, TensorId scale, TensorId zero_point, TensorId bias) {
  ORKNN_TRY_ASSIGN(const int64_t rank, u.need_rank(u.input(1), "its last axis has the scales"));
  const TensorId b = real(u, u.input(1), scale, zero_point, std::max<int64_t>(rank - 1, 0));
  if (bias)
    u.become("Add", {u.emit("MatMul", {a, b}), bias});
  else
    u.become("MatMul", {a, b});
  return {};
}
Status matmul_integer_to_float(Upgrade& u) {
  ORKNN_TRY(need_inputs(u, {0, 1, 2, 3}));
  return product_to_float(u, real(u, u.input(0), u.input(2), u.input(4)), u.input(3), u.input(5), u.input(6));
}
Status dynamic_quantize_matmul(Upgrade& u) {
  ORKNN_TRY(need_inputs(u, {0, 1, 2}));
  const std::vector<TensorId> a = u.emit_all("DynamicQuantizeLinear", {u.input(0)}, {}, 3);
  return product_to_float(u, real(u, a[0], a[1], a[2]), u.input(2), u.input(3), u.input(4));
}
}  // namespace

std::span<const UpgradeRow> microsoft_rows() {
  static constexpr UpgradeRow kRows[] = {
      {"com.microsoft:Gelu", kAnyVersion, gelu},
      {"com.microsoft:BiasGelu", kAnyVersion, bias_gelu},
      {"com.microsoft:FastGelu", kAnyVersion, fast_gelu},
      {"com.microsoft:QuickGelu", kAnyVersion, quick_gelu},
      {"com.microsoft:LayerNormalization", kAnyVersion, same_name},
      {"com.microsoft:SkipLayerNormalization", kAnyVersion, skip_layer_normalization},
      {"com.microsoft:SkipSimplifiedLayerNormalization", kAnyVersion, skip_rms_normalization},
      {"com.microsoft:QuantizeLinear", kAnyVersion, same_name},
      {"com.microsoft:DequantizeLinear", kAnyVersion, same_name},
      {"com.microsoft:GridSample", kAnyVersion, same_name},
      {"com.microsoft:FusedMatMul", kAnyVersion, fused_matmul},
      {"com.microsoft:TransposeMatMul", kAnyVersion, fused_matmul},
      {"com.microsoft:FusedConv", kAnyVersion, fused_conv},
      {"com.microsoft:FusedGemm", kAnyVersion, fused_gemm},
      {"com.microsoft:QGemm", kAnyVersion, quantized_gemm},
      {"com.microsoft:QLinearWhere", kAnyVersion, quantized_where},
      {"com.microsoft:QLinearReduceMean", kAnyVersion, quantized_reduce_mean},
      {"com.microsoft:MatMulIntegerToFloat", kAnyVersion, matmul_integer_to_float},
      {"com.microsoft:DynamicQuantizeMatMul", kAnyVersion, dynamic_quantize_matmul},
  };
  return kRows;
}

}  // namespace orknn::importer::onnx
