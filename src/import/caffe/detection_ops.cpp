// Layers of detectors: prior boxes, SSD's detections, region proposals.
#include <charconv>
#include <cmath>

#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
constexpr int64_t kMaxBoxes = int64_t{1} << 22;

std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

struct PriorBoxes {
  std::vector<float> widths, heights;       // of the boxes at each place, in their order
  std::vector<float> offsets_x, offsets_y;  // where in its cell a box has its middle
  std::vector<float> variances;
  float step_x = 0, step_y = 0;
  bool clip = false, normalized = true;
};

// Each ratio once, followed by its reciprocal; 1 is not among them.
std::vector<float> aspect_ratios(const std::vector<double>& stated, bool flip) {
  std::vector<float> ratios;
  for (double r : stated) {
    const auto ratio = static_cast<float>(r);
    bool known = std::abs(ratio - 1) < 1e-6f;
    for (float other : ratios) known |= std::abs(ratio - other) < 1e-6f;
    if (known) continue;
    ratios.push_back(ratio);
    if (flip) ratios.push_back(1 / ratio);
  }
  return ratios;
}

Status read_box_sizes(const Message& p, PriorBoxes& boxes) {
  ORKNN_TRY_ASSIGN(const auto widths, p.get_doubles("width"));
  ORKNN_TRY_ASSIGN(const auto heights, p.get_doubles("height"));
  if (!widths.empty()) {
    if (widths.size() != heights.size())
      return invalid_model("as many widths as heights are needed")
          .expected(std::to_string(widths.size()))
          .found(std::to_string(heights.size()));
    boxes.widths = floats(widths);
    boxes.heights = floats(heights);
    return {};
  }
  ORKNN_TRY_ASSIGN(const auto least, p.get_doubles("min_size"));
  ORKNN_TRY_ASSIGN(const auto most, p.get_doubles("max_size"));
  ORKNN_TRY_ASSIGN(const auto stated, p.get_doubles("aspect_ratio"));
  ORKNN_TRY_ASSIGN(const bool flip, p.get_bool("flip", true));
  if (least.empty()) return invalid_model("'min_size' is missing");
  if (!most.empty() && most.size() != least.size())
    return invalid_model("as many 'max_size' as 'min_size' are needed")
        .expected(std::to_string(least.size()))
        .found(std::to_string(most.size()));
  for (double r : stated)
    if (!(r > 0)) return invalid_model("'aspect_ratio' must be positive").found(std::to_string(r));
  const std::vector<float> ratios = aspect_ratios(stated, flip);
  for (size_t i = 0; i < least.size(); ++i) {
    const auto size = static_cast<float>(least[i]);
    boxes.widths.push_back(size);
    boxes.heights.push_back(size);
    if (!most.empty()) {
      const float middle = std::sqrt(size * static_cast<float>(most[i]));
      boxes.widths.push_back(middle);
      boxes.heights.push_back(middle);
    }
    for (float ratio : ratios) {
      boxes.widths.push_back(size * std::sqrt(ratio));
      boxes.heights.push_back(size / std::sqrt(ratio));
    }
  }
  return {};
}

Result<PriorBoxes> prior_boxes_of(const Message& p) {
  PriorBoxes boxes;
  ORKNN_TRY(read_box_sizes(p, boxes));
  ORKNN_TRY_ASSIGN(const double offset, p.get_double("offset", 0.5));
  ORKNN_TRY_ASSIGN(const auto offsets_x, p.get_doubles("offset_w"));
  ORKNN_TRY_ASSIGN(const auto offsets_y, p.get_doubles("offset_h"));
  boxes.offsets_x = offsets_x.empty() ? std::vector<float>{static_cast<float>(offset)} : floats(offsets_x);
  boxes.offsets_y = offsets_y.empty() ? std::vector<float>{static_cast<float>(offset)} : floats(offsets_y);
  if (boxes.offsets_x.size() != boxes.offsets_y.size()) return invalid_model("as many 'offset_w' as 'offset_h' are needed");
  ORKNN_TRY_ASSIGN(const auto variances, p.get_doubles("variance"));
  boxes.variances = variances.empty() ? std::vector<float>{0.1f} : floats(variances);
  if (boxes.variances.size() != 1 && boxes.variances.size() != 4)
    return invalid_model("'variance' must be given once or four times").found(std::to_string(boxes.variances.size()));
  ORKNN_TRY_ASSIGN(const double step, p.get_double("step", 0));
  ORKNN_TRY_ASSIGN(const double step_x, p.get_double("step_w", step));
  ORKNN_TRY_ASSIGN(const double step_y, p.get_double("step_h", step));
  boxes.step_x = static_cast<float>(step_x);
  boxes.step_y = static_cast<float>(step_y);
  ORKNN_TRY_ASSIGN(boxes.clip, p.get_bool("clip", false));
  ORKNN_TRY_ASSIGN(boxes.normalized, p.get_bool("normalized_bbox", true));
  return boxes;
}

