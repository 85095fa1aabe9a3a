// Layers of detectors: prior boxes, SSD's detections, region proposals, pooling of regions.
#include "import/lower/detection.h"

#include <charconv>

#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
// --- priors

// Both lists as pairs; they are of one length.
template <class Pair>
Result<std::vector<Pair>> paired(const std::vector<double>& a, const std::vector<double>& b, const std::string& names) {
  if (a.size() != b.size())
    return invalid_model("as many " + names + " are needed").expected(std::to_string(a.size())).found(std::to_string(b.size()));
  std::vector<Pair> pairs;
  for (size_t i = 0; i < a.size(); ++i) pairs.push_back({static_cast<float>(a[i]), static_cast<float>(b[i])});
  return pairs;
}

Result<std::vector<PriorGrid::Size>> sizes_of(const Parameters& p) {
  if (const auto widths = p.numbers("width"); !widths.empty())
    return paired<PriorGrid::Size>(widths, p.numbers("height"), "'width' as 'height'");
  return prior_sizes({p.numbers("min_size"), p.numbers("max_size"), p.numbers("aspect_ratio"), p.flag("flip", true)});
}

// Boxes around every place of a feature map, then their variances: [1, 2, 4 * boxes].
Result<TensorId> prior_box(Layer& l, TensorId map, TensorId image) {
  const Parameters p = l.parameters("prior_box_param");
  ORKNN_TRY_ASSIGN(const Dims map_dims, l.need_dims(map, "to place boxes", 4));
  ORKNN_TRY_ASSIGN(const Dims image_dims, l.need_dims(image, "to place boxes", 4));
  const int64_t size = p.integer("img_size", 0);
  const int64_t image_height = p.integer("img_h", size ? size : image_dims[2]),
                image_width = p.integer("img_w", size ? size : image_dims[3]);
  if (image_height < 1 || image_width < 1) return invalid_model("the image is empty").found(to_string(image_dims));
  const auto width = static_cast<float>(image_width), height = static_cast<float>(image_height);

  PriorGrid grid{.height = map_dims[2], .width = map_dims[3], .clip = p.flag("clip", false)};
  ORKNN_TRY_ASSIGN(grid.boxes, sizes_of(p));
  const double offset = p.number("offset", 0.5);
  const auto offsets = [&](const char* name) { return p.has(name) ? p.numbers(name) : std::vector{offset}; };
  ORKNN_TRY_ASSIGN(grid.offsets, paired<PriorGrid::Offset>(offsets("offset_w"), offsets("offset_h"), "'offset_w' as 'offset_h'"));
  const double step = p.number("step", 0), step_x = p.number("step_w", step), step_y = p.number("step_h", step);
  grid.step_x = step_x > 0 ? static_cast<float>(step_x) : width / static_cast<float>(map_dims[3]);
  grid.step_y = step_y > 0 ? static_cast<float>(step_y) : height / static_cast<float>(map_dims[2]);
  if (p.flag("normalized_bbox", true)) {
    grid.unit_x = width;
    grid.unit_y = height;
  } else {
    grid.border = 1;
  }
  std::vector<double> variances = p.numbers("variance");
  if (variances.empty()) variances = {0.1};
  if (variances.size() != 1 && variances.size() != 4)
    return invalid_model("'variance' must be given once or four times").found(std::to_string(variances.size()));

  ORKNN_TRY_ASSIGN(std::vector<float> values, place_priors(grid));
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(variances[i % variances.size()]));
  return l.add_constant("boxes", TensorData::from<float>({1, 2, static_cast<int64_t>(count)}, values));
}

TensorId detection_output(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("detection_output_param"), nms = p.message("nms_param");
  const auto flag = [&](const char* name, bool fallback) { return int64_t{p.flag(name, fallback)}; };
  const std::string code = p.word("code_type", "CORNER");
  Attributes attributes{{"num_classes", p.integer("num_classes", 0)},
                        {"background_label_id", p.integer("background_label_id", 0)},
                        {"keep_top_k", p.integer("keep_top_k", -1)},
                        {"share_location", flag("share_location", true)},
                        {"variance_encoded_in_target", flag("variance_encoded_in_target", false)},
                        {"normalized_bbox", flag("normalized_bbox", true)},
                        {"clip", flag("clip", false)},
                        {"nms_threshold", nms.number("nms_threshold", 0.3)},
                        {"eta", nms.number("eta", 1)},
                        {"top_k", nms.integer("top_k", -1)},
                        {"code_type", code == "1"   ? "CORNER"
                                      : code == "2" ? "CENTER_SIZE"
                                      : code == "3" ? "CORNER_SIZE"
                                                    : code}};
  if (p.has("confidence_threshold")) attributes.set("confidence_threshold", p.number("confidence_threshold", 0));
  return l.emit("DetectionOutput", {bottoms[0], bottoms[1], bottoms[2]}, std::move(attributes));
}

