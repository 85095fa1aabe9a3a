// Pictures resized and sampled.
#include "import/lower/sampling.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
// How Paddle places the pixels of the result.
Attributes placement(const Layer& l, const std::string& mode) {
  const bool corners = l.flag("align_corners", false);
  const char* places = corners                                                ? "align_corners"
                       : mode != "nearest" && l.integer("align_mode", 1) == 0 ? "half_pixel"
                                                                              : "asymmetric";
  if (mode == "cubic" && !corners) places = "half_pixel";
  return {{"mode", mode},
          {"coordinate_transformation_mode", std::string(places)},
          {"nearest_mode", std::string(corners ? "round_prefer_ceil" : "floor")},
          {"cubic_coeff_a", -0.75}};
}
// The size as a vector: of tensors, which come first, or of attributes. None where factors tell.
Result<TensorId> size_of(Layer& l, size_t spatial) {
  ORKNN_TRY_ASSIGN(const TensorId listed, l.vector(2));
  if (listed) return listed;
  ORKNN_TRY_ASSIGN(const TensorId given, l.vector(1));
  if (given) return given;
  std::vector<int64_t> size;
  for (const char* key : {"out_d", "out_h", "out_w"}) size.push_back(l.integer(key, -1));
  size.erase(size.begin(), size.end() - static_cast<ptrdiff_t>(spatial));
  for (int64_t extent : size)
    if (extent <= 0) return TensorId{};
  return l.add_ints("size", size);
}
Result<std::vector<double>> factors_of(Layer& l, size_t spatial) {
  std::vector<double> factors = l.numbers("scale");
  if (l.has(3)) {
    ORKNN_TRY_ASSIGN(const TensorId given, l.operand(3));
    ORKNN_TRY_ASSIGN(factors, l.need_doubles(given, "to scale by it"));
  }
  if (factors.size() == 1) factors.assign(spatial, factors[0]);
  for (double f : factors)
    if (!(f > 0)) return std::vector<double>();
  if (!factors.empty() && factors.size() != spatial)
    return invalid_model("illegal scale").found(std::to_string(factors.size()) + " numbers");
  return factors;
}

Result<TensorId> resized(Layer& l, TensorId x, const std::string& mode) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to resize it"));
  if (rank < 3) return invalid_model("only pictures can be resized").found("rank " + std::to_string(rank));
  const auto spatial = static_cast<size_t>(rank - 2);
  return in_channels_first(l, l.format(spatial), x, [&](TensorId first) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const std::vector<double> factors, factors_of(l, spatial));
    ORKNN_TRY_ASSIGN(const TensorId size, size_of(l, spatial));
    const bool is_listed = l.has(1) || l.has(2);
    if (!factors.empty() && !is_listed) {
      std::vector<float> all{1, 1};
      all.insert(all.end(), factors.begin(), factors.end());
      const TensorId scales = l.add_constant("scales", TensorData::from<float>({rank}, all));
      return l.emit("Resize", {first, {}, scales}, placement(l, mode));
    }
    if (!size) return invalid_model("neither a size nor a scale is given");
    const TensorId batch = l.slice(l.unary("Shape", first), 0, 0, 2);
    return l.emit("Resize", {first, {}, {}, l.concat({batch, size}, 0)}, placement(l, mode));
  });
}
Result<TensorId> resized_nearest(Layer& l, TensorId x) { return resized(l, x, "nearest"); }
Result<TensorId> resized_linear(Layer& l, TensorId x) { return resized(l, x, "linear"); }
Result<TensorId> resized_cubic(Layer& l, TensorId x) { return resized(l, x, "cubic"); }

TensorId sampled_on_grid(Layer& l, TensorId x, TensorId grid) {
  const std::string mode = l.text("mode", "bilinear");
  return grid_sampled(l, x, grid, mode == "bilinear" ? "linear" : mode, l.text("padding_mode", "zeros"),
                      l.flag("align_corners", true));
}
Result<TensorId> grid_of_matrices(Layer& l, TensorId matrices) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> size, l.ints(1, "output_shape", "to place the grid"));
  if (size.size() != 4 && size.size() != 5) return invalid_model("illegal output_shape").found(to_string(size));
  return affine_grid(l, matrices, size, l.flag("align_corners", true));
}
}  // namespace

std::span<const Row> resize_rows() {
  static const Row rows[] = {
      {"nearest_interp", resized_nearest}, {"bilinear_interp|linear_interp|trilinear_interp", resized_linear},
      {"bicubic_interp", resized_cubic},   {"grid_sample", sampled_on_grid},
      {"affine_grid", grid_of_matrices},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
