#include "optimize/pipeline.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "ir/infer.h"
#include "ir/verify.h"

namespace orknn::optimize {

#define GROUP(name)
#define PASS(name) Pass name();
#include "optimize/passes.inc"
#undef PASS
#undef GROUP

namespace {
using namespace ir;

// Passes of one group are repeated until none of them finds anything.
struct Group {
  std::string_view name;
  std::vector<Pass> passes;
};

std::vector<Group> pipeline() {
  std::vector<Group> groups;
#define GROUP(name) groups.push_back({#name, {}});
#define PASS(name) groups.back().passes.push_back(name());
#include "optimize/passes.inc"
#undef PASS
#undef GROUP
  return groups;
}

// Rewrites that a graph of n nodes may take before we call it a quarrel between rules.
size_t rewrite_cap(size_t nodes) { return 64 * nodes + 4096; }

constexpr int kMaxRounds = 32;

class Driver : public Rewriter {
 public:
  Driver(Graph& graph, const OpSet& ops, const OptimizeOptions& options, Trace* trace)
      : graph_(graph), ops_(ops), options_(options), trace_(trace), cap_(rewrite_cap(graph.node_count())) {}

  const Graph& graph() const override { return graph_; }
  const OpSet& ops() const override { return ops_; }
  int level() const override { return options_.level; }
  bool may_rewrite() const override { return rewrites_ < options_.max_rewrites && rewrites_ < cap_; }

  Result<bool> apply(const Patch& patch) override {
    std::unordered_map<int32_t, TensorFacts> facts;
    if (Status s = check(patch, facts); !s) {
      if (options_.strict) return s.stage("optimize: " + std::string(current_->name));
      log(LogLevel::Warn, "optimize", std::string(current_->name) + ": rewrite dropped: " + s.to_string());
      return false;
    }
    const Patch::Applied done = patch.apply(graph_);
    for (auto& [index, f] : facts) {
      Tensor& tensor = graph_.tensor(TensorId{index});
      if (tensor.is_constant() || (!patch.is_new(TensorId{index}) && tensor.dtype != DType::Undefined)) continue;
      tensor.dtype = f.dtype;
      tensor.shape = std::move(f.shape);
    }
    ++rewrites_;
    record(patch, done);
    for (NodeId id : done.added) enqueue_around(id);
    for (const auto& [from, to] : patch.replacements())
      for (NodeId user : graph_.users(to)) enqueue(user);
#ifndef NDEBUG
    if (Status s = verify(graph_, ops_, Stage::Inferred); !s) return s.stage("optimize: " + std::string(current_->name));
#endif
    return true;
  }

  // Runs the groups; `stop_after` ends everything.
  Status run(const std::vector<Group>& groups) {
    ORKNN_TRY(infer_shapes(graph_, ops_));
    size_t total = 0, done = 0;
    for (const Group& g : groups) total += g.passes.size();
    for (const Group& g : groups) {
      bool changed = true;
      for (int round = 0; changed && round < kMaxRounds && may_rewrite(); ++round) {
        changed = false;
        for (size_t i = 0; i < g.passes.size(); ++i) {
          const Pass& pass = g.passes[i];
          if (options_.progress) options_.progress(pass.name, static_cast<double>(done + i) / static_cast<double>(total));
          const size_t before = rewrites_;
          ORKNN_TRY(run_pass(pass));
          changed |= rewrites_ != before;
          if (options_.dump && std::ranges::count(options_.dump_after, pass.name)) options_.dump(pass.name, graph_);
          if (pass.name == options_.stop_after) return finish();
        }
      }
      done += g.passes.size();
    }
    if (rewrites_ >= cap_)
      log(LogLevel::Warn, "optimize",
          "stopped after " + std::to_string(rewrites_) + " rewrites without settling; last pass " + std::string(current_->name));
    if (options_.progress) options_.progress("done", 1.0);
    return finish();
  }

