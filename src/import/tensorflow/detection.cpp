// Non-maximum suppression in all its versions. How many boxes survive is known only when the model runs, unless the graph asks
// for padding to a fixed number.
#include "import/lower/detection.h"

#include <algorithm>
#include <limits>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
constexpr double kLowest = -std::numeric_limits<float>::max();

// One element along an axis, without it.
TensorId element(Layer& l, TensorId x, int64_t axis, int64_t i) { return l.squeeze(l.slice(x, axis, i, i + 1), {axis}); }

// The first version has its threshold as attribute, the third adds the least score, the fourth padding, the fifth scores.
template <int Version>
Result<std::vector<TensorId>> non_max_suppression(Layer& l, TensorId boxes, TensorId scores, TensorId most) {
  TensorId overlap = l.add_scalar("overlap", l.float_or("iou_threshold", 0.5)), threshold = l.add_scalar("threshold", kLowest);
  if (Version > 1) {
    ORKNN_TRY_ASSIGN(overlap, l.operand(3));
  }
  if (Version > 2) {
    ORKNN_TRY_ASSIGN(threshold, l.operand(4));
  }
  if (Version > 4) {
    ORKNN_TRY_ASSIGN(const double sigma, l.number(5, "to suppress"));
    if (sigma != 0)
      return unsupported("soft suppression is not supported").expected("soft_nms_sigma 0").found(std::to_string(sigma));
  }
  TensorId kept = element(l, suppress_boxes(l, boxes, l.unsqueeze(scores, {0}), most, overlap, threshold), 1, 2);
  const TensorId count = l.cast(l.unary("Size", kept), DType::Int32);
  TensorId kept_scores = l.gather(scores, kept, 0);
  if (Version > 3 && l.bool_or("pad_to_max_output_size", false)) {
    ORKNN_TRY_ASSIGN(const int64_t size, l.integer(2, "to pad the result"));
    if (size < 0 || size > (1 << 24)) return invalid_model("the number of boxes is out of range").found(std::to_string(size));
    kept = of_length(l, kept, size, {});
    kept_scores = of_length(l, kept_scores, size, {});
  }
  std::vector<TensorId> outputs{l.cast(kept, DType::Int32)};
  if (Version > 4) outputs.push_back(kept_scores);
  if (Version > 3) outputs.push_back(count);
  return outputs;
}

// What was found in one picture, class by class or in all classes at once.
struct Found {
  std::vector<TensorId> boxes, scores, classes;
};

// The best boxes of all classes together, per picture: survivors of every class, then the highest scores, then zeros.
Result<std::vector<TensorId>> combined_nms(Layer& l, TensorId boxes, TensorId scores) {
  ORKNN_TRY_ASSIGN(const int64_t per_class, l.integer(2, "to size the result"));
  ORKNN_TRY_ASSIGN(int64_t total, l.integer(3, "to size the result"));
  ORKNN_TRY_ASSIGN(const TensorId overlap, l.operand(4));
  ORKNN_TRY_ASSIGN(const TensorId threshold, l.operand(5));
  ORKNN_TRY_ASSIGN(const Dims box_dims, l.need_dims(boxes, "to suppress"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(scores, "to suppress"));
  if (box_dims.size() != 4 || dims.size() != 3 || box_dims[3] != 4 || box_dims[0] != dims[0] || box_dims[1] != dims[1] ||
      (box_dims[2] != 1 && box_dims[2] != dims[2]))
    return shape_mismatch("boxes and scores do not fit together").found(to_string(box_dims) + " and " + to_string(dims));
  constexpr int64_t kMost = 1 << 20;
  if (per_class < 1 || total < 1 || per_class > kMost || total > kMost || dims[0] < 1 || dims[0] > 1024 || dims[2] < 1 ||
      dims[2] > kMost)
    return invalid_model("a size is out of range").found(std::to_string(per_class) + " and " + std::to_string(total));
  if (l.bool_or("pad_per_class", false)) total = std::min(total, per_class * dims[2]);
  const TensorId most = l.add_int_scalar("most", per_class);
  // Fillers rank after every survivor.
  const auto padded = [&](std::vector<TensorId> parts, const Dims& filler, double value) {
    parts.push_back(l.expand(l.add_scalar("filler", value), filler));
    return l.concat(std::move(parts), 0);
  };
  std::vector<TensorId> results[4];
  for (int64_t b = 0; b < dims[0]; ++b) {
    const TensorId picture_scores = l.transpose(element(l, scores, 0, b), {1, 0});
    const TensorId picture_boxes = element(l, boxes, 0, b);  // [n, 1 or classes, 4]
    Found found;
    const auto add = [&](TensorId own_boxes, TensorId own_scores, int64_t first_class) {
      const TensorId rows = suppress_boxes(l, own_boxes, own_scores, most, overlap, threshold);
      found.scores.push_back(l.emit("GatherND", {l.cast(own_scores, DType::Float32), l.slice(rows, 1, 1, 3)}));
      found.boxes.push_back(l.gather(l.cast(own_boxes, DType::Float32), element(l, rows, 1, 2), 0));
      found.classes.push_back(l.add(l.cast(element(l, rows, 1, 1), DType::Float32), static_cast<double>(first_class)));
    };
    if (box_dims[2] == 1) {
      add(l.squeeze(picture_boxes, {1}), picture_scores, 0);
    } else {
      for (int64_t c = 0; c < dims[2]; ++c) add(element(l, picture_boxes, 1, c), l.slice(picture_scores, 0, c, c + 1), c);
    }
    const auto best = l.top_k(padded(found.scores, {total}, kLowest), total, 0);
    const TensorId is_real = l.with_scalar("Greater", best[0], kLowest);
    const auto picked = [&](TensorId x) { return l.unsqueeze(l.gather(x, best[1], 0), {0}); };
    const TensorId chosen = picked(padded(found.boxes, {total, 4}, 0));
    results[0].push_back(l.bool_or("clip_boxes", true) ? l.clip(chosen, 0, 1) : chosen);
    results[1].push_back(l.unsqueeze(l.where(is_real, best[0], l.add_scalar("zero", 0)), {0}));
    results[2].push_back(picked(padded(found.classes, {total}, 0)));
    results[3].push_back(l.reduce("ReduceSum", l.cast(is_real, DType::Int32), {0}, true));
  }
  std::vector<TensorId> outputs;
  for (auto& parts : results) outputs.push_back(l.concat(std::move(parts), 0));
  return outputs;
}
}  // namespace

std::span<const Row> detection_rows() {
  static const Row rows[] = {
      {"NonMaxSuppression", non_max_suppression<1>},   {"NonMaxSuppressionV2", non_max_suppression<2>},
      {"NonMaxSuppressionV3", non_max_suppression<3>}, {"NonMaxSuppressionV4", non_max_suppression<4>},
      {"NonMaxSuppressionV5", non_max_suppression<5>}, {"CombinedNonMaxSuppression", combined_nms},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
