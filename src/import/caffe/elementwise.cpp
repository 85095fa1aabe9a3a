// Layers that work value by value: ReLU and its relatives, Power, Exp, Log, Eltwise, Scale, Bias, and those that hand on what
// they read.
#include <cmath>

#include "import/caffe/layer.h"
#include "import/lower/functions.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
// --- of one value

TensorId relu(Layer& l, TensorId x) {
  const double slope = l.parameters("relu_param").number("negative_slope", 0);
  return slope == 0 ? l.unary("Relu", x) : with_alpha<"LeakyRelu">(l, x, slope);
}

TensorId leaky_relu(Layer& l, TensorId x) {
  const double slope = l.parameters("relu_param").number("negative_slope", 0.01);
  return with_alpha<"LeakyRelu">(l, x, l.parameters("leaky_relu_param").number("negative_slope", slope));
}

TensorId relu_up_to_6(Layer& l, TensorId x) {
  const double slope = l.parameters("relu6_param").number("negative_slope", 0);
  return slope == 0 ? relu6(l, x) : with_alpha<"LeakyRelu">(l, l.with_scalar("Min", x, 6), slope);
}

TensorId clip(Layer& l, TensorId x) {
  const Parameters p = l.parameters("clip_param");
  return l.clip(x, p.number("min", -std::numeric_limits<float>::max()), p.number("max", std::numeric_limits<float>::max()));
}

Result<TensorId> prelu(Layer& l, TensorId x) {
  const Parameters p = l.parameters("prelu_param");
  ORKNN_TRY_ASSIGN(const TensorId slope,
                   l.channel_blob(x, p.flag("channel_shared", false), {"slope", {}, Fill::Random, 32, p.filler("filler")}));
  return l.binary("PRelu", x, slope);
}

TensorId elu(Layer& l, TensorId x) { return with_alpha<"Elu">(l, x, l.parameters("elu_param").number("alpha", 1)); }
TensorId swish(Layer& l, TensorId x) { return with_alpha<"Swish">(l, x, l.parameters("swish_param").number("beta", 1)); }

TensorId hard_sigmoid(Layer& l, TensorId x) {
  const Parameters p = l.parameters(l.parameters("hard_sigmoid_param").is_empty() ? "hardsigmoid_param" : "hard_sigmoid_param");
  return importer::hard_sigmoid(l, x, p.number("alpha", 0.2), p.number("beta", 0.5));
}

// (shift + scale * x) ^ power
TensorId power(Layer& l, TensorId x) {
  const Parameters p = l.parameters("power_param");
  return l.power(l.shifted(l.scaled(x, p.number("scale", 1)), p.number("shift", 0)), p.number("power", 1));
}

// The logarithm of the base, which is e when it is not stated.
Result<double> log_base(const Parameters& p) {
  const double base = p.number("base", -1);
  if (base == -1) return 1;
  if (!(base > 0)) return invalid_model("the base must be positive, or -1 for e").found(std::to_string(base));
  return std::log(base);
}

// base ^ (shift + scale * x)
Result<TensorId> exp(Layer& l, TensorId x) {
  const Parameters p = l.parameters("exp_param");
  ORKNN_TRY_ASSIGN(const double factor, log_base(p));
  return l.unary("Exp", l.shifted(l.scaled(x, p.number("scale", 1) * factor), p.number("shift", 0) * factor));
}

Result<TensorId> log(Layer& l, TensorId x) {
  const Parameters p = l.parameters("log_param");
  ORKNN_TRY_ASSIGN(const double divisor, log_base(p));
  if (divisor == 0) return invalid_model("there is no logarithm to the base 1");
  return l.scaled(l.unary("Log", l.shifted(l.scaled(x, p.number("scale", 1)), p.number("shift", 0))), 1 / divisor);
}

TensorId threshold(Layer& l, TensorId x) {
  const double threshold = l.parameters("threshold_param").number("threshold", 0);
  return l.cast(l.with_scalar("Greater", x, threshold), DType::Float32);
}

// Once per top.
std::vector<TensorId> hand_on(Layer& l, Operands bottoms) { return std::vector<TensorId>(l.top_count(), bottoms[0]); }

// --- of several values

Result<TensorId> eltwise(Layer& l, Operands bottoms) {
  static constexpr const char* kOps[] = {"Mul", "Add", "Max", "Min"};
  const Parameters p = l.parameters("eltwise_param");
  const std::string op = kOps[p.choice("operation", 1, {"PROD", "SUM", "MAX", "MIN"})];
  const std::vector<double> factors = p.numbers("coeff");
  if (!factors.empty() && factors.size() != bottoms.size())
    return invalid_model("the number of 'coeff' does not fit")
        .expected(std::to_string(bottoms.size()))
        .found(std::to_string(factors.size()));
  TensorId y;
  for (size_t i = 0; i < bottoms.size(); ++i) {
    const double factor = op == "Add" && !factors.empty() ? factors[i] : 1;
    if (y && factor == -1)  // a difference is spelled with a factor of -1
      y = l.sub(y, bottoms[i]);
    else
      y = y ? l.binary(op, y, l.scaled(bottoms[i], factor)) : l.scaled(bottoms[i], factor);
  }
  return y;
}

