// What is computed while importing: numbers, strings, and the questions code asks about types and devices.
#include <cmath>
#include <limits>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {

Status overflow() { return invalid_model("an integer does not fit 64 bits"); }
bool both_integers(const Value& a, const Value& b) { return a.kind() != Kind::Float && b.kind() != Kind::Float; }

// --- arithmetic
using IntegerStep = bool (*)(int64_t, int64_t, int64_t*);
bool add_ints(int64_t a, int64_t b, int64_t* r) { return !__builtin_add_overflow(a, b, r); }
bool sub_ints(int64_t a, int64_t b, int64_t* r) { return !__builtin_sub_overflow(a, b, r); }
bool mul_ints(int64_t a, int64_t b, int64_t* r) { return !__builtin_mul_overflow(a, b, r); }

template <IntegerStep Integers, double (*Floats)(double, double)>
Result<Value> arithmetic(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (!both_integers(a, b)) return Value(Floats(a.number(), b.number()));
  int64_t result = 0;
  if (!Integers(a.integer(), b.integer(), &result)) return overflow();
  return Value(result);
}
double add_floats(double a, double b) { return a + b; }
double sub_floats(double a, double b) { return a - b; }
double mul_floats(double a, double b) { return a * b; }

Result<Value> rsub_numbers(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (!both_integers(a, b)) return Value(b.number() - a.number());
  int64_t result = 0;
  if (!sub_ints(b.integer(), a.integer(), &result)) return overflow();
  return Value(result);
}

Status by_zero() { return invalid_model("a number is divided by zero"); }

Result<Value> true_divide(Call& c) {
  if (c.number("b") == 0) return by_zero();
  return Value(c.number("a") / c.number("b"));
}

// As in Python: the quotient is rounded down, the remainder has the sign of the divisor.
Result<Value> floor_divide(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (b.number() == 0) return by_zero();
  if (!both_integers(a, b)) return Value(std::floor(a.number() / b.number()));
  if (a.integer() == std::numeric_limits<int64_t>::min() && b.integer() == -1) return overflow();
  const int64_t quotient = a.integer() / b.integer();
  return Value(quotient - (a.integer() % b.integer() != 0 && (a.integer() < 0) != (b.integer() < 0)));
}

Result<Value> remainder(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (b.number() == 0) return by_zero();
  if (!both_integers(a, b)) return Value(a.number() - std::floor(a.number() / b.number()) * b.number());
  if (b.integer() == -1) return Value(int64_t{0});
  const int64_t rest = a.integer() % b.integer();
  return Value(rest != 0 && (rest < 0) != (b.integer() < 0) ? rest + b.integer() : rest);
}

Result<Value> divmod(Call& c) {
  ORKNN_TRY_ASSIGN(const Value quotient, floor_divide(c));
  ORKNN_TRY_ASSIGN(const Value rest, remainder(c));
  return c.tuple({quotient, rest});
}

Result<Value> power(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (!both_integers(a, b) || b.integer() < 0) return Value(std::pow(a.number(), b.number()));
  int64_t result = 1, base = a.integer();
  for (int64_t exponent = b.integer(); exponent > 0; exponent >>= 1) {
    if ((exponent & 1) && !mul_ints(result, base, &result)) return overflow();
    if (exponent > 1 && !mul_ints(base, base, &base)) return overflow();
  }
  return Value(result);
}

Result<Value> negate(Call& c) {
  const Value& a = c.value("a");
  if (a.kind() == Kind::Float) return Value(-a.number());
  if (a.integer() == std::numeric_limits<int64_t>::min()) return overflow();
  return Value(-a.integer());
}

Result<Value> absolute(Call& c) {
  const Value& a = c.value("a");
  if (a.kind() == Kind::Float) return Value(std::fabs(a.number()));
  if (a.integer() == std::numeric_limits<int64_t>::min()) return overflow();
  return Value(a.integer() < 0 ? -a.integer() : a.integer());
}

template <double (*F)(double)>
Result<Value> math(Call& c) {
  return Value(F(c.number("a")));
}

