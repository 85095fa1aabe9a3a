// RoiAlign and MaxRoiPool: regions of interest resampled to a fixed size.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/support/floating.h"
#include "ops/support/operands.h"
#include "ops/support/pooling.h"

namespace orknn::ops {
namespace {
using namespace ir;

// More would not change the result visibly, and a lying attribute must not keep the machine busy for hours.
constexpr int64_t kMaxSamples = 4096;
constexpr int64_t kMaxPooled = int64_t{1} << 20;

Status check_extent(const char* name, int64_t value) {
  if (value >= 1 && value <= kMaxPooled) return {};
  return invalid_model("attribute '" + std::string(name) + "' is out of range")
      .expected("1 to " + std::to_string(kMaxPooled))
      .found(std::to_string(value));
}

Status infer_regions(InferContext& c, int64_t height, int64_t width) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY(require_same_type(c, 0, 1));
  ORKNN_TRY(require_rank(c, 0, 4));
  ORKNN_TRY(require_rank(c, 1, 2));
  Shape out{Dim(), Dim(), height, width};
  if (c.shape(1)) out[0] = c.shape(1)->front();
  if (c.shape(0)) out[1] = (*c.shape(0))[1];
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status check_region_columns(const TensorView& rois, int64_t columns) {
  if (rois.dims[1] == columns) return {};
  return wrong_shape("rois", "[regions," + std::to_string(columns) + "]", rois.dims);
}

Status check_image(double index, int64_t batch) {
  if (index >= 0 && index < static_cast<double>(batch)) return {};
  return invalid_argument("a region names an image that does not exist")
      .expected("0 to " + std::to_string(batch - 1))
      .found(std::to_string(index));
}

// A scaled corner must be below 2^30; `corner` is what the error shows.
Status check_corner(double corner, double scaled) {
  constexpr double kMost = 1 << 30;
  return std::abs(scaled) < kMost ? Status() : invalid_argument("a region is out of range").found(std::to_string(corner));
}

// ---- RoiAlign

Status check_finite(double corner, double scaled) {
  return std::isfinite(scaled) ? Status() : invalid_argument("a region is not finite").found(std::to_string(corner));
}

Status infer_align(InferContext& c) {
  ORKNN_TRY(check_extent("output_height", c.get_int("output_height")));
  ORKNN_TRY(check_extent("output_width", c.get_int("output_width")));
  if (c.get_int("sampling_ratio") < 0 || c.get_int("sampling_ratio") > kMaxSamples)
    return invalid_model("sampling_ratio is out of range")
        .expected("0 to " + std::to_string(kMaxSamples))
        .found(std::to_string(c.get_int("sampling_ratio")));
  for (const auto& [name, one, other] :
       {std::tuple{"mode", "avg", "max"}, std::tuple{"coordinate_transformation_mode", "half_pixel", "output_half_pixel"}}) {
    const std::string& value = c.get_string(name);
    if (value != one && value != other)
      return invalid_model("unknown " + std::string(name)).expected(std::string(one) + " or " + other).found(value);
  }
  if (c.has_input(2) && c.dtype(2) != DType::Int64) return require_type(c, 2, DType::Int64);
  ORKNN_TRY(require_rank(c, 2, 1));
  ORKNN_TRY(require_shape(c, 1, "rois", {Dim(), 4}));
  if (c.shape(1)) ORKNN_TRY(require_shape(c, 2, "batch_indices", {c.shape(1)->front()}));
  const std::optional<std::vector<int64_t>> images = c.ints(2);
  if (const Shape* x = c.shape(0); images && x && !x->empty() && x->front().is_known())
    for (int64_t image : *images) ORKNN_TRY(check_image(static_cast<double>(image), x->front().value()));
  if (const TensorData* rois = c.constant(1)) {
    // In the type that the kernel computes in, so that both refuse the same.
    const double scale = c.get_float("spatial_scale");
    const bool wide = rois->dtype() == DType::Float64;
    for (const double corner : to_doubles(rois->view()))
      ORKNN_TRY(check_finite(corner, wide ? corner * scale : static_cast<float>(corner) * static_cast<float>(scale)));
  }
  return infer_regions(c, c.get_int("output_height"), c.get_int("output_width"));
}

// Samples of one bin along one axis: the two neighbours of each and the weight of the upper one. Samples outside of the
// image only count.
template <class T>
struct Samples {
  struct Sample {
    int64_t low, high;
    T weight_high;
  };
  std::vector<Sample> inside;
  bool any_outside = false;
};

template <class T>
Samples<T> sample_axis(T start, T bin_size, double grid, int64_t extent) {
  Samples<T> out;
  const T step = static_cast<T>(bin_size / static_cast<T>(grid));
  // Only samples in [-1, extent] matter: find them without walking through a region that is far bigger than the image.
  double first = 0, last = grid;
  if (step > 0) {
    first = std::max(0.0, std::floor((-1.0 - static_cast<double>(start)) / static_cast<double>(step)) - 2);
    last = std::min(grid, std::ceil((static_cast<double>(extent) - static_cast<double>(start)) / static_cast<double>(step)) + 2);
  }
  out.any_outside = first > 0 || last < grid;
  for (double i = first; i < last; ++i) {
    T at = start + (static_cast<T>(i) + T(0.5)) * bin_size / static_cast<T>(grid);
    if (!(at >= T(-1) && at <= static_cast<T>(extent))) {
      out.any_outside = true;
      continue;
    }
    at = std::max(at, T(0));
    auto low = static_cast<int64_t>(at);
    if (low >= extent - 1) {
      out.inside.push_back({extent - 1, extent - 1, T(0)});
    } else {
      out.inside.push_back({low, low + 1, at - static_cast<T>(low)});
    }
  }
  return out;
}

Status run_align(RunContext& c) {
  const TensorView x = c.input(0), rois = c.input(1), images = c.input(2);
  ORKNN_TRY(check_region_columns(rois, 4));
  if (images.dims[0] != rois.dims[0]) return wrong_shape("batch_indices", "[" + std::to_string(rois.dims[0]) + "]", images.dims);
  const int64_t regions = rois.dims[0], channels = x.dims[1], height = x.dims[2], width = x.dims[3];
  const int64_t out_height = c.get_int("output_height"), out_width = c.get_int("output_width"),
                ratio = c.get_int("sampling_ratio");
  const bool half_pixel = c.get_string("coordinate_transformation_mode") == "half_pixel", average = c.get_string("mode") == "avg";
  for (int64_t r = 0; r < regions; ++r) ORKNN_TRY(check_image(static_cast<double>(images.as<int64_t>()[r]), x.dims[0]));
  if (height == 0 || width == 0) return wrong_shape("input 0", "an image with elements", x.dims);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, Dims{regions, channels, out_height, out_width}));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) -> Status {
    const T scale = static_cast<T>(c.get_float("spatial_scale")), shift = half_pixel ? T(0.5) : T(0);
    for (const T corner : rois.values<T>()) ORKNN_TRY(check_finite(corner, corner * scale));
    c.pool.parallel_for(regions, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* roi = rois.as<T>() + r * 4;
        const T start_x = roi[0] * scale - shift, start_y = roi[1] * scale - shift;
        T roi_width = roi[2] * scale - shift - start_x, roi_height = roi[3] * scale - shift - start_y;
        if (!half_pixel) {  // malformed regions become 1x1
          roi_width = std::max(roi_width, T(1));
          roi_height = std::max(roi_height, T(1));
        }
        const T bin_width = roi_width / static_cast<T>(out_width), bin_height = roi_height / static_cast<T>(out_height);
        const double grid_x = ratio > 0 ? static_cast<double>(ratio) : std::max(0.0, std::ceil(static_cast<double>(bin_width)));
        const double grid_y = ratio > 0 ? static_cast<double>(ratio) : std::max(0.0, std::ceil(static_cast<double>(bin_height)));
        const double count = std::max(grid_x * grid_y, 1.0);
        std::vector<Samples<T>> columns;
        for (int64_t i = 0; i < out_width; ++i)
          columns.push_back(sample_axis<T>(start_x + static_cast<T>(i) * bin_width, bin_width, grid_x, width));
        for (int64_t row = 0; row < out_height; ++row) {
          const Samples<T> rows = sample_axis<T>(start_y + static_cast<T>(row) * bin_height, bin_height, grid_y, height);
          for (int64_t channel = 0; channel < channels; ++channel) {
            const T* plane = x.as<T>() + (images.as<int64_t>()[r] * channels + channel) * height * width;
            T* to = y.as<T>() + ((r * channels + channel) * out_height + row) * out_width;
            for (int64_t column = 0; column < out_width; ++column) {
              const Samples<T>& across = columns[static_cast<size_t>(column)];
              double sum = 0, best = -std::numeric_limits<double>::infinity();
              for (const auto& v : rows.inside)
                for (const auto& h : across.inside) {
                  const double ly = static_cast<double>(v.weight_high), lx = static_cast<double>(h.weight_high);
                  const double parts[] = {(1 - ly) * (1 - lx) * static_cast<double>(plane[v.low * width + h.low]),
                                          (1 - ly) * lx * static_cast<double>(plane[v.low * width + h.high]),
                                          ly * (1 - lx) * static_cast<double>(plane[v.high * width + h.low]),
                                          ly * lx * static_cast<double>(plane[v.high * width + h.high])};
                  // The max mode of ONNX compares the weighted neighbours, not their sum.
                  for (double p : parts) {
                    sum += p;
                    best = std::max(best, p);
                  }
                }
              const bool zero_sample = rows.any_outside || across.any_outside || rows.inside.empty() || across.inside.empty();
              if (zero_sample) best = std::max(best, 0.0);
              to[column] = static_cast<T>(average ? sum / count : best);
            }
          }
        }
      }
    });
    return {};
  });
}

