#include "import/keras/operations.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace orknn::importer::keras {
namespace {

// --- arguments

// What a call states in place `index` or by name, or else the function's configuration.
const Json& argument(const LayerCall& call, size_t index, std::string_view name) {
  const std::vector<Json>& places = call.arguments["args"].items;
  if (index < places.size()) return places[index];
  const Json& named = call.arguments["kwargs"][name];
  return named.is_null() ? call.config[name] : named;
}
bool is_integer_type(const Json& tensor) {
  const std::string type = tensor["config"]["dtype"].string();
  return type.find("int") != std::string::npos || type == "bool";
}

// Both operands of a function, one of which may be a number; it has the type of the other.
Result<std::vector<Tensor>> two_operands(LayerCall& call) {
  const Json *first = &argument(call, 0, "x1"), *second = &argument(call, 1, "x2");
  if (call.inputs.size() == 2) return call.inputs;
  const bool is_first = is_tensor(*first);
  const Json &number = is_first ? *second : *first, &tensor = is_first ? *first : *second;
  if (call.inputs.size() != 1 || !is_tensor(tensor) || number.kind != Json::Kind::Scalar)
    return unsupported("its operands are not tensors and numbers");
  GraphWriter& g = call.graph;
  const bool is_whole = is_integer_type(tensor) && number.text.find_first_of(".eE") == std::string::npos;
  Tensor x = call.input(), constant = g.scalar(static_cast<float>(number.number(0)));
  if (is_whole)
    constant = g.node("Cast", {g.integer(number.integer(0))}, 0,
                      Attributes().type("DstT", tensor["config"]["dtype"].string() == "int64" ? kTfInt64 : kTfInt32));
  else if (is_integer_type(tensor))
    x = g.like("Cast", {x}, Attributes().type("DstT", kTfFloat));
  return is_first ? std::vector{x, constant} : std::vector{constant, x};
}

Result<int64_t> axis_below(const Json& stated, int64_t otherwise, int64_t rank) {
  int64_t axis = stated.integer(otherwise);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return invalid_model("an axis is outside of the tensor").found(std::to_string(axis));
  return axis;
}

// --- functions

Result<Tensor> unary(LayerCall& call, const char* op) { return call.graph.like(op, {call.input()}); }

Result<Tensor> binary(LayerCall& call, const char* op) {
  ORKNN_TRY_ASSIGN(const std::vector<Tensor> x, two_operands(call));
  return call.graph.node(op, x, std::max(x[0].rank, x[1].rank));
}

Result<Tensor> matmul(LayerCall& call, const char* op) {
  if (call.inputs.size() != 2 || call.inputs[0].rank < 2 || call.inputs[1].rank < 2)
    return unsupported("products of matrices need two of them");
  const Json& named = call.arguments["kwargs"];
  return call.graph.node(
      op, call.inputs, std::max(call.inputs[0].rank, call.inputs[1].rank),
      Attributes().flag("adj_x", named["transpose_a"].flag(false)).flag("adj_y", named["transpose_b"].flag(false)));
}

Result<Tensor> reduction(LayerCall& call, const char* op) {
  const int64_t rank = call.input().rank;
  const Json& stated = argument(call, 1, "axis");
  std::vector<int64_t> axes = stated.integers();
  if (stated.is_null()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return invalid_model("an axis is outside of the tensor").found(std::to_string(axis));
  }
  const bool keeps = argument(call, 2, "keepdims").flag(false);
  GraphWriter& g = call.graph;
  return g.node(op, {call.input(), g.ints(axes)}, keeps ? rank : rank - static_cast<int64_t>(axes.size()),
                Attributes().flag("keep_dims", keeps));
}

Result<Tensor> place_of_extreme(LayerCall& call, const char* op) {
  const int64_t rank = call.input().rank;
  if (argument(call, 1, "axis").is_null() || argument(call, 2, "keepdims").flag(false))
    return unsupported("the place of an extreme needs an axis, which goes");
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_below(argument(call, 1, "axis"), -1, rank));
  return call.graph.node(op, {call.input(), call.graph.integer(axis)}, rank - 1,
                         Attributes().type("output_type", call.generation >= 3 ? kTfInt32 : kTfInt64));
}

