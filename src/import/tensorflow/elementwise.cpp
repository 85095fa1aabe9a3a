// Element-wise operators of TensorFlow: arithmetic, comparisons, activations, selection, casts.
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// Operators that are ours under another name, with as many inputs.
struct SameRow {
  std::string_view theirs, ours;
};
constexpr SameRow kSame[] = {
    {"Abs", "Abs"},
    {"Acos", "Acos"},
    {"Acosh", "Acosh"},
    {"Asin", "Asin"},
    {"Asinh", "Asinh"},
    {"Atan", "Atan"},
    {"Atanh", "Atanh"},
    {"Ceil", "Ceil"},
    {"Cos", "Cos"},
    {"Cosh", "Cosh"},
    {"Erf", "Erf"},
    {"Exp", "Exp"},
    {"Floor", "Floor"},
    {"Log", "Log"},
    {"Neg", "Neg"},
    {"Round", "Round"},
    {"Rint", "Round"},
    {"Sigmoid", "Sigmoid"},
    {"Sign", "Sign"},
    {"Sin", "Sin"},
    {"Sinh", "Sinh"},
    {"Softplus", "Softplus"},
    {"Softsign", "Softsign"},
    {"Sqrt", "Sqrt"},
    {"Tan", "Tan"},
    {"Tanh", "Tanh"},
    {"IsNan", "IsNaN"},
    {"IsInf", "IsInf"},
    {"LogicalNot", "Not"},
    {"Relu", "Relu"},
    {"Elu", "Elu"},
    {"Selu", "Selu"},
    {"Reciprocal", "Reciprocal"},
    {"Inv", "Reciprocal"},
    {"Invert", "BitwiseNot"},
    {"Add", "Add"},
    {"AddV2", "Add"},
    {"Sub", "Sub"},
    {"Mul", "Mul"},
    {"RealDiv", "Div"},
    {"Maximum", "Max"},
    {"Minimum", "Min"},
    {"Pow", "Pow"},
    {"Greater", "Greater"},
    {"GreaterEqual", "GreaterOrEqual"},
    {"Less", "Less"},
    {"LessEqual", "LessOrEqual"},
    {"Equal", "Equal"},
    {"LogicalAnd", "And"},
    {"LogicalOr", "Or"},
    {"LogicalXor", "Xor"},
    {"BitwiseAnd", "BitwiseAnd"},
    {"BitwiseOr", "BitwiseOr"},
    {"BitwiseXor", "BitwiseXor"},
    {"AddN", "Sum"},
    {"AccumulateNV2", "Sum"},
};

Status lower_same(Layer& layer) {
  std::string_view ours;
  for (const SameRow& row : kSame)
    if (row.theirs == layer.op()) ours = row.ours;
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < layer.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, layer.input(i));
    inputs.push_back(x);
  }
  const OpDef* def = layer.ops().find(ours);
  ORKNN_ASSERT(def, "the table names operators of ours");
  if (inputs.size() < static_cast<size_t>(def->inputs.min) || inputs.size() > static_cast<size_t>(def->inputs.max))
    return invalid_model("the number of inputs is wrong")
        .expected(std::to_string(def->inputs.min))
        .found(std::to_string(inputs.size()));
  layer.set(layer.emit(std::string(ours), std::move(inputs)));
  return {};
}

// The operands of a two-operand operator.
struct Pair {
  TensorId a, b;
};
Result<Pair> operands(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId a, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId b, layer.input(1));
  return Pair{a, b};
}

Status lower_square(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Mul", {x, x}));
  return {};
}

Status lower_rsqrt(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Reciprocal", {layer.emit("Sqrt", {x})}));
  return {};
}

Status lower_log1p(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Log", {layer.emit("Add", {x, layer.constant_like(x, "one", 1)})}));
  return {};
}

Status lower_expm1(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Sub", {layer.emit("Exp", {x}), layer.constant_like(x, "one", 1)}));
  return {};
}

Status lower_erfc(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Sub", {layer.constant_like(x, "one", 1), layer.emit("Erf", {x})}));
  return {};
}

