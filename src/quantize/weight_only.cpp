#include "quantize/weight_only.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/threads.h"
#include "ir/packed.h"
#include "ops/facts.h"
#include "quantize/adaptive_rounding.h"
#include "quantize/bias_correction.h"
#include "quantize/input_moments.h"
#include "quantize/weights.h"

namespace orknn::quantize {
using namespace ir;
namespace {

struct WeightAxes {
  std::optional<int64_t> output, input;
};

std::optional<WeightAxes> weight_axes(const Graph& g, const Node& n) {
  const TensorData* w = g.constant(n.input(1));
  if (!w || w->dtype() != DType::Float32 || w->dims().size() < 2) return std::nullopt;
  const auto rank = static_cast<int64_t>(w->dims().size());
  switch (ops::facts_of(n).weights) {
    case Weights::OutIn: return WeightAxes{0, 1};
    // With groups an output channel is no axis of its own.
    case Weights::InOut: return n.attributes.int_or("group", 1) == 1 ? WeightAxes{1, 0} : WeightAxes{};
    case Weights::Matrix: return n.attributes.int_or("transB", 0) != 0 ? WeightAxes{0, 1} : WeightAxes{rank - 1, rank - 2};
    case Weights::None: break;
  }
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

// Rounded weights in the making.
struct Rounding {
  TensorData weights;
  Dims block, counts;  // per axis: weights that share a scale, and how many such blocks
  std::vector<int8_t> integers;
  std::vector<float> scales;  // by block

  int64_t block_of(int64_t element) const {
    int64_t at = 0, factor = 1;
    for (size_t k = block.size(); k-- > 0;) {
      at += element % weights.dims()[k] / block[k] * factor;
      element /= weights.dims()[k];
      factor *= counts[k];
    }
    return at;
  }
};

// Every weight to the nearest integer.
Rounding round_to_nearest(const TensorData& w, const WeightAxes& axes, const WeightOnlyOptions& options) {
  Rounding r{w, blocks_of(w.dims(), axes, options), {}, std::vector<int8_t>(static_cast<size_t>(w.count())), {}};
  for (size_t i = 0; i < r.block.size(); ++i) r.counts.push_back((w.dims()[i] + r.block[i] - 1) / r.block[i]);
  std::vector<std::vector<int64_t>> blocks(static_cast<size_t>(element_count(r.counts)));
  for (int64_t i = 0; i < w.count(); ++i) blocks[static_cast<size_t>(r.block_of(i))].push_back(i);
  r.scales.resize(blocks.size());
  const float* from = w.as<float>();
  ThreadPool::shared().parallel_for(static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> values;
    for (int64_t b = begin; b < end; ++b) {
      values.clear();
      for (int64_t i : blocks[static_cast<size_t>(b)]) values.push_back(from[i]);
      const auto scale = static_cast<float>(block_scale(values, options));
      r.scales[static_cast<size_t>(b)] = scale;
      for (int64_t i : blocks[static_cast<size_t>(b)])
        r.integers[static_cast<size_t>(i)] = static_cast<int8_t>(rounded(from[i], scale, 0, limits_of(options.type, true)));
    }
  });
  return r;
}

// One output channel: its weights, which of its scales each has, and the moments of its inputs.
struct Row {
  std::vector<float> weights;
  std::vector<size_t> block;
  std::span<const float> products;

  // e is the error that integers and scales leave.
  double difference(size_t i, std::span<const int8_t> integers, std::span<const float> scales) const {
    return static_cast<double>(weights[i]) - static_cast<double>(integers[i]) * scales[block[i]];
  }
  // M e
  void set_slope(std::span<const int8_t> integers, std::span<const float> scales, std::vector<double>& slope) const {
    const size_t size = weights.size();
    slope.assign(size, 0);
    for (size_t i = 0; i < size; ++i) {
      const double e = difference(i, integers, scales);
      const float* row = products.data() + i * size;
      for (size_t j = 0; j < size; ++j) slope[j] += e * row[j];
    }
  }
  // e' M e
  double error(std::span<const int8_t> integers, std::span<const float> scales, std::span<const double> slope) const {
    double total = 0;
    for (size_t i = 0; i < weights.size(); ++i) total += difference(i, integers, scales) * slope[i];
    return total;
  }

  std::vector<int8_t> round(std::span<const float> scales, int limit) const {
    if (scales.size() == 1) return round_row(weights, products, scales[0], limit);
    // In units of their scales all weights have the scale 1.
    const size_t size = weights.size();
    std::vector<float> units(size), moments(size * size);
    for (size_t i = 0; i < size; ++i) {
      units[i] = weights[i] / scales[block[i]];
      for (size_t j = 0; j < size; ++j) moments[i * size + j] = products[i * size + j] * scales[block[i]] * scales[block[j]];
    }
    return round_row(units, moments, 1, limit);
  }