Result<Tensor> reshape(LayerCall& call, const char* op) {
  const std::vector<int64_t> shape = argument(call, 1, "newshape").integers();
  return call.graph.node(op, {call.input(), call.graph.ints(shape)}, static_cast<int64_t>(shape.size()));
}

Result<Tensor> transpose(LayerCall& call, const char* op) {
  std::vector<int64_t> order = argument(call, 1, "axes").integers();
  if (argument(call, 1, "axes").is_null()) {
    order.resize(static_cast<size_t>(call.input().rank));
    std::iota(order.rbegin(), order.rend(), 0);
  }
  return call.graph.like(op, {call.input(), call.graph.ints(order)});
}

Result<Tensor> swapped(LayerCall& call, const char* op) {
  const int64_t rank = call.input().rank;
  ORKNN_TRY_ASSIGN(const int64_t a, axis_below(argument(call, 1, "axis1"), 0, rank));
  ORKNN_TRY_ASSIGN(const int64_t b, axis_below(argument(call, 2, "axis2"), 0, rank));
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return call.graph.like(op, {call.input(), call.graph.ints(order)});
}

Result<Tensor> concatenate(LayerCall& call, const char* op) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_below(argument(call, 1, "axis"), 0, call.input().rank));
  std::vector<Tensor> inputs = call.inputs;
  inputs.push_back(call.graph.integer(axis));
  return call.graph.like(op, inputs, Attributes().integer("N", static_cast<int64_t>(call.inputs.size())));
}

Result<Tensor> stack(LayerCall& call, const char* op) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_below(argument(call, 1, "axis"), 0, call.input().rank + 1));
  return call.graph.node(op, call.inputs, call.input().rank + 1,
                         Attributes().integer("N", static_cast<int64_t>(call.inputs.size())).integer("axis", axis));
}

Result<Tensor> expand_dims(LayerCall& call, const char* op) {
  const int64_t rank = call.input().rank + 1;
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_below(argument(call, 1, "axis"), 0, rank));
  return call.graph.node(op, {call.input(), call.graph.integer(axis)}, rank);
}

Result<Tensor> squeeze(LayerCall& call, const char* op) {
  const std::vector<int64_t> axes = argument(call, 1, "axis").integers();
  if (argument(call, 1, "axis").is_null()) return unsupported("squeeze needs an axis");
  const int64_t rank = call.input().rank - static_cast<int64_t>(axes.size());
  return call.graph.node(op, {call.input()}, rank, Attributes().ints("squeeze_dims", axes));
}

Result<Tensor> tile(LayerCall& call, const char* op) {
  const std::vector<int64_t> repeats = argument(call, 1, "repeats").integers();
  if (static_cast<int64_t>(repeats.size()) != call.input().rank) return unsupported("tile needs a number for each axis");
  return call.graph.like(op, {call.input(), call.graph.ints(repeats)});
}

Result<Tensor> reversed(LayerCall& call, const char* op) {
  if (argument(call, 1, "axis").is_null()) return unsupported("flip needs an axis");
  return call.graph.like(op, {call.input(), call.graph.ints(argument(call, 1, "axis").integers())});
}

Result<Tensor> clip(LayerCall& call, const char*) {
  const Json &low = argument(call, 1, "x_min"), &high = argument(call, 2, "x_max");
  if (low.kind != Json::Kind::Scalar || high.kind != Json::Kind::Scalar) return unsupported("clip needs two numbers");
  GraphWriter& g = call.graph;
  const Tensor above = g.like("Maximum", {call.input(), g.scalar(static_cast<float>(low.number(0)))});
  return g.like("Minimum", {above, g.scalar(static_cast<float>(high.number(0)))});
}

