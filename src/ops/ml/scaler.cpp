// Feature preparation: shifts and scales, and division by a norm of each sample.
#include <algorithm>
#include <cmath>

#include "ops/support/samples.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(sample_count(c).status());
  c.set_output(0, DType::Float32, c.input(0).shape);
  return {};
}

// Whether `values` has one entry, or one per feature.
bool fits(const std::vector<double>& values, int64_t features) {
  return values.size() == 1 || static_cast<int64_t>(values.size()) == features;
}
Status check_scaling(const std::vector<double>& offset, const std::vector<double>& scale, int64_t features) {
  if (fits(offset, features) && fits(scale, features)) return {};
  return shape_mismatch("offset and scale need one entry, or one per feature").expected(std::to_string(features));
}

Status infer_scaler(InferContext& c) {
  if (const Shape* x = c.shape(0); x && !x->empty() && x->back().is_known())
    ORKNN_TRY(check_scaling(floats_of(c, "offset"), floats_of(c, "scale"), x->back().value()));
  return infer(c);
}

Status infer_normalizer(InferContext& c) {
  const std::string& norm = c.get_string("norm");
  if (norm != "MAX" && norm != "L1" && norm != "L2") return unsupported("unknown norm").expected("MAX, L1 or L2").found(norm);
  return infer(c);
}

Status run_scaler(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Samples x, read_samples(c));
  const std::vector<double> offset = floats_of(c, "offset"), scale = floats_of(c, "scale");
  ORKNN_TRY(check_scaling(offset, scale, x.features));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Float32, c.input(0).dims));
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t feature = i % static_cast<size_t>(x.features);
    y.as<float>()[i] =
        static_cast<float>((x.values[i] - offset[offset.size() == 1 ? 0 : feature]) * scale[scale.size() == 1 ? 0 : feature]);
  }
  return {};
}

Status run_normalizer(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Samples x, read_samples(c));
  const std::string& norm = c.get_string("norm");
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::Float32, c.input(0).dims));
  for (int64_t n = 0; n < x.count; ++n) {
    const double* row = x.values.data() + n * x.features;
    double size = 0;
    for (int64_t i = 0; i < x.features; ++i)
      size = norm == "MAX" ? std::max(size, std::abs(row[i])) : size + (norm == "L1" ? std::abs(row[i]) : row[i] * row[i]);
    if (norm == "L2") size = std::sqrt(size);
    // A sample of zeros stays what it is.
    for (int64_t i = 0; i < x.features; ++i)
      y.as<float>()[n * x.features + i] = static_cast<float>(size == 0 ? row[i] : row[i] / size);
  }
  return {};
}
}  // namespace

std::span<const OpDef> scaler() {
  static const OpDef defs[] = {
      {.name = "ai.onnx.ml:Scaler",
       .summary = "(x - offset) * scale",
       .attributes = {attr_floats("offset"), attr_floats("scale")},
       .infer = infer_scaler,
       .run = run_scaler},
      {.name = "ai.onnx.ml:Normalizer",
       .summary = "divides each sample by its norm",
       .attributes = {attr_string("norm", "MAX")},
       .infer = infer_normalizer,
       .run = run_normalizer},
  };
  return defs;
}
}  // namespace orknn::ops
