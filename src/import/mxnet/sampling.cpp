// Sampling at computed places: regions, grids, correlation, and the picture operators of data pipelines.
#include "import/lower/sampling.h"

#include "import/lower/detection.h"
#include "import/lower/one_hot.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// --- regions

Result<RegionPooling> region_pooling(Layer& l) {
  const std::vector<int64_t> size = l.window("pooled_size", 2, 0, 1);
  if (size[0] < 1 || size[1] < 1) return invalid_model("pooled_size is missing").expected("two positive numbers");
  return RegionPooling{.height = size[0],
                       .width = size[1],
                       .scale = l.number("spatial_scale", 1.0),
                       .samples = l.integer("sample_ratio", -1),
                       .aligned = l.flag("aligned", false)};
}

Result<TensorId> roi_pooling(Layer& l, TensorId x, TensorId regions) {
  ORKNN_TRY_ASSIGN(const RegionPooling pooling, region_pooling(l));
  return roi_max_pool(l, x, regions, pooling);
}

// Place (h, w) of the result takes channel (c, h, w): the diagonal of [C, h, w, h, w].
Result<TensorId> own_channels(Layer& l, TensorId y, int64_t height, int64_t width) {
  ORKNN_TRY_ASSIGN(const Dims out, l.need_dims(y, "to pick channels"));
  const int64_t places = height * width;
  if (out.size() != 4 || out[1] % places != 0)
    return shape_mismatch("the channels do not divide into places")
        .expected("a multiple of " + std::to_string(places))
        .found(to_string(out));
  const int64_t channels = out[1] / places;
  const TensorId own = l.expand(positions(l, places, 3, 4), Dims{out[0], channels, 1, places});
  const TensorId picked = l.gather_elements(l.reshape(y, {out[0], channels, places, places}), own, 2);
  return l.reshape(picked, {out[0], channels, height, width});
}

Result<TensorId> align_regions(Layer& l, TensorId x, TensorId rows) {
  ORKNN_TRY_ASSIGN(const RegionPooling pooling, region_pooling(l));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(rows, "to read regions"));
  if (dims.size() != 2 || (dims[1] != 5 && dims[1] != 4))
    return shape_mismatch("regions must be [count, 5] or [count, 4]").found(to_string(dims));
  const Regions regions = dims[1] == 5 ? split_regions(l, rows) : Regions{rows, l.full(Dims{dims[0]}, 0, DType::Int64)};
  const TensorId y = roi_align(l, x, regions, pooling);
  return l.flag("position_sensitive", false) ? own_channels(l, y, pooling.height, pooling.width) : y;
}

Result<TensorId> position_sensitive_pooling(Layer& l, TensorId x, TensorId regions) {
  const int64_t size = l.integer("pooled_size", 0), stated = l.integer("group_size", 0), group = stated > 0 ? stated : size;
  if (group != size)
    return unsupported("groups that differ from the bins")
        .expected("group_size " + std::to_string(size))
        .found(std::to_string(group));
  return position_sensitive_pool(l, x, regions, l.integer("output_dim", 0), group, l.number("spatial_scale", 1.0));
}

Status no_region_kernel(Layer&) {
  return unsupported("this kind of region pooling is not supported")
      .hint("ROIPooling, _contrib_ROIAlign and _contrib_PSROIPooling are supported; or cut the model before it");
}

// --- grids

TensorId sample(Layer& l, TensorId x, TensorId grid) { return grid_sampled(l, x, grid, "linear", "zeros", true); }
// Of [N, 6] matrices.
TensorId affine_places(Layer& l, TensorId matrices, int64_t batch, int64_t height, int64_t width) {
  return affine_grid(l, l.reshape(matrices, {batch, 2, 3}), {batch, 1, height, width}, true);
}

// The places that a flow in pixels [N,2,H,W] leads to, from -1 to 1.
Result<TensorId> flow_grid(Layer& l, TensorId flow, const Dims& dims) {
  if (dims.size() != 4 || dims[1] != 2) return shape_mismatch("the flow must be [N,2,H,W]").found(to_string(dims));
  const int64_t height = dims[2], width = dims[3];
  if (!checked_element_count(Dims{2, height, width}, int64_t{1} << 24))
    return unsupported("the grid is too large").found(to_string(dims));
  std::vector<float> places(static_cast<size_t>(2 * height * width));
  for (int64_t r = 0; r < height; ++r)
    for (int64_t c = 0; c < width; ++c) {
      places[static_cast<size_t>(r * width + c)] = static_cast<float>(c);
      places[static_cast<size_t>((height + r) * width + c)] = static_cast<float>(r);
    }
  const float scales[] = {(static_cast<float>(width) - 1) / 2, (static_cast<float>(height) - 1) / 2};
  const TensorId moved = l.add(flow, l.cast(l.floats("places", {1, 2, height, width}, places), l.dtype_of(flow)));
  return l.sub(l.div(moved, l.cast(l.floats("scales", {1, 2, 1, 1}, scales), l.dtype_of(flow))), 1.0);
}

