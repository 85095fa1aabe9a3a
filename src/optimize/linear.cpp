#include "optimize/linear.h"

#include <algorithm>

#include "ops/facts.h"
#include "optimize/match.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// Rewriting weights that several nodes read copies them: only when they are small.
constexpr size_t kMaxSharedBytes = 1 << 20;

// Calls f(index, input channel, output channel) for every element of the weights.
template <class F>
void for_each_weight(const Linear& l, F&& f) {
  const Dims& dims = l.weight->dims();
  const Weights layout = ops::facts_of(*l.node).weights;
  const bool convolution = layout == Weights::OutIn, transposed = layout == Weights::InOut;
  const bool rows_are_outputs = convolution || l.node->attributes.int_or("transB", 0);
  const int64_t rows = dims[0], columns = dims[1], kernel = element_count(std::span(dims).subspan(2));
  for (int64_t r = 0, index = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < kernel; ++k, ++index) {
        int64_t in = rows_are_outputs ? c : r, out = rows_are_outputs ? r : c;
        if (convolution) in += r / (l.out_channels / l.group) * columns;
        if (transposed) out += r / (l.in_channels / l.group) * columns;
        f(static_cast<size_t>(index), static_cast<size_t>(in), static_cast<size_t>(out));
      }
}

// The node with new weights and bias under the outputs of `outputs`. A bias of zeros is left out.
Node rebuilt(Patch& patch, const Graph& g, const Linear& l, const std::vector<double>& weight, const std::vector<double>& bias,
             TensorId input, const Node& outputs) {
  Node n = *l.node;
  const DType dtype = l.weight->dtype();
  const std::string stem = g.tensor(l.node->input(1)).name;
  n.inputs = {input, patch.add_constant(stem, constant_from(weight, l.weight->dims(), dtype))};
  if (!bias.empty()) {
    const std::string name = l.node->has_input(2) ? g.tensor(l.node->input(2)).name : stem + "_bias";
    n.inputs.push_back(patch.add_constant(name, constant_from(bias, {l.out_channels}, dtype)));
    if (n.op == "MatMul") n.op = "Gemm";
  }
  for (TailStep& step : n.tail)
    if (step.operand >= 0) {
      n.inputs.push_back(l.node->inputs[static_cast<size_t>(step.operand)]);
      step.operand = static_cast<int32_t>(n.inputs.size()) - 1;
    }
  n.attributes.erase("beta");  // of Gemm: multiplied in
  n.outputs = outputs.outputs;
  return n;
}
}  // namespace

std::optional<Linear> linear_of(const Graph& g, const Node& node, Tail tail) {
  Linear l;
  l.node = &node;
  const Weights layout = ops::facts_of(node).weights;
  const bool conv = layout == Weights::OutIn, transposed = layout == Weights::InOut;
  if (layout == Weights::None) return std::nullopt;
  if (tail == Tail::Refused && !node.tail.empty()) return std::nullopt;
  l.weight = g.constant(node.input(1));
  if (!l.weight || !is_float(l.weight->dtype()) || l.weight->dims().size() < 2) return std::nullopt;
  if (g.reader_count(node.input(1)) > 1 && l.weight->bytes() > kMaxSharedBytes) return std::nullopt;
  if (l.weight->count() == 0) return std::nullopt;
  l.rank = rank_of(g, node.output(0));
  if (l.rank < 2) return std::nullopt;
  const Dims& dims = l.weight->dims();
  double beta = 1;
  if (conv || transposed) {
    l.group = node.attributes.int_or("group", 1);
    if (l.group < 1) return std::nullopt;
    l.in_channels = conv ? dims[1] * l.group : dims[0];
    l.out_channels = conv ? dims[0] : dims[1] * l.group;
    if (l.in_channels % l.group || l.out_channels % l.group) return std::nullopt;
    const std::string auto_pad = node.attributes.string_or("auto_pad", "NOTSET");
    l.is_padded = transposed || (auto_pad != "NOTSET" && auto_pad != "VALID") ||
                  std::ranges::any_of(node.attributes.ints_or("pads"), [](int64_t p) { return p != 0; });
  } else {
    if (dims.size() != 2) return std::nullopt;
    const bool rows_are_outputs = node.attributes.int_or("transB", 0);
    l.out_channels = dims[rows_are_outputs ? 0 : 1];
    l.in_channels = dims[rows_are_outputs ? 1 : 0];
    l.channel_axis = l.rank - 1;
    l.input_axis = node.attributes.int_or("transA", 0) ? 0 : l.rank - 1;
    l.can_have_bias = l.rank == 2 && rank_of(g, node.input(0)) == 2;
    beta = node.attributes.float_or("beta", 1);
  }
  if (!node.has_input(2)) return l;
  const auto bias = per_channel(g, node.input(2), l.channel_axis, 1 + l.channel_axis, l.out_channels);
  if (!bias) return std::nullopt;
  l.bias = *bias;
  for (double& b : l.bias) b *= beta;
  return l;
}

std::optional<std::vector<double>> per_channel(const Graph& g, TensorId constant, int64_t axis, int64_t rank, int64_t channels) {
  const TensorData* c = g.constant(constant);
  if (!c || !is_float(c->dtype())) return std::nullopt;
  const Dims& dims = c->dims();
  if (static_cast<int64_t>(dims.size()) > rank) return std::nullopt;
  const int64_t missing = rank - static_cast<int64_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && (static_cast<int64_t>(i) + missing != axis || dims[i] != channels)) return std::nullopt;
  std::vector<double> values = to_doubles(c->view());
  if (values.size() == 1) values.resize(static_cast<size_t>(channels), values[0]);
  return values;
}

Node scale_output(Patch& patch, const Graph& g, const Linear& l, const std::vector<double>& scale,
                  const std::vector<double>& shift, const Node& outputs) {
  std::vector<double> weight = to_doubles(l.weight->view());
  for_each_weight(l, [&](size_t i, size_t, size_t out) { weight[i] *= scale[out]; });
  std::vector<double> bias(scale.size(), 0.0);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = (l.bias.empty() ? 0 : l.bias[i] * scale[i]) + shift[i];
  if (l.bias.empty() && std::ranges::all_of(shift, [](double s) { return s == 0; })) bias.clear();
  return rebuilt(patch, g, l, weight, bias, l.node->input(0), outputs);
}

Node scale_input(Patch& patch, const Graph& g, const Linear& l, TensorId input, const std::vector<double>& scale,
                 const std::vector<double>& shift) {
  std::vector<double> weight = to_doubles(l.weight->view());
  const double alpha = l.node->attributes.float_or("alpha", 1);
  std::vector<double> bias = l.bias;
  const bool shifts = std::ranges::any_of(shift, [](double s) { return s != 0; });
  if (shifts && bias.empty()) bias.resize(static_cast<size_t>(l.out_channels), 0.0);
  for_each_weight(l, [&](size_t i, size_t in, size_t out) {
    if (shifts) bias[out] += alpha * weight[i] * shift[in];
    weight[i] *= scale[in];
  });
  return rebuilt(patch, g, l, weight, bias, input, *l.node);
}

}  // namespace orknn::optimize
