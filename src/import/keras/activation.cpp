// Activations: layers, and functions by the names that layers, keras.ops and TensorFlow have for them.
#include <cmath>

#include "import/keras/layer.h"
#include "import/lower/cumulative.h"
#include "import/lower/functions.h"
#include "import/lower/one_hot.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
// Keras 2 has x * 0.2 + 0.5 between 0 and 1, Keras 3 relu6(x + 3) / 6.
TensorId hard_sigmoid_function(Layer& l, TensorId x) { return hard_sigmoid(l, x, l.generation() >= 3 ? 1.0 / 6 : 0.2); }
TensorId hard_silu(Layer& l, TensorId x) { return l.mul(x, hard_sigmoid(l, x, 1.0 / 6)); }

// Exact, but for keras.ops.gelu, which says so otherwise.
TensorId stated_gelu(Layer& l, TensorId x) { return gelu(l, x, l.argument(1, "approximate").flag(l.kind() == "Gelu")); }
TensorId silu(Emitter& e, TensorId x) { return e.mul(x, e.unary("Sigmoid", x)); }
TensorId leaky_relu(Layer& l, TensorId x) { return with_alpha<"LeakyRelu">(l, x, l.argument(1, "negative_slope").number(0.2)); }
template <OpName Op>
TensorId stated_alpha(Layer& l, TensorId x) {
  return with_alpha<Op>(l, x, l.argument(1, "alpha").number(1));
}
TensorId hard_tanh(Emitter& e, TensorId x) { return e.clip(x, -1, 1); }
TensorId squareplus(Layer& l, TensorId x) {
  return l.mul(l.add(x, l.unary("Sqrt", l.add(square(l, x), l.argument(1, "b").number(4)))), 0.5);
}
// 0 to -1, x from 1 on, (x + 1)^2 / 4 between.
TensorId sparse_plus(Emitter& e, TensorId x) {
  const TensorId inner = e.mul(square(e, e.add(e.clip(x, -1, 1), 1)), 0.25);
  return e.add(inner, e.unary("Relu", e.sub(x, 1)));
}
TensorId sparse_sigmoid(Emitter& e, TensorId x) { return e.mul(e.add(e.clip(x, -1, 1), 1), 0.5); }
template <bool IsSoft>
TensorId stated_shrink(Layer& l, TensorId x) {
  return shrink(l, x, l.argument(1, "threshold").number(0.5), IsSoft);
}
TensorId threshold(Layer& l, TensorId x) {
  const double least = l.argument(1, "threshold_value").number(l.argument(1, "threshold").number(0));
  const double otherwise = l.argument(2, "value").number(l.argument(2, "default_value").number(0));
  return l.where(l.with_scalar("Greater", x, least), x, l.scalar_like(x, otherwise));
}
Result<TensorId> glu(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to halve it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.argument(1, "axis").integer(-1), std::ssize(dims)));
  const int64_t half = dims[static_cast<size_t>(axis)] / 2;
  return l.mul(l.slice(x, axis, 0, half), l.unary("Sigmoid", l.slice(x, axis, half, 2 * half)));
}
// What lies above a level that follows from the largest elements. Keras adds up their running sums, not the elements.
Result<TensorId> sparsemax(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to sort it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.argument(1, "axis").integer(-1), std::ssize(dims)));
  const int64_t count = dims[static_cast<size_t>(axis)];
  const TensorId sorted = l.top_k(x, count, axis)[0];
  const TensorId sums = cumulative(l, "CumSum", sorted, axis, false, false);
  const TensorId ranks = l.add(l.cast(positions(l, count, axis, std::ssize(dims)), l.dtype_of(x)), 1);
  const TensorId counts = l.cast(l.binary("Greater", l.add(l.mul(ranks, sorted), 1), sums), l.dtype_of(x));
  const TensorId chosen = l.reduce("ReduceSum", counts, {axis}, true);
  const TensorId level = l.div(l.sub(l.reduce("ReduceSum", l.mul(sums, counts), {axis}, true), 1), chosen);
  return l.unary("Relu", l.sub(x, level));
}
template <OpName Op>
Result<TensorId> along_axis(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find the axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.argument(1, "axis").integer(-1), rank));
  return l.emit(Op.chars, {x}, {{"axis", axis}});
}

// --- layers