Result<TensorId> grid_generator(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to make a grid"));
  if (l.text("transform_type", "affine") != "affine") return flow_grid(l, x, dims);
  const std::vector<int64_t> target = l.window("target_shape", 2, 0, 1);
  if (target[0] < 1 || target[1] < 1 || dims.empty() || element_count(dims) != 6 * dims[0])
    return invalid_model("an affine grid needs [N,6] and target_shape").found(to_string(dims));
  return l.transpose(affine_places(l, x, dims[0], target[0], target[1]), {0, 3, 1, 2});
}

TensorId bilinear_sampler(Layer& l, TensorId x, TensorId grid) { return sample(l, x, l.transpose(grid, {0, 2, 3, 1})); }

Result<TensorId> spatial_transformer(Layer& l, TensorId x, TensorId matrices) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to sample it", 4));
  std::vector<int64_t> target = l.window("target_shape", 2, 0, 0);
  for (size_t i = 0; i < 2; ++i)
    if (target[i] < 1) target[i] = in[i + 2];
  return sample(l, x, affine_places(l, matrices, in[0], target[0], target[1]));
}

// --- correlation

// Mean over channels (and a window) of products, or distances, of two feature maps shifted against each other; one channel per
// shift.
Result<TensorId> correlation(Layer& l, TensorId first, TensorId second) {
  const int64_t pad = l.integer("pad_size", 0), reach = l.integer("max_displacement", 1), kernel = l.integer("kernel_size", 1),
                stride = l.integer("stride1", 1), step = l.integer("stride2", 1);
  if (pad < 0 || reach < 0 || kernel < 1 || kernel % 2 == 0 || stride < 1 || step < 1 || reach > 4096)
    return invalid_model("illegal pad_size, max_displacement, kernel_size or strides");
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(first, "to shift it", 4));
  const int64_t border = reach + (kernel - 1) / 2, radius = reach / step, shifts = (2 * radius + 1) * (2 * radius + 1);
  if (shifts > 2500)
    return unsupported("the correlation has too many shifts").expected("at most 2500").found(std::to_string(shifts));
  const auto size_of = [&](int64_t extent) { return (extent + 2 * pad - 2 * border + stride - 1) / stride; };
  const int64_t height = size_of(in[2]), width = size_of(in[3]);
  if (height < 1 || width < 1) return shape_mismatch("the data is smaller than the displacement").found(to_string(in));
  for (TensorId* map : {&first, &second})
    if (pad > 0) *map = l.emit("Pad", {*map, l.add_ints("pads", {0, 0, pad, pad, 0, 0, pad, pad}), l.scalar_like(*map, 0.0)});
  // What the windows of the result cover, from the place (y, x).
  const int64_t covered_height = (height - 1) * stride + kernel, covered_width = (width - 1) * stride + kernel;
  const auto cut = [&](TensorId map, int64_t y, int64_t x) {
    return l.slice(map, {y, x}, {y + covered_height, x + covered_width}, {2, 3});
  };
  const bool multiply = l.flag("is_multiply", true);
  const TensorId fixed = cut(first, reach, reach);
  std::vector<TensorId> channels;
  for (int64_t dy = -radius; dy <= radius; ++dy)
    for (int64_t dx = -radius; dx <= radius; ++dx) {
      const TensorId other = cut(second, reach + dy * step, reach + dx * step);
      const TensorId each = multiply ? l.mul(fixed, other) : l.unary("Abs", l.sub(fixed, other));
      channels.push_back(l.reduce("ReduceMean", each, {1}, true));
    }
  const TensorId y = l.concat(channels, 1);
  if (kernel == 1 && stride == 1) return y;
  return l.emit("AveragePool", {y},
                {{"kernel_shape", std::vector<int64_t>{kernel, kernel}}, {"strides", std::vector<int64_t>{stride, stride}}});
}

// --- pictures

// [H,W,C] of bytes to [C,H,W] from 0 to 1; a batch in front stays in front.
Result<TensorId> to_tensor(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to move its channels"));
  if (rank != 3 && rank != 4)
    return shape_mismatch("a picture or a batch of them is needed").found("rank " + std::to_string(rank));
  const std::vector<int64_t> order = rank == 3 ? std::vector<int64_t>{2, 0, 1} : std::vector<int64_t>{0, 3, 1, 2};
  return l.div(l.transpose(l.cast(x, DType::Float32), order), 255.0);
}

TensorId normalize(Layer& l, TensorId x) {
  const auto factor = [&](std::string_view key, double fallback) {
    const std::vector<double> values = l.numbers(key, {fallback});
    const std::vector<float> floats(values.begin(), values.end());
    return l.cast(l.floats(key, {std::ssize(floats), 1, 1}, floats), l.dtype_of(x));
  };
  return l.div(l.sub(x, factor("mean", 0.0)), factor("std", 1.0));
}
}  // namespace

std::span<const Row> sampling_rows() {
  static const Row rows[] = {
      {"ROIPooling", roi_pooling},
      {"_contrib_ROIAlign", align_regions},
      {"_contrib_PSROIPooling|PSROIPooling", position_sensitive_pooling},
      {"_contrib_DeformablePSROIPooling|_contrib_RROIAlign", no_region_kernel},
      {"GridGenerator", grid_generator},
      {"BilinearSampler", bilinear_sampler},
      {"SpatialTransformer", spatial_transformer},
      {"Correlation", correlation},
      {"_image_to_tensor", to_tensor},
      {"_image_normalize", normalize},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
