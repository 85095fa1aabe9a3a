// Element-wise operators of TensorFlow: arithmetic, comparisons, activations, selection, casts.
#include "import/lower/functions.h"
#include "import/lower/gather.h"
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
TensorId leaky_relu(Layer& l, TensorId x) { return with_alpha<"LeakyRelu">(l, x, l.float_or("alpha", 0.2)); }

TensorId stated_gelu(Layer& l, TensorId x) { return gelu(l, x, l.bool_or("approximate", false)); }

TensorId approximate_equal(Layer& l, TensorId a, TensorId b) {
  return l.with_scalar("Less", l.unary("Abs", l.sub(a, b)), l.float_or("tolerance", 1e-5));
}

TensorId mul_no_nan(Emitter& e, TensorId a, TensorId b) { return zero_where_zero(e, b, e.mul(a, b)); }
TensorId xdivy(Emitter& e, TensorId a, TensorId b) { return zero_where_zero(e, a, e.div(a, b)); }

TensorId shift(Layer& l, TensorId x, TensorId bits) {
  return l.emit("BitShift", {x, bits}, {{"direction", std::string(l.op() == "LeftShift" ? "LEFT" : "RIGHT")}});
}

// Adds along the channels, which are second in NCHW.
Result<TensorId> bias_add(Layer& l, TensorId x, TensorId bias) {
  const auto size = l.dims_of(bias), dims = l.dims_of(x);
  if (size && size->size() != 1) return invalid_model("the bias must be a vector").found(to_string(*size));
  if (l.string_or("data_format", "NHWC").starts_with("NC")) {
    ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find its channels"));
    if (rank < 2) return shape_mismatch("the value has no channels").found("rank " + std::to_string(rank));
    return l.add(x, along_channels(l, {false, static_cast<size_t>(rank) - 2}, bias));
  }
  if (dims && size && (dims->empty() || dims->back() != (*size)[0]))
    return shape_mismatch("the bias does not fit the channels")
        .expected(dims->empty() ? "channels" : std::to_string(dims->back()))
        .found(std::to_string((*size)[0]));
  return l.add(x, bias);
}

TensorId clip_by_value(Emitter& e, TensorId x, TensorId least, TensorId most) {
  const bool are_scalars = e.dims_of(least) == Dims{} && e.dims_of(most) == Dims{};
  return are_scalars ? e.emit("Clip", {x, least, most}) : clamp(e, least, x, most);
}

// A condition known here takes its side. Select chooses rows when the condition is a vector; SelectV2 broadcasts.
template <auto Select>
Result<TensorId> choose(Layer& l, TensorId condition, TensorId a, TensorId b) {
  const TensorData* value = l.constant_of(condition);
  const auto of_a = l.dims_of(a), of_b = l.dims_of(b);
  if (value && value->dims().empty() && of_a && of_b && *of_a == *of_b) return to_doubles(value->view())[0] != 0 ? a : b;
  return Select(l, condition, a, b);
}

Result<TensorId> convert_type(Layer& l, TensorId x) {
  const DType dtype = l.dtype_or("DstT", DType::Undefined);
  if (dtype == DType::Undefined)
    return unsupported("values of type " + std::string(type_name(l.attribute("DstT").number)) + " are not supported");
  return l.cast(x, dtype);
}

Result<TensorId> bitcast(Layer& l, TensorId x) {
  const DType to = l.dtype_or("type", DType::Undefined), from = l.dtype_of(x);
  if (dtype_bytes(to) != dtype_bytes(from))
    return unsupported("reading the bits of a value as a type of another width is not supported")
        .found(std::string(dtype_name(from)) + " as " + std::string(dtype_name(to)));
  return l.emit("BitCast", {x}, {{"to", static_cast<int64_t>(to)}});
}

Result<TensorId> buckets(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<float> boundaries, parse_float_list(l.attribute("boundaries")));
  if (boundaries.empty()) return unsupported("a list of boundaries is needed");
  return bucketize(l, x, boundaries);
}

TensorId l2_loss(Emitter& e, TensorId x) { return e.mul(e.emit("ReduceSumSquare", {x}, {{"keepdims", int64_t{0}}}), 0.5); }
}  // namespace

