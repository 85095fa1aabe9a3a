// Whole-number scales instead of output sizes.
//
// Before: %y = Resize(%x: [1,3,4,4], _, _, {1,3,8,8})     After: %y = Resize(%x, _, {1,1,2,2})
// Legal: static extents, every size is a multiple of the input's and sizes are taken as they are.
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite settle_resize_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !n.has_input(3)) return no_match();
  if (n.attributes.string_or("keep_aspect_ratio_policy", "stretch") != "stretch") return no_match();
  if (n.attributes.string_or("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return no_match();
  const auto in = dims_of(g, n.input(0)), out = dims_of(g, n.output(0));
  if (!in || !out || in->size() != out->size()) return no_match();
  std::vector<double> scales;
  for (size_t i = 0; i < in->size(); ++i) {
    if ((*in)[i] < 1 || (*out)[i] < 1 || (*out)[i] % (*in)[i]) return no_match();
    scales.push_back(static_cast<double>((*out)[i] / (*in)[i]));
  }
  Patch patch(g);
  Node fresh = n;
  const TensorId id = patch.add_constant(g.tensor(n.output(0)).name + "_scales",
                                         constant_from(scales, {static_cast<int64_t>(scales.size())}, DType::Float32));
  fresh.inputs = {n.input(0), {}, id};
  fresh.attributes.erase("axes");
  fresh.attributes.erase("keep_aspect_ratio_policy");
  replace_node(g, patch, n, std::move(fresh));
  return rewrite(std::move(patch));
}
}  // namespace

Pass settle_resize() {
  return {.name = "settle_resize",
          .summary = "Resize by whole-number scales instead of sizes",
          .min_level = 1,
          .rule = settle_resize_rule,
          .roots = {"Resize"}};
}
}  // namespace orknn::optimize
