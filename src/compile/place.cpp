#include "compile/place.h"

#include "ops/eval.h"

namespace orknn::compile {

Result<std::vector<format::Task>> place(const ir::Graph& graph, const CompileOptions& options) {
  const ir::OpSet& ops = options.ops ? *options.ops : ops::builtin_ops();
  std::vector<format::Task> tasks;
  Status problems;
  for (ir::NodeId id : graph.order()) {
    const ir::Node& n = graph.node(id);
    const ir::OpDef* def = ops.find(n.op);
    if (!def) {
      problems.also(unsupported("operator is not known").node(n.name, n.op));
      continue;
    }
    format::Task task;
    task.node = id;
    task.engine = def->engine;
    task.reason = "runs on the CPU reference kernel";
    tasks.push_back(std::move(task));
  }
  if (!problems) return problems.stage("place");
  return tasks;
}

}  // namespace orknn::compile