// floor and ceil of numbers give integers.
template <double (*F)(double)>
Result<Value> to_integer(Call& c) {
  const Value& a = c.value("a");
  if (a.kind() != Kind::Float) return Value(a.integer());
  const double rounded = F(a.number());
  if (!(std::fabs(rounded) < 9.2e18)) return overflow();
  return Value(static_cast<int64_t>(rounded));
}

Result<Value> atan2_numbers(Call& c) { return Value(std::atan2(c.number("a"), c.number("b"))); }
Result<Value> fmod_numbers(Call& c) { return Value(std::fmod(c.number("a"), c.number("b"))); }

Result<Value> gcd(Call& c) {
  int64_t a = c.integer("a"), b = c.integer("b");
  if (a == std::numeric_limits<int64_t>::min() || b == std::numeric_limits<int64_t>::min()) return overflow();
  while (b != 0) std::swap(a %= b, b);
  return Value(a < 0 ? -a : a);
}

// --- comparisons
template <bool (*Holds)(double, double), bool (*HoldsForInts)(int64_t, int64_t)>
Result<Value> compare(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  return Value(both_integers(a, b) ? HoldsForInts(a.integer(), b.integer()) : Holds(a.number(), b.number()));
}
template <class T>
bool equal(T a, T b) {
  return a == b;
}
template <class T>
bool different(T a, T b) {
  return a != b;
}
template <class T>
bool less(T a, T b) {
  return a < b;
}
template <class T>
bool less_or_equal(T a, T b) {
  return a <= b;
}
template <class T>
bool greater(T a, T b) {
  return a > b;
}
template <class T>
bool greater_or_equal(T a, T b) {
  return a >= b;
}

Result<Value> equal_texts(Call& c) { return Value(c.text("a") == c.text("b")); }
Result<Value> different_texts(Call& c) { return Value(c.text("a") != c.text("b")); }
Result<Value> less_texts(Call& c) { return Value(c.text("a") < c.text("b")); }

bool is_same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  return a.is_none() || (a.identity() ? a.identity() == b.identity() : a.is_number() && a.number() == b.number());
}
Result<Value> is_identical(Call& c) { return Value(is_same(c.value("a"), c.value("b"))); }
Result<Value> is_not_identical(Call& c) { return Value(!is_same(c.value("a"), c.value("b"))); }
Result<Value> equal_objects(Call& c) {  // enumerations are equal when their values are
  const auto &a = c.value("a").object(), &b = c.value("b").object();
  const auto va = a.attributes.find("value"), vb = b.attributes.find("value");
  if (&a == &b) return Value(true);
  return Value(a.class_name == b.class_name && va != a.attributes.end() && vb != b.attributes.end() &&
               to_text(va->second) == to_text(vb->second));
}
Result<Value> never(Call&) { return Value(false); }
Result<Value> always(Call&) { return Value(true); }

Result<Value> logical_not(Call& c) { return Value(!c.value("a").boolean()); }
template <class F>
Result<Value> bits(Call& c, F f) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (a.kind() == Kind::Bool && b.kind() == Kind::Bool) return Value(f(a.integer(), b.integer()) != 0);
  return Value(f(a.integer(), b.integer()));
}
Result<Value> bit_and(Call& c) {
  return bits(c, [](int64_t a, int64_t b) { return a & b; });
}
Result<Value> bit_or(Call& c) {
  return bits(c, [](int64_t a, int64_t b) { return a | b; });
}
Result<Value> bit_xor(Call& c) {
  return bits(c, [](int64_t a, int64_t b) { return a ^ b; });
}
Result<Value> shift_left(Call& c) {
  if (c.integer("b") < 0 || c.integer("b") > 62) return overflow();
  int64_t result = 0;
  if (!mul_ints(c.integer("a"), int64_t{1} << c.integer("b"), &result)) return overflow();
  return Value(result);
}
Result<Value> shift_right(Call& c) {
  if (c.integer("b") < 0) return overflow();
  return Value(c.integer("a") >> std::min<int64_t>(c.integer("b"), 63));
}

