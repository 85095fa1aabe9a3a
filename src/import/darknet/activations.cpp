// Activation functions of Darknet, from logistic to the channel-wise normalizations of the AlexeyAB fork.
#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
TensorId clip(Layer& l, TensorId x, double low, double high) {
  return l.emit("Clip", {x, l.add_scalar("low", low), l.add_scalar("high", high)});
}
TensorId scaled(Layer& l, TensorId x, double factor) { return l.emit("Mul", {x, l.add_scalar("factor", factor)}); }
TensorId shifted(Layer& l, TensorId x, double shift) { return l.emit("Add", {x, l.add_scalar("shift", shift)}); }

// A straight line between two bends, continued with another slope outside of them.
TensorId bent_line(Layer& l, TensorId x, double low, double high, double slope, double offset, double outer_slope) {
  const TensorId inner = clip(l, x, low, high);
  const TensorId middle = slope == 1 && offset == 0 ? inner : shifted(l, scaled(l, inner, slope), offset);
  return l.emit("Add", {middle, scaled(l, l.emit("Sub", {x, inner}), outer_slope)});
}

TensorId stair(Layer& l, TensorId x) {
  const TensorId whole = l.emit("Floor", {x});
  const TensorId odd = l.emit("Sub", {whole, scaled(l, l.emit("Floor", {scaled(l, whole, 0.5)}), 2)});
  return l.emit("Add", {l.emit("Floor", {scaled(l, x, 0.5)}), l.emit("Mul", {l.emit("Sub", {x, whole}), odd})});
}

TensorId hard_mish(Layer& l, TensorId x) {
  const TensorId bend = clip(l, x, -2, 0);
  const TensorId curve = l.emit("Add", {scaled(l, l.emit("Mul", {bend, bend}), 0.5), bend});
  return l.emit("Add", {curve, l.emit("Relu", {x})});
}

// Each value as its share of the sum over the channels.
TensorId share_of_channels(Layer& l, TensorId x) {
  const TensorId sum = l.emit("ReduceSum", {x, l.add_ints("axes", {1})}, {{"keepdims", int64_t{1}}});
  return l.emit("Div", {x, shifted(l, sum, 0.0001)});
}

TensorId exponential_share(Layer& l, TensorId x, bool below_maximum) {
  if (below_maximum) x = l.emit("Sub", {x, l.emit("ReduceMax", {x, l.add_ints("axes", {1})}, {{"keepdims", int64_t{1}}})});
  return share_of_channels(l, l.emit("Exp", {x}));
}

struct Activation {
  std::string_view name;
  TensorId (*lower)(Layer&, TensorId);
};

constexpr Activation kActivations[] = {
    {"linear", [](Layer&, TensorId x) { return x; }},
    {"logistic", [](Layer& l, TensorId x) { return l.emit("Sigmoid", {x}); }},
    {"loggy", [](Layer& l, TensorId x) { return l.emit("Tanh", {scaled(l, x, 0.5)}); }},
    {"relu", [](Layer& l, TensorId x) { return l.emit("Relu", {x}); }},
    {"relu6", [](Layer& l, TensorId x) { return clip(l, x, 0, 6); }},
    {"leaky",
     [](Layer& l, TensorId x) {
       return l.emit("LeakyRelu", {x}, {{"alpha", 0.1}});
     }},
    {"revleaky",
     [](Layer& l, TensorId x) {
       return l.emit("LeakyRelu", {x}, {{"alpha", 0.1}});
     }},
    {"relie",
     [](Layer& l, TensorId x) {
       return l.emit("LeakyRelu", {x}, {{"alpha", 0.01}});
     }},
    {"ramp",
     [](Layer& l, TensorId x) {
       return l.emit("Add", {l.emit("Relu", {x}), scaled(l, x, 0.1)});
     }},
    {"elu", [](Layer& l, TensorId x) { return l.emit("Elu", {x}); }},
    {"selu",
     [](Layer& l, TensorId x) {
       return l.emit("Selu", {x}, {{"alpha", 1.6732}, {"gamma", 1.0507}});
     }},
    {"gelu",
     [](Layer& l, TensorId x) {
       return l.emit("Gelu", {x}, {{"approximate", std::string("tanh")}});
     }},
    {"tanh", [](Layer& l, TensorId x) { return l.emit("Tanh", {x}); }},
    {"hardtan", [](Layer& l, TensorId x) { return clip(l, x, -1, 1); }},
    {"lhtan", [](Layer& l, TensorId x) { return bent_line(l, x, 0, 1, 1, 0, 0.001); }},
    {"plse", [](Layer& l, TensorId x) { return bent_line(l, x, -4, 4, 0.125, 0.5, 0.01); }},
    {"stair", stair},
    {"swish", [](Layer& l, TensorId x) { return l.emit("Swish", {x}); }},
    {"mish", [](Layer& l, TensorId x) { return l.emit("Mish", {x}); }},
    {"hard_mish", hard_mish},
    {"normalize_channels", [](Layer& l, TensorId x) { return share_of_channels(l, l.emit("Relu", {x})); }},
    {"normalize_channels_softmax", [](Layer& l, TensorId x) { return exponential_share(l, x, false); }},
    {"normalize_channels_softmax_maxval", [](Layer& l, TensorId x) { return exponential_share(l, x, true); }},
};
}  // namespace

Result<TensorId> activate(Layer& layer, TensorId x, std::string_view name) {
  for (const Activation& a : kActivations)
    if (a.name == name) return a.lower(layer, x);
  layer.warn("activation '" + std::string(name.substr(0, 40)) + "' is not known; relu is taken, as Darknet does");
  return layer.emit("Relu", {x});
}

}  // namespace orknn::importer::darknet