Result<Tensor> cast(LayerCall& call, const char* op) {
  const std::string type = argument(call, 1, "dtype").string();
  static const std::map<std::string, int64_t, std::less<>> types{{"float32", kTfFloat},  {"float16", kTfFloat},
                                                                 {"bfloat16", kTfFloat}, {"int32", kTfInt32},
                                                                 {"int64", kTfInt64},    {"bool", kTfBool}};
  const auto found = types.find(type);
  if (found == types.end()) return unsupported("a cast to '" + type + "' is not supported");
  return call.graph.like(op, {call.input()}, Attributes().type("DstT", found->second));
}

Result<Tensor> take(LayerCall& call, const char* op) {
  const int64_t rank = call.input().rank;
  const Json& places = argument(call, 1, "indices");
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_below(argument(call, 2, "axis"), 0, rank));
  GraphWriter& g = call.graph;
  if (argument(call, 2, "axis").is_null()) return unsupported("take needs an axis");
  if (places.kind == Json::Kind::Scalar)
    return g.node(op, {call.input(), g.integer(places.integer(0)), g.integer(axis)}, rank - 1);
  if (call.inputs.size() == 1) return g.node(op, {call.input(), g.ints(places.integers()), g.integer(axis)}, rank);
  return g.node(op, {call.input(), call.inputs[1], g.integer(axis)}, rank - 1 + call.inputs[1].rank);
}

Result<Tensor> where(LayerCall& call, const char* op) {
  if (call.inputs.size() != 3) return unsupported("where needs three tensors");
  return call.graph.node(op, call.inputs, std::max({call.inputs[0].rank, call.inputs[1].rank, call.inputs[2].rank}));
}

// Parts of a tensor, `x[:, 1:5, ::2, None, 0]`: the masks of StridedSlice say the same.
Result<Tensor> get_item(LayerCall& call, const char* op) {
  const Json& key = argument(call, 1, "key");
  const std::vector<Json> parts = key.kind == Json::Kind::List ? key.items : std::vector{key};
  std::vector<int64_t> begin, end, step;
  int64_t masks[5] = {}, rank = call.input().rank;  // no begin, no end, rest, new axis, one place
  if (call.inputs.size() != 1 || parts.size() > 31) return unsupported("parts of a tensor that tensors state are not supported");
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string kind = parts[i]["class_name"].string();
    const Json& range = parts[i]["config"];
    const bool is_range = kind == "__slice__";  // call_of has seen to those of Keras 2
    const int64_t bit = int64_t{1} << i;
    begin.push_back(is_range ? range["start"].integer(0) : parts[i].integer(0));
    end.push_back(is_range ? range["stop"].integer(0) : begin.back() + 1);
    step.push_back(is_range ? range["step"].integer(1) : 1);
    if (is_range) {
      masks[0] |= range["start"].is_null() ? bit : 0;
      masks[1] |= range["stop"].is_null() ? bit : 0;
    } else if (kind == "__ellipsis__") {
      masks[2] |= bit;
    } else if (parts[i].is_null()) {
      masks[3] |= bit;
      ++rank;
    } else if (parts[i].kind == Json::Kind::Scalar) {
      masks[4] |= bit;
      --rank;
    } else {
      return unsupported("a part of a tensor is stated in a way that is not supported");
    }
  }
  GraphWriter& g = call.graph;
  Attributes attributes;
  attributes.integer("begin_mask", masks[0]).integer("end_mask", masks[1]).integer("ellipsis_mask", masks[2]);
  attributes.integer("new_axis_mask", masks[3]).integer("shrink_axis_mask", masks[4]);
  return g.node(op, {call.input(), g.ints(begin), g.ints(end), g.ints(step)}, rank, attributes);
}

Result<Tensor> leaky_relu(LayerCall& call, const char* op) {
  const double slope = argument(call, 1, "negative_slope").number(0.2);
  return call.graph.like(op, {call.input()}, Attributes().real("alpha", static_cast<float>(slope)));
}

