// Selection of boxes. What is selected depends on the numbers, so lists are filled up to a fixed length.
#include "import/lower/detection.h"

#include <algorithm>
#include <cmath>

#include "import/lower/strided_slice.h"
#include "import/tflite/flexbuffer.h"
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// Lists of more boxes than this are taken for damage.
constexpr int64_t kMaxBoxes = 1 << 20;

// The best boxes that overlap little, as a list of fixed length: what is missing at its end is 0. Outputs are places, scores in
// the newer form, and how many there are.
Result<std::vector<TensorId>> suppress(Layer& l, bool with_scores) {
  ORKNN_TRY_ASSIGN(const TensorId boxes, l.operand(0));
  ORKNN_TRY_ASSIGN(const TensorId scores, l.operand(1));
  ORKNN_TRY_ASSIGN(const int64_t limit, l.integer(2, "to size the outputs"));
  ORKNN_TRY_ASSIGN(const TensorId overlap, l.operand(3));
  ORKNN_TRY_ASSIGN(const TensorId least, l.operand(4));
  if (limit < 1 || limit > kMaxBoxes) return invalid_model("the number of boxes is impossible").found(std::to_string(limit));
  const TensorId picked = suppress_boxes(l, boxes, l.unsqueeze(scores, {0}), l.add_int_scalar("limit", limit), overlap, least);
  const TensorId which = l.gather(picked, l.add_int_scalar("box", 2), 1), count = l.reshape(l.unary("Shape", which), {});
  const TensorId places = of_length(l, which, limit, {});
  if (!with_scores) return std::vector{places, count};
  return std::vector{places, of_length(l, l.gather(scores, which, 0), limit, {}), count};
}
Result<std::vector<TensorId>> non_max_suppression(Layer& l) { return suppress(l, false); }
Result<std::vector<TensorId>> soft_non_max_suppression(Layer& l) {
  ORKNN_TRY_ASSIGN(const double sigma, l.number(5, "to know how boxes are suppressed"));
  if (sigma != 0)
    return unsupported("suppression that lowers scores instead of dropping boxes is not supported")
        .expected("a sigma of 0")
        .found(std::to_string(sigma));
  return suppress(l, true);
}

// --- TFLite_Detection_PostProcess: decodes boxes around anchors, then selects

struct Detection {
  int64_t limit, per_box, per_class, classes;
  bool regular;  // selects for each class alone, then takes the best of all
  double least, overlap;
  BoxCode code;  // y, x, h, w
};

Result<Detection> detection_options(Layer& l) {
  const FlexMap options(l.op().custom_options);
  if (!options.is_map()) return invalid_model("the options of the custom operator cannot be read").expected("a FlexBuffers map");
  Status missing;
  const auto number = [&](std::string_view key, std::optional<double> fallback = {}) {
    const auto value = options.number(key);
    if ((!value && !fallback) || (value && !std::isfinite(*value)))
      missing = invalid_model("the option '" + std::string(key) + "' is missing");
    return value && std::isfinite(*value) ? *value : fallback.value_or(1);
  };
  const auto integer = [&](std::string_view key, std::optional<double> fallback = {}) {
    const double value = number(key, fallback);
    if (!(value >= 1 && value <= kMaxBoxes))
      missing = invalid_model("the option '" + std::string(key) + "' is impossible").found(std::to_string(value));
    return static_cast<int64_t>(std::clamp<double>(value, 1, kMaxBoxes));
  };
  Detection d{integer("max_detections"),
              integer("max_classes_per_detection"),
              integer("detections_per_class", 100),
              integer("num_classes"),
              number("use_regular_nms", 0) != 0,
              number("nms_score_threshold"),
              number("nms_iou_threshold"),
              {.scales = {number("y_scale"), number("x_scale"), number("h_scale"), number("w_scale")}, .divides = true}};
  for (double s : d.code.scales)
    if (s == 0) missing = invalid_model("a scale of the boxes is 0");
  if (!missing) return missing;
  return d;
}

// Rows (batch, class, box) for scores [classes, boxes].
TensorId select_boxes(Layer& l, TensorId boxes, TensorId scores, int64_t limit, const Detection& d) {
  // Ours takes scores above the threshold, theirs also those that equal it.
  const float least = std::nextafter(static_cast<float>(d.least), -INFINITY);
  return suppress_boxes(l, boxes, scores, l.add_int_scalar("limit", limit), l.add_scalar("overlap", d.overlap),
                        l.add_scalar("least", least));
}

struct Found {
  TensorId boxes, classes, scores, count;
};

