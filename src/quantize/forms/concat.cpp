// Joined tensors: operands in other parameters than the result's are brought to them first.
#include "quantize/forms/lowering.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// `t`, which has other parameters, in those of `y`.
Result<TensorId> rescaled(Lowering& l, const Node& n, TensorId t, TensorId y) {
  const std::string& name = l.graph().tensor(t).name;
  const TensorId integers = l.integer(t);
  ORKNN_TRY_ASSIGN(TensorData table, l.table_of(Functions(l.ops()), t, y));
  Node rescale;
  rescale.op = "int:Table";
  rescale.name = name + "_rescaled";
  rescale.inputs = {integers, l.constant(name + "/rescale", std::move(table))};
  const TensorId made = l.add_integer_tensor(t, rescale.name);
  l.out().tensor(made).dtype = l.type(y);
  l.out().tensor(made).quant = l.parameters(y);
  rescale.outputs = {made};
  rescale.origin = n.origin;
  l.out().add_node(std::move(rescale));
  return made;
}
}  // namespace

Result<Outcome> lower_concat(Lowering& l, const Node& n) {
  const TensorId y = n.output();
  const auto has_parameters_of_result = [&](TensorId t) {
    return l.scale(t) == l.scale(y) && l.zero(t) == l.zero(y) && l.type(t) == l.type(y);
  };
  std::vector<TensorId> inputs;
  for (TensorId t : n.inputs) {
    if (const TensorData* value = l.graph().constant(t)) {
      inputs.push_back(l.constant(l.graph().tensor(t).name + "_" + std::string(dtype_name(l.type(y))),
                                  l.integers(y, value->dims(), to_doubles(value->view()))));
    } else if (has_parameters_of_result(t)) {
      inputs.push_back(l.integer(t));
    } else {
      ORKNN_TRY_ASSIGN(const TensorId made, rescaled(l, n, t, y));
      inputs.push_back(made);
    }
  }
  l.add_layer(n, "Concat", std::move(inputs), n.attributes);
  return Outcome::lowered();
}

}  // namespace orknn::quantize
