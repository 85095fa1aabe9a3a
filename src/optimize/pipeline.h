// Runs the optimizer passes of a level, in the order of passes.inc.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_set.h"
#include "optimize/pass.h"
#include "optimize/trace.h"

namespace orknn::optimize {

struct OptimizeOptions {
  int level = 3;                        // 0..3, docs/add_a_pass.md says what each one runs
  std::vector<std::string> disable;     // names of passes to leave out
  std::string stop_after;               // return after the first run of this pass; empty = run all
  std::vector<std::string> dump_after;  // call `dump` after every run of these passes
  std::function<void(std::string_view pass, const ir::Graph& graph)> dump;
  size_t max_rewrites = SIZE_MAX;                                    // stop after so many rewrites: finds a bad one by bisection
  std::function<void(std::string_view pass, double done)> progress;  // `done` from 0 to 1
  // Tests: a patch that changes a type or shape is an error instead of being dropped with a warning.
  bool strict = false;
};

// Infers shapes, rewrites `graph` until the passes of the level find nothing more to do, and compacts it (ids become
// invalid; inputs, outputs and their names stay). Values of the outputs stay the same up to rounding.
Status optimize(ir::Graph& graph, const ir::OpSet& ops, const OptimizeOptions& options = {}, Trace* trace = nullptr);

// The same with the named passes only, as one group and whatever their level (for tests and experiments).
Status run_passes(ir::Graph& graph, const ir::OpSet& ops, std::vector<std::string> names, const OptimizeOptions& options = {},
                  Trace* trace = nullptr);

// Every pass once, in the order of its first run.
std::vector<Pass> pass_catalogue();

}  // namespace orknn::optimize
