// Boxes of detectors: priors, offsets around them, and regions of feature maps.
#include "import/lower/detection.h"
#include "import/lower/one_hot.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
// --- priors

// Boxes [H, W, priors, 4] relative to the picture, and their variances.
Result<std::vector<TensorId>> prior_box(Layer& l, TensorId map, TensorId picture) {
  ORKNN_TRY_ASSIGN(const Dims m, l.need_dims(map, "to place boxes"));
  ORKNN_TRY_ASSIGN(const Dims p, l.need_dims(picture, "to place boxes"));
  if (m.size() != 4 || p.size() != 4 || element_count(m) == 0 || element_count(p) == 0)
    return invalid_model("boxes are placed on maps")
        .expected("two tensors of rank 4")
        .found(to_string(m) + " and " + to_string(p));
  const std::vector<double> variances = l.numbers("variances");
  if (variances.size() != 4) return invalid_model("illegal variances").expected("4").found(std::to_string(variances.size()));
  const double step_x = l.number("step_w", 0), step_y = l.number("step_h", 0);
  const bool follows_picture = step_x == 0 || step_y == 0;
  const auto offset = static_cast<float>(l.number("offset", 0.5));
  PriorGrid grid;
  grid.height = m[2];
  grid.width = m[3];
  ORKNN_TRY_ASSIGN(grid.boxes, prior_sizes({l.numbers("min_sizes"), l.numbers("max_sizes"), l.numbers("aspect_ratios"),
                                            l.flag("flip", false), l.flag("min_max_aspect_ratios_order", false)}));
  grid.offsets = {{offset, offset}};
  grid.unit_x = static_cast<float>(p[3]);
  grid.unit_y = static_cast<float>(p[2]);
  grid.step_x = follows_picture ? grid.unit_x / static_cast<float>(m[3]) : static_cast<float>(step_x);
  grid.step_y = follows_picture ? grid.unit_y / static_cast<float>(m[2]) : static_cast<float>(step_y);
  grid.clip = l.flag("clip", false);
  ORKNN_TRY_ASSIGN(const std::vector<float> sides, place_priors(grid));
  const Dims dims{m[2], m[3], std::ssize(grid.boxes), 4};
  std::vector<float> spread(sides.size());
  for (size_t i = 0; i < spread.size(); ++i) spread[i] = static_cast<float>(variances[i % 4]);
  return std::vector<TensorId>{l.add_constant("boxes", TensorData::from<float>(dims, sides)),
                               l.add_constant("variances", TensorData::from<float>(dims, spread))};
}

// --- offsets

// Middles and sides of boxes; those in pixels include their last one.
CentredBoxes centred(Layer& l, TensorId corners, double border) {
  const CentredBoxes plain = centred_from_corners(l, corners);
  if (border == 0) return plain;
  const TensorId width = l.add(plain.width, border), height = l.add(plain.height, border);
  return {l.add(box_column(l, corners, 0), l.mul(width, 0.5)), l.add(box_column(l, corners, 1), l.mul(height, 0.5)), width,
          height};
}

// What offsets are multiplied by: a tensor beside the priors, four numbers, or nothing. `axis` is that of the priors.
Result<TensorId> spread_of(Layer& l, int64_t axis) {
  if (l.has(1)) {
    ORKNN_TRY_ASSIGN(const TensorId own, l.operand(1));
    return l.unsqueeze(own, {axis});
  }
  const std::vector<double> stated = l.numbers("variance");
  if (stated.empty()) return TensorId{};
  if (stated.size() != 4) return invalid_model("illegal variance").expected("4 numbers").found(std::to_string(stated.size()));
  return l.add_constant("variance", TensorData::from<float>({1, 1, 4}, std::vector<float>(stated.begin(), stated.end())));
}

