// Operators of the com.microsoft domain that ONNX Runtime's optimizer and quantizer write, said in standard ones. The quantized
// ones that have one operand, Add, Mul and Concat are operators of ours.
#include <algorithm>

#include "import/lower/window.h"
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

// The rows, which come before the batch when the attribute says so, moved after it.
Result<TensorId> with_rows_after_batch(Layer& l, TensorId x, const std::string& flag) {
  if (!l.take_flag(flag)) return x;
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to transpose it"));
  std::vector<int64_t> order;
  for (int64_t i = 1; i < rank - 1; ++i) order.push_back(i);
  order.push_back(0);
  if (rank > 1) order.push_back(rank - 1);
  return l.transpose(x, order);
}

Result<TensorId> fused_matmul(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(a, with_rows_after_batch(l, a, "transBatchA"));
  ORKNN_TRY_ASSIGN(b, with_rows_after_batch(l, b, "transBatchB"));
  ORKNN_TRY_ASSIGN(a, transposed(l, a, "transA"));
  ORKNN_TRY_ASSIGN(b, transposed(l, b, "transB"));
  const double alpha = l.take_float("alpha").value_or(1);
  const TensorId y = l.matmul(a, b);
  return alpha == 1 ? y : l.mul(y, l.add_scalar("alpha", alpha, l.dtype(0)));
}

Result<TensorId> activate(Layer& l, TensorId x, const std::string& name, const std::vector<double>& parameters) {
  const auto parameter = [&](size_t i, double fallback) { return i < parameters.size() ? parameters[i] : fallback; };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus" || name == "Softsign") return l.unary(name, x);
  if (name == "LeakyRelu") return l.emit(name, {x}, {{"alpha", parameter(0, 0.01)}});
  if (name == "Elu" || name == "ThresholdedRelu") return l.emit(name, {x}, {{"alpha", parameter(0, 1)}});
  if (name == "HardSigmoid") return l.emit(name, {x}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (name == "Clip" && parameters.size() == 2) return l.clip(x, parameters[0], parameters[1]);
  return unsupported("this fused activation is not supported")
      .expected("Relu, Tanh, Sigmoid, Softplus, Softsign, Elu, ThresholdedRelu, LeakyRelu, HardSigmoid or Clip")
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
  std::vector<double> parameters;
  if (const auto alpha = l.take_float("activation_alpha")) {
    parameters.push_back(*alpha);
    if (const auto beta = l.take_float("activation_beta")) parameters.push_back(*beta);
  }
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

// QLinearConv with an attribute of its own.
Result<TensorId> quantized_conv(Layer& l, TensorId x) {
  const bool is_channels_last = l.take_flag("channels_last");
  std::vector<TensorId> inputs = l.node.inputs;
  if (is_channels_last) {
    ORKNN_TRY_ASSIGN(inputs[0], l.channels_first(x));
  }
  const TensorId y = l.emit("QLinearConv", std::move(inputs), l.node.attributes);
  if (!is_channels_last) return y;
  return l.channels_last(y);
}

Result<TensorId> channels_last_max_pool(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId first, l.channels_first(x));
  return l.channels_last(l.emit("MaxPool", {first}, l.node.attributes));
}

TensorId product_of_int16(Layer& l, TensorId a, TensorId b) { return l.matmul(l.cast(a, DType::Int32), l.cast(b, DType::Int32)); }

// --- gates

TensorId scaled_silu(Layer& l, TensorId x) {
  const double alpha = l.take_float("alpha").value_or(1);
  const TensorId scaled = l.has_input(1) ? l.mul(x, l.cast(l.input(1), l.dtype(0))) : l.mul(x, alpha);
  return l.unary("Swish", scaled);
}

TensorId gated_add(Layer& l, TensorId x, TensorId y, TensorId gate) { return l.add(x, l.mul(y, gate)); }

// The mean of squares runs over as many elements as there are factors, of which a row may have several times as many.
Result<TensorId> gated_rms_norm(Layer& l, TensorId x, TensorId scale, TensorId gate) {
  const double epsilon = l.take_float("epsilon").value_or(1e-5);
  const std::string activation = l.take_string("activation").value_or("silu");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    return unsupported("this activation is not supported").expected("silu, swish or sigmoid").found(activation);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to normalize it"));
  ORKNN_TRY_ASSIGN(const Dims factors, l.need_dims(scale, "to normalize by it"));
  if (dims.empty() || factors.size() != 1 || factors[0] < 1 || dims.back() % factors[0] != 0)
    return invalid_model("the factors do not divide a row").found(ir::to_string(factors) + " and " + ir::to_string(dims));
  const TensorId rows = l.reshape(x, {-1, factors[0]});
  const TensorId y = l.emit("RMSNormalization", {rows, scale}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return l.mul(l.reshape(y, dims), l.unary(activation == "sigmoid" ? "Sigmoid" : "Swish", gate));
}

// How fast a state decays, and how much of it is written anew.
Layer::Outputs linear_attention_gate(Layer& l, TensorId a, TensorId bias, TensorId factor) {
  const TensorId sum = l.add(l.cast(a, DType::Float32), bias);
  Layer::Outputs outputs{l.cast(l.mul(factor, l.unary("Softplus", sum)), l.dtype(0))};
  if (l.has_input(3)) outputs.push_back(l.unary("Sigmoid", l.input(3)));
  return outputs;
}

// --- others

// Distances between all rows of a and b.
Result<TensorId> distances(Layer& l, TensorId a, TensorId b) {
  const std::string metric = l.take_string("metric").value_or("sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean")
    return unsupported("this metric is not supported").expected("euclidean or sqeuclidean").found(metric);
  const TensorId difference = l.sub(l.unsqueeze(a, {1}), l.unsqueeze(b, {0}));
  return l.reduce(metric == "euclidean" ? "ReduceL2" : "ReduceSumSquare", difference, {2}, false);
}

// Windows along an axis; their elements become the last axis.
Result<TensorId> unfolded(Layer& l, TensorId x) {
  const int64_t size = l.take_int("size").value_or(0), step = l.take_int("step").value_or(1);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to cut windows"));
  const int64_t rank = std::ssize(dims);
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.take_int("dim").value_or(-1), rank));
  const int64_t extent = dims[static_cast<size_t>(axis)];
  if (size < 1 || size > extent || step < 1)
    return invalid_model("the windows do not fit").expected("size 1 to " + std::to_string(extent)).found(std::to_string(size));
  const int64_t count = (extent - size) / step + 1;
  if (count > kMaxWindow / size) return unsupported("there are too many windows").found(std::to_string(count));
  std::vector<int64_t> index(static_cast<size_t>(count * size));
  for (size_t i = 0; i < index.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    index[i] = at / size * step + at % size;
  }
  const TensorId windows = l.gather(x, l.reshape(l.add_ints("index", index), {count, size}), axis);
  std::vector<int64_t> order;
  for (int64_t i = 0; i <= rank; ++i)
    if (i != axis + 1) order.push_back(i);
  order.push_back(axis + 1);
  return l.transpose(windows, order);
}

