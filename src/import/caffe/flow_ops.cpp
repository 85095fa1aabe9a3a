// Layers of FlowNet: Correlation, FlowWarp, Accum, DataAugmentation.
#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
Result<Dims> picture_dims(const Layer& l, TensorId x, std::string_view reason) {
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(x, reason));
  if (dims.size() != 4) return unsupported("the bottom must hold pictures").expected("4 axes").found(to_string(dims));
  return dims;
}

Status correlation(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 2));
  const Message& p = l.parameters("correlation_param");
  ORKNN_TRY_ASSIGN(const std::string type, p.get_word("correlation_type", "MULTIPLY"));
  if (type != "MULTIPLY" && type != "0") return unsupported("only products are correlated").expected("MULTIPLY").found(type);
  Attributes attributes;
  for (const auto& [name, fallback] :
       {std::pair("pad", int64_t{0}), std::pair("kernel_size", int64_t{1}), std::pair("max_displacement", int64_t{0}),
        std::pair("stride_1", int64_t{1}), std::pair("stride_2", int64_t{1})}) {
    ORKNN_TRY_ASSIGN(const int64_t value, p.get_int(name, fallback));
    attributes.set(name, value);
  }
  return l.set_top(l.emit("Correlation", {l.bottom(0), l.bottom(1)}, std::move(attributes)));
}

// 0, 1, 2, ... along one axis.
TensorId counting(Layer& l, int64_t count, Dims dims) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return l.add_constant("positions", TensorData::from<float>(std::move(dims), values));
}

// Each pixel comes from where the flow points to, between four pixels; from outside of the picture comes nothing.
Status flow_warp(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 2));
  ORKNN_TRY_ASSIGN(const Dims dims, picture_dims(l, l.bottom(0), "to warp it"));
  const int64_t height = dims[2], width = dims[3];
  if (height < 1 || width < 1 || height > (1 << 20) || width > (1 << 20))
    return unsupported("the size of the picture is out of range").found(to_string(dims));
  ORKNN_TRY_ASSIGN(const std::string fill, l.parameters("flow_warp_param").get_word("fill_value", "ZERO"));
  if (fill != "ZERO" && fill != "1") return unsupported("only zeros are filled in").expected("ZERO").found(fill);
  const auto position = [&](int64_t axis) {
    const TensorId flow = l.slice(l.bottom(1), 1, axis, axis + 1);
    return l.emit("Add", {flow, axis == 0 ? counting(l, width, {1, 1, 1, width}) : counting(l, height, {1, 1, height, 1})});
  };
  const TensorId x = position(0), y = position(1);
  const auto inside = [&](TensorId at, int64_t extent) {
    return l.emit("And", {l.emit("GreaterOrEqual", {at, l.add_scalar("zero", 0)}),
                          l.emit("Less", {at, l.add_scalar("extent", static_cast<double>(extent))})});
  };
  // From pixels to -1..1 between the middles of the first and the last.
  const auto normalized = [&](TensorId at, int64_t extent) {
    return extent > 1 ? l.shifted(l.scaled(at, 2.0 / static_cast<double>(extent - 1)), -1) : l.scaled(at, 0);
  };
  const TensorId grid =
      l.transpose(l.emit("Concat", {normalized(x, width), normalized(y, height)}, {{"axis", int64_t{1}}}), {0, 2, 3, 1});
  const TensorId sampled =
      l.emit("GridSample", {l.bottom(0), grid},
             {{"align_corners", int64_t{1}}, {"mode", std::string("linear")}, {"padding_mode", std::string("border")}});
  const TensorId visible = l.emit("And", {inside(x, width), inside(y, height)});
  return l.set_top(l.emit("Where", {visible, sampled, l.add_scalar("fill", 0)}));
}

