// Other element types: Cast and CastLike convert values, BitCast keeps their bits.
#include <bit>
#include <cmath>
#include <cstring>

#include "ops/support/copies.h"
#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Double to float, rounded to odd: narrowing the result again to 16 bits then gives the same as narrowing in one step.
float to_float_odd(double x) {
  const float f = static_cast<float>(x);
  if (!std::isfinite(f) || static_cast<double>(f) == x) return f;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::abs(static_cast<double>(f)) > std::abs(x)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1);
}

// Fractions are cut off. Values beyond a type of 32 bits or more give its nearest bound, NaN gives 0; narrower types keep the
// low bits, as the frameworks that make models do.
template <class To, class From>
To cast_value(From from) {
  constexpr bool narrow = std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>;
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return cast_value<To>(static_cast<float>(from));
  } else if constexpr (std::is_same_v<To, bool>) {
    return from != From{};
  } else if constexpr (narrow && !std::is_same_v<From, float>) {
    return To(to_float_odd(static_cast<double>(from)));
  } else if constexpr (narrow) {
    return To(from);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Wide = std::conditional_t<sizeof(To) < 4, int32_t, To>;
    if (std::isnan(from)) return To{0};
    const double x = static_cast<double>(from);
    if (x <= static_cast<double>(std::numeric_limits<Wide>::min())) return static_cast<To>(std::numeric_limits<Wide>::min());
    if (x >= static_cast<double>(std::numeric_limits<Wide>::max())) return static_cast<To>(std::numeric_limits<Wide>::max());
    return static_cast<To>(static_cast<Wide>(x));
  } else {
    return static_cast<To>(from);
  }
}

template <class From>
void cast_from(ThreadPool& pool, const From* from, const MutableTensorView& to) {
  const int64_t n = to.count();
  visit_dtype(to.dtype, [&]<class To>(TypeTag<To>) {
    To* target = to.as<To>();
    pool.parallel_for(n, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) target[i] = cast_value<To>(from[i]);
    });
  });
  if (to.dtype == DType::Int4)  // four bits in a byte, sign-extended
    map_elements(pool, to.as<uint8_t>(), to.as<int8_t>(), n, [](uint8_t v) { return static_cast<int8_t>(v << 4) >> 4; });
  if (to.dtype == DType::UInt4) map_elements(pool, to.as<uint8_t>(), to.as<uint8_t>(), n, [](uint8_t v) { return v & 15; });
}

Status infer_to(InferContext& c, DType to) {
  c.set_output(0, to, c.input(0).shape);
  const auto keeps_shapes = [](DType t) { return t == DType::Int64 || t == DType::Int32; };
  const DType from = c.dtype(0);
  if (keeps_shapes(to) && (keeps_shapes(from) || from == DType::Bool))
    fold_content(c, [](std::span<const Dim> x) { return x[0]; });
  if (to == DType::Bool && is_integer(from))
    fold_content(c, [](std::span<const Dim> x) { return x[0].is_known() ? Dim(x[0].value() != 0 ? 1 : 0) : Dim(); });
  return {};
}

Status run_to(RunContext& c, DType to) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, to, x.dims));
  if (x.dtype == to)
    std::memcpy(y.data, x.data, x.bytes());
  else
    visit_dtype(x.dtype, [&]<class From>(TypeTag<From>) { cast_from(c.pool, x.as<From>(), y); });
  return {};
}

// Strings and 8-bit floats have no place in this IR.
Result<DType> target_type(const NodeReader& c) {
  ORKNN_TRY_ASSIGN(const DType to, type_attribute(c, "to", DType::Undefined));
  if (to == DType::Undefined) return unsupported("attribute 'to' names no type");
  return to;
}
Status infer_cast(InferContext& c) {
  ORKNN_TRY_ASSIGN(const DType to, target_type(c));
  return infer_to(c, to);
}
Status run_cast(RunContext& c) {
  ORKNN_TRY_ASSIGN(const DType to, target_type(c));
  return run_to(c, to);
}
Status infer_cast_like(InferContext& c) {
  c.set_output(0, c.dtype(1), c.input(0).shape);
  return {};
}
Status run_cast_like(RunContext& c) { return run_to(c, c.input(1).dtype); }

Status infer_bit_cast(InferContext& c) {
  ORKNN_TRY_ASSIGN(const DType to, target_type(c));
  const auto is_whole = [](DType t) { return t != DType::Int4 && t != DType::UInt4; };  // fills its bytes
  if (dtype_bytes(to) != dtype_bytes(c.dtype(0)) || !is_whole(to) || !is_whole(c.dtype(0)))
    return invalid_model("the bits of a value fill a type of another width")
        .expected(std::to_string(dtype_bytes(c.dtype(0))) + " bytes")
        .found(std::string(dtype_name(to)));
  c.set_output(0, to, c.input(0).shape);
  return {};
}
Status run_bit_cast(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const DType to, target_type(c));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, to, x.dims));
  std::memcpy(y.data, x.data, x.bytes());
  return {};
}
}  // namespace

std::span<const OpDef> cast() {
  static const OpDef defs[] = {
      {.name = "Cast",
       .summary = "converts to the element type `to`",
       .inputs = {1, 1},
       .attributes = {required(attr_int("to")), attr_int("saturate", 1), attr_string("round_mode", "up")},
       .infer = infer_cast,
       .run = run_cast,
       .widen_half = false,
       .pattern = Pattern::Pointwise,
       .conversion = Conversion::ToType,
       .copied_input = copies_in_same_type,
       .cpu = {CpuList::LargeChips, CpuLimit::Cast}},
      {.name = "CastLike",
       .summary = "converts to the element type of the second input",
       .inputs = {2, 2},
       .attributes = {attr_int("saturate", 1), attr_string("round_mode", "up")},
       .infer = infer_cast_like,
       .run = run_cast_like,
       .widen_half = false,
       .copied_input = copies_in_same_type},
      {.name = "BitCast",
       .summary = "the bits of the values as another type of the same width",
       .inputs = {1, 1},
       .attributes = {required(attr_int("to"))},
       .infer = infer_bit_cast,
       .run = run_bit_cast,
       .widen_half = false,
       .exact_inputs = input_slots({0}),
       .copied_input = copies_in_same_type},
  };
  return defs;
}
}  // namespace orknn::ops
