// Sampling at computed places: regions, grids, deformable convolutions, correlation, and the picture operators of data pipelines.
#include <algorithm>
#include <cmath>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// --- regions

Result<std::vector<int64_t>> pooled_size(Layer& l) {
  const std::vector<int64_t> size = l.window("pooled_size", 2, 0, 1);
  if (size[0] < 1 || size[1] < 1) return invalid_model("pooled_size is missing").expected("two positive numbers");
  return size;
}

Status roi_pooling(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId regions, l.need(1));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> size, pooled_size(l));
  l.set_output(l.emit("MaxRoiPool", {x, regions}, {{"pooled_shape", size}, {"spatial_scale", l.number("spatial_scale", 1.0)}}));
  return {};
}

Status roi_align(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId regions, l.need(1));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> size, pooled_size(l));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(regions, "to read regions"));
  if (dims.size() != 2 || (dims[1] != 5 && dims[1] != 4))
    return shape_mismatch("regions must be [count, 5] or [count, 4]").found(to_string(dims));
  const TensorId owner = dims[1] == 5 ? l.cast(l.reshape(l.slice(regions, 1, 0, 1), {-1}), DType::Int64)
                                      : l.expand(l.add_scalar("first", 0, DType::Int64), {dims[0]});
  const TensorId boxes = dims[1] == 5 ? l.slice(regions, 1, 1, 5) : regions;
  TensorId y =
      l.emit("RoiAlign", {x, boxes, owner},
             {{"output_height", size[0]},
              {"output_width", size[1]},
              {"sampling_ratio", std::max<int64_t>(l.integer("sample_ratio", -1), 0)},
              {"spatial_scale", l.number("spatial_scale", 1.0)},
              {"coordinate_transformation_mode", std::string(l.flag("aligned", false) ? "half_pixel" : "output_half_pixel")}});
  if (l.flag("position_sensitive",
             false)) {  // place (h, w) of the result takes channel (c, h, w): the diagonal of [C, h, w, h, w]
    ORKNN_TRY_ASSIGN(const Dims out, l.need_dims(y, "to pick channels"));
    const int64_t places = size[0] * size[1];
    if (out.size() != 4 || out[1] % places != 0)
      return shape_mismatch("the channels do not divide into places")
          .expected("a multiple of " + std::to_string(places))
          .found(to_string(out));
    std::vector<int64_t> own(static_cast<size_t>(places));
    for (int64_t i = 0; i < places; ++i) own[static_cast<size_t>(i)] = i;
    const TensorId indices =
        l.expand(l.reshape(l.add_ints("places", own), {1, 1, 1, places}), {out[0], out[1] / places, 1, places});
    y = l.reshape(
        l.emit("GatherElements", {l.reshape(y, {out[0], out[1] / places, places, places}), indices}, {{"axis", int64_t{2}}}),
        {out[0], out[1] / places, size[0], size[1]});
  }
  l.set_output(y);
  return {};
}

Status position_sensitive_pooling(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId regions, l.need(1));
  const int64_t size = l.integer("pooled_size", 0), stated = l.integer("group_size", 0), group = stated > 0 ? stated : size;
  if (group != size)
    return unsupported("groups that differ from the bins")
        .expected("group_size " + std::to_string(size))
        .found(std::to_string(group));
  l.set_output(l.emit("PSRoiPool", {x, regions},
                      {{"output_channels", l.integer("output_dim", 0)},
                       {"group_size", group},
                       {"spatial_scale", l.number("spatial_scale", 1.0)}}));
  return {};
}

Status no_region_kernel(Layer&) {
  return unsupported("this kind of region pooling")
      .hint("ROIPooling, _contrib_ROIAlign and _contrib_PSROIPooling are supported; or cut the model before it");
}

// --- grids

// [N, 6] affine matrices to [N, H, W, 2].
TensorId affine_grid(Layer& l, TensorId matrices, int64_t batch, int64_t height, int64_t width) {
  return l.emit("AffineGrid", {l.reshape(matrices, {batch, 2, 3}), l.add_ints("size", {batch, 1, height, width})},
                {{"align_corners", int64_t{1}}});
}
TensorId sample(Layer& l, TensorId x, TensorId grid) {
  return l.emit("GridSample", {x, grid},
                {{"align_corners", int64_t{1}}, {"mode", std::string("linear")}, {"padding_mode", std::string("zeros")}});
}