// Boxes around every place of a feature map, then their variances: [1, 2, 4 * boxes]. Follows from shapes alone.
Status prior_box(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 2));
  const Message& p = l.parameters("prior_box_param");
  ORKNN_TRY_ASSIGN(const PriorBoxes b, prior_boxes_of(p));
  ORKNN_TRY_ASSIGN(const Dims map, l.need_dims(l.bottom(0), "to place boxes"));
  ORKNN_TRY_ASSIGN(const Dims image, l.need_dims(l.bottom(1), "to place boxes"));
  if (map.size() != 4 || image.size() != 4)
    return unsupported("prior boxes need a feature map and an image").found(to_string(map) + ", " + to_string(image));
  ORKNN_TRY_ASSIGN(const int64_t size, p.get_int("img_size", 0));
  ORKNN_TRY_ASSIGN(const int64_t image_height, p.get_int("img_h", size ? size : image[2]));
  ORKNN_TRY_ASSIGN(const int64_t image_width, p.get_int("img_w", size ? size : image[3]));
  if (image_height < 1 || image_width < 1) return invalid_model("the image is empty").found(to_string(image));
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(Dims{map[2], map[3], static_cast<int64_t>(b.widths.size()),
                                                                   static_cast<int64_t>(b.offsets_x.size())},
                                                              kMaxBoxes));
  const auto width = static_cast<float>(image_width), height = static_cast<float>(image_height);
  const float step_x = b.step_x > 0 ? b.step_x : width / static_cast<float>(map[3]),
              step_y = b.step_y > 0 ? b.step_y : height / static_cast<float>(map[2]);
  TensorData result = TensorData::allocate(DType::Float32, {1, 2, count * 4});
  float* to = static_cast<float*>(result.mutable_data());
  for (int64_t y = 0; y < map[2]; ++y)
    for (int64_t x = 0; x < map[3]; ++x)
      for (size_t k = 0; k < b.widths.size(); ++k)
        for (size_t j = 0; j < b.offsets_x.size(); ++j) {
          const float center_x = (static_cast<float>(x) + b.offsets_x[j]) * step_x,
                      center_y = (static_cast<float>(y) + b.offsets_y[j]) * step_y;
          const float border = b.normalized ? 0.0f : 1.0f, scale_x = b.normalized ? width : 1.0f,
                      scale_y = b.normalized ? height : 1.0f;
          for (float side :
               {(center_x - b.widths[k] * 0.5f) / scale_x, (center_y - b.heights[k] * 0.5f) / scale_y,
                (center_x + b.widths[k] * 0.5f - border) / scale_x, (center_y + b.heights[k] * 0.5f - border) / scale_y})
            *to++ = b.clip ? std::min(std::max(side, 0.0f), 1.0f) : side;
        }
  for (int64_t i = 0; i < count * 4; ++i) *to++ = b.variances[static_cast<size_t>(i) % b.variances.size()];
  return l.set_top(l.add_constant("boxes", std::move(result)));
}

Status detection_output(Layer& l) {
  ORKNN_TRY(l.need_bottoms(3, 5));
  const Message& p = l.parameters("detection_output_param");
  const Message& nms = p.message("nms_param");
  Attributes attributes;
  for (const auto& [name, fallback] : {std::pair("num_classes", int64_t{0}), std::pair("background_label_id", int64_t{0}),
                                       std::pair("keep_top_k", int64_t{-1})}) {
    ORKNN_TRY_ASSIGN(const int64_t value, p.get_int(name, fallback));
    attributes.set(name, value);
  }
  for (const auto& [name, fallback] : {std::pair("share_location", true), std::pair("variance_encoded_in_target", false),
                                       std::pair("normalized_bbox", true), std::pair("clip", false)}) {
    ORKNN_TRY_ASSIGN(const bool value, p.get_bool(name, fallback));
    attributes.set(name, int64_t{value});
  }
  if (p.has("confidence_threshold")) {
    ORKNN_TRY_ASSIGN(const double confidence, p.get_double("confidence_threshold", 0));
    attributes.set("confidence_threshold", confidence);
  }
  ORKNN_TRY_ASSIGN(const double threshold, nms.get_double("nms_threshold", 0.3));
  ORKNN_TRY_ASSIGN(const double eta, nms.get_double("eta", 1));
  ORKNN_TRY_ASSIGN(const int64_t top_k, nms.get_int("top_k", -1));
  ORKNN_TRY_ASSIGN(const std::string code, p.get_word("code_type", "CORNER"));
  attributes.set("nms_threshold", threshold);
  attributes.set("eta", eta);
  attributes.set("top_k", top_k);
  attributes.set("code_type", code == "1" ? "CORNER" : code == "2" ? "CENTER_SIZE" : code == "3" ? "CORNER_SIZE" : code);
  return l.set_top(l.emit("DetectionOutput", {l.bottom(0), l.bottom(1), l.bottom(2)}, std::move(attributes)));
}

