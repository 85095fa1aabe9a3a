// Pools with windows beyond the NPU's 7x7 as something it computes.
//
// Before: %y = AveragePool(%x) {kernel_shape = {33,33}} of a 33x33 map     After: %y = GlobalAveragePool(%x)
// Before: %y = MaxPool(%x) {kernel_shape = {13,13}, pads = {6,6,6,6}}      After: %y = MaxPool(MaxPool(%x) {7x7, pads 6}) {7x7}
// Legal: the window is the whole map without padding; or a maximum, which may be taken in stages, the first one with all the
// padding, which is then shorter than its window. Strides belong to the last stage.
#include <algorithm>

#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

constexpr int64_t kMostWindow = 7;

bool all_are(const std::vector<int64_t>& values, int64_t value) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == value; });
}

Rewrite split_large_pool_rule(const Graph& g, const Node& n) {
  const std::vector<int64_t> kernel = n.attributes.ints_or("kernel_shape"), pads = n.attributes.ints_or("pads"),
                             strides = n.attributes.ints_or("strides");
  const auto in = dims_of(g, n.input(0));
  if (!n.tail.empty() || !only_first_output(g, n) || !in || in->size() != 4 || kernel.size() != 2 ||
      std::ranges::max(kernel) <= kMostWindow)
    return no_match();
  if (n.attributes.string_or("auto_pad", "NOTSET") != "NOTSET" || n.attributes.int_or("ceil_mode", 0) ||
      !all_are(n.attributes.ints_or("dilations"), 1))
    return no_match();
  if (std::ranges::min(kernel) < 1 || (!pads.empty() && (pads.size() != 4 || std::ranges::min(pads) < 0))) return no_match();

  if (all_are(pads, 0) && kernel[0] == (*in)[2] && kernel[1] == (*in)[3])
    return replace_node(g, n, successor(n, n.op == "MaxPool" ? "GlobalMaxPool" : "GlobalAveragePool", {n.input(0)}));
  if (n.op != "MaxPool") return no_match();

  // A window of k is stages of k1, k2, ... with the sum of (ki - 1) equal to k - 1.
  constexpr int64_t kMostStages = 8;
  const int64_t stages = (std::ranges::max(kernel) - 1 + kMostWindow - 2) / (kMostWindow - 1);
  if (stages > kMostStages) return no_match();
  std::vector<std::vector<int64_t>> windows;
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<int64_t> window;
    for (int64_t k : kernel) window.push_back((k - 1) / stages + (stage < (k - 1) % stages ? 1 : 0) + 1);
    windows.push_back(std::move(window));
  }
  for (size_t i = 0; i < pads.size(); ++i)
    if (pads[i] >= windows[0][i % 2]) return no_match();

  Patch patch(g);
  TensorId value = n.input(0);
  for (size_t stage = 0; stage + 1 < windows.size(); ++stage) {
    Attributes attributes{{"kernel_shape", windows[stage]}};
    if (stage == 0 && !pads.empty()) attributes.set("pads", pads);
    value = patch.add_node("MaxPool", n.name, {value}, std::move(attributes), n.origin);
  }
  Attributes last{{"kernel_shape", windows.back()}};
  if (!strides.empty()) last.set("strides", strides);
  replace_node(g, patch, n, successor(n, "MaxPool", {value}, std::move(last)));
  return rewrite(std::move(patch));
}
}  // namespace

Pass split_large_pool() {
  return {.name = "split_large_pool",
          .summary = "pools with windows above 7x7 as global pools or in stages",
          .min_level = 2,
          .rule = split_large_pool_rule,
          .roots = {"MaxPool", "AveragePool"}};
}
}  // namespace orknn::optimize
