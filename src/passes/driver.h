// Runs passes over a graph: checks and applies what they return, verifies the graph after each one, keeps trace and times.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_set.h"
#include "passes/pass.h"
#include "passes/trace.h"

namespace orknn::passes {

struct Options {
  int level = 3;                        // 0..3, docs/add_a_pass.md says what each one runs
  std::vector<std::string> disable;     // names of passes to leave out
  std::string stop_after;               // return after the first run of this pass; empty = run all
  std::vector<std::string> dump_after;  // call `dump` after every run of these passes
  std::function<void(std::string_view pass, const ir::Graph& graph)> dump;
  size_t max_rewrites = SIZE_MAX;                                    // stop after so many rewrites: finds a bad one by bisection
  std::function<void(std::string_view pass, double done)> progress;  // `done` from 0 to 1
  // Asked about a patch before it is applied: what it says no to stays as it is. Empty = everything is allowed.
  std::function<bool(const ir::Graph& graph, const ir::Patch& patch)> allows;
  // Tests: a patch that changes a type or shape is an error instead of being dropped with a warning.
  bool strict = false;

  // Whether a pass of this name and level runs.
  bool runs(std::string_view name, int min_level) const;
};

struct Group {
  std::string_view name;
  std::vector<Pass> passes;
  bool repeats = true;  // until none of them changes anything
};

// Runs those passes of the groups that the options leave in. `stage` names the caller in messages. Ids of nodes and tensors stay
// valid, unless a pass replaces the whole graph.
Status run(ir::Graph& graph, const ir::OpSet& ops, std::string_view stage, std::vector<Group> groups, const Options& options,
           Trace* trace);

// The same for passes that each run once, in this order.
Status run_once(ir::Graph& graph, const ir::OpSet& ops, std::string_view stage, std::vector<Pass> passes, const Options& options,
                Trace* trace);

}  // namespace orknn::passes
