// Operators that work element by element, conversions between number formats, and normalizations along the last axis.
#include <algorithm>
#include <cmath>

#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// Rows whose operator is one of ours: the name is all that differs.
struct Name {
  std::string_view theirs, ours;
};
const char* our_name(std::span<const Name> names, std::string_view theirs) {
  for (const Name& n : names)
    if (n.theirs == theirs) return n.ours.data();
  ORKNN_ASSERT(false, "the row's operator is in its list of names");
  return nullptr;
}

constexpr Name kUnary[] = {
    {"ABS", "Abs"},
    {"CEIL", "Ceil"},
    {"COS", "Cos"},
    {"ELU", "Elu"},
    {"EXP", "Exp"},
    {"FLOOR", "Floor"},
    {"HARD_SWISH", "HardSwish"},
    {"LOG", "Log"},
    {"LOGICAL_NOT", "Not"},
    {"LOGISTIC", "Sigmoid"},
    {"NEG", "Neg"},
    {"RELU", "Relu"},
    {"ROUND", "Round"},
    {"SIGN", "Sign"},
    {"SIN", "Sin"},
    {"SQRT", "Sqrt"},
    {"TANH", "Tanh"},
    {"STABLEHLO_LOGISTIC", "Sigmoid"},
    {"STABLEHLO_ABS", "Abs"},
    {"STABLEHLO_COSINE", "Cos"},
    {"STABLEHLO_EXPONENTIAL", "Exp"},
    {"STABLEHLO_FLOOR", "Floor"},
    {"STABLEHLO_LOG", "Log"},
    {"STABLEHLO_NEGATE", "Neg"},
    {"STABLEHLO_TANH", "Tanh"},
};
Status unary(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  return l.set(0, l.emit(our_name(kUnary, l.op().name), {x}));
}

constexpr Name kBinary[] = {
    {"ADD", "Add"},
    {"SUB", "Sub"},
    {"MUL", "Mul"},
    {"DIV", "Div"},
    {"MAXIMUM", "Max"},
    {"MINIMUM", "Min"},
    {"POW", "Pow"},
    {"EQUAL", "Equal"},
    {"GREATER", "Greater"},
    {"GREATER_EQUAL", "GreaterOrEqual"},
    {"LESS", "Less"},
    {"LESS_EQUAL", "LessOrEqual"},
    {"LOGICAL_AND", "And"},
    {"LOGICAL_OR", "Or"},
    {"BITWISE_XOR", "BitwiseXor"},
    {"STABLEHLO_ADD", "Add"},
    {"STABLEHLO_DIVIDE", "Div"},
    {"STABLEHLO_MULTIPLY", "Mul"},
    {"STABLEHLO_MAXIMUM", "Max"},
    {"STABLEHLO_MINIMUM", "Min"},
    {"STABLEHLO_POWER", "Pow"},
    {"STABLEHLO_SUBTRACT", "Sub"},
};
Result<TensorId> combined(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(1));
  return l.emit(our_name(kBinary, l.op().name), {a, b});
}
Status binary(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId y, combined(l));
  return l.set(0, y);
}
// The four that have a fused activation.
Status arithmetic(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId y, combined(l));
  ORKNN_TRY_ASSIGN(const TensorId active, l.activate(y, l.activation(0)));
  return l.set(0, active);
}

Status not_equal(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(1));
  return l.set(0, l.emit("Not", {l.emit("Equal", {a, b})}));
}

Status bitwise_logic(Layer& l) {  // And, Or of booleans or of bits
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(1));
  const std::string name = l.op().name == "STABLEHLO_AND" ? "And" : "Or";
  return l.set(0, l.emit(l.dtype_of(a) == DType::Bool ? name : "Bitwise" + name, {a, b}));
}

