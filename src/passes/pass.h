// What a pass is: an optimizer pass or a step of the quantizer. A rule looks at one node and returns a patch; a graph pass looks
// at everything at once and hands its patches to the Rewriter. Neither changes the graph by itself.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_set.h"
#include "ir/patch.h"

namespace orknn::passes {

// Checks, applies, counts and records what a graph pass does.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual const ir::Graph& graph() const = 0;
  virtual const ir::OpSet& ops() const = 0;
  virtual int level() const = 0;
  // False once Options::max_rewrites is used up: the pass should return.
  virtual bool may_rewrite() const = 0;
  // Applies the patch. One that would change a type or shape is dropped and reported, one that the caller does not allow
  // (Options::allows) only dropped; true means applied.
  virtual Result<bool> apply(const ir::Patch& patch) = 0;
  // The same network in another representation, such as integers instead of floats. Inputs and outputs stay and keep their order;
  // anything else may change, types included.
  virtual Status replace_graph(ir::Graph graph) = 0;
  // A line of the trace about what was found or decided, where no patch says it.
  virtual void remark(std::string text) = 0;
};

using Rule = ir::Rewrite (*)(const ir::Graph& graph, const ir::Node& node);
using GraphPass = std::function<Status(Rewriter& rewriter)>;

struct Pass {
  std::string_view name;     // verb_object, the stem of its file
  std::string_view summary;  // one line for `openrknn passes` and the docs
  int min_level = 1;         // lowest optimization level that runs it
  // Exactly one of the two is set.
  Rule rule = nullptr;
  GraphPass graph_pass = nullptr;
  // Ops a rule starts from; nothing = every node.
  std::vector<std::string_view> roots = {};
};

}  // namespace orknn::passes