Result<Tensor> pad(LayerCall& call, const char* op) {
  const Json &sides = argument(call, 1, "pad_width"), &value = argument(call, 3, "constant_values");
  std::vector<int64_t> list;
  for (const Json& axis : sides.items)
    for (const int64_t side : axis.integers()) list.push_back(side);
  if (static_cast<int64_t>(list.size()) != 2 * call.input().rank || argument(call, 2, "mode").string("constant") != "constant" ||
      value.number(0) != 0)
    return unsupported("padding needs two numbers for each axis, and zeros");
  GraphWriter& g = call.graph;
  return g.like(op, {call.input(), g.node("Reshape", {g.ints(list), g.ints({call.input().rank, 2})}, 2)});
}

Result<Tensor> resize(LayerCall& call, const char*) {
  const std::vector<int64_t> size = argument(call, 1, "size").integers();
  const std::string way = argument(call, 2, "interpolation").string("bilinear");
  if (size.size() != 2 || call.input().rank != 4 || (way != "bilinear" && way != "nearest"))
    return unsupported("resizing needs pictures, two extents, and the nearest or a linear way");
  GraphWriter& g = call.graph;
  const Tensor extents = g.like("Cast", {g.ints(size)}, Attributes().type("DstT", kTfInt32));
  return g.like(way == "bilinear" ? "ResizeBilinear" : "ResizeNearestNeighbor", {call.input(), extents},
                Attributes().flag("half_pixel_centers", true));
}

Result<Tensor> depth_to_space(LayerCall& call, const char* op) {
  const int64_t block = argument(call, 1, "block_size").integer(0);
  if (block < 1 || call.input().rank != 4) return invalid_model("it needs pictures and the size of a block");
  return call.graph.like(op, {call.input()}, Attributes().integer("block_size", block));
}

// Functions that a layer computes as well.
Result<Tensor> activation(LayerCall& call, const char* name) {
  Json named;
  named.kind = Json::Kind::Text;
  named.text = name;
  if (named.text == "gelu" && argument(call, 1, "approximate").flag(call.generation >= 3)) named.text = "gelu_tanh";
  return activated(call, call.input(), named);
}

struct Row {
  Result<Tensor> (*lower)(LayerCall&, const char*);
  const char* name;
};

