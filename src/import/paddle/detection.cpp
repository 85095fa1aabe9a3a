// The ends of detectors: boxes of feature maps, suppression of boxes that overlap, and scores that fall where they do.
#include "import/lower/detection.h"

#include "import/lower/gather.h"
#include "import/lower/one_hot.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
// Boxes and scores of YOLO's feature map [N, anchors * (5 + classes), H, W], in pixels of pictures of size [N, 2].
Result<std::vector<TensorId>> yolo_box(Layer& l, TensorId x, TensorId sizes) {
  ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(x, "to place boxes"));
  const std::vector<int64_t> anchors = l.integers("anchors");
  const int64_t count = std::ssize(anchors) / 2, classes = l.integer("class_num", 0), down = l.integer("downsample_ratio", 32);
  if (l.flag("iou_aware", false)) return unsupported("yolo_box with iou_aware is not supported");
  if (d.size() != 4 || count < 1 || classes < 1 || down < 1 || d[1] != count * (5 + classes))
    return invalid_model("the map does not fit anchors and classes").found(to_string(d));
  const int64_t h = d[2], w = d[3];
  const TensorId map = l.reshape(x, {d[0], count, 5 + classes, h, w});
  const auto plane = [&](int64_t i, int64_t n) { return l.slice(map, 2, i, i + n); };
  const TensorId pixels = l.cast(sizes, DType::Float32);
  const auto side = [&](int64_t i) { return l.reshape(l.slice(pixels, 1, i, i + 1), {-1, 1, 1, 1, 1}); };
  const TensorId height = side(0), width = side(1);
  const double scale = l.number("scale_x_y", 1), shift = -0.5 * (scale - 1);
  const auto centre = [&](int64_t i, int64_t extent, int64_t axis, TensorId size) {
    const TensorId cell = l.cast(positions(l, extent, axis, 5), DType::Float32);
    const TensorId at = l.add(l.add(l.mul(l.unary("Sigmoid", plane(i, 1)), scale), shift), cell);
    return l.mul(l.div(at, static_cast<double>(extent)), size);
  };
  const auto half = [&](int64_t i, int64_t extent, size_t which, TensorId size) {
    std::vector<float> sides;
    for (int64_t a = 0; a < count; ++a)
      sides.push_back(static_cast<float>(anchors[static_cast<size_t>(2 * a) + which]) / static_cast<float>(2 * down * extent));
    const TensorId own = l.add_constant("anchors", TensorData::from<float>({1, count, 1, 1, 1}, sides));
    return l.mul(l.mul(l.unary("Exp", plane(i, 1)), own), size);
  };
  const TensorId cx = centre(0, w, 4, width), cy = centre(1, h, 3, height);
  const TensorId rx = half(2, w, 0, width), ry = half(3, h, 1, height);
  std::vector<TensorId> corners{l.sub(cx, rx), l.sub(cy, ry), l.add(cx, rx), l.add(cy, ry)};
  if (l.flag("clip_bbox", true)) {
    const TensorId zero = l.scalar_like(cx, 0);
    corners[0] = l.binary("Max", corners[0], zero);
    corners[1] = l.binary("Max", corners[1], zero);
    corners[2] = l.binary("Min", corners[2], l.sub(width, 1.0));
    corners[3] = l.binary("Min", corners[3], l.sub(height, 1.0));
  }
  const TensorId confidence = l.unary("Sigmoid", plane(4, 1));
  const TensorId is_box = l.with_scalar("GreaterOrEqual", confidence, l.number("conf_thresh", 0));
  const TensorId nothing = l.scalar_like(cx, 0);
  const TensorId boxes = l.where(is_box, l.concat(corners, 2), nothing);
  const TensorId scores = l.where(is_box, l.mul(l.unary("Sigmoid", plane(5, classes)), confidence), nothing);
  const auto rows = [&](TensorId v, int64_t n) { return l.reshape(l.transpose(v, {0, 1, 3, 4, 2}), {d[0], count * h * w, n}); };
  return std::vector<TensorId>{rows(boxes, 4), rows(scores, classes)};
}

// --- suppression

struct Picture {
  TensorId boxes, scores;  // [count, 4], [classes, count]
  int64_t count, classes;
  int64_t first;  // number of its first box among those of all pictures
};
// What survives in one picture.
struct Survivors {
  TensorId rows, places, count;  // [n, 6] of class, score and box; [n, 1] among the boxes of all pictures; [1]
};

// Boxes [N, M, 4] and scores [N, C, M]: rows of class, score and box; their places among all boxes; how many there are per
// picture.
Result<std::vector<TensorId>> in_each_picture(Layer& l, TensorId boxes, TensorId scores,
                                              Result<Survivors> (*choose)(Layer&, const Picture&)) {
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
    const TensorId own_scores = of_picture(scores), own_boxes = of_picture(boxes);
    ORKNN_TRY_ASSIGN(const Survivors own, choose(l, {own_boxes, own_scores, b[1], s[1], n * b[1]}));
    rows.push_back(own.rows);
    places.push_back(own.places);
    counts.push_back(own.count);
  }
  return std::vector<TensorId>{l.concat(rows, 0), l.concat(places, 0), l.concat(counts, 0)};
}

// All but the best `most` scores of each class are out.
TensorId best_of_class(Layer& l, TensorId scores, int64_t boxes, int64_t most) {
  if (most < 0 || most >= boxes) return scores;
  const std::vector<TensorId> best = l.top_k(scores, most, 1);
  const TensorId least = l.slice(best[0], 1, most - 1, most);
  return l.where(l.binary("GreaterOrEqual", scores, least), scores, l.scalar_like(scores, -1));
}

