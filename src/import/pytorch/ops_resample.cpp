// Interpolation and sampling.
#include <cmath>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

struct Method {
  const char* mode;            // nearest, linear, cubic
  bool exact_nearest = false;  // pixel centres are compared
  bool antialias = false;
};

// Sizes by extents or by factors. A factor also decides which pixels are read; without one that follows from the extents.
Result<Value> resized(Call& c, std::string_view input, const Method& m, std::vector<int64_t> size, std::vector<double> factors,
                      bool align_corners) {
  const Dims& dims = c.dims(input);
  const size_t spatial = dims.size() < 2 ? 0 : dims.size() - 2;
  if (spatial == 0) return invalid_model("interpolation needs images").found(ir::to_string(dims));
  if (size.size() == 1) size.resize(spatial, size[0]);
  if (factors.size() == 1) factors.resize(spatial, factors[0]);
  if ((!size.empty() && size.size() != spatial) || (!factors.empty() && factors.size() != spatial) ||
      (size.empty() && factors.empty()))
    return invalid_model("interpolation has neither a size nor factors for its input");
  bool factors_hold = !factors.empty();
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!(factors[i] > 0) || factors[i] > 1e6)
      return invalid_model("interpolation by an impossible factor").found(std::to_string(factors[i]));
    if (align_corners && size.size() < spatial) {  // corners lie on corners, whatever the factor: only the extent follows from it
      const double extent = std::floor(static_cast<double>(dims[2 + i]) * factors[i]);
      if (extent > 1e9) return invalid_model("interpolation by an impossible factor").found(std::to_string(factors[i]));
      size.push_back(static_cast<int64_t>(extent));
    }
    if (!size.empty() && size[i] != static_cast<int64_t>(std::floor(static_cast<double>(dims[2 + i]) * factors[i])))
      factors_hold = false;
  }
  factors_hold = factors_hold && !align_corners;
  ir::Attributes attributes{{"mode", std::string(m.mode)}};
  const bool is_nearest = std::string_view(m.mode) == "nearest";
  if (is_nearest) {
    attributes.set("coordinate_transformation_mode", std::string(m.exact_nearest ? "half_pixel" : "asymmetric"));
    attributes.set("nearest_mode", std::string(m.exact_nearest ? "round_prefer_ceil" : "floor"));
  } else {
    attributes.set("coordinate_transformation_mode", std::string(align_corners ? "align_corners" : "half_pixel"));
    attributes.set("cubic_coeff_a", m.antialias ? -0.5 : -0.75);
  }
  if (m.antialias) {
    attributes.set("antialias", int64_t{1});
    attributes.set("exclude_outside", int64_t{1});
  }
  TensorId x = c.tensor(input);
  const DType t = c.dtype_of(x);
  if (!is_float(t)) x = c.cast(x, DType::Float32);
  TensorId y;
  if (factors_hold) {
    std::vector<float> all{1, 1};
    for (double f : factors) all.push_back(static_cast<float>(f));
    // float32 must still give the extents PyTorch computes in double.
    for (size_t i = 0; i < spatial; ++i) {
      const double exact = std::floor(static_cast<double>(dims[2 + i]) * factors[i]);
      if (std::floor(static_cast<float>(dims[2 + i]) * all[2 + i]) != exact)
        all[2 + i] = std::nextafter(all[2 + i], std::floor(static_cast<float>(dims[2 + i]) * all[2 + i]) < exact ? 1e9f : 0.0f);
    }
    y = c.emit("Resize",
               {x, TensorId{}, c.add_constant("scales", ir::TensorData::from<float>({static_cast<int64_t>(all.size())}, all))},
               attributes);
  } else {
    std::vector<int64_t> sizes{dims[0], dims[1]};
    for (int64_t s : size) {
      if (s < 0 || s > (int64_t{1} << 30)) return invalid_model("interpolation to an impossible size");
      sizes.push_back(s);
    }
    y = c.emit("Resize", {x, TensorId{}, TensorId{}, c.add_ints("sizes", sizes)}, attributes);
  }
  return c.made(is_float(t) ? y : c.cast(y, t));
}

