// Writes out the iterations of a Loop or Scan whose number is known.
//
// Before: %y = Loop(const 2, const true, %x) {body = ...}     After: the body twice, fed with 0 and 1
// Legal: the condition of every iteration can be computed from constants, and the result stays modest in size.
#include <algorithm>

#include "base/refusal.h"
#include "ops/eval.h"
#include "optimize/inline_body.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

constexpr int64_t kMaxIterations = 256;
constexpr size_t kMaxNodes = 2048;
// Values larger than this are not followed while looking for the condition.
constexpr size_t kMaxFollowedBytes = 4096;

// A value in the outer graph and, when it is known and small, its contents.
struct Value {
  TensorId id;
  TensorData known;
};

Value outer_value(const Graph& g, TensorId id) {
  const TensorData* c = g.constant(id);
  return {id, c && c->bytes() <= kMaxFollowedBytes ? *c : TensorData{}};
}

// What can be computed of the body's outputs from the inputs that are known.
Result<std::vector<TensorData>> follow(const Graph& body, const OpSet& ops, const std::vector<Value>& arguments) {
  std::vector<TensorData> values(body.tensor_count());
  for (size_t i = 0; i < arguments.size(); ++i) values[static_cast<size_t>(body.inputs()[i].index)] = arguments[i].known;
  const auto value_of = [&](TensorId id) {
    return body.is_constant(id) ? body.tensor(id).constant : id ? values[static_cast<size_t>(id.index)] : TensorData{};
  };
  for (NodeId id : body.order()) {
    const Node& n = body.node(id);
    const OpDef* def = ops.find(n.op);
    std::vector<TensorData> inputs;
    bool known = def && def->deterministic;
    for (TensorId t : n.inputs) {
      inputs.push_back(value_of(t));
      known &= !t || (inputs.back().has_value() && inputs.back().bytes() <= kMaxFollowedBytes);
    }
    const bool has_body =
        std::ranges::any_of(n.attributes, [](const auto& a) { return kind_of(a.second) == AttributeKind::Graph; });
    if (!known || has_body) continue;
    const auto results = ops::eval_node(n, ops, inputs);
    if (!results && !is_refusal(results.status())) return results.status();
    if (!results) continue;
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i]) values[static_cast<size_t>(n.outputs[i].index)] = (*results)[i];
  }
  std::vector<TensorData> out;
  for (TensorId t : body.outputs()) out.push_back(value_of(t));
  return out;
}

// Joins what the iterations produced along a new axis.
TensorId join(Patch& patch, const Node& owner, const std::vector<TensorId>& pieces, int64_t axis) {
  const TensorId axes = patch.add_constant(owner.name + "/axis", TensorData::vector(std::vector<int64_t>{axis}));
  std::vector<TensorId> parts;
  for (TensorId p : pieces) parts.push_back(patch.add_node("Unsqueeze", owner.name + "/unsqueeze", {p, axes}, {}, owner.origin));
  return patch.add_node("Concat", owner.name + "/concat", parts, {{"axis", axis}}, owner.origin);
}

std::string prefix_of(const Node& n, int64_t iteration) { return n.name + "/" + std::to_string(iteration) + "/"; }