  // The scales of least error for given integers, one after the other; the slope follows.
  void fit_scales(std::span<const int8_t> integers, std::vector<float>& scales, std::vector<double>& slope) const {
    const size_t size = weights.size();
    std::vector<double> change(size);
    for (size_t b = 0; b < scales.size(); ++b) {
      std::fill(change.begin(), change.end(), 0);
      double along = 0, across = 0;
      for (size_t i = 0; i < size; ++i) {
        if (block[i] != b || integers[i] == 0) continue;
        along += integers[i] * slope[i];
        const float* row = products.data() + i * size;
        for (size_t j = 0; j < size; ++j) change[j] += static_cast<double>(integers[i]) * row[j];
      }
      for (size_t i = 0; i < size; ++i)
        if (block[i] == b) across += integers[i] * change[i];
      const auto scale = static_cast<float>(scales[b] + along / across);
      if (!(across > 0) || !(scale > 1e-30f) || !std::isfinite(scale)) continue;
      const double step = static_cast<double>(scale) - scales[b];
      scales[b] = scale;
      for (size_t j = 0; j < size; ++j) slope[j] -= step * change[j];
    }
  }
};

// One output channel, whose weight k is element(k). Scales that other channels use too stay.
template <class Element>
void fit_channel(Rounding& r, Element element, std::span<const float> products, int64_t size, const WeightOnlyOptions& options) {
  constexpr int kIterations = 4;
  constexpr double kWorthAnother = 0.02;  // share of the error that is left
  const auto limit = static_cast<int>(limits_of(options.type, true).high);
  Row row;
  row.products = products;
  std::vector<int8_t> integers;
  std::vector<int64_t> blocks;  // those of the row, by first appearance
  for (int64_t k = 0; k < size; ++k) {
    const float v = r.weights.as<float>()[element(k)];
    row.weights.push_back(std::isfinite(v) ? v : 0.0f);
    integers.push_back(r.integers[static_cast<size_t>(element(k))]);
    const int64_t block = r.block_of(element(k));
    const auto known = std::find(blocks.begin(), blocks.end(), block);
    row.block.push_back(static_cast<size_t>(known - blocks.begin()));
    if (known == blocks.end()) blocks.push_back(block);
  }
  std::vector<float> scales;
  for (int64_t b : blocks) scales.push_back(r.scales[static_cast<size_t>(b)]);
  std::vector<double> slope;
  row.set_slope(integers, scales, slope);
  double least = row.error(integers, scales, slope);
  std::vector<int8_t> best = integers;
  std::vector<float> best_scales = scales;
  for (int i = 0; i < kIterations; ++i) {
    integers = row.round(scales, limit);
    row.set_slope(integers, scales, slope);
    if (options.per_channel) row.fit_scales(integers, scales, slope);
    const double error = row.error(integers, scales, slope), gain = least - error;
    if (!(gain > 0)) break;
    least = error;
    best = integers;
    best_scales = scales;
    if (!options.per_channel || gain < kWorthAnother * least) break;
  }
  for (int64_t k = 0; k < size; ++k) r.integers[static_cast<size_t>(element(k))] = best[static_cast<size_t>(k)];
  if (options.per_channel)
    for (size_t b = 0; b < blocks.size(); ++b) r.scales[static_cast<size_t>(blocks[b])] = best_scales[b];
}

// Moves weights and scales from the nearest integers to where the layer's error on the samples is least. Integers for given
// scales alternate with scales for given integers; the best of all iterations stays.
void fit_to_samples(Rounding& r, const Node& n, const InputMoments& moments, const WeightOnlyOptions& options) {
  const int64_t size = moments.size, outputs = r.weights.count() / size, outputs_per_group = outputs / moments.groups;
  if (outputs_per_group < 1 || outputs * size != r.weights.count()) return;
  // Conv and a transposed Gemm keep a channel's weights together; [K, N] has them a row apart.
  const bool together = ops::facts_of(n).weights == Weights::OutIn || n.attributes.int_or("transB", 0) != 0;
  ThreadPool::shared().parallel_for(outputs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      fit_channel(
          r, [&](int64_t k) { return together ? o * size + k : k * outputs + o; },
          moments.products.subspan(static_cast<size_t>(o / outputs_per_group * size * size), static_cast<size_t>(size * size)),
          size, options);
  });
}

Status keep_stored_weights(passes::Rewriter& rewriter) {
  Graph graph = rewriter.graph();
  size_t kept = 0;
  for (NodeId id : graph.order()) {
    const TensorId t = graph.node(id).input(1);
    if (!weight_axes(graph, graph.node(id)) || !graph.tensor(t).quant || graph.tensor(t).constant.packed()) continue;
    Tensor& tensor = graph.tensor(t);
    const QuantParams& grid = *tensor.quant;
    const Dims& dims = tensor.constant.dims();
    if (std::any_of(grid.zero_point.begin(), grid.zero_point.end(), [](int32_t z) { return z != 0; }) ||
        tensor.constant.count() == 0)
      continue;
    const auto stored = stored_weights(tensor.constant, grid);
    if (!stored) continue;
    Dims block = dims;
    if (grid.axis >= 0) block[static_cast<size_t>(grid.axis)] = 1;
    const auto integers = stored->values.values<int8_t>();
    const bool narrow = std::all_of(integers.begin(), integers.end(), [](int8_t v) { return v >= -8 && v <= 7; });
    const TensorData value = unpack(pack(narrow ? DType::Int4 : DType::Int8, dims, block, integers, grid.scale), DType::Float32);
    if (!identical(value.view(), tensor.constant.view())) continue;
    tensor.constant = value;
    ++kept;
  }
  if (kept == 0) return {};
  rewriter.remark(fmt::format("{} constant(s) are stored as the integers of the source model", kept));
  return rewriter.replace_graph(std::move(graph));
}

Status forget_constant_grids(passes::Rewriter& rewriter) {
  Graph graph = rewriter.graph();
  size_t forgotten = 0;
  for (size_t i = 0; i < graph.tensor_count(); ++i) {
    Tensor& t = graph.tensor({static_cast<int32_t>(i)});
    if (!t.is_constant() || !is_float(t.dtype) || !t.quant) continue;
    t.quant.reset();
    ++forgotten;
  }
  return forgotten > 0 ? rewriter.replace_graph(std::move(graph)) : Status();
}

using Use = std::pair<TensorId, std::optional<int64_t>>;  // a constant, and which axis of it holds the output channels

std::string reason_to_leave(const Graph& graph, const Node& n, const std::optional<WeightAxes>& axes, const std::string& output,
                            const WeightOnlyOptions& options) {
  if (!axes) return "it has no constant weights";
  if (graph.tensor(n.input(1)).constant.count() < options.least_count) return "it has few weights";
  return options.keep && options.keep(output) ? "left in float on request" : "";
}

// The steps of one network. Weights that layers share are rounded once.
class WeightRounding {
 public:
  WeightRounding(const Graph& graph, const WeightOnlyOptions& options) : options_(options) {
    for (NodeId id : graph.order()) choose(graph, id);
  }