Status lower_is_finite(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Not", {layer.emit("Or", {layer.emit("IsInf", {x}), layer.emit("IsNaN", {x})})}));
  return {};
}

Status lower_relu6(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Clip", {x, layer.constant_like(x, "low", 0), layer.constant_like(x, "high", 6)}));
  return {};
}

Status lower_leaky_relu(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("LeakyRelu", {x}, {{"alpha", layer.float_or("alpha", 0.2)}}));
  return {};
}

Status lower_gelu(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(layer.emit("Gelu", {x}, {{"approximate", std::string(layer.bool_or("approximate", false) ? "tanh" : "none")}}));
  return {};
}

Status lower_squared_difference(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  const TensorId difference = layer.emit("Sub", {p.a, p.b});
  layer.set(layer.emit("Mul", {difference, difference}));
  return {};
}

Status lower_not_equal(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  layer.set(layer.emit("Not", {layer.emit("Equal", {p.a, p.b})}));
  return {};
}

Status lower_approximate_equal(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  const TensorId distance = layer.emit("Abs", {layer.emit("Sub", {p.a, p.b})});
  layer.set(layer.emit("Less", {distance, layer.constant_like(p.a, "tolerance", layer.float_or("tolerance", 1e-5))}));
  return {};
}

// Towards zero: what Div does with integers.
TensorId truncate(Layer& layer, TensorId x) {
  if (!is_float(layer.dtype_of(x))) return x;
  return layer.emit("Mul", {layer.emit("Sign", {x}), layer.emit("Floor", {layer.emit("Abs", {x})})});
}

Status lower_truncate_div(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  layer.set(truncate(layer, layer.emit("Div", {p.a, p.b})));
  return {};
}

// Plain Div of the first releases: divides floats, truncates integers, as ours does.
Status lower_div(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  layer.set(layer.emit("Div", {p.a, p.b}));
  return {};
}

// The remainder with the sign of the divisor.
TensorId floor_mod(Layer& layer, const Pair& p) {
  if (!is_float(layer.dtype_of(p.a))) return layer.emit("Mod", {p.a, p.b});
  const TensorId remainder = layer.emit("Mod", {p.a, p.b}, {{"fmod", int64_t{1}}});
  return layer.emit("Mod", {layer.emit("Add", {remainder, p.b}), p.b}, {{"fmod", int64_t{1}}});
}

Status lower_floor_mod(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  layer.set(floor_mod(layer, p));
  return {};
}

Status lower_truncate_mod(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  layer.set(layer.emit("Mod", {p.a, p.b}, {{"fmod", int64_t{1}}}));
  return {};
}

Status lower_floor_div(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  if (is_float(layer.dtype_of(p.a)))
    layer.set(layer.emit("Floor", {layer.emit("Div", {p.a, p.b})}));
  else
    layer.set(layer.emit("Div", {layer.emit("Sub", {p.a, floor_mod(layer, p)}), p.b}));
  return {};
}

// Zero where `zero_operand` is zero, whatever the other one makes of it.
TensorId zero_where_zero(Layer& layer, TensorId zero_operand, TensorId value) {
  const TensorId zero = layer.constant_like(value, "zero", 0);
  return layer.emit("Where", {layer.emit("Equal", {zero_operand, zero}), zero, value});
}

Status lower_div_no_nan(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  layer.set(zero_where_zero(layer, p.b, layer.emit("Div", {p.a, p.b})));
  return {};
}

Status lower_mul_no_nan(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  layer.set(zero_where_zero(layer, p.b, layer.emit("Mul", {p.a, p.b})));
  return {};
}

Status lower_xdivy(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  layer.set(zero_where_zero(layer, p.a, layer.emit("Div", {p.a, p.b})));
  return {};
}

Status lower_xlogy(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  TensorId y = p.b;
  if (layer.op() == "Xlog1py") y = layer.emit("Add", {y, layer.constant_like(y, "one", 1)});
  layer.set(zero_where_zero(layer, p.a, layer.emit("Mul", {p.a, layer.emit("Log", {y})})));
  return {};
}

