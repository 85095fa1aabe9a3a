// Operators that only move elements: their copies are planned once, so that a run allocates nothing.
#include <algorithm>
#include <array>

#include "ops/support/movement_plans.h"
#include "ops/support/strided_copy.h"
#include "sim/kernel.h"

namespace orknn::sim {
namespace {
struct Move {
  size_t input, output;
  int64_t from, to;  // first elements
  ops::CopyAxes axes;
};
using Moves = std::vector<Move>;

struct State final : KernelState {
  struct Planned {
    size_t input, output;
    int64_t from, to;
    ops::StridedCopy copy;
  };
  std::vector<Planned> moves;
};

size_t axis_of(const KernelQuery& q) {
  const int64_t axis = q.attributes().get_int("axis");
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(q.inputs[0].dims.size()) : axis);
}

// Parts of one tensor along an axis: `whole` on the one side, a part per operand on the other.
Moves along_axis(const ir::Dims& whole, size_t axis, std::span<const OperandFacts> parts, bool join) {
  const int64_t outer = ops::extent_product(whole, 0, axis), inner = ops::extent_product(whole, axis + 1, whole.size());
  Moves moves;
  int64_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t run = parts[i].dims[axis] * inner, all = whole[axis] * inner;
    if (join)
      moves.push_back({i, 0, 0, at, {{outer, run, all}, {run, 1, 1}}});
    else
      moves.push_back({0, i, at, 0, {{outer, all, run}, {run, 1, 1}}});
    at += run;
  }
  return moves;
}

std::optional<Moves> concat(const KernelQuery& q) { return along_axis(q.outputs[0].dims, axis_of(q), q.inputs, true); }

// A part that is not read has no size to count from.
std::optional<Moves> split(const KernelQuery& q) {
  if (!std::ranges::all_of(q.outputs, &OperandFacts::exists)) return std::nullopt;
  return along_axis(q.inputs[0].dims, axis_of(q), q.outputs, false);
}

std::optional<Moves> slice(const KernelQuery& q) {
  std::array<std::vector<int64_t>, 4> lists;  // starts, ends, axes, steps
  for (size_t i = 0; i < lists.size(); ++i) {
    if (i + 1 >= q.inputs.size() || !q.inputs[i + 1].exists()) continue;
    if (!q.inputs[i + 1].constant) return std::nullopt;
    lists[i] = ir::to_ints(q.inputs[i + 1].constant->view());
  }
  if (q.inputs.size() < 4 || !q.inputs[3].exists()) {
    const ops::ScratchDims all = ops::first_axes(lists[0].size());
    lists[2].assign(all.begin(), all.end());
  }
  if (q.inputs.size() < 5 || !q.inputs[4].exists()) lists[3].assign(lists[0].size(), 1);
  Result<ops::SlicePlan> plan = ops::plan_slice(q.inputs[0].dims, lists[0], lists[1], lists[2], lists[3]);
  if (!plan) return std::nullopt;
  return Moves{{0, 0, plan->offset, 0, std::move(plan->axes)}};
}

std::optional<Moves> transpose(const KernelQuery& q) {
  const auto perm = ops::permutation_of(q.attributes(), static_cast<int64_t>(q.inputs[0].dims.size()));
  if (!perm) return std::nullopt;
  return Moves{{0, 0, 0, 0, ops::permuted_axes(q.inputs[0].dims, *perm)}};
}

std::optional<Moves> expand(const KernelQuery& q) {
  return Moves{{0, 0, 0, 0, ops::broadcast_axes(q.inputs[0].dims, q.outputs[0].dims)}};
}

Moves permuted(const ops::SplitPermutation& p) {
  return {{0, 0, 0, 0, ops::permuted_axes(p.split, std::vector<int64_t>(p.perm.begin(), p.perm.end()))}};
}
std::optional<Moves> depth_to_space(const KernelQuery& q) {
  const ir::NodeReader node = q.attributes();
  return permuted(ops::depth_to_space_permutation(q.inputs[0].dims, node.get_int("blocksize"), node.get_string("mode")));
}
std::optional<Moves> space_to_depth(const KernelQuery& q) {
  return permuted(ops::space_to_depth_permutation(q.inputs[0].dims, q.attributes().get_int("blocksize")));
}
std::optional<Moves> shuffle(const KernelQuery& q) {
  return permuted(ops::channel_shuffle_permutation(q.inputs[0].dims, q.attributes().get_int("group")));
}

struct Planner {
  std::string_view op;
  std::optional<Moves> (*plan)(const KernelQuery& query);
};
constexpr Planner kPlanners[] = {
    {"Concat", concat},
    {"Split", split},
    {"Slice", slice},
    {"Transpose", transpose},
    {"Expand", expand},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
    {"ShuffleChannel", shuffle},
};

std::optional<Moves> plan(const KernelQuery& q) {
  const auto* const planner = std::ranges::find(kPlanners, q.node.op, &Planner::op);
  if (planner == std::end(kPlanners) || !q.node.tail.empty() || !q.inputs[0].exists()) return std::nullopt;
  return planner->plan(q);
}

bool accepts(const KernelQuery& q) { return plan(q).has_value(); }

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  const size_t bytes = dtype_bytes(q.inputs[0].dtype);
  std::optional<Moves> moves = plan(q);
  for (Move& move : *moves)
    s->moves.push_back({move.input, move.output, move.from, move.to, ops::StridedCopy(std::move(move.axes), bytes)});
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const size_t bytes = dtype_bytes(c.inputs[0].dtype);
  for (const State::Planned& move : static_cast<const State*>(state)->moves)
    move.copy.run(ops::offset_by(c.inputs[move.input].data, move.from, bytes),
                  ops::offset_by(c.outputs[move.output].data, move.to, bytes), c.pool);
  return {};
}
}  // namespace

std::span<const Kernel> movement() {
  static const Kernel kernels[] = {{"movement", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