// --- proposals

struct Proposal {
  double stride = 16, base = 16, min_size = 16, threshold = 0.7;
  int64_t before = 6000, after = 300;
  std::vector<double> ratios{0.5, 1, 2}, scales{8, 16, 32};
};

Result<Proposal> proposal_from(const Message& p) {
  Proposal q;
  ORKNN_TRY_ASSIGN(q.stride, p.get_double("feat_stride", q.stride));
  ORKNN_TRY_ASSIGN(q.base, p.get_double("base_size", q.base));
  ORKNN_TRY_ASSIGN(q.min_size, p.get_double("min_size", q.min_size));
  ORKNN_TRY_ASSIGN(q.threshold, p.get_double("nms_thresh", q.threshold));
  ORKNN_TRY_ASSIGN(q.before, p.get_int("pre_nms_topn", q.before));
  ORKNN_TRY_ASSIGN(q.after, p.get_int("post_nms_topn", q.after));
  ORKNN_TRY_ASSIGN(const auto ratios, p.get_doubles("ratio"));
  ORKNN_TRY_ASSIGN(const auto scales, p.get_doubles("scale"));
  if (!ratios.empty()) q.ratios = ratios;
  if (!scales.empty()) q.scales = scales;
  return q;
}

// The original layer is written in Python; its parameters are a dictionary in YAML: "'feat_stride': 16" and perhaps scales.
Proposal proposal_from_python(const std::string& text) {
  Proposal q;
  const auto numbers_behind = [&](std::string_view key) {
    std::vector<double> values;
    size_t at = text.find(key);
    if (at == std::string::npos) return values;
    at = text.find(':', at);
    const size_t end = at == std::string::npos
                           ? at
                           : text.find_first_of(text.find('[', at) == text.find_first_not_of(" :", at) ? "]" : ",}\n", at);
    while (at < std::min(end, text.size())) {
      double value = 0;
      const auto [rest, error] = std::from_chars(text.data() + at, text.data() + std::min(end, text.size()), value);
      if (error == std::errc()) values.push_back(value);
      at = error == std::errc() ? static_cast<size_t>(rest - text.data()) : at + 1;
    }
    return values;
  };
  if (const auto stride = numbers_behind("feat_stride"); !stride.empty()) q.stride = stride[0];
  if (const auto scales = numbers_behind("scales"); !scales.empty()) q.scales = scales;
  if (const auto ratios = numbers_behind("ratios"); !ratios.empty()) q.ratios = ratios;
  return q;
}

Result<Proposal> proposal_of(const LayerDescription& layer) {
  if (layer.type != "Python") return proposal_from(layer.parameters("proposal_param"));
  const Message& p = layer.parameters("python_param");
  ORKNN_TRY_ASSIGN(const std::string name, p.get_string("layer", ""));
  ORKNN_TRY_ASSIGN(const std::string text, p.get_string("param_str", ""));
  if (name != "ProposalLayer")
    return unsupported("a layer written in Python")
        .found("'" + name + "'")
        .hint("its program is not part of the file; end the network before it");
  return proposal_from_python(text);
}

Status proposal(Layer& l) {
  ORKNN_TRY_ASSIGN(const Proposal q, proposal_of(l.description()));
  ORKNN_TRY(l.need_bottoms(3, 3));
  const auto outputs = l.emit_all("Proposal", {l.bottom(0), l.bottom(1), l.bottom(2)},
                                  {{"ratios", q.ratios},
                                   {"scales", q.scales},
                                   {"feat_stride", q.stride},
                                   {"base_size", q.base},
                                   {"min_size", q.min_size},
                                   {"pre_nms_topn", q.before},
                                   {"post_nms_topn", q.after},
                                   {"nms_threshold", q.threshold}},
                                  l.top_count() > 1 ? 2 : 1);
  for (size_t i = 0; i < outputs.size(); ++i) ORKNN_TRY(l.set_top(outputs[i], i));
  return {};
}
}  // namespace

std::span<const Row> detection_rows() {
  static constexpr Row kRows[] = {{"PriorBox", prior_box},
                                  {"PriorBoxClustered", prior_box},
                                  {"DetectionOutput", detection_output},
                                  {"Proposal", proposal},
                                  {"Python", proposal}};
  return kRows;
}

Result<int64_t> anchor_count(const LayerDescription& layer) {
  ORKNN_TRY_ASSIGN(const Proposal q, proposal_of(layer));
  return static_cast<int64_t>(q.ratios.size() * q.scales.size());
}

}  // namespace orknn::importer::caffe