// The angle of (x, y): the arc tangent of y / x, turned by half a circle on the left side. On the axis the quotient is infinite,
// which gives a quarter circle; at the origin the answer is 0.
Status lower_atan2(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  const TensorId y = p.a, x = p.b, zero = layer.constant_like(x, "zero", 0),
                 half = layer.constant_like(x, "half_circle", 3.14159265358979323846);
  const TensorId angle = layer.emit("Atan", {layer.emit("Div", {y, x})});
  const TensorId turn = layer.emit("Where", {layer.emit("Less", {y, zero}), layer.emit("Neg", {half}), half});
  const TensorId turned = layer.emit("Where", {layer.emit("Less", {x, zero}), layer.emit("Add", {angle, turn}), angle});
  const TensorId at_origin = layer.emit("And", {layer.emit("Equal", {x, zero}), layer.emit("Equal", {y, zero})});
  layer.set(layer.emit("Where", {at_origin, zero, turned}));
  return {};
}

Status lower_shift(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  if (!is_unsigned_int(layer.dtype_of(p.a)))
    return unsupported("shifts of signed integers are not supported").found(std::string(dtype_name(layer.dtype_of(p.a))));
  layer.set(layer.emit("BitShift", {p.a, p.b}, {{"direction", std::string(layer.op() == "LeftShift" ? "LEFT" : "RIGHT")}}));
  return {};
}

// Adds along the channels, which are second in NCHW.
Status lower_bias_add(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  TensorId bias = p.b;
  const auto size = layer.dims_of(bias);
  if (size && size->size() != 1) return invalid_model("the bias must be a vector").found(to_string(*size));
  if (layer.string_or("data_format", "NHWC").starts_with("NC")) {
    ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(p.a, "to find its channels"));
    if (rank < 2) return shape_mismatch("the value has no channels").found("rank " + std::to_string(rank));
    std::vector<int64_t> shape(static_cast<size_t>(rank) - 1, 1);
    shape[0] = -1;
    bias = layer.reshape(bias, std::move(shape));
  } else if (const auto dims = layer.dims_of(p.a); dims && size && (dims->empty() || dims->back() != (*size)[0])) {
    return shape_mismatch("the bias does not fit the channels")
        .expected(dims->empty() ? "channels" : std::to_string(dims->back()))
        .found(std::to_string((*size)[0]));
  }
  layer.set(layer.emit("Add", {p.a, bias}));
  return {};
}

Status lower_clip_by_value(Layer& layer) {
  ORKNN_TRY_ASSIGN(const Pair p, operands(layer));
  ORKNN_TRY_ASSIGN(const TensorId high, layer.input(2));
  const auto is_scalar = [&](TensorId id) {
    const auto dims = layer.dims_of(id);
    return dims && dims->empty();
  };
  if (is_scalar(p.b) && is_scalar(high))
    layer.set(layer.emit("Clip", {p.a, p.b, high}));
  else
    layer.set(layer.emit("Min", {layer.emit("Max", {p.a, p.b}), high}));
  return {};
}

// Select chooses rows when the condition is a vector; SelectV2 broadcasts.
Status lower_select(Layer& layer) {
  ORKNN_TRY_ASSIGN(TensorId condition, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId a, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId b, layer.input(2));
  if (layer.op() == "Select") {
    ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(condition, "to select"));
    if (rank == 1) {
      ORKNN_TRY_ASSIGN(const int64_t value_rank, layer.need_rank(a, "to select its rows"));
      std::vector<int64_t> axes;
      for (int64_t i = 1; i < value_rank; ++i) axes.push_back(i);
      if (!axes.empty()) condition = layer.unsqueeze(condition, axes);
    }
  }
  if (layer.dtype_of(condition) != DType::Bool) condition = layer.cast(condition, DType::Bool);
  // A condition known here takes its side.
  const TensorData* value = layer.constant_of(condition);
  if (const auto x = layer.dims_of(a), y = layer.dims_of(b);
      value && value->count() == 1 && value->dims().empty() && x && y && *x == *y)
    layer.set(to_ints(value->view())[0] ? a : b);
  else
    layer.set(layer.emit("Where", {condition, a, b}));
  return {};
}

