// Linear models: scores are dot products of features and coefficients plus intercepts.
#include <algorithm>

#include "ops/support/post_transform.h"
#include "ops/support/samples.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Number of score rows in `coefficients` for samples of `features` features.
Result<int64_t> check_model(const std::vector<double>& coefficients, const std::vector<double>& intercepts, int64_t features) {
  const auto size = static_cast<int64_t>(coefficients.size());
  if (features < 1 || size == 0 || size % features != 0)
    return shape_mismatch("coefficients do not fit the features")
        .expected("a positive multiple of " + std::to_string(features))
        .found(std::to_string(size));
  if (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != size / features)
    return invalid_model("one intercept per score is needed")
        .expected(std::to_string(size / features))
        .found(std::to_string(intercepts.size()));
  return size / features;
}

// A single score decides between two classes.
Status check_labels(int64_t scores, size_t labels) {
  if (scores == 1 || static_cast<int64_t>(labels) == scores) return {};
  return invalid_model("one label per score is needed").expected(std::to_string(scores)).found(std::to_string(labels));
}

void score_sample(const double* x, int64_t features, const std::vector<double>& coefficients,
                  const std::vector<double>& intercepts, std::span<float> scores) {
  for (size_t k = 0; k < scores.size(); ++k) {
    double sum = intercepts.empty() ? 0 : intercepts[k];
    for (int64_t i = 0; i < features; ++i) sum += x[i] * coefficients[k * static_cast<size_t>(features) + static_cast<size_t>(i)];
    scores[k] = static_cast<float>(sum);
  }
}

// `targets` are the score rows that check_model() found.
Status check_targets(const NodeReader& c, int64_t targets) {
  if (targets == c.get_int("targets")) return {};
  return shape_mismatch("coefficients do not fit the targets")
      .expected(std::to_string(c.get_int("targets")))
      .found(std::to_string(targets));
}

Status infer_regressor(InferContext& c) {
  ORKNN_TRY_ASSIGN(const Dim samples, sample_count(c));
  const int64_t targets = c.get_int("targets");
  if (targets < 1) return invalid_model("illegal number of targets").found(std::to_string(targets));
  ORKNN_TRY(post_transform_from(c.get_string("post_transform")).status());
  if (const Shape* x = c.shape(0); x && x->back().is_known()) {
    ORKNN_TRY_ASSIGN(const int64_t count,
                     check_model(floats_of(c, "coefficients"), floats_of(c, "intercepts"), x->back().value()));
    ORKNN_TRY(check_targets(c, count));
  }
  c.set_output(0, DType::Float32, Shape{c.shape(0) ? samples : Dim(), targets});
  return {};
}

Status run_regressor(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Samples x, read_samples(c));
  ORKNN_TRY_ASSIGN(const PostTransform transform, post_transform_from(c.get_string("post_transform")));
  const std::vector<double> coefficients = floats_of(c, "coefficients"), intercepts = floats_of(c, "intercepts");
  ORKNN_TRY_ASSIGN(const int64_t targets, check_model(coefficients, intercepts, x.features));
  ORKNN_TRY(check_targets(c, targets));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Float32, Dims{x.count, targets}));
  for (int64_t n = 0; n < x.count; ++n) {
    const std::span<float> scores(y.as<float>() + n * targets, static_cast<size_t>(targets));
    score_sample(x.values.data() + n * x.features, x.features, coefficients, intercepts, scores);
    apply_post_transform(transform, scores);
  }
  return {};
}

Status infer_classifier(InferContext& c) {
  ORKNN_TRY_ASSIGN(const Dim samples, sample_count(c));
  if (c.find<std::vector<std::string>>("classlabels_strings"))
    return unsupported("class names are not supported").hint("use number labels (classlabels_ints)");
  ORKNN_TRY(post_transform_from(c.get_string("post_transform")).status());
  Dim scores;
  const Shape* x = c.shape(0);
  if (x && x->back().is_known()) {
    ORKNN_TRY_ASSIGN(int64_t count, check_model(floats_of(c, "coefficients"), floats_of(c, "intercepts"), x->back().value()));
    const auto* labels = c.find<std::vector<int64_t>>("classlabels_ints");
    ORKNN_TRY(check_labels(count, labels ? labels->size() : 0));
    if (count == 1 && labels && labels->size() == 2) count = 2;
    scores = count;
  }
  c.set_output(0, DType::Int64, Shape{x ? samples : Dim()});
  c.set_output(1, DType::Float32, Shape{x ? samples : Dim(), scores});
  return {};
}

Status run_classifier(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Samples x, read_samples(c));
  ORKNN_TRY_ASSIGN(const PostTransform transform, post_transform_from(c.get_string("post_transform")));
  const std::vector<double> coefficients = floats_of(c, "coefficients"), intercepts = floats_of(c, "intercepts");
  ORKNN_TRY_ASSIGN(const int64_t rows, check_model(coefficients, intercepts, x.features));
  const auto* given = c.find<std::vector<int64_t>>("classlabels_ints");
  const std::vector<int64_t> labels = given ? *given : std::vector<int64_t>();
  const bool binary = rows == 1 && labels.size() == 2;
  ORKNN_TRY(check_labels(rows, labels.size()));
  const int64_t scores = binary ? 2 : rows;
  MutableTensorView y, z;
  std::vector<float> unread(static_cast<size_t>(scores));
  if (c.has_output(0)) {
    ORKNN_TRY_ASSIGN(y, c.output(0, DType::Int64, Dims{x.count}));
  }
  if (c.has_output(1)) {
    ORKNN_TRY_ASSIGN(z, c.output(1, DType::Float32, Dims{x.count, scores}));
  }
  for (int64_t n = 0; n < x.count; ++n) {
    const std::span<float> row(z.data ? z.as<float>() + n * scores : unread.data(), static_cast<size_t>(scores));
    score_sample(x.values.data() + n * x.features, x.features, coefficients, intercepts, row.last(static_cast<size_t>(rows)));
    int64_t label;
    if (rows > 1)
      label = labels[static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin())];
    else if (binary)
      label = labels[row.back() > 0 ? 1 : 0];
    else
      label = row[0] > 0 ? (labels.empty() ? 1 : labels[0]) : 0;
    if (y.data) y.as<int64_t>()[n] = label;
    if (!binary) {
      apply_post_transform(transform, row);
      continue;
    }
    // A single score stands for the second of two classes; the first gets the rest to 1.
    if (transform == PostTransform::Logistic || transform == PostTransform::Probit) apply_post_transform(transform, row.last(1));
    row[0] = 1.0f - row[1];
  }
  return {};
}
}  // namespace

std::span<const OpDef> linear() {
  static const OpDef defs[] = {
      {.name = "ai.onnx.ml:LinearRegressor",
       .summary = "linear regression",
       .attributes = {attr_floats("coefficients"), attr_floats("intercepts"), attr_string("post_transform", "NONE"),
                      attr_int("targets", 1)},
       .infer = infer_regressor,
       .run = run_regressor},
      {.name = "ai.onnx.ml:LinearClassifier",
       .summary = "linear classification",
       .outputs = {1, 2},
       .attributes = {attr_ints("classlabels_ints"), attr_strings("classlabels_strings"), required(attr_floats("coefficients")),
                      attr_floats("intercepts"), attr_int("multi_class", 0), attr_string("post_transform", "NONE")},
       .infer = infer_classifier,
       .run = run_classifier},
  };
  return defs;
}
}  // namespace orknn::ops
