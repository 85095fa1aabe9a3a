// Operators on one element at a time: arithmetic, comparisons, functions, activations.
#include <cmath>

#include "import/lower/functions.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
// Old programs may align the axes of the second operand with those of the first from `axis` on.
Result<TensorId> aligned(Layer& l, TensorId x, TensorId y) {
  const int64_t axis = l.integer("axis", -1);
  if (axis < 0) return y;
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to align the operands"));
  ORKNN_TRY_ASSIGN(const int64_t own, l.need_rank(y, "to align the operands"));
  std::vector<int64_t> axes;
  for (int64_t i = own; i + axis < rank; ++i) axes.push_back(i);
  return l.unsqueeze(y, axes);
}

template <OpName Op>
Result<TensorId> of_two(Layer& l, TensorId x, TensorId y) {
  ORKNN_TRY_ASSIGN(y, aligned(l, x, y));
  return l.binary(Op.chars, x, y);
}
template <TensorId (*F)(Emitter&, TensorId, TensorId)>
Result<TensorId> of_two_by(Layer& l, TensorId x, TensorId y) {
  ORKNN_TRY_ASSIGN(y, aligned(l, x, y));
  return F(l, x, y);
}
// Integers are divided as real numbers.
Result<TensorId> divide(Layer& l, TensorId x, TensorId y) {
  ORKNN_TRY_ASSIGN(y, aligned(l, x, y));
  if (is_integer(l.dtype_of(x))) x = l.cast(x, DType::Float32);
  return l.div(x, l.cast(y, l.dtype_of(x)));
}
Result<TensorId> add_all(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> parts, l.list(0));
  if (parts.empty()) return invalid_model("there is nothing to add");
  return parts.size() == 1 ? parts[0] : l.emit("Sum", parts);
}
TensorId lerp(Layer& l, TensorId x, TensorId y, TensorId weight) { return l.add(x, l.mul(l.sub(y, x), weight)); }

TensorId polygamma(Layer& l, TensorId x) {
  return l.binary("Polygamma", l.scalar_like(x, static_cast<double>(l.integer("n", 0))), x);
}

Result<TensorId> scaled(Layer& l, TensorId x) {
  const TensorId factor = l.input(1);
  const double bias = l.number("bias", 0);
  const auto times = [&](TensorId v) {
    return factor ? l.mul(v, l.reshape(l.cast(factor, l.dtype_of(v)), {})) : l.mul(v, l.number("scale", 1));
  };
  if (!l.flag("bias_after_scale", true)) return times(bias == 0 ? x : l.add(x, bias));
  const TensorId y = times(x);
  return bias == 0 ? y : l.add(y, bias);
}
Result<TensorId> power(Layer& l, TensorId x) {
  if (l.has(1)) {
    const TensorId exponent = l.input(1);
    return l.binary("Pow", x, l.reshape(l.cast(exponent, l.dtype_of(x)), {}));
  }
  return l.with_scalar("Pow", x, l.number("y", 1));
}
Result<TensorId> clipped(Layer& l, TensorId x) {
  const auto bound = [&](size_t i, std::string_view key) {
    const TensorId given = l.input(i);
    return given ? l.reshape(l.cast(given, l.dtype_of(x)), {}) : l.scalar_like(x, l.number(key, 0), key);
  };
  return l.emit("Clip", {x, bound(1, "min"), bound(2, "max")});
}
TensorId incremented(Layer& l, TensorId x) { return l.add(x, l.number("value", 1)); }
Result<TensorId> rounded(Layer& l, TensorId x) {
  if (const int64_t decimals = l.integer("decimals", 0); decimals != 0)
    return unsupported("rounding to decimals is not supported").expected("0").found(std::to_string(decimals));
  return round_half_away(l, x);
}
TensorId is_infinite(Layer& l, TensorId x) { return l.unary("IsInf", x); }

Result<TensorId> dropped_out(Layer& l, TensorId x) {
  if (l.text("mode", "downgrade_in_infer") == "upscale_in_train") return x;
  ORKNN_TRY_ASSIGN(const double share, l.number(2, "dropout_prob", 0.5, "to scale by it"));
  return l.mul(x, 1 - share);
}
Result<TensorId> converted(Layer& l, TensorId x) { return l.cast(x, l.dtype("dtype", l.dtype_of(x))); }

