// The last layer of SSD: offsets decoded against prior boxes, the best boxes of each class that overlap little, the best of all
// classes of each image. Rows [image, class, score, left, top, right, bottom]; their number depends on the values.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/support/boxes.h"
#include "ops/support/floating.h"

namespace orknn::ops {
namespace {
using namespace ir;

struct Options {
  int64_t classes, background, top_k, keep_top_k;
  bool share_location, variance_in_target, normalized, clip;
  std::string code_type;
  float confidence, threshold, eta;
};

Result<Options> options_of(const NodeReader& c) {
  Options o{.classes = c.get_int("num_classes"),
            .background = c.get_int("background_label_id"),
            .top_k = c.get_int("top_k"),
            .keep_top_k = c.get_int("keep_top_k"),
            .share_location = c.get_int("share_location") != 0,
            .variance_in_target = c.get_int("variance_encoded_in_target") != 0,
            .normalized = c.get_int("normalized_bbox") != 0,
            .clip = c.get_int("clip") != 0,
            .code_type = c.get_string("code_type"),
            .confidence = static_cast<float>(c.get_float("confidence_threshold")),
            .threshold = static_cast<float>(c.get_float("nms_threshold")),
            .eta = static_cast<float>(c.get_float("eta"))};
  if (o.classes < 1) return invalid_model("num_classes is out of range").expected("at least 1").found(std::to_string(o.classes));
  if (o.code_type != "CORNER" && o.code_type != "CENTER_SIZE" && o.code_type != "CORNER_SIZE")
    return unsupported("unknown code_type").expected("CORNER, CENTER_SIZE or CORNER_SIZE").found(o.code_type);
  if (!(o.eta > 0 && o.eta <= 1))
    return invalid_model("eta is out of range").expected("above 0, at most 1").found(std::to_string(o.eta));
  return o;
}

// Whether there are locations and a confidence of every class for each prior box.
Status check_boxes(const Options& o, std::span<const int64_t> locations, std::span<const int64_t> confidences,
                   std::span<const int64_t> prior_boxes) {
  const int64_t offsets = element_count(locations), scores = element_count(confidences), priors = element_count(prior_boxes);
  const int64_t images = locations.empty() ? 1 : locations[0], rows = o.variance_in_target ? 1 : 2;
  const int64_t count = priors / (4 * rows), location_classes = o.share_location ? 1 : o.classes;
  // Divisions instead of products: the attributes may be absurd.
  if (images >= 1 && count >= 1 && priors % (4 * rows) == 0 && scores % images == 0 && offsets % images == 0 &&
      scores / images % count == 0 && scores / images / count == o.classes && offsets / images % (4 * count) == 0 &&
      offsets / images / (4 * count) == location_classes)
    return {};
  return shape_mismatch("locations, confidences and prior boxes do not fit together")
      .expected(std::to_string(o.classes) + " classes for each prior box")
      .found(to_string(locations) + ", " + to_string(confidences) + ", " + to_string(prior_boxes));
}

Status infer(InferContext& c) {
  for (size_t i = 0; i < 3; ++i) ORKNN_TRY(require_float(c, i));
  ORKNN_TRY_ASSIGN(const Options o, options_of(c));
  std::vector<Dims> dims;
  for (size_t i = 0; i < 3; ++i)
    if (const auto known = c.shape(i) ? to_dims(*c.shape(i)) : std::nullopt) dims.push_back(*known);
  if (dims.size() == 3) ORKNN_TRY(check_boxes(o, dims[0], dims[1], dims[2]));
  c.set_output(0, c.dtype(0), Shape{1, 1, Dim(), 7});
  return {};
}

// `offset` moves and resizes the prior box.
Box decode(const Options& o, const float* prior, const float* variance, const float* offset) {
  float v[4];
  for (int i = 0; i < 4; ++i) v[i] = o.variance_in_target ? offset[i] : variance[i] * offset[i];
  const float border = o.normalized ? 0.0f : 1.0f;
  const float width = prior[2] - prior[0] + border, height = prior[3] - prior[1] + border;
  Box b;
  if (o.code_type == "CORNER") {
    b = {prior[0] + v[0], prior[1] + v[1], prior[2] + v[2], prior[3] + v[3]};
  } else if (o.code_type == "CORNER_SIZE") {
    b = {prior[0] + v[0] * width, prior[1] + v[1] * height, prior[2] + v[2] * width, prior[3] + v[3] * height};
  } else {
    const float x = v[0] * width + prior[0] + width * 0.5f, y = v[1] * height + prior[1] + height * 0.5f;
    const float half_width = std::exp(v[2]) * width * 0.5f, half_height = std::exp(v[3]) * height * 0.5f;
    b = {x - half_width, y - half_height, x + half_width, y + half_height};
  }
  if (o.clip)
    for (float* side : {&b.left, &b.top, &b.right, &b.bottom}) *side = std::clamp(*side, 0.0f, 1.0f);
  return b;
}

struct Detection {
  int64_t label, prior;
  float score;
};

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Options o, options_of(c));
  const TensorData offsets = convert(c.input(0), DType::Float32), scores = convert(c.input(1), DType::Float32),
                   priors = convert(c.input(2), DType::Float32);
  const int64_t images = c.input(0).dims.empty() ? 1 : c.input(0).dims[0], rows = o.variance_in_target ? 1 : 2;
  ORKNN_TRY(check_boxes(o, c.input(0).dims, c.input(1).dims, c.input(2).dims));
  const int64_t count = priors.count() / (4 * rows), location_classes = o.share_location ? 1 : o.classes;
  const float* prior = priors.as<float>();
  std::vector<float> found;
  for (int64_t image = 0; image < images; ++image) {
    const float* score = scores.as<float>() + image * count * o.classes;
    std::vector<std::vector<Box>> boxes(static_cast<size_t>(location_classes));
    for (int64_t k = 0; k < location_classes; ++k)
      for (int64_t p = 0; p < count; ++p)
        boxes[static_cast<size_t>(k)].push_back(decode(o, prior + p * 4, prior + (count + p) * 4 * (rows - 1),
                                                       offsets.as<float>() + ((image * count + p) * location_classes + k) * 4));
    std::vector<Detection> kept;
    for (int64_t label = 0; label < o.classes; ++label) {
      if (label == o.background) continue;
      std::vector<int64_t> order;
      for (int64_t p = 0; p < count; ++p)
        if (score[p * o.classes + label] > o.confidence) order.push_back(p);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return score[a * o.classes + label] > score[b * o.classes + label]; });
      if (o.top_k >= 0 && order.size() > static_cast<size_t>(o.top_k)) order.resize(static_cast<size_t>(o.top_k));
      const auto& own = boxes[static_cast<size_t>(o.share_location ? 0 : label)];
      for (int64_t p : suppress(order, [&](int64_t i) -> const Box& { return own[static_cast<size_t>(i)]; },
                                {.threshold = o.threshold, .eta = o.eta, .border = o.normalized ? 0.0f : 1.0f}))
        kept.push_back({label, p, score[p * o.classes + label]});
    }
    if (o.keep_top_k >= 0 && kept.size() > static_cast<size_t>(o.keep_top_k)) {
      std::stable_sort(kept.begin(), kept.end(), [](const Detection& a, const Detection& b) { return a.score > b.score; });
      kept.resize(static_cast<size_t>(o.keep_top_k));
      std::stable_sort(kept.begin(), kept.end(), [](const Detection& a, const Detection& b) { return a.label < b.label; });
    }
    for (const Detection& d : kept) {
      const Box& b = boxes[static_cast<size_t>(o.share_location ? 0 : d.label)][static_cast<size_t>(d.prior)];
      found.insert(found.end(),
                   {static_cast<float>(image), static_cast<float>(d.label), d.score, b.left, b.top, b.right, b.bottom});
    }
  }
  if (found.empty())  // one row per image that says so
    for (int64_t image = 0; image < images; ++image)
      found.insert(found.end(), {static_cast<float>(image), -1, -1, -1, -1, -1, -1});
  ORKNN_TRY_ASSIGN(const MutableTensorView y,
                   c.output(0, c.input(0).dtype, Dims{1, 1, static_cast<int64_t>(found.size()) / 7, 7}));
  convert_elements(TensorData::from<float>({1, 1, static_cast<int64_t>(found.size()) / 7, 7}, found).view(), y);
  return {};
}
}  // namespace

std::span<const OpDef> detection_output() {
  static const OpDef def{
      .name = "DetectionOutput",
      .summary = "SSD detections from offsets, confidences and prior boxes",
      .inputs = {3, 3},
      .attributes = {required(attr_int("num_classes")), attr_int("share_location", 1), attr_int("background_label_id", 0),
                     attr_float("nms_threshold", 0.3), attr_int("top_k", -1), attr_float("eta", 1.0),
                     attr_string("code_type", "CORNER"), attr_int("keep_top_k", -1), attr_int("variance_encoded_in_target", 0),
                     attr_float("confidence_threshold", -3.4e38), attr_int("normalized_bbox", 1), attr_int("clip", 0)},
      .infer = infer,
      .run = run,
      .exact_inputs = input_slots({0, 1, 2})};
  return {&def, 1};
}
}  // namespace orknn::ops
