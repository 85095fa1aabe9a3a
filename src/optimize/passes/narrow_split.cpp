// A Slice instead of a Split of which only one part is read.
//
// Before: %a, %b = Split(%x) {axis = 1} (%b unread)     After: %a = Slice(%x, {0}, {4}, {1})
// Legal: static extents along the axis.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite narrow_split_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || n.outputs.size() < 2) return no_match();
  const int64_t rank = rank_of(g, n.input(0));
  const auto axis = normalize_axis(n.attributes.int_or("axis", 0), rank);
  if (rank < 1 || !axis) return no_match();
  int64_t at = 0, begin = 0, end = 0;
  TensorId read;
  for (TensorId t : n.outputs) {
    const auto dims = t ? dims_of(g, t) : std::nullopt;
    if (!dims) return no_match();
    const int64_t extent = (*dims)[static_cast<size_t>(*axis)];
    if (g.reader_count(t) > 0) {
      if (read) return no_match();
      read = t;
      begin = at;
      end = at + extent;
    }
    at += extent;
  }
  if (!read) return no_match();
  Patch patch(g);
  const auto ints = [&](const char* suffix, int64_t v) {
    return patch.add_constant(g.tensor(read).name + suffix, TensorData::vector(std::vector<int64_t>{v}));
  };
  Node slice = successor(n, "Slice", {n.input(0), ints("_begin", begin), ints("_end", end), ints("_axis", *axis)});
  slice.outputs = {read};
  replace_node(g, patch, n, std::move(slice));
  return rewrite(std::move(patch));
}
}  // namespace

Pass narrow_split() {
  return {.name = "narrow_split",
          .summary = "Slice instead of a Split with one part read",
          .min_level = 1,
          .rule = narrow_split_rule,
          .roots = {"Split"}};
}
}  // namespace orknn::optimize
