#include "quantize/layer_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/files.h"
#include "ops/eval.h"
#include "ops/facts.h"
#include "quantize/adaptive_rounding.h"
#include "quantize/bias_correction.h"
#include "quantize/forms/functions.h"
#include "quantize/layer_formats.h"
#include "quantize/tails.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Real weights of a layer as its integer form multiplies them.
struct RealWeights {
  TensorData values;                  // convolutions as they are, products [K, N]
  std::optional<QuantParams> stated;  // the integers that the model holds, if it does
  std::optional<int64_t> channels;    // axis of the output channels, if they have one
  std::vector<double> bias;
};

RealWeights conv_weights(const Graph& g, const Node& n) {
  RealWeights w{*g.constant(n.input(1)), g.tensor(n.input(1)).quant, 0, {}};
  // Weights of a transposed convolution are [in, out / group, ...]: with groups a channel is no axis of its own.
  if (ops::facts_of(n).weights == Weights::InOut)
    w.channels = n.attributes.int_or("group", 1) == 1 ? std::optional<int64_t>(1) : std::nullopt;
  if (n.has_input(2)) w.bias = to_doubles(g.constant(n.input(2))->view());
  return w;
}

TensorData multiplied(const TensorData& values, double factor) {
  TensorData result = TensorData::allocate(DType::Float32, values.dims());
  auto* to = static_cast<float*>(result.mutable_data());
  for (int64_t i = 0; i < values.count(); ++i) to[i] = static_cast<float>(values.as<float>()[i] * factor);
  return result;
}

// Transposition and factors of a Gemm go into its weights and bias.
Status resolve_gemm(const Graph& g, const OpSet& ops, const Node& n, RealWeights& w) {
  const double alpha = n.attributes.float_or("alpha", 1), beta = n.attributes.float_or("beta", 1);
  if (n.attributes.int_or("transB", 0) != 0) {
    ORKNN_TRY_ASSIGN(auto transposed, ops::eval_node(free_node("Transpose", {}, 1), ops, std::span(&w.values, 1)));
    release_mapped_pages({static_cast<const std::byte*>(w.values.data()), w.values.bytes()});  // rarely looked at again
    w.values = transposed[0];
    if (w.stated && w.stated->axis >= 0) w.stated->axis = 1 - w.stated->axis;
  }
  if (alpha != 1) {
    if (w.stated && alpha > 0)
      for (float& s : w.stated->scale) s = static_cast<float>(s * alpha);
    else
      w.stated.reset();
    w.values = multiplied(w.values, alpha);
  }
  if (!n.has_input(2)) return {};
  w.bias = to_doubles(g.constant(n.input(2))->view());
  w.bias.resize(static_cast<size_t>(w.values.dims().back()), w.bias.empty() ? 0 : w.bias[0]);
  for (double& v : w.bias) v *= beta;
  return {};
}

Result<RealWeights> product_weights(const Graph& g, const OpSet& ops, const Node& n) {
  RealWeights w{*g.constant(n.input(1)), g.tensor(n.input(1)).quant, {}, {}};
  if (n.op == "Gemm") ORKNN_TRY(resolve_gemm(g, ops, n, w));
  if (const TensorData* added = tail_parts(g, n, Form::MatMul).bias) w.bias = to_doubles(added->view());
  w.channels = static_cast<int64_t>(w.values.dims().size()) - 1;
  return w;
}

// Scales below these would leave a sum no room beside the bias.
std::vector<double> least_scales(std::span<const double> bias, double x_scale) {
  constexpr double kLargestBias = 1073741824.0;
  std::vector<double> list;
  for (double b : bias) list.push_back(std::isfinite(b) ? std::abs(b) / (x_scale * kLargestBias) : 0);
  return list;
}

// Rounds one layer.
class LayerRounding {
 public:
  LayerRounding(const Graph& graph, const Node& node, const Calibration& calibration, const QuantizeOptions& options)
      : graph_(graph),
        node_(node),
        calibration_(calibration),
        options_(options),
        weights_(ops::facts_of(node).weights),
        format_(format_of(options, graph.tensor(node.output()).name)) {}