// Over one axis or several. What a mask excludes counts nothing.
Result<TensorId> softmax_layer(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.axes(x));
  if (const std::vector<TensorId> masks = l.tensors(1, "mask"); !masks.empty()) {
    constexpr double kFar = -1e9;  // as Keras has it
    x = l.add(x, l.mul(l.cast(l.unary("Not", l.cast(masks[0], DType::Bool)), l.dtype_of(x)), kFar));
  }
  if (axes.size() == 1) return l.softmax(x, axes[0]);
  const TensorId grown = l.unary("Exp", l.sub(x, l.reduce("ReduceMax", x, axes, true)));
  return l.div(grown, l.reduce("ReduceSum", grown, axes, true));
}

TensorId leaky_layer(Layer& l, TensorId x) {
  return with_alpha<"LeakyRelu">(l, x, l.number("negative_slope", l.number("alpha", 0.3)));
}
TensorId elu_layer(Layer& l, TensorId x) { return with_alpha<"Elu">(l, x, l.number("alpha", 1)); }
TensorId thresholded_layer(Layer& l, TensorId x) { return with_alpha<"ThresholdedRelu">(l, x, l.number("theta", 1)); }

// x from the threshold on and limited; below it the slope times what is missing to it.
TensorId relu_layer(Layer& l, TensorId x) {
  const double least = l.number("threshold", 0), slope = l.number("negative_slope", 0);
  TensorId y;
  if (least == 0) {
    y = slope == 0 ? l.unary("Relu", x) : with_alpha<"LeakyRelu">(l, x, slope);
  } else {
    y = l.where(l.with_scalar("GreaterOrEqual", x, least), x, l.mul(l.sub(x, least), slope));
  }
  return l.config["max_value"].is_null() ? y : l.binary("Min", y, l.scalar_like(y, l.number("max_value", 6)));
}

Result<TensorId> prelu_layer(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId slope, l.weight(0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find its channels"));
  if (rank < 3 || l.rank_of(slope) != rank - 1) return l.emit("PRelu", {x, slope});
  std::vector<int64_t> channels_first{rank - 2};
  for (int64_t i = 0; i + 2 < rank; ++i) channels_first.push_back(i);
  const TensorId ours = l.transpose(slope, channels_first);
  return in_channels_first(l, {true, static_cast<size_t>(rank) - 2}, x, [&](TensorId first) {
    return l.emit("PRelu", {first, ours});
  });
}
}  // namespace

std::span<const Row> activation_rows() {
  static const Row rows[] = {
      {"Activation", with_activation},
      {"ReLU", relu_layer},
      {"LeakyReLU", leaky_layer},
      {"ELU", elu_layer},
      {"PReLU", prelu_layer},
      {"Softmax", softmax_layer},
      {"ThresholdedReLU", thresholded_layer},
  };
  return rows;
}

std::span<const Row> activation_function_rows() {
  static const Row rows[] = {
      {"Celu|celu", stated_alpha<"Celu">},
      {"Elu|elu", stated_alpha<"Elu">},
      {"Exp|exp|exponential", same<"Exp">},
      {"Gelu|gelu", stated_gelu},
      {"Glu|glu", glu},
      {"HardShrink|hard_shrink", stated_shrink<false>},
      {"SoftShrink|soft_shrink", stated_shrink<true>},
      {"HardSigmoid|hard_sigmoid", hard_sigmoid_function},
      {"HardSilu|hard_silu|hard_swish", hard_silu},
      {"HardTanh|hard_tanh", hard_tanh},
      {"LeakyRelu|leaky_relu", leaky_relu},
      {"LogSigmoid|log_sigmoid", log_sigmoid},
      {"LogSoftmax|log_softmax", along_axis<"LogSoftmax">},
      {"Mish|mish", same<"Mish">},
      {"Relu|relu", same<"Relu">},
      {"Relu6|relu6", relu6},
      {"Selu|selu", same<"Selu">},
      {"Sigmoid|sigmoid", same<"Sigmoid">},
      {"Silu|silu|swish", silu},
      {"Softmax|softmax", along_axis<"Softmax">},
      {"Softplus|softplus", same<"Softplus">},
      {"Softsign|softsign", same<"Softsign">},
      {"Sparsemax|sparsemax", sparsemax},
      {"SparsePlus|sparse_plus", sparse_plus},
      {"SparseSigmoid|sparse_sigmoid", sparse_sigmoid},
      {"Squareplus|squareplus", squareplus},
      {"Tanh|tanh", same<"Tanh">},
      {"TanhShrink|tanh_shrink", tanh_shrink},
      {"Threshold|threshold", threshold},
  };
  return rows;
}

}  // namespace orknn::importer::keras
