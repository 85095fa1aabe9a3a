// Layers of FlowNet: Correlation, FlowWarp, Accum, DataAugmentation.
#include <numeric>

#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
constexpr int64_t kMostPixels = 1 << 20;  // along one axis

Result<TensorId> correlation(Layer& l, TensorId a, TensorId b) {
  const Parameters p = l.parameters("correlation_param");
  const std::string type = p.word("correlation_type", "MULTIPLY");
  if (type != "MULTIPLY" && type != "0")
    return unsupported("this correlation_type is not supported").expected("MULTIPLY").found(type);
  return l.emit("Correlation", {a, b},
                {{"pad", p.integer("pad", 0)},
                 {"kernel_size", p.integer("kernel_size", 1)},
                 {"max_displacement", p.integer("max_displacement", 0)},
                 {"stride_1", p.integer("stride_1", 1)},
                 {"stride_2", p.integer("stride_2", 1)}});
}

// Each pixel comes from where the flow points to, between four pixels; from outside of the picture comes nothing.
Result<TensorId> flow_warp(Layer& l, TensorId picture, TensorId flow) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(picture, "to warp it", 4));
  const int64_t height = dims[2], width = dims[3];
  if (height < 1 || width < 1 || height > kMostPixels || width > kMostPixels)
    return unsupported("the size of the picture is out of range").found(to_string(dims));
  const std::string fill = l.parameters("flow_warp_param").word("fill_value", "ZERO");
  if (fill != "ZERO" && fill != "1") return unsupported("only zeros are filled in").expected("ZERO").found(fill);
  const auto position = [&](int64_t channel, int64_t extent, Dims shape) {
    std::vector<float> counting(static_cast<size_t>(extent));
    std::iota(counting.begin(), counting.end(), 0.0f);
    return l.add(l.slice(flow, 1, channel, channel + 1),
                 l.add_constant("positions", TensorData::from<float>(std::move(shape), counting)));
  };
  const TensorId x = position(0, width, {1, 1, 1, width}), y = position(1, height, {1, 1, height, 1});
  const auto inside = [&](TensorId at, int64_t extent) {
    return l.binary("And", l.with_scalar("GreaterOrEqual", at, 0), l.with_scalar("Less", at, static_cast<double>(extent)));
  };
  // From pixels to -1..1 between the middles of the first and the last.
  const auto normalized = [&](TensorId at, int64_t extent) {
    return extent > 1 ? l.shifted(l.scaled(at, 2.0 / static_cast<double>(extent - 1)), -1) : l.scaled(at, 0);
  };
  const TensorId grid = l.transpose(l.concat({normalized(x, width), normalized(y, height)}, 1), {0, 2, 3, 1});
  const TensorId sampled =
      l.emit("GridSample", {picture, grid},
             {{"align_corners", int64_t{1}}, {"mode", std::string("linear")}, {"padding_mode", std::string("border")}});
  return l.where(l.binary("And", inside(x, width), inside(y, height)), sampled, l.add_scalar("fill", 0));
}

// Brings all bottoms to one size and joins their channels.
Result<TensorId> accumulate(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("accum_param");
  const bool has_reference = p.flag("have_reference", false);
  if (has_reference && bottoms.size() < 2) return invalid_model("the reference is missing").expected("at least 2 bottoms");
  std::vector<Dims> dims;
  int64_t most_height = 0, most_width = 0;
  for (TensorId x : bottoms) {
    ORKNN_TRY_ASSIGN(Dims d, l.need_dims(x, "to resize it", 4));
    most_height = std::max(most_height, d[2]);
    most_width = std::max(most_width, d[3]);
    dims.push_back(std::move(d));
  }
  int64_t height = p.integer("top_height", 0), width = p.integer("top_width", 0);
  if (has_reference) {
    bottoms = bottoms.first(bottoms.size() - 1);
    height = dims.back()[2];
    width = dims.back()[3];
  } else {
    if (const int64_t divisor = p.integer("size_divisible_by", 0, 0, kMostPixels); divisor > 0) {
      height = (most_height + divisor - 1) / divisor * divisor;
      width = (most_width + divisor - 1) / divisor * divisor;
    }
    if (height <= most_height || width <= most_width) {
      height = most_height;
      width = most_width;
    }
  }
  if (height > kMostPixels || width > kMostPixels)
    return invalid_model("the size is out of range").found(std::to_string(height) + "x" + std::to_string(width));
  std::vector<TensorId> parts(bottoms.begin(), bottoms.end());
  for (size_t i = 0; i < parts.size(); ++i)
    if (const Dims& d = dims[i]; d[2] != height || d[3] != width)
      parts[i] = l.emit("Resize", {parts[i], TensorId{}, TensorId{}, l.add_ints("sizes", {d[0], d[1], height, width})},
                        {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("align_corners")}});
  return l.concat(std::move(parts), 1);
}

// In use only the mean is taken off: the stored one, or, while fewer pictures than `recompute_mean` were seen, one that the
// picture itself is part of. Blobs: pictures seen, mean per pixel, mean per channel.
Result<TensorId> data_augmentation(Layer& l, Operands bottoms) {
  const Parameters p = l.parameters("augmentation_param");
  const TensorId x = bottoms[0];
  const auto recompute = static_cast<double>(p.integer("recompute_mean", 0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take off its mean", 4));
  if (recompute <= 0) return x;
  const Blob* seen = l.stored(0);
  const double count = seen && seen->values.count() == 1 ? static_cast<double>(seen->values.as<float>()[0]) : recompute + 1;
  const bool is_learned = count > recompute;
  if (p.flag("mean_per_pixel", true)) {
    if (!is_learned)
      return unsupported("a mean per pixel that is still being learned")
          .expected("a model that has seen more than " + std::to_string(p.integer("recompute_mean", 0)) + " pictures");
    ORKNN_TRY_ASSIGN(const TensorId mean, l.blob(1, {"mean", {1, dims[1], dims[2], dims[3]}, Fill::Zeros}));
    return l.sub(x, mean);
  }
  TensorId mean;
  if (!(count <= 1)) {
    ORKNN_TRY_ASSIGN(mean, l.blob(2, {"mean", {1, dims[1], 1, 1}, Fill::Zeros}));
  }
  if (!is_learned) {
    const TensorId own = l.reduce("ReduceMean", x, {0, 2, 3}, true);
    mean = mean ? l.add(l.scaled(mean, (count - 1) / count), l.scaled(own, 1 / count)) : own;
  }
  return l.sub(x, mean);
}
}  // namespace

std::span<const Row> flow_rows() {
  static const Row rows[] = {{"Correlation", correlation, kTwo},
                             {"FlowWarp", flow_warp, kTwo},
                             {"Accum", accumulate, kAtLeastOne},
                             {"DataAugmentation", data_augmentation, kOneOrTwo}};
  return rows;
}

}  // namespace orknn::importer::caffe
