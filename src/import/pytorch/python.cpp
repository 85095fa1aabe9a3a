// What is computed while importing: numbers, strings, and the questions code asks about types and devices.
#include <cmath>
#include <functional>
#include <limits>

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {

constexpr int64_t kLeastInteger = std::numeric_limits<int64_t>::min();
Status overflow() { return invalid_model("an integer does not fit 64 bits"); }
bool both_integers(const Value& a, const Value& b) { return a.kind() != Kind::Float && b.kind() != Kind::Float; }

// --- arithmetic
// Operators on integers give false when the result does not fit.
struct Plus {
  static bool of(int64_t a, int64_t b, int64_t* r) { return !__builtin_add_overflow(a, b, r); }
  static double of(double a, double b) { return a + b; }
};
struct Minus {
  static bool of(int64_t a, int64_t b, int64_t* r) { return !__builtin_sub_overflow(a, b, r); }
  static double of(double a, double b) { return a - b; }
};
struct ReversedMinus {
  static bool of(int64_t a, int64_t b, int64_t* r) { return Minus::of(b, a, r); }
  static double of(double a, double b) { return b - a; }
};
struct Times {
  static bool of(int64_t a, int64_t b, int64_t* r) { return !__builtin_mul_overflow(a, b, r); }
  static double of(double a, double b) { return a * b; }
};
template <class Operator>
Result<Value> arithmetic(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (!both_integers(a, b)) return Value(Operator::of(a.number(), b.number()));
  int64_t result = 0;
  if (!Operator::of(a.integer(), b.integer(), &result)) return overflow();
  return Value(result);
}

Status by_zero() { return invalid_model("a number is divided by zero"); }

Result<double> quotient_of_numbers(Call& c) {
  if (c.number("b") == 0) return by_zero();
  return c.number("a") / c.number("b");
}

// As in Python: the quotient is rounded down, the remainder has the sign of the divisor.
Result<Value> floor_quotient(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (b.number() == 0) return by_zero();
  if (!both_integers(a, b)) return Value(std::floor(a.number() / b.number()));
  if (a.integer() == kLeastInteger && b.integer() == -1) return overflow();
  const int64_t quotient = a.integer() / b.integer();
  return Value(quotient - (a.integer() % b.integer() != 0 && (a.integer() < 0) != (b.integer() < 0)));
}
Result<Value> number_remainder(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (b.number() == 0) return by_zero();
  if (!both_integers(a, b)) {
    const double rest = std::fmod(a.number(), b.number());
    return Value(rest != 0 && (rest < 0) != (b.number() < 0) ? rest + b.number() : rest);
  }
  if (b.integer() == -1) return Value(int64_t{0});
  const int64_t rest = a.integer() % b.integer();
  return Value(rest != 0 && (rest < 0) != (b.integer() < 0) ? rest + b.integer() : rest);
}
Result<std::vector<Value>> divmod(Call& c) {
  ORKNN_TRY_ASSIGN(const Value quotient, floor_quotient(c));
  ORKNN_TRY_ASSIGN(const Value rest, number_remainder(c));
  return std::vector<Value>{quotient, rest};
}

Result<Value> number_power(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (!both_integers(a, b) || b.integer() < 0) return Value(std::pow(a.number(), b.number()));
  int64_t result = 1, base = a.integer();
  for (int64_t exponent = b.integer(); exponent > 0; exponent >>= 1) {
    if ((exponent & 1) && !Times::of(result, base, &result)) return overflow();
    if (exponent > 1 && !Times::of(base, base, &base)) return overflow();
  }
  return Value(result);
}
template <bool Always>
Result<Value> negated(Call& c) {  // always, or where the number is negative
  const Value& a = c.value("a");
  if (a.kind() == Kind::Float) return Value(Always ? -a.number() : std::fabs(a.number()));
  if (a.integer() == kLeastInteger) return overflow();
  return Value(Always || a.integer() < 0 ? -a.integer() : a.integer());
}

template <double (*F)(double)>
double math(Call& c) {
  return F(c.number("a"));
}
template <double (*F)(double, double)>
double math_of_two(Call& c) {
  return F(c.number("a"), c.number("b"));
}
// floor and ceil of numbers, and their conversion, give integers.
template <double (*F)(double)>
Result<int64_t> to_integer(Call& c) {
  const Value& a = c.value("a");
  if (a.kind() != Kind::Float) return a.integer();
  const double rounded = F(a.number());
  if (!(std::fabs(rounded) < 9.2e18)) return overflow();
  return static_cast<int64_t>(rounded);
}
Result<int64_t> gcd(Call& c) {
  int64_t a = c.integer("a"), b = c.integer("b");
  if (a == kLeastInteger || b == kLeastInteger) return overflow();
  while (b != 0) std::swap(a %= b, b);
  return a < 0 ? -a : a;
}

// --- comparisons
template <class Holds>
bool holds(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  return both_integers(a, b) ? Holds()(a.integer(), b.integer()) : Holds()(a.number(), b.number());
}
template <class Holds>
bool holds_for_texts(Call& c) {
  return Holds()(c.text("a"), c.text("b"));
}
template <bool Negated>
bool is_identical(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  const bool same_kind = a.kind() == b.kind();
  return Negated != (same_kind &&
                     (a.is_none() || (a.identity() ? a.identity() == b.identity() : a.is_number() && a.number() == b.number())));
}
bool equal_objects(Call& c) {  // enumerations are equal when their values are
  const auto &a = c.value("a").object(), &b = c.value("b").object();
  const auto va = a.attributes.find("value"), vb = b.attributes.find("value");
  return &a == &b || (a.class_name == b.class_name && va != a.attributes.end() && vb != b.attributes.end() &&
                      to_text(va->second) == to_text(vb->second));
}
template <bool Answer>
bool always(Call&) {
  return Answer;
}

template <class Combine>
Value bits_of_numbers(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  const int64_t result = Combine()(a.integer(), b.integer());
  return a.kind() == Kind::Bool && b.kind() == Kind::Bool ? Value(result != 0) : Value(result);
}
Result<int64_t> shift_left(Call& c) {
  int64_t result = 0;
  if (c.integer("b") < 0 || c.integer("b") > 62 || !Times::of(c.integer("a"), int64_t{1} << c.integer("b"), &result))
    return overflow();
  return result;
}
Result<int64_t> shift_right(Call& c) {
  if (c.integer("b") < 0) return overflow();
  return c.integer("a") >> std::min<int64_t>(c.integer("b"), 63);
}

template <bool WantLess>
Value extreme_number(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  const bool a_less = both_integers(a, b) ? a.integer() < b.integer() : a.number() < b.number();
  const Value& chosen = a_less == WantLess ? a : b;
  return both_integers(a, b) ? chosen : Value(chosen.number());
}
template <bool WantLess>
Result<Value> extreme_of_list(Call& c) {
  if (c.items().empty()) return invalid_model("the list is empty");
  Value best = c.items()[0];
  for (const Value& v : c.items())
    if ((v.number() < best.number()) == WantLess && v.number() != best.number()) best = v;
  return best;
}
Result<Value> sum_of_list(Call& c) {
  int64_t total = 0;
  double real = 0;
  bool is_real = false;
  for (const Value& v : c.items()) {
    is_real |= v.kind() == Kind::Float;
    real += v.number();
    if (!is_real && !Plus::of(total, v.integer(), &total)) return overflow();
  }
  return is_real ? Value(real) : Value(total);
}
bool any_of_list(Call& c) { return std::ranges::any_of(c.items(), &Value::boolean); }
bool all_of_list(Call& c) { return std::ranges::all_of(c.items(), &Value::boolean); }

// --- conversions
// A tensor whose value is not known yet stays a tensor: it serves as a number wherever the operator takes tensors too.
template <DType To>
Output number_of_tensor(Call& c) {
  TensorValue& t = c.handle();
  if (ir::element_count(t.dims) != 1)
    return invalid_model("only a tensor of one element is a number").found(ir::to_string(t.dims));
  if (const auto known = c.session().constant_number(c, t)) {
    if (To == DType::Int64 && known->kind() == Kind::Float && !(std::fabs(known->number()) < 9.2e18)) return overflow();
    if (To == DType::Int64) return Value(known->integer());
    if (To == DType::Bool) return Value(known->boolean());
    return To == DType::Float32 ? Value(known->number()) : *known;
  }
  const ir::TensorId x = c.reshape(t.id, {});
  return To == DType::Undefined ? x : c.cast(x, To);
}
double to_float(Call& c) { return c.number("a"); }
bool to_bool(Call& c) { return c.flag("a"); }
Result<int64_t> int_of_text(Call& c) {
  const std::string text(c.text("a"));
  char* end = nullptr;
  const long long v = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str()) return invalid_model("'" + text + "' is not an integer");
  return static_cast<int64_t>(v);
}
Result<double> float_of_text(Call& c) {
  const std::string text(c.text("a"));
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return invalid_model("'" + text + "' is not a number");
  return v;
}
std::string text_of(Call& c) { return to_text(c.value("a")); }
ir::TensorId number_to_tensor(Call& c) { return c.as("a", type_of_number(c.value("a"))); }
void nothing(Call&) {}

