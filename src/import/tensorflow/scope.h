// The nodes of a graph or of a function's body, with inputs resolved to nodes, and the control flow of TensorFlow 1 found in
// them: loops (Enter, Merge, Switch, Exit, NextIteration) and conditionals (Switch ... Merge).
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/tensorflow/parse.h"

namespace orknn::importer::tensorflow {

// An output of a node, or an argument of the function.
struct Reference {
  static constexpr int32_t kArgument = -1, kMissing = -2;
  int32_t node = kMissing;
  int32_t output = 0;  // number of the argument for kArgument; -1 for a control edge
  bool is_control() const { return output < 0; }
  friend bool operator==(const Reference&, const Reference&) = default;
};

// A loop of TensorFlow 1. Variables begin with what their Enter reads and go on with what their NextIteration reads.
struct LoopVariable {
  int32_t merge = 0, enter = 0, next = 0;
  std::vector<int32_t> exits;
};
struct LoopFrame {
  int32_t condition = -1;  // the LoopCond node
  std::vector<LoopVariable> variables;
};

// How a Merge outside of loops chooses: by the predicate that its inputs are guarded by with opposite signs.
struct Choice {
  Reference predicate;
  size_t when_true = 0, when_false = 1;  // positions among the inputs
};

using FunctionIndex = std::unordered_map<std::string_view, const FunctionDef*>;

class Scope {
 public:
  // `functions` tells the outputs of nodes that call one by its name.
  static Result<Scope> of_graph(std::span<const NodeDef> nodes, const FunctionIndex& functions);
  static Result<Scope> of_function(const FunctionDef& function, const FunctionIndex& functions);

  std::span<const NodeDef> nodes;
  std::vector<std::vector<Reference>> inputs;  // per node, control edges among them
  std::vector<Reference> results;              // of a function
  std::vector<LoopFrame> loops;

  // "name", "name:1" and, inside of functions, "name:argument:1"; "^name" is a control edge.
  Reference resolve(std::string_view text) const;
  const NodeDef& node(int32_t index) const { return nodes[static_cast<size_t>(index)]; }
  const std::vector<Reference>& inputs_of(int32_t index) const { return inputs[static_cast<size_t>(index)]; }
  // The n-th input that is no control edge; kMissing when there are fewer.
  Reference data_input(int32_t index, size_t n) const;
  // The loop that ends in this Exit, or whose Merge this is; nullptr for any other node.
  const LoopFrame* loop_of_exit(int32_t index) const;
  bool is_loop_merge(int32_t index) const { return loop_of_merge_.contains(index); }
  // Which input a Merge takes; fails when the graph does not tell.
  Result<Choice> choice(int32_t merge);
  // Variables of a loop that its exits and its condition depend on.
  std::vector<size_t> needed_variables(const LoopFrame& loop) const;

 private:
  struct Guard {
    Reference predicate;
    bool negated = false, branch = false;
    friend bool operator==(const Guard&, const Guard&) = default;
  };
  static Result<Scope> make(std::span<const NodeDef> nodes, const FunctionDef* function, const FunctionIndex& functions);
  Status find_loops();
  const std::vector<Guard>& guards_of(int32_t node);
  std::vector<Guard> guards_of(const Reference& reference);
  void settle_guards(int32_t node);
  std::pair<Reference, bool> plain_predicate(Reference predicate) const;

  const FunctionDef* function_ = nullptr;
  const FunctionIndex* functions_ = nullptr;
  std::unordered_map<std::string_view, int32_t> by_name_;
  std::unordered_map<std::string_view, int32_t> arguments_;
  std::unordered_map<int32_t, size_t> loop_of_merge_, loop_of_exit_;
  std::unordered_map<int32_t, std::vector<Guard>> guards_;
};

// "RefSwitch" is "Switch" with references, and so on.
std::string_view control_op(std::string_view op);

}  // namespace orknn::importer::tensorflow