  std::vector<passes::Pass> steps() {
    const bool fits = options_.run && options_.fit_to_samples && takes(kRoundAdaptively);
    const bool corrects = options_.run && !fits && takes(kCorrectBias);
    std::vector<passes::Pass> list;
    if (corrects) list.push_back(pass_of(kMeasureTensors, [this](passes::Rewriter& r) { return measure(r.graph()); }));
    if (fits) list.push_back(pass_of(kRoundAdaptively, [this](passes::Rewriter& r) { return fit(r); }));
    list.push_back(pass_of(kRoundWeights, [this](passes::Rewriter& r) { return round(r); }));
    if (corrects) list.push_back(pass_of(kCorrectBias, [this](passes::Rewriter& r) { return correct_biases(r); }));
    return list;
  }
  std::vector<LayerDecision> take_decisions() { return std::move(decisions_); }

 private:
  struct Layer {
    NodeId id;
    Use use;
    WeightAxes axes;
  };
  struct Weights {
    TensorData real, rounded;
  };

  bool takes(const Step& step) const { return options_.steps.runs(step.name, step.min_level); }

  void choose(const Graph& graph, NodeId id) {
    const Node& n = graph.node(id);
    const auto axes = weight_axes(graph, n);
    const std::string output = n.output() ? graph.tensor(n.output()).name : "";
    const std::string reason = reason_to_leave(graph, n, axes, output, options_);
    decisions_.push_back({n.name, n.type_name(), output, reason.empty(), reason});
    if (reason.empty()) layers_.push_back({id, {n.input(1), axes->output}, *axes});
  }

  // What the convolutions read on the samples.
  Status measure(const Graph& graph) {
    for (NodeId id : graph.order())
      if (const Node& n = graph.node(id); ops::facts_of(n).weights == ir::Weights::OutIn)
        statistics_.try_emplace(graph.tensor(n.input(0)).name, false);
    return options_.run(graph, options_.samples, [&](std::string_view name, const TensorView& value) {
      if (const auto it = statistics_.find(name); it != statistics_.end() && value.dtype == DType::Float32) it->second.add(value);
    });
  }

