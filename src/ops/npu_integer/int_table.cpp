// A function of one 8-bit value as a table of 256 results: activations, changes of scale.
#include "ops/support/elementwise.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

bool is_byte(DType t) { return t == DType::Int8 || t == DType::UInt8; }

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_byte, "int8 or uint8"));
  ORKNN_TRY(check_type(c, 1, is_npu_integer, "int8, uint8 or int16"));
  if (const auto table = c.shape(1) ? to_dims(*c.shape(1)) : std::nullopt; table && *table != Dims{256}) return shape_mismatch("a table has 256 entries").found(to_string(*c.shape(1)));
  c.set_output(0, c.dtype(1), c.shape(0) ? std::optional(*c.shape(0)) : std::nullopt);
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), table = c.input(1);
  if (table.count() != 256) return shape_mismatch("a table has 256 entries").found(std::to_string(table.count()));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, table.dtype, x.dims));
  // Entry 0 belongs to the smallest value.
  const uint8_t flip = x.dtype == DType::Int8 ? 0x80 : 0;
  visit_npu_integer(table.dtype, [&]<class T>(TypeTag<T>) {
    map_elements(c.pool, x.as<uint8_t>(), y.as<T>(), x.count(), [&](uint8_t v) { return table.as<T>()[v ^ flip]; });
  });
  return {};
}
}  // namespace

std::span<const OpDef> int_table() {
  static const OpDef defs[] = {
      {.name = "int:Table", .summary = "a function of one 8-bit value", .inputs = {2, 2}, .attributes = {attr_strings("fused")}, .infer = infer, .run = run,
       .widen_half = false, .quant = QuantRule::Integer, .engine = Engine::Lut},
  };
  return defs;
}
}  // namespace orknn::ops