Status optimized_file(Call&) {
  return unsupported(
             "the file was saved after torch.jit.optimize_for_inference, which keeps weights in a form that saving leaves "
             "out")
      .hint("save the scripted, traced or frozen model before that call");
}
Status raise(Call& c) {
  return unsupported("the model's own code raises an error for these inputs: " + to_text(c.value("message")))
      .hint("check the input shapes given with input_size_list");
}
Result<Value> unwrap(Call& c) {
  if (!c.has("self")) return invalid_model("a value is None where the code needs one");
  return c.value("self");
}

// --- questions about tensors and the machine
Value cpu_device(Call& c) { return c.heap().text(Kind::Device, "cpu"); }
Value device_named(Call& c) { return Value::text(Kind::Device, &c.value("name").text()); }
std::string device_type(Call& c) { return std::string(c.text("self").substr(0, c.text("self").find(':'))); }
int64_t element_type(Call& c) {
  const TensorValue& t = c.handle();
  if (!t.quantization) return code_of(c.dtype());
  return t.quantization->dtype == DType::UInt8 ? 13 : t.quantization->dtype == DType::Int8 ? 12 : 14;
}
bool is_floating(Call& c) { return is_float(c.dtype()); }
bool is_signed(Call& c) { return is_float(c.dtype()) || is_signed_int(c.dtype()); }
bool is_quantized(Call& c) { return c.handle().quantization.has_value(); }
int64_t layout(Call&) { return 0; }
int64_t item_size(Call& c) { return static_cast<int64_t>(dtype_bytes(c.dtype())); }
int64_t rank_of_tensor(Call& c) { return c.rank(); }
ir::Dims sizes(Call& c) { return c.dims(); }
ir::Dims strides(Call& c) { return c.handle().strides; }
Result<int64_t> one_stride(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  return c.rank() == 0 ? 1 : c.handle().strides[axis];
}
Result<int64_t> one_size(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.real_axis("has no size along one"));
  return c.dims()[axis];
}
int64_t element_total(Call& c) { return ir::element_count(c.dims()); }
Result<int64_t> length_of_tensor(Call& c) {
  if (c.dims().empty()) return invalid_model("a tensor without axes has no length");
  return c.dims()[0];
}
bool contiguity(Call& c) { return is_contiguous(c.dims(), c.handle().strides); }
bool same_size(Call& c) { return c.dims() == c.dims("other"); }

