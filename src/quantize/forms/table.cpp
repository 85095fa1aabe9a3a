// Functions of one value: a table of all results.
#include "quantize/forms/converter.h"

namespace orknn::quantize {
using namespace ir;

Result<Outcome> lower_table(Lowering& l, const Node& n) {
  std::vector<TensorData> operands;
  for (size_t i = 1; i < n.own_input_count(); ++i) {
    const TensorData* value = l.graph().constant(n.inputs[i]);
    if (!value)
      operands.emplace_back();
    else
      operands.push_back(is_float(value->dtype()) ? ir::convert(value->view(), DType::Float64).reshaped({}) : *value);
  }
  Functions f(l.ops());
  f.add(n.op, n.attributes, std::move(operands));
  auto table = l.table_of(f, n.input(0), n.output());
  if (!table) return outcome_of(std::move(table).status());
  const TensorId entries = l.constant(n.name + "/table", std::move(*table));
  Attributes attributes;
  if (n.op != "Identity") attributes.set("fused", std::vector<std::string>{n.op});  // which only changes the format
  l.add_layer(n, "int:Table", {l.integer(n.input(0)), entries}, std::move(attributes));
  return Outcome::lowered();
}

}  // namespace orknn::quantize
