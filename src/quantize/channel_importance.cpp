#include "quantize/channel_importance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "ir/known_dims.h"
#include "ops/facts.h"
#include "quantize/channel_weights.h"
#include "quantize/kept_channels.h"
#include "quantize/layer_forms.h"
#include "quantize/wide.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Adds the squared weights of each column of a row, times `factor`.
ORKNN_WIDE void add_squares(const float* weights, int64_t columns, int64_t taps, double factor, double* sums) {
  if (taps == 1) {
    for (int64_t c = 0; c < columns; ++c) sums[c] += static_cast<double>(weights[c]) * static_cast<double>(weights[c]) * factor;
    return;
  }
  for (int64_t c = 0; c < columns; ++c, weights += taps) {
    double sum = sums[c];
    for (int64_t t = 0; t < taps; ++t) sum += static_cast<double>(weights[t]) * static_cast<double>(weights[t]) * factor;
    sums[c] = sum;
  }
}

struct Sums {
  size_t axis = 1;
  std::vector<double> channels;
};

// By channel of the layer's input: sum of the squared weights that read it, each times the importance of the result's channel it
// goes to (`results`; null = all alike). Empty where that is not all that happens to the input.
Sums squared_weights(const Graph& graph, const Node& n, const AxisImportance* results) {
  const Weights order = ops::facts_of(n).weights;
  if (order == Weights::None) return {};
  const TensorData* w = graph.constant(n.input(1));
  const Tensor& x = graph.tensor(n.input(0));
  if (!w || w->dtype() != DType::Float32 || w->dims().size() < 2 || !x.shape || x.shape->size() < 2) return {};
  if (order == Weights::Matrix && (w->dims().size() != 2 || n.attributes.int_or("transA", 0) != 0)) return {};
  const size_t axis = order == Weights::Matrix ? x.shape->size() - 1 : 1;
  const Dim& extent = (*x.shape)[axis];
  if (!extent.is_known() || extent.value() < 0) return {};
  const WeightGrid grid(n, w->dims());
  if (grid.inputs() > extent.value()) return {};
  std::span<const float> importance;
  if (results && results->axis == axis) importance = results->channels;
  if (!importance.empty() && grid.outputs() > static_cast<int64_t>(importance.size())) return {};
  std::vector<double> sums(static_cast<size_t>(extent.value()), 0);
  const float* values = w->as<float>();
  const auto factor = [&](int64_t result) { return importance.empty() ? 1.0 : importance[static_cast<size_t>(result)]; };
  if (grid.rows_are_outputs)
    sum_columns(grid, sums, [&](int64_t row, int64_t first, int64_t columns, double* to) {
      add_squares(values + (row * grid.columns + first) * grid.taps, columns, grid.taps, factor(row), to);
    });
  else
    sum_rows(grid, sums, [&](int64_t at, int64_t, int64_t result) {
      return static_cast<double>(values[at]) * static_cast<double>(values[at]) * factor(result);
    });
  return {axis, std::move(sums)};
}

// The axis of the first operand whose indices are those of `axis` of the result, where the layer only keeps or rearranges the
// values of each.
std::optional<size_t> axis_before(const Graph& graph, const Node& n, size_t axis) {
  if (is_function(graph, n) && ops::facts_of(n).keeps_range) return axis;
  if (axis == 1 && keeps_channels(graph, n)) return axis;
  const auto x = dims_of(graph, n.input(0)), y = dims_of(graph, n.output());
  if (!x || !y || x->empty() || axis >= y->size()) return std::nullopt;
  if (n.op == "Transpose") {
    const std::vector<int64_t> perm = n.attributes.ints_or("perm");
    if (perm.size() != y->size()) return std::nullopt;
    return static_cast<size_t>(perm[axis]);
  }
  // What stands in the last axis stays side by side.
  if (ops::facts_of(n).pattern == Pattern::View && axis + 1 == y->size() && x->back() == y->back()) return x->size() - 1;
  return std::nullopt;
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
    Sums sums;
    bool otherwise = false;  // something else reads it
  };
  Seen& at(TensorId t) { return tensors_[static_cast<size_t>(t.index)]; }

  // Of the layer's result, 1 on average; null = not known.
  const AxisImportance* of_result(const Node& n) {
    if (n.outputs.size() != 1 || !n.output() || at(n.output()).otherwise || at(n.output()).sums.channels.empty()) return nullptr;
    const Sums& sums = at(n.output()).sums;
    const double total = std::reduce(sums.channels.begin(), sums.channels.end());
    AxisImportance& known = known_[graph_.tensor(n.output()).name];
    known.axis = sums.axis;
    for (double v : sums.channels)
      known.channels.push_back(static_cast<float>(v * static_cast<double>(sums.channels.size()) / total));
    return &known;
  }

  void read(const Node& n) {
    const AxisImportance* result = of_result(n);
    if (ops::facts_of(n).parts == Parts::Joined && n.tail.empty() && result && joins_channels(n, result->axis)) {
      for (size_t first = 0; TensorId t : n.inputs) {
        const auto extent = static_cast<size_t>((*dims_of(graph_, t))[result->axis]);
        const auto part = std::span(result->channels).subspan(first, extent);
        add(t, {result->axis, {part.begin(), part.end()}});
        first += extent;
      }
      return;
    }
    for (size_t i = 1; i < n.inputs.size(); ++i)
      if (n.inputs[i]) at(n.inputs[i]).otherwise = true;
    if (n.inputs.empty() || !n.inputs[0]) return;
    const auto axis = result && n.tail.empty() ? axis_before(graph_, n, result->axis) : std::nullopt;
    if (axis)
      add(n.inputs[0], {*axis, {result->channels.begin(), result->channels.end()}});
    else
      add(n.inputs[0], squared_weights(graph_, n, result));
  }

  // All operands have channels of their own, and those of the result are theirs.
  bool joins_channels(const Node& n, size_t channel_axis) const {
    const auto y = dims_of(graph_, n.output());
    if (!y || y->size() < 2) return false;
    const auto axis = normalize_axis(n.attributes.int_or("axis", 0), static_cast<int64_t>(y->size()));
    if (!axis || static_cast<size_t>(*axis) != channel_axis) return false;
    return std::ranges::all_of(n.inputs, [&](TensorId t) { return dims_of(graph_, t).has_value(); });
  }

  // One reader more. Readers count alike, whatever the size of their weights.
  void add(TensorId t, const Sums& sums) {
    Seen& read = at(t);
    const Tensor& tensor = graph_.tensor(t);
    const double total = std::reduce(sums.channels.begin(), sums.channels.end());
    const bool measured = sums.axis == 1 || (tensor.shape && sums.axis + 1 == tensor.shape->size());
    const bool first = read.sums.channels.empty();
    if (!(total > 0) || !std::isfinite(total) || !measured ||
        (!first && (read.sums.axis != sums.axis || read.sums.channels.size() != sums.channels.size()))) {
      read.otherwise = true;
      return;
    }
    read.sums.axis = sums.axis;
    read.sums.channels.resize(sums.channels.size());
    for (size_t c = 0; c < sums.channels.size(); ++c) read.sums.channels[c] += sums.channels[c] / total;
  }

  const Graph& graph_;
  std::vector<Seen> tensors_;
  ChannelImportance known_;
};
}  // namespace

ChannelImportance channel_importance(const Graph& graph) { return Importance(graph).run(); }

}  // namespace orknn::quantize