// range(a, b, step) as loops use it
Result<int64_t> range_length(Call& c) {
  const int64_t from = c.integer("lo"), to = c.integer("hi"), step = c.integer("step");
  if (step == 0) return invalid_model("a range has step 0");
  if (step > 0 ? from >= to : from <= to) return int64_t{0};
  const __int128 distance = step > 0 ? static_cast<__int128>(to) - from : static_cast<__int128>(from) - to;
  const __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  const __int128 count = (distance + stride - 1) / stride;
  if (count > std::numeric_limits<int64_t>::max()) return overflow();
  return static_cast<int64_t>(count);
}
Result<int64_t> derive_index(Call& c) {
  int64_t at = 0;
  if (!Times::of(c.integer("index"), c.integer("step"), &at) || !Plus::of(at, c.integer("start"), &at)) return overflow();
  return at;
}
}  // namespace

std::span<const Row> python_rows() {
  static const Row rows[] = {
      {"add(Scalar a, Scalar b)", arithmetic<Plus>},
      {"sub(Scalar a, Scalar b)", arithmetic<Minus>},
      {"mul(Scalar a, Scalar b)", arithmetic<Times>},
      {"rsub(Scalar a, Scalar b)", arithmetic<ReversedMinus>},
      {"div|true_divide|truediv(Scalar a, Scalar b)", quotient_of_numbers},
      {"floordiv|floor_divide(Scalar a, Scalar b)", floor_quotient},
      {"remainder(Scalar a, Scalar b)", number_remainder},
      {"fmod(Scalar a, Scalar b)", math_of_two<std::fmod>},
      {"divmod(Scalar a, Scalar b)", divmod},
      {"pow(Scalar a, Scalar b)", number_power},
      {"neg(Scalar a)", negated<true>},
      {"abs|prim::abs(Scalar a)", negated<false>},
      {"sqrt(Scalar a)", math<std::sqrt>},
      {"exp(Scalar a)", math<std::exp>},
      {"log(Scalar a)", math<std::log>},
      {"log2(Scalar a)", math<std::log2>},
      {"log10(Scalar a)", math<std::log10>},
      {"log1p(Scalar a)", math<std::log1p>},
      {"sin(Scalar a)", math<std::sin>},
      {"cos(Scalar a)", math<std::cos>},
      {"tan(Scalar a)", math<std::tan>},
      {"tanh(Scalar a)", math<std::tanh>},
      {"atan(Scalar a)", math<std::atan>},
      {"atan2(Scalar a, Scalar b)", math_of_two<std::atan2>},
      {"floor(Scalar a)", to_integer<std::floor>},
      {"ceil(Scalar a)", to_integer<std::ceil>},
      {"round(Scalar a)", math<std::nearbyint>},
      {"gcd(int a, int b)", gcd},
      {"eq(Scalar a, Scalar b)", holds<std::equal_to<>>},
      {"ne(Scalar a, Scalar b)", holds<std::not_equal_to<>>},
      {"lt(Scalar a, Scalar b)", holds<std::less<>>},
      {"le(Scalar a, Scalar b)", holds<std::less_equal<>>},
      {"gt(Scalar a, Scalar b)", holds<std::greater<>>},
      {"ge(Scalar a, Scalar b)", holds<std::greater_equal<>>},
      {"eq(str a, str b)", holds_for_texts<std::equal_to<>>},
      {"ne(str a, str b)", holds_for_texts<std::not_equal_to<>>},
      {"lt(str a, str b)", holds_for_texts<std::less<>>},
      {"eq(Device a, Device b)", always<true>},
      {"ne(Device a, Device b)", always<false>},
      {"eq(object a, object b)", equal_objects},
      {"__is__(any a, any b)", is_identical<false>},
      {"__isnot__(any a, any b)", is_identical<true>},
      {"__not__(Scalar a)", +[](Call& c) { return !c.flag("a"); }},
      {"__and__(Scalar a, Scalar b)", bits_of_numbers<std::bit_and<>>},
      {"__or__(Scalar a, Scalar b)", bits_of_numbers<std::bit_or<>>},
      {"__xor__(Scalar a, Scalar b)", bits_of_numbers<std::bit_xor<>>},
      {"__lshift__(int a, int b)", shift_left},
      {"__rshift__(int a, int b)", shift_right},
      {"prim::min|min(Scalar a, Scalar b)", extreme_number<true>},
      {"prim::max|max(Scalar a, Scalar b)", extreme_number<false>},
      {"prim::min|min(Scalar[] self)", extreme_of_list<true>},
      {"prim::max|max(Scalar[] self)", extreme_of_list<false>},
      {"sum(Scalar[] self)", sum_of_list},
      {"any(Scalar[] self)", any_of_list},
      {"all(Scalar[] self)", all_of_list},
      {"Int|IntImplicit(Tensor self)", number_of_tensor<DType::Int64>},
      {"Int(Scalar a)", to_integer<std::trunc>},
      {"Int(str a)", int_of_text},
      {"Float|FloatImplicit(Tensor self)", number_of_tensor<DType::Float32>},
      {"Float(Scalar a)", to_float},
      {"Float(str a)", float_of_text},
      {"Bool|is_nonzero(Tensor self)", number_of_tensor<DType::Bool>},
      {"Bool(Scalar a)", to_bool},
      {"ScalarImplicit|item|_local_scalar_dense(Tensor self)", number_of_tensor<DType::Undefined>},
      {"str(any a)", text_of},
      {"prim::NumToTensor(Scalar a)", number_to_tensor},
      {"prim::NumToTensor(Tensor self)", itself},
      {"scalar_tensor(Scalar a, *, any dtype=None, any layout=None, any device=None, any pin_memory=None)", number_to_tensor},
      {"prim::RaiseException(any message, any type=None)", raise},
      {"prim::unchecked_unwrap_optional|_unwrap_optional(any self)", unwrap},
      {"prim::unchecked_cast|prim::data|prim::profile(any self)", itself},
      {"prim::requires_grad|prim::is_cuda|prim::is_sparse|prim::is_mkldnn|prim::is_meta|prim::is_nested|is_complex|is_inference"
       "(Tensor self)",
       always<false>},
      {"is_grad_enabled|is_autocast_enabled|is_autocast_cpu_enabled|is_tracing()", always<false>},
      {"is_scripting()", always<true>},
      {"prim::is_cpu(Tensor self)", always<true>},
      {"prim::grad(Tensor self)", nothing},
      {"prim::device(Tensor self)", cpu_device},
      {"device(str name)", device_named},
      {"device(str name, any index)", device_named},
      {"prim::type(Device self)", device_type},
      {"prim::dtype(Tensor self)", element_type},
      {"prim::layout(Tensor self)", layout},
      {"prim::itemsize|element_size(Tensor self)", item_size},
      {"prim::is_quantized(Tensor self)", is_quantized},
      {"prim::ndim|dim|ndimension(Tensor self)", rank_of_tensor},
      {"prim::shape|size(Tensor self)", sizes},
      {"size|prim::shape(complex self)", sizes},
      {"dim(complex self)", rank_of_tensor},
      {"is_complex(complex self)", always<true>},
      {"size|sym_size(Tensor self, int dim)", one_size},
      {"stride(Tensor self)", strides},
      {"stride|sym_stride(Tensor self, int dim)", one_stride},
      {"numel|sym_numel(Tensor self)", element_total},
      {"len(Tensor self)", length_of_tensor},
      {"is_contiguous(Tensor self, any memory_format=None)", contiguity},
      {"is_same_size(Tensor self, Tensor other)", same_size},
      {"is_floating_point(Tensor self)", is_floating},
      {"is_signed(Tensor self)", is_signed},
      {"prim::ConstantMKLDNNTensor|prim::BroadcastMKLDNNTensors|prim::MKLDNNClamp|prim::MKLDNNHardSigmoid|prim::MKLDNNHardSwish|"
       "prim::MKLDNNHardTanh|prim::MKLDNNLayerNorm|prim::MKLDNNScalarMul|prim::mkldnn_convolution|to_mkldnn|to_dense(...)",
       optimized_file},
      {"prim::Print|_assert_scalar|_assert_async|_assert_tensor_metadata|sym_constrain_range|sym_constrain_range_for_size(...)",
       nothing},
      {"prim::AutogradZero()", nothing},
      {"set_grad_enabled(bool value)", nothing},
      {"manual_seed(int seed)", nothing},
      {"warn(any message, any stacklevel=None)", nothing},
      {"__range_length(int lo, int hi, int step)", range_length},
      {"__derive_index(int index, int start, int step)", derive_index},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
