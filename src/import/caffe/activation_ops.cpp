// Layers that are a function of each value: ReLU and its relatives, Power, Exp, Log, Threshold.
#include <cmath>

#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
template <const char* Op>
Status plain(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  return l.set_top(l.emit(Op, {l.bottom()}));
}
constexpr char kSigmoid[] = "Sigmoid", kTanh[] = "Tanh", kAbs[] = "Abs", kSoftplus[] = "Softplus", kMish[] = "Mish",
               kHardSwish[] = "HardSwish", kSelu[] = "Selu", kSqrt[] = "Sqrt";

TensorId clip(Layer& l, TensorId x, double low, double high) {
  return l.emit("Clip", {x, l.add_scalar("low", low), l.add_scalar("high", high)});
}

Status relu(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const double slope, l.parameters("relu_param").get_double("negative_slope", 0));
  return l.set_top(slope == 0 ? l.emit("Relu", {l.bottom()}) : l.emit("LeakyRelu", {l.bottom()}, {{"alpha", slope}}));
}

Status leaky_relu(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const double relu_slope, l.parameters("relu_param").get_double("negative_slope", 0.01));
  ORKNN_TRY_ASSIGN(const double slope, l.parameters("leaky_relu_param").get_double("negative_slope", relu_slope));
  return l.set_top(l.emit("LeakyRelu", {l.bottom()}, {{"alpha", slope}}));
}

Status relu6(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const double slope, l.parameters("relu6_param").get_double("negative_slope", 0));
  if (slope == 0) return l.set_top(clip(l, l.bottom(), 0, 6));
  return l.set_top(l.emit("LeakyRelu", {l.emit("Min", {l.bottom(), l.add_scalar("high", 6)})}, {{"alpha", slope}}));
}

Status clip(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("clip_param");
  ORKNN_TRY_ASSIGN(const double low, p.get_double("min", -std::numeric_limits<float>::max()));
  ORKNN_TRY_ASSIGN(const double high, p.get_double("max", std::numeric_limits<float>::max()));
  return l.set_top(clip(l, l.bottom(), low, high));
}

Status prelu(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("prelu_param");
  ORKNN_TRY_ASSIGN(const bool shared, p.get_bool("channel_shared", false));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to line up the slopes"));
  int64_t channels = 1;
  if (!shared) {
    ORKNN_TRY_ASSIGN(channels, l.extent(l.bottom(), 1, "to read the slopes"));
  }
  if (const Blob* stored = l.stored(0); stored && stored->values.count() == 1) channels = 1;
  ORKNN_TRY_ASSIGN(
      const TensorId slope,
      l.blob(0, {.role = "slope", .dims = {channels}, .filling = Filling::Random, .fan_in = 32, .filler = &p.message("filler")}));
  return l.set_top(l.emit("PRelu", {l.bottom(), l.along_axis(slope, {channels}, 1, rank)}));
}

Status elu(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const double alpha, l.parameters("elu_param").get_double("alpha", 1));
  return l.set_top(l.emit("Elu", {l.bottom()}, {{"alpha", alpha}}));
}

Status swish(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const double beta, l.parameters("swish_param").get_double("beta", 1));
  return l.set_top(l.emit("Swish", {l.bottom()}, {{"alpha", beta}}));
}

Status hard_sigmoid(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("hard_sigmoid_param").fields().empty() ? l.parameters("hardsigmoid_param")
                                                                         : l.parameters("hard_sigmoid_param");
  ORKNN_TRY_ASSIGN(const double alpha, p.get_double("alpha", 0.2));
  ORKNN_TRY_ASSIGN(const double beta, p.get_double("beta", 0.5));
  return l.set_top(l.emit("HardSigmoid", {l.bottom()}, {{"alpha", alpha}, {"beta", beta}}));
}

// (shift + scale * x) ^ power
Status power(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("power_param");
  ORKNN_TRY_ASSIGN(const double exponent, p.get_double("power", 1));
  ORKNN_TRY_ASSIGN(const double scale, p.get_double("scale", 1));
  ORKNN_TRY_ASSIGN(const double shift, p.get_double("shift", 0));
  return l.set_top(l.power(l.shifted(l.scaled(l.bottom(), scale), shift), exponent));
}

struct Exponential {
  double base = -1, scale = 1, shift = 0;
};
Result<Exponential> exponential(const Message& p) {
  Exponential e;
  ORKNN_TRY_ASSIGN(e.base, p.get_double("base", -1));
  ORKNN_TRY_ASSIGN(e.scale, p.get_double("scale", 1));
  ORKNN_TRY_ASSIGN(e.shift, p.get_double("shift", 0));
  if (e.base != -1 && !(e.base > 0)) return invalid_model("the base must be positive, or -1 for e").found(std::to_string(e.base));
  return e;
}

// base ^ (shift + scale * x)
Status exp(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const Exponential e, exponential(l.parameters("exp_param")));
  const double log_base = e.base == -1 ? 1 : std::log(e.base);
  return l.set_top(l.emit("Exp", {l.shifted(l.scaled(l.bottom(), e.scale * log_base), e.shift * log_base)}));
}

Status log(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const Exponential e, exponential(l.parameters("log_param")));
  if (e.base == 1) return invalid_model("there is no logarithm to the base 1");
  const double log_base = e.base == -1 ? 1 : std::log(e.base);
  return l.set_top(l.scaled(l.emit("Log", {l.shifted(l.scaled(l.bottom(), e.scale), e.shift)}), 1 / log_base));
}

Status threshold(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  ORKNN_TRY_ASSIGN(const double threshold, l.parameters("threshold_param").get_double("threshold", 0));
  return l.set_top(l.cast(l.emit("Greater", {l.bottom(), l.add_scalar("threshold", threshold)}), DType::Float32));
}

Status square(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  return l.set_top(l.emit("Mul", {l.bottom(), l.bottom()}));
}

// Layers that hand on what they read, once per top.
Status pass_on(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  for (size_t i = 0; i < l.top_count(); ++i) ORKNN_TRY(l.set_top(l.bottom(), i));
  return {};
}
}  // namespace

std::span<const Row> activation_rows() {
  static constexpr Row kRows[] = {
      {"ReLU", relu},
      {"Relu", relu},
      {"LeakyReLU", leaky_relu},
      {"LeakyRelu", leaky_relu},
      {"ReLU6", relu6},
      {"Relu6", relu6},
      {"PReLU", prelu},
      {"PRelu", prelu},
      {"ELU", elu},
      {"SELU", plain<kSelu>},
      {"Sigmoid", plain<kSigmoid>},
      {"TanH", plain<kTanh>},
      {"Tanh", plain<kTanh>},
      {"AbsVal", plain<kAbs>},
      {"BNLL", plain<kSoftplus>},
      {"Softplus", plain<kSoftplus>},
      {"Mish", plain<kMish>},
      {"Swish", swish},
      {"HardSigmoid", hard_sigmoid},
      {"HardSwish", plain<kHardSwish>},
      {"HSwish", plain<kHardSwish>},
      {"Clip", clip},
      {"Power", power},
      {"Exp", exp},
      {"Log", log},
      {"Threshold", threshold},
      {"Square", square},
      {"Sqrt", plain<kSqrt>},
      {"Dropout", pass_on},
      {"Split", pass_on},
      {"Identity", pass_on},
      {"SpatialDropout", pass_on},
      {"Noise", pass_on},
  };
  return kRows;
}

}  // namespace orknn::importer::caffe
