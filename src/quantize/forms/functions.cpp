#include "quantize/forms/functions.h"

#include "ops/eval.h"

namespace orknn::quantize {
using namespace ir;

Node free_node(std::string op, Attributes attributes, size_t inputs) {
  Node n;
  n.op = std::move(op);
  n.attributes = std::move(attributes);
  n.inputs.assign(inputs, TensorId{0});
  n.outputs = {TensorId{0}};
  return n;
}

void Functions::add(std::string op, Attributes attributes, std::vector<TensorData> operands, bool operand_first) {
  Node node = free_node(std::move(op), std::move(attributes), 1 + operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    if (!operands[i].has_value()) node.inputs[1 + i] = TensorId{};
  functions_.push_back({std::move(node), std::move(operands), operand_first});
}

Result<std::vector<double>> Functions::operator()(const std::vector<double>& x) const {
  TensorData value = TensorData::from<double>({static_cast<int64_t>(x.size())}, x);
  for (const Function& f : functions_) {
    std::vector<TensorData> inputs{value};
    inputs.insert(f.operand_first ? inputs.begin() : inputs.end(), f.operands.begin(), f.operands.end());
    ORKNN_TRY_ASSIGN(auto results, ops::eval_node(f.node, ops_, inputs));
    value = results[0];
  }
  return to_doubles(value.view());
}

}  // namespace orknn::quantize
