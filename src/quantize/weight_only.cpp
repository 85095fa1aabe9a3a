#include "quantize/weight_only.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/threads.h"
#include "ir/packed.h"

namespace orknn::quantize {
using namespace ir;
namespace {

struct WeightAxes {
  std::optional<int64_t> output, input;
};

std::optional<WeightAxes> weight_axes(const Graph& g, const Node& n) {
  const TensorData* w = g.constant(n.input(1));
  if (!w || w->dtype() != DType::Float32 || w->dims().size() < 2) return std::nullopt;
  if (n.op == "Conv") return WeightAxes{0, 1};
  // Weights of a transposed convolution are [in, out / group, ...]: with groups an output channel is no axis of its own.
  if (n.op == "ConvTranspose") return n.attributes.int_or("group", 1) == 1 ? WeightAxes{1, 0} : WeightAxes{};
  const auto rank = static_cast<int64_t>(w->dims().size());
  if (n.op == "MatMul") return WeightAxes{rank - 1, rank - 2};
  if (n.op == "Gemm") return n.attributes.int_or("transB", 0) != 0 ? WeightAxes{0, 1} : WeightAxes{1, 0};
  return std::nullopt;
}

// The scale of one block of weights.
double block_scale(std::span<const float> values, const WeightOnlyOptions& options) {
  const auto steps = static_cast<double>(limits_of(options.type, true).high);
  double largest = 0;
  for (float v : values) largest = std::max(largest, std::abs(static_cast<double>(v)));
  const double widest = largest / steps;
  if (!(widest > 1e-30) || !std::isfinite(widest)) return 1;
  if (!options.search_scales) return widest;
  double best = widest, least = INFINITY;
  for (int percent = 100; percent >= 50; percent -= 2) {
    const double scale = widest * percent / 100;
    double error = 0;
    for (float v : values) {
      const double d = v - static_cast<double>(rounded(v, scale, 0, limits_of(options.type, true))) * scale;
      error += d * d;
    }
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

// Which weights share a scale, per axis.
Dims blocks_of(const Dims& dims, const WeightAxes& axes, const WeightOnlyOptions& options) {
  Dims block;
  for (int64_t d : dims) block.push_back(std::max<int64_t>(d, 1));
  if (!options.per_channel) return block;
  if (axes.output) block[static_cast<size_t>(*axes.output)] = 1;
  if (axes.input && options.group > 0) {
    int64_t& input = block[static_cast<size_t>(*axes.input)];
    input = std::min(input, options.group);
  }
  return block;
}

TensorData rounded_weights(const TensorData& w, const WeightAxes& axes, const WeightOnlyOptions& options) {
  const Dims& dims = w.dims();
  const Dims block = blocks_of(dims, axes, options);
  // Elements by the block they belong to.
  Dims counts;
  for (size_t i = 0; i < dims.size(); ++i) counts.push_back((dims[i] + block[i] - 1) / block[i]);
  std::vector<std::vector<int64_t>> blocks(static_cast<size_t>(element_count(counts)));
  for (int64_t i = 0; i < w.count(); ++i) {
    int64_t at = 0, factor = 1, rest = i;
    for (size_t k = dims.size(); k-- > 0;) {
      at += rest % dims[k] / block[k] * factor;
      rest /= dims[k];
      factor *= counts[k];
    }
    blocks[static_cast<size_t>(at)].push_back(i);
  }
  std::vector<int8_t> integers(static_cast<size_t>(w.count()));
  std::vector<float> scales(blocks.size());
  const float* from = w.as<float>();
  ThreadPool::shared().parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> values;
    for (int64_t b = begin; b < end; ++b) {
      values.clear();
      for (int64_t i : blocks[static_cast<size_t>(b)]) values.push_back(from[i]);
      const auto scale = static_cast<float>(block_scale(values, options));
      scales[static_cast<size_t>(b)] = scale;
      for (int64_t i : blocks[static_cast<size_t>(b)]) integers[static_cast<size_t>(i)] = static_cast<int8_t>(rounded(from[i], scale, 0, limits_of(options.type, true)));
    }
  });
  return unpack(pack(options.type, dims, block, integers, scales), DType::Float32);
}
}  // namespace

std::vector<LayerDecision> round_weights_only(Graph& graph, const WeightOnlyOptions& options) {
  std::vector<LayerDecision> decisions;
  std::map<std::pair<TensorId, std::optional<int64_t>>, TensorId> made;  // a constant shared by layers is rounded once
  for (NodeId id : std::vector<NodeId>(graph.order())) {
    Node n = graph.node(id);
    auto axes = weight_axes(graph, n);
    const bool too_few = axes && graph.tensor(n.input(1)).constant.count() < options.least_count;
    if (too_few) axes.reset();
    LayerDecision decision{n.name, n.type_name(), n.output() ? graph.tensor(n.output()).name : "", axes.has_value(), axes ? "" : too_few ? "it has few weights" : "it has no constant weights"};
    decisions.push_back(std::move(decision));
    if (!axes) continue;
    auto [it, fresh] = made.try_emplace({n.input(1), axes->output}, TensorId{});
    if (fresh) it->second = graph.add_constant(graph.tensor(n.input(1)).name + "_rounded", rounded_weights(graph.tensor(n.input(1)).constant, *axes, options));
    n.inputs[1] = it->second;
    graph.replace_node(id, std::move(n));
  }
  return decisions;
}

}  // namespace orknn::quantize