Status grid_generator(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to make a grid"));
  if (l.text("transform_type", "affine") == "affine") {
    const std::vector<int64_t> target = l.window("target_shape", 2, 0, 1);
    if (target[0] < 1 || target[1] < 1 || dims.empty() || element_count(dims) != 6 * dims[0])
      return invalid_model("an affine grid needs [N,6] and target_shape").found(to_string(dims));
    l.set_output(l.transpose(affine_grid(l, x, dims[0], target[0], target[1]), {0, 3, 1, 2}));
    return {};
  }
  if (dims.size() != 4 || dims[1] != 2) return shape_mismatch("the flow must be [N,2,H,W]").found(to_string(dims));
  const int64_t height = dims[2], width = dims[3];
  if (!checked_element_count(std::vector<int64_t>{2, height, width}, int64_t{1} << 24))
    return unsupported("a grid of this size").found(to_string(dims));
  std::vector<float> places(static_cast<size_t>(2 * height * width));
  for (int64_t r = 0; r < height; ++r)
    for (int64_t c = 0; c < width; ++c) {
      places[static_cast<size_t>(r * width + c)] = static_cast<float>(c);
      places[static_cast<size_t>((height + r) * width + c)] = static_cast<float>(r);
    }
  const std::vector<float> scales{(static_cast<float>(width) - 1) / 2, (static_cast<float>(height) - 1) / 2};
  const TensorId moved = l.binary("Add", x, l.cast(l.floats("places", {1, 2, height, width}, places), l.dtype_of(x)));
  l.set_output(
      l.with_scalar("Sub", l.binary("Div", moved, l.cast(l.floats("scales", {1, 2, 1, 1}, scales), l.dtype_of(x))), 1.0));
  return {};
}

Status bilinear_sampler(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId grid, l.need(1));
  l.set_output(sample(l, x, l.transpose(grid, {0, 2, 3, 1})));
  return {};
}

Status spatial_transformer(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId matrices, l.need(1));
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to sample it"));
  if (in.size() != 4) return shape_mismatch("the data must be [N,C,H,W]").found(to_string(in));
  std::vector<int64_t> target = l.window("target_shape", 2, 0, 0);
  for (size_t i = 0; i < 2; ++i)
    if (target[i] < 1) target[i] = in[i + 2];
  l.set_output(sample(l, x, affine_grid(l, matrices, in[0], target[0], target[1])));
  return {};
}

// --- convolutions with computed places

struct DeformableShape {
  std::vector<int64_t> kernel, stride, dilate, pad;
  int64_t groups = 1;  // of offsets
};

// The older operator reads nothing but zeros where a place lies left of or above the data, and repeats the last row and column to
// the right and below, instead of fading out. The data gets that row and column, and a mask switches places off.
Status fit_to_first_version(Layer& l, const DeformableShape& s, TensorId offsets, TensorId& x, TensorId& mask) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to find its border"));
  ORKNN_TRY_ASSIGN(const Dims places, l.need_dims(offsets, "to find the border"));
  const int64_t taps = s.kernel[0] * s.kernel[1];
  if (in.size() != 4 || places.size() != 4 || places[1] != 2 * taps * s.groups)
    return shape_mismatch("the offsets do not fit the kernel")
        .expected(std::to_string(2 * taps * s.groups) + " channels")
        .found(to_string(places));
  const int64_t height = places[2], width = places[3];
  const auto count = checked_element_count(std::vector<int64_t>{taps, height, width}, int64_t{1} << 24);
  if (!count) return unsupported("a deformable convolution of this size").found(to_string(places));
  const TensorId split = l.reshape(offsets, {places[0], s.groups, taps, 2, height, width});
  const auto inside = [&](size_t axis) {
    std::vector<float> grid;
    grid.reserve(static_cast<size_t>(*count));
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t r = 0; r < height; ++r)
        for (int64_t c = 0; c < width; ++c)
          grid.push_back(static_cast<float>((axis == 0 ? r : c) * s.stride[axis] - s.pad[axis] +
                                            (axis == 0 ? t / s.kernel[1] : t % s.kernel[1]) * s.dilate[axis]));
    const auto at = static_cast<int64_t>(axis);
    const TensorId place = l.binary("Add", l.slice(split, 3, at, at + 1),
                                    l.cast(l.floats("grid", {1, 1, taps, 1, height, width}, grid), l.dtype_of(offsets)));
    return l.binary("And", l.with_scalar("GreaterOrEqual", place, 0.0),
                    l.with_scalar("Less", place, static_cast<double>(in[axis + 2])));
  };
  mask = l.reshape(l.cast(l.binary("And", inside(0), inside(1)), l.dtype_of(x)), {places[0], s.groups * taps, height, width});
  x = l.emit("Pad", {x, l.add_ints("pads", {0, 0, 0, 0, 0, 0, 1, 1})}, {{"mode", std::string("edge")}});
  return {};
}

