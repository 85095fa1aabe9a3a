// Pow (the exponent may have another type) and Mod.
#include <cmath>
#include <limits>

#include "ops/support/broadcast_ops.h"
#include "ops/support/copies.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer_pow(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_arithmetic, "a number type of at least 8 bits"));
  ORKNN_TRY(check_type(c, 1, is_arithmetic, "a number type of at least 8 bits"));
  return broadcast_inputs(c);
}

// By squaring, wrapping around. Negative exponents leave only 1 and -1 with a whole result.
int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<int64_t>(result);
}

template <class T>
T real_power(T base, double exponent) {
  const double y = std::pow(static_cast<double>(base), exponent);
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(y);
  else {
    if (y != y) return 0;
    if (y <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (y >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(y);
  }
}

Status run_pow(RunContext& c) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({a.dims, b.dims}));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, a.dtype, plan.dims()));
  if (is_integer(a.dtype) && is_integer(b.dtype)) {
    const TensorData exponent = convert(b, DType::Int64);
    visit_integer(a.dtype, [&]<class T>(TypeTag<T>) {
      map_rows(c.pool, plan, a.as<T>(), exponent.as<int64_t>(), y.as<T>(),
               [](T v, int64_t e) { return integer_power(static_cast<int64_t>(v), e); });
    });
    return {};
  }
  const TensorData exponent = convert(b, DType::Float64);
  visit_arithmetic(a.dtype, [&]<class T>(TypeTag<T>) {
    map_rows(c.pool, plan, a.as<T>(), exponent.as<double>(), y.as<T>(), [](T v, double e) { return real_power(v, e); });
  });
  return {};
}

Status infer_mod(InferContext& c) {
  ORKNN_TRY(check_types(c, is_arithmetic, "a number type of at least 8 bits"));
  ORKNN_TRY(broadcast_inputs(c));
  if (is_integer(c.dtype(0)))
    fold_content(c, [](std::span<const Dim> x) {
      // Extents are not negative, so both kinds of remainder agree.
      return x[0].is_known() && x[1].is_known() && x[0].value() >= 0 && x[1].value() > 0 ? Dim(x[0].value() % x[1].value())
                                                                                         : Dim();
    });
  return {};
}

// fmod = 1: the result has the sign of a, as in C. fmod = 0: that of b, as in Python. An integer modulo zero is zero.
template <bool sign_of_divisor>
struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T r = std::fmod(a, b);
      return sign_of_divisor && r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return 0;
        const T r = static_cast<T>(a % b);
        return sign_of_divisor && r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
      } else {
        return static_cast<T>(a % b);
      }
    }
  }
};
Status run_mod(RunContext& c) { return c.get_int("fmod") ? run_binary(c, Remainder<false>{}) : run_binary(c, Remainder<true>{}); }

int copied_by_pow(const InferContext& c) { return splat_of(c, 1) == 1.0 && keeps_shape(c, 0) ? 0 : kNoCopy; }
}  // namespace

std::span<const OpDef> power() {
  static const OpDef defs[] = {
      {.name = "Pow",
       .summary = "a to the power b, in the type of a",
       .inputs = {2, 2},
       .infer = infer_pow,
       .run = run_pow,
       .quant = QuantRule::Exponent,
       .engine = Engine::Elementwise,
       .pattern = Pattern::Broadcast,
       .copied_input = copied_by_pow,
       .npu = {.form = NpuForm::Power},
       .cpu = {CpuList::LargeChips}},
      {.name = "Mod",
       .summary = "remainder of a / b",
       .inputs = {2, 2},
       .attributes = {attr_int("fmod", 0)},
       .infer = infer_mod,
       .run = run_mod,
       .pattern = Pattern::Broadcast,
       .cpu = {CpuList::LargeChips}},
  };
  return defs;
}
}  // namespace orknn::ops
