// Detection: anchors, box decoding, suppression. Everything keeps fixed sizes: what is suppressed stays as rows of -1.
#include "import/lower/detection.h"

#include <algorithm>
#include <cmath>

#include "import/lower/one_hot.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
constexpr int64_t kMaxAnchors = int64_t{1} << 20;

// --- anchors

Result<TensorId> multibox_prior(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to place anchors"));
  const std::vector<double> sizes = l.numbers("sizes", {1.0}), ratios = l.numbers("ratios", {1.0}),
                            offsets = l.numbers("offsets", {0.5, 0.5});
  std::vector<double> steps = l.numbers("steps", {-1.0, -1.0});
  if (in.size() != 4 || sizes.empty() || ratios.empty() || offsets.size() != 2 || steps.size() != 2)
    return invalid_model("illegal sizes, ratios, steps or offsets")
        .expected("data [N,C,H,W], two steps and two offsets")
        .found(to_string(in));
  const int64_t height = in[2], width = in[3], per_place = static_cast<int64_t>(sizes.size() + ratios.size()) - 1;
  if (!checked_element_count(Dims{height, width, per_place}, kMaxAnchors))
    return unsupported("there are too many anchors").found(to_string(in));
  if (steps[0] <= 0 || steps[1] <= 0) steps = {1.0 / static_cast<double>(height), 1.0 / static_cast<double>(width)};
  // Widths follow the picture's aspect since 0.12, the first ratio counts since 1.5.
  const bool has_aspect = l.version() >= 1200, has_first_ratio = l.version() >= 10500;
  PriorGrid grid{.height = height,
                 .width = width,
                 .offsets = {{static_cast<float>(offsets[1]), static_cast<float>(offsets[0])}},
                 .step_x = static_cast<float>(steps[1]),
                 .step_y = static_cast<float>(steps[0]),
                 .clip = l.flag("clip", false)};
  const auto add = [&](double size, float root) {
    const auto side = static_cast<float>(size);
    const float wide = has_aspect ? side * static_cast<float>(height) / static_cast<float>(width) : side;
    grid.boxes.push_back({wide * root, side / root});
  };
  for (double size : sizes) add(size, has_first_ratio ? std::sqrt(static_cast<float>(ratios[0])) : 1.0f);
  for (size_t k = 1; k < ratios.size(); ++k) add(sizes[0], std::sqrt(static_cast<float>(ratios[k])));
  ORKNN_TRY_ASSIGN(const std::vector<float> boxes, place_priors(grid));
  return l.floats("anchors", {1, height * width * per_place, 4}, boxes);
}

// --- pieces

// [batch, rows] indices pick rows of [batch, rows, columns].
TensorId pick_rows(Layer& l, TensorId x, TensorId indices, int64_t batch, int64_t rows, int64_t columns) {
  return l.gather_elements(x, l.expand(l.unsqueeze(indices, {2}), Dims{batch, rows, columns}), 1);
}
TensorId pick_values(Layer& l, TensorId x, TensorId indices) { return l.gather_elements(x, indices, 1); }

std::vector<TensorId> best_first(Layer& l, TensorId keys, int64_t count) { return l.top_k(keys, count, 1); }

// Indices that bring the marked rows of [batch, rows] to the front, in their order; then the others.
TensorId front_order(Layer& l, TensorId mask, int64_t rows, int64_t count) {
  const TensorId marked = l.mul(l.cast(mask, DType::Int64), l.add_int_scalar("rows_twice", 2 * rows));
  return best_first(l, l.sub(marked, positions(l, rows, 1, 2)), count)[1];
}

TensorId suppress(Layer& l, TensorId boxes, TensorId groups, TensorId candidates, double threshold, bool inclusive,
                  double border) {
  return l.emit("SuppressBoxes", {boxes, groups, candidates},
                {{"iou_threshold", threshold}, {"inclusive", int64_t{inclusive}}, {"border", border}});
}

// --- SSD

