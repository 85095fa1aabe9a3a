#include "passes/driver.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/refusal.h"
#include "ir/infer.h"
#include "ir/verify.h"

namespace orknn::passes {
namespace {
using namespace ir;

// Rewrites that a graph of n nodes may take before we conclude that rules undo each other.
size_t rewrite_cap(size_t nodes) { return 64 * nodes + 4096; }

constexpr int kMaxRounds = 32;

class Driver : public Rewriter {
 public:
  Driver(Graph& graph, const OpSet& ops, std::string_view stage, const Options& options, Trace* trace)
      : graph_(graph), ops_(ops), stage_(stage), options_(options), trace_(trace), cap_(rewrite_cap(graph.node_count())) {}

  const Graph& graph() const override { return graph_; }
  const OpSet& ops() const override { return ops_; }
  int level() const override { return options_.level; }
  bool may_rewrite() const override { return rewrites_ < options_.max_rewrites && rewrites_ < cap_; }

  Result<bool> apply(const Patch& patch) override {
    if (options_.allows && !options_.allows(graph_, patch)) return false;
    std::unordered_map<int32_t, TensorFacts> facts;
    if (Status s = check(patch, facts); !s) {
      const bool may_drop = is_refusal(s) || s.code() == Code::Internal;  // the rewrite is wrong, the graph is as it was
      if (options_.strict || !may_drop) return located(s);
      log(LogLevel::Warn, stage_, std::string(current_->name) + ": rewrite dropped: " + s.to_string());
      return false;
    }
    std::vector<std::string> replaced;  // their names, before they change
    for (const auto& [id, node] : patch.replaced_nodes()) replaced.push_back(label(id));
    const Patch::Applied done = patch.apply(graph_);
    for (auto& [index, f] : facts) {
      Tensor& tensor = graph_.tensor(TensorId{index});
      if (tensor.is_constant() || (!patch.is_new(TensorId{index}) && tensor.dtype != DType::Undefined)) continue;
      tensor.dtype = f.dtype;
      tensor.shape = std::move(f.shape);
    }
    ++rewrites_;
    record(patch, done, std::move(replaced));
    for (NodeId id : done.added) enqueue_around(id);
    for (const auto& [from, to] : patch.replacements())
      for (NodeId user : graph_.users(to)) enqueue(user);
#ifndef NDEBUG
    if (Status s = verify(graph_, ops_, Stage::Inferred); !s) return located(s);
#endif
    return true;
  }

  Status replace_graph(Graph graph) override {
    if (graph.inputs().size() != graph_.inputs().size() || graph.outputs().size() != graph_.outputs().size())
      return internal_error("a pass changes the number of inputs or outputs");
    graph_ = std::move(graph);
    ++rewrites_;
    return {};
  }

  void remark(std::string text) override {
    if (trace_) trace_->add(current_->name, std::move(text));
  }

  // Runs the groups; `stop_after` ends everything.
  Status run(const std::vector<Group>& groups) {
    size_t total = 0, done = 0;
    for (const Group& g : groups) total += g.passes.size();
    for (const Group& g : groups) {
      bool changed = true;
      for (int round = 0; changed && round < (g.repeats ? kMaxRounds : 1) && may_rewrite(); ++round) {
        changed = false;
        for (size_t i = 0; i < g.passes.size(); ++i) {
          const Pass& pass = g.passes[i];
          if (options_.progress) options_.progress(pass.name, static_cast<double>(done + i) / static_cast<double>(total));
          const size_t before = rewrites_;
          ORKNN_TRY(run_timed(pass));
          changed |= rewrites_ != before;
          if (options_.dump && std::ranges::count(options_.dump_after, pass.name)) options_.dump(pass.name, graph_);
          if (pass.name == options_.stop_after) return {};
        }
      }
      done += g.passes.size();
    }
    if (rewrites_ >= cap_)
      log(LogLevel::Warn, stage_,
          "stopped after " + std::to_string(rewrites_) + " rewrites without settling; last pass " + std::string(current_->name));
    if (options_.progress) options_.progress("done", 1.0);
    return {};
  }

 private:
  Status located(Status s) const { return s.stage(std::string(stage_) + ": " + std::string(current_->name)); }
  std::string label(NodeId id) const { return graph_.node(id).type_name() + ":" + graph_.node(id).name; }

