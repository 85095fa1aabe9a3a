// Two-operand ops on truth values and on bits.
#include "ops/support/broadcast_ops.h"

namespace orknn::ops {
namespace {
using namespace ir;

template <class F>
Status run_bool(RunContext& c) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({a.dims, b.dims}));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Bool, plan.dims()));
  map_rows(c.pool, plan, a.as<bool>(), b.as<bool>(), y.as<bool>(), F{});
  return {};
}
Status infer_bool(InferContext& c) {
  ORKNN_TRY(check_types(
      c, [](DType t) { return t == DType::Bool; }, "bool"));
  return broadcast_inputs(c);
}

// Bitwise ops and shifts to the left do not depend on the sign, so one loop per element size is enough.
template <class F>
Status run_bits(RunContext& c, F f) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const Broadcast plan, Broadcast::plan({a.dims, b.dims}));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, a.dtype, plan.dims()));
  visit_element_bytes(a.dtype, [&]<class T>(TypeTag<T>) { map_rows(c.pool, plan, a.as<T>(), b.as<T>(), y.as<T>(), f); });
  return {};
}
Status infer_bits(InferContext& c) {
  ORKNN_TRY(check_types(c, is_wide_integer, "an integer type of at least 8 bits"));
  return broadcast_inputs(c);
}
Status run_and(RunContext& c) {
  return run_bits(c, [](auto a, auto b) { return a & b; });
}
Status run_or(RunContext& c) {
  return run_bits(c, [](auto a, auto b) { return a | b; });
}
Status run_xor(RunContext& c) {
  return run_bits(c, [](auto a, auto b) { return a ^ b; });
}

Status infer_shift(InferContext& c) {
  const std::string& direction = c.get_string("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    return invalid_model("attribute 'direction' is neither LEFT nor RIGHT").found(direction);
  return infer_bits(c);
}
// A shift by a negative number, which is a large unsigned one here, leaves nothing but the sign too.
Status run_shift(RunContext& c) {
  if (c.get_string("direction") == "LEFT")
    return run_bits(c,
                    []<class T>(T a, T b) { return b < sizeof(T) * 8 ? static_cast<T>(static_cast<uint64_t>(a) << b) : T{0}; });
  if (is_unsigned_int(c.input(0).dtype))
    return run_bits(c, []<class T>(T a, T b) { return b < sizeof(T) * 8 ? static_cast<T>(a >> b) : T{0}; });
  return run_bits(c, []<class T>(T a, T b) {
    return static_cast<T>(static_cast<std::make_signed_t<T>>(a) >> std::min<T>(b, sizeof(T) * 8 - 1));
  });
}
}  // namespace

std::span<const OpDef> bits() {
  constexpr Arity kTwo{2, 2};
  static const OpDef defs[] = {
      {.name = "And",
       .summary = "logical and",
       .inputs = kTwo,
       .infer = infer_bool,
       .run = run_bool<std::logical_and<>>,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Broadcast,
       .cpu = {CpuList::LargeChips}},
      {.name = "Or",
       .summary = "logical or",
       .inputs = kTwo,
       .infer = infer_bool,
       .run = run_bool<std::logical_or<>>,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Broadcast},
      {.name = "Xor",
       .summary = "exactly one is true",
       .inputs = kTwo,
       .infer = infer_bool,
       .run = run_bool<std::not_equal_to<>>,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Broadcast},
      {.name = "BitwiseAnd",
       .summary = "bits set in both",
       .inputs = kTwo,
       .infer = infer_bits,
       .run = run_and,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Broadcast},
      {.name = "BitwiseOr",
       .summary = "bits set in either",
       .inputs = kTwo,
       .infer = infer_bits,
       .run = run_or,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Broadcast},
      {.name = "BitwiseXor",
       .summary = "bits set in exactly one",
       .inputs = kTwo,
       .infer = infer_bits,
       .run = run_xor,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Broadcast},
      {.name = "BitShift",
       .summary = "shifts bits; from the width of the type on only the sign stays, to the right",
       .inputs = kTwo,
       .attributes = {required(attr_string("direction"))},
       .infer = infer_shift,
       .run = run_shift,
       .quant = QuantRule::Integer,
       .pattern = Pattern::Broadcast},
  };
  return defs;
}
}  // namespace orknn::ops