template <bool WantLess>
Result<Value> extreme(Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  const bool a_less = both_integers(a, b) ? a.integer() < b.integer() : a.number() < b.number();
  const Value& chosen = a_less == WantLess ? a : b;
  return both_integers(a, b) ? chosen : Value(chosen.number());
}
template <bool WantLess>
Result<Value> extreme_of_list(Call& c) {
  const auto& items = c.items("self");
  if (items.empty()) return invalid_model("the list is empty");
  Value best = items[0];
  for (const Value& v : items)
    if ((v.number() < best.number()) == WantLess && v.number() != best.number()) best = v;
  return best;
}
Result<Value> sum_of_list(Call& c) {
  const auto& items = c.items("self");
  int64_t total = 0;
  double real = 0;
  bool is_real = false;
  for (const Value& v : items) {
    is_real |= v.kind() == Kind::Float;
    real += v.number();
    if (!is_real && !add_ints(total, v.integer(), &total)) return overflow();
  }
  return is_real ? Value(real) : Value(total);
}
Result<Value> any_of_list(Call& c) {
  for (const Value& v : c.items("self"))
    if (v.boolean()) return Value(true);
  return Value(false);
}
Result<Value> all_of_list(Call& c) {
  for (const Value& v : c.items("self"))
    if (!v.boolean()) return Value(false);
  return Value(true);
}

// --- conversions
// A tensor whose value is not known yet stays a tensor: it serves as a number wherever the operator takes tensors too.
template <DType To>
Result<Value> number_of_tensor(Call& c) {
  TensorValue& t = c.handle("self");
  if (ir::element_count(t.dims) != 1)
    return invalid_model("only a tensor of one element is a number").found(ir::to_string(t.dims));
  if (const auto known = c.session().constant_number(c, t)) {
    if (To == DType::Int64)
      return known->kind() == Kind::Float && !(std::fabs(known->number()) < 9.2e18) ? Result<Value>(overflow())
                                                                                    : Result<Value>(Value(known->integer()));
    if (To == DType::Bool) return Value(known->boolean());
    return To == DType::Float32 ? Value(known->number()) : *known;
  }
  ir::TensorId x = c.reshape(t.id, {});
  if (To != DType::Undefined) x = c.cast(x, To);
  return c.made(x);
}
Result<Value> to_int(Call& c) {
  const double v = c.number("a");
  if (c.value("a").kind() == Kind::Float && !(std::fabs(v) < 9.2e18)) return overflow();
  return Value(c.value("a").integer());
}
Result<Value> to_float(Call& c) { return Value(c.number("a")); }
Result<Value> to_bool(Call& c) { return Value(c.value("a").boolean()); }
Result<Value> int_of_text(Call& c) {
  const std::string text(c.text("a"));
  char* end = nullptr;
  const long long v = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str()) return invalid_model("'" + text + "' is no integer");
  return Value(static_cast<int64_t>(v));
}
Result<Value> float_of_text(Call& c) {
  const std::string text(c.text("a"));
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return invalid_model("'" + text + "' is no number");
  return Value(v);
}
Result<Value> to_string(Call& c) { return c.string(to_text(c.value("a"))); }

Result<Value> number_to_tensor(Call& c) {
  const Value& v = c.value("a");
  const DType t = v.kind() == Kind::Float ? DType::Float32 : v.kind() == Kind::Int ? DType::Int64 : DType::Bool;
  return c.made(c.as(v, t));
}

Result<Value> same(Call& c) { return c.value("self"); }
Result<Value> nothing(Call&) { return Value(); }

Result<Value> optimized_file(Call& c) {
  return c.fail("the file was saved after torch.jit.optimize_for_inference, which keeps weights in a form that saving leaves out")
      .hint("save the scripted, traced or frozen model before that call");
}
Result<Value> raise(Call& c) {
  return unsupported("the model's own code raises an error for these inputs: " + to_text(c.value("message")))
      .hint("check the input shapes given with input_size_list");
}
Result<Value> unwrap(Call& c) {
  if (!c.has("self")) return invalid_model("a value is None where the code needs one");
  return c.value("self");
}