Rewrite unroll_loop(const Graph& g, const OpSet& ops, const Node& n, const Graph& body) {
  const int64_t captures = n.attributes.int_or("captures", 0);
  const auto inputs = static_cast<int64_t>(n.inputs.size());
  const int64_t carried = inputs - 2 - captures;
  const auto body_inputs = static_cast<int64_t>(body.inputs().size()), body_outputs = static_cast<int64_t>(body.outputs().size());
  if (carried < 0 || captures < 0 || body_inputs != 2 + carried + captures || body_outputs < 1 + carried) return no_match();
  double trips = 1e18;
  if (n.has_input(0)) {
    const auto constant = constant_scalar(g, n.input(0));
    if (!constant) return no_match();
    trips = *constant;
  }
  TensorData condition = TensorData::scalar<bool>(true);
  if (n.has_input(1)) {
    if (!g.is_constant(n.input(1)) || g.tensor(n.input(1)).constant.count() != 1) return no_match();
    condition = g.tensor(n.input(1)).constant;
  }
  std::vector<Value> state, captured;
  for (int64_t i = 0; i < carried; ++i) state.push_back(outer_value(g, n.inputs[static_cast<size_t>(2 + i)]));
  for (int64_t i = 0; i < captures; ++i) captured.push_back(outer_value(g, n.inputs[static_cast<size_t>(2 + carried + i)]));
  std::vector<std::vector<TensorId>> scans(static_cast<size_t>(body_outputs - 1 - carried));

  Patch patch(g);
  int64_t iteration = 0;
  for (; static_cast<double>(iteration) < trips; ++iteration) {
    if (!condition.has_value() || condition.count() != 1) return no_match();
    if (to_ints(condition.view())[0] == 0) break;
    if (iteration == kMaxIterations || static_cast<size_t>(iteration + 1) * body.node_count() > kMaxNodes) return no_match();
    const TensorData number = TensorData::scalar<int64_t>(iteration);
    std::vector<Value> arguments{{patch.add_constant(prefix_of(n, iteration) + "iteration", number), number},
                                 {patch.add_constant(prefix_of(n, iteration) + "condition", condition), condition}};
    arguments.insert(arguments.end(), state.begin(), state.end());
    arguments.insert(arguments.end(), captured.begin(), captured.end());
    std::vector<TensorId> ids;
    for (const Value& v : arguments) ids.push_back(v.id);
    ORKNN_TRY_ASSIGN(const std::vector<TensorData> known, follow(body, ops, arguments));
    const std::vector<TensorId> results = inline_body(patch, body, ids, prefix_of(n, iteration), n);
    condition = known[0];
    for (size_t i = 0; i < state.size(); ++i) state[i] = {results[1 + i], known[1 + i]};
    for (size_t i = 0; i < scans.size(); ++i) scans[i].push_back(results[1 + state.size() + i]);
  }
  if (iteration == 0 && !scans.empty()) return no_match();
  std::vector<TensorId> results;
  for (const Value& v : state) results.push_back(v.id);
  for (size_t i = 0; i < scans.size(); ++i) {
    const TensorId out = n.output(state.size() + i);
    results.push_back(out && g.reader_count(out) > 0 ? join(patch, n, scans[i], 0) : TensorId{});
  }
  patch.remove_node(id_of(g, n));
  replace_outputs(patch, g, n, results);
  return rewrite(std::move(patch));
}