  Status run_timed(const Pass& pass) {
    const size_t before = rewrites_;
    const auto start = std::chrono::steady_clock::now();
    Status s = run_pass(pass);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (trace_) trace_->add_time(pass.name, rewrites_ - before, taken.count());
    return s;
  }

  Status run_pass(const Pass& pass) {
    current_ = &pass;
    const size_t before = rewrites_;
    if (pass.graph_pass) {
      if (Status s = pass.graph_pass(*this); !s) return located(s);
    } else {
      ORKNN_TRY(run_rule(pass));
    }
    if (rewrites_ == before) return {};
    Status s = infer_shapes(graph_, ops_);
    if (s) s = verify(graph_, ops_, Stage::Inferred);
    if (!s) return located(s);
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
          return located(s.node(node.name, node.op));
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
    const auto infer = [&](const Node& n) -> Status {
      std::vector<TensorFacts> inputs;
      for (TensorId t : n.inputs) inputs.push_back(facts_of(t));
      ORKNN_TRY_ASSIGN(std::vector<TensorFacts> outputs, infer_node(n, ops_, std::move(inputs)));
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!n.outputs[i]) continue;
        if (!patch.is_new(n.outputs[i])) ORKNN_TRY(compatible(n.outputs[i], outputs[i]));
        facts[n.outputs[i].index] = std::move(outputs[i]);
      }
      return {};
    };
    // A node may read what another one of the patch makes: each waits until its inputs are known.
    std::vector<const Node*> waiting;
    for (const auto& [id, n] : patch.replaced_nodes()) waiting.push_back(&n);
    for (const Node& n : patch.nodes()) waiting.push_back(&n);
    const auto is_ready = [&](const Node* n) {
      return std::ranges::all_of(
          n->inputs, [&](TensorId t) { return !t || !patch.is_new(t) || patch.constant(t) || facts.contains(t.index); });
    };
    while (!waiting.empty()) {
      auto next = std::ranges::find_if(waiting, is_ready);
      if (next == waiting.end()) return internal_error("a rewrite reads a tensor that nothing makes");
      ORKNN_TRY(infer(**next));
      waiting.erase(next);
    }
    for (const auto& [from, to] : patch.replacements()) ORKNN_TRY(compatible(from, facts_of(to)));
    return {};
  }

  // `replaced`: labels of nodes that were replaced in place.
  void record(const Patch& patch, const Patch::Applied& done, std::vector<std::string> replaced) {
    if (!trace_) return;
    std::string text;
    if (done.removed.empty() && done.added.empty()) {
      for (const auto& [from, to] : patch.replacements())
        text += (text.empty() ? "readers of " : ", ") + graph_.tensor(from).name + " read " + graph_.tensor(to).name;
      return trace_->add(current_->name, std::move(text));
    }
    const auto list = [&](std::vector<std::string> labels, const std::vector<NodeId>& ids) {
      for (NodeId id : ids) labels.push_back(label(id));
      std::string joined;
      for (const std::string& l : labels) joined += (joined.empty() ? "" : ", ") + l;
      return labels.empty() ? std::string("nothing") : joined;
    };
    trace_->add(current_->name, list(std::move(replaced), done.removed) + " -> " + list({}, done.added));
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

  Graph& graph_;
  const OpSet& ops_;
  std::string_view stage_;
  const Options& options_;
  Trace* trace_;
  const size_t cap_;
  size_t rewrites_ = 0;
  const Pass* current_ = nullptr;
  std::vector<NodeId> next_sweep_;
  std::vector<char> waits_;  // by node index: is in next_sweep_
};

}  // namespace

bool Options::runs(std::string_view name, int min_level) const {
  return level >= min_level && std::ranges::find(disable, name) == disable.end();
}

Status run(Graph& graph, const OpSet& ops, std::string_view stage, std::vector<Group> groups, const Options& options,
           Trace* trace) {
  for (Group& g : groups) std::erase_if(g.passes, [&](const Pass& p) { return !options.runs(p.name, p.min_level); });
  return Driver(graph, ops, stage, options, trace).run(groups);
}

Status run_once(Graph& graph, const OpSet& ops, std::string_view stage, std::vector<Pass> passes, const Options& options,
                Trace* trace) {
  return run(graph, ops, stage, {{.name = "once", .passes = std::move(passes), .repeats = false}}, options, trace);
}

}  // namespace orknn::passes
