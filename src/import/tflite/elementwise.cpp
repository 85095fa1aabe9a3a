// Operators that work element by element, conversions between number formats, and normalizations along the last axis.
#include "import/lower/fake_quant.h"
#include "import/lower/functions.h"
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// The four that have a fused activation.
template <OpName Op>
Result<TensorId> arithmetic(Layer& l, TensorId a, TensorId b) {
  return l.activate_by(l.binary(Op.chars, a, b), 0);
}

template <int Least, int Most>
TensorId clipped(Emitter& e, TensorId x) {
  return e.clip(x, Least, Most);
}

// And, Or of booleans or of bits.
template <OpName Logical, OpName Bitwise>
TensorId logic(Emitter& e, TensorId a, TensorId b) {
  return e.binary(e.dtype_of(a) == DType::Bool ? Logical.string() : Bitwise.string(), a, b);
}

Result<TensorId> compare(Layer& l, TensorId a, TensorId b) {
  static constexpr const char* kOps[] = {"Equal", "Equal", "GreaterOrEqual", "Greater", "LessOrEqual", "Less"};
  const auto direction = l.options().number<uint32_t>(0);
  if (direction >= std::size(kOps)) return invalid_model("the comparison is unknown").found(std::to_string(direction));
  return direction == 1 ? not_equal(l, a, b) : l.binary(kOps[direction], a, b);
}

// Arithmetic shift: division by a power of two, rounded down.
TensorId right_shift(Emitter& e, TensorId x, TensorId bits) {
  const TensorId power = e.binary("Pow", e.add_scalar("two", 2, DType::Float64), e.cast(bits, DType::Float64));
  return e.cast(floor_div(e, e.cast(x, DType::Int64), e.cast(power, DType::Int64)), e.dtype_of(x));
}

TensorId leaky_relu(Layer& l, TensorId x) { return with_alpha<"LeakyRelu">(l, x, l.options().number<float>(0)); }
TensorId stated_gelu(Layer& l, TensorId x) { return gelu(l, x, l.options().flag(0)); }

TensorId softmax(Layer& l, TensorId x) {
  const float beta = l.options().number<float>(0);
  return l.softmax(beta == 1.0f ? x : l.mul(x, double{beta}), -1);
}
TensorId log_softmax(Emitter& e, TensorId x) { return e.emit("LogSoftmax", {x}, {{"axis", int64_t{-1}}}); }
Result<TensorId> l2_normalization(Layer& l, TensorId x) {
  return l.activate_by(l.emit("LpNormalization", {x}, {{"axis", int64_t{-1}}, {"p", int64_t{2}}}), 0);
}

Result<TensorId> sum_of_all(Emitter& e, Operands terms) {
  if (terms.empty()) return invalid_model("the operator has no inputs");
  return terms.size() == 1 ? terms[0] : e.emit("Sum", {terms.begin(), terms.end()});
}

Result<TensorId> convert_type(Layer& l, TensorId x) {
  if (l.is_complex_input(0)) return unsupported("complex numbers cannot be cast").hint("take REAL, IMAG or COMPLEX_ABS of them");
  return x;
}

Result<TensorId> fake_quant(Layer& l, TensorId x) {
  const Table& o = l.options();
  const int64_t bits = o.number<int32_t>(2);
  ORKNN_TRY_ASSIGN(const IntegerGrid grid, nudged_grid(o.number<float>(0), o.number<float>(1), bits, o.flag(3)));
  return importer::fake_quant(l, x, {grid}, std::nullopt, bits);
}

// Complex numbers are pairs on an extra last axis.
template <int64_t Index>
Result<TensorId> complex_part(Layer& l, TensorId x) {
  if (!l.is_complex_input(0)) return invalid_model("the input is not complex");
  return l.gather(x, l.add_int_scalar("part", Index), -1);
}
Result<TensorId> complex_magnitude(Layer& l, TensorId x) {
  if (!l.is_complex_input(0)) return invalid_model("the input is not complex");
  return l.unary("Sqrt", l.reduce("ReduceSumSquare", x, {-1}, false));
}

Result<Value> bitcast(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.stored(0));
  if (l.has_output(0) && l.input_info(0).type != l.output_info(0).type)
    return unsupported("bits cannot be read as another type")
        .found(element_type_name(l.input_info(0).type) + " as " + element_type_name(l.output_info(0).type));
  return Value::of_stored(x);
}
}  // namespace

