// Non-maximum suppression in all its versions. How many boxes survive is known only when the model runs, unless the graph asks
// for padding to a fixed number.
#include <algorithm>
#include <limits>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// Survivors of one picture and all classes as rows of [picture, class, box]; boxes [n, 4], scores [classes, n].
TensorId suppress(Layer& layer, TensorId boxes, TensorId scores, TensorId most, TensorId overlap, TensorId threshold) {
  const auto as_number = [&](TensorId x, DType dtype) { return layer.reshape(layer.cast(x, dtype), {1}); };
  return layer.emit("NonMaxSuppression", {layer.unsqueeze(layer.cast(boxes, DType::Float32), {0}),
                                          layer.unsqueeze(layer.cast(scores, DType::Float32), {0}), as_number(most, DType::Int64),
                                          as_number(overlap, DType::Float32), as_number(threshold, DType::Float32)});
}

TensorId column(Layer& layer, TensorId rows, int64_t i) { return layer.squeeze(layer.slice(rows, {i}, {i + 1}, {1}), {1}); }

// Cut or filled with zeros to `size` along the first axis.
TensorId of_size(Layer& layer, TensorId x, int64_t size) {
  return layer.slice(layer.emit("Pad", {x, layer.add_ints("pads", {0, size})}), {0}, {size}, {0});
}

// V1 has its threshold as attribute, V3 adds the least score, V4 padding, V5 scores.
Status lower_nms(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId boxes, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId scores, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId most, layer.input(2));
  const std::string_view op = layer.op();
  const bool has_scores = op.ends_with("V5"), counts = has_scores || op.ends_with("V4");
  TensorId overlap, threshold;
  if (op == "NonMaxSuppression") {
    overlap = layer.add_scalar("overlap", layer.float_or("iou_threshold", 0.5));
  } else {
    ORKNN_TRY_ASSIGN(overlap, layer.input(3));
  }
  if (op.ends_with("V3") || counts) {
    ORKNN_TRY_ASSIGN(threshold, layer.input(4));
  } else {
    threshold = layer.add_scalar("threshold", -std::numeric_limits<float>::max());
  }
  if (has_scores) {
    ORKNN_TRY_ASSIGN(const double sigma, layer.number(5, "to suppress"));
    if (sigma != 0)
      return unsupported("soft suppression is not supported").expected("soft_nms_sigma 0").found(std::to_string(sigma));
  }
  TensorId kept = column(layer, suppress(layer, boxes, layer.unsqueeze(scores, {0}), most, overlap, threshold), 2);
  const TensorId count = layer.cast(layer.emit("Size", {kept}), DType::Int32);
  TensorId kept_scores = layer.emit("Gather", {scores, kept}, {{"axis", int64_t{0}}});
  if (counts && layer.bool_or("pad_to_max_output_size", false)) {
    ORKNN_TRY_ASSIGN(const int64_t size, layer.integer(2, "to pad the result"));
    if (size < 0 || size > (1 << 24)) return invalid_model("the number of boxes is out of range").found(std::to_string(size));
    kept = of_size(layer, kept, size);
    kept_scores = of_size(layer, kept_scores, size);
  }
  layer.set(layer.cast(kept, DType::Int32));
  if (has_scores) layer.set(kept_scores);
  if (counts) layer.set(count);
  return {};
}