// The old form has one factor per axis, the new one a list.
std::vector<double> single_factors(Call& c, size_t spatial) {
  static constexpr std::string_view kNames[3][3] = {
      {"scales_w", "", ""}, {"scales_h", "scales_w", ""}, {"scales_d", "scales_h", "scales_w"}};
  std::vector<double> factors;
  for (size_t i = 0; i < spatial; ++i) {
    if (!c.has(kNames[spatial - 1][i])) return {};
    factors.push_back(c.number(kNames[spatial - 1][i]));
  }
  return factors;
}
constexpr Method kNearest{"nearest"}, kNearestExact{"nearest", true}, kLinear{"linear"}, kCubic{"cubic"},
    kLinearSmooth{"linear", false, true}, kCubicSmooth{"cubic", false, true};

template <const Method& M, size_t Spatial>
Result<Value> nearest(Call& c) {
  return resized(c, "self", M, c.ints("output_size"), single_factors(c, Spatial), false);
}
template <const Method& M>
Result<Value> nearest_by_list(Call& c) {
  return resized(c, "self", M, c.ints("output_size"), c.numbers("scale_factors"), false);
}
template <const Method& M, size_t Spatial>
Result<Value> smooth(Call& c) {
  return resized(c, "self", M, c.ints("output_size"), single_factors(c, Spatial), c.flag("align_corners"));
}
template <const Method& M>
Result<Value> smooth_by_list(Call& c) {
  return resized(c, "self", M, c.ints("output_size"), c.numbers("scale_factors"), c.flag("align_corners"));
}

// What scripts called before interpolate itself was code in the archive. The pixels follow from the sizes alone.
Result<Value> interpolate(Call& c, const std::string& mode, bool align_corners) {
  std::vector<int64_t> size = c.ints("size");
  const std::vector<double> factors = c.numbers("scale_factor");
  const Dims& dims = c.dims("input");
  for (size_t i = 0; size.size() < dims.size() - std::min<size_t>(dims.size(), 2) && !factors.empty(); ++i) {
    const double extent = std::floor(static_cast<double>(dims[2 + i]) * factors[std::min(i, factors.size() - 1)]);
    if (!(extent >= 0) || extent > 1e9) return invalid_model("interpolation by an impossible factor");
    size.push_back(static_cast<int64_t>(extent));
  }
  if (mode == "nearest") return resized(c, "input", kNearest, size, {}, false);
  if (mode == "linear" || mode == "bilinear" || mode == "trilinear") return resized(c, "input", kLinear, size, {}, align_corners);
  if (mode == "bicubic") return resized(c, "input", kCubic, size, {}, align_corners);
  return c.fail("interpolation mode " + mode + " is not supported");
}
Result<Value> interpolate(Call& c) {
  return interpolate(c, std::string(c.text("mode")), c.has("align_corners") && c.flag("align_corners"));
}

// --- sampling
Result<Value> grid_sample(Call& c) {
  static constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  static constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t mode = c.integer("interpolation_mode"), padding = c.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) return invalid_model("grid_sampler has an unknown mode");
  return c.made(c.emit("GridSample", {c.tensor("input"), c.cast(c.tensor("grid"), c.dtype("input"))},
                       {{"align_corners", static_cast<int64_t>(c.flag("align_corners"))},
                        {"mode", std::string(kModes[mode])},
                        {"padding_mode", std::string(kPaddings[padding])}}));
}
Result<Value> affine_grid(Call& c) {
  return c.made(c.emit("AffineGrid", {c.tensor("theta"), c.add_ints("size", c.ints("size"))},
                       {{"align_corners", static_cast<int64_t>(c.flag("align_corners"))}}));
}
}  // namespace