Result<Survivors> suppressed(Layer& l, const Picture& p) {
  TensorId scores = p.scores;
  const double threshold = l.number("score_threshold", 0);
  if (const int64_t background = l.integer("background_label", 0); background >= 0 && background < p.classes) {
    const TensorId none = l.full(Dims{1, p.count}, -1, l.dtype_of(scores));
    std::vector<TensorId> parts;
    if (background > 0) parts.push_back(l.slice(scores, 0, 0, background));
    parts.push_back(none);
    if (background + 1 < p.classes) parts.push_back(l.slice(scores, 0, background + 1, p.classes));
    scores = l.concat(parts, 0);
  }
  TensorId measured = p.boxes;
  if (!l.flag("normalized", true)) {  // boxes in pixels include their last one
    const float grown[] = {0, 0, 1, 1};
    measured = l.add(p.boxes, l.add_constant("grown", TensorData::from<float>({1, 4}, grown)));
  }
  const TensorId candidates = best_of_class(l, scores, p.count, l.integer("nms_top_k", -1));
  const TensorId found =
      suppress_boxes(l, measured, candidates, l.add_int_scalar("most", p.count),
                     l.add_scalar("overlap", l.number("nms_threshold", 0.3)), l.add_scalar("threshold", threshold));
  TensorId kept = found;  // rows of picture, class, box; classes in order, the best first
  const auto score_of = [&](TensorId rows) { return l.emit("GatherND", {scores, l.slice(rows, 1, 1, 3)}); };
  if (const int64_t most = l.integer("keep_top_k", -1); most >= 0) {
    const TensorId number = l.slice(l.unary("Shape", found), 0, 0, 1);
    const TensorId k = l.binary("Min", number, l.add_ints("keep_top_k", {most}));
    const TensorId best = l.top_k(score_of(found), k, 0)[1];
    const TensorId in_order = l.emit_all("TopK", {best, k}, {{"axis", int64_t{0}}, {"largest", int64_t{0}}}, 2)[0];
    kept = l.gather(found, in_order, 0);
  }
  const TensorId box = l.slice(kept, 1, 2, 3);
  const TensorId label = l.cast(l.slice(kept, 1, 1, 2), l.dtype_of(scores));
  const TensorId own = l.emit("GatherND", {p.boxes, box});
  Survivors s;
  s.rows = l.concat({label, l.unsqueeze(score_of(kept), {1}), own}, 1);
  s.places = l.cast(l.add(box, static_cast<double>(p.first)), DType::Int32);
  s.count = l.cast(l.slice(l.unary("Shape", kept), 0, 0, 1), DType::Int32);
  return s;
}

Result<std::vector<TensorId>> multiclass_nms(Layer& l, TensorId boxes, TensorId scores) {
  if (l.has(2))
    return unsupported("suppression of boxes in pictures of several sizes is not supported")
        .expected("boxes of rank 3 without rois_num");
  if (l.number("nms_eta", 1) != 1)
    return unsupported("a threshold that adapts is not supported")
        .expected("nms_eta of 1")
        .found(std::to_string(l.number("nms_eta", 1)));
  return in_each_picture(l, boxes, scores, suppressed);
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

// The best first; places count the boxes of this picture alone.
Survivors best_rows(Layer& l, TensorId scores, TensorId classes, TensorId places, TensorId boxes) {
  const TensorId kept = l.reshape(indices_of_nonzero(l, l.with_scalar("Greater", scores, l.number("post_threshold", 0))), {-1});
  const TensorId own = l.gather(scores, kept, 0);
  TensorId k = l.unary("Shape", own);
  if (const int64_t most = l.integer("keep_top_k", -1); most >= 0) k = l.binary("Min", k, l.add_ints("keep_top_k", {most}));
  const std::vector<TensorId> best = l.top_k(own, k, 0);
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

Result<Survivors> decayed(Layer& l, const Picture& p) {
  constexpr int64_t kMostPairs = int64_t{1} << 28;
  const std::vector<int64_t> looked_at = foreground(l, p.classes);
  const int64_t stated = l.integer("nms_top_k", -1), k = stated < 0 ? p.count : std::min(stated, p.count);
  const int64_t n = std::ssize(looked_at);
  if (n < 1 || k < 1) return invalid_model("there is nothing to choose from");
  if (k * k > kMostPairs / n)
    return unsupported("there are too many boxes to compare at once")
        .found(std::to_string(k) + " of each class")
        .hint("export with a smaller nms_top_k");
  const TensorId own = l.gather(p.scores, l.add_ints("classes", looked_at), 0);
  const TensorId none = l.scalar_like(p.scores, -1);
  const TensorId valid = l.where(l.with_scalar("Greater", own, l.number("score_threshold", 0)), own, none);
  const std::vector<TensorId> best = l.top_k(valid, k, 1);
  const TensorId left = l.mul(best[0], decay(l, l.gather(p.boxes, best[1], 0), k));
  const TensorId fallen = l.where(l.with_scalar("Less", best[0], 0), none, left);
  const TensorId labels = l.expand(l.reshape(l.add_ints("labels", looked_at), {-1, 1}), Dims{n, k});
  Survivors s = best_rows(l, l.reshape(fallen, {-1}), l.reshape(labels, {-1}), l.reshape(best[1], {-1}), p.boxes);
  s.places = l.cast(l.add(s.places, static_cast<double>(p.first)), DType::Int32);
  return s;
}
Result<std::vector<TensorId>> matrix_nms(Layer& l, TensorId boxes, TensorId scores) {
  return in_each_picture(l, boxes, scores, decayed);
}

}  // namespace

std::span<const Row> detection_rows() {
  static const Row rows[] = {{"yolo_box", yolo_box}, {"multiclass_nms3", multiclass_nms}, {"matrix_nms", matrix_nms}};
  return rows;
}

}  // namespace orknn::importer::paddle