// The best boxes of all classes together, per picture: survivors of every class, then the highest scores, then zeros.
Status lower_combined_nms(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId boxes, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId scores, layer.input(1));
  ORKNN_TRY_ASSIGN(const int64_t per_class, layer.integer(2, "to size the result"));
  ORKNN_TRY_ASSIGN(int64_t total, layer.integer(3, "to size the result"));
  ORKNN_TRY_ASSIGN(const TensorId overlap, layer.input(4));
  ORKNN_TRY_ASSIGN(const TensorId threshold, layer.input(5));
  ORKNN_TRY_ASSIGN(const Dims box_dims, layer.need_dims(boxes, "to suppress"));
  ORKNN_TRY_ASSIGN(const Dims dims, layer.need_dims(scores, "to suppress"));
  if (box_dims.size() != 4 || dims.size() != 3 || box_dims[3] != 4 || box_dims[0] != dims[0] || box_dims[1] != dims[1] ||
      (box_dims[2] != 1 && box_dims[2] != dims[2]))
    return shape_mismatch("boxes and scores do not fit together").found(to_string(box_dims) + " and " + to_string(dims));
  constexpr int64_t kMost = 1 << 20;
  if (per_class < 1 || total < 1 || per_class > kMost || total > kMost || dims[0] < 1 || dims[0] > 1024 || dims[2] < 1 ||
      dims[2] > kMost)
    return invalid_model("a size is out of range").found(std::to_string(per_class) + " and " + std::to_string(total));
  if (layer.bool_or("pad_per_class", false)) total = std::min(total, per_class * dims[2]);
  const TensorId most = layer.add_int_scalar("most", per_class);
  std::vector<TensorId> all_boxes, all_scores, all_classes, counts;
  for (int64_t b = 0; b < dims[0]; ++b) {
    const TensorId picture_scores = layer.transpose(layer.squeeze(layer.slice(scores, {b}, {b + 1}, {0}), {0}), {1, 0});
    const TensorId picture_boxes = layer.squeeze(layer.slice(boxes, {b}, {b + 1}, {0}), {0});  // [n, 1 or classes, 4]
    std::vector<TensorId> found_boxes, found_scores, found_classes;
    const auto add = [&](TensorId own_boxes, TensorId own_scores, int64_t first_class) {
      const TensorId rows = suppress(layer, own_boxes, own_scores, most, overlap, threshold);
      const TensorId class_and_box = layer.slice(rows, {1}, {3}, {1});
      found_scores.push_back(layer.emit("GatherND", {layer.cast(own_scores, DType::Float32), class_and_box}));
      found_boxes.push_back(
          layer.emit("Gather", {layer.cast(own_boxes, DType::Float32), column(layer, rows, 2)}, {{"axis", int64_t{0}}}));
      found_classes.push_back(layer.emit("Add", {layer.cast(column(layer, rows, 1), DType::Float32),
                                                 layer.add_scalar("class", static_cast<double>(first_class))}));
    };
    if (box_dims[2] == 1) {
      add(layer.squeeze(picture_boxes, {1}), picture_scores, 0);
    } else {
      for (int64_t c = 0; c < dims[2]; ++c)
        add(layer.squeeze(layer.slice(picture_boxes, {c}, {c + 1}, {1}), {1}), layer.slice(picture_scores, {c}, {c + 1}, {0}), c);
    }
    // Fillers rank behind every survivor.
    const auto padded = [&](std::vector<TensorId> parts, Dims filler, double value) {
      parts.push_back(layer.emit("Expand", {layer.add_scalar("filler", value), layer.add_ints("size", filler)}));
      return layer.concat(std::move(parts), 0);
    };
    const double lowest = -std::numeric_limits<float>::max();
    const auto best =
        layer.emit_all("TopK", {padded(found_scores, {total}, lowest), layer.add_ints("k", {total})}, {{"axis", int64_t{0}}}, 2);
    const TensorId is_real = layer.emit("Greater", {best[0], layer.add_scalar("lowest", lowest)});
    const auto picked = [&](TensorId x) {
      return layer.unsqueeze(layer.emit("Gather", {x, best[1]}, {{"axis", int64_t{0}}}), {0});
    };
    TensorId chosen = picked(padded(found_boxes, {total, 4}, 0));
    if (layer.bool_or("clip_boxes", true))
      chosen = layer.emit("Clip", {chosen, layer.add_scalar("low", 0), layer.add_scalar("high", 1)});
    all_boxes.push_back(chosen);
    all_classes.push_back(picked(padded(found_classes, {total}, 0)));
    all_scores.push_back(layer.unsqueeze(layer.emit("Where", {is_real, best[0], layer.add_scalar("zero", 0)}), {0}));
    counts.push_back(
        layer.emit("ReduceSum", {layer.cast(is_real, DType::Int32), layer.add_ints("axes", {0})}, {{"keepdims", int64_t{1}}}));
  }
  for (const auto& parts : {all_boxes, all_scores, all_classes, counts}) layer.set(layer.concat(parts, 0));
  return {};
}
}  // namespace

std::span<const Row> detection_rows() {
  static constexpr Row kRows[] = {
      {"NonMaxSuppression", lower_nms},   {"NonMaxSuppressionV2", lower_nms}, {"NonMaxSuppressionV3", lower_nms},
      {"NonMaxSuppressionV4", lower_nms}, {"NonMaxSuppressionV5", lower_nms}, {"CombinedNonMaxSuppression", lower_combined_nms},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