Status deformable_convolution(Layer& l) {
  const bool modulated = l.op() == "_contrib_ModulatedDeformableConvolution";
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId offsets, l.need(1));
  TensorId mask;
  if (modulated) {
    ORKNN_TRY_ASSIGN(mask, l.need(2));
  }
  const size_t weight_at = modulated ? 3 : 2;
  const std::vector<int64_t> kernel = l.window("kernel", 2, 0, 1);
  const int64_t filters = l.integer("num_filter", 0), group = l.integer("num_group", 1);
  if (kernel[0] < 1 || group < 1) return invalid_model("illegal kernel or num_group").found(to_string(kernel));
  std::optional<Dims> dims;
  int64_t fan_in = 1;
  if (const auto in = l.dims_of(x); in && in->size() == 4 && filters > 0) {
    dims = Dims{filters, (*in)[1] / group, kernel[0], kernel[1]};
    fan_in = checked_element_count(std::span(*dims).subspan(1)) ? element_count(std::span(*dims).subspan(1)) : 1;
  }
  ORKNN_TRY_ASSIGN(const TensorId weight, l.parameter(weight_at, "weight", dims, Fill::Random, l.dtype_of(x), fan_in));
  TensorId bias;
  if (!l.flag("no_bias", false)) {
    ORKNN_TRY_ASSIGN(bias, l.parameter(weight_at + 1, "bias", filters > 0 ? std::optional(Dims{filters}) : std::nullopt,
                                       Fill::Zeros, l.dtype_of(x)));
  }
  const DeformableShape shape{kernel, l.window("stride", 2, 1, 1), l.window("dilate", 2, 1, 1), l.window("pad", 2, 0, 0),
                              l.integer("num_deformable_group", 1)};
  if (shape.groups < 1 || shape.groups > 4096 || !checked_element_count(kernel, 1 << 16))
    return invalid_model("illegal kernel or num_deformable_group").found(to_string(kernel));
  if (!modulated) ORKNN_TRY(fit_to_first_version(l, shape, offsets, x, mask));
  const int64_t less = modulated ? 0 : 1;  // the row and column added to the data
  l.set_output(l.emit("DeformConv", {x, weight, offsets, bias, mask},
                      {{"kernel_shape", kernel},
                       {"strides", shape.stride},
                       {"dilations", shape.dilate},
                       {"pads", std::vector<int64_t>{shape.pad[0], shape.pad[1], shape.pad[0] - less, shape.pad[1] - less}},
                       {"group", group},
                       {"offset_group", shape.groups}}));
  return {};
}

