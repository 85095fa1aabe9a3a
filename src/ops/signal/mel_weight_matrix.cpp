// Triangular weights that turn a linear spectrum into mel bands.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/support/copies.h"
#include "ops/support/fourier.h"
#include "ops/support/movement.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr int64_t kMaxBins = 1 << 20;

Result<DType> output_type(const NodeReader& c) {
  const auto type = static_cast<DType>(c.get_int("output_datatype"));
  if (c.get_int("output_datatype") < 0 || c.get_int("output_datatype") > 22 || (!is_float(type) && !is_integer(type)))
    return unsupported("the output type is not supported").found(std::to_string(c.get_int("output_datatype")));
  return type;
}

Status infer(InferContext& c) {
  for (size_t i = 0; i < 3; ++i) ORKNN_TRY(require_integer(c, i, "num_mel_bins, dft_length and sample_rate"));
  for (size_t i = 0; i < 5; ++i) ORKNN_TRY(require_one_value(c, i, "input " + std::to_string(i)));
  ORKNN_TRY(require_values(c, 0, "the number of bands is", 0, kMaxBins));
  ORKNN_TRY(require_values(c, 1, "the length is", 0, kMaxFourierLength));
  ORKNN_TRY(require_values(c, 2, "the sample rate is", 1, INT64_MAX));
  ORKNN_TRY(require_numbers(c, 3, "the lower band edge is", 0, std::numeric_limits<double>::max()));
  const double low = scalar_of(c, 3).value_or(0);
  ORKNN_TRY(require_numbers(c, 4, "the upper band edge is", low, std::numeric_limits<double>::max()));
  ORKNN_TRY_ASSIGN(const DType type, output_type(c));
  const auto bins = small_content(c, 0), length = small_content(c, 1);
  const Dim columns = bins && bins->size() == 1 ? bins->front() : Dim();
  const Dim rows = length && length->size() == 1 ? length->front() / Dim(2) + Dim(1) : Dim();
  c.set_output(0, type, Shape{rows, columns});
  return {};
}

Status run(RunContext& c) {
  for (size_t i = 0; i < 5; ++i)
    if (c.input(i).count() != 1)
      return invalid_argument("input " + std::to_string(i) + " must be one number").found(to_string(c.input(i).dims));
  const int64_t bands = to_ints(c.input(0))[0], length = to_ints(c.input(1))[0], rate = to_ints(c.input(2))[0];
  const double low = to_doubles(c.input(3))[0], high = to_doubles(c.input(4))[0];
  if (bands < 0 || bands > kMaxBins || length < 0 || length > kMaxFourierLength || rate < 1)
    return invalid_argument("illegal number of bands, length or rate");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  if (!(low >= 0) || !(high >= low) || !std::isfinite(high))
    return invalid_argument("illegal band edges").found(std::to_string(low) + " to " + std::to_string(high));
  const int64_t rows = length / 2 + 1;
  // Spectrum bin of each band edge.
  std::vector<int64_t> edges;
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10.0, (mel(low) + static_cast<double>(i) * step) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(
        std::min(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)), static_cast<double>(rows))));
  }
  ORKNN_TRY_ASSIGN(DType type, output_type(c));
  // Half results are computed wide; the caller narrows them.
  if (type == DType::Float16 || type == DType::BFloat16) type = DType::Float32;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, Dims{rows, bands}));
  std::vector<double> weights(static_cast<size_t>(rows * bands), 0.0);
  const auto at = [&](int64_t row, int64_t band, double value) {
    if (row < rows) weights[static_cast<size_t>(row * bands + band)] = value;
  };
  for (int64_t i = 0; i < bands; ++i) {
    const int64_t lower = edges[static_cast<size_t>(i)], center = edges[static_cast<size_t>(i) + 1],
                  upper = edges[static_cast<size_t>(i) + 2];
    if (center == lower)
      at(center, i, 1);
    else
      for (int64_t j = lower; j <= center; ++j) at(j, i, static_cast<double>(j - lower) / static_cast<double>(center - lower));
    for (int64_t j = center; j < upper; ++j) at(j, i, static_cast<double>(upper - j) / static_cast<double>(upper - center));
  }
  convert_elements({DType::Float64, y.dims, weights.data()}, y);
  return {};
}
}  // namespace

std::span<const OpDef> mel_weight_matrix() {
  static const OpDef def{.name = "MelWeightMatrix",
                         .summary = "weights from a linear spectrum to mel bands",
                         .inputs = {5, 5},
                         .attributes = {attr_int("output_datatype", 1)},
                         .infer = infer,
                         .run = run};
  return {&def, 1};
}
}  // namespace orknn::ops
