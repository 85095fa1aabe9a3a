// One LogSoftmax instead of its parts.
//
// Before: %y = Log(Softmax(%x))                                             After: %y = LogSoftmax(%x)
// Before: %d = Sub(%x, ReduceMax(%x)) ; %y = Sub(%d, Log(ReduceSum(Exp(%d))))     After: %y = LogSoftmax(%x) {axis = a}
// Before: %y = Sub(%x, ReduceLogSumExp(%x))                                 After: %y = LogSoftmax(%x) {axis = a}
// Legal: one axis, kept; nothing between is read elsewhere.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

std::optional<int64_t> single_axis(const Graph& g, const Node& reduce) {
  const auto axes = reduce_axes(g, reduce);
  if (!axes || axes->size() != 1 || !reduce.attributes.int_or("keepdims", 1)) return std::nullopt;
  return axes->front();
}

Rewrite fuse_log_softmax_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !is_float_tensor(g, n.output(0))) return no_match();
  if (n.op == "Log") {
    const Node* softmax = g.sole_producer(n.input(0), "Softmax");
    if (!softmax) return no_match();
    return replace_node(g, n, successor(n, "LogSoftmax", softmax->inputs, softmax->attributes), {softmax});
  }
  TensorId x = n.input(0);
  std::vector<const Node*> nodes{&n};
  std::optional<int64_t> axis;
  if (const Node* whole = producer(g, n.input(1), "ReduceLogSumExp")) {
    if (whole->input(0) != x) return no_match();
    axis = single_axis(g, *whole);
    nodes.push_back(whole);
  } else {
    const Node* log = producer(g, n.input(1), "Log");
    const Node* sum = log ? producer(g, log->input(0), "ReduceSum") : nullptr;
    const Node* exp = sum ? producer(g, sum->input(0), "Exp") : nullptr;
    if (!exp || exp->input(0) != x) return no_match();
    axis = single_axis(g, *sum);
    nodes.insert(nodes.begin(), {exp, sum, log});
    if (const Node* shifted = producer(g, x, "Sub")) {
      const Node* largest = producer(g, shifted->input(1), "ReduceMax");
      if (largest && largest->input(0) == shifted->input(0) && single_axis(g, *largest) == axis) {
        x = shifted->input(0);
        nodes.insert(nodes.begin(), {largest, shifted});
      }
    }
  }
  if (!axis || !is_closed(g, nodes, n)) return no_match();
  return replace_node(g, n, successor(n, "LogSoftmax", {x}, {{"axis", *axis}}), nodes);
}
}  // namespace

Pass fuse_log_softmax() {
  return {.name = "fuse_log_softmax",
          .summary = "LogSoftmax from its parts",
          .min_level = 2,
          .rule = fuse_log_softmax_rule,
          .roots = {"Log", "Sub"}};
}
}  // namespace orknn::optimize
