// A function of one value as a table of all results, 256 for 8-bit values and 65536 for 16-bit ones: activations, changes of
// scale.
#include "ops/support/elementwise.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

int64_t entries_for(DType data) { return data == DType::Int16 ? 65536 : 256; }

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_npu_integer, "int8, uint8 or int16"));
  ORKNN_TRY(check_type(c, 1, is_npu_integer, "int8, uint8 or int16"));
  if (const auto table = c.shape(1) ? to_dims(*c.shape(1)) : std::nullopt; table && *table != Dims{entries_for(c.dtype(0))})
    return shape_mismatch("the table does not have one entry per value")
        .expected(std::to_string(entries_for(c.dtype(0))))
        .found(to_string(*c.shape(1)));
  c.set_output(0, c.dtype(1), c.shape(0) ? std::optional(*c.shape(0)) : std::nullopt);
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), table = c.input(1);
  if (table.count() != entries_for(x.dtype))
    return shape_mismatch("the table does not have one entry per value")
        .expected(std::to_string(entries_for(x.dtype)))
        .found(std::to_string(table.count()));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, table.dtype, x.dims));
  // Entry 0 belongs to the smallest value.
  const uint8_t flip = x.dtype == DType::Int8 ? 0x80 : 0;
  visit_npu_integer(table.dtype, [&]<class T>(TypeTag<T>) {
    if (x.dtype == DType::Int16)
      map_elements(c.pool, x.as<uint16_t>(), y.as<T>(), x.count(), [&](uint16_t v) { return table.as<T>()[v ^ 0x8000]; });
    else
      map_elements(c.pool, x.as<uint8_t>(), y.as<T>(), x.count(), [&](uint8_t v) { return table.as<T>()[v ^ flip]; });
  });
  return {};
}
}  // namespace

std::span<const OpDef> int_table() {
  static const OpDef defs[] = {
      {.name = "int:Table",
       .summary = "a function of one value",
       .inputs = {2, 2},
       .attributes = {attr_strings("fused")},
       .infer = infer,
       .run = run,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .engine = Engine::Lut,
       .pattern = Pattern::Pointwise,
       .integer_form_of = "Clip",
       .table_input = 1,
       .fused_names_op = true},
  };
  return defs;
}
}  // namespace orknn::ops
