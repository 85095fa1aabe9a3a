#include "optimize/pipeline.h"

#include <algorithm>

#include "ir/infer.h"
#include "ir/verify.h"

namespace orknn::optimize {

#define GROUP(name)
#define PASS(name) Pass name();
#define PASS_ON_REQUEST(name) Pass name();
#include "optimize/passes.inc"
#undef PASS_ON_REQUEST
#undef PASS
#undef GROUP

namespace {
using namespace ir;

using passes::Group;

// With those passes of PASS_ON_REQUEST that `is_requested` is true of.
template <class IsRequested>
std::vector<Group> pipeline(const IsRequested& is_requested) {
  std::vector<Group> groups;
#define GROUP(name) groups.push_back({#name, {}});
#define PASS(name) groups.back().passes.push_back(name());
#define PASS_ON_REQUEST(name) \
  if (is_requested(#name)) groups.back().passes.push_back(name());
#include "optimize/passes.inc"
#undef PASS_ON_REQUEST
#undef PASS
#undef GROUP
  return groups;
}

constexpr int kHighestLevel = 3;

Status run_groups(Graph& graph, const OpSet& ops, std::vector<Group> groups, const OptimizeOptions& options, Trace* trace) {
  ORKNN_TRY(infer_shapes(graph, ops));
  ORKNN_TRY(passes::run(graph, ops, "optimize", std::move(groups), options, trace));
  remove_dead_nodes(graph);
  graph.compact();
  ORKNN_TRY(infer_shapes(graph, ops));
  return verify(graph, ops, Stage::Optimized).stage("optimize");
}

Status check_name(std::string_view option, std::string_view name) {
  std::string legal;
  for (const Pass& p : pass_catalogue()) {
    if (p.name == name) return {};
    legal += (legal.empty() ? "" : ", ") + std::string(p.name);
  }
  return invalid_argument(std::string(option) + ": there is no pass '" + std::string(name) + "'")
      .expected("one of " + legal)
      .found(std::string(name));
}

Status check_options(const OptimizeOptions& options) {
  if (options.level < 0 || options.level > kHighestLevel)
    return invalid_argument("optimization_level").expected("0 to 3").found(std::to_string(options.level));
  Status problems;
  for (const std::string& n : options.disable) problems.also(check_name("disable", n));
  if (!options.stop_after.empty()) problems.also(check_name("stop_after", options.stop_after));
  for (const std::string& n : options.dump_after) problems.also(check_name("dump_after", n));
  return problems;
}

}  // namespace

std::vector<Pass> pass_catalogue() {
  std::vector<Pass> passes;
  for (Group& g : pipeline([](std::string_view) { return true; }))
    for (Pass& p : g.passes)
      if (std::ranges::find(passes, p.name, &Pass::name) == passes.end()) passes.push_back(std::move(p));
  return passes;
}

Status optimize(Graph& graph, const OpSet& ops, const OptimizeOptions& options, Trace* trace,
                const std::vector<std::string>& requested) {
  ORKNN_TRY(check_options(options));
  for (const std::string& name : requested) ORKNN_TRY(check_name("requested", name));
  const auto is_requested = [&](std::string_view name) { return std::ranges::find(requested, name) != requested.end(); };
  return run_groups(graph, ops, pipeline(is_requested), options, trace);
}

Status run_passes(Graph& graph, const OpSet& ops, std::vector<std::string> names, const OptimizeOptions& options, Trace* trace) {
  ORKNN_TRY(check_options(options));
  Group group{"chosen", {}};
  for (const std::string& name : names) {
    ORKNN_TRY(check_name("run_passes", name));
    for (Pass& p : pass_catalogue())
      if (p.name == name) group.passes.push_back(std::move(p));
  }
  OptimizeOptions every_level = options;
  every_level.level = kHighestLevel;
  return run_groups(graph, ops, {group}, every_level, trace);
}

}  // namespace orknn::optimize
