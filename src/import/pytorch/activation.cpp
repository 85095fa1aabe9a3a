// Activation functions.
#include "import/lower/norms.h"
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

TensorId hardtanh(Call& c, TensorId x) { return c.clip(x, c.number("min_val"), c.number("max_val")); }
TensorId rrelu(Call& c, TensorId x) {  // without training: the mean slope
  return with_alpha<"LeakyRelu">(c, x, (c.number("lower") + c.number("upper")) / 2);
}

// scale * x above zero, scale * alpha * (exp(input_scale * x) - 1) below.
TensorId elu(Call& c, TensorId x) {
  const double alpha = c.number("alpha"), scale = c.number("scale"), input_scale = c.number("input_scale");
  if (input_scale == 1) {
    const TensorId y = with_alpha<"Elu">(c, x, alpha);
    return scale == 1 ? y : c.mul(y, scale);
  }
  const TensorId below = c.mul(expm1(c, c.mul(x, input_scale)), alpha * scale);
  return c.where(c.with_scalar("Greater", x, 0), c.mul(x, scale), below);
}
TensorId exact_selu(Emitter& e, TensorId x) {
  return selu(e, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946);
}
TensorId stated_gelu(Call& c, TensorId x) { return gelu(c, x, c.text("approximate") == "tanh"); }
TensorId hardsigmoid(Emitter& e, TensorId x) { return hard_sigmoid(e, x, 1.0 / 6); }

TensorId stated_softplus(Call& c, TensorId x) { return softplus(c, x, c.number("beta"), c.number("threshold")); }
std::vector<TensorId> log_sigmoid_pair(Emitter& e, TensorId x) { return {log_sigmoid(e, x), x}; }

template <bool IsSoft>
TensorId stated_shrink(Call& c, TensorId x) {
  return shrink(c, x, c.number("lambd"), IsSoft);
}
TensorId threshold(Call& c, TensorId x) {
  const double limit = c.number("threshold");
  if (c.number("value") == 0 && limit == 0) return c.unary("Relu", x);
  const DType t = c.dtype_of(x);
  if (c.number("value") == 0 && is_float(t) && limit > 0) return with_alpha<"ThresholdedRelu">(c, x, limit);
  return c.where(c.binary("Greater", x, c.as("threshold", t)), x, c.as("value", t));
}

Result<TensorId> glu(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  if (c.rank() == 0 || c.dims()[axis] % 2 != 0)
    return invalid_model("glu needs an axis of even extent").found(ir::to_string(c.dims()));
  return c.emit("Glu", {x}, {{"axis", axis}});
}

// Softmax works on floats; a dtype argument converts first.
template <OpName Op>
Result<TensorId> softmax(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument(is_float(c.dtype()) ? c.dtype() : DType::Float32));
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  if (c.rank() == 0) return c.scalar(Op.string() == "Softmax" ? 1 : 0, t);
  return c.emit(Op.string(), {c.cast(x, t)}, {{"axis", axis}});
}
// Rows in which everything is masked are 0 instead of no numbers.
Result<TensorId> safe_softmax(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId shares, softmax<"Softmax">(c, x));
  if (c.rank() == 0) return shares;
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  const TensorId largest = c.reduce("ReduceMax", c.as_float(x), {axis}, true);
  const TensorId masked = c.emit("IsInf", {largest}, {{"detect_positive", int64_t{0}}});
  return c.where(masked, c.scalar_like(shares, 0), shares);
}
Result<TensorId> softmin(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  return c.softmax(c.unary("Neg", c.as_float(x)), axis);
}

// Dropout without training does nothing.
Value dropout(Call& c) {
  if (c.flag("train")) c.warn_of_training("dropout");
  return c.value("self");
}
std::vector<TensorId> native_dropout(Call& c, TensorId x) {
  dropout(c);
  return {x, c.full(c.dims(), 1, DType::Bool)};
}
}  // namespace

TensorId leaky_relu(Call& c, TensorId x) { return with_alpha<"LeakyRelu">(c, x, c.number("negative_slope")); }
// One slope, or one per channel (axis 1).
TensorId prelu(Call& c, TensorId x, TensorId weight) {
  if (ir::element_count(c.dims("weight")) == 1)
    weight = c.reshape(weight, {});
  else if (c.rank("weight") == 1 && c.rank() >= 2)
    weight = per_channel(c, weight, c.rank());
  return c.binary("PRelu", x, weight);
}

std::span<const Row> activation_rows() {
  static const Row rows[] = {
      {"relu(Tensor self)", same<"Relu">},
      {"relu6(Tensor self)", relu6},
      {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)", hardtanh},
      {"leaky_relu(Tensor self, Scalar negative_slope=0.01)", leaky_relu},
      {"rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, any generator=None)", rrelu},
      {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)", elu},
      {"celu(Tensor self, Scalar alpha=1.0)", stated_alpha<"Celu">},
      {"selu(Tensor self)", exact_selu},
      {"gelu(Tensor self, *, str approximate=\"none\")", stated_gelu},
      {"silu(Tensor self)", same<"Swish">},
      {"mish(Tensor self)", same<"Mish">},
      {"sigmoid|special_expit(Tensor self)", floats<"Sigmoid">},
      {"tanh(Tensor self)", floats<"Tanh">},
      {"hardsigmoid(Tensor self)", hardsigmoid},
      {"hardswish(Tensor self)", same<"HardSwish">},
      {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20)", stated_softplus},
      {"softsign(Tensor self)", same<"Softsign">},
      {"tanhshrink(Tensor self)", tanh_shrink},
      {"log_sigmoid(Tensor self)", log_sigmoid},
      {"log_sigmoid_forward(Tensor self)", log_sigmoid_pair},
      {"hardshrink(Tensor self, Scalar lambd=0.5)", stated_shrink<false>},
      {"softshrink(Tensor self, Scalar lambd=0.5)", stated_shrink<true>},
      {"threshold(Tensor self, Scalar threshold, Scalar value)", threshold},
      {"prelu|_prelu_kernel(Tensor self, Tensor weight)", prelu},
      {"glu(Tensor self, int dim=-1)", glu},
      {"softmax|special_softmax(Tensor self, int dim, int? dtype=None)", softmax<"Softmax">},
      {"_softmax(Tensor self, int dim, any half_to_float=None, int? dtype=None)", softmax<"Softmax">},
      {"_safe_softmax(Tensor self, int dim, int? dtype=None)", safe_softmax},
      {"log_softmax|special_log_softmax(Tensor self, int dim, int? dtype=None)", softmax<"LogSoftmax">},
      {"_log_softmax(Tensor self, int dim, any half_to_float=None, int? dtype=None)", softmax<"LogSoftmax">},
      {"softmin(Tensor self, int dim)", softmin},
      {"dropout|feature_dropout|alpha_dropout|feature_alpha_dropout(Tensor self, float p, bool train)", dropout},
      {"native_dropout(Tensor self, float p, bool? train)", native_dropout},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