// Rows [class, score, left, top, right, bottom], best first; class -1 where a row is suppressed, -1 throughout where there is
// none.
Result<TensorId> multibox_detection(Layer& l, TensorId scores, TensorId offsets, TensorId anchors) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(scores, "to count anchors"));
  if (dims.size() != 3 || dims[1] < 2 || dims[2] < 1)
    return shape_mismatch("class scores must be [batch, classes, anchors]")
        .expected("at least two classes")
        .found(to_string(dims));
  const int64_t batch = dims[0], count = dims[2];
  const std::vector<double> variances = l.numbers("variances", {0.1, 0.1, 0.2, 0.2});
  if (variances.size() != 4) return invalid_model("illegal variances").expected("four numbers");
  BoxCode code;
  std::ranges::copy(variances, code.scales.begin());
  const DType dtype = l.dtype_of(scores);
  const double overlap = l.number("nms_threshold", 0.5);
  const int64_t limit = l.integer("nms_topk", -1);

  // Class 0 is the background, whatever background_id says.
  const TensorId objects = l.slice(scores, 1, 1, INT64_MAX), best = l.reduce("ReduceMax", objects, {1}, false);
  const TensorId classes = l.cast(l.emit("ArgMax", {objects}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}), dtype);
  const TensorId found = l.with_scalar("GreaterOrEqual", best, l.number("threshold", 0.01));
  anchors = l.reshape(anchors, {1, count, 4});
  TensorId boxes =
      corners_from_centred(l, decode_boxes(l, l.reshape(offsets, {batch, count, 4}), centred_from_corners(l, anchors), code));
  if (l.flag("clip", true)) boxes = l.clip(boxes, 0.0, 1.0);

  const auto rows_of = [&](TensorId ids, TensorId points, TensorId corners) {
    return l.concat({l.unsqueeze(ids, {2}), l.unsqueeze(points, {2}), corners}, 2);
  };
  const TensorId none = l.add_scalar("none", -1.0, dtype);
  const TensorId found_first = front_order(l, found, count, count);  // before sorting, rows stand in the order of the anchors
  const TensorId unsorted = rows_of(classes, best, boxes);
  if (!(overlap > 0) || overlap > 1) {
    const TensorId present = l.unsqueeze(pick_values(l, found, found_first), {2});
    return l.where(present, pick_rows(l, unsorted, found_first, batch, count, 6), none);
  }
  const auto order = best_first(l, l.where(found, best, l.add_scalar("least", -2.0, dtype)), count);
  const TensorId present = pick_values(l, found, order[1]), sorted_classes = pick_values(l, classes, order[1]),
                 sorted_boxes = pick_rows(l, boxes, order[1], batch, count, 4);
  const bool is_limited = limit > 0 && limit < count;
  const TensorId within = is_limited ? l.binary("Less", positions(l, count, 1, 2), l.add_int_scalar("limit", limit)) : TensorId{};
  const TensorId candidates = is_limited ? l.binary("And", present, within) : present;
  const TensorId kept =
      suppress(l, sorted_boxes, l.flag("force_suppress", false) ? TensorId{} : sorted_classes, candidates, overlap, true, 0);
  TensorId rows = rows_of(l.where(kept, sorted_classes, none), order[0], sorted_boxes);
  if (is_limited) {  // rows beyond the limit keep their place before sorting
    const TensorId rest = pick_rows(l, rows_of(l.expand(none, Dims{batch, count}), best, boxes), found_first, batch, count, 6);
    rows = l.where(l.unsqueeze(within, {2}), rows, rest);
  }
  return l.where(l.unsqueeze(present, {2}), rows, none);
}

// --- Faster R-CNN

std::vector<float> base_anchors(const std::vector<double>& ratios, const std::vector<double>& scales, float stride) {
  std::vector<float> values;
  const float centre = 0.5f * (stride - 1.0f);
  for (double ratio : ratios)
    for (double scale : scales) {
      const float area = std::floor(stride * stride / static_cast<float>(ratio)), root = std::floor(std::sqrt(area) + 0.5f);
      const float width = root * static_cast<float>(scale),
                  height = std::floor(root * static_cast<float>(ratio) + 0.5f) * static_cast<float>(scale);
      for (float v :
           {centre - 0.5f * (width - 1), centre - 0.5f * (height - 1), centre + 0.5f * (width - 1), centre + 0.5f * (height - 1)})
        values.push_back(v);
    }
  return values;
}

// Coordinate `i` of [batch, ...]-shaped image information, as [batch, 1, 1].
TensorId image_value(Layer& l, TensorId info, int64_t i) { return l.unsqueeze(box_column(l, info, i), {2}); }