// Offsets [N, M, 4] of boxes [N, 4] from priors [M, 4].
TensorId encoded(Layer& l, TensorId priors, TensorId targets, TensorId spread, double border) {
  const CentredBoxes from = centred(l, l.unsqueeze(priors, {0}), border);
  const TensorId rows = l.unsqueeze(targets, {1});
  const CentredBoxes to = centred_from_corners(l, rows);
  const auto side = [&](TensorId own, TensorId prior) {
    return l.unary("Log", l.unary("Abs", l.div(border == 0 ? own : l.add(own, border), prior)));
  };
  const TensorId offsets = l.concat({l.div(l.sub(to.x, from.x), from.width), l.div(l.sub(to.y, from.y), from.height),
                                     side(to.width, from.width), side(to.height, from.height)},
                                    2);
  return spread ? l.div(offsets, spread) : offsets;
}

// Boxes [N, M, 4] from offsets.
TensorId decoded(Layer& l, TensorId priors, TensorId offsets, TensorId spread, int64_t axis, double border) {
  const CentredBoxes from = centred(l, l.unsqueeze(priors, {axis}), border);
  const CentredBoxes boxes = decode_boxes(l, spread ? l.mul(offsets, spread) : offsets, from, {});
  const TensorId corners = corners_from_centred(l, boxes);
  if (border == 0) return corners;
  const float last[] = {0, 0, 1, 1};
  return l.sub(corners, l.add_constant("last", TensorData::from<float>({1, 1, 4}, last)));
}

Result<TensorId> box_coder(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId priors, l.operand(0));
  ORKNN_TRY_ASSIGN(const TensorId targets, l.operand(2));
  const std::string how = l.text("code_type", "encode_center_size");
  const int64_t axis = l.integer("axis", 0);
  const double border = l.flag("box_normalized", true) ? 0 : 1;
  if (axis != 0 && axis != 1) return invalid_model("illegal axis of the priors").expected("0 or 1").found(std::to_string(axis));
  ORKNN_TRY_ASSIGN(const TensorId spread, spread_of(l, how == "decode_center_size" ? axis : 0));
  if (how == "decode_center_size") return decoded(l, priors, targets, spread, axis, border);
  if (how == "encode_center_size") return encoded(l, priors, targets, spread, border);
  return unsupported("unknown code of boxes").expected("encode_center_size or decode_center_size").found("'" + how + "'");
}

// --- regions

// The picture of every region, from how many each picture has.
Result<TensorId> pictures_of(Layer& l, TensorId regions, int64_t pictures) {
  ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(regions, "to find the pictures of regions", 2));
  if (!l.has(2)) {
    if (pictures != 1)
      return unsupported("it is not stated how many regions each of several pictures has").hint("pass boxes_num");
    return l.full(Dims{d[0]}, 0, DType::Int64);
  }
  ORKNN_TRY_ASSIGN(const TensorId counts, l.vector(2));
  const TensorId ends = l.emit("CumSum", {counts, l.add_int_scalar("axis", 0)});
  const TensorId is_past = l.binary("GreaterOrEqual", positions(l, d[0], 0, 2), l.reshape(ends, {1, -1}));
  return l.reduce("ReduceSum", l.cast(is_past, DType::Int64), {1}, false);
}

Result<TensorId> align_regions(Layer& l, TensorId x, TensorId regions) {
  ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(x, "to find the pictures of regions", 4));
  ORKNN_TRY_ASSIGN(const TensorId pictures, pictures_of(l, regions, d[0]));
  return roi_align(l, x, {regions, pictures},
                   {.height = l.integer("pooled_height", 1),
                    .width = l.integer("pooled_width", 1),
                    .scale = l.number("spatial_scale", 1),
                    .samples = l.integer("sampling_ratio", -1),
                    .aligned = l.flag("aligned", false)});
}
}  // namespace

std::span<const Row> box_rows() {
  static const Row rows[] = {
      {"prior_box", prior_box}, {"box_coder", box_coder, {.inputs = {3, 3}}}, {"roi_align", align_regions}};
  return rows;
}

}  // namespace orknn::importer::paddle