Status lower_cast(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const AttributeValue to = layer.attribute("DstT");
  const DType dtype = layer.dtype_or("DstT", DType::Undefined);
  if (dtype == DType::Undefined) return unsupported("values of type " + std::string(type_name(to.number)) + " are not supported");
  layer.set(layer.cast(x, dtype));
  return {};
}

Status lower_bitcast(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const DType to = layer.dtype_or("type", DType::Undefined), from = layer.dtype_of(x);
  const auto is_same_width = dtype_bytes(to) == dtype_bytes(from) && is_integer(to) && is_integer(from);
  if (to != from && !is_same_width)
    return unsupported("reading the bits of a value as another type is not supported")
        .found(std::string(dtype_name(from)) + " as " + std::string(dtype_name(to)));
  layer.set(layer.cast(x, to));
  return {};
}

// How many boundaries lie at or below each value.
Status lower_bucketize(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const std::vector<float> boundaries, parse_float_list(layer.attribute("boundaries")));
  if (boundaries.empty()) return unsupported("a list of boundaries is needed");
  const TensorId limits =
      layer.add_constant("boundaries", TensorData::from<float>({static_cast<int64_t>(boundaries.size())}, boundaries));
  const TensorId reached = layer.emit("GreaterOrEqual", {layer.unsqueeze(layer.cast(x, DType::Float32), {-1}), limits});
  layer.set(
      layer.emit("ReduceSum", {layer.cast(reached, DType::Int32), layer.add_ints("axes", {-1})}, {{"keepdims", int64_t{0}}}));
  return {};
}

Status lower_l2_loss(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const TensorId sum = layer.emit("ReduceSumSquare", {x}, {{"keepdims", int64_t{0}}});
  layer.set(layer.emit("Mul", {sum, layer.constant_like(x, "half", 0.5)}));
  return {};
}
}  // namespace

std::span<const Row> elementwise_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list;
    for (const SameRow& row : kSame) list.push_back({row.theirs, lower_same});
    const Row more[] = {
        {"Square", lower_square},
        {"Rsqrt", lower_rsqrt},
        {"Log1p", lower_log1p},
        {"Expm1", lower_expm1},
        {"Erfc", lower_erfc},
        {"IsFinite", lower_is_finite},
        {"Relu6", lower_relu6},
        {"LeakyRelu", lower_leaky_relu},
        {"Gelu", lower_gelu},
        {"SquaredDifference", lower_squared_difference},
        {"NotEqual", lower_not_equal},
        {"ApproximateEqual", lower_approximate_equal},
        {"TruncateDiv", lower_truncate_div},
        {"Div", lower_div},
        {"FloorMod", lower_floor_mod},
        {"Mod", lower_truncate_mod},
        {"TruncateMod", lower_truncate_mod},
        {"FloorDiv", lower_floor_div},
        {"DivNoNan", lower_div_no_nan},
        {"MulNoNan", lower_mul_no_nan},
        {"Xdivy", lower_xdivy},
        {"Xlogy", lower_xlogy},
        {"Xlog1py", lower_xlogy},
        {"Atan2", lower_atan2},
        {"LeftShift", lower_shift},
        {"RightShift", lower_shift},
        {"BiasAdd", lower_bias_add},
        {"BiasAddV1", lower_bias_add},
        {"ClipByValue", lower_clip_by_value},
        {"Select", lower_select},
        {"SelectV2", lower_select},
        {"Cast", lower_cast},
        {"Bitcast", lower_bitcast},
        {"Bucketize", lower_bucketize},
        {"L2Loss", lower_l2_loss},
    };
    list.insert(list.end(), std::begin(more), std::end(more));
    return list;
  }();
  return rows;
}

}  // namespace orknn::importer::tensorflow