const std::map<std::string, Row, std::less<>>& rows() {
  static const std::map<std::string, Row, std::less<>> table{
      {"Abs", {unary, "Abs"}},
      {"Absolute", {unary, "Abs"}},
      {"Add", {binary, "AddV2"}},
      {"All", {reduction, "All"}},
      {"Any", {reduction, "Any"}},
      {"Arccos", {unary, "Acos"}},
      {"Arcsin", {unary, "Asin"}},
      {"Arctan", {unary, "Atan"}},
      {"Arctan2", {binary, "Atan2"}},
      {"Argmax", {place_of_extreme, "ArgMax"}},
      {"Argmin", {place_of_extreme, "ArgMin"}},
      {"Cast", {cast, "Cast"}},
      {"Ceil", {unary, "Ceil"}},
      {"Clip", {clip, ""}},
      {"Concatenate", {concatenate, "ConcatV2"}},
      {"Cos", {unary, "Cos"}},
      {"Cosh", {unary, "Cosh"}},
      {"DepthToSpace", {depth_to_space, "DepthToSpace"}},
      {"Divide", {binary, "RealDiv"}},
      {"Equal", {binary, "Equal"}},
      {"Erf", {unary, "Erf"}},
      {"Erfinv", {unary, "Erfinv"}},
      {"Exp", {unary, "Exp"}},
      {"ExpandDims", {expand_dims, "ExpandDims"}},
      {"Expm1", {unary, "Expm1"}},
      {"Flip", {reversed, "ReverseV2"}},
      {"Floor", {unary, "Floor"}},
      {"FloorDivide", {binary, "FloorDiv"}},
      {"Gelu", {activation, "gelu"}},
      {"GetItem", {get_item, "StridedSlice"}},
      {"Greater", {binary, "Greater"}},
      {"GreaterEqual", {binary, "GreaterEqual"}},
      {"HardSigmoid", {activation, "hard_sigmoid"}},
      {"HardSilu", {activation, "hard_silu"}},
      {"Identity", {unary, "Identity"}},
      {"LeakyRelu", {leaky_relu, "LeakyRelu"}},
      {"Less", {binary, "Less"}},
      {"LessEqual", {binary, "LessEqual"}},
      {"Log", {unary, "Log"}},
      {"Log1p", {unary, "Log1p"}},
      {"LogicalAnd", {binary, "LogicalAnd"}},
      {"LogicalNot", {unary, "LogicalNot"}},
      {"LogicalOr", {binary, "LogicalOr"}},
      {"Matmul", {matmul, "BatchMatMulV2"}},
      {"Max", {reduction, "Max"}},
      {"Maximum", {binary, "Maximum"}},
      {"Mean", {reduction, "Mean"}},
      {"Min", {reduction, "Min"}},
      {"Minimum", {binary, "Minimum"}},
      {"Mod", {binary, "FloorMod"}},
      {"Multiply", {binary, "Mul"}},
      {"Negative", {unary, "Neg"}},
      {"NotEqual", {binary, "NotEqual"}},
      {"Pad", {pad, "Pad"}},
      {"Power", {binary, "Pow"}},
      {"Prod", {reduction, "Prod"}},
      {"Reciprocal", {unary, "Reciprocal"}},
      {"Relu", {unary, "Relu"}},
      {"Relu6", {unary, "Relu6"}},
      {"Reshape", {reshape, "Reshape"}},
      {"Resize", {resize, ""}},
      {"Round", {unary, "Round"}},
      {"Rsqrt", {unary, "Rsqrt"}},
      {"Selu", {unary, "Selu"}},
      {"Sigmoid", {unary, "Sigmoid"}},
      {"Sign", {unary, "Sign"}},
      {"Silu", {activation, "silu"}},
      {"Sin", {unary, "Sin"}},
      {"Sinh", {unary, "Sinh"}},
      {"Softplus", {unary, "Softplus"}},
      {"Softsign", {unary, "Softsign"}},
      {"Sqrt", {unary, "Sqrt"}},
      {"Square", {unary, "Square"}},
      {"Squeeze", {squeeze, "Squeeze"}},
      {"Stack", {stack, "Pack"}},
      {"Subtract", {binary, "Sub"}},
      {"Sum", {reduction, "Sum"}},
      {"Swapaxes", {swapped, "Transpose"}},
      {"Take", {take, "GatherV2"}},
      {"Tan", {unary, "Tan"}},
      {"Tanh", {unary, "Tanh"}},
      {"Tile", {tile, "Tile"}},
      {"Transpose", {transpose, "Transpose"}},
      {"TrueDivide", {binary, "RealDiv"}},
      {"Where", {where, "SelectV2"}},
  };
  return table;
}

// --- functions of TensorFlow in models of Keras 2

bool is_tf_function(const Json& layer) {
  const std::string kind = layer["class_name"].string();
  return kind == "TFOpLambda" || kind == "SlicingOpLambda";
}

