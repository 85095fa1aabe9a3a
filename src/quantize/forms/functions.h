// A chain of functions of one value, computed for the entries of tables.
#pragma once

#include <string>
#include <vector>

#include "ir/op_set.h"

namespace orknn::quantize {

class Functions {
 public:
  explicit Functions(const ir::OpSet& ops) : ops_(ops) {}

  // `operands` are what the node reads besides the value; one without a value is an input that is left out. `operand_first`: the
  // value is the second input.
  void add(std::string op, ir::Attributes attributes, std::vector<ir::TensorData> operands, bool operand_first = false);

  // In double, so that the entries of a table are rounded once.
  Result<std::vector<double>> operator()(const std::vector<double>& x) const;

 private:
  struct Function {
    ir::Node node;
    std::vector<ir::TensorData> operands;
    bool operand_first = false;
  };
  const ir::OpSet& ops_;
  std::vector<Function> functions_;
};

// A node that belongs to no graph, for ops::eval_node.
ir::Node free_node(std::string op, ir::Attributes attributes, size_t inputs);

}  // namespace orknn::quantize