// --- activations
template <OpName Op>
TensorId stated_alpha(Layer& l, TensorId x) {
  return with_alpha<Op>(l, x, l.number("alpha", 1));
}
TensorId leaky_relu(Layer& l, TensorId x) { return with_alpha<"LeakyRelu">(l, x, l.number("negative_slope", 0.02)); }
TensorId stated_selu(Layer& l, TensorId x) {
  return selu(l, x, l.number("alpha", 1.6732632423543772), l.number("scale", 1.0507009873554805));
}
TensorId stated_gelu(Layer& l, TensorId x) { return gelu(l, x, l.flag("approximate", false)); }
TensorId swish(Layer& l, TensorId x) {
  return l.mul(x, l.unary("Sigmoid", l.number("beta", 1) == 1 ? x : l.mul(x, l.number("beta", 1))));
}
TensorId hardswish(Layer& l, TensorId x) {
  const double threshold = l.number("threshold", 6), scale = l.number("scale", 6), offset = l.number("offset", 3);
  if (threshold == 6 && scale == 6 && offset == 3) return l.unary("HardSwish", x);
  return l.div(l.mul(x, l.clip(l.add(x, offset), 0, threshold)), scale);
}
TensorId hardsigmoid(Layer& l, TensorId x) { return hard_sigmoid(l, x, l.number("slope", 0.2), l.number("offset", 0.5)); }
TensorId hardtanh(Layer& l, TensorId x) { return l.clip(x, l.number("t_min", 0), l.number("t_max", 24)); }
TensorId stated_softplus(Layer& l, TensorId x) { return softplus(l, x, l.number("beta", 1), l.number("threshold", 20)); }
template <bool IsSoft>
TensorId stated_shrink(Layer& l, TensorId x) {
  return shrink(l, x, l.number("threshold", 0.5), IsSoft);
}
TensorId thresholded_relu(Layer& l, TensorId x) {
  return l.where(l.with_scalar("Greater", x, l.number("threshold", 1)), x, l.scalar_like(x, l.number("value", 0)));
}
TensorId stanh(Layer& l, TensorId x) {
  return l.mul(l.unary("Tanh", l.mul(x, l.number("scale_a", 0.67))), l.number("scale_b", 1.7159));
}
template <OpName Op>
TensorId along_axis(Layer& l, TensorId x) {
  return l.emit(Op.chars, {x}, {{"axis", l.integer("axis", -1)}});
}
Result<TensorId> maxout(Layer& l, TensorId x) {
  const int64_t groups = l.integer("groups", 1);
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis(l.integer("axis", 1), x));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to group its channels"));
  const auto at = static_cast<size_t>(axis);
  if (groups < 1 || dims[at] % groups != 0)
    return invalid_model("the channels do not divide into the groups")
        .found(std::to_string(dims[at]) + " in " + std::to_string(groups));
  std::vector<int64_t> shape(dims.begin(), dims.end());
  shape[at] = dims[at] / groups;
  shape.insert(shape.begin() + axis + 1, groups);
  return l.reduce("ReduceMax", l.reshape(x, shape), {axis + 1}, false);
}
Result<TensorId> prelu(Layer& l, TensorId x, TensorId slope) {
  const std::string mode = l.text("mode", "all");
  if (mode == "all") return l.emit("PRelu", {x, l.reshape(slope, {1})});
  if (mode == "element") return l.emit("PRelu", {x, slope});
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find its channels"));
  std::vector<int64_t> shape(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), 1);
  (l.format(0).channels_last ? shape.back() : shape.front()) = -1;
  return l.emit("PRelu", {x, l.reshape(slope, shape)});
}
TensorId masked_fill(Layer& l, TensorId x, TensorId mask, TensorId value) {
  return l.where(mask, l.cast(value, l.dtype_of(x)), x);
}
}  // namespace