Status compare(Layer& l) {
  static constexpr const char* kOps[] = {"Equal", "Equal", "GreaterOrEqual", "Greater", "LessOrEqual", "Less"};
  const auto direction = l.options().number<uint32_t>(0);
  if (direction >= std::size(kOps)) return invalid_model("the comparison is unknown").found(std::to_string(direction));
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(1));
  const TensorId y = l.emit(kOps[direction], {a, b});
  return l.set(0, direction == 1 ? l.emit("Not", {y}) : y);
}

TensorId floor_div(Layer& l, TensorId a, TensorId b) {
  if (is_float(l.dtype_of(a))) return l.emit("Floor", {l.emit("Div", {a, b})});
  return l.emit("Div",
                {l.emit("Sub", {a, l.emit("Mod", {a, b})}), b});  // our Div of integers cuts off, Mod has the divisor's sign
}
Status floor_div(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(1));
  return l.set(0, floor_div(l, a, b));
}
Status floor_mod(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(1));
  if (!is_float(l.dtype_of(a))) return l.set(0, l.emit("Mod", {a, b}));
  return l.set(0, l.emit("Sub", {a, l.emit("Mul", {floor_div(l, a, b), b})}));
}
Status remainder(Layer& l) {  // with the sign of the dividend
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(1));
  return l.set(0, l.emit("Mod", {a, b}, {{"fmod", int64_t{1}}}));
}

// Arithmetic shift: division by a power of two, rounded down.
Status right_shift(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId bits, l.real(1));
  const DType wide = DType::Int64;
  const TensorId divisor = l.cast(l.emit("Pow", {l.add_scalar("two", 2, DType::Float64), l.cast(bits, DType::Float64)}), wide);
  return l.set(0, l.cast(floor_div(l, l.cast(x, wide), divisor), l.dtype_of(x)));
}

Status squared_difference(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(1));
  const TensorId d = l.emit("Sub", {a, b});
  return l.set(0, l.emit("Mul", {d, d}));
}

// atan2(y, x) from the arctangent of y / x: the quadrant decides what is added.
Status atan2(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId y, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(1));
  const DType t = l.dtype_of(x);
  const auto number = [&](const char* role, double v) { return l.add_scalar(role, v, t); };
  const TensorId zero = number("zero", 0), pi = number("pi", M_PI), quarter = number("half_pi", M_PI / 2);
  const TensorId slope = l.emit("Atan", {l.emit("Div", {y, x})});
  const TensorId turn = l.emit("Where", {l.emit("Less", {y, zero}), l.emit("Neg", {pi}), pi});
  const TensorId left = l.emit("Where", {l.emit("Less", {x, zero}), l.emit("Add", {slope, turn}), slope});
  const TensorId upright = l.emit("Mul", {l.emit("Sign", {y}), quarter});
  return l.set(0, l.emit("Where", {l.emit("Equal", {x, zero}), upright, left}));
}

Status clip(Layer& l, double low, double high) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  const DType t = l.dtype_of(x);
  return l.set(0, l.emit("Clip", {x, l.add_scalar("min", low, t), l.add_scalar("max", high, t)}));
}
Status relu_n1_to_1(Layer& l) { return clip(l, -1, 1); }
Status relu6(Layer& l) { return clip(l, 0, 6); }
Status relu_0_to_1(Layer& l) { return clip(l, 0, 1); }
Status clamp(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId low, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(1));
  ORKNN_TRY_ASSIGN(const TensorId high, l.real(2));
  return l.set(0, l.emit("Min", {l.emit("Max", {x, low}), high}));
}

