// What an optimizer pass is. A rule looks at one node and returns a patch; a graph pass looks at everything at once and
// hands its patches to the Rewriter. Neither changes the graph by itself.
#pragma once

#include <string_view>
#include <vector>

#include "ir/op_set.h"
#include "ir/patch.h"

namespace orknn::optimize {

// Checks, applies, counts and records patches on behalf of a graph pass.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual const ir::Graph& graph() const = 0;
  virtual const ir::OpSet& ops() const = 0;
  virtual int level() const = 0;
  // False once OptimizeOptions::max_rewrites is used up: the pass should return.
  virtual bool may_rewrite() const = 0;
  // Applies the patch. A patch that would change a type or shape is dropped and reported; true means applied.
  virtual Result<bool> apply(const ir::Patch& patch) = 0;
};

using Rule = ir::Rewrite (*)(const ir::Graph& graph, const ir::Node& node);
using GraphPass = Status (*)(Rewriter& rewriter);

struct Pass {
  std::string_view name;     // verb_object, the stem of its file
  std::string_view summary;  // one line for --list-passes and the docs
  int min_level = 1;         // lowest optimization level that runs it
  // Exactly one of the two is set.
  Rule rule = nullptr;
  GraphPass graph_pass = nullptr;
  // Ops a rule starts from; nothing = every node.
  std::vector<std::string_view> roots = {};
};

}  // namespace orknn::optimize
