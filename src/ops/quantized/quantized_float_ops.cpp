// Ops of com.microsoft that are a float op between dequantized inputs and a quantized output.
#include <algorithm>

#include "ir/infer.h"
#include "ops/eval.h"
#include "ops/support/operands.h"
#include "ops/support/quantization.h"
#include "ops/support/quantized_form.h"

namespace orknn::ops {
namespace {
using namespace ir;

bool channels_last(const Node& node) { return node.attributes.int_or("channels_last", 0) != 0; }
// Axes order that moves the channels of a tensor of this rank from last to second, or back.
std::vector<int64_t> channel_order(size_t rank, bool to_second) {
  std::vector<int64_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = static_cast<int64_t>(i);
  if (to_second)
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  else
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Node single(std::string op, size_t inputs, Attributes attributes) {
  Node n;
  n.op = std::move(op);
  n.inputs.assign(inputs, TensorId{0});
  n.outputs = {TensorId{0}};
  n.attributes = std::move(attributes);
  return n;
}

Node inner_node(const QuantizedForm& form) { return single(form.op, form.data.size(), form.attributes); }

Status check_rank(const Node& node, size_t rank) {
  return channels_last(node) && rank < 3
             ? shape_mismatch("channels_last needs spatial axes").found("rank " + std::to_string(rank))
             : Status();
}

// The scale in slot i and the zero point after it belong to the whole tensor.
Status require_tensor_scale(const InferContext& c, size_t i) {
  ORKNN_TRY(require_one_value(c, i, "the scale"));
  return require_one_value(c, i + 1, "the zero point");
}

Status infer(InferContext& c) {
  const QuantizedForm s = *quantized_form(c.node());
  ORKNN_TRY(check_scale(c, s.result, c.dtype(s.data[0])));
  ORKNN_TRY(require_tensor_scale(c, s.result));
  std::vector<TensorFacts> facts;
  for (const size_t i : s.data) {
    if (!c.has_input(i)) return invalid_model("input " + std::to_string(i) + " is required but absent");
    ORKNN_TRY(check_type(c, i, is_quantized_type, "an integer type of at most 16 bits"));
    if (c.dtype(i) != c.dtype(s.data[0]))
      return invalid_model("all data has one type").found(std::string(dtype_name(c.dtype(i))));
    ORKNN_TRY(check_scale(c, i + 1, c.dtype(i)));
    ORKNN_TRY(require_tensor_scale(c, i + 1));
    TensorFacts f;
    f.dtype = DType::Float32;
    f.shape = c.input(i).shape;
    if (f.shape && channels_last(c.node())) {
      ORKNN_TRY(check_rank(c.node(), f.shape->size()));
      std::rotate(f.shape->begin() + 1, f.shape->end() - 1, f.shape->end());
    }
    facts.push_back(std::move(f));
  }
  ORKNN_TRY_ASSIGN(std::vector<TensorFacts> result, infer_node(inner_node(s), c.ops, std::move(facts)));
  std::optional<Shape>& shape = result[0].shape;
  if (shape && channels_last(c.node())) std::rotate(shape->begin() + 1, shape->begin() + 2, shape->end());
  c.set_output(0, c.dtype(s.data[0]), std::move(shape));
  return {};
}

Result<TensorData> transpose(RunContext& c, const TensorData& x, bool to_second) {
  const Node node = single("Transpose", 1, {{"perm", channel_order(x.dims().size(), to_second)}});
  ORKNN_TRY_ASSIGN(std::vector<TensorData> out, eval_node(node, c.ops, std::span(&x, 1), c.pool));
  return std::move(out[0]);
}

Status run(RunContext& c) {
  const QuantizedForm s = *quantized_form(c.node());
  const bool last = channels_last(c.node());
  std::vector<TensorData> inputs;
  for (const size_t i : s.data) {
    ORKNN_TRY_ASSIGN(const TensorScale scale, read_tensor_scale(c, i + 1, i + 2));
    inputs.push_back(dequantize(c.input(i), scale));
    ORKNN_TRY(check_rank(c.node(), inputs.back().dims().size()));
    if (last) {
      ORKNN_TRY_ASSIGN(inputs.back(), transpose(c, inputs.back(), true));
    }
  }
  ORKNN_TRY_ASSIGN(const TensorScale scale, read_tensor_scale(c, s.result, s.result + 1));
  ORKNN_TRY_ASSIGN(const std::vector<TensorData> results, eval_node(inner_node(s), c.ops, inputs, c.pool));
  TensorData result = results[0];
  if (last) {
    ORKNN_TRY_ASSIGN(result, transpose(c, result, false));
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, c.input(s.data[0]).dtype, result.dims()));
  quantize(result.view(), scale, y);
  return {};
}

// Zero points may be left out, so only the shape rule can tell which inputs are needed.
OpDef define(std::string_view name, std::string_view summary, Arity inputs, std::vector<AttributeDef> attributes = {}) {
  return {.name = name, .summary = summary, .inputs = inputs, .attributes = std::move(attributes), .infer = infer, .run = run};
}
}  // namespace

std::span<const OpDef> quantized_float_ops() {
  static const OpDef defs[] = {
      define("com.microsoft:QLinearAdd", "sum of quantized tensors", {1, 8}),
      define("com.microsoft:QLinearMul", "product of quantized tensors", {1, 8}),
      define("com.microsoft:QLinearLeakyRelu", "LeakyRelu of a quantized tensor", {1, 5}, {attr_float("alpha", 0.01)}),
      define("com.microsoft:QLinearSigmoid", "Sigmoid of a quantized tensor", {1, 5}),
      define("com.microsoft:QLinearSoftmax", "Softmax of a quantized tensor", {1, 5}, {attr_int("axis"), attr_int("opset")}),
      define("com.microsoft:QLinearConcat", "joins quantized tensors", {3, Arity::kMany}, {required(attr_int("axis"))}),
      define("com.microsoft:QLinearAveragePool", "AveragePool of a quantized tensor", {1, 5},
             {attr_string("auto_pad"), attr_int("ceil_mode"), attr_int("channels_last"), attr_int("count_include_pad"),
              attr_ints("kernel_shape"), attr_ints("pads"), attr_ints("strides")}),
      define("com.microsoft:QLinearGlobalAveragePool", "GlobalAveragePool of a quantized tensor", {1, 5},
             {attr_int("channels_last")}),
  };
  return defs;
}
}  // namespace orknn::ops