OpCost cost_align(const NodeReader& node, std::span<const Dims>, std::span<const Dims> outputs) {
  const int64_t ratio = std::clamp<int64_t>(node.get_int("sampling_ratio"), 1, kMaxSamples);
  return {.element_ops = element_count(outputs[0]) * ratio * ratio * 8};
}

// ---- MaxRoiPool

Status infer_max(InferContext& c) {
  const std::vector<int64_t>* pooled = c.find<std::vector<int64_t>>("pooled_shape");
  if (pooled->size() != 2)
    return invalid_model("attribute 'pooled_shape' has the wrong length").expected("2").found(to_string(*pooled));
  for (int64_t extent : *pooled) ORKNN_TRY(check_extent("pooled_shape", extent));
  ORKNN_TRY(require_shape(c, 1, "rois", {Dim(), 5}));
  if (const TensorData* rois = c.constant(1); rois && c.shape(0) && !c.shape(0)->empty() && c.shape(0)->front().is_known()) {
    const std::vector<double> values = to_doubles(rois->view());
    for (size_t i = 0; i < values.size(); ++i)
      ORKNN_TRY(i % 5 == 0 ? check_image(values[i], c.shape(0)->front().value())
                           : check_corner(values[i], std::round(values[i] * c.get_float("spatial_scale"))));
  }
  return infer_regions(c, (*pooled)[0], (*pooled)[1]);
}