  // Weights of a layer that others share too are fitted to the inputs of the first one.
  Status fit(passes::Rewriter& rewriter) {
    const Graph& graph = rewriter.graph();
    std::map<NodeId, const Layer*> first_users;
    std::set<Use> seen;
    for (const Layer& l : layers_)
      if (seen.insert(l.use).second) first_users.emplace(l.id, &l);
    return visit_input_moments(
        graph, options_.run, options_.samples, [&](NodeId id) { return first_users.contains(id); },
        [&](const InputMoments& moments) {
          const Layer& l = *first_users.at(moments.node);
          const TensorData& real = graph.tensor(l.use.first).constant;
          finish(moments, false, 0);
          Rounding r = round_to_nearest(real, l.axes, options_);
          fit_to_samples(r, graph.node(l.id), moments, options_);
          rewriter.remark("'" + graph.tensor(graph.node(l.id).output()).name + "': weights and scales are fitted to the samples");
          weights_.emplace(l.use, Weights{real, packed(r)});
        });
  }

  TensorData packed(const Rounding& r) const {
    return unpack(pack(options_.type, r.weights.dims(), r.block, r.integers, r.scales), DType::Float32);
  }

  Status round(passes::Rewriter& rewriter) {
    const Graph& graph = rewriter.graph();
    Patch patch(graph);
    std::map<Use, TensorId> constants;
    for (const Layer& l : layers_) {
      Node n = graph.node(l.id);
      const TensorData& real = graph.tensor(l.use.first).constant;
      if (!weights_.contains(l.use)) weights_.emplace(l.use, Weights{real, packed(round_to_nearest(real, l.axes, options_))});
      auto [it, fresh] = constants.try_emplace(l.use, TensorId{});
      if (fresh) it->second = patch.add_constant(graph.tensor(l.use.first).name + "_rounded", weights_.at(l.use).rounded);
      n.inputs[1] = it->second;
      patch.replace_node(l.id, std::move(n));
    }
    return apply(rewriter, patch);
  }

  // Biases take back what rounded weights do to the mean of each channel, where that is known.
  Status correct_biases(passes::Rewriter& rewriter) {
    const Graph& graph = rewriter.graph();
    Patch patch(graph);
    for (const Layer& l : layers_) {
      Node n = graph.node(l.id);
      const auto bias = corrected_bias(graph, n, weights_.at(l.use));
      if (!bias) continue;
      n.inputs[2] = patch.add_constant(graph.tensor(n.input(2)).name + "_corrected", *bias);
      patch.replace_node(l.id, std::move(n));
    }
    return apply(rewriter, patch);
  }

  std::optional<TensorData> corrected_bias(const Graph& graph, const Node& n, const Weights& weights) const {
    const TensorData* bias = graph.constant(n.input(2));
    const auto seen = statistics_.find(graph.tensor(n.input(0)).name);
    if (ops::facts_of(n).weights != ir::Weights::OutIn || !bias || bias->dtype() != DType::Float32 || seen == statistics_.end())
      return std::nullopt;
    const std::vector<double> shift = bias_correction(n, weights.real, weights.rounded, seen->second.channels());
    if (shift.size() != static_cast<size_t>(bias->count())) return std::nullopt;
    TensorData result = TensorData::allocate(DType::Float32, bias->dims());
    for (size_t i = 0; i < shift.size(); ++i)
      static_cast<float*>(result.mutable_data())[i] = static_cast<float>(bias->as<float>()[i] + shift[i]);
    return result;
  }

  static Status apply(passes::Rewriter& rewriter, const Patch& patch) {
    return patch.empty() ? Status() : rewriter.apply(patch).status();
  }

  const WeightOnlyOptions& options_;
  std::vector<LayerDecision> decisions_;
  std::vector<Layer> layers_;  // whose weights are rounded
  TensorStatistics statistics_;
  std::map<Use, Weights> weights_;
};
}  // namespace

Status settle_constants(Graph& graph, const OpSet& ops, const passes::Options& options, passes::Trace* trace) {
  return run_steps(graph, ops,
                   {pass_of(kKeepStoredWeights, keep_stored_weights), pass_of(kForgetConstantGrids, forget_constant_grids)},
                   options, trace);
}

Result<std::vector<LayerDecision>> round_weights_only(Graph& graph, const OpSet& ops, const WeightOnlyOptions& options) {
  WeightRounding rounding(graph, options);
  ORKNN_TRY(run_steps(graph, ops, rounding.steps(), options.steps, options.trace));
  return rounding.take_decisions();
}

}  // namespace orknn::quantize
