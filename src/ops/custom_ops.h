// Operators of the user's own as definitions like any other: inference, folding, calibration and the simulator ask the user's
// functions where they would ask ours. In graphs such an operator has a name of its own (ir/custom_op.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/op_set.h"
#include "ops/eval.h"

namespace orknn::ops {

// An operand as the user sees it: float32 stands for every half type.
struct CustomTensor {
  DType dtype = DType::Undefined;  // Undefined = an optional input that is absent
  ir::Dims dims;
};

// What the user says about an operator.
struct CustomOp {
  std::string type;
  // Types and shapes of the results. Nothing: the operator means what the built-in one of this name means.
  std::function<Result<std::vector<CustomTensor>>(const ir::Node& node, std::span<const CustomTensor> inputs)> infer = {};
  // The results, in any number type; inputs without value are absent. Nothing: it can be built but not computed here.
  std::function<Result<std::vector<ir::TensorData>>(const ir::Node& node, std::span<const ir::TensorData> inputs)> compute = {};
};

// The built-in operators and some of the user's. Never changes, so graphs, sessions and threads may share it.
class CustomOps {
 public:
  // Those of `before`, which may be nullptr, and `op`, which takes the place of one of the same type.
  static Result<std::shared_ptr<const CustomOps>> with(const std::shared_ptr<const CustomOps>& before, CustomOp op);
  ~CustomOps();
  CustomOps(const CustomOps&) = delete;
  CustomOps& operator=(const CustomOps&) = delete;

  const ir::OpSet& op_set() const { return set_; }

 private:
  struct Definition;
  CustomOps() = default;
  void define(const CustomOp& op);
  std::vector<CustomOp> ops_;
  std::vector<std::unique_ptr<const Definition>> definitions_;
  ir::OpSet set_;
};

// The built-in operators when there are no others.
inline const ir::OpSet& op_set(const std::shared_ptr<const CustomOps>& custom) {
  return custom ? custom->op_set() : builtin_ops();
}
// The same for those who keep it; nothing when there are no others.
inline std::shared_ptr<const ir::OpSet> shared_op_set(const std::shared_ptr<const CustomOps>& custom) {
  return custom ? std::shared_ptr<const ir::OpSet>(custom, &custom->op_set()) : nullptr;
}

// The built-in operator that a custom one shares its name with; nullptr for all others.
const ir::OpDef* builtin_of(std::string_view custom_op);
// Shape rule and kernel of a custom node by the built-in operator of that name, which must exist.
Status infer_as_builtin(ir::InferContext& context);
Status run_as_builtin(ir::RunContext& context);
// Whether `custom` is computed so.
inline bool has_builtin_meaning(const ir::OpDef& custom) { return custom.infer == &infer_as_builtin; }

}  // namespace orknn::ops