// By the last part of their names: math.add and __operators__.add are the same.
const std::map<std::string, std::string, std::less<>>& tf_functions() {
  static const std::map<std::string, std::string, std::less<>> names{
      {"abs", "Abs"},
      {"add", "Add"},
      {"argmax", "Argmax"},
      {"argmin", "Argmin"},
      {"cast", "Cast"},
      {"ceil", "Ceil"},
      {"clip_by_value", "Clip"},
      {"concat", "Concatenate"},
      {"cos", "Cos"},
      {"depth_to_space", "DepthToSpace"},
      {"divide", "Divide"},
      {"equal", "Equal"},
      {"exp", "Exp"},
      {"expand_dims", "ExpandDims"},
      {"floor", "Floor"},
      {"floordiv", "FloorDivide"},
      {"gather", "Take"},
      {"gelu", "Gelu"},
      {"getitem", "GetItem"},
      {"greater", "Greater"},
      {"greater_equal", "GreaterEqual"},
      {"identity", "Identity"},
      {"leaky_relu", "LeakyRelu"},
      {"less", "Less"},
      {"less_equal", "LessEqual"},
      {"log", "Log"},
      {"log_softmax", "LogSoftmax"},
      {"logical_and", "LogicalAnd"},
      {"logical_not", "LogicalNot"},
      {"logical_or", "LogicalOr"},
      {"matmul", "Matmul"},
      {"maximum", "Maximum"},
      {"minimum", "Minimum"},
      {"multiply", "Multiply"},
      {"negative", "Negative"},
      {"not_equal", "NotEqual"},
      {"pad", "Pad"},
      {"pow", "Power"},
      {"reduce_max", "Max"},
      {"reduce_mean", "Mean"},
      {"reduce_min", "Min"},
      {"reduce_prod", "Prod"},
      {"reduce_sum", "Sum"},
      {"relu", "Relu"},
      {"relu6", "Relu6"},
      {"reshape", "Reshape"},
      {"resize", "Resize"},
      {"reverse", "Flip"},
      {"round", "Round"},
      {"rsqrt", "Rsqrt"},
      {"selu", "Selu"},
      {"sigmoid", "Sigmoid"},
      {"sign", "Sign"},
      {"silu", "Silu"},
      {"sin", "Sin"},
      {"softmax", "Softmax"},
      {"softplus", "Softplus"},
      {"softsign", "Softsign"},
      {"sqrt", "Sqrt"},
      {"square", "Square"},
      {"squeeze", "Squeeze"},
      {"stack", "Stack"},
      {"subtract", "Subtract"},
      {"swish", "Silu"},
      {"tan", "Tan"},
      {"tanh", "Tanh"},
      {"tile", "Tile"},
      {"transpose", "Transpose"},
      {"truediv", "TrueDivide"},
  };
  return names;
}

// Arguments by the names that Keras 3 has for them; those that change nothing are empty.
const std::map<std::string, std::string, std::less<>>& tf_arguments() {
  static const std::map<std::string, std::string, std::less<>> names{
      {"alpha", "negative_slope"},
      {"approximate", "approximate"},
      {"axis", "axis"},
      {"b", "x2"},
      {"block_size", "block_size"},
      {"clip_value_max", "x_max"},
      {"clip_value_min", "x_min"},
      {"conjugate", ""},
      {"constant_values", "constant_values"},
      {"dtype", "dtype"},
      {"indices", "indices"},
      {"keepdims", "keepdims"},
      {"method", "interpolation"},
      {"mode", "mode"},
      {"multiples", "repeats"},
      {"name", ""},
      {"paddings", "pad_width"},
      {"perm", "axes"},
      {"shape", "newshape"},
      {"size", "size"},
      {"slice_spec", "key"},
      {"transpose_a", "transpose_a"},
      {"transpose_b", "transpose_b"},
      {"y", "x2"},
  };
  return names;
}

std::string tf_function(const Json& layer) {
  const std::string name = layer["config"]["function"].string();
  return name.substr(name.rfind('.') + 1);
}

Json map_of(std::vector<std::pair<std::string, Json>> entries) {
  Json map;
  map.kind = Json::Kind::Map;
  map.entries = std::move(entries);
  return map;
}
Json text_of(std::string_view text) {
  Json value;
  value.kind = Json::Kind::Text;
  value.text = text;
  return value;
}
Json list_of(std::vector<Json> items) {
  Json list;
  list.kind = Json::Kind::List;
  list.items = std::move(items);
  return list;
}
// A tensor of the form ["layer", 0, 0], a number of the form ["_CONSTANT_VALUE", -1, 2.5], ranges of parts, or as it is.
Json modern(const Json& value) {
  if (is_reference(value)) {
    if (value.items[0].text == "_CONSTANT_VALUE") return value.items[2];
    Json history = list_of({value.items.begin(), value.items.begin() + 3});
    return map_of({{"class_name", text_of("__keras_tensor__")}, {"config", map_of({{"keras_history", std::move(history)}})}});
  }
  if (value.kind == Json::Kind::Map && value["class_name"].is_null()) {
    const bool is_range =
        std::any_of(value.entries.begin(), value.entries.end(), [](const auto& e) { return e.first == "start"; });
    return is_range ? map_of({{"class_name", text_of("__slice__")}, {"config", value}}) : value;
  }
  Json list = value;
  for (Json& item : list.items) item = modern(item);
  return list;
}
}  // namespace

