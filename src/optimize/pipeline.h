// Runs the optimizer passes of a level, in the order of passes.inc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "optimize/pass.h"
#include "passes/driver.h"

namespace orknn::optimize {

using OptimizeOptions = passes::Options;
using passes::Trace;
using passes::TraceEntry;

// What fuse_flat_attention remarks begins with this, then the layer and the reason.
inline constexpr std::string_view kUnfusedAttention = "attention stays several layers: ";

// Infers shapes, rewrites `graph` until the passes of the level find nothing more to do, and compacts it (ids become
// invalid; inputs, outputs and their names stay). Values of the outputs stay the same up to rounding. `requested`: passes that
// only run where they are asked for (PASS_ON_REQUEST in passes.inc).
Status optimize(ir::Graph& graph, const ir::OpSet& ops, const OptimizeOptions& options = {}, Trace* trace = nullptr,
                const std::vector<std::string>& requested = {});

// The same with the named passes only, as one group and whatever their level (for tests and experiments).
Status run_passes(ir::Graph& graph, const ir::OpSet& ops, std::vector<std::string> names, const OptimizeOptions& options = {},
                  Trace* trace = nullptr);

// Every pass once, in the order of its first run.
std::vector<Pass> pass_catalogue();

}  // namespace orknn::optimize