  LayerWeights round(const RealWeights& w, double x_scale) const {
    LayerWeights result;
    result.bias = w.bias;
    if (options_.per_channel && !format_.per_tensor) result.axis = w.channels;
    if (w.stated && (w.stated->scale.size() == 1 || (w.channels && w.stated->axis == *w.channels)))
      if (auto q = stored_weights(w.values, *w.stated)) {
        result.rounded = std::move(*q);
        return result;
      }
    const std::vector<double> least = least_scales(w.bias, x_scale);
    if (const RoundedLayer* ahead = rounded_on_samples(w.values, result.axis, least)) {
      result.rounded = ahead->weights;
      result.shift = ahead->bias_shift;
      return result;
    }
    result.rounded = round_weights(w.values, result.axis, least, format_.weights, format_.power_of_two);
    // A transposed convolution spreads its weights over results that each see a part of them.
    if (weights_ == Weights::OutIn && dtype_bytes(result.rounded.values.dtype()) == 1)
      result.shift = bias_correction(node_, w.values, result.rounded, channels_of(node_.input(0)));
    return result;
  }

 private:
  // What adaptive rounding made of the layer; it may come from a file, so it has to fit.
  const RoundedLayer* rounded_on_samples(const TensorData& w, std::optional<int64_t> axis, std::span<const double> least) const {
    if (!calibration_.rounded || format_.weights != DType::Int8 || format_.power_of_two) return nullptr;
    const std::string& name = graph_.tensor(node_.output()).name;
    const auto it = calibration_.rounded->find(name);
    if (it == calibration_.rounded->end() || options_.nearest_layers.contains(name)) return nullptr;
    const RoundedLayer& ahead = it->second;
    const std::vector<double>& scales = ahead.weights.scales;
    if (weights_ == Weights::InOut || ahead.weights.values.dims() != w.dims()) return nullptr;
    const auto outputs = static_cast<size_t>(weights_ == Weights::OutIn ? w.dims()[0] : w.dims().back());
    if (scales.size() != (axis ? outputs : 1) || ahead.bias_shift.size() != outputs) return nullptr;
    for (size_t i = 0; i < least.size(); ++i)
      if (least[i] > scales[scales.size() == 1 ? 0 : i]) return nullptr;
    return &ahead;
  }

  // What calibration said about the channels of a tensor; nothing when it was not seen.
  std::vector<ChannelStatistics> channels_of(TensorId t) const {
    const std::string& name = graph_.tensor(t).name;
    if (const auto seen = calibration_.statistics.find(name); seen != calibration_.statistics.end())
      return {seen->second.channels().begin(), seen->second.channels().end()};
    std::vector<ChannelStatistics> channels;
    if (const auto means = options_.channel_means.find(name); means != options_.channel_means.end())
      for (double mean : means->second) channels.push_back({.sum = mean, .count = 1});
    return channels;
  }

  const Graph& graph_;
  const Node& node_;
  const Calibration& calibration_;
  const QuantizeOptions& options_;
  Weights weights_;
  const NumberFormat& format_;
};

std::string to_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}
}  // namespace

Status round_layer_weights(passes::Rewriter& rewriter, const Calibration& calibration, const QuantizeOptions& options,
                           Plan& plan) {
  const Graph& graph = rewriter.graph();
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    const Form form = plan.form(id).form;
    if ((form != Form::Conv && form != Form::MatMul) || !graph.is_constant(n.input(1))) continue;
    RealWeights w;
    if (form == Form::Conv) {
      w = conv_weights(graph, n);
    } else {
      ORKNN_TRY_ASSIGN(w, product_weights(graph, rewriter.ops(), n));
    }
    plan.weights[id.index] = LayerRounding(graph, n, calibration, options).round(w, plan.parameters(n.input(0))->scale[0]);
  }
  return {};
}

Status correct_biases(passes::Rewriter& rewriter, Plan& plan) {
  const Graph& graph = rewriter.graph();
  for (NodeId id : graph.order()) {
    const auto it = plan.weights.find(id.index);
    if (it == plan.weights.end()) continue;
    std::vector<double>&bias = it->second.bias, &shift = it->second.shift;
    if (!bias.empty() && bias.size() != shift.size()) continue;
    bias.resize(shift.size(), 0);
    double largest = 0;
    for (size_t i = 0; i < shift.size(); ++i) {
      bias[i] += shift[i];
      largest = std::max(largest, std::abs(shift[i]));
    }
    if (largest > 0)
      rewriter.remark("'" + graph.tensor(graph.node(id).output()).name + "': bias moved by up to " + to_text(largest));
  }
  return {};
}

}  // namespace orknn::quantize
