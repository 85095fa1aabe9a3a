// Operators of the user's own while a model runs: the nodes that ask for them, and who computes them in a session.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/program.h"
#include "ir/op_set.h"

namespace orknn::runtime {

// A node that somebody outside may compute: a custom one, or one of a built-in operator whose type is registered. Its operands
// are tensors of `graph`.
struct CustomNode {
  const ir::Graph* graph = nullptr;
  const ir::Node* node = nullptr;
  std::string type;
  // Counts the nodes of this type in their program: the same node has the same number in the programs of other shapes.
  size_t number = 0;
  bool is_built_in = false;
};

// All custom nodes of a model and all nodes whose built-in operator can be replaced; the model must outlive it. Never changes, so
// sessions of one model share it.
class CustomNodes {
 public:
  // `known`: operators that the caller computes; nodes of these need no other implementation.
  explicit CustomNodes(const format::Model& model, std::shared_ptr<const ir::OpSet> known = {});
  ~CustomNodes();
  CustomNodes(const CustomNodes&) = delete;
  CustomNodes& operator=(const CustomNodes&) = delete;

  // The known operators, and a definition for each type of custom node that calls whoever serves it in the running session.
  const ir::OpSet& op_set() const { return *set_; }
  // nullptr for other nodes.
  const CustomNode* find(const ir::Node& node) const;
  // Of the first program, in execution order; custom ones or, where there are none, built-in ones.
  std::vector<const CustomNode*> of_type(std::string_view type) const;
  // Nodes that compute this type as a part of themselves, of the first program: these cannot be replaced.
  size_t fused_count(std::string_view type) const;
  // Types that need somebody to serve them, sorted.
  const std::vector<std::string>& types() const { return types_; }
  // Computes a node of a built-in operator by who serves its type in the running session.
  static const ir::OpDef& replacement();

 private:
  struct Definition;
  const format::Model& model_;
  std::shared_ptr<const ir::OpSet> known_, set_;  // the second may refer to operators of the first
  std::map<const ir::Node*, CustomNode> nodes_;
  std::vector<std::string> types_;
  std::vector<std::unique_ptr<const Definition>> definitions_;
};

// Computes all nodes of one type in one session.
class CustomOperator {
 public:
  virtual ~CustomOperator() = default;
  virtual Status run(const CustomNode& node, ir::RunContext& context) = 0;
  // Whether it wants the built-in operator to compute this node.
  virtual bool leaves_to_built_in(const CustomNode& node) const = 0;
  // The same operator for a session that may run at the same time.
  virtual Result<std::unique_ptr<CustomOperator>> duplicate(const CustomNodes& nodes) const = 0;
};

// Who serves the custom nodes of one session. Like the session it is for one thread at a time.
class CustomOps {
 public:
  CustomOps() = default;  // of no model
  explicit CustomOps(std::shared_ptr<const CustomNodes> nodes) : nodes_(std::move(nodes)) {}

  const CustomNodes& nodes() const { return *nodes_; }
  bool serves(std::string_view type) const { return operators_.find(type) != operators_.end(); }
  // Whether a node of a built-in operator is computed by somebody else.
  bool replaces(const ir::Node& node) const;
  // Types of the model without an implementation.
  std::vector<std::string> missing() const;
  // In place of who served it before.
  void serve(std::string type, std::unique_ptr<CustomOperator> op) { operators_[std::move(type)] = std::move(op); }
  // Where plug-ins were looked for, for the error about a type without an implementation.
  void set_searched(std::string text) { searched_ = std::move(text); }
  Result<CustomOps> duplicate() const;

  // While it lives, nodes that the calling thread runs are served by `ops`.
  class Active {
   public:
    explicit Active(CustomOps& ops);
    ~Active();
    Active(const Active&) = delete;
    Active& operator=(const Active&) = delete;

   private:
    CustomOps* before_;
  };

 private:
  friend class CustomNodes;
  Status run(const CustomNode& node, ir::RunContext& context);

  std::shared_ptr<const CustomNodes> nodes_;
  std::map<std::string, std::unique_ptr<CustomOperator>, std::less<>> operators_;
  std::string searched_;
  bool warned_ = false;
};

}  // namespace orknn::runtime
