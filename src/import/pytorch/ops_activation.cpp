// Activation functions.
#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

template <OpName Op>
Result<Value> plain(Call& c) {
  return c.made(c.emit(Op.string(), {c.tensor("self")}));
}
template <OpName Op>
Result<Value> on_floats(Call& c) {
  return c.made(c.emit(Op.string(), {c.as_float("self")}));
}
template <OpName Op>
Result<Value> with_alpha(Call& c) {
  return c.made(c.emit(Op.string(), {c.tensor("self")}, {{"alpha", c.number("alpha")}}));
}

Result<Value> relu6(Call& c) { return c.made(c.clip(c.tensor("self"), 0, 6)); }
Result<Value> hardtanh(Call& c) { return c.made(c.clip(c.tensor("self"), c.number("min_val"), c.number("max_val"))); }
Result<Value> leaky_relu(Call& c) {
  return c.made(c.emit("LeakyRelu", {c.tensor("self")}, {{"alpha", c.number("negative_slope")}}));
}
Result<Value> rrelu(Call& c) {  // without training: the mean slope
  return c.made(c.emit("LeakyRelu", {c.tensor("self")}, {{"alpha", (c.number("lower") + c.number("upper")) / 2}}));
}

// scale * x above zero, scale * alpha * (exp(input_scale * x) - 1) below.
Result<Value> elu(Call& c) {
  const double alpha = c.number("alpha"), scale = c.number("scale"), input_scale = c.number("input_scale");
  const TensorId x = c.tensor("self");
  if (input_scale == 1) {
    const TensorId y = c.emit("Elu", {x}, {{"alpha", alpha}});
    return c.made(scale == 1 ? y : c.mul(y, c.scalar(scale, c.dtype_of(x))));
  }
  const DType t = c.dtype_of(x);
  const TensorId below =
      c.mul(c.sub(c.emit("Exp", {c.mul(x, c.scalar(input_scale, t))}), c.scalar(1, t)), c.scalar(alpha * scale, t));
  return c.made(c.where(c.emit("Greater", {x, c.scalar(0, t)}), c.mul(x, c.scalar(scale, t)), below));
}
Result<Value> selu(Call& c) {
  return c.made(c.emit("Selu", {c.tensor("self")},
                       {{"alpha", 1.6732632423543772848170429916717}, {"gamma", 1.0507009873554804934193349852946}}));
}
Result<Value> gelu(Call& c) {
  return c.made(c.emit("Gelu", {c.tensor("self")}, {{"approximate", std::string(c.text("approximate"))}}));
}
Result<Value> silu(Call& c) { return c.made(c.emit("Swish", {c.tensor("self")})); }
Result<Value> hardsigmoid(Call& c) {
  return c.made(c.emit("HardSigmoid", {c.tensor("self")}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

// log(1 + exp(beta x)) / beta, x itself where beta x is above the threshold.
Result<Value> softplus(Call& c) {
  const TensorId x = c.tensor("self");
  const DType t = c.dtype_of(x);
  const double beta = c.number("beta"), threshold = c.number("threshold");
  const TensorId scaled = beta == 1 ? x : c.mul(x, c.scalar(beta, t));
  TensorId y = c.emit("Softplus", {scaled});
  if (beta != 1) y = c.mul(y, c.scalar(1 / beta, t));
  // At 20 the function and x differ by less than a float32 shows.
  if (threshold >= 20) return c.made(y);
  return c.made(c.where(c.emit("Greater", {scaled, c.scalar(threshold, t)}), x, y));
}
Result<Value> log_sigmoid(Call& c) { return c.made(c.emit("Neg", {c.emit("Softplus", {c.emit("Neg", {c.tensor("self")})})})); }
Result<Value> log_sigmoid_pair(Call& c) {
  ORKNN_TRY_ASSIGN(const Value y, log_sigmoid(c));
  return c.tuple({y, c.value("self")});
}

Result<Value> hardshrink(Call& c) {
  return c.made(c.emit("Shrink", {c.tensor("self")}, {{"lambd", c.number("lambd")}, {"bias", 0.0}}));
}
Result<Value> softshrink(Call& c) {
  return c.made(c.emit("Shrink", {c.tensor("self")}, {{"lambd", c.number("lambd")}, {"bias", c.number("lambd")}}));
}
Result<Value> threshold(Call& c) {
  const TensorId x = c.tensor("self");
  const DType t = c.dtype_of(x);
  if (c.number("value") == 0 && c.number("threshold") == 0) return c.made(c.emit("Relu", {x}));
  if (c.number("value") == 0 && is_float(t) && c.number("threshold") > 0)
    return c.made(c.emit("ThresholdedRelu", {x}, {{"alpha", c.number("threshold")}}));
  return c.made(c.where(c.emit("Greater", {x, c.as(c.value("threshold"), t)}), x, c.as(c.value("value"), t)));
}
Result<Value> softsign(Call& c) { return c.made(c.emit("Softsign", {c.tensor("self")})); }
Result<Value> tanhshrink(Call& c) { return c.made(c.sub(c.tensor("self"), c.emit("Tanh", {c.tensor("self")}))); }

// One slope, or one per channel (axis 1).
Result<Value> prelu(Call& c) {
  TensorId slope = c.tensor("weight");
  const int64_t rank = c.rank("self");
  const int64_t count = ir::element_count(c.dims("weight"));
  if (count == 1) {
    slope = c.reshape(slope, {});
  } else if (c.rank("weight") == 1 && rank >= 2) {
    std::vector<int64_t> shape(static_cast<size_t>(rank - 1), 1);
    shape[0] = count;
    slope = c.reshape(slope, shape);
  }
  return c.made(c.emit("PRelu", {c.tensor("self"), slope}));
}

Result<Value> glu(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0 || c.dims("self")[axis] % 2 != 0)
    return invalid_model("glu needs an axis of even extent").found(ir::to_string(c.dims("self")));
  return c.made(c.emit("Glu", {c.tensor("self")}, {{"axis", static_cast<int64_t>(axis)}}));
}

// Softmax works on floats; a dtype argument converts first.
template <OpName Op>
Result<Value> softmax(Call& c) {
  ORKNN_TRY_ASSIGN(const DType t, c.dtype_argument("dtype", is_float(c.dtype("self")) ? c.dtype("self") : DType::Float32));
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  const TensorId x = c.cast(c.tensor("self"), t);
  if (c.rank("self") == 0) return c.made(c.scalar(Op.string() == "Softmax" ? 1 : 0, t));
  return c.made(c.emit(Op.string(), {x}, {{"axis", static_cast<int64_t>(axis)}}));
}
Result<Value> softmin(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  return c.made(c.softmax(c.emit("Neg", {c.as_float("self")}), static_cast<int64_t>(axis)));
}

// Dropout without training does nothing.
Result<Value> dropout(Call& c) {
  if (c.flag("train")) c.warn_of_training("dropout");
  return c.value("self");
}
Result<Value> native_dropout(Call& c) {
  if (c.has("train") && c.flag("train")) c.warn_of_training("dropout");
  ORKNN_TRY_ASSIGN(const Value mask, c.made(c.full(c.dims("self"), 1, DType::Bool)));
  return c.tuple({c.value("self"), mask});
}
}  // namespace

std::span<const Row> activation_rows() {
  static constexpr Row kRows[] = {
      {"relu(Tensor self)", plain<"Relu">},
      {"relu6(Tensor self)", relu6},
      {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)", hardtanh},
      {"leaky_relu(Tensor self, Scalar negative_slope=0.01)", leaky_relu},
      {"rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, any generator=None)", rrelu},
      {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)", elu},
      {"celu(Tensor self, Scalar alpha=1.0)", with_alpha<"Celu">},
      {"selu(Tensor self)", selu},
      {"gelu(Tensor self, *, str approximate=\"none\")", gelu},
      {"silu(Tensor self)", silu},
      {"mish(Tensor self)", plain<"Mish">},
      {"sigmoid(Tensor self)", on_floats<"Sigmoid">},
      {"special_expit(Tensor self)", on_floats<"Sigmoid">},
      {"tanh(Tensor self)", on_floats<"Tanh">},
      {"hardsigmoid(Tensor self)", hardsigmoid},
      {"hardswish(Tensor self)", plain<"HardSwish">},
      {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20)", softplus},
      {"softsign(Tensor self)", softsign},
      {"tanhshrink(Tensor self)", tanhshrink},
      {"log_sigmoid(Tensor self)", log_sigmoid},
      {"log_sigmoid_forward(Tensor self)", log_sigmoid_pair},
      {"hardshrink(Tensor self, Scalar lambd=0.5)", hardshrink},
      {"softshrink(Tensor self, Scalar lambd=0.5)", softshrink},
      {"threshold(Tensor self, Scalar threshold, Scalar value)", threshold},
      {"prelu(Tensor self, Tensor weight)", prelu},
      {"_prelu_kernel(Tensor self, Tensor weight)", prelu},
      {"glu(Tensor self, int dim=-1)", glu},
      {"softmax(Tensor self, int dim, int? dtype=None)", softmax<"Softmax">},
      {"_softmax(Tensor self, int dim, any half_to_float=None, int? dtype=None)", softmax<"Softmax">},
      {"special_softmax(Tensor self, int dim, int? dtype=None)", softmax<"Softmax">},
      {"log_softmax(Tensor self, int dim, int? dtype=None)", softmax<"LogSoftmax">},
      {"_log_softmax(Tensor self, int dim, any half_to_float=None, int? dtype=None)", softmax<"LogSoftmax">},
      {"special_log_softmax(Tensor self, int dim, int? dtype=None)", softmax<"LogSoftmax">},
      {"softmin(Tensor self, int dim)", softmin},
      {"dropout(Tensor self, float p, bool train)", dropout},
      {"feature_dropout(Tensor self, float p, bool train)", dropout},
      {"alpha_dropout(Tensor self, float p, bool train)", dropout},
      {"feature_alpha_dropout(Tensor self, float p, bool train)", dropout},
      {"native_dropout(Tensor self, float p, bool? train)", native_dropout},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
