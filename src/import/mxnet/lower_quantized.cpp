// Quantized models of MXNet's own quantizer. Tensors between quantized operators are carried as the real numbers they stand for:
// quantize and requantize become a pair of QuantizeLinear and DequantizeLinear, stored int8 weights a DequantizeLinear, and the
// operators between them their float forms.
#include <cmath>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
struct Range {
  TensorId low, high;
};

// Largest magnitude of a range, as a scalar.
TensorId magnitude(Layer& l, const Range& r) {
  return l.reshape(l.binary("Max", l.unary("Abs", l.cast(r.low, DType::Float32)), l.unary("Abs", l.cast(r.high, DType::Float32))),
                   {});
}

// Symmetric int8 keeps 127 steps on each side; uint8 has 255 from the low end.
TensorId rounded(Layer& l, TensorId x, const Range& r, bool is_unsigned) {
  const TensorId scale = l.with_scalar("Max", l.with_scalar("Div", magnitude(l, r), is_unsigned ? 255.0 : 127.0), 1e-30);
  const TensorId zero = l.add_scalar("zero_point", 0, is_unsigned ? DType::UInt8 : DType::Int8);
  return l.emit("DequantizeLinear", {l.emit("QuantizeLinear", {x, scale, zero}), scale, zero});
}

void set_range(Layer& l, const Range& r) {
  l.set_output(1, l.reshape(r.low, {1}));
  l.set_output(2, l.reshape(r.high, {1}));
}

Range measured(Layer& l, TensorId x) {
  const TensorId flat = l.reshape(x, {-1});
  return {l.reduce("ReduceMin", flat, {0}, true), l.reduce("ReduceMax", flat, {0}, true)};
}

Result<Range> stated_range(Layer& l, size_t low, size_t high) {
  Range r;
  ORKNN_TRY_ASSIGN(r.low, l.need(low));
  ORKNN_TRY_ASSIGN(r.high, l.need(high));
  return r;
}

// The real numbers of an integer tensor stored in the file; anything else carries them already.
Result<TensorId> real_values(Layer& l, TensorId x, const Range& r) {
  const DType dtype = l.dtype_of(x);
  if (is_float(dtype)) return x;
  const double steps = dtype == DType::UInt8 ? 255.0 : dtype == DType::Int8 ? 127.0 : 2147483647.0;
  return l.emit("DequantizeLinear", {x, l.with_scalar("Div", magnitude(l, r), steps)});
}

Status quantize(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  std::string type = l.text("out_type", l.op() == "_contrib_quantize" ? "uint8" : "int8");
  Range r;
  if (l.op() == "_contrib_quantize") {
    ORKNN_TRY_ASSIGN(r, stated_range(l, 1, 2));
  } else if (l.has("min_calib_range") && l.has("max_calib_range")) {
    r = {l.add_scalar("low", l.number("min_calib_range", 0.0)), l.add_scalar("high", l.number("max_calib_range", 0.0))};
    if (type == "auto") type = l.number("min_calib_range", 0.0) >= 0 ? "uint8" : "int8";
  } else {
    r = measured(l, x);
  }
  if (type != "int8" && type != "uint8" && type != "auto")
    return unsupported("unknown out_type").expected("int8, uint8 or auto").found(type);
  ORKNN_TRY_ASSIGN(const TensorId real, real_values(l, x, r));
  l.set_output(0, rounded(l, real, r, type == "uint8"));
  set_range(l, r);
  return {};
}

Status dequantize(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Range r, stated_range(l, 1, 2));
  ORKNN_TRY_ASSIGN(const TensorId real, real_values(l, x, r));
  l.set_output(l.unary("Identity", real));
  return {};
}

// convolution and fully connected: data, weight, bias, then a range for each of them.
template <Status (*lower)(Layer&)>
Status with_weights(Layer& l) {
  const bool has_bias = !l.flag("no_bias", false);
  const size_t ranges = has_bias ? 3 : 2;
  std::vector<TensorId> real;
  for (size_t i = 0; i < ranges; ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, l.need(i));
    ORKNN_TRY_ASSIGN(const Range r, stated_range(l, ranges + 2 * i, ranges + 2 * i + 1));
    ORKNN_TRY_ASSIGN(const TensorId value, real_values(l, x, r));
    real.push_back(value);
  }
  l.replace_inputs(std::move(real));
  ORKNN_TRY(lower(l));
  if (!l.outputs().empty() && l.outputs()[0]) set_range(l, measured(l, l.outputs()[0]));
  return {};
}

// One tensor whose range passes through.
template <Status (*lower)(Layer&)>
Status with_range(Layer& l) {
  ORKNN_TRY_ASSIGN(const Range r, stated_range(l, l.input_count() - 2, l.input_count() - 1));
  ORKNN_TRY(lower(l));
  set_range(l, r);
  return {};
}

// Several tensors, then their ranges.
Status join(Layer& l) {
  const bool is_concat = l.op() == "_contrib_quantized_concat";
  const size_t count = is_concat ? l.input_count() / 3 : 2;
  std::vector<TensorId> parts;
  for (size_t i = 0; i < count; ++i) {
    ORKNN_TRY_ASSIGN(const TensorId part, l.need(i));
    parts.push_back(part);
  }
  if (parts.empty()) return invalid_model("an operator without inputs");
  const TensorId y = is_concat ? l.concat(parts, l.integer("dim", 1))
                               : l.binary(l.op() == "_contrib_quantized_elemwise_mul" ? "Mul" : "Add", parts[0], parts[1]);
  Range r = measured(l, y);
  if (l.has("min_calib_range") && l.has("max_calib_range")) {
    r = {l.add_scalar("low", l.number("min_calib_range", 0.0)), l.add_scalar("high", l.number("max_calib_range", 0.0))};
    l.set_output(0, rounded(l, y, r, false));
  } else {
    l.set_output(0, y);
  }
  set_range(l, r);
  return {};
}
}  // namespace

std::span<const Row> quantized_rows() {
  static const Row rows[] = {
      {"_contrib_quantize", quantize},
      {"_contrib_quantize_v2", quantize},
      {"_contrib_requantize", quantize},
      {"_contrib_dequantize", dequantize},
      {"_contrib_quantized_conv", with_weights<convolution>},
      {"_contrib_quantized_fully_connected", with_weights<fully_connected>},
      {"_contrib_quantized_pooling", with_range<pooling>},
      {"_contrib_quantized_act", with_range<activation>},
      {"_contrib_quantized_flatten", with_range<flatten>},
      {"_contrib_quantized_batch_norm", with_range<batch_norm>},
      {"_contrib_quantized_embedding", with_range<embedding>},
      {"_contrib_quantized_concat", join},
      {"_contrib_quantized_elemwise_add", join},
      {"_contrib_quantized_elemwise_mul", join},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
