// The ends of detectors.
#include "import/lower/detection.h"

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

// What survives in one picture.
struct Survivors {
  TensorId rows, indices, count;  // [n, 6] of class, score and box; [n, 1]; [1]
};

// All but the best `most` scores of each class are out.
TensorId best_of_class(Layer& l, TensorId scores, int64_t boxes, int64_t most) {
  if (most < 0 || most >= boxes) return scores;
  const std::vector<TensorId> best = l.emit_all("TopK", {scores, l.add_ints("k", {most})}, {{"axis", int64_t{1}}}, 2);
  const TensorId least = l.slice(best[0], 1, most - 1, most);
  return l.where(l.binary("GreaterOrEqual", scores, least), scores, l.scalar_like(scores, -1));
}

Result<Survivors> survivors_of(Layer& l, TensorId boxes, TensorId scores, int64_t count, int64_t classes, int64_t picture) {
  const double threshold = l.number("score_threshold", 0);
  if (const int64_t background = l.integer("background_label", 0); background >= 0 && background < classes) {
    const TensorId none = l.full(Dims{1, count}, -1, l.dtype_of(scores));
    std::vector<TensorId> parts;
    if (background > 0) parts.push_back(l.slice(scores, 0, 0, background));
    parts.push_back(none);
    if (background + 1 < classes) parts.push_back(l.slice(scores, 0, background + 1, classes));
    scores = l.concat(parts, 0);
  }
  TensorId measured = boxes;
  if (!l.flag("normalized", true)) {  // boxes in pixels include their last one
    const float grown[] = {0, 0, 1, 1};
    measured = l.add(boxes, l.add_constant("grown", TensorData::from<float>({1, 4}, grown)));
  }
  const TensorId candidates = best_of_class(l, scores, count, l.integer("nms_top_k", -1));
  const TensorId found =
      suppress_boxes(l, measured, candidates, l.add_int_scalar("most", count),
                     l.add_scalar("overlap", l.number("nms_threshold", 0.3)), l.add_scalar("threshold", threshold));
  TensorId kept = found;  // rows of picture, class, box; classes in order, the best first
  const auto score_of = [&](TensorId rows) { return l.emit("GatherND", {scores, l.slice(rows, 1, 1, 3)}); };
  if (const int64_t most = l.integer("keep_top_k", -1); most >= 0) {
    const TensorId number = l.slice(l.unary("Shape", found), 0, 0, 1);
    const TensorId k = l.binary("Min", number, l.add_ints("keep_top_k", {most}));
    const TensorId best = l.emit_all("TopK", {score_of(found), k}, {{"axis", int64_t{0}}}, 2)[1];
    const TensorId in_order = l.emit_all("TopK", {best, k}, {{"axis", int64_t{0}}, {"largest", int64_t{0}}}, 2)[0];
    kept = l.gather(found, in_order, 0);
  }
  const TensorId box = l.slice(kept, 1, 2, 3);
  const TensorId label = l.cast(l.slice(kept, 1, 1, 2), l.dtype_of(scores));
  const TensorId own = l.emit("GatherND", {boxes, box});
  Survivors s;
  s.rows = l.concat({label, l.unsqueeze(score_of(kept), {1}), own}, 1);
  s.indices = l.cast(l.add(box, static_cast<double>(picture * count)), DType::Int32);
  s.count = l.cast(l.slice(l.unary("Shape", kept), 0, 0, 1), DType::Int32);
  return s;
}

// Boxes [N, M, 4] and scores [N, C, M]: rows of class, score and box; their places among all boxes; how many there are per
// picture.
Result<std::vector<TensorId>> multiclass_nms(Layer& l, TensorId boxes, TensorId scores) {
  if (l.has(2))
    return unsupported("suppression of boxes in pictures of several sizes is not supported")
        .expected("boxes of rank 3 without rois_num");
  if (l.number("nms_eta", 1) != 1)
    return unsupported("a threshold that adapts is not supported")
        .expected("nms_eta of 1")
        .found(std::to_string(l.number("nms_eta", 1)));
  ORKNN_TRY_ASSIGN(const Dims b, l.need_dims(boxes, "to suppress boxes"));
  ORKNN_TRY_ASSIGN(const Dims s, l.need_dims(scores, "to suppress boxes"));
  if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
    return shape_mismatch("boxes and scores do not fit")
        .expected("[N,M,4] and [N,C,M]")
        .found(to_string(b) + " and " + to_string(s));
  if (b[0] > 64) return unsupported("suppression in so many pictures").expected("at most 64").found(std::to_string(b[0]));
  std::vector<TensorId> rows, indices, counts;
  for (int64_t n = 0; n < b[0]; ++n) {
    const auto of_picture = [&](TensorId x) { return l.squeeze(l.slice(x, 0, n, n + 1), {0}); };
    ORKNN_TRY_ASSIGN(const Survivors own, survivors_of(l, of_picture(boxes), of_picture(scores), b[1], s[1], n));
    rows.push_back(own.rows);
    indices.push_back(own.indices);
    counts.push_back(own.count);
  }
  if (rows.empty()) return invalid_model("there are no pictures");
  return std::vector<TensorId>{l.concat(rows, 0), l.concat(indices, 0), l.concat(counts, 0)};
}
}  // namespace

std::span<const Row> detection_rows() {
  static const Row rows[] = {{"yolo_box", yolo_box}, {"multiclass_nms3", multiclass_nms}};
  return rows;
}

}  // namespace orknn::importer::paddle
