#include "import/lower/sampling.h"

#include <cmath>

namespace orknn::importer {
using namespace ir;

namespace {
Attributes attributes_of(const Interpolation& how) {
  using Mode = Interpolation::Mode;
  Attributes a{{"mode", std::string(how.mode == Mode::Nearest ? "nearest" : how.mode == Mode::Linear ? "linear" : "cubic")}};
  if (how.mode == Mode::Nearest) {
    a.set("coordinate_transformation_mode", std::string(how.compares_centres ? "half_pixel" : "asymmetric"));
    a.set("nearest_mode", std::string(how.compares_centres ? "round_prefer_ceil" : "floor"));
  } else {
    a.set("coordinate_transformation_mode", std::string(how.align_corners ? "align_corners" : "half_pixel"));
    a.set("cubic_coeff_a", how.antialias ? -0.5 : -0.75);
  }
  if (how.antialias) {
    a.set("antialias", int64_t{1});
    a.set("exclude_outside", int64_t{1});
  }
  return a;
}

// Factors in float32 that still give the extents computed in double.
TensorId scales_of(Emitter& e, const Dims& dims, const std::vector<double>& factors) {
  std::vector<float> all{1, 1};
  for (size_t i = 0; i < factors.size(); ++i) {
    float factor = static_cast<float>(factors[i]);
    const auto extent = static_cast<float>(dims[2 + i]);
    const double exact = std::floor(static_cast<double>(dims[2 + i]) * factors[i]);
    if (std::floor(extent * factor) != exact) factor = std::nextafter(factor, std::floor(extent * factor) < exact ? 1e9f : 0.0f);
    all.push_back(factor);
  }
  return e.add_constant("scales", TensorData::from<float>({static_cast<int64_t>(all.size())}, all));
}
}  // namespace

Result<int64_t> scaled_extent(int64_t extent, double factor) {
  const double scaled = std::floor(static_cast<double>(extent) * factor);
  if (!(factor > 0) || factor > 1e6 || scaled > 1e9)
    return invalid_model("the factor to interpolate by is impossible").found(std::to_string(factor));
  return static_cast<int64_t>(scaled);
}

Result<TensorId> interpolated(Emitter& e, TensorId x, const Interpolation& how, std::vector<int64_t> size,
                              std::vector<double> factors) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to interpolate it"));
  const size_t spatial = dims.size() < 2 ? 0 : dims.size() - 2;
  if (spatial == 0) return invalid_model("interpolation needs images").found(to_string(dims));
  if (size.size() == 1) size.resize(spatial, size[0]);
  if (factors.size() == 1) factors.resize(spatial, factors[0]);
  if ((!size.empty() && size.size() != spatial) || (!factors.empty() && factors.size() != spatial) ||
      (size.empty() && factors.empty()))
    return invalid_model("interpolation has neither a size nor factors for its input");
  bool factors_hold = !factors.empty() && !how.align_corners;
  for (size_t i = 0; i < factors.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t extent, scaled_extent(dims[2 + i], factors[i]));
    // Where corners lie on corners only the extent follows from the factor.
    if (how.align_corners && size.size() < spatial) size.push_back(extent);
    if (!size.empty() && size[i] != extent) factors_hold = false;
  }
  const DType t = e.dtype_of(x);
  if (!is_float(t)) x = e.cast(x, DType::Float32);
  std::vector<TensorId> inputs{x, TensorId{}};
  if (factors_hold) {
    inputs.push_back(scales_of(e, dims, factors));
  } else {
    std::vector<int64_t> sizes{dims[0], dims[1]};
    for (int64_t s : size) {
      if (s < 0 || s > (int64_t{1} << 30)) return invalid_model("the size to interpolate to is impossible");
      sizes.push_back(s);
    }
    inputs.insert(inputs.end(), {TensorId{}, e.add_ints("sizes", sizes)});
  }
  const TensorId y = e.emit("Resize", std::move(inputs), attributes_of(how));
  return is_float(t) ? y : e.cast(y, t);
}

TensorId affine_grid(Emitter& e, TensorId matrices, const std::vector<int64_t>& size, bool align_corners) {
  return e.emit("AffineGrid", {matrices, e.add_ints("size", size)}, {{"align_corners", int64_t{align_corners}}});
}

TensorId grid_sampled(Emitter& e, TensorId x, TensorId grid, std::string mode, std::string padding, bool align_corners) {
  return e.emit("GridSample", {x, e.cast(grid, e.dtype_of(x))},
                {{"align_corners", int64_t{align_corners}}, {"mode", std::move(mode)}, {"padding_mode", std::move(padding)}});
}

}  // namespace orknn::importer
