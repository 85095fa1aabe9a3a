// Interpolation and sampling.
#include "import/lower/sampling.h"
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;
using Mode = Interpolation::Mode;

constexpr Interpolation kNearest{}, kNearestExact{.compares_centres = true}, kLinear{.mode = Mode::Linear},
    kCubic{.mode = Mode::Cubic}, kLinearSmooth{.mode = Mode::Linear, .antialias = true},
    kCubicSmooth{.mode = Mode::Cubic, .antialias = true};

// The old forms have one factor per axis, all or none of them given; the new ones a list.
std::vector<double> factors_of(Call& c, size_t spatial) {
  static constexpr std::string_view kNames[] = {"scales_d", "scales_h", "scales_w"};
  std::vector<double> factors;
  for (std::string_view name : std::span(kNames).last(spatial)) {
    if (!c.has(name)) return {};
    factors.push_back(c.number(name));
  }
  return factors;
}
// `Spatial` axes with a factor each, or 0 for a list of factors.
template <const Interpolation& How, size_t Spatial>
Result<TensorId> upsample(Call& c, TensorId x) {
  Interpolation how = How;
  if (how.mode != Mode::Nearest) how.align_corners = c.flag("align_corners");
  return interpolated(c, x, how, c.ints("output_size"), Spatial == 0 ? c.numbers("scale_factors") : factors_of(c, Spatial));
}

// What scripts called before interpolate itself was code in the archive. The pixels follow from the sizes alone.
Result<TensorId> interpolate_by(Call& c, std::string_view mode, bool align_corners) {
  std::vector<int64_t> size = c.ints("size");
  const std::vector<double> factors = c.numbers("scale_factor");
  const Dims& dims = c.dims("input");
  for (size_t i = 0; size.size() + 2 < dims.size() && !factors.empty(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t extent, scaled_extent(dims[2 + i], factors[std::min(i, factors.size() - 1)]));
    size.push_back(extent);
  }
  Interpolation how{.align_corners = align_corners};
  if (mode == "linear" || mode == "bilinear" || mode == "trilinear")
    how.mode = Mode::Linear;
  else if (mode == "bicubic")
    how.mode = Mode::Cubic;
  else if (mode != "nearest")
    return unsupported("interpolation mode " + std::string(mode) + " is not supported");
  return interpolated(c, c.tensor("input"), how, std::move(size), {});
}
Result<TensorId> interpolate(Call& c) { return interpolate_by(c, c.text("mode"), c.flag("align_corners")); }
Result<TensorId> upsample_nearest(Call& c) { return interpolate_by(c, "nearest", false); }
Result<TensorId> upsample_bilinear(Call& c) { return interpolate_by(c, "bilinear", true); }

// --- sampling
Result<TensorId> grid_sample(Call& c, TensorId x, TensorId grid) {
  static constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  static constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t mode = c.integer("interpolation_mode"), padding = c.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) return invalid_model("grid_sampler has an unknown mode");
  return grid_sampled(c, x, grid, kModes[mode], kPaddings[padding], c.flag("align_corners"));
}
TensorId affine_grid_generator(Call& c, TensorId theta) { return affine_grid(c, theta, c.ints("size"), c.flag("align_corners")); }

#define ORKNN_W "float? scales_w=None)"
#define ORKNN_HW "float? scales_h=None, float? scales_w=None)"
#define ORKNN_DHW "float? scales_d=None, float? scales_h=None, float? scales_w=None)"
#define ORKNN_NEAREST "(Tensor self, int[]? output_size, "
#define ORKNN_SMOOTH "(Tensor self, int[]? output_size, bool align_corners, "
#define ORKNN_FACTORS "float[]? scale_factors)"
}  // namespace

std::span<const Row> resize_rows() {
  static const Row rows[] = {
      {"upsample_nearest1d" ORKNN_NEAREST ORKNN_W, upsample<kNearest, 1>},
      {"upsample_nearest2d" ORKNN_NEAREST ORKNN_HW, upsample<kNearest, 2>},
      {"upsample_nearest3d" ORKNN_NEAREST ORKNN_DHW, upsample<kNearest, 3>},
      {"upsample_nearest1d|upsample_nearest2d|upsample_nearest3d" ORKNN_NEAREST ORKNN_FACTORS, upsample<kNearest, 0>},
      {"_upsample_nearest_exact1d" ORKNN_NEAREST ORKNN_W, upsample<kNearestExact, 1>},
      {"_upsample_nearest_exact2d" ORKNN_NEAREST ORKNN_HW, upsample<kNearestExact, 2>},
      {"_upsample_nearest_exact3d" ORKNN_NEAREST ORKNN_DHW, upsample<kNearestExact, 3>},
      {"_upsample_nearest_exact1d|_upsample_nearest_exact2d|_upsample_nearest_exact3d" ORKNN_NEAREST ORKNN_FACTORS,
       upsample<kNearestExact, 0>},
      {"upsample_linear1d" ORKNN_SMOOTH ORKNN_W, upsample<kLinear, 1>},
      {"upsample_bilinear2d" ORKNN_SMOOTH ORKNN_HW, upsample<kLinear, 2>},
      {"upsample_trilinear3d" ORKNN_SMOOTH ORKNN_DHW, upsample<kLinear, 3>},
      {"upsample_bicubic2d" ORKNN_SMOOTH ORKNN_HW, upsample<kCubic, 2>},
      {"_upsample_bilinear2d_aa" ORKNN_SMOOTH ORKNN_HW, upsample<kLinearSmooth, 2>},
      {"_upsample_bicubic2d_aa" ORKNN_SMOOTH ORKNN_HW, upsample<kCubicSmooth, 2>},
      {"upsample_linear1d|upsample_bilinear2d|upsample_trilinear3d" ORKNN_SMOOTH ORKNN_FACTORS, upsample<kLinear, 0>},
      {"upsample_bicubic2d" ORKNN_SMOOTH ORKNN_FACTORS, upsample<kCubic, 0>},
      {"_upsample_bilinear2d_aa" ORKNN_SMOOTH ORKNN_FACTORS, upsample<kLinearSmooth, 0>},
      {"_upsample_bicubic2d_aa" ORKNN_SMOOTH ORKNN_FACTORS, upsample<kCubicSmooth, 0>},
      {"__interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', bool? align_corners=None, "
       "bool? recompute_scale_factor=None, bool antialias=False)",
       interpolate},
      {"__upsample(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', bool? align_corners=None)",
       interpolate},
      {"__upsample_nearest(Tensor input, int[]? size=None, float[]? scale_factor=None)", upsample_nearest},
      {"__upsample_bilinear(Tensor input, int[]? size=None, float[]? scale_factor=None)", upsample_bilinear},
      {"grid_sampler|grid_sampler_2d|grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
       "align_corners)",
       grid_sample},
      {"affine_grid_generator(Tensor theta, int[] size, bool align_corners)", affine_grid_generator},
  };
  return rows;
}
#undef ORKNN_W
#undef ORKNN_HW
#undef ORKNN_DHW
#undef ORKNN_NEAREST
#undef ORKNN_SMOOTH
#undef ORKNN_FACTORS

}  // namespace orknn::importer::pytorch