std::span<const Row> elementwise_rows() {
  static const Row rows[] = {
      {"ABS|STABLEHLO_ABS", same<"Abs">},
      {"CEIL", same<"Ceil">},
      {"COS|STABLEHLO_COSINE", same<"Cos">},
      {"ELU", same<"Elu">},
      {"EXP|STABLEHLO_EXPONENTIAL", same<"Exp">},
      {"FLOOR|STABLEHLO_FLOOR", same<"Floor">},
      {"HARD_SWISH", same<"HardSwish">},
      {"LOG|STABLEHLO_LOG", same<"Log">},
      {"LOGICAL_NOT", same<"Not">},
      {"LOGISTIC|STABLEHLO_LOGISTIC", same<"Sigmoid">},
      {"NEG|STABLEHLO_NEGATE", same<"Neg">},
      {"RELU", same<"Relu">},
      {"ROUND", same<"Round">},
      {"SIGN", same<"Sign">},
      {"SIN", same<"Sin">},
      {"SQRT", same<"Sqrt">},
      {"TANH|STABLEHLO_TANH", same<"Tanh">},
      {"PRELU", same<"PRelu">},
      {"RSQRT|STABLEHLO_RSQRT", rsqrt},
      {"SQUARE", square},
      {"RELU_N1_TO_1", clipped<-1, 1>},
      {"RELU_0_TO_1", clipped<0, 1>},
      {"RELU6", relu6},
      {"LEAKY_RELU", leaky_relu},
      {"GELU", stated_gelu},
      {"ZEROS_LIKE", zeros_like},
      {"ADD", arithmetic<"Add">},
      {"SUB", arithmetic<"Sub">},
      {"MUL", arithmetic<"Mul">},
      {"DIV", arithmetic<"Div">},
      {"ADD_N", sum_of_all},
      {"MAXIMUM|STABLEHLO_MAXIMUM", same<"Max">},
      {"MINIMUM|STABLEHLO_MINIMUM", same<"Min">},
      {"POW|STABLEHLO_POWER", same<"Pow">},
      {"FLOOR_DIV", floor_of_quotient},
      {"FLOOR_MOD", floor_mod},
      {"SQUARED_DIFFERENCE", squared_difference},
      {"ATAN2", same<"Atan2">},
      {"RIGHT_SHIFT", right_shift},
      {"BITWISE_XOR", same<"BitwiseXor">},
      {"EQUAL", same<"Equal">},
      {"NOT_EQUAL", not_equal},
      {"GREATER", same<"Greater">},
      {"GREATER_EQUAL", same<"GreaterOrEqual">},
      {"LESS", same<"Less">},
      {"LESS_EQUAL", same<"LessOrEqual">},
      {"LOGICAL_AND", same<"And">},
      {"LOGICAL_OR", same<"Or">},
      {"SELECT", select_rows},
      {"SELECT_V2|STABLEHLO_SELECT", select},
      {"SOFTMAX", softmax},
      {"LOG_SOFTMAX", log_softmax},
      {"L2_NORMALIZATION", l2_normalization},
      {"CAST|STABLEHLO_CONVERT", convert_type},
      {"QUANTIZE|DEQUANTIZE", pass_on},  // the output's own numbers are made of what the input stands for
      {"FAKE_QUANT", fake_quant},
      {"DENSIFY", moved<pass_on>},  // sparse constants are spread out when they are read
      {"BITCAST", bitcast},
      {"REAL", complex_part<0>},
      {"IMAG", complex_part<1>},
      {"COMPLEX_ABS", complex_magnitude},
      {"STABLEHLO_CBRT", cube_root},
      {"STABLEHLO_ADD", same<"Add">},
      {"STABLEHLO_SUBTRACT", same<"Sub">},
      {"STABLEHLO_MULTIPLY", same<"Mul">},
      {"STABLEHLO_DIVIDE", same<"Div">},
      {"STABLEHLO_REMAINDER", truncate_mod},
      {"STABLEHLO_AND", logic<"And", "BitwiseAnd">},
      {"STABLEHLO_OR", logic<"Or", "BitwiseOr">},
      {"STABLEHLO_COMPARE", compare},
      {"STABLEHLO_CLAMP", clamp},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
