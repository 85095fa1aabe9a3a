#include "quantize/channel_importance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "ir/known_dims.h"
#include "ops/facts.h"
#include "quantize/channel_flow.h"
#include "quantize/channel_weights.h"
#include "quantize/layer_forms.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// By channel of the layer's input: sum of the squared weights that read it, each times the importance of the result's channel it
// goes to (`results`; empty = all alike). Empty where that is not all that happens to the input.
std::vector<double> squared_weights(const Graph& graph, const Node& n, std::span<const float> results) {
  const Weights order = ops::facts_of(n).weights;
  if (order == Weights::None) return {};
  const TensorData* w = graph.constant(n.input(1));
  const Tensor& x = graph.tensor(n.input(0));
  if (!w || w->dtype() != DType::Float32 || w->dims().size() < 2 || !x.shape || x.shape->size() < 2) return {};
  // In products of more axes the channels are the last.
  if (order == Weights::Matrix && (w->dims().size() != 2 || x.shape->size() != 2 || n.attributes.int_or("transA", 0) != 0))
    return {};
  const Dim& extent = (*x.shape)[1];
  if (!extent.is_known() || extent.value() < 0) return {};
  const WeightGrid grid(n, w->dims());
  if (grid.inputs() > extent.value() || (!results.empty() && grid.outputs() > static_cast<int64_t>(results.size()))) return {};
  std::vector<double> sums(static_cast<size_t>(extent.value()), 0);
  const float* values = w->as<float>();
  sum_weights(grid, !grid.rows_are_outputs, sums, [&](int64_t at, int64_t row, int64_t column) {
    const auto result = static_cast<size_t>(grid.rows_are_outputs ? row : column);
    return static_cast<double>(values[at]) * values[at] * (results.empty() ? 1 : results[result]);
  });
  return sums;
}

// The network from its end to its start: what is known of a layer's result says what its inputs are worth.
class Importance {
 public:
  explicit Importance(const Graph& graph) : graph_(graph), tensors_(graph.tensor_count()) {
    for (TensorId t : graph.inputs()) at(t).otherwise = true;
    for (TensorId t : graph.outputs()) at(t).otherwise = true;
  }

  ChannelImportance run() && {
    const std::vector<NodeId> order = graph_.order();
    for (auto it = order.rbegin(); it != order.rend(); ++it) read(graph_.node(*it));  // all readers of its result have been met
    return std::move(known_);
  }

 private:
  struct Seen {
    std::vector<double> sums;
    bool otherwise = false;  // something else reads it
  };
  Seen& at(TensorId t) { return tensors_[static_cast<size_t>(t.index)]; }

  // Of the layer's result, 1 on average; empty = not known.
  std::span<const float> of_result(const Node& n) {
    if (n.outputs.size() != 1 || !n.output() || at(n.output()).otherwise || at(n.output()).sums.empty()) return {};
    const std::vector<double>& sums = at(n.output()).sums;
    const double total = std::reduce(sums.begin(), sums.end());
    std::vector<float>& list = known_[graph_.tensor(n.output()).name];
    for (double v : sums) list.push_back(static_cast<float>(v * static_cast<double>(sums.size()) / total));
    return list;
  }

  void read(const Node& n) {
    const std::span<const float> results = of_result(n);
    if (ops::facts_of(n).parts == Parts::Joined && n.tail.empty() && !results.empty() && joins_channels(n)) {
      for (size_t first = 0; TensorId t : n.inputs) {
        const auto extent = static_cast<size_t>((*dims_of(graph_, t))[1]);
        const auto part = results.subspan(first, extent);
        add(t, {part.begin(), part.end()});
        first += extent;
      }
      return;
    }
    for (size_t i = 1; i < n.inputs.size(); ++i)
      if (n.inputs[i]) at(n.inputs[i]).otherwise = true;
    if (n.inputs.empty() || !n.inputs[0]) return;
    if (n.tail.empty() && (keeps_channels(graph_, n) || (is_function(graph_, n) && ops::facts_of(n).keeps_range)))
      add(n.inputs[0], {results.begin(), results.end()});
    else
      add(n.inputs[0], squared_weights(graph_, n, results));
  }

  // All operands have channels of their own, and those of the result are theirs.
  bool joins_channels(const Node& n) const {
    const auto y = dims_of(graph_, n.output());
    if (!y || y->size() < 2) return false;
    const auto axis = normalize_axis(n.attributes.int_or("axis", 0), static_cast<int64_t>(y->size()));
    if (!axis || *axis != 1) return false;
    return std::ranges::all_of(n.inputs, [&](TensorId t) { return dims_of(graph_, t).has_value(); });
  }

  // One reader more. Readers count alike, whatever the size of their weights.
  void add(TensorId t, const std::vector<double>& sums) {
    Seen& read = at(t);
    const double total = std::reduce(sums.begin(), sums.end());
    if (!(total > 0) || !std::isfinite(total) || (!read.sums.empty() && read.sums.size() != sums.size())) {
      read.otherwise = true;
      return;
    }
    read.sums.resize(sums.size());
    for (size_t c = 0; c < sums.size(); ++c) read.sums[c] += sums[c] / total;
  }

  const Graph& graph_;
  std::vector<Seen> tensors_;
  ChannelImportance known_;
};
}  // namespace

ChannelImportance channel_importance(const Graph& graph) { return Importance(graph).run(); }

}  // namespace orknn::quantize
