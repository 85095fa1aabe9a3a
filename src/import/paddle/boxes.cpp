// Boxes of detectors: priors, offsets around them, regions of feature maps, and scores that fall where boxes overlap.
#include <cmath>

#include "import/lower/detection.h"
#include "import/lower/gather.h"
#include "import/lower/one_hot.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
// --- priors

bool is_one(double ratio) { return std::abs(ratio - 1) < 1e-6; }

// 1 first, then every ratio that is new, each followed by its inverse where boxes are flipped.
std::vector<double> expanded_ratios(const std::vector<double>& stated, bool flip) {
  std::vector<double> all{1};
  for (double ratio : stated) {
    if (std::any_of(all.begin(), all.end(), [&](double have) { return std::abs(have - ratio) < 1e-6; })) continue;
    all.push_back(ratio);
    if (flip) all.push_back(1 / ratio);
  }
  return all;
}

Result<std::vector<PriorGrid::Size>> prior_sizes(const Layer& l) {
  const std::vector<double> least = l.numbers("min_sizes"), most = l.numbers("max_sizes");
  const std::vector<double> ratios = expanded_ratios(l.numbers("aspect_ratios"), l.flag("flip", false));
  if (least.empty() || (!most.empty() && most.size() != least.size()))
    return invalid_model("as many max_sizes as min_sizes are needed, or none")
        .expected(std::to_string(least.size()))
        .found(std::to_string(most.size()));
  const bool squares_first = l.flag("min_max_aspect_ratios_order", false);
  std::vector<PriorGrid::Size> sizes;
  const auto add = [&](double width, double height) { sizes.push_back({static_cast<float>(width), static_cast<float>(height)}); };
  for (size_t i = 0; i < least.size(); ++i) {
    const auto between = [&] {
      if (!most.empty()) add(std::sqrt(least[i] * most[i]), std::sqrt(least[i] * most[i]));
    };
    if (squares_first) {
      add(least[i], least[i]);
      between();
    }
    for (double ratio : ratios) {
      if (ratio <= 0) return invalid_model("an aspect ratio must be positive").found(std::to_string(ratio));
      if (!squares_first || !is_one(ratio)) add(least[i] * std::sqrt(ratio), least[i] / std::sqrt(ratio));
    }
    if (!squares_first) between();
  }
  return sizes;
}

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
  ORKNN_TRY_ASSIGN(grid.boxes, prior_sizes(l));
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
  ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(regions, "to find the pictures of regions"));
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
  ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(x, "to find the pictures of regions"));
  if (d.size() != 4) return invalid_model("regions are cut out of maps").expected("rank 4").found(to_string(d));
  ORKNN_TRY_ASSIGN(const TensorId pictures, pictures_of(l, regions, d[0]));
  return roi_align(l, x, {regions, pictures},
                   {.height = l.integer("pooled_height", 1),
                    .width = l.integer("pooled_width", 1),
                    .scale = l.number("spatial_scale", 1),
                    .samples = l.integer("sampling_ratio", -1),
                    .aligned = l.flag("aligned", false)});
}

// --- scores that fall

// How much boxes [C, k, 4] overlap, [C, k, k].
TensorId overlaps(Layer& l, TensorId boxes, double border) {
  const auto column = [&](int64_t i, int64_t axis) { return l.unsqueeze(l.squeeze(box_column(l, boxes, i), {2}), {axis}); };
  const auto shared = [&](int64_t low, int64_t high) {
    return l.sub(l.binary("Min", column(high, 1), column(high, 2)), l.binary("Max", column(low, 1), column(low, 2)));
  };
  const TensorId width = shared(0, 2), height = shared(1, 3);
  const TensorId least = l.binary("Min", width, height);
  const TensorId common =
      l.where(l.with_scalar("Less", least, 0), l.scalar_like(boxes, 0), l.mul(l.add(width, border), l.add(height, border)));
  const auto area = [&](int64_t axis) {
    const auto side = [&](int64_t low, int64_t high) { return l.sub(column(high, axis), column(low, axis)); };
    const TensorId w = side(0, 2), h = side(1, 3);
    return l.where(l.with_scalar("Less", l.binary("Min", w, h), 0), l.scalar_like(boxes, 0),
                   l.mul(l.add(w, border), l.add(h, border)));
  };
  const TensorId both = l.sub(l.add(area(1), area(2)), common);
  const TensorId nothing = l.with_scalar("LessOrEqual", both, 0);
  return l.where(nothing, l.scalar_like(boxes, 0), l.div(common, l.where(nothing, l.scalar_like(boxes, 1), both)));
}

// True where the second of the last two axes is before the first, [1, k, k].
TensorId is_earlier(Layer& l, int64_t k) { return l.binary("Less", positions(l, k, 2, 3), positions(l, k, 1, 3)); }

// What is left of scores that are in descending order: the least of what the boxes before leave.
TensorId decay(Layer& l, TensorId boxes, int64_t k) {
  const TensorId zero = l.scalar_like(boxes, 0), one = l.scalar_like(boxes, 1);
  const TensorId earlier = is_earlier(l, k);
  const TensorId own = l.where(earlier, overlaps(l, boxes, l.flag("normalized", true) ? 0 : 1), zero);
  // The most that a box is covered itself by boxes before it.
  const TensorId most = l.unsqueeze(l.reduce("ReduceMax", own, {2}, false), {1});
  TensorId left;
  if (l.flag("use_gaussian", false))
    left = l.unary("Exp", l.mul(l.sub(l.mul(most, most), l.mul(own, own)), l.number("gaussian_sigma", 2)));
  else
    left = l.div(l.sub(one, own), l.sub(one, most));
  return l.reduce("ReduceMin", l.where(earlier, left, one), {2}, false);
}