// In the order of their first occurrence: the values, for each element which one it is, and how often each occurs.
Layer::Outputs unique_values(Layer& l, TensorId x) {
  const std::vector<TensorId> found = l.emit_all("Unique", {x}, {{"sorted", int64_t{0}}}, 4);
  return {found[0], found[2], found[3]};
}

TensorId number_range(Layer& l, TensorId start, TensorId limit) {
  return l.emit("Range", {start, limit, l.has_input(2) ? l.input(2) : l.add_scalar("delta", 1, l.dtype(0))});
}

Result<TensorId> transposed_conv_with_stated_pads(Layer& l, TensorId x, TensorId weights) {
  if (l.has_input(2)) {
    ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, l.need_ints(l.input(2), "to pad by it"));
    l.node.attributes.set("pads", pads);
  }
  std::vector<TensorId> inputs{x, weights};
  if (l.has_input(3)) inputs.push_back(l.input(3));
  return l.emit("ConvTranspose", std::move(inputs), l.node.attributes);
}

// The bias broadcasts like any operand.
TensorId bias_softmax(Layer& l, TensorId x, TensorId bias) {
  l.take_int("is_inner_broadcast");
  const int64_t axis = l.take_int("axis").value_or(1);
  const TensorId sum = l.add(x, bias);
  return l.emit("Softmax", {sum}, {{"axis", axis}, {"flatten", int64_t{1}}});
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
      {"com.microsoft:Range", number_range},
      {"com.microsoft:Unique", unique_values},
      {"com.microsoft:CDist", distances},
      {"com.microsoft:UnfoldTensor", unfolded},
      {"com.microsoft:BiasSoftmax", bias_softmax},
      {"com.microsoft:ScaledSiLU", scaled_silu},
      {"com.microsoft:GatedAdd", gated_add},
      {"com.microsoft:GatedRMSNorm", gated_rms_norm},
      {"com.microsoft:LinearAttentionGate", linear_attention_gate, {.inputs = {3, 4}}},
      {"com.microsoft:ConvTransposeWithDynamicPads", transposed_conv_with_stated_pads},
      {"com.microsoft:Trilu", same<"Trilu">},
      {"com.microsoft:FusedMatMul|com.microsoft:TransposeMatMul", fused_matmul},
      {"com.microsoft:FusedConv", fused_conv},
      {"com.microsoft:NhwcConv", channels_last_conv, {.inputs = {2, 3}}},
      {"com.microsoft:NhwcMaxPool", channels_last_max_pool},
      {"com.microsoft:FusedGemm", fused_gemm},
      {"com.microsoft:QLinearConv", quantized_conv},
      {"com.microsoft:QGemm", quantized_gemm},
      {"com.microsoft:QLinearWhere", quantized_where},
      {"com.microsoft:QLinearReduceMean", quantized_reduce_mean},
      {"com.microsoft:MatMulInteger16", product_of_int16},
      {"com.microsoft:MatMulIntegerToFloat", matmul_integer_to_float},
      {"com.microsoft:DynamicQuantizeMatMul", dynamic_quantize_matmul},
  };
  return rows;
}

}  // namespace orknn::importer::onnx
