// Quantized models of MXNet's own quantizer. Tensors between quantized operators are carried as the real numbers they stand for:
// quantize and requantize become a pair of QuantizeLinear and DequantizeLinear, stored int8 weights a DequantizeLinear, and the
// operators between them their float forms.
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
using Tensors = std::vector<TensorId>;

struct Range {
  TensorId low, high;
};

// Largest magnitude of a range, as a scalar.
TensorId magnitude(Layer& l, const Range& r) {
  const auto size = [&](TensorId bound) { return l.unary("Abs", l.cast(bound, DType::Float32)); };
  return l.reshape(l.binary("Max", size(r.low), size(r.high)), {});
}

// Symmetric int8 keeps 127 steps on each side; uint8 has 255 from the low end.
TensorId rounded(Layer& l, TensorId x, const Range& r, bool is_unsigned) {
  const TensorId scale = l.with_scalar("Max", l.div(magnitude(l, r), is_unsigned ? 255.0 : 127.0), 1e-30);
  const TensorId zero = l.add_scalar("zero_point", 0, is_unsigned ? DType::UInt8 : DType::Int8);
  return l.emit("DequantizeLinear", {l.emit("QuantizeLinear", {x, scale, zero}), scale, zero});
}

// What quantized operators hand over: the result and its range.
Tensors with_bounds(Layer& l, TensorId y, const Range& r) { return {y, l.reshape(r.low, {1}), l.reshape(r.high, {1})}; }

Range measured(Layer& l, TensorId x) {
  const TensorId flat = l.reshape(x, {-1});
  return {l.reduce("ReduceMin", flat, {0}, true), l.reduce("ReduceMax", flat, {0}, true)};
}

std::optional<Range> calibrated(Layer& l) {
  if (!l.has("min_calib_range") || !l.has("max_calib_range")) return std::nullopt;
  return Range{l.add_scalar("low", l.number("min_calib_range", 0.0)), l.add_scalar("high", l.number("max_calib_range", 0.0))};
}

// The real numbers of an integer tensor stored in the file; anything else carries them already.
TensorId real_values(Layer& l, TensorId x, const Range& r) {
  const DType dtype = l.dtype_of(x);
  if (is_float(dtype)) return x;
  const double steps = dtype == DType::UInt8 ? 255.0 : dtype == DType::Int8 ? 127.0 : 2147483647.0;
  return l.emit("DequantizeLinear", {x, l.div(magnitude(l, r), steps)});
}

Result<Tensors> quantized_as(Layer& l, TensorId x, const Range& r, const std::string& type) {
  if (type != "int8" && type != "uint8" && type != "auto")
    return unsupported("unknown out_type").expected("int8, uint8 or auto").found(type);
  return with_bounds(l, rounded(l, real_values(l, x, r), r, type == "uint8"), r);
}
Result<Tensors> quantize(Layer& l, TensorId x, TensorId low, TensorId high) {
  return quantized_as(l, x, {low, high}, l.text("out_type", "uint8"));
}
Result<Tensors> quantize_by_range(Layer& l, TensorId x) {
  std::string type = l.text("out_type", "int8");
  const auto range = calibrated(l);
  if (range && type == "auto") type = l.number("min_calib_range", 0.0) >= 0 ? "uint8" : "int8";
  return quantized_as(l, x, range ? *range : measured(l, x), type);
}

TensorId dequantize(Layer& l, TensorId x, TensorId low, TensorId high) { return real_values(l, x, {low, high}); }

// Convolution and fully connected: data, weight, bias, then a range for each of them.
template <Result<TensorId> (*lower)(Layer&, TensorId)>
Result<Tensors> with_weights(Layer& l) {
  const size_t count = l.flag("no_bias", false) ? 2 : 3;
  Tensors real;
  for (size_t i = 0; i < count; ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, l.operand(i));
    ORKNN_TRY_ASSIGN(const TensorId low, l.operand(count + 2 * i));
    ORKNN_TRY_ASSIGN(const TensorId high, l.operand(count + 2 * i + 1));
    real.push_back(real_values(l, x, {low, high}));
  }
  l.replace_inputs(real);
  ORKNN_TRY_ASSIGN(const TensorId y, lower(l, real[0]));
  return with_bounds(l, y, measured(l, y));
}

// One tensor whose range passes through.
template <auto lower>
Result<Tensors> with_range(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId low, l.operand(l.operand_count() - 2));
  ORKNN_TRY_ASSIGN(const TensorId high, l.operand(l.operand_count() - 1));
  ORKNN_TRY_ASSIGN(const Tensors results, Lowering<Layer>(lower)(l));
  return with_bounds(l, results[0], {low, high});
}

// The result of several tensors.
Tensors joined_as(Layer& l, TensorId y) {
  const auto range = calibrated(l);
  return range ? with_bounds(l, rounded(l, y, *range, false), *range) : with_bounds(l, y, measured(l, y));
}
template <OpName Op>
Tensors combine(Layer& l, TensorId a, TensorId b) {
  return joined_as(l, l.binary(Op.chars, a, b));
}
// All tensors, then their ranges.
Tensors quantized_concat(Layer& l, Operands inputs) {
  const Operands parts = inputs.first(inputs.size() / 3);
  return joined_as(l, l.concat({parts.begin(), parts.end()}, l.integer("dim", 1)));
}
}  // namespace

std::span<const Row> quantized_rows() {
  static const Row rows[] = {
      {"_contrib_quantize", quantize},
      {"_contrib_quantize_v2|_contrib_requantize", quantize_by_range},
      {"_contrib_dequantize", dequantize},
      {"_contrib_quantized_conv", with_weights<convolution>},
      {"_contrib_quantized_fully_connected", with_weights<fully_connected>},
      {"_contrib_quantized_pooling", with_range<pooling>, {.inputs = {3}}},
      {"_contrib_quantized_act", with_range<activation>, {.inputs = {3}}},
      {"_contrib_quantized_flatten", with_range<flatten>, {.inputs = {3}}},
      {"_contrib_quantized_batch_norm", with_range<batch_norm>, {.inputs = {3}}},
      {"_contrib_quantized_embedding", with_range<embedding>, {.inputs = {3}}},
      {"_contrib_quantized_concat", quantized_concat, {.inputs = {3}}},
      {"_contrib_quantized_elemwise_add", combine<"Add">},
      {"_contrib_quantized_elemwise_mul", combine<"Mul">},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