// Mean over channels (and a window) of products, or distances, of two feature maps shifted against each other; one channel per
// shift.
Status correlation(Layer& l) {
  TensorId maps[2];
  const int64_t pad = l.integer("pad_size", 0), reach = l.integer("max_displacement", 1), kernel = l.integer("kernel_size", 1),
                stride = l.integer("stride1", 1), step = l.integer("stride2", 1);
  if (pad < 0 || reach < 0 || kernel < 1 || kernel % 2 == 0 || stride < 1 || step < 1 || reach > 4096)
    return invalid_model("illegal pad_size, max_displacement, kernel_size or strides");
  ORKNN_TRY_ASSIGN(const TensorId first, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(first, "to shift it"));
  if (in.size() != 4) return shape_mismatch("the data must be [N,C,H,W]").found(to_string(in));
  for (size_t i = 0; i < 2; ++i) {
    ORKNN_TRY_ASSIGN(maps[i], l.need(i));
    if (pad > 0)
      maps[i] = l.emit(
          "Pad", {maps[i], l.add_ints("pads", {0, 0, pad, pad, 0, 0, pad, pad}), l.add_scalar("zero", 0.0, l.dtype_of(maps[i]))});
  }
  const int64_t border = reach + (kernel - 1) / 2, radius = reach / step, shifts = (2 * radius + 1) * (2 * radius + 1);
  if (shifts > 2500) return unsupported("a correlation of so many shifts").expected("at most 2500").found(std::to_string(shifts));
  const auto size_of = [&](int64_t extent) { return (extent + 2 * pad - 2 * border + stride - 1) / stride; };
  const int64_t height = size_of(in[2]), width = size_of(in[3]);
  if (height < 1 || width < 1) return shape_mismatch("the data is smaller than the displacement").found(to_string(in));
  // What the windows of the result cover, from the place (y, x).
  const int64_t covered_height = (height - 1) * stride + kernel, covered_width = (width - 1) * stride + kernel;
  const auto cut = [&](TensorId map, int64_t y, int64_t x) {
    return l.emit("Slice", {map, l.add_ints("begin", {y, x}), l.add_ints("end", {y + covered_height, x + covered_width}),
                            l.add_ints("axes", {2, 3})});
  };
  const bool multiply = l.flag("is_multiply", true);
  const TensorId fixed = cut(maps[0], reach, reach);
  std::vector<TensorId> channels;
  for (int64_t dy = -radius; dy <= radius; ++dy)
    for (int64_t dx = -radius; dx <= radius; ++dx) {
      const TensorId other = cut(maps[1], reach + dy * step, reach + dx * step);
      const TensorId each = multiply ? l.binary("Mul", fixed, other) : l.unary("Abs", l.binary("Sub", fixed, other));
      channels.push_back(l.reduce("ReduceMean", each, {1}, true));
    }
  TensorId y = l.concat(channels, 1);
  if (kernel > 1 || stride > 1)
    y = l.emit("AveragePool", {y},
               {{"kernel_shape", std::vector<int64_t>{kernel, kernel}}, {"strides", std::vector<int64_t>{stride, stride}}});
  l.set_output(y);
  return {};
}

// --- pictures

// [H,W,C] of bytes to [C,H,W] from 0 to 1; a batch in front stays in front.
Status to_tensor(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to move its channels"));
  if (rank != 3 && rank != 4)
    return shape_mismatch("a picture or a batch of them is needed").found("rank " + std::to_string(rank));
  const TensorId moved =
      l.transpose(l.cast(x, DType::Float32), rank == 3 ? std::vector<int64_t>{2, 0, 1} : std::vector<int64_t>{0, 3, 1, 2});
  l.set_output(l.with_scalar("Div", moved, 255.0));
  return {};
}

Status normalize(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const auto factor = [&](std::string_view key, double fallback) {
    const std::vector<double> values = l.numbers(key, {fallback});
    const std::vector<float> floats(values.begin(), values.end());
    return l.cast(l.floats(key, {static_cast<int64_t>(floats.size()), 1, 1}, floats), l.dtype_of(x));
  };
  l.set_output(l.binary("Div", l.binary("Sub", x, factor("mean", 0.0)), factor("std", 1.0)));
  return {};
}
}  // namespace

std::span<const Row> sampling_rows() {
  static const Row rows[] = {
      {"ROIPooling", roi_pooling},
      {"_contrib_ROIAlign", roi_align},
      {"_contrib_PSROIPooling", position_sensitive_pooling},
      {"PSROIPooling", position_sensitive_pooling},
      {"_contrib_DeformablePSROIPooling", no_region_kernel},
      {"_contrib_RROIAlign", no_region_kernel},
      {"GridGenerator", grid_generator},
      {"BilinearSampler", bilinear_sampler},
      {"SpatialTransformer", spatial_transformer},
      {"_contrib_DeformableConvolution", deformable_convolution},
      {"_contrib_ModulatedDeformableConvolution", deformable_convolution},
      {"Correlation", correlation},
      {"_image_to_tensor", to_tensor},
      {"_image_normalize", normalize},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
