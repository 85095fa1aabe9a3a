#include "toolkit/model_ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "ops/facts.h"
#include "ops/resample/yuv_to_rgb.h"
#include "toolkit/normalization.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

// A node that only gives input 0 another shape: Reshape, Flatten, Squeeze, Unsqueeze.
bool is_plain_view(const Graph& graph, const Node* n) {
  if (!n || ops::facts_of(*n).pattern != Pattern::View || !n->tail.empty()) return false;
  const auto from = graph.tensor(n->input(0)).shape, to = graph.tensor(n->output()).shape;
  return from && to && to_dims(*from) && to_dims(*to);
}

void tell(std::string_view kind, const std::string& name, const Shape& from, const Shape& to) {
  log(LogLevel::Warn, "build",
      fmt::format("The 'remove_reshape' changes the shape of {} '{}' from {} to {}!", kind, name, to_string(from),
                  to_string(to)));
}

void tell_why_not(std::string_view kind, const std::string& name, const std::string& reason) {
  log(LogLevel::Warn, "build", fmt::format("The 'remove_reshape' leaves {} '{}' as it is: {}!", kind, name, reason));
}

void set_shape(Tensor& tensor, const Shape& shape) {
  tensor.shape = shape;
  tensor.layout = shape.size() == 4 ? Layout::NCHW : Layout::Undefined;
}

// Why an input that some layer reads in another shape keeps its own; empty = it need not.
std::string why_input_stays(const Graph& graph, TensorId input, const Shape& shape, bool is_normalized) {
  if (is_normalized) return "mean_values and std_values belong to its channels";
  if (graph.is_output(input)) return "it is an output too";
  for (NodeId user : graph.users(input)) {
    const Node& n = graph.node(user);
    if (!is_plain_view(graph, &n) || n.input(0) != input)
      return fmt::format("{} '{}' reads it in the shape {}", n.op, n.name, to_string(*graph.tensor(input).shape));
    if (*graph.tensor(n.output()).shape != shape)
      return fmt::format("layers read it in the shapes {} and {}", to_string(shape), to_string(*graph.tensor(n.output()).shape));
    if (graph.is_output(n.output())) return fmt::format("{} '{}' makes an output of it", n.op, n.name);
  }
  return "";
}

void free_input(Graph& graph, TensorId input, bool is_normalized) {
  const std::vector<NodeId> users(graph.users(input).begin(), graph.users(input).end());
  const auto view = std::ranges::find_if(users, [&](NodeId u) { return is_plain_view(graph, &graph.node(u)); });
  if (view == users.end()) return;
  const Shape shape = *graph.tensor(graph.node(*view).output()).shape;
  Tensor& tensor = graph.tensor(input);
  if (shape == *tensor.shape) return;
  if (const std::string why = why_input_stays(graph, input, shape, is_normalized); !why.empty())
    return tell_why_not("input", tensor.name, why);
  tell("input", tensor.name, *tensor.shape, shape);
  set_shape(tensor, shape);
  for (NodeId user : users) {
    const TensorId reshaped = graph.node(user).output();
    graph.remove_node(user);
    graph.replace_node_uses(reshaped, input);
  }
}

std::string why_output_stays(const Graph& graph, TensorId output, TensorId source) {
  if (const auto users = graph.users(output); !users.empty())
    return fmt::format("{} '{}' reads it too", graph.node(users[0]).op, graph.node(users[0]).name);
  if (graph.is_input(source)) return fmt::format("it is input '{}' in another shape", graph.tensor(source).name);
  if (graph.is_constant(source)) return "it is a constant";
  if (graph.is_output(source)) return fmt::format("it is output '{}' in another shape", graph.tensor(source).name);
  return "";
}

void free_output(Graph& graph, size_t index) {
  const TensorId output = graph.outputs()[index];
  const Node* maker = graph.producer_node(output);
  if (!is_plain_view(graph, maker)) return;
  const TensorId source = maker->input(0);
  const std::string name = graph.tensor(output).name;
  const Shape from = *graph.tensor(output).shape, to = *graph.tensor(source).shape;
  if (from == to) return;
  if (const std::string why = why_output_stays(graph, output, source); !why.empty()) return tell_why_not("output", name, why);
  tell("output", name, from, to);
  graph.remove_node(graph.producer(output));
  std::ranges::replace(graph.outputs(), output, source);  // it may be listed more than once
  graph.rename_tensor(output, name + "_reshaped");
  graph.rename_tensor(source, name);
  set_shape(graph.tensor(source), to);
}

// Puts layers one after the other between a new input and the tensor that was the input.
class Front {
 public:
  Front(Graph& graph, TensorId start, std::string name) : graph_(graph), last_(start), name_(std::move(name)) {}