Result<std::vector<TensorId>> multi_proposal(Layer& l, TensorId scores, TensorId offsets, TensorId info) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(scores, "to place anchors"));
  const std::vector<double> ratios = l.numbers("ratios", {0.5, 1.0, 2.0}), scales = l.numbers("scales", {4.0, 8.0, 16.0, 32.0});
  const int64_t stride = l.integer("feature_stride", 16), anchors = static_cast<int64_t>(ratios.size() * scales.size());
  if (dims.size() != 4 || dims[1] != 2 * anchors || anchors < 1 || stride < 1)
    return shape_mismatch("class scores must be [batch, 2 * anchors, H, W]")
        .expected(std::to_string(2 * anchors) + " channels")
        .found(to_string(dims));
  if (std::any_of(ratios.begin(), ratios.end(), [](double r) { return !(r > 0); }))
    return invalid_model("ratios must be positive");
  const int64_t batch = dims[0], height = dims[2], width = dims[3];
  const auto total = checked_element_count(Dims{height, width, anchors}, kMaxAnchors);
  if (!total || *total < 1) return unsupported("there are too many anchors").found(to_string(dims));
  const int64_t count = *total, before = l.integer("rpn_pre_nms_top_n", 6000),
                tried = before > 0 ? std::min(before, count) : count, wanted = l.integer("rpn_post_nms_top_n", 300);
  if (wanted < 1 || wanted > kMaxAnchors) return invalid_model("illegal rpn_post_nms_top_n").found(std::to_string(wanted));
  const DType dtype = l.dtype_of(scores);

  // Anchors in the order of rows, columns, kinds.
  const std::vector<float> base = base_anchors(ratios, scales, static_cast<float>(stride));
  std::vector<float> placed;
  std::vector<float> grid;  // row and column of each
  for (int64_t r = 0; r < height; ++r)
    for (int64_t c = 0; c < width; ++c)
      for (int64_t a = 0; a < anchors; ++a) {
        for (int64_t k = 0; k < 4; ++k)
          placed.push_back(base[static_cast<size_t>(a * 4 + k)] + static_cast<float>((k % 2 ? r : c) * stride));
        grid.push_back(static_cast<float>(r));
        grid.push_back(static_cast<float>(c));
      }
  const TensorId boxes = l.cast(l.floats("anchors", {1, count, 4}, placed), dtype),
                 places = l.cast(l.floats("places", {1, count, 2}, grid), dtype);
  const TensorId points = l.reshape(l.transpose(l.slice(scores, 1, anchors, 2 * anchors), {0, 2, 3, 1}), {batch, count, 1});
  const TensorId deltas =
      l.reshape(l.transpose(l.reshape(offsets, {batch, anchors, 4, height, width}), {0, 3, 4, 1, 2}), {batch, count, 4});

  TensorId corners;
  if (l.flag("iou_loss", false)) {
    corners = l.add(boxes, deltas);
  } else {  // pixels count: a box from 0 to 9 is 10 wide
    CentredBoxes anchor = centred_from_corners(l, boxes);
    anchor.width = l.add(anchor.width, 1.0);
    anchor.height = l.add(anchor.height, 1.0);
    CentredBoxes box = decode_boxes(l, deltas, anchor, {});
    box.width = l.sub(box.width, 1.0);
    box.height = l.sub(box.height, 1.0);
    corners = corners_from_centred(l, box);
  }
  const TensorId picture = l.concat(
      {box_column(l, info, 1), box_column(l, info, 0), box_column(l, info, 1), box_column(l, info, 0)}, -1);  // [batch, 4]
  const TensorId border = l.unsqueeze(l.sub(picture, 1.0), {1});
  corners = l.with_scalar("Max", l.binary("Min", corners, border), 0.0);

  // Boxes in the padding of the feature map or smaller than allowed lose their score; the small ones grow as well.
  const auto real = [&](int64_t i) { return l.unary("Floor", l.div(image_value(l, info, i), static_cast<double>(stride))); };
  const TensorId outside = l.binary("Or", l.binary("GreaterOrEqual", box_column(l, places, 0), real(0)),
                                    l.binary("GreaterOrEqual", box_column(l, places, 1), real(1)));
  const TensorId least = l.mul(image_value(l, info, 2), l.number("rpn_min_size", 16.0));
  const auto too_small = [&](int64_t low, int64_t high) {
    return l.binary("Less", l.add(l.sub(box_column(l, corners, high), box_column(l, corners, low)), 1.0), least);
  };
  const TensorId small = l.binary("Or", too_small(0, 2), too_small(1, 3));
  const TensorId sides = l.cast(l.floats("sides", {1, 1, 4}, std::vector<float>{-0.5f, -0.5f, 0.5f, 0.5f}), dtype);
  corners = l.where(small, l.add(corners, l.mul(sides, least)), corners);
  const TensorId valued =
      l.reshape(l.where(l.binary("Or", outside, small), l.add_scalar("worthless", -1.0, dtype), points), {batch, count});

  const auto order = best_first(l, valued, tried);
  const TensorId tried_boxes = pick_rows(l, corners, order[1], batch, tried, 4);
  const TensorId kept = suppress(l, tried_boxes, {}, {}, l.number("threshold", 0.7), false, 1.0);
  // The kept ones, again from the beginning when there are too few.
  const TensorId kept_first = front_order(l, kept, tried, tried);
  const TensorId kept_count = l.with_scalar("Min", l.reduce("ReduceSum", l.cast(kept, DType::Int64), {1}, true),
                                            static_cast<double>(std::min(wanted, tried)));
  const TensorId row = l.binary("Mod", l.expand(positions(l, wanted, 1, 2), Dims{batch, wanted}), kept_count);
  const TensorId chosen = pick_values(l, kept_first, row);
  const TensorId result = pick_rows(l, tried_boxes, chosen, batch, wanted, 4);
  std::vector<float> pictures;
  for (int64_t b = 0; b < batch; ++b) pictures.push_back(static_cast<float>(b));
  const TensorId owner = l.expand(l.cast(l.floats("pictures", {batch, 1, 1}, pictures), dtype), Dims{batch, wanted, 1});
  return std::vector{l.reshape(l.concat({owner, result}, 2), {batch * wanted, 5}),
                     l.reshape(pick_values(l, order[0], chosen), {batch * wanted, 1})};
}
// The older operator, for one picture.
Result<std::vector<TensorId>> proposal(Layer& l, TensorId scores, TensorId offsets, TensorId info) {
  if (const auto dims = l.dims_of(scores); dims && !dims->empty() && (*dims)[0] != 1)
    return unsupported("more than one picture is not supported").expected("1").found(std::to_string((*dims)[0]));
  return multi_proposal(l, scores, offsets, info);
}