bool is_tensor(const Json& value) { return value["class_name"].string() == "__keras_tensor__"; }

const Json& named_arguments(const Json& call) {
  static const Json none;
  if (call.kind == Json::Kind::Map) return call["kwargs"];
  if (is_reference(call)) return call.items.size() > 3 ? call.items[3] : none;
  return call.items.empty() ? none : named_arguments(call.items[0]);
}

bool is_reference(const Json& value) {
  return value.kind == Json::Kind::List && value.items.size() >= 3 && value.items[0].kind == Json::Kind::Text &&
         value.items[1].kind == Json::Kind::Scalar;
}

Json call_of(const Json& layer, const Json& call) {
  if (call.kind != Json::Kind::List || !is_tf_function(layer)) return call;
  const std::vector<Json> tensors = is_reference(call) ? std::vector{call} : call.items;
  std::vector<Json> places;
  for (const Json& tensor : tensors) places.push_back(modern(tensor));
  Json named = map_of({});
  if (!tensors.empty() && tensors[0].items.size() > 3)
    for (const auto& [key, value] : tensors[0].items[3].entries) {
      const auto known = tf_arguments().find(key);
      if (known == tf_arguments().end())
        named.entries.emplace_back(key, value);  // lower_operation refuses it
      else if (!known->second.empty())
        named.entries.emplace_back(known->second, modern(value));
    }
  for (auto& [key, value] : named.entries)
    if (key == "mode" && value.text == "CONSTANT") value = text_of("constant");
  Json first = is_reference(call) ? places[0] : list_of(std::move(places));
  return map_of({{"args", list_of({std::move(first)})}, {"kwargs", std::move(named)}});
}

bool is_operation(const Json& layer) {
  if (is_tf_function(layer)) return true;
  const std::string module = layer["module"].string();
  if (!module.empty()) return module.rfind("keras.src.ops", 0) == 0 || module.rfind("keras.ops", 0) == 0;
  // Keras 3 leaves the module out of .h5 files; whatever is a layer says there whether it is trained.
  const std::vector<Json>& calls = layer["inbound_nodes"].items;
  return !calls.empty() && calls[0].kind == Json::Kind::Map && layer["config"]["trainable"].is_null() && !is_model(layer);
}

std::string operation_name(const Json& layer) {
  return is_tf_function(layer) ? layer["config"]["function"].string() : layer["class_name"].string();
}

namespace {
std::string kind_of(const Json& layer) {
  if (!is_tf_function(layer)) return layer["class_name"].string();
  const auto found = tf_functions().find(tf_function(layer));
  return found == tf_functions().end() ? "" : found->second;
}
}  // namespace

// Softmax and LogSoftmax are what the layers of these names are.
bool is_known_operation(const Json& layer) {
  const std::string kind = kind_of(layer);
  return rows().count(kind) > 0 || kind == "Softmax" || kind == "LogSoftmax";
}

Result<Tensor> lower_operation(LayerCall& call) {
  const std::string kind = kind_of(call.layer);
  if (is_tf_function(call.layer))
    for (const auto& [key, value] : call.arguments["kwargs"].entries) {
      const bool is_known =
          std::any_of(tf_arguments().begin(), tf_arguments().end(), [&](const auto& a) { return a.second == key; });
      if (!is_known && !value.is_null()) return unsupported("its argument '" + key + "' is not supported");
    }
  if (kind == "Softmax") return softmax(call.graph, call.input(), argument(call, 1, "axis").integer(-1));
  if (kind == "LogSoftmax") {
    if (argument(call, 1, "axis").integer(-1) != -1) return unsupported("log_softmax needs the last axis");
    return unary(call, "LogSoftmax");
  }
  const Row& row = rows().at(kind);
  return row.lower(call, row.name);
}

}  // namespace orknn::importer::keras
