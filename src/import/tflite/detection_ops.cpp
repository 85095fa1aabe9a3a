// Selection of boxes. What is selected depends on the numbers, so lists are filled up to a fixed length.
#include <algorithm>
#include <cmath>

#include "import/tflite/flexbuffer.h"
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// Lists of more boxes than this are taken for damage.
constexpr int64_t kMaxBoxes = 1 << 20;

// The first axis filled up with `fill` and cut to `length`.
TensorId filled(Layer& l, TensorId list, int64_t length, Dims rest, double fill = 0) {
  rest.insert(rest.begin(), length);
  TensorData missing = TensorData::zeros(l.dtype_of(list), rest);
  if (fill != 0) {
    const std::vector<float> values(static_cast<size_t>(element_count(rest)), static_cast<float>(fill));
    missing = convert(TensorData::from<float>(rest, values).view(), l.dtype_of(list));
  }
  const TensorId longer = l.emit("Concat", {list, l.add_constant("missing", std::move(missing))}, {{"axis", int64_t{0}}});
  return l.reshape(l.slice(longer, {0}, {length}, {0}), rest);
}

// The best boxes that overlap little, as a list of fixed length: what is missing at its end is 0.
Status non_max_suppression(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId boxes, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId scores, l.real(1));
  ORKNN_TRY_ASSIGN(const int64_t limit, l.int_scalar(2, "to size the outputs"));
  ORKNN_TRY_ASSIGN(const TensorId overlap, l.real(3));
  ORKNN_TRY_ASSIGN(const TensorId least, l.real(4));
  const bool soft = l.op().name == "NON_MAX_SUPPRESSION_V5";
  if (soft) {
    ORKNN_TRY_ASSIGN(const double sigma, l.number(5, "to know how boxes are suppressed"));
    if (sigma != 0)
      return unsupported("suppression that lowers scores instead of dropping boxes is not supported")
          .expected("a sigma of 0")
          .found(std::to_string(sigma));
  }
  if (limit < 1 || limit > kMaxBoxes) return invalid_model("the number of boxes is impossible").found(std::to_string(limit));
  const TensorId picked =
      l.emit("NonMaxSuppression", {l.unsqueeze(boxes, {0}), l.unsqueeze(scores, {0, 1}), l.add_ints("limit", {limit}),
                                   l.reshape(overlap, {1}), l.reshape(least, {1})});
  const TensorId which = l.emit("Gather", {picked, l.add_int_scalar("box", 2)}, {{"axis", int64_t{1}}});
  ORKNN_TRY(l.set(0, filled(l, which, limit, {})));
  if (soft) ORKNN_TRY(l.set(1, filled(l, l.emit("Gather", {scores, which}, {{"axis", int64_t{0}}}), limit, {})));
  return l.set(soft ? 2 : 1, l.reshape(l.emit("Shape", {which}), {}));
}
// --- TFLite_Detection_PostProcess: decodes boxes around anchors, then selects

struct Detection {
  int64_t limit, per_box, per_class, classes;
  bool regular;  // selects for each class alone, then takes the best of all
  double least, overlap;
  double scales[4];  // y, x, h, w
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
              {number("y_scale"), number("x_scale"), number("h_scale"), number("w_scale")}};
  for (double s : d.scales)
    if (s == 0) missing = invalid_model("a scale of the boxes is 0");
  if (!missing) return missing;
  return d;
}

// Columns of [boxes, 4], centre and size, to corners.
TensorId decoded_boxes(Layer& l, TensorId encoded, TensorId anchors, const Detection& d) {
  const auto column = [&](TensorId t, int64_t i) { return l.slice(t, {i}, {i + 1}, {1}); };
  const auto centre = [&](int64_t i) {
    const TensorId offset = l.emit("Div", {column(encoded, i), l.add_scalar("scale", d.scales[i])});
    return l.emit("Add", {l.emit("Mul", {offset, column(anchors, i + 2)}), column(anchors, i)});
  };
  const auto half = [&](int64_t i) {
    const TensorId growth = l.emit("Exp", {l.emit("Div", {column(encoded, i + 2), l.add_scalar("scale", d.scales[i + 2])})});
    return l.emit("Mul", {l.emit("Mul", {growth, column(anchors, i + 2)}), l.add_scalar("half", 0.5)});
  };
  const TensorId y = centre(0), x = centre(1), h = half(0), w = half(1);
  return l.concat({l.emit("Sub", {y, h}), l.emit("Sub", {x, w}), l.emit("Add", {y, h}), l.emit("Add", {x, w})}, 1);
}

// Rows (batch, class, box) for scores [classes, boxes].
TensorId select_boxes(Layer& l, TensorId boxes, TensorId scores, int64_t limit, const Detection& d) {
  // Ours takes scores above the threshold, theirs also those that equal it.
  const float least = std::nextafter(static_cast<float>(d.least), -INFINITY);
  return l.emit("NonMaxSuppression",
                {l.unsqueeze(boxes, {0}), l.unsqueeze(scores, {0}), l.add_ints("limit", {limit}),
                 l.reshape(l.add_scalar("overlap", d.overlap), {1}), l.reshape(l.add_scalar("least", least), {1})});
}

TensorId pick(Layer& l, TensorId from, TensorId rows, int64_t axis = 0) {
  return l.emit("Gather", {from, rows}, {{"axis", axis}});
}