// --- boxes as data

// Kept rows first, best first; -1 after them.
Result<TensorId> box_nms(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to sort boxes"));
  if (dims.size() < 2) return shape_mismatch("the data must be [..., boxes, values]").found(to_string(dims));
  const int64_t columns = dims.back(), count = dims[dims.size() - 2],
                batch = element_count(std::span(dims).first(dims.size() - 2));
  const int64_t at = l.integer("coord_start", 2), score_at = l.integer("score_index", 1), class_at = l.integer("id_index", -1),
                limit = l.integer("topk", -1);
  if (at < 0 || at + 4 > columns || score_at < 0 || score_at >= columns || class_at >= columns || count < 1)
    return invalid_model("coord_start, score_index or id_index are outside a row")
        .expected("less than " + std::to_string(columns));
  const int64_t tried = limit < 0 ? count : std::min(limit, count);
  if (tried < 1) return x;
  const DType dtype = l.dtype_of(x);
  const TensorId rows = l.reshape(x, {batch, count, columns});
  const auto values_at = [&](int64_t i) { return l.reshape(box_column(l, rows, i), {batch, count}); };
  const TensorId scores = values_at(score_at);
  TensorId valid = l.with_scalar("Greater", scores, l.number("valid_thresh", 0.0));
  TensorId classes;
  if (class_at >= 0) {
    classes = values_at(class_at);
    valid = l.binary("And", valid, l.unary("Not", l.with_scalar("Equal", classes, l.number("background_id", -1.0))));
    if (l.flag("force_suppress", false)) classes = TensorId{};
  }
  TensorId boxes = l.slice(rows, 2, at, at + 4);
  const std::string in_format = l.text("in_format", "corner"), out_format = l.text("out_format", "corner");
  if (in_format == "center") boxes = corners_from_centred(l, columns_of_centred(l, boxes));

  const double least = dtype == DType::Float16 ? -6e4 : -1e30;
  const auto order = best_first(l, l.where(valid, scores, l.add_scalar("least", least, dtype)), tried);
  const TensorId kept =
      suppress(l, pick_rows(l, boxes, order[1], batch, tried, 4), classes ? pick_values(l, classes, order[1]) : TensorId{},
               pick_values(l, valid, order[1]), l.number("overlap_thresh", 0.5), false, 0);
  const TensorId kept_first = front_order(l, kept, tried, tried), sources = pick_values(l, order[1], kept_first);
  TensorId result = pick_rows(l, rows, sources, batch, tried, columns);
  if (in_format != out_format) {  // a row whose first coordinate is negative stays as it is
    const TensorId own = l.slice(result, 2, at, at + 4);
    TensorId changed;
    if (out_format == "center") {
      const CentredBoxes c = centred_from_corners(l, own);
      changed = l.concat({c.x, c.y, c.width, c.height}, -1);
    } else {
      changed = corners_from_centred(l, columns_of_centred(l, own));
    }
    changed = l.where(l.with_scalar("Less", box_column(l, own, 0), 0.0), own, changed);
    std::vector<TensorId> parts;
    if (at > 0) parts.push_back(l.slice(result, 2, 0, at));
    parts.push_back(changed);
    if (at + 4 < columns) parts.push_back(l.slice(result, 2, at + 4, INT64_MAX));
    result = l.concat(parts, 2);
  }
  result = l.where(l.unsqueeze(pick_values(l, kept, kept_first), {2}), result, l.add_scalar("none", -1.0, dtype));
  if (tried < count)
    result = l.emit("Pad", {result, l.add_ints("pads", {0, 0, 0, 0, count - tried, 0}), l.add_scalar("none", -1.0, dtype)});
  return l.reshape(result, dims);
}

