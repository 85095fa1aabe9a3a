// Removes nodes that give back their input.
//
// Before: %y = Dropout(%x) ; %z = Reshape(%y, {1,8}) (already 1x8)     After: readers of %z read %x
// Legal: same type, same shape, same elements in the same order. A node between a graph input or a constant and a graph
// output stays, and so does one between two graph outputs: both ports keep their names.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

using Test = bool (*)(const Graph& g, const Node& n);

bool always(const Graph&, const Node&) { return true; }
bool same_shapes(const Graph& g, const Node& n) { return same_shape(g, n.input(0), n.output(0)); }
bool one_input(const Graph&, const Node& n) { return n.own_input_count() == 1; }

bool same_type(const Graph& g, const Node& n) {
  return dtype_of(g, n.input(0)) != DType::Undefined && dtype_of(g, n.input(0)) == dtype_of(g, n.output(0));
}

bool dropout(const Graph& g, const Node& n) {
  if (!only_first_output(g, n)) return false;
  return !n.has_input(2) || is_scalar(g, n.input(2), 0.0);  // training_mode
}

// Axes of extent 1 may move; the others keep their order.
bool transpose(const Graph& g, const Node& n) {
  const auto perm = transpose_perm(g, n);
  if (!perm) return false;
  if (std::ranges::is_sorted(*perm)) return true;
  const auto dims = dims_of(g, n.input(0));
  if (!dims || !same_shape(g, n.input(0), n.output(0))) return false;
  int64_t last = -1;
  for (int64_t axis : *perm) {
    if ((*dims)[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool slice(const Graph& g, const Node& n) {
  if (!same_shapes(g, n)) return false;
  if (!n.has_input(4)) return true;
  const auto steps = constant_ints(g, n.input(4));
  return steps && std::ranges::all_of(*steps, [](int64_t s) { return s > 0; });
}

bool pad(const Graph& g, const Node& n) {
  const auto pads = constant_ints(g, n.input(1));
  return pads && std::ranges::all_of(*pads, [](int64_t p) { return p == 0; });
}

bool resize(const Graph& g, const Node& n) {
  const std::string mode = n.attributes.string_or("coordinate_transformation_mode", "half_pixel");
  if (mode == "tf_crop_and_resize" || mode == "tf_half_pixel_for_nn") return false;
  if (!same_shapes(g, n)) return false;
  // Equal extents with a scale such as 1.01 still move the sample points.
  return !n.has_input(2) || constant_splat(g, n.input(2)) == 1.0 || g.tensor(n.input(2)).constant.count() == 0;
}

// The constant operand changes nothing and does not broadcast the other one.
bool neutral_right(const Graph& g, const Node& n, double neutral) {
  return constant_splat(g, n.input(1)) == neutral && same_shapes(g, n);
}
bool subtract_or_add_zero(const Graph& g, const Node& n) { return neutral_right(g, n, 0); }
bool divide_or_multiply_by_one(const Graph& g, const Node& n) { return neutral_right(g, n, 1); }
bool power_one(const Graph& g, const Node& n) { return neutral_right(g, n, 1); }

bool unbounded_clip(const Graph& g, const Node& n) {
  if (n.attributes.has("min") || n.attributes.has("max")) return false;
  const auto free = [&](size_t i, double bound) { return !n.has_input(i) || constant_scalar(g, n.input(i)) == bound; };
  return free(1, -INFINITY) && free(2, INFINITY);
}

// Mean, sum, largest or smallest of one element each.
bool reduce_single(const Graph& g, const Node& n) {
  if (!same_shapes(g, n)) return false;
  const auto axes = reduce_axes(g, n);
  const auto dims = dims_of(g, n.input(0));
  return axes && dims && std::ranges::all_of(*axes, [&](int64_t a) { return (*dims)[static_cast<size_t>(a)] == 1; });
}

bool pool_of_one(const Graph& g, const Node& n) {
  const auto kernel = n.attributes.ints_or("kernel_shape");
  const auto ones = [](const std::vector<int64_t>& v) { return std::ranges::all_of(v, [](int64_t x) { return x == 1; }); };
  return only_first_output(g, n) && !kernel.empty() && ones(kernel) && ones(n.attributes.ints_or("strides")) &&
         same_shapes(g, n) && std::ranges::all_of(n.attributes.ints_or("pads"), [](int64_t p) { return p == 0; });
}

const std::unordered_map<std::string_view, Test>& tests() {
  static const std::unordered_map<std::string_view, Test> table = {
      {"Identity", always},
      {"Dropout", dropout},
      {"Cast", same_type},
      {"CastLike", same_type},
      {"Reshape", same_shapes},
      {"Flatten", same_shapes},
      {"Squeeze", same_shapes},
      {"Unsqueeze", same_shapes},
      {"Expand", same_shapes},
      {"Tile", same_shapes},
      {"GlobalAveragePool", same_shapes},
      {"GlobalMaxPool", same_shapes},
      {"Transpose", transpose},
      {"Slice", slice},
      {"Pad", pad},
      {"Resize", resize},
      {"Concat", one_input},
      {"Sum", one_input},
      {"Mean", one_input},
      {"Max", one_input},
      {"Min", one_input},
      {"Add", subtract_or_add_zero},
      {"Sub", subtract_or_add_zero},
      {"Mul", divide_or_multiply_by_one},
      {"Div", divide_or_multiply_by_one},
      {"Pow", power_one},
      {"Clip", unbounded_clip},
      {"ReduceMean", reduce_single},
      {"ReduceSum", reduce_single},
      {"ReduceMax", reduce_single},
      {"ReduceMin", reduce_single},
      {"MaxPool", pool_of_one},
      {"AveragePool", pool_of_one},
  };
  return table;
}

// Add and Mul take their constant on either side.
bool neutral_left(const Graph& g, const Node& n) {
  const double neutral = n.op == "Add" ? 0 : 1;
  return (n.op == "Add" || n.op == "Mul") && constant_splat(g, n.input(0)) == neutral && same_shape(g, n.input(1), n.output(0));
}

Rewrite rule(const Graph& g, const Node& n) {
  const auto test = tests().find(n.op);
  if (test == tests().end() || !n.tail.empty() || !n.input(0)) return no_match();
  if (dtype_of(g, n.output(0)) == DType::Undefined) return no_match();
  if (neutral_left(g, n)) return can_replace(g, n.output(0), n.input(1)) ? bypass(g, n.output(0), n.input(1)) : no_match();
  if (!test->second(g, n)) return no_match();
  if (dtype_of(g, n.input(0)) != dtype_of(g, n.output(0))) return no_match();
  if (!can_replace(g, n.output(0), n.input(0))) return no_match();
  return bypass(g, n.output(0), n.input(0));
}
}  // namespace

Pass drop_identity() {
  return {.name = "drop_identity", .summary = "nodes that give back their input", .min_level = 1, .rule = rule};
}
}  // namespace orknn::optimize
