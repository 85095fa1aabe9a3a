// Turns auto_pad and ceil_mode into explicit pads.
//
// Before: %y = MaxPool(%x) {auto_pad = "SAME_UPPER"}     After: %y = MaxPool(%x) {pads = [0,0,1,1]}
// Legal: static spatial extents. ceil_mode becomes a longer end pad where padding does not count: not in an AveragePool that
// counts it.
#include <algorithm>

#include "ops/facts.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

struct Window {
  std::vector<int64_t> in, out, kernel, stride, dilation, begin, end;
};

std::optional<Window> window_of(const Graph& g, const Node& n) {
  const auto in = dims_of(g, n.input(0)), out = dims_of(g, n.output(0));
  if (!in || !out || in->size() < 3 || out->size() != in->size()) return std::nullopt;
  Window w;
  w.in.assign(in->begin() + 2, in->end());
  w.out.assign(out->begin() + 2, out->end());
  const size_t spatial = w.in.size();
  if (n.attributes.has("kernel_shape")) {
    w.kernel = n.attributes.ints_or("kernel_shape");
  } else {
    const auto weight = dims_of(g, n.input(1));
    if (!weight || weight->size() != spatial + 2) return std::nullopt;
    w.kernel.assign(weight->begin() + 2, weight->end());
  }
  w.stride = n.attributes.ints_or("strides", std::vector<int64_t>(spatial, 1));
  w.dilation = n.attributes.ints_or("dilations", std::vector<int64_t>(spatial, 1));
  const std::vector<int64_t> pads = n.attributes.ints_or("pads", std::vector<int64_t>(2 * spatial, 0));
  if (w.kernel.size() != spatial || w.stride.size() != spatial || w.dilation.size() != spatial || pads.size() != 2 * spatial)
    return std::nullopt;
  w.begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(spatial));
  w.end.assign(pads.begin() + static_cast<int64_t>(spatial), pads.end());
  return w;
}

int64_t extent(const Window& w, size_t i) { return (w.kernel[i] - 1) * w.dilation[i] + 1; }

bool split_padding(Window& w, bool odd_at_end, bool transposed, const Node& n) {
  const std::vector<int64_t> extra = n.attributes.ints_or("output_padding", std::vector<int64_t>(w.in.size(), 0));
  for (size_t i = 0; i < w.in.size(); ++i) {
    int64_t total = transposed ? w.stride[i] * (w.in[i] - 1) + (i < extra.size() ? extra[i] : 0) + extent(w, i) - w.out[i]
                               : (w.out[i] - 1) * w.stride[i] + extent(w, i) - w.in[i];
    if (total < 0 && transposed) return false;
    total = std::max<int64_t>(total, 0);
    w.begin[i] = odd_at_end ? total / 2 : total - total / 2;
    w.end[i] = total - w.begin[i];
  }
  return true;
}

// The end pads that give the same output size with rounding down; false when there are none.
bool extend_end(Window& w) {
  for (size_t i = 0; i < w.in.size(); ++i) {
    const int64_t missing = (w.out[i] - 1) * w.stride[i] + extent(w, i) - (w.in[i] + w.begin[i] + w.end[i]);
    if (missing > 0) w.end[i] += missing;
    if (w.stride[i] < 1 || (w.in[i] + w.begin[i] + w.end[i] - extent(w, i)) / w.stride[i] + 1 != w.out[i]) return false;
  }
  return true;
}

Rewrite resolve_padding_rule(const Graph& g, const Node& n) {
  const std::string auto_pad = n.attributes.string_or("auto_pad", "NOTSET");
  const bool ceil_mode = n.attributes.int_or("ceil_mode", 0) != 0;
  const bool transposed = ops::facts_of(n).weights == Weights::InOut;
  const bool output_shape = transposed && n.attributes.has("output_shape");
  if (auto_pad == "NOTSET" && !ceil_mode && !output_shape && !n.attributes.has("auto_pad")) return no_match();
  auto window = window_of(g, n);
  if (!window) return no_match();
  Node fresh = n;
  if (auto_pad == "VALID") {
    std::ranges::fill(window->begin, 0);
    std::ranges::fill(window->end, 0);
  }
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER" || output_shape) {
    if (ceil_mode || !split_padding(*window, auto_pad == "SAME_UPPER", transposed, n)) return no_match();
    fresh.attributes.erase("output_shape");
  }
  if (ceil_mode) {
    const Window given = *window;
    if (!extend_end(*window)) return no_match();
    const bool counts = n.attributes.int_or("count_include_pad", 0);
    if (counts && window->end != given.end) return no_match();
    fresh.attributes.erase("ceil_mode");
  }
  fresh.attributes.erase("auto_pad");
  std::vector<int64_t> pads = window->begin;
  pads.insert(pads.end(), window->end.begin(), window->end.end());
  fresh.attributes.set("pads", pads);
  return replace_node(g, n, std::move(fresh));
}
}  // namespace

Pass resolve_padding() {
  return {.name = "resolve_padding",
          .summary = "auto_pad, output_shape and ceil_mode become explicit pads",
          .min_level = 0,
          .rule = resolve_padding_rule,
          .roots = ops::ops_where([](const OpDef& d) { return d.pattern == Pattern::Window && d.integer_form_of.empty(); })};
}
}  // namespace orknn::optimize