// `x` with ones for the axes it lacks at its end.
TensorId with_more_axes(Layer& l, TensorId x, int64_t rank, int64_t more) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 0);  // 0 keeps an extent
  shape.insert(shape.end(), static_cast<size_t>(std::max<int64_t>(more, 0)), 1);
  return more <= 0 ? x : l.emit("Reshape", {x, l.add_ints("shape", shape)});
}

// The second operand of Scale and Bias: a bottom, or a blob with some of the axes of the first bottom.
Result<TensorId> operand_along(Layer& l, Operands bottoms, const Parameters& p, size_t blob, const BlobSpec& spec) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(bottoms[0], "to line up the operand"));
  ORKNN_TRY_ASSIGN(const int64_t axis, rank == 0 ? Result<int64_t>(0) : l.axis_of(bottoms[0], p, "axis", 1));
  if (bottoms.size() > 1 && blob == 0) {
    ORKNN_TRY_ASSIGN(const int64_t other_rank, l.need_rank(bottoms[1], "to line up the operand"));
    return with_more_axes(l, bottoms[1], other_rank, rank - axis - other_rank);
  }
  const int64_t axes = p.integer("num_axes", 1, -1, rank - axis);
  BlobSpec own = spec;
  ORKNN_TRY_ASSIGN(own.dims, l.extents(bottoms[0], axis, axes == -1 ? rank : axis + axes, "to read the blob"));
  ORKNN_TRY_ASSIGN(const TensorId value, l.blob(blob, own));
  return own.dims.empty() ? value : l.along_axis(value, own.dims, axis, rank);
}

Result<TensorId> scale(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("scale_param");
  ORKNN_TRY_ASSIGN(const TensorId factor, operand_along(l, bottoms, p, 0, {"scale", {}, Fill::Ones, 1, p.filler("filler")}));
  const TensorId y = l.mul(bottoms[0], factor);
  if (!p.flag("bias_term", false)) return y;
  BlobSpec spec{"bias", {}, Fill::Zeros, 1, p.filler(p.has("bias_filler") ? "bias_filler" : "filler")};
  if (bottoms.size() == 1) {
    ORKNN_TRY_ASSIGN(const TensorId bias, operand_along(l, bottoms, p, 1, spec));
    return l.add(y, bias);
  }
  // The only blob is the bias, shaped like the second bottom.
  spec.filler = p.filler("bias_filler");
  ORKNN_TRY_ASSIGN(spec.dims, l.need_dims(factor, "to read the bias"));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.blob(0, spec));
  return l.add(y, bias);
}

Result<TensorId> bias(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("bias_param");
  ORKNN_TRY_ASSIGN(const TensorId term, operand_along(l, bottoms, p, 0, {"bias", {}, Fill::Zeros, 1, p.filler("filler")}));
  return l.add(bottoms[0], term);
}

// A factor per channel, times x, plus y.
Result<TensorId> axpy(Layer& l, TensorId factor, TensorId x, TensorId y) {
  ORKNN_TRY_ASSIGN(const int64_t factor_rank, l.need_rank(factor, "to line up the factors"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to line up the factors"));
  return l.add(l.mul(with_more_axes(l, factor, factor_rank, rank - factor_rank), x), y);
}
}  // namespace

std::span<const Row> elementwise_rows() {
  static const Row rows[] = {
      {"ReLU|Relu", relu, kOne},
      {"LeakyReLU|LeakyRelu", leaky_relu, kOne},
      {"ReLU6|Relu6", relu_up_to_6, kOne},
      {"PReLU|PRelu", prelu, kOne},
      {"ELU", elu, kOne},
      {"SELU", same<"Selu">},
      {"Sigmoid", same<"Sigmoid">},
      {"TanH|Tanh", same<"Tanh">},
      {"AbsVal", same<"Abs">},
      {"BNLL|Softplus", same<"Softplus">},
      {"Mish", same<"Mish">},
      {"Swish", swish, kOne},
      {"HardSigmoid", hard_sigmoid, kOne},
      {"HardSwish|HSwish", same<"HardSwish">},
      {"Clip", clip, kOne},
      {"Power", power, kOne},
      {"Exp", exp, kOne},
      {"Log", log, kOne},
      {"Threshold", threshold, kOne},
      {"Square", square, kOne},
      {"Sqrt", same<"Sqrt">},
      {"Dropout|Split|Identity|SpatialDropout|Noise", hand_on, kOne},
      {"Eltwise", eltwise, kAtLeastOne},
      {"Scale", scale, kOneOrTwo},
      {"Bias", bias, kOneOrTwo},
      {"Axpy", axpy, kThree},
  };
  return rows;
}

}  // namespace orknn::importer::caffe