// Rows of class, score and box of one picture, the best first; their places among its boxes; how many there are.
struct Kept {
  TensorId rows, places, count;  // [n, 6], [n, 1], [1]
};
Kept best_rows(Layer& l, TensorId scores, TensorId classes, TensorId places, TensorId boxes) {
  const TensorId kept = l.reshape(indices_of_nonzero(l, l.with_scalar("Greater", scores, l.number("post_threshold", 0))), {-1});
  const TensorId own = l.gather(scores, kept, 0);
  TensorId k = l.unary("Shape", own);
  if (const int64_t most = l.integer("keep_top_k", -1); most >= 0) k = l.binary("Min", k, l.add_ints("keep_top_k", {most}));
  const std::vector<TensorId> best = l.emit_all("TopK", {own, k}, {{"axis", int64_t{0}}}, 2);
  const TensorId at = l.gather(kept, best[1], 0);
  const TensorId place = l.gather(places, at, 0);
  const TensorId label = l.cast(l.gather(classes, at, 0), l.dtype_of(scores));
  return {l.concat({l.unsqueeze(label, {1}), l.unsqueeze(best[0], {1}), l.gather(boxes, place, 0)}, 1), l.unsqueeze(place, {1}),
          l.cast(k, DType::Int32)};
}

// The classes that are looked at: all but the background.
std::vector<int64_t> foreground(const Layer& l, int64_t classes) {
  std::vector<int64_t> all;
  for (int64_t c = 0; c < classes; ++c)
    if (c != l.integer("background_label", 0)) all.push_back(c);
  return all;
}

Result<Kept> decayed_picture(Layer& l, TensorId boxes, TensorId scores, int64_t count, int64_t classes) {
  constexpr int64_t kMostPairs = int64_t{1} << 28;
  const std::vector<int64_t> looked_at = foreground(l, classes);
  const int64_t stated = l.integer("nms_top_k", -1), k = stated < 0 ? count : std::min(stated, count);
  const int64_t n = std::ssize(looked_at);
  if (n < 1 || k < 1) return invalid_model("there is nothing to choose from");
  if (k * k > kMostPairs / n)
    return unsupported("there are too many boxes to compare at once")
        .found(std::to_string(k) + " of each class")
        .hint("export with a smaller nms_top_k");
  const TensorId own = l.gather(scores, l.add_ints("classes", looked_at), 0);
  const TensorId none = l.scalar_like(scores, -1);
  const TensorId valid = l.where(l.with_scalar("Greater", own, l.number("score_threshold", 0)), own, none);
  const std::vector<TensorId> best = l.emit_all("TopK", {valid, l.add_ints("k", {k})}, {{"axis", int64_t{1}}}, 2);
  const TensorId left = l.mul(best[0], decay(l, l.gather(boxes, best[1], 0), k));
  const TensorId fallen = l.where(l.with_scalar("Less", best[0], 0), none, left);
  const TensorId labels = l.expand(l.reshape(l.add_ints("labels", looked_at), {-1, 1}), Dims{n, k});
  return best_rows(l, l.reshape(fallen, {-1}), l.reshape(labels, {-1}), l.reshape(best[1], {-1}), boxes);
}

// Boxes [N, M, 4] and scores [N, C, M]: rows of class, score and box; their places among all boxes; how many there are per
// picture.
Result<std::vector<TensorId>> matrix_nms(Layer& l, TensorId boxes, TensorId scores) {
  ORKNN_TRY_ASSIGN(const Dims b, l.need_dims(boxes, "to compare boxes"));
  ORKNN_TRY_ASSIGN(const Dims s, l.need_dims(scores, "to compare boxes"));
  if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
    return shape_mismatch("boxes and scores do not fit")
        .expected("[N,M,4] and [N,C,M]")
        .found(to_string(b) + " and " + to_string(s));
  if (b[0] < 1 || b[0] > 64)
    return unsupported("the number of pictures is not supported").expected("1 to 64").found(std::to_string(b[0]));
  std::vector<TensorId> rows, places, counts;
  for (int64_t n = 0; n < b[0]; ++n) {
    const auto of_picture = [&](TensorId x) { return l.squeeze(l.slice(x, 0, n, n + 1), {0}); };
    ORKNN_TRY_ASSIGN(const Kept own, decayed_picture(l, of_picture(boxes), of_picture(scores), b[1], s[1]));
    rows.push_back(own.rows);
    places.push_back(l.cast(l.add(own.places, static_cast<double>(n * b[1])), DType::Int32));
    counts.push_back(own.count);
  }
  return std::vector<TensorId>{l.concat(rows, 0), l.concat(places, 0), l.concat(counts, 0)};
}
}  // namespace

std::span<const Row> box_rows() {
  static const Row rows[] = {{"prior_box", prior_box},
                             {"box_coder", box_coder, {.inputs = {3, 3}}},
                             {"roi_align", align_regions},
                             {"matrix_nms", matrix_nms}};
  return rows;
}

}  // namespace orknn::importer::paddle