std::span<const Row> elementwise_rows() {
  static const Row rows[] = {
      {"add", of_two<"Add">},
      {"subtract", of_two<"Sub">},
      {"multiply", of_two<"Mul">},
      {"divide", divide},
      {"maximum", of_two<"Max">},
      {"minimum", of_two<"Min">},
      {"elementwise_pow", of_two<"Pow">},
      {"remainder", of_two_by<floor_mod>},
      {"floor_divide", of_two_by<floor_div>},
      {"fmax", of_two_by<ignoring_nan<"Max">>},
      {"fmin", of_two_by<ignoring_nan<"Min">>},
      {"atan2", same<"Atan2">},
      {"add_n", add_all},
      {"lerp", lerp},
      {"scale", scaled},
      {"pow", power},
      {"clip", clipped},
      {"increment", incremented},
      {"equal", of_two<"Equal">},
      {"not_equal", of_two_by<not_equal>},
      {"less_than", of_two<"Less">},
      {"less_equal", of_two<"LessOrEqual">},
      {"greater_than", of_two<"Greater">},
      {"greater_equal", of_two<"GreaterOrEqual">},
      {"logical_and", of_two<"And">},
      {"logical_or", of_two<"Or">},
      {"logical_xor", of_two<"Xor">},
      {"logical_not", same<"Not">},
      {"bitwise_and", of_two<"BitwiseAnd">},
      {"bitwise_or", of_two<"BitwiseOr">},
      {"bitwise_xor", of_two<"BitwiseXor">},
      {"bitwise_not", same<"BitwiseNot">},
      {"where", same<"Where">},
      {"masked_fill", masked_fill},
      {"isnan", same<"IsNaN">},
      {"isinf", is_infinite},
      {"isfinite", is_finite},
      {"cast", converted},
      {"dropout", dropped_out},
      {"abs", same<"Abs">},
      {"acos", same<"Acos">},
      {"acosh", same<"Acosh">},
      {"asin", same<"Asin">},
      {"asinh", same<"Asinh">},
      {"atan", same<"Atan">},
      {"atanh", same<"Atanh">},
      {"ceil", same<"Ceil">},
      {"cos", same<"Cos">},
      {"cosh", same<"Cosh">},
      {"erf", same<"Erf">},
      {"erfinv", same<"ErfInv">},
      {"exp", same<"Exp">},
      {"expm1", expm1},
      {"floor", same<"Floor">},
      {"log", same<"Log">},
      {"log10", log10},
      {"log1p", log1p},
      {"log2", log2},
      {"reciprocal", same<"Reciprocal">},
      {"round", rounded},
      {"rsqrt", rsqrt},
      {"sign", same<"Sign">},
      {"sin", same<"Sin">},
      {"sinh", same<"Sinh">},
      {"sqrt", same<"Sqrt">},
      {"square", square},
      {"tan", same<"Tan">},
      {"tanh", same<"Tanh">},
      {"trunc", truncate},
      {"digamma", same<"Digamma">},
      {"lgamma|gammaln", same<"LogGamma">},
      {"polygamma", polygamma},
      {"gammaincc", same<"GammaIncUpper">},
      {"i0", same<"BesselI0">},
      {"i0e", same<"BesselI0Scaled">},
      {"i1", same<"BesselI1">},
      {"i1e", same<"BesselI1Scaled">},
      {"relu", same<"Relu">},
      {"relu6", relu6},
      {"sigmoid", same<"Sigmoid">},
      {"leaky_relu", leaky_relu},
      {"elu", stated_alpha<"Elu">},
      {"celu", stated_alpha<"Celu">},
      {"selu", stated_selu},
      {"gelu", stated_gelu},
      {"silu|swish", swish},
      {"mish", same<"Mish">},
      {"hardswish", hardswish},
      {"hardsigmoid", hardsigmoid},
      {"hardtanh", hardtanh},
      {"softplus", stated_softplus},
      {"softsign", same<"Softsign">},
      {"softshrink", stated_shrink<true>},
      {"hardshrink", stated_shrink<false>},
      {"tanh_shrink", tanh_shrink},
      {"thresholded_relu", thresholded_relu},
      {"logsigmoid", log_sigmoid},
      {"stanh", stanh},
      {"softmax", along_axis<"Softmax">},
      {"log_softmax", along_axis<"LogSoftmax">},
      {"maxout", maxout},
      {"prelu", prelu},
      {"assign|share_data|print|memcpy_h2d|memcpy_d2h", pass_on},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