Result<TensorId> box_iou(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(const Dims left, l.need_dims(a, "to compare boxes"));
  ORKNN_TRY_ASSIGN(const Dims right, l.need_dims(b, "to compare boxes"));
  if (left.size() < 2 || right.size() < 2 || left.back() != 4 || right.back() != 4)
    return shape_mismatch("boxes must be [..., 4]").found(to_string(left) + " and " + to_string(right));
  if (l.text("format", "corner") == "center") {
    a = corners_from_centred(l, columns_of_centred(l, a));
    b = corners_from_centred(l, columns_of_centred(l, b));
  }
  a = l.reshape(a, {-1, 1, 4});
  b = l.reshape(b, {1, -1, 4});
  const auto length = [&](TensorId from, TensorId to) { return l.with_scalar("Max", l.sub(to, from), 0.0); };
  const auto side = [&](TensorId x, int64_t i) { return length(box_column(l, x, i), box_column(l, x, i + 2)); };
  const auto shared_side = [&](int64_t i) {
    return length(l.binary("Max", box_column(l, a, i), box_column(l, b, i)),
                  l.binary("Min", box_column(l, a, i + 2), box_column(l, b, i + 2)));
  };
  const TensorId shared = l.mul(shared_side(0), shared_side(1)),
                 areas = l.add(l.mul(side(a, 0), side(a, 1)), l.mul(side(b, 0), side(b, 1)));
  const TensorId zero = l.scalar_like(a, 0.0);
  const TensorId overlap = l.where(l.binary("Greater", shared, zero), l.div(shared, l.sub(areas, shared)), zero);
  Dims shape(left.begin(), left.end() - 1);
  shape.insert(shape.end(), right.begin(), right.end() - 1);
  return l.reshape(overlap, shape);
}

TensorId box_decode(Layer& l, TensorId x, TensorId anchors) {
  const CentredBoxes centres =
      l.text("format", "center") == "corner" ? centred_from_corners(l, anchors) : columns_of_centred(l, anchors);
  const BoxCode code{.scales = {l.number("std0", 1.0), l.number("std1", 1.0), l.number("std2", 1.0), l.number("std3", 1.0)},
                     .most_growth = l.number("clip", -1.0)};
  return corners_from_centred(l, decode_boxes(l, x, centres, code));
}

Status matching(Layer&) {
  return unsupported("this operator matches boxes with labels, it only trains the network")
      .hint("save the symbol of the deployed network");
}
}  // namespace

std::span<const Row> detection_rows() {
  static const Row rows[] = {
      {"_contrib_MultiBoxPrior|MultiBoxPrior", multibox_prior},
      {"_contrib_MultiBoxDetection|MultiBoxDetection", multibox_detection},
      {"_contrib_Proposal|Proposal", proposal},
      {"_contrib_MultiProposal|MultiProposal", multi_proposal},
      {"_contrib_box_nms|_contrib_box_non_maximum_suppression", box_nms},
      {"_contrib_box_iou", box_iou},
      {"_contrib_box_decode", box_decode},
      {"_contrib_box_encode|_contrib_bipartite_matching", matching},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