// --- questions about tensors and the machine
Result<Value> cpu_device(Call& c) { return c.heap().text(Kind::Device, "cpu"); }
Result<Value> device_named(Call& c) { return Value::text(Kind::Device, &c.value("name").text()); }
Result<Value> device_type(Call& c) { return c.string(std::string(c.text("self").substr(0, c.text("self").find(':')))); }
Result<Value> element_type(Call& c) {
  const TensorValue& t = c.handle("self");
  if (t.quantization)
    return Value(t.quantization->dtype == DType::UInt8  ? int64_t{13}
                 : t.quantization->dtype == DType::Int8 ? int64_t{12}
                                                        : int64_t{14});
  return Value(code_of(c.dtype("self")));
}
Result<Value> is_floating(Call& c) { return Value(is_float(c.dtype("self"))); }
Result<Value> is_signed(Call& c) { return Value(is_float(c.dtype("self")) || is_signed_int(c.dtype("self"))); }
Result<Value> is_quantized(Call& c) { return Value(c.handle("self").quantization.has_value()); }
Result<Value> layout(Call&) { return Value(int64_t{0}); }
Result<Value> item_size(Call& c) { return Value(static_cast<int64_t>(dtype_bytes(c.dtype("self")))); }
Result<Value> rank_of_tensor(Call& c) { return Value(c.rank("self")); }
Result<Value> sizes(Call& c) { return c.int_list(c.dims("self")); }
Result<Value> strides(Call& c) { return c.int_list(c.handle("self").strides); }
Result<Value> one_stride(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  return axis < c.handle("self").strides.size() ? Value(c.handle("self").strides[axis]) : Value(int64_t{1});
}
Result<Value> one_size(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (axis >= c.dims("self").size()) return invalid_model("a tensor without axes has no size along one");
  return Value(c.dims("self")[axis]);
}
Result<Value> element_total(Call& c) { return Value(ir::element_count(c.dims("self"))); }
Result<Value> length_of_tensor(Call& c) {
  if (c.dims("self").empty()) return invalid_model("a tensor without axes has no length");
  return Value(c.dims("self")[0]);
}
Result<Value> contiguity(Call& c) { return Value(is_contiguous(c.dims("self"), c.handle("self").strides)); }
Result<Value> same_size(Call& c) { return Value(c.dims("self") == c.dims("other")); }

// range(a, b, step) as loops use it
Result<Value> range_length(Call& c) {
  const int64_t from = c.integer("lo"), to = c.integer("hi"), step = c.integer("step");
  if (step == 0) return invalid_model("a range has step 0");
  if (step > 0 ? from >= to : from <= to) return Value(int64_t{0});
  const __int128 distance = step > 0 ? static_cast<__int128>(to) - from : static_cast<__int128>(from) - to;
  const __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  const __int128 count = (distance + stride - 1) / stride;
  if (count > std::numeric_limits<int64_t>::max()) return overflow();
  return Value(static_cast<int64_t>(count));
}
Result<Value> derive_index(Call& c) {
  int64_t offset = 0;
  if (!mul_ints(c.integer("index"), c.integer("step"), &offset) || !add_ints(offset, c.integer("start"), &offset))
    return overflow();
  return Value(offset);
}
}  // namespace