Status set_detections(Layer& l, TensorId boxes, TensorId classes, TensorId scores, TensorId count) {
  ORKNN_TRY(l.set(0, l.unsqueeze(boxes, {0})));
  ORKNN_TRY(l.set(1, l.unsqueeze(l.cast(classes, DType::Float32), {0})));
  ORKNN_TRY(l.set(2, l.unsqueeze(scores, {0})));
  return l.set(3, l.reshape(l.cast(count, DType::Float32), {1}));
}

Status detection_post_process(Layer& l) {
  ORKNN_TRY_ASSIGN(const Detection d, detection_options(l));
  ORKNN_TRY_ASSIGN(TensorId encoded, l.real(0));
  ORKNN_TRY_ASSIGN(TensorId predictions, l.real(1));
  ORKNN_TRY_ASSIGN(const TensorId anchors, l.real(2));
  ORKNN_TRY_ASSIGN(const Dims shape, l.need_dims(encoded, "to decode it"));
  ORKNN_TRY_ASSIGN(const Dims classes, l.need_dims(predictions, "to select by it"));
  if (shape.size() != 3 || shape[0] != 1 || shape[2] < 4 || classes.size() != 3 || classes[0] != 1 || classes[1] != shape[1] ||
      classes[2] < d.classes || classes[2] > d.classes + 1)
    return invalid_model("boxes and scores do not fit")
        .expected("[1,n,4] and [1,n,classes]")
        .found(to_string(shape) + " and " + to_string(classes) + " for " + std::to_string(d.classes) + " classes");
  const TensorId boxes = decoded_boxes(l, l.squeeze(encoded, {0}), anchors, d);
  const TensorId scores =
      l.slice(l.squeeze(predictions, {0}), {classes[2] - d.classes}, {classes[2]}, {1});  // without the background
  const int64_t slots = d.limit * d.per_box;
  const int64_t candidates = std::max(d.limit, std::min(d.per_class, shape[1]) * d.classes);  // of the regular selection
  if (slots > kMaxBoxes || (d.regular && candidates > 16 * kMaxBoxes))
    return unsupported("there are too many boxes").expected("at most " + std::to_string(kMaxBoxes)).found(std::to_string(slots));
  if (d.regular) {
    const TensorId rows = select_boxes(l, boxes, l.transpose(scores, {1, 0}), d.per_class, d);
    const TensorId where = l.slice(rows, {1}, {3}, {1});  // (class, box)
    const TensorId found = l.emit("GatherND", {l.transpose(scores, {1, 0}), where});
    // Missing ones lose against all others and become zeros.
    const std::vector<TensorId> best =
        l.emit_all("TopK", {filled(l, found, candidates, {}, -INFINITY), l.add_ints("k", {d.limit})}, {{"axis", int64_t{0}}}, 2);
    const TensorId exists = l.emit("Greater", {best[0], l.add_scalar("none", -INFINITY)});
    const TensorId chosen = pick(l, filled(l, where, candidates, {2}), best[1]);
    const TensorId zero = l.add_scalar("zero", 0);
    const TensorId which_class =
        l.emit("Where", {exists, l.cast(pick(l, chosen, l.add_int_scalar("class", 0), 1), DType::Float32), zero});
    const TensorId corners =
        l.emit("Where", {l.unsqueeze(exists, {1}), pick(l, boxes, pick(l, chosen, l.add_int_scalar("box", 1), 1)), zero});
    const TensorId count =
        l.emit("ReduceSum", {l.cast(exists, DType::Float32), l.add_ints("axes", {0})}, {{"keepdims", int64_t{0}}});
    return set_detections(l, filled(l, corners, slots, {4}), filled(l, which_class, slots, {}),
                          filled(l, l.emit("Where", {exists, best[0], zero}), slots, {}), count);
  }
  const int64_t kept = std::min(d.per_box, d.classes);
  const std::vector<TensorId> best = l.emit_all("TopK", {scores, l.add_ints("k", {kept})}, {{"axis", int64_t{1}}}, 2);
  const TensorId top = l.transpose(l.slice(best[0], {0}, {1}, {1}), {1, 0});
  const TensorId rows = pick(l, select_boxes(l, boxes, top, d.limit, d), l.add_int_scalar("box", 2), 1);
  // Each selected box has `per_box` slots, of which `kept` are used.
  const auto spread = [&](TensorId values) {
    const TensorId all = filled(l, pick(l, values, rows), d.limit, {kept});
    const TensorId row = kept == d.per_box ? all : l.emit("Pad", {all, l.add_ints("pads", {0, 0, 0, d.per_box - kept})});
    return l.reshape(row, {slots});
  };
  const TensorId corners = l.unsqueeze(filled(l, pick(l, boxes, rows), d.limit, {4}), {1});
  TensorId copies = l.emit("Expand", {corners, l.add_ints("copies", {d.limit, kept, 4})});
  if (kept != d.per_box) copies = l.emit("Pad", {copies, l.add_ints("pads", {0, 0, 0, 0, d.per_box - kept, 0})});
  return set_detections(l, l.reshape(copies, {slots, 4}), spread(best[1]), spread(best[0]), l.emit("Shape", {rows}));
}
}  // namespace

std::span<const Row> detection_custom_rows() {
  static constexpr Row rows[] = {{"TFLite_Detection_PostProcess", detection_post_process}};
  return rows;
}

std::span<const Row> detection_rows() {
  static constexpr Row rows[] = {{"NON_MAX_SUPPRESSION_V4", non_max_suppression},
                                 {"NON_MAX_SUPPRESSION_V5", non_max_suppression}};
  return rows;
}

}  // namespace orknn::importer::tflite
