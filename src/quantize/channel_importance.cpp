#include "quantize/channel_importance.h"

#include <cmath>
#include <span>

#include "quantize/channel_weights.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// By channel of the layer's input: sum of the squared weights that read it, each times the importance of the result's channel it
// goes to (`results`; empty = all alike). Empty where that is not all that happens to the input.
std::vector<double> squared_weights(const Graph& graph, const Node& n, std::span<const float> results) {
  if (n.op != "Conv" && n.op != "ConvTranspose" && n.op != "Gemm") return {};
  const TensorData* w = graph.constant(n.input(1));
  const Tensor& x = graph.tensor(n.input(0));
  if (!w || w->dtype() != DType::Float32 || w->dims().size() < 2 || !x.shape || x.shape->size() < 2) return {};
  if (n.op == "Gemm" && (w->dims().size() != 2 || n.attributes.int_or("transA", 0) != 0)) return {};
  const Dim& extent = (*x.shape)[1];
  if (!extent.is_known() || extent.value() < 0) return {};
  std::vector<double> sums(static_cast<size_t>(extent.value()), 0);
  const float* values = w->as<float>();
  bool fits = true;
  visit_weights(n, w->dims(), [&](int64_t at, int64_t result, int64_t channel) {
    fits &= channel < extent.value() && (results.empty() || result < static_cast<int64_t>(results.size()));
    if (fits)
      sums[static_cast<size_t>(channel)] +=
          static_cast<double>(values[at]) * values[at] * (results.empty() ? 1 : results[static_cast<size_t>(result)]);
  });
  return fits ? sums : std::vector<double>{};
}
}  // namespace

ChannelImportance channel_importance(const Graph& graph) {
  struct Seen {
    std::vector<double> sums;
    bool otherwise = false;  // something else reads it
  };
  std::vector<Seen> tensors(graph.tensor_count());
  const auto at = [&](TensorId t) -> Seen& { return tensors[static_cast<size_t>(t.index)]; };
  for (TensorId t : graph.inputs()) at(t).otherwise = true;
  for (TensorId t : graph.outputs()) at(t).otherwise = true;
  ChannelImportance result;
  const std::vector<NodeId> order = graph.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& n = graph.node(*it);
    // All readers of this layer's result have been met.
    const std::vector<float>* results = nullptr;
    if (n.outputs.size() == 1 && n.output() && !at(n.output()).otherwise && !at(n.output()).sums.empty()) {
      const std::vector<double>& sums = at(n.output()).sums;
      double total = 0;
      for (double v : sums) total += v;
      std::vector<float>& list = result[graph.tensor(n.output()).name];
      for (double v : sums) list.push_back(static_cast<float>(v * static_cast<double>(sums.size()) / total));
      results = &list;
    }
    for (size_t i = 1; i < n.inputs.size(); ++i)
      if (n.inputs[i]) at(n.inputs[i]).otherwise = true;
    if (n.inputs.empty() || !n.inputs[0]) continue;
    Seen& read = at(n.inputs[0]);
    const std::vector<double> sums =
        squared_weights(graph, n, results ? std::span<const float>(*results) : std::span<const float>());
    double total = 0;
    for (double s : sums) total += s;
    if (!(total > 0) || !std::isfinite(total) || (!read.sums.empty() && read.sums.size() != sums.size())) {
      read.otherwise = true;
      continue;
    }
    read.sums.resize(sums.size());
    for (size_t c = 0; c < sums.size(); ++c) read.sums[c] += sums[c] / total;
  }
  return result;
}

}  // namespace orknn::quantize