std::span<const Row> python_rows() {
  static constexpr Row kRows[] = {
      {"add(Scalar a, Scalar b)", arithmetic<add_ints, add_floats>},
      {"sub(Scalar a, Scalar b)", arithmetic<sub_ints, sub_floats>},
      {"mul(Scalar a, Scalar b)", arithmetic<mul_ints, mul_floats>},
      {"rsub(Scalar a, Scalar b)", rsub_numbers},
      {"div(Scalar a, Scalar b)", true_divide},
      {"true_divide(Scalar a, Scalar b)", true_divide},
      {"truediv(Scalar a, Scalar b)", true_divide},
      {"floordiv(Scalar a, Scalar b)", floor_divide},
      {"floor_divide(Scalar a, Scalar b)", floor_divide},
      {"remainder(Scalar a, Scalar b)", remainder},
      {"fmod(Scalar a, Scalar b)", fmod_numbers},
      {"divmod(Scalar a, Scalar b)", divmod},
      {"pow(Scalar a, Scalar b)", power},
      {"neg(Scalar a)", negate},
      {"abs(Scalar a)", absolute},
      {"prim::abs(Scalar a)", absolute},
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
      {"atan2(Scalar a, Scalar b)", atan2_numbers},
      {"floor(Scalar a)", to_integer<std::floor>},
      {"ceil(Scalar a)", to_integer<std::ceil>},
      {"round(Scalar a)", math<std::nearbyint>},
      {"gcd(int a, int b)", gcd},
      {"eq(Scalar a, Scalar b)", compare<equal<double>, equal<int64_t>>},
      {"ne(Scalar a, Scalar b)", compare<different<double>, different<int64_t>>},
      {"lt(Scalar a, Scalar b)", compare<less<double>, less<int64_t>>},
      {"le(Scalar a, Scalar b)", compare<less_or_equal<double>, less_or_equal<int64_t>>},
      {"gt(Scalar a, Scalar b)", compare<greater<double>, greater<int64_t>>},
      {"ge(Scalar a, Scalar b)", compare<greater_or_equal<double>, greater_or_equal<int64_t>>},
      {"eq(str a, str b)", equal_texts},
      {"ne(str a, str b)", different_texts},
      {"lt(str a, str b)", less_texts},
      {"eq(Device a, Device b)", always},
      {"ne(Device a, Device b)", never},
      {"eq(object a, object b)", equal_objects},
      {"__is__(any a, any b)", is_identical},
      {"__isnot__(any a, any b)", is_not_identical},
      {"__not__(Scalar a)", logical_not},
      {"__and__(Scalar a, Scalar b)", bit_and},
      {"__or__(Scalar a, Scalar b)", bit_or},
      {"__xor__(Scalar a, Scalar b)", bit_xor},
      {"__lshift__(int a, int b)", shift_left},
      {"__rshift__(int a, int b)", shift_right},
      {"prim::min(Scalar a, Scalar b)", extreme<true>},
      {"prim::max(Scalar a, Scalar b)", extreme<false>},
      {"prim::min(Scalar[] self)", extreme_of_list<true>},
      {"prim::max(Scalar[] self)", extreme_of_list<false>},
      {"min(Scalar a, Scalar b)", extreme<true>},
      {"max(Scalar a, Scalar b)", extreme<false>},
      {"min(Scalar[] self)", extreme_of_list<true>},
      {"max(Scalar[] self)", extreme_of_list<false>},
      {"sum(Scalar[] self)", sum_of_list},
      {"any(Scalar[] self)", any_of_list},
      {"all(Scalar[] self)", all_of_list},
      {"Int(Tensor self)", number_of_tensor<DType::Int64>},
      {"Int(Scalar a)", to_int},
      {"Int(str a)", int_of_text},
      {"IntImplicit(Tensor self)", number_of_tensor<DType::Int64>},
      {"Float(Tensor self)", number_of_tensor<DType::Float32>},
      {"Float(Scalar a)", to_float},
      {"Float(str a)", float_of_text},
      {"FloatImplicit(Tensor self)", number_of_tensor<DType::Float32>},
      {"Bool(Tensor self)", number_of_tensor<DType::Bool>},
      {"Bool(Scalar a)", to_bool},
      {"ScalarImplicit(Tensor self)", number_of_tensor<DType::Undefined>},
      {"item(Tensor self)", number_of_tensor<DType::Undefined>},
      {"_local_scalar_dense(Tensor self)", number_of_tensor<DType::Undefined>},
      {"str(any a)", to_string},
      {"prim::NumToTensor(Scalar a)", number_to_tensor},
      {"prim::NumToTensor(Tensor self)", same},
      {"scalar_tensor(Scalar a, *, any dtype=None, any layout=None, any device=None, any pin_memory=None)", number_to_tensor},
      {"prim::RaiseException(any message, any type=None)", raise},
      {"prim::unchecked_unwrap_optional(any self)", unwrap},
      {"_unwrap_optional(any self)", unwrap},
      {"prim::unchecked_cast(any self)", same},
      {"prim::data(any self)", same},
      {"prim::requires_grad(Tensor self)", never},
      {"prim::grad(Tensor self)", nothing},
      {"prim::device(Tensor self)", cpu_device},
      {"device(str name)", device_named},
      {"device(str name, any index)", device_named},
      {"prim::type(Device self)", device_type},
      {"prim::dtype(Tensor self)", element_type},
      {"prim::layout(Tensor self)", layout},
      {"prim::itemsize(Tensor self)", item_size},
      {"element_size(Tensor self)", item_size},
      {"prim::is_cuda(Tensor self)", never},
      {"prim::is_cpu(Tensor self)", always},
      {"prim::is_sparse(Tensor self)", never},
      {"prim::is_mkldnn(Tensor self)", never},
      {"prim::is_quantized(Tensor self)", is_quantized},
      {"prim::is_meta(Tensor self)", never},
      {"prim::is_nested(Tensor self)", never},
      {"prim::ndim(Tensor self)", rank_of_tensor},
      {"prim::shape(Tensor self)", sizes},
      {"prim::Print(...)", nothing},
      {"prim::AutogradZero()", nothing},
      {"prim::ConstantMKLDNNTensor(...)", optimized_file},
      {"prim::BroadcastMKLDNNTensors(...)", optimized_file},
      {"prim::MKLDNNClamp(...)", optimized_file},
      {"prim::MKLDNNHardSigmoid(...)", optimized_file},
      {"prim::MKLDNNHardSwish(...)", optimized_file},
      {"prim::MKLDNNHardTanh(...)", optimized_file},
      {"prim::MKLDNNLayerNorm(...)", optimized_file},
      {"prim::MKLDNNScalarMul(...)", optimized_file},
      {"prim::mkldnn_convolution(...)", optimized_file},
      {"to_mkldnn(...)", optimized_file},
      {"to_dense(...)", optimized_file},
      {"dim(Tensor self)", rank_of_tensor},
      {"ndimension(Tensor self)", rank_of_tensor},
      {"size(Tensor self)", sizes},
      {"size(Tensor self, int dim)", one_size},
      {"stride(Tensor self)", strides},
      {"stride(Tensor self, int dim)", one_stride},
      {"sym_size(Tensor self, int dim)", one_size},
      {"sym_numel(Tensor self)", element_total},
      {"sym_stride(Tensor self, int dim)", one_stride},
      {"numel(Tensor self)", element_total},
      {"len(Tensor self)", length_of_tensor},
      {"is_contiguous(Tensor self, any memory_format=None)", contiguity},
      {"is_same_size(Tensor self, Tensor other)", same_size},
      {"is_floating_point(Tensor self)", is_floating},
      {"is_signed(Tensor self)", is_signed},
      {"is_complex(Tensor self)", never},
      {"is_nonzero(Tensor self)", number_of_tensor<DType::Bool>},
      {"is_grad_enabled()", never},
      {"is_inference(Tensor self)", never},
      {"is_autocast_enabled()", never},
      {"is_autocast_cpu_enabled()", never},
      {"is_scripting()", always},
      {"is_tracing()", never},
      {"set_grad_enabled(bool value)", nothing},
      {"manual_seed(int seed)", nothing},
      {"warn(any message, any stacklevel=None)", nothing},
      {"_assert_scalar(...)", nothing},
      {"_assert_async(...)", nothing},
      {"_assert_tensor_metadata(...)", nothing},
      {"sym_constrain_range(...)", nothing},
      {"sym_constrain_range_for_size(...)", nothing},
      {"prim::profile(any self)", same},
      {"__range_length(int lo, int hi, int step)", range_length},
      {"__derive_index(int index, int start, int step)", derive_index},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