std::span<const Row> resample_rows() {
  static constexpr Row kRows[] = {
      {"upsample_nearest1d(Tensor self, int[]? output_size, float? scales_w=None)", nearest<kNearest, 1>},
      {"upsample_nearest2d(Tensor self, int[]? output_size, float? scales_h=None, float? scales_w=None)", nearest<kNearest, 2>},
      {"upsample_nearest3d(Tensor self, int[]? output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None)",
       nearest<kNearest, 3>},
      {"upsample_nearest1d(Tensor self, int[]? output_size, float[]? scale_factors)", nearest_by_list<kNearest>},
      {"upsample_nearest2d(Tensor self, int[]? output_size, float[]? scale_factors)", nearest_by_list<kNearest>},
      {"upsample_nearest3d(Tensor self, int[]? output_size, float[]? scale_factors)", nearest_by_list<kNearest>},
      {"_upsample_nearest_exact1d(Tensor self, int[]? output_size, float? scales_w=None)", nearest<kNearestExact, 1>},
      {"_upsample_nearest_exact2d(Tensor self, int[]? output_size, float? scales_h=None, float? scales_w=None)",
       nearest<kNearestExact, 2>},
      {"_upsample_nearest_exact3d(Tensor self, int[]? output_size, float? scales_d=None, float? scales_h=None, float? "
       "scales_w=None)",
       nearest<kNearestExact, 3>},
      {"_upsample_nearest_exact1d(Tensor self, int[]? output_size, float[]? scale_factors)", nearest_by_list<kNearestExact>},
      {"_upsample_nearest_exact2d(Tensor self, int[]? output_size, float[]? scale_factors)", nearest_by_list<kNearestExact>},
      {"_upsample_nearest_exact3d(Tensor self, int[]? output_size, float[]? scale_factors)", nearest_by_list<kNearestExact>},
      {"upsample_linear1d(Tensor self, int[]? output_size, bool align_corners, float? scales_w=None)", smooth<kLinear, 1>},
      {"upsample_bilinear2d(Tensor self, int[]? output_size, bool align_corners, float? scales_h=None, float? scales_w=None)",
       smooth<kLinear, 2>},
      {"upsample_trilinear3d(Tensor self, int[]? output_size, bool align_corners, float? scales_d=None, float? scales_h=None, "
       "float? scales_w=None)",
       smooth<kLinear, 3>},
      {"upsample_bicubic2d(Tensor self, int[]? output_size, bool align_corners, float? scales_h=None, float? scales_w=None)",
       smooth<kCubic, 2>},
      {"_upsample_bilinear2d_aa(Tensor self, int[]? output_size, bool align_corners, float? scales_h=None, float? scales_w=None)",
       smooth<kLinearSmooth, 2>},
      {"_upsample_bicubic2d_aa(Tensor self, int[]? output_size, bool align_corners, float? scales_h=None, float? scales_w=None)",
       smooth<kCubicSmooth, 2>},
      {"upsample_linear1d(Tensor self, int[]? output_size, bool align_corners, float[]? scale_factors)", smooth_by_list<kLinear>},
      {"upsample_bilinear2d(Tensor self, int[]? output_size, bool align_corners, float[]? scale_factors)",
       smooth_by_list<kLinear>},
      {"upsample_trilinear3d(Tensor self, int[]? output_size, bool align_corners, float[]? scale_factors)",
       smooth_by_list<kLinear>},
      {"upsample_bicubic2d(Tensor self, int[]? output_size, bool align_corners, float[]? scale_factors)", smooth_by_list<kCubic>},
      {"_upsample_bilinear2d_aa(Tensor self, int[]? output_size, bool align_corners, float[]? scale_factors)",
       smooth_by_list<kLinearSmooth>},
      {"_upsample_bicubic2d_aa(Tensor self, int[]? output_size, bool align_corners, float[]? scale_factors)",
       smooth_by_list<kCubicSmooth>},
      {"__interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', bool? align_corners=None, "
       "bool? recompute_scale_factor=None, bool antialias=False)",
       interpolate},
      {"__upsample(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', bool? align_corners=None)",
       interpolate},
      {"__upsample_nearest(Tensor input, int[]? size=None, float[]? scale_factor=None)",
       [](Call& c) { return interpolate(c, "nearest", false); }},
      {"__upsample_bilinear(Tensor input, int[]? size=None, float[]? scale_factor=None)",
       [](Call& c) { return interpolate(c, "bilinear", true); }},
      {"grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)", grid_sample},
      {"grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)", grid_sample},
      {"grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)", grid_sample},
      {"affine_grid_generator(Tensor theta, int[] size, bool align_corners)", affine_grid},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