 private:
  Status run_pass(const Pass& pass) {
    current_ = &pass;
    const size_t before = rewrites_;
    if (pass.graph_pass) {
      if (Status s = pass.graph_pass(*this); !s) return s.stage("optimize: " + std::string(pass.name));
    } else {
      ORKNN_TRY(run_rule(pass));
    }
    if (rewrites_ == before) return {};
    Status s = infer_shapes(graph_, ops_);
    if (s) s = verify(graph_, ops_, Stage::Inferred);
    if (!s) return s.stage("optimize: " + std::string(pass.name));
    release_unused_constants();
    return {};
  }

  // Sweeps over the graph, then over the surroundings of what the last sweep changed. What a rewrite touches waits for the next
  // sweep: a row of n nodes that become one merges in pairs, in log n sweeps, instead of into one node that grows and is copied n
  // times.
  Status run_rule(const Pass& pass) {
    std::vector<NodeId> sweep = graph_.order();
    next_sweep_.clear();
    waits_.assign(waits_.size(), 0);
    while (!sweep.empty() && may_rewrite()) {
      for (NodeId id : sweep) {
        if (!may_rewrite()) break;
        if (!graph_.is_alive(id) || waits(id)) continue;
        const Node& node = graph_.node(id);
        if (!pass.roots.empty() && std::ranges::find(pass.roots, node.op) == pass.roots.end()) continue;
        Rewrite rewrite = pass.rule(graph_, node);
        if (!rewrite) {
          Status s = rewrite.status();
          return s.node(node.name, node.op).stage("optimize: " + std::string(pass.name));
        }
        if (*rewrite) ORKNN_TRY(apply(**rewrite).status());
      }
      sweep = std::exchange(next_sweep_, {});
      for (NodeId id : sweep) waits_[static_cast<size_t>(id.index)] = 0;
    }
    return {};
  }

  // Infers what the patch adds and compares it with what it replaces.
  Status check(const Patch& patch, std::unordered_map<int32_t, TensorFacts>& facts) const {
    const auto facts_of = [&](TensorId id) -> TensorFacts {
      TensorFacts f;
      if (!id) return f;
      if (const auto it = facts.find(id.index); it != facts.end()) return it->second;
      if (patch.is_new(id)) {
        f.constant = patch.constant(id);
        if (f.constant) f.dtype = f.constant->dtype(), f.shape = to_shape(f.constant->dims());
        return f;
      }
      f.dtype = graph_.tensor(id).dtype;
      f.shape = graph_.tensor(id).shape;
      f.constant = graph_.constant(id);
      return f;
    };
    const auto compatible = [&](TensorId old_id, const TensorFacts& fresh) -> Status {
      const Tensor& old = graph_.tensor(old_id);
      const std::optional<Dims> was = old.shape ? to_dims(*old.shape) : std::nullopt;
      const std::optional<Dims> now = fresh.shape ? to_dims(*fresh.shape) : std::nullopt;
      if (old.dtype == fresh.dtype && (!was || !now || *was == *now)) return {};
      return internal_error("a rewrite changes the type of tensor '" + old.name + "'")
          .expected(std::string(dtype_name(old.dtype)) + (old.shape ? to_string(*old.shape) : ""))
          .found(std::string(dtype_name(fresh.dtype)) + (fresh.shape ? to_string(*fresh.shape) : ""));
    };
    for (const Node& n : patch.nodes()) {
      std::vector<TensorFacts> inputs;
      for (TensorId t : n.inputs) inputs.push_back(facts_of(t));
      ORKNN_TRY_ASSIGN(std::vector<TensorFacts> outputs, infer_node(n, ops_, std::move(inputs)));
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!n.outputs[i]) continue;
        if (!patch.is_new(n.outputs[i])) ORKNN_TRY(compatible(n.outputs[i], outputs[i]));
        facts[n.outputs[i].index] = std::move(outputs[i]);
      }
    }
    for (const auto& [from, to] : patch.replacements()) ORKNN_TRY(compatible(from, facts_of(to)));
    return {};
  }