  TensorId last() const { return last_; }
  void add(const std::string& op, const std::string& what, std::vector<TensorId> operands, Attributes attributes, DType dtype,
           const Dims& dims) {
    operands.insert(operands.begin(), last_);
    const TensorId out = graph_.add_tensor(name_ + "_" + what, dtype, to_shape(dims));
    Node n;
    n.op = op;
    n.name = name_ + "_" + what;
    n.inputs = std::move(operands);
    n.outputs = {out};
    n.attributes = std::move(attributes);
    graph_.add_node(std::move(n));
    last_ = out;
  }
  TensorId constant(const std::string& what, TensorData value) {
    return graph_.add_constant(name_ + "_" + what, std::move(value));
  }

 private:
  Graph& graph_;
  TensorId last_;
  std::string name_;
};

// Per channel, in a shape that broadcasts to pictures of `layout`.
TensorData channel_values(const std::vector<float>& values, Layout layout) {
  const auto count = static_cast<int64_t>(values.size());
  return TensorData::from<float>(layout == Layout::NHWC ? Dims{count} : Dims{count, 1, 1}, values);
}

Status put_conversion_before(Graph& graph, size_t index, const std::string& format, bool bgr,
                             compile::Normalization& normalization) {
  const TensorId input = graph.inputs()[index];
  const Tensor network = graph.tensor(input);  // as the network takes it
  const auto dims = network.shape ? to_dims(*network.shape) : std::nullopt;
  const bool nhwc = network.layout == Layout::NHWC;
  if (!dims || dims->size() != 4 || (*dims)[0] != 1 || (*dims)[channel_axis(network)] != 3)
    return invalid_argument(
               fmt::format("The inputs_yuv_fmt '{}' for input {} is wrong, expect one picture of 3 channels!", format, index))
        .found(fmt::format("'{}' of shape {}", network.name, network.shape ? to_string(*network.shape) : "unknown"));
  const int64_t height = (*dims)[nhwc ? 1 : 2], width = (*dims)[nhwc ? 2 : 3];
  ORKNN_TRY_ASSIGN(const Dims bytes, ops::picture_dims(format, height, width));

  graph.rename_tensor(input, network.name + "_pixels");
  const TensorId picture = graph.add_tensor(network.name, DType::UInt8, to_shape(bytes));
  graph.tensor(picture).layout = Layout::NCHW;
  graph.inputs()[index] = picture;
  Front front(graph, picture, network.name);
  front.add("YuvToRgb", bgr ? "bgr" : "rgb", {}, {{"format", format}, {"order", std::string(bgr ? "bgr" : "rgb")}}, DType::UInt8,
            {1, 3, height, width});
  if (nhwc) front.add("Transpose", "nhwc", {}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}}, DType::UInt8, *dims);
  front.add("Cast", "float", {}, {{"to", static_cast<int64_t>(DType::Float32)}}, DType::Float32, *dims);
  if (!normalization.mean.empty())
    front.add("Sub", "centred", {front.constant("mean", channel_values(normalization.mean, network.layout))}, {}, DType::Float32,
              *dims);
  if (!normalization.std.empty())
    front.add("Div", "scaled", {front.constant("std", channel_values(normalization.std, network.layout))}, {}, DType::Float32,
              *dims);
  normalization = {};

  if (network.quant && is_integer(network.dtype)) {
    const TensorId scale = front.constant("scale", TensorData::from<float>({}, {&network.quant->scale[0], 1}));
    const int32_t zero = network.quant->zero_point.empty() ? 0 : network.quant->zero_point[0];
    const TensorId zero_point =
        front.constant("zero_point", convert(TensorData::from<int32_t>({}, {&zero, 1}).view(), network.dtype));
    front.add("QuantizeLinear", "quantized", {scale, zero_point}, {}, network.dtype, *dims);
  } else if (network.dtype != DType::Float32) {
    front.add("Cast", "cast", {}, {{"to", static_cast<int64_t>(network.dtype)}}, network.dtype, *dims);
  }
  // The last layer makes the tensor that the network reads.
  const NodeId maker = graph.producer(front.last());
  Node n = graph.node(maker);
  n.outputs = {input};
  graph.replace_node(maker, std::move(n));
  return {};
}
}  // namespace

void remove_port_reshapes(Graph& graph, const std::vector<compile::Normalization>& normalization) {
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    free_input(graph, graph.inputs()[i], i < normalization.size() && !normalization[i].mean.empty());
  for (size_t i = 0; i < graph.outputs().size(); ++i) free_output(graph, i);
}

Status take_yuv_pictures(Graph& graph, std::vector<compile::Normalization>& normalization,
                         const std::vector<std::string>& formats, const std::vector<bool>& swapped) {
  if (formats.size() > graph.inputs().size())
    return invalid_argument(fmt::format("The len of inputs_yuv_fmt ({}) is wrong, expect one format per input ({})!",
                                        formats.size(), graph.inputs().size()));
  normalization.resize(std::max(normalization.size(), formats.size()));
  for (size_t i = 0; i < formats.size(); ++i) {
    if (formats[i].empty()) continue;
    const bool bgr = !swapped.empty() && (swapped.size() == 1 ? swapped[0] : i < swapped.size() && swapped[i]);
    ORKNN_TRY(put_conversion_before(graph, i, formats[i], bgr, normalization[i]));
  }
  return {};
}

}  // namespace orknn::toolkit