// Brings all bottoms to one size and joins their channels.
Status accumulate(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1000));
  const Message& p = l.parameters("accum_param");
  ORKNN_TRY_ASSIGN(const bool has_reference, p.get_bool("have_reference", false));
  ORKNN_TRY_ASSIGN(const int64_t divisor, p.get_int("size_divisible_by", 0));
  ORKNN_TRY_ASSIGN(int64_t height, p.get_int("top_height", 0));
  ORKNN_TRY_ASSIGN(int64_t width, p.get_int("top_width", 0));
  std::vector<Dims> dims;
  int64_t most_height = 0, most_width = 0;
  for (size_t i = 0; i < l.bottom_count(); ++i) {
    ORKNN_TRY_ASSIGN(Dims d, picture_dims(l, l.bottom(i), "to resize it"));
    most_height = std::max(most_height, d[2]);
    most_width = std::max(most_width, d[3]);
    dims.push_back(std::move(d));
  }
  size_t count = l.bottom_count();
  if (has_reference) {
    if (count < 2) return invalid_model("the reference is missing").expected("at least 2 bottoms");
    --count;
    height = dims.back()[2];
    width = dims.back()[3];
  } else {
    if (divisor > 0) {
      height = (most_height + divisor - 1) / divisor * divisor;
      width = (most_width + divisor - 1) / divisor * divisor;
    }
    if (height <= most_height || width <= most_width) {
      height = most_height;
      width = most_width;
    }
  }
  if (height > (1 << 20) || width > (1 << 20))
    return invalid_model("the size is out of range").found(std::to_string(height) + "x" + std::to_string(width));
  std::vector<TensorId> parts;
  for (size_t i = 0; i < count; ++i) {
    const Dims& d = dims[i];
    TensorId x = l.bottom(i);
    if (d[2] != height || d[3] != width)
      x = l.emit("Resize", {x, TensorId{}, TensorId{}, l.add_ints("sizes", {d[0], d[1], height, width})},
                 {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("align_corners")}});
    parts.push_back(x);
  }
  return l.set_top(parts.size() == 1 ? parts[0] : l.emit("Concat", parts, {{"axis", int64_t{1}}}));
}

// In use only the mean is taken off: the stored one, or, while fewer pictures than `recompute_mean` were seen, one that the
// picture itself is part of. Blobs: pictures seen, mean per pixel, mean per channel.
Status data_augmentation(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 2));
  const Message& p = l.parameters("augmentation_param");
  ORKNN_TRY_ASSIGN(const int64_t recompute, p.get_int("recompute_mean", 0));
  ORKNN_TRY_ASSIGN(const bool per_pixel, p.get_bool("mean_per_pixel", true));
  ORKNN_TRY_ASSIGN(const Dims dims, picture_dims(l, l.bottom(), "to take off its mean"));
  if (recompute <= 0) return l.set_top(l.bottom());
  const Blob* seen = l.stored(0);
  const double count =
      seen && seen->values.count() == 1 ? static_cast<double>(seen->values.as<float>()[0]) : static_cast<double>(recompute) + 1;
  if (per_pixel && !(count > static_cast<double>(recompute)))
    return unsupported("a mean per pixel that is still being learned")
        .expected("a model that has seen more than " + std::to_string(recompute) + " pictures");
  if (per_pixel) {
    ORKNN_TRY_ASSIGN(const TensorId mean,
                     l.blob(1, {.role = "mean", .dims = {1, dims[1], dims[2], dims[3]}, .filling = Filling::Zeros}));
    return l.set_top(l.emit("Sub", {l.bottom(), mean}));
  }
  TensorId mean;
  if (!(count <= 1)) {
    ORKNN_TRY_ASSIGN(mean, l.blob(2, {.role = "mean", .dims = {1, dims[1], 1, 1}, .filling = Filling::Zeros}));
  }
  if (!(count > static_cast<double>(recompute))) {
    const TensorId own = l.emit("ReduceMean", {l.bottom(), l.add_ints("axes", {0, 2, 3})}, {{"keepdims", int64_t{1}}});
    mean = mean ? l.emit("Add", {l.scaled(mean, (count - 1) / count), l.scaled(own, 1 / count)}) : own;
  }
  return l.set_top(l.emit("Sub", {l.bottom(), mean}));
}
}  // namespace

std::span<const Row> flow_rows() {
  static constexpr Row kRows[] = {
      {"Correlation", correlation}, {"FlowWarp", flow_warp}, {"Accum", accumulate}, {"DataAugmentation", data_augmentation}};
  return kRows;
}

}  // namespace orknn::importer::caffe
