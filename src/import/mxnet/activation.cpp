// Activations, softmax, the loss layers that end a training symbol, and what inference passes on.
#include <cmath>

#include "import/lower/functions.h"
#include "import/lower/norms.h"
#include "import/lower/one_hot.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

Result<std::vector<TensorId>> activation(Layer& l, TensorId x) {
  static const OperatorRow<InnerLayer> forms[] = {
      {"relu", same<"Relu">},         {"sigmoid", same<"Sigmoid">}, {"tanh", same<"Tanh">}, {"softrelu", same<"Softplus">},
      {"softsign", same<"Softsign">}, {"log_sigmoid", log_sigmoid}, {"mish", same<"Mish">},
  };
  InnerLayer inner(l, x);
  return lower_form<InnerLayer>(inner, "activation", l.text("act_type", "relu"), forms);
}

namespace {
// One slope per channel, or one for all.
Result<TensorId> prelu(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(TensorId gamma, l.vector(1, "gamma", l.extent_of(x, 1), Fill::Ones, l.dtype_of(x)));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to place the slopes"));
  if (const auto dims = l.dims_of(gamma); dims && dims->size() == 1 && rank > 1) gamma = per_channel(l, gamma, rank);
  return l.binary("PRelu", x, gamma);
}

template <OpName Op>
TensorId sloped(Layer& l, TensorId x) {
  return with_alpha<Op>(l, x, l.number("slope", 0.25));
}
TensorId rrelu(Layer& l, TensorId x) {
  return with_alpha<"LeakyRelu">(l, x, (l.number("lower_bound", 0.125) + l.number("upper_bound", 0.334)) / 2);
}
Result<std::vector<TensorId>> leaky_relu(Layer& l) {
  static const Row forms[] = {{"leaky", sloped<"LeakyRelu">}, {"prelu", prelu},       {"elu", sloped<"Elu">},
                              {"selu", same<"Selu">},         {"gelu", same<"Gelu">}, {"rrelu", rrelu}};
  return lower_form<Layer>(l, "activation", l.text("act_type", "leaky"), forms);
}

TensorId stated_hard_sigmoid(Layer& l, TensorId x) { return hard_sigmoid(l, x, l.number("alpha", 0.2), l.number("beta", 0.5)); }

// --- softmax

// Data divided by the temperature, as a float.
TensorId tempered(Layer& l, TensorId x) {
  if (!is_float(l.dtype_of(x))) x = l.cast(x, DType::Float32);
  const double temperature = l.number("temperature", 1.0);
  return temperature == 1.0 ? x : l.div(x, temperature);
}

// Over the elements that `mask` shows; 0 (its logarithm) at the others.
template <OpName Op>
TensorId shown_softmax(Layer& l, TensorId x, TensorId mask, int64_t axis) {
  const double hidden = l.dtype_of(x) == DType::Float16 ? -6e4 : -1e30, outside = Op.string() == "LogSoftmax" ? -HUGE_VAL : 0.0;
  const TensorId y = l.emit(Op.chars, {l.where(mask, x, l.scalar_like(x, hidden))}, {{"axis", axis}});
  return l.where(mask, y, l.scalar_like(x, outside));
}

template <OpName Op>
Result<TensorId> softmax_of(Layer& l, TensorId x) {
  TensorId y;
  if (l.flag("use_length", false)) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to mask by length"));
    ORKNN_TRY_ASSIGN(const int64_t axis, l.axis("axis", -1, std::ssize(dims)));
    ORKNN_TRY_ASSIGN(const TensorId length, l.operand(1));
    const TensorId position = positions(l, dims[static_cast<size_t>(axis)], axis, std::ssize(dims));
    const TensorId mask = l.binary("Less", position, l.unsqueeze(l.cast(length, DType::Int64), {axis}));
    y = shown_softmax<Op>(l, x, mask, axis);
  } else {
    y = l.emit(Op.chars, {x}, {{"axis", l.integer("axis", -1)}});
  }
  return l.cast(y, l.dtype("dtype", l.dtype_of(y)));
}
template <OpName Op>
Result<TensorId> softmax(Layer& l, TensorId x) {
  return softmax_of<Op>(l, tempered(l, x));
}
Result<TensorId> softmin(Layer& l, TensorId x) { return softmax_of<"Softmax">(l, l.unary("Neg", tempered(l, x))); }

template <OpName Op>
TensorId masked_softmax(Layer& l, TensorId x, TensorId mask) {
  return shown_softmax<Op>(l, tempered(l, x), l.cast(mask, DType::Bool), l.integer("axis", -1));
}

Result<TensorId> softmax_activation(Layer& l, TensorId x) {
  const std::string mode = l.text("mode", "instance");
  if (mode != "instance" && mode != "channel") return unsupported("unknown mode").expected("instance or channel").found(mode);
  return l.softmax(x, mode == "channel" ? 1 : -1);  // "instance" means the last axis
}

TensorId softmax_output(Layer& l, TensorId x) {
  if (l.flag("multi_output", false)) return l.softmax(x, 1);
  const auto rank = l.rank_of(x);
  if (l.flag("preserve_shape", false) || (rank && *rank <= 2)) return l.softmax(x, -1);
  return l.emit("Softmax", {x}, {{"axis", int64_t{1}}, {"flatten", int64_t{1}}});
}

// -sum(log softmax(x)[label]) over the batch.
TensorId softmax_cross_entropy(Layer& l, TensorId x, TensorId label) {
  const TensorId logarithms = l.emit("LogSoftmax", {x}, {{"axis", int64_t{-1}}});
  const TensorId picked = l.gather_elements(logarithms, l.unsqueeze(l.cast(label, DType::Int64), {1}), 1);
  return l.reshape(l.unary("Neg", l.reduce("ReduceSum", picked, {0, 1}, false)), {1});
}

// --- outputs of training

TensorId logistic_output(Layer& l, TensorId x) { return l.unary("Sigmoid", x); }

Status training_only(Layer&) {
  return unsupported("this operator compares with labels, it only trains the network")
      .hint("save the symbol of the deployed network, or name the outputs to keep");
}

Status user_code(Layer& l) {
  return unsupported("this operator is Python code of the model's author" +
                     (l.has("op_type") ? " ('" + l.text("op_type", "") + "')" : std::string()))
      .hint("cut the model before it, or express it with built-in operators");
}
}  // namespace

std::span<const Row> activation_rows() {
  static const Row rows[] = {
      {"Activation", activation},
      {"LeakyReLU", leaky_relu},
      {"hard_sigmoid", stated_hard_sigmoid},
      {"softmax", softmax<"Softmax">},
      {"softmin", softmin},
      {"log_softmax", softmax<"LogSoftmax">},
      {"masked_softmax", masked_softmax<"Softmax">},
      {"masked_log_softmax", masked_softmax<"LogSoftmax">},
      {"SoftmaxActivation", softmax_activation},
      {"SoftmaxOutput|Softmax|WarpCTC", softmax_output},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"Dropout|_copy|identity|BlockGrad|stop_gradient|make_loss|MakeLoss|LinearRegressionOutput|MAERegressionOutput|"
       "SVMOutput|IdentityAttachKLSparseReg|_CrossDeviceCopy|_contrib_gradientmultiplier|_identity_with_attr_like_rhs|"
       "cast_storage",
       pass_on},
      {"LogisticRegressionOutput", logistic_output},
      {"_contrib_MultiBoxTarget|MultiBoxTarget|_contrib_mrcnn_mask_target|CTCLoss|_contrib_CTCLoss|ctc_loss", training_only},
      {"Custom|_Native|_NDArray", user_code},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