Status rsqrt(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  return l.set(0, l.emit("Reciprocal", {l.emit("Sqrt", {x})}));
}
Status square(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  return l.set(0, l.emit("Mul", {x, x}));
}
Status cube_root(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  const TensorId root = l.emit("Pow", {l.emit("Abs", {x}), l.add_scalar("third", 1.0 / 3.0, l.dtype_of(x))});
  return l.set(0, l.emit("Mul", {root, l.emit("Sign", {x})}));
}
Status leaky_relu(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  return l.set(0, l.emit("LeakyRelu", {x}, {{"alpha", double{l.options().number<float>(0)}}}));
}
Status prelu(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId slope, l.real(1));
  return l.set(0, l.emit("PRelu", {x, slope}));
}
Status gelu(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  return l.set(0, l.emit("Gelu", {x}, {{"approximate", std::string(l.options().flag(0) ? "tanh" : "none")}}));
}

Status softmax(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.real(0));
  const float beta = l.options().number<float>(0);
  if (beta != 1.0f) x = l.emit("Mul", {x, l.add_scalar("beta", beta)});
  return l.set(0, l.emit("Softmax", {x}, {{"axis", int64_t{-1}}}));
}
Status log_softmax(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  return l.set(0, l.emit("LogSoftmax", {x}, {{"axis", int64_t{-1}}}));
}
Status l2_normalization(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId y,
                   l.activate(l.emit("LpNormalization", {x}, {{"axis", int64_t{-1}}, {"p", int64_t{2}}}), l.activation(0)));
  return l.set(0, y);
}

Status add_n(Layer& l) {
  std::vector<TensorId> terms;
  for (size_t i = 0; i < l.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId x, l.real(i));
    terms.push_back(x);
  }
  if (terms.empty()) return invalid_model("the operator has no inputs");
  return l.set(0, terms.size() == 1 ? terms[0] : l.emit("Sum", std::move(terms)));
}

Status select(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId condition, l.stored(0));
  ORKNN_TRY_ASSIGN(const TensorId a, l.real(1));
  ORKNN_TRY_ASSIGN(const TensorId b, l.real(2));
  condition = l.cast(condition, DType::Bool);
  // The first form takes a vector of conditions for whole rows.
  const auto rank = l.rank_of(condition), wanted = l.rank_of(a);
  if (l.op().name == "SELECT" && rank && wanted && *rank == 1 && *wanted > 1) {
    std::vector<int64_t> axes;
    for (int64_t i = 1; i < *wanted; ++i) axes.push_back(i);
    condition = l.unsqueeze(condition, std::move(axes));
  }
  return l.set(0, l.emit("Where", {condition, a, b}));
}

Status cast(Layer& l) {
  if (l.is_complex_input(0)) return unsupported("complex numbers cannot be cast").hint("take REAL, IMAG or COMPLEX_ABS of them");
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  return l.set(0, x);
}

// Real numbers to integers that stand for them, or from one scale to another; and back.
Status requantize(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  return l.set(0, x);
}

// What training inserted to imitate integers: `bits` bits between two bounds that are moved so that 0 is hit exactly.
Status fake_quant(Layer& l) {
  const Table& o = l.options();
  const double low = o.number<float>(0), high = o.number<float>(1);
  const int32_t bits = o.number<int32_t>(2);
  if (bits < 2 || bits > 16 || !(low < high) || !std::isfinite(low) || !std::isfinite(high))
    return invalid_model("the range is impossible")
        .expected("min < max and 2 to 16 bits")
        .found(std::to_string(low) + " to " + std::to_string(high) + ", " + std::to_string(bits) + " bits");
  const double first = o.flag(3) ? 1 : 0, last = (1 << bits) - 1;
  const double scale = (high - low) / (last - first);
  const double zero = std::clamp(std::round(first - low / scale), first, last);
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  const TensorId kept =
      l.emit("Clip", {x, l.add_scalar("min", (first - zero) * scale), l.add_scalar("max", (last - zero) * scale)});
  const TensorId step = l.add_scalar("scale", scale),
                 zero_point = l.add_scalar("zero_point", zero, bits > 8 ? DType::UInt16 : DType::UInt8);
  return l.set(0, l.emit("DequantizeLinear", {l.emit("QuantizeLinear", {kept, step, zero_point}), step, zero_point}));
}

