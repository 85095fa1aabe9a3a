// Decides for every node which device computes it, and says why.
#pragma once

#include "compile/compile.h"

namespace orknn::compile {

// One task per node of `graph` (compacted) in execution order, with device, engine, core mask and reason set. Reports all
// nodes it cannot place at once.
Result<std::vector<format::Task>> place(const ir::Graph& graph, const CompileOptions& options);

// What the user should know about an op_target: names that the model does not have, devices that are not simulated.
std::vector<std::string> remarks_on_targets(const ir::Graph& graph, const std::map<std::string, std::string>& op_target,
                                            const platform::Platform& platform);

}  // namespace orknn::compile
