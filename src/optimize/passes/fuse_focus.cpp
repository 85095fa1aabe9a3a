// One SpaceToDepth instead of the four strided Slices and the Concat of a focus layer.
//
// Before: %y = Concat(%x[::2,::2], %x[1::2,::2], %x[::2,1::2], %x[1::2,1::2]) {axis = 1}     After: %y = SpaceToDepth(%x)
// {blocksize = 2} Legal: even extents, slices read nowhere else. SpaceToDepth goes row by row; any other order of the four needs
// the following Conv to have constant weights, whose input channels are then reordered.
#include <algorithm>

#include "optimize/linear.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// Where a chain of Slices starts and its step, for rows and columns.
struct Grid {
  TensorId x;
  int64_t start[2] = {0, 0}, step[2] = {1, 1};
  std::vector<const Node*> nodes;
};

std::optional<Grid> match_slices(const Graph& g, TensorId t) {
  Grid grid;
  const auto out = dims_of(g, t);
  if (!out || out->size() != 4) return std::nullopt;
  for (int depth = 0; depth < 2; ++depth) {
    const Node* n = g.sole_producer(t, "Slice");
    if (!n) break;
    const auto starts = constant_ints(g, n->input(1)), axes = constant_ints(g, n->input(3)),
               steps = constant_ints(g, n->input(4));
    if (!starts || !axes || !steps || starts->size() != axes->size() || steps->size() != axes->size()) return std::nullopt;
    for (size_t i = 0; i < axes->size(); ++i) {
      const int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + 4 : (*axes)[i];
      if (axis != 2 && axis != 3) return std::nullopt;
      if (grid.step[axis - 2] != 1 || (*steps)[i] != 2 || (*starts)[i] < 0 || (*starts)[i] > 1) return std::nullopt;
      grid.start[axis - 2] = (*starts)[i];
      grid.step[axis - 2] = 2;
    }
    grid.nodes.push_back(n);
    t = n->input(0);
  }
  const auto dims = dims_of(g, t);
  if (grid.nodes.empty() || grid.step[0] != 2 || grid.step[1] != 2 || !dims || (*dims)[2] != 2 * (*out)[2] ||
      (*dims)[3] != 2 * (*out)[3])
    return std::nullopt;
  grid.x = t;
  return grid;
}

Rewrite fuse_focus_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || n.inputs.size() != 4) return no_match();
  const int64_t axis = n.attributes.int_or("axis", 0);
  if (axis != 1 && axis != -3) return no_match();
  std::vector<int64_t> order;  // block of each Concat input, counted row by row
  std::vector<const Node*> nodes;
  TensorId x;
  for (TensorId in : n.inputs) {
    const auto grid = match_slices(g, in);
    if (!grid || (x && grid->x != x)) return no_match();
    x = grid->x;
    order.push_back(2 * grid->start[0] + grid->start[1]);
    nodes.insert(nodes.end(), grid->nodes.begin(), grid->nodes.end());
  }
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  if (sorted != std::vector<int64_t>{0, 1, 2, 3}) return no_match();
  if (order == sorted) return replace_node(g, n, successor(n, "SpaceToDepth", {x}, {{"blocksize", int64_t{2}}}), nodes);

  const Node* conv = only_reader(g, n.output(0));
  if (!conv || conv->op != "Conv" || conv->input(0) != n.output(0)) return no_match();
  const auto linear = linear_of(g, *conv);
  if (!linear || linear->group != 1) return no_match();
  const Dims& dims = linear->weight->dims();
  const int64_t rows = dims[0], channels = dims[1] / 4, kernel = element_count(std::span(dims).subspan(2));
  const std::vector<double> weight = to_doubles(linear->weight->view());
  std::vector<double> moved(weight.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t block = 0; block < 4; ++block) {
      const int64_t from = (r * dims[1] + block * channels) * kernel,
                    to = (r * dims[1] + order[static_cast<size_t>(block)] * channels) * kernel;
      std::copy_n(weight.begin() + from, channels * kernel, moved.begin() + to);
    }
  Patch patch(g);
  Node fresh = *conv;
  fresh.inputs[0] = patch.add_node("SpaceToDepth", n.name, {x}, {{"blocksize", int64_t{2}}}, join_origins(nodes));
  fresh.inputs[1] = patch.add_constant(g.tensor(conv->input(1)).name, constant_from(moved, dims, linear->weight->dtype()));
  replace_node(g, patch, *conv, std::move(fresh), {&n});
  return rewrite(std::move(patch));
}
}  // namespace

Pass fuse_focus() {
  return {.name = "fuse_focus",
          .summary = "SpaceToDepth from the strided Slices of a focus layer",
          .min_level = 2,
          .rule = fuse_focus_rule,
          .roots = {"Concat"}};
}
}  // namespace orknn::optimize