// Complex numbers are pairs on an extra last axis.
Status complex_part(Layer& l) {
  if (!l.is_complex_input(0)) return invalid_model("the input is not complex");
  ORKNN_TRY_ASSIGN(const TensorId x, l.stored(0));
  if (l.op().name == "COMPLEX_ABS") {
    const TensorId sum = l.emit("ReduceSumSquare", {x, l.add_ints("axes", {-1})}, {{"keepdims", int64_t{0}}});
    return l.set(0, l.emit("Sqrt", {sum}));
  }
  return l.set(0, l.emit("Gather", {x, l.add_int_scalar("part", l.op().name == "REAL" ? 0 : 1)}, {{"axis", int64_t{-1}}}));
}

Status bitcast(Layer& l) {
  if (!l.has_output(0)) return {};
  if (l.input_info(0).type != l.output_info(0).type)
    return unsupported("bits cannot be read as another type")
        .found(element_type_name(l.input_info(0).type) + " as " + element_type_name(l.output_info(0).type));
  ORKNN_TRY_ASSIGN(const TensorId x, l.stored(0));
  return l.set_stored(0, x);
}

Status zeros_like(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  const TensorId shape = l.emit("Shape", {x});
  return l.set(0, l.emit("Expand", {l.add_scalar("zero", 0, l.dtype_of(x)), shape}));
}

Status densify(Layer& l) {  // sparse constants are spread out when they are read
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  return l.set_moved(0, 0, x);
}
}  // namespace

std::span<const Row> elementwise_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list;
    for (const Name& n : kUnary) list.push_back({n.theirs, unary});
    for (const Name& n : kBinary) {
      const bool fused = n.theirs == "ADD" || n.theirs == "SUB" || n.theirs == "MUL" || n.theirs == "DIV";
      list.push_back({n.theirs, fused ? arithmetic : binary});
    }
    static constexpr Row others[] = {
        {"NOT_EQUAL", not_equal},
        {"FLOOR_DIV", floor_div},
        {"FLOOR_MOD", floor_mod},
        {"RIGHT_SHIFT", right_shift},
        {"SQUARED_DIFFERENCE", squared_difference},
        {"ATAN2", atan2},
        {"RELU_N1_TO_1", relu_n1_to_1},
        {"RELU6", relu6},
        {"RELU_0_TO_1", relu_0_to_1},
        {"RSQRT", rsqrt},
        {"SQUARE", square},
        {"LEAKY_RELU", leaky_relu},
        {"PRELU", prelu},
        {"GELU", gelu},
        {"SOFTMAX", softmax},
        {"LOG_SOFTMAX", log_softmax},
        {"L2_NORMALIZATION", l2_normalization},
        {"ADD_N", add_n},
        {"SELECT", select},
        {"SELECT_V2", select},
        {"CAST", cast},
        {"QUANTIZE", requantize},
        {"DEQUANTIZE", requantize},
        {"FAKE_QUANT", fake_quant},
        {"REAL", complex_part},
        {"IMAG", complex_part},
        {"COMPLEX_ABS", complex_part},
        {"BITCAST", bitcast},
        {"ZEROS_LIKE", zeros_like},
        {"DENSIFY", densify},
        {"STABLEHLO_AND", bitwise_logic},
        {"STABLEHLO_OR", bitwise_logic},
        {"STABLEHLO_COMPARE", compare},
        {"STABLEHLO_REMAINDER", remainder},
        {"STABLEHLO_RSQRT", rsqrt},
        {"STABLEHLO_CLAMP", clamp},
        {"STABLEHLO_SELECT", select},
        {"STABLEHLO_CONVERT", cast},
        {"STABLEHLO_CBRT", cube_root},
    };
    list.insert(list.end(), std::begin(others), std::end(others));
    return list;
  }();
  return rows;
}

}  // namespace orknn::importer::tflite
