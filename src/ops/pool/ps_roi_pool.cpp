// Position-sensitive pooling of regions (R-FCN): bin (i, j) of output channel c is the mean of its pixels in a plane of its own,
// channel (c * group_size + i) * group_size + j of the input. Regions are [n, 5]: image, left, top, right, bottom.
#include <algorithm>
#include <cmath>

#include "ops/support/floating.h"
#include "ops/support/operands.h"
#include "ops/support/pooling.h"

namespace orknn::ops {
namespace {
using namespace ir;
constexpr int64_t kMaxChannels = int64_t{1} << 20, kMaxGroup = int64_t{1} << 10;

// The first value of a region is its image, corners follow.
template <class T>
Status check_region(const T* roi, int64_t images) {
  if (!(roi[0] >= 0 && roi[0] < static_cast<T>(images)))
    return invalid_argument("a region names an image that does not exist")
        .expected("0 to " + std::to_string(images - 1))
        .found(std::to_string(roi[0]));
  for (int i = 1; i < 5; ++i)
    if (!(std::abs(roi[i]) < T(1 << 30))) return invalid_argument("a region is out of range").found(std::to_string(roi[i]));
  return {};
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY(require_same_type(c, 0, 1));
  ORKNN_TRY(require_rank(c, 0, 4));
  ORKNN_TRY(require_shape(c, 1, "rois", {Dim(), 5}));
  const int64_t channels = c.get_int("output_channels"), group = c.get_int("group_size");
  if (channels < 1 || channels > kMaxChannels || group < 1 || group > kMaxGroup)
    return invalid_model("output_channels or group_size is out of range")
        .found(std::to_string(channels) + ", " + std::to_string(group));
  if (const Shape* x = c.shape(0); x && (*x)[1].is_known() && (*x)[1].value() != channels * group * group)
    return shape_mismatch("the channels do not fit the bins")
        .expected(std::to_string(channels * group * group))
        .found(to_string(*x));
  if (const TensorData* rois = c.constant(1); rois && c.shape(0) && c.shape(0)->front().is_known()) {
    const std::vector<double> values = to_doubles(rois->view());
    for (size_t i = 0; i < values.size(); i += 5) ORKNN_TRY(check_region(&values[i], c.shape(0)->front().value()));
  }
  c.set_output(0, c.dtype(0), Shape{c.shape(1) ? c.shape(1)->front() : Dim(), channels, group, group});
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), rois = c.input(1);
  const int64_t channels = c.get_int("output_channels"), group = c.get_int("group_size"), height = x.dims[2], width = x.dims[3];
  if (rois.dims[1] != 5) return shape_mismatch("regions must be [n, 5]").found(to_string(rois.dims));
  if (x.dims[1] != channels * group * group)
    return shape_mismatch("the channels do not fit the bins")
        .expected(std::to_string(channels * group * group))
        .found(to_string(x.dims));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, Dims{rois.dims[0], channels, group, group}));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) -> Status {
    const T scale = static_cast<T>(c.get_float("spatial_scale"));
    for (int64_t r = 0; r < rois.dims[0]; ++r) {
      const T* roi = rois.as<T>() + r * 5;
      ORKNN_TRY(check_region(roi, x.dims[0]));
      const T left = std::round(roi[1]) * scale, top = std::round(roi[2]) * scale;
      const T bin_width = std::max((std::round(roi[3]) + 1) * scale - left, T(0.1)) / static_cast<T>(group),
              bin_height = std::max((std::round(roi[4]) + 1) * scale - top, T(0.1)) / static_cast<T>(group);
      const auto bin = [](T start, T size, int64_t i, int64_t extent) {
        const auto clip = [&](T v) { return static_cast<int64_t>(std::clamp(v, T(0), static_cast<T>(extent))); };
        return OutputRange{clip(std::floor(start + static_cast<T>(i) * size)),
                           clip(std::ceil(start + static_cast<T>(i + 1) * size))};
      };
      for_each_plane(c.pool, channels, [&](int64_t channel) {
        for (int64_t i = 0; i < group; ++i) {
          const OutputRange rows = bin(top, bin_height, i, height);
          for (int64_t j = 0; j < group; ++j) {
            const OutputRange columns = bin(left, bin_width, j, width);
            const T* plane = x.as<T>() + ((static_cast<int64_t>(roi[0]) * channels + channel) * group * group + i * group + j) *
                                             height * width;
            const int64_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
            double sum = 0;
            for (int64_t h = rows.begin; h < rows.end; ++h)
              for (int64_t w = columns.begin; w < columns.end; ++w) sum += static_cast<double>(plane[h * width + w]);
            y.as<T>()[((r * channels + channel) * group + i) * group + j] =
                static_cast<T>(rows.begin < rows.end && columns.begin < columns.end ? sum / static_cast<double>(count) : 0.0);
          }
        }
      });
    }
    return {};
  });
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  return {.element_ops = outputs[0].empty() || inputs[0].size() != 4 ? 0 : outputs[0][0] * inputs[0][1] * inputs[0][2]};
}
}  // namespace

std::span<const OpDef> ps_roi_pool() {
  static const OpDef def{
      .name = "PSRoiPool",
      .summary = "mean of each bin of each region, in a plane of its own",
      .inputs = {2, 2},
      .attributes = {required(attr_int("output_channels")), required(attr_int("group_size")), attr_float("spatial_scale", 1.0)},
      .infer = infer,
      .run = run,
      .cost = cost,
      .engine = Engine::Pool};
  return {&def, 1};
}
}  // namespace orknn::ops