Rewrite unroll_scan(const Graph& g, const Node& n, const Graph& body) {
  const int64_t captures = n.attributes.int_or("captures", 0), scanned = n.attributes.int_or("num_scan_inputs", 0);
  const int64_t carried = static_cast<int64_t>(n.inputs.size()) - captures - scanned;
  const int64_t scan_outputs = static_cast<int64_t>(body.outputs().size()) - carried;
  if (captures < 0 || scanned < 1 || carried < 0 || scan_outputs < 0 || body.inputs().size() != n.inputs.size())
    return no_match();
  const auto per_input = [&](std::string_view name) {
    return n.attributes.ints_or(name, std::vector<int64_t>(static_cast<size_t>(scanned), 0));
  };
  const auto per_output = [&](std::string_view name) {
    return n.attributes.ints_or(name, std::vector<int64_t>(static_cast<size_t>(scan_outputs), 0));
  };
  const std::vector<int64_t> in_directions = per_input("scan_input_directions"),
                             out_directions = per_output("scan_output_directions");
  std::vector<int64_t> in_axes = per_input("scan_input_axes"), out_axes = per_output("scan_output_axes");
  if (in_axes.size() != static_cast<size_t>(scanned) || in_directions.size() != in_axes.size()) return no_match();
  if (out_axes.size() != static_cast<size_t>(scan_outputs) || out_directions.size() != out_axes.size()) return no_match();
  int64_t trips = -1;
  for (size_t i = 0; i < in_axes.size(); ++i) {
    const auto dims = dims_of(g, n.inputs[static_cast<size_t>(carried) + i]);
    if (!dims) return no_match();
    const auto axis = normalize_axis(in_axes[i], static_cast<int64_t>(dims->size()));
    if (!axis) return no_match();
    in_axes[i] = *axis;
    const int64_t extent = (*dims)[static_cast<size_t>(*axis)];
    if (trips >= 0 && trips != extent) return no_match();
    trips = extent;
  }
  if (trips < 1 || trips > kMaxIterations || static_cast<size_t>(trips) * body.node_count() > kMaxNodes) return no_match();
  for (size_t i = 0; i < out_axes.size(); ++i) {
    const TensorId out = n.output(static_cast<size_t>(carried) + i);
    if (out_axes[i] >= 0 || !out) continue;
    if (rank_of(g, out) < 0) return no_match();
    out_axes[i] += rank_of(g, out);
  }

  Patch patch(g);
  std::vector<TensorId> state(n.inputs.begin(), n.inputs.begin() + carried);
  std::vector<std::vector<TensorId>> scans(static_cast<size_t>(scan_outputs));
  for (int64_t iteration = 0; iteration < trips; ++iteration) {
    std::vector<TensorId> arguments = state;
    for (size_t i = 0; i < in_axes.size(); ++i) {
      const int64_t position = in_directions[i] ? trips - 1 - iteration : iteration;
      const TensorId index = patch.add_constant(prefix_of(n, iteration) + "index", TensorData::scalar<int64_t>(position));
      arguments.push_back(patch.add_node("Gather", prefix_of(n, iteration) + "gather",
                                         {n.inputs[static_cast<size_t>(carried) + i], index}, {{"axis", in_axes[i]}}, n.origin));
    }
    arguments.insert(arguments.end(), n.inputs.end() - captures, n.inputs.end());
    const std::vector<TensorId> results = inline_body(patch, body, arguments, prefix_of(n, iteration), n);
    state.assign(results.begin(), results.begin() + carried);
    for (size_t i = 0; i < scans.size(); ++i)
      scans[i].insert(out_directions[i] ? scans[i].begin() : scans[i].end(), results[static_cast<size_t>(carried) + i]);
  }
  std::vector<TensorId> results = state;
  for (size_t i = 0; i < scans.size(); ++i) {
    const TensorId out = n.output(static_cast<size_t>(carried) + i);
    results.push_back(out && g.reader_count(out) > 0 ? join(patch, n, scans[i], out_axes[i]) : TensorId{});
  }
  patch.remove_node(id_of(g, n));
  replace_outputs(patch, g, n, results);
  return rewrite(std::move(patch));
}

Status unroll_loops_pass(Rewriter& r) {
  const Graph& g = r.graph();
  const std::vector<NodeId> order = g.order();
  for (NodeId id : order) {
    if (!r.may_rewrite()) return {};
    if (!g.is_alive(id)) continue;
    const Node& n = g.node(id);
    if (n.op != "Loop" && n.op != "Scan") continue;
    const auto* body = n.attributes.get<std::shared_ptr<const Graph>>("body");
    if (!body || !n.tail.empty()) continue;
    ORKNN_TRY_ASSIGN(const std::optional<Patch> patch,
                     n.op == "Loop" ? unroll_loop(g, r.ops(), n, **body) : unroll_scan(g, n, **body));
    if (patch) ORKNN_TRY(r.apply(*patch).status());
  }
  return {};
}
}  // namespace

Pass unroll_loops() {
  return {.name = "unroll_loops",
          .summary = "Loop and Scan with a known, modest number of iterations",
          .min_level = 1,
          .graph_pass = unroll_loops_pass};
}
}  // namespace orknn::optimize
