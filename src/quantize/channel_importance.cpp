#include "quantize/channel_importance.h"

#include "quantize/channel_weights.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Sum of the squared weights that read each channel of the layer's input; empty where that is not all that happens to the input.
std::vector<double> squared_weights(const Graph& graph, const Node& n) {
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
  visit_weights(n, w->dims(), [&](int64_t at, int64_t, int64_t channel) {
    if (channel < extent.value())
      sums[static_cast<size_t>(channel)] += static_cast<double>(values[at]) * values[at];
    else
      fits = false;
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
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    for (size_t i = 1; i < n.inputs.size(); ++i)
      if (n.inputs[i]) at(n.inputs[i]).otherwise = true;
    if (n.inputs.empty() || !n.inputs[0]) continue;
    Seen& read = at(n.inputs[0]);
    std::vector<double> sums = squared_weights(graph, n);
    double total = 0;
    for (double s : sums) total += s;
    if (!(total > 0) || (!read.sums.empty() && read.sums.size() != sums.size())) {
      read.otherwise = true;
      continue;
    }
    read.sums.resize(sums.size());
    for (size_t c = 0; c < sums.size(); ++c) read.sums[c] += sums[c] / total;
  }
  ChannelImportance result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Seen& s = tensors[i];
    if (s.otherwise || s.sums.empty()) continue;
    double total = 0;
    for (double v : s.sums) total += v;
    std::vector<float>& list = result[graph.tensor({static_cast<int32_t>(i)}).name];
    for (double v : s.sums) list.push_back(static_cast<float>(v * static_cast<double>(s.sums.size()) / total));
  }
  return result;
}

}  // namespace orknn::quantize