  void record(const Patch& patch, const Patch::Applied& done) {
    if (!trace_) return;
    if (done.removed.empty() && done.added.empty()) {
      std::string text;
      for (const auto& [from, to] : patch.replacements())
        text += (text.empty() ? "readers of " : ", ") + graph_.tensor(from).name + " read " + graph_.tensor(to).name;
      trace_->entries.push_back({rewrites_, std::string(current_->name), text});
      return;
    }
    const auto list = [&](const std::vector<NodeId>& ids) {
      std::string text;
      for (NodeId id : ids) text += (text.empty() ? "" : ", ") + graph_.node(id).type_name() + ":" + graph_.node(id).name;
      return text.empty() ? std::string("nothing") : text;
    };
    trace_->entries.push_back({rewrites_, std::string(current_->name), list(done.removed) + " -> " + list(done.added)});
  }

  bool waits(NodeId id) const { return static_cast<size_t>(id.index) < waits_.size() && waits_[static_cast<size_t>(id.index)]; }
  void enqueue(NodeId id) {
    if (waits(id)) return;
    const size_t index = static_cast<size_t>(id.index);
    if (waits_.size() <= index) waits_.resize(std::max(index + 1, 2 * waits_.size()), 0);
    waits_[index] = 1;
    next_sweep_.push_back(id);
  }
  void enqueue_around(NodeId id) {
    if (!graph_.is_alive(id)) return;
    enqueue(id);
    for (TensorId t : graph_.node(id).outputs)
      if (t)
        for (NodeId user : graph_.users(t)) enqueue(user);
    for (TensorId t : graph_.node(id).inputs)
      if (const NodeId p = graph_.producer(t)) enqueue(p);
  }

  // Memory of folded-away weights goes back at once, not when the graph is compacted.
  void release_unused_constants() {
    for (size_t i = 0; i < graph_.tensor_count(); ++i) {
      const TensorId id{static_cast<int32_t>(i)};
      if (graph_.is_constant(id) && graph_.reader_count(id) == 0) graph_.tensor(id).constant = {};
    }
  }

  Status finish() {
    remove_dead_nodes(graph_);
    graph_.compact();
    ORKNN_TRY(infer_shapes(graph_, ops_));
    return verify(graph_, ops_, Stage::Optimized).stage("optimize");
  }

  Graph& graph_;
  const OpSet& ops_;
  const OptimizeOptions& options_;
  Trace* trace_;
  const size_t cap_;
  size_t rewrites_ = 0;
  const Pass* current_ = nullptr;
  std::vector<NodeId> next_sweep_;
  std::vector<char> waits_;  // by node index: is in next_sweep_
};

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
  if (options.level < 0 || options.level > 3)
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
  for (Group& g : pipeline())
    for (Pass& p : g.passes)
      if (std::ranges::find(passes, p.name, &Pass::name) == passes.end()) passes.push_back(std::move(p));
  return passes;
}

Status optimize(Graph& graph, const OpSet& ops, const OptimizeOptions& options, Trace* trace) {
  ORKNN_TRY(check_options(options));
  std::vector<Group> groups = pipeline();
  for (Group& g : groups)
    std::erase_if(g.passes,
                  [&](const Pass& p) { return p.min_level > options.level || std::ranges::count(options.disable, p.name); });
  return Driver(graph, ops, options, trace).run(groups);
}

Status run_passes(Graph& graph, const OpSet& ops, std::vector<std::string> names, const OptimizeOptions& options, Trace* trace) {
  ORKNN_TRY(check_options(options));
  Group group{"chosen", {}};
  for (const std::string& name : names) {
    ORKNN_TRY(check_name("run_passes", name));
    for (Pass& p : pass_catalogue())
      if (p.name == name) group.passes.push_back(std::move(p));
  }
  return Driver(graph, ops, options, trace).run({group});
}

}  // namespace orknn::optimize
