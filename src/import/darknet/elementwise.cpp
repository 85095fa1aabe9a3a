// Activation functions of Darknet, from logistic to the channel-wise normalizations of the AlexeyAB fork, and the sections that
// work value by value or have no effect.
#include "import/darknet/layer.h"
#include "import/lower/functions.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
// A straight line between two bends, continued with another slope outside of them.
TensorId bent_line(Emitter& e, TensorId x, double low, double high, double slope, double offset, double outer_slope) {
  const TensorId inner = e.clip(x, low, high);
  const TensorId middle = slope == 1 && offset == 0 ? inner : e.add(e.mul(inner, slope), offset);
  return e.add(middle, e.mul(e.sub(x, inner), outer_slope));
}

TensorId stair(Emitter& e, TensorId x) {
  const TensorId whole = e.unary("Floor", x);
  const TensorId odd = e.sub(whole, e.mul(e.unary("Floor", e.mul(whole, 0.5)), 2.0));
  return e.add(e.unary("Floor", e.mul(x, 0.5)), e.mul(e.sub(x, whole), odd));
}

TensorId hard_mish(Emitter& e, TensorId x) {
  const TensorId bend = e.clip(x, -2, 0);
  return e.add(e.add(e.mul(square(e, bend), 0.5), bend), e.unary("Relu", x));
}

// Each value as its share of the sum over the channels.
TensorId share_of_channels(Emitter& e, TensorId x) { return e.div(x, e.add(e.reduce("ReduceSum", x, {1}, true), 0.0001)); }

TensorId loggy(Emitter& e, TensorId x) { return e.unary("Tanh", e.mul(x, 0.5)); }
TensorId leaky(Emitter& e, TensorId x) { return with_alpha<"LeakyRelu">(e, x, 0.1); }
TensorId relie(Emitter& e, TensorId x) { return with_alpha<"LeakyRelu">(e, x, 0.01); }
TensorId ramp(Emitter& e, TensorId x) { return e.add(e.unary("Relu", x), e.mul(x, 0.1)); }
TensorId rounded_selu(Emitter& e, TensorId x) { return selu(e, x, 1.6732, 1.0507); }
TensorId approximate_gelu(Emitter& e, TensorId x) { return gelu(e, x, true); }
TensorId hardtan(Emitter& e, TensorId x) { return e.clip(x, -1, 1); }
TensorId lhtan(Emitter& e, TensorId x) { return bent_line(e, x, 0, 1, 1, 0, 0.001); }
TensorId plse(Emitter& e, TensorId x) { return bent_line(e, x, -4, 4, 0.125, 0.5, 0.01); }
TensorId relu_share(Emitter& e, TensorId x) { return share_of_channels(e, e.unary("Relu", x)); }
TensorId exp_share(Emitter& e, TensorId x) { return share_of_channels(e, e.unary("Exp", x)); }
TensorId softmax_share(Emitter& e, TensorId x) { return exp_share(e, e.sub(x, e.reduce("ReduceMax", x, {1}, true))); }

// The layer before gives a factor per channel (or per pixel) of another layer.
Result<TensorId> multiply(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> references, l.integers("from"));
  ORKNN_TRY_ASSIGN(const TensorId other, l.layer_at(references[0]));
  ORKNN_TRY_ASSIGN(const Pictures x, l.pictures(other));
  ORKNN_TRY_ASSIGN(const Pictures factor, l.pictures(previous));
  return l.activated(l.mul(x.x, factor.x));
}

TensorId only_activated(Layer& l, TensorId x) { return l.activated(x); }
}  // namespace

std::span<const Row> elementwise_rows() {
  static const Row rows[] = {
      {"scale_channels|sam", multiply},
      {"logistic|logxent", same<"Sigmoid">},
      {"activation|dropout|cost|contrastive|empty|silence", only_activated},
  };
  return rows;
}

TensorId activate(Layer& layer, TensorId x, std::string_view name) {
  static const OperatorRow<InnerLayer> rows[] = {
      {"linear", pass_on},
      {"logistic", same<"Sigmoid">},
      {"loggy", loggy},
      {"relu", same<"Relu">},
      {"relu6", relu6},
      {"leaky|revleaky", leaky},
      {"relie", relie},
      {"ramp", ramp},
      {"elu", same<"Elu">},
      {"selu", rounded_selu},
      {"gelu", approximate_gelu},
      {"tanh", same<"Tanh">},
      {"hardtan", hardtan},
      {"lhtan", lhtan},
      {"plse", plse},
      {"stair", stair},
      {"swish", same<"Swish">},
      {"mish", same<"Mish">},
      {"hard_mish", hard_mish},
      {"normalize_channels", relu_share},
      {"normalize_channels_softmax", exp_share},
      {"normalize_channels_softmax_maxval", softmax_share},
  };
  static const RowTable<InnerLayer> by_name{rows};
  InnerLayer inner(layer, x);
  if (const auto* row = by_name.find(name)) return (*row)(inner)->front();
  layer.warn("activation '" + std::string(name.substr(0, 40)) + "' is not known; relu is taken, as Darknet does");
  return layer.unary("Relu", x);
}

}  // namespace orknn::importer::darknet