std::span<const Row> elementwise_rows() {
  static const Row rows[] = {
      {"Abs", same<"Abs">},
      {"Acos", same<"Acos">},
      {"Acosh", same<"Acosh">},
      {"Asin", same<"Asin">},
      {"Asinh", same<"Asinh">},
      {"Atan", same<"Atan">},
      {"Atanh", same<"Atanh">},
      {"Ceil", same<"Ceil">},
      {"Cos", same<"Cos">},
      {"Cosh", same<"Cosh">},
      {"Erf", same<"Erf">},
      {"Erfc", same<"Erfc">},
      {"Erfinv", same<"ErfInv">},
      {"Lgamma", same<"LogGamma">},
      {"Digamma", same<"Digamma">},
      {"Polygamma", same<"Polygamma">},
      {"Zeta", same<"Zeta">},
      {"Igamma", same<"GammaInc">},
      {"Igammac", same<"GammaIncUpper">},
      {"Betainc", same<"BetaInc">},
      {"Ndtri", same<"NormalInverse">},
      {"BesselI0", same<"BesselI0">},
      {"BesselI1", same<"BesselI1">},
      {"BesselI0e", same<"BesselI0Scaled">},
      {"BesselI1e", same<"BesselI1Scaled">},
      {"BesselK0", same<"BesselK0">},
      {"BesselK1", same<"BesselK1">},
      {"BesselK0e", same<"BesselK0Scaled">},
      {"BesselK1e", same<"BesselK1Scaled">},
      {"BesselJ0", same<"BesselJ0">},
      {"BesselJ1", same<"BesselJ1">},
      {"BesselY0", same<"BesselY0">},
      {"BesselY1", same<"BesselY1">},
      {"Spence", same<"Dilogarithm">},
      {"Dawsn", same<"Dawson">},
      {"Expint", same<"ExpIntegral">},
      {"FresnelSin", same<"FresnelSin">},
      {"FresnelCos", same<"FresnelCos">},
      {"Exp", same<"Exp">},
      {"Expm1", expm1},
      {"Floor", same<"Floor">},
      {"Log", same<"Log">},
      {"Log1p", log1p},
      {"Neg", same<"Neg">},
      {"Round|Rint", same<"Round">},
      {"Reciprocal|Inv", same<"Reciprocal">},
      {"Rsqrt", rsqrt},
      {"Sign", same<"Sign">},
      {"Sin", same<"Sin">},
      {"Sinh", same<"Sinh">},
      {"Sqrt", same<"Sqrt">},
      {"Square", square},
      {"Tan", same<"Tan">},
      {"IsNan", same<"IsNaN">},
      {"IsInf", same<"IsInf">},
      {"IsFinite", is_finite},
      {"LogicalNot", same<"Not">},
      {"Invert", same<"BitwiseNot">},
      {"Sigmoid", same<"Sigmoid">},
      {"Softplus", same<"Softplus">},
      {"Softsign", same<"Softsign">},
      {"Tanh", same<"Tanh">},
      {"Relu", same<"Relu">},
      {"Relu6", relu6},
      {"Elu", same<"Elu">},
      {"Selu", same<"Selu">},
      {"LeakyRelu", leaky_relu},
      {"Gelu", stated_gelu},
      {"Add|AddV2", same<"Add">},
      {"AddN|AccumulateNV2", same<"Sum">},
      {"BiasAdd|BiasAddV1", bias_add},
      {"Sub", same<"Sub">},
      {"SquaredDifference", squared_difference},
      {"Mul", same<"Mul">},
      {"MulNoNan", mul_no_nan},
      {"RealDiv", same<"Div">},
      {"Div", same<"Div">},  // of the first releases: truncates integers, as ours does
      {"DivNoNan", div_no_nan},
      {"FloorDiv", floor_of_quotient},
      {"TruncateDiv", truncate_div},
      {"FloorMod", floor_mod},
      {"Mod|TruncateMod", truncate_mod},
      {"Xdivy", xdivy},
      {"Xlogy", xlogy},
      {"Xlog1py", xlog1py},
      {"Pow", same<"Pow">},
      {"Atan2", same<"Atan2">},
      {"Maximum", same<"Max">},
      {"Minimum", same<"Min">},
      {"ClipByValue", clip_by_value},
      {"Greater", same<"Greater">},
      {"GreaterEqual", same<"GreaterOrEqual">},
      {"Less", same<"Less">},
      {"LessEqual", same<"LessOrEqual">},
      {"Equal", same<"Equal">},
      {"NotEqual", not_equal},
      {"ApproximateEqual", approximate_equal},
      {"LogicalAnd", same<"And">},
      {"LogicalOr", same<"Or">},
      {"LogicalXor", same<"Xor">},
      {"BitwiseAnd", same<"BitwiseAnd">},
      {"BitwiseOr", same<"BitwiseOr">},
      {"BitwiseXor", same<"BitwiseXor">},
      {"LeftShift|RightShift", shift},
      {"Select", choose<select_rows>},
      {"SelectV2", choose<select>},
      {"Cast", convert_type},
      {"Bitcast", bitcast},
      {"Bucketize", buckets},
      {"L2Loss", l2_loss},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
