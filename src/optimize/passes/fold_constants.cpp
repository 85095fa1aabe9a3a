// Computes what does not depend on the inputs: nodes with constant inputs only, and integer tensors whose contents shape
// inference settled (Shape of a static tensor and everything derived from it).
//
// Before: %n = Shape(%x) ; %i = Gather(%n, 1)      After: %i = const 3      Legal: deterministic; the result stays small.
//
// Level 0 folds small results only: those are the shape arithmetic that later stages cannot do without.
#include <algorithm>

#include "base/log.h"
#include "base/refusal.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "ops/facts.h"
#include "ops/support/quantization.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// A folded node may add this much memory to the model; more only when it has no more elements than its input
// (dequantized weights).
constexpr int64_t kMaxGrowthBytes = 16 << 20;
// Work the reference kernels may spend on one node.
constexpr int64_t kMaxWork = 1'000'000'000;
// Iterations a constant Loop may take.
constexpr int64_t kMaxTrips = 4096;
constexpr int64_t kSmallCount = 1024;

bool is_deterministic(const Node& node, const OpSet& ops) {
  const OpDef* def = ops.find(node.op);
  if (!def || !def->deterministic || !def->run) return false;
  for (const auto& [name, value] : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<const Graph>>(&value);
    if (!body) continue;
    for (NodeId id : (*body)->order())
      if (!is_deterministic((*body)->node(id), ops)) return false;
  }
  return true;
}

int64_t bytes_of(const Tensor& t, const Dims& dims) {
  const Result<int64_t> n = checked_element_count(dims);
  return n ? *n * static_cast<int64_t>(dtype_bytes(t.dtype)) : INT64_MAX;
}

// The result is small enough, and so is the way to it.
bool is_worth_it(const Graph& g, const Node& n, const OpDef& def, int level) {
  int64_t input_bytes = 0, input_count = 0, output_bytes = 0, output_count = 0;
  std::vector<Dims> inputs, outputs;
  for (TensorId t : n.inputs) {
    inputs.push_back(t ? g.tensor(t).constant.dims() : Dims{});
    if (!t) continue;
    input_bytes += static_cast<int64_t>(g.tensor(t).constant.bytes());
    input_count = std::max(input_count, g.tensor(t).constant.count());
  }
  bool all_static = true;
  for (TensorId t : n.outputs) {
    if (!t) continue;
    const auto dims = dims_of(g, t);
    if (!dims) {
      all_static = false;
      continue;
    }
    outputs.push_back(*dims);
    const int64_t bytes = bytes_of(g.tensor(t), *dims);
    if (bytes == INT64_MAX) return false;
    output_bytes += bytes;
    output_count += element_count(*dims);
  }
  if (level == 0 && (!all_static || output_count > kSmallCount)) return false;
  // An output of unknown size is data-dependent (NonZero, Unique, ...): its size follows the inputs'.
  if (!all_static && input_count > kMaxGrowthBytes / 8) return false;
  if (output_bytes > input_bytes + kMaxGrowthBytes && output_count > input_count) return false;
  if (n.op == "Loop") {
    const auto trips = constant_scalar(g, n.input(0));
    if (!trips || *trips > static_cast<double>(kMaxTrips)) return false;
  }
  if (!all_static || !def.cost) return true;
  outputs.resize(n.outputs.size());
  const OpCost cost = def.cost(NodeReader(n, def), inputs, outputs);
  return cost.macs <= kMaxWork && cost.element_ops <= kMaxWork;
}

// Readers of the outputs of `id` that have a value read a constant instead; true when there was one.
Result<bool> fold(Rewriter& r, NodeId id, const std::vector<TensorData>& values) {
  const Graph& g = r.graph();
  const Node& n = g.node(id);
  Patch patch(g);
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (!n.outputs[i] || !values[i].has_value() || g.reader_count(n.outputs[i]) == 0) continue;
    // What was stored as integers keeps its grid, so that it can become the same integers again.
    auto grid =
        ops::facts_of(n).conversion == Conversion::ToReals ? ops::stored_grid(g, n) : ops::moved_grid(g, n, values[i].dims());
    patch.replace_tensor(n.outputs[i], patch.add_constant(g.tensor(n.outputs[i]).name, values[i], std::move(grid)));
  }
  if (patch.empty()) return false;
  return r.apply(patch);
}

// The value of an integer tensor if inference knows every element; a TensorData without value otherwise.
TensorData settled(const Tensor& t, const std::optional<std::vector<Dim>>& content) {
  const std::optional<Dims> dims = t.shape ? to_dims(*t.shape) : std::nullopt;
  if (!content || !dims || !is_integer(t.dtype) || element_count(*dims) != static_cast<int64_t>(content->size())) return {};
  std::vector<int64_t> values;
  for (const Dim& d : *content) {
    if (!d.is_known()) return {};
    values.push_back(d.value());
  }
  return convert(TensorData::from<int64_t>(*dims, values).view(), t.dtype);
}

Status fold_constants_pass(Rewriter& r) {
  const Graph& g = r.graph();
  Graph inferred = g;  // shares all constant bytes
  TensorContents contents;
  ORKNN_TRY(infer_shapes(inferred, r.ops(), &contents));
  const std::vector<NodeId> order = g.order();
  for (NodeId id : order) {
    if (!r.may_rewrite()) return {};
    if (!g.is_alive(id)) continue;
    const Node& n = g.node(id);
    std::vector<TensorData> known;
    for (TensorId t : n.outputs) {
      const bool seen = t && static_cast<size_t>(t.index) < contents.size();
      known.push_back(seen ? settled(inferred.tensor(t), contents[static_cast<size_t>(t.index)]) : TensorData{});
    }
    ORKNN_TRY_ASSIGN(const bool from_contents, fold(r, id, known));
    if (from_contents) continue;
    if (!std::ranges::all_of(n.inputs, [&](TensorId t) { return !t || g.is_constant(t); })) continue;
    if (!is_deterministic(n, r.ops()) || !is_worth_it(g, n, *r.ops().find(n.op), r.level())) continue;
    std::vector<TensorData> inputs;
    for (TensorId t : n.inputs) inputs.push_back(t ? g.tensor(t).constant : TensorData{});
    const auto values = ops::eval_node(n, r.ops(), inputs);
    if (!values && !is_refusal(values.status())) return values.status();
    if (!values) {  // the model may never need it; whoever runs it gets the error with the node's name
      log(LogLevel::Debug, "optimize", "not folded: " + values.status().to_string());
      continue;
    }
    ORKNN_TRY(fold(r, id, *values).status());
  }
  return {};
}
}  // namespace

Pass fold_constants() {
  return {.name = "fold_constants",
          .summary = "computes everything that does not depend on the inputs",
          .min_level = 0,
          .graph_pass = fold_constants_pass};
}
}  // namespace orknn::optimize