// The pixels of bin i of `bins` along one axis of a region.
template <class T>
OutputRange bin_pixels(int64_t start, int64_t length, int64_t i, int64_t bins, int64_t extent) {
  const T size = static_cast<T>(length) / static_cast<T>(bins);
  const auto clip = [&](T position) { return std::clamp<int64_t>(static_cast<int64_t>(position) + start, 0, extent); };
  return {clip(std::floor(static_cast<T>(i) * size)), clip(std::ceil(static_cast<T>(i + 1) * size))};
}

Status run_max(RunContext& c) {
  const TensorView x = c.input(0), rois = c.input(1);
  ORKNN_TRY(check_region_columns(rois, 5));
  const std::vector<int64_t>& pooled = *c.find<std::vector<int64_t>>("pooled_shape");
  const int64_t regions = rois.dims[0], channels = x.dims[1], height = x.dims[2], width = x.dims[3];
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, Dims{regions, channels, pooled[0], pooled[1]}));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) -> Status {
    const T scale = static_cast<T>(c.get_float("spatial_scale"));
    for (int64_t r = 0; r < regions; ++r) {
      const T* roi = rois.as<T>() + r * 5;
      ORKNN_TRY(check_image(static_cast<double>(roi[0]), x.dims[0]));
      int64_t corner[4];
      for (int i = 0; i < 4; ++i) {
        const T position = std::round(roi[i + 1] * scale);
        ORKNN_TRY(check_corner(roi[i + 1], position));
        corner[i] = static_cast<int64_t>(position);
      }
      const int64_t roi_width = std::max<int64_t>(corner[2] - corner[0] + 1, 1),
                    roi_height = std::max<int64_t>(corner[3] - corner[1] + 1, 1);
      const auto image = static_cast<int64_t>(roi[0]);
      for_each_plane(c.pool, channels, [&](int64_t channel) {
        const T* plane = x.as<T>() + (image * channels + channel) * height * width;
        T* to = y.as<T>() + (r * channels + channel) * pooled[0] * pooled[1];
        for (int64_t i = 0; i < pooled[0]; ++i) {
          const OutputRange rows = bin_pixels<T>(corner[1], roi_height, i, pooled[0], height);
          for (int64_t j = 0; j < pooled[1]; ++j) {
            const OutputRange columns = bin_pixels<T>(corner[0], roi_width, j, pooled[1], width);
            const bool empty = rows.begin >= rows.end || columns.begin >= columns.end;
            T best = empty ? T(0) : std::numeric_limits<T>::lowest();
            for (int64_t h = rows.begin; h < rows.end; ++h)
              for (int64_t w = columns.begin; w < columns.end; ++w) best = std::max(best, plane[h * width + w]);
            to[i * pooled[1] + j] = best;
          }
        }
      });
    }
    return {};
  });
}