// Each class alone, then the best of all. Missing ones lose against all others and become zeros.
Found best_of_classes(Layer& l, TensorId boxes, TensorId scores, int64_t candidates, int64_t slots, const Detection& d) {
  const TensorId by_class = l.transpose(scores, {1, 0});
  const TensorId where = l.slice(select_boxes(l, boxes, by_class, d.per_class, d), 1, 1, 3);  // (class, box)
  const TensorId all = of_length(l, l.emit("GatherND", {by_class, where}), candidates, {}, -INFINITY);
  const std::vector<TensorId> best = l.top_k(all, d.limit, 0);
  const TensorId exists = l.with_scalar("Greater", best[0], -INFINITY), zero = l.add_scalar("zero", 0);
  const TensorId chosen = l.gather(of_length(l, where, candidates, {2}), best[1], 0);
  const auto column = [&](int64_t i) { return l.gather(chosen, l.add_int_scalar("column", i), 1); };
  const TensorId corners = l.where(l.unsqueeze(exists, {1}), l.gather(boxes, column(1), 0), zero);
  return {of_length(l, corners, slots, {4}), of_length(l, l.where(exists, l.cast(column(0), DType::Float32), zero), slots, {}),
          of_length(l, l.where(exists, best[0], zero), slots, {}),
          l.reduce("ReduceSum", l.cast(exists, DType::Float32), {0}, false)};
}

// By the best class of each box, which has `per_box` slots, of which those of its best classes are used.
Found best_of_boxes(Layer& l, TensorId boxes, TensorId scores, int64_t slots, const Detection& d) {
  const int64_t kept = std::min(d.per_box, d.classes);
  const std::vector<TensorId> best = l.top_k(scores, kept, 1);
  const TensorId top = l.transpose(l.slice(best[0], 1, 0, 1), {1, 0});
  const TensorId rows = l.gather(select_boxes(l, boxes, top, d.limit, d), l.add_int_scalar("box", 2), 1);
  const auto spread = [&](TensorId values) {
    return l.reshape(pad(l, of_length(l, l.gather(values, rows, 0), d.limit, {kept}), {0, 0, 0, d.per_box - kept}), {slots});
  };
  const TensorId corners = l.unsqueeze(of_length(l, l.gather(boxes, rows, 0), d.limit, {4}), {1});
  const TensorId copies = pad(l, l.expand(corners, Dims{d.limit, kept, 4}), {0, 0, 0, 0, d.per_box - kept, 0});
  return {l.reshape(copies, {slots, 4}), spread(best[1]), spread(best[0]), l.unary("Shape", rows)};
}

Result<std::vector<TensorId>> detection_post_process(Layer& l, TensorId encoded, TensorId predictions, TensorId anchors) {
  ORKNN_TRY_ASSIGN(const Detection d, detection_options(l));
  ORKNN_TRY_ASSIGN(const Dims shape, l.need_dims(encoded, "to decode it"));
  ORKNN_TRY_ASSIGN(const Dims classes, l.need_dims(predictions, "to select by it"));
  if (shape.size() != 3 || shape[0] != 1 || shape[2] < 4 || classes.size() != 3 || classes[0] != 1 || classes[1] != shape[1] ||
      classes[2] < d.classes || classes[2] > d.classes + 1)
    return invalid_model("boxes and scores do not fit")
        .expected("[1,n,4] and [1,n,classes]")
        .found(to_string(shape) + " and " + to_string(classes) + " for " + std::to_string(d.classes) + " classes");
  const int64_t slots = d.limit * d.per_box;
  const int64_t candidates = std::max(d.limit, std::min(d.per_class, shape[1]) * d.classes);  // of the regular selection
  if (slots > kMaxBoxes || (d.regular && candidates > 16 * kMaxBoxes))
    return unsupported("there are too many boxes").expected("at most " + std::to_string(kMaxBoxes)).found(std::to_string(slots));
  const CentredBoxes decoded = decode_boxes(l, l.squeeze(encoded, {0}), columns_of_centred(l, anchors), d.code);
  const TensorId boxes = corners_from_centred(l, decoded);
  const TensorId scores = l.slice(l.squeeze(predictions, {0}), 1, classes[2] - d.classes, classes[2]);  // without the background
  const Found f = d.regular ? best_of_classes(l, boxes, scores, candidates, slots, d) : best_of_boxes(l, boxes, scores, slots, d);
  return std::vector{l.unsqueeze(f.boxes, {0}), l.unsqueeze(l.cast(f.classes, DType::Float32), {0}), l.unsqueeze(f.scores, {0}),
                     l.reshape(l.cast(f.count, DType::Float32), {1})};
}
}  // namespace

std::span<const Row> detection_rows() {
  static const Row rows[] = {
      {"NON_MAX_SUPPRESSION_V4", non_max_suppression},
      {"NON_MAX_SUPPRESSION_V5", soft_non_max_suppression},
  };
  return rows;
}

std::span<const Row> custom_detection_rows() {
  static const Row rows[] = {{"TFLite_Detection_PostProcess", detection_post_process}};
  return rows;
}

}  // namespace orknn::importer::tflite