// --- proposals

struct Proposal {
  double stride = 16, base = 16, min_size = 16, threshold = 0.7;
  int64_t before = 6000, after = 300;
  std::vector<double> ratios{0.5, 1, 2}, scales{8, 16, 32};
};

Proposal proposal_from(const Parameters& p) {
  Proposal q;
  q.stride = p.number("feat_stride", q.stride);
  q.base = p.number("base_size", q.base);
  q.min_size = p.number("min_size", q.min_size);
  q.threshold = p.number("nms_thresh", q.threshold);
  q.before = p.integer("pre_nms_topn", q.before);
  q.after = p.integer("post_nms_topn", q.after);
  if (p.has("ratio")) q.ratios = p.numbers("ratio");
  if (p.has("scale")) q.scales = p.numbers("scale");
  return q;
}

// The original layer is written in Python; its parameters are a dictionary in YAML: "'feat_stride': 16" and perhaps scales.
Proposal proposal_from_python(const std::string& text) {
  Proposal q;
  const auto numbers_after = [&](std::string_view key) {
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
  if (const auto stride = numbers_after("feat_stride"); !stride.empty()) q.stride = stride[0];
  if (const auto scales = numbers_after("scales"); !scales.empty()) q.scales = scales;
  if (const auto ratios = numbers_after("ratios"); !ratios.empty()) q.ratios = ratios;
  return q;
}

Result<Proposal> proposal_of(const LayerDescription& layer) {
  Status problem;
  const bool is_python = layer.type == "Python";
  const Parameters p(layer.parameters(is_python ? "python_param" : "proposal_param"), problem);
  const std::string name = p.text("layer", "");
  if (is_python && name != "ProposalLayer" && problem)
    return unsupported("layers written in Python are not supported")
        .found("'" + name + "'")
        .hint("its program is not part of the file; end the network before it");
  Proposal q = is_python ? proposal_from_python(p.text("param_str", "")) : proposal_from(p);
  if (!problem) return problem;
  return q;
}

Result<std::vector<TensorId>> proposal(Layer& l, Operands bottoms) {
  ORKNN_TRY_ASSIGN(const Proposal q, proposal_of(l.description()));
  if (bottoms.size() != 3) return wrong_input_count(bottoms.size(), 3, 3);
  return l.emit_all("Proposal", {bottoms[0], bottoms[1], bottoms[2]},
                    {{"ratios", q.ratios},
                     {"scales", q.scales},
                     {"feat_stride", q.stride},
                     {"base_size", q.base},
                     {"min_size", q.min_size},
                     {"pre_nms_topn", q.before},
                     {"post_nms_topn", q.after},
                     {"nms_threshold", q.threshold}},
                    l.top_count() > 1 ? 2 : 1);
}

// --- regions

RegionPooling region_pooling(const Parameters& p) {
  return {.height = p.integer("pooled_h", 0),
          .width = p.integer("pooled_w", 0),
          .scale = p.number("spatial_scale", 1),
          .samples = p.integer("sampling_ratio", 0)};
}

Result<TensorId> roi_pooling(Layer& l, TensorId x, TensorId rois) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(rois, "to read the regions"));
  return roi_max_pool(l, x, rank == 2 ? rois : l.reshape(rois, {-1, 5}), region_pooling(l.parameters("roi_pooling_param")));
}

TensorId roi_aligned(Layer& l, TensorId x, TensorId rois) {
  return roi_align(l, x, split_regions(l, l.reshape(rois, {-1, 5})), region_pooling(l.parameters("roi_align_param")));
}

TensorId ps_roi_pooling(Layer& l, TensorId x, TensorId rois) {
  const Parameters p = l.parameters("psroi_pooling_param");
  return position_sensitive_pool(l, x, l.reshape(rois, {-1, 5}), p.integer("output_dim", 0), p.integer("group_size", 0),
                                 p.number("spatial_scale", 1));
}
}  // namespace

std::span<const Row> detection_rows() {
  static const Row rows[] = {
      {"PriorBox|PriorBoxClustered", prior_box, kTwo},
      {"Proposal|Python", proposal},
      {"DetectionOutput", detection_output, {.inputs = {3, 5}}},
      {"ROIPooling", roi_pooling, kTwo},
      {"ROIAlign|RoiAlign", roi_aligned, kTwo},
      {"PSROIPooling", ps_roi_pooling, kTwo},
  };
  return rows;
}

Result<int64_t> anchor_count(const LayerDescription& layer) {
  ORKNN_TRY_ASSIGN(const Proposal q, proposal_of(layer));
  return static_cast<int64_t>(q.ratios.size() * q.scales.size());
}

}  // namespace orknn::importer::caffe