OpCost cost_max(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  return {.element_ops =
              outputs[0].empty() || inputs[0].size() != 4 ? 0 : outputs[0][0] * inputs[0][1] * inputs[0][2] * inputs[0][3]};
}
}  // namespace

std::span<const OpDef> roi_pool() {
  static const OpDef defs[] = {
      {.name = "RoiAlign",
       .summary = "regions resampled bilinearly to a fixed size",
       .inputs = {3, 3},
       .attributes = {attr_string("coordinate_transformation_mode", "half_pixel"), attr_string("mode", "avg"),
                      attr_int("output_height", 1), attr_int("output_width", 1), attr_int("sampling_ratio", 0),
                      attr_float("spatial_scale", 1.0)},
       .infer = infer_align,
       .run = run_align,
       .cost = cost_align,
       .engine = Engine::Pool,
       .cpu = {CpuList::LargeChips, CpuLimit::RoiAverage}},
      {.name = "MaxRoiPool",
       .summary = "greatest value of each bin of each region",
       .inputs = {2, 2},
       .attributes = {required(attr_ints("pooled_shape")), attr_float("spatial_scale", 1.0)},
       .infer = infer_max,
       .run = run_max,
       .cost = cost_max,
       .engine = Engine::Pool,
       .cpu = {CpuList::LargeChips}},
  };
  return defs;
}
}  // namespace orknn::ops
