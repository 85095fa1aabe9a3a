// Pooling with Caffe's rounding, pyramids of it, pooling with a mask and its inverse, pooling of regions.
#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
enum class Pool { Max, Average, Stochastic };

Result<Pool> pool_of(const Message& p) {
  ORKNN_TRY_ASSIGN(const std::string word, p.get_word("pool", "MAX"));
  if (word == "MAX" || word == "0") return Pool::Max;
  if (word == "AVE" || word == "1") return Pool::Average;
  if (word == "STOCHASTIC" || word == "2") return Pool::Stochastic;
  return unsupported("unknown pooling").expected("MAX, AVE or STOCHASTIC").found(word);
}

// Ceil is the default; newer schemas and forks can say otherwise.
Result<bool> rounds_up(const Message& p) {
  ORKNN_TRY_ASSIGN(const std::string mode, p.get_word("round_mode", "CEIL"));
  ORKNN_TRY_ASSIGN(const bool ceil, p.get_bool("ceil_mode", mode != "FLOOR" && mode != "1"));
  return ceil;
}

Attributes attributes_of(const Window& w, bool ceil) {
  return {{"kernel_shape", w.kernel}, {"strides", w.stride}, {"pads", w.pads()}, {"ceil_mode", int64_t{ceil}}};
}

TensorId average(Layer& l, TensorId x, Attributes attributes) {
  attributes.set("count_include_pad", int64_t{1});  // the padding counts, what lies beyond it does not
  return l.emit("AveragePool", {x}, std::move(attributes));
}

TensorId pooled(Layer& l, TensorId x, Pool pool, const Attributes& attributes) {
  if (pool == Pool::Max) return l.emit("MaxPool", {x}, attributes);
  if (pool == Pool::Average) return average(l, x, attributes);
  // In use, stochastic pooling is the mean weighted by the values themselves.
  return l.emit("Div", {average(l, l.emit("Mul", {x, x}), attributes), average(l, x, attributes)});
}

TensorId globally_pooled(Layer& l, TensorId x, Pool pool) {
  if (pool == Pool::Max) return l.emit("GlobalMaxPool", {x});
  if (pool == Pool::Average) return l.emit("GlobalAveragePool", {x});
  return l.emit("Div", {l.emit("GlobalAveragePool", {l.emit("Mul", {x, x})}), l.emit("GlobalAveragePool", {x})});
}

// Index of the first pixel of each plane in the memory of the whole tensor, [N,C,1,1].
Result<TensorId> plane_starts(Layer& l, int64_t images, int64_t channels, int64_t plane) {
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(Dims{images, channels}, int64_t{1} << 26));
  ORKNN_TRY(checked_element_count(Dims{images, channels, plane}).status());
  std::vector<int64_t> starts(static_cast<size_t>(count));
  for (size_t i = 0; i < starts.size(); ++i) starts[i] = static_cast<int64_t>(i) * plane;
  return l.add_constant("plane_starts", TensorData::from<int64_t>({images, channels, 1, 1}, starts));
}

// The second top tells where in its plane each maximum was.
Status pooling_with_mask(Layer& l, const Attributes& attributes) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.bottom(), "to number its pixels"));
  if (dims.size() != 4) return unsupported("pooling with a mask is for pictures").found(to_string(dims));
  const auto outputs = l.emit_all("MaxPool", {l.bottom()}, attributes, 2);
  ORKNN_TRY_ASSIGN(const TensorId starts, plane_starts(l, dims[0], dims[1], dims[2] * dims[3]));
  ORKNN_TRY(l.set_top(outputs[0]));
  return l.set_top(l.cast(l.emit("Sub", {outputs[1], starts}), DType::Float32), 1);
}

Status pooling(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("pooling_param");
  ORKNN_TRY_ASSIGN(const Pool pool, pool_of(p));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to pool it"));
  if (rank < 3) return unsupported("pooling needs spatial axes").found(std::to_string(rank) + " axes");
  ORKNN_TRY_ASSIGN(const bool global, p.get_bool("global_pooling", false));
  Attributes attributes;
  if (!global) {
    ORKNN_TRY_ASSIGN(const Window w, window_of(p, static_cast<size_t>(rank - 2)));
    ORKNN_TRY_ASSIGN(const bool ceil, rounds_up(p));
    attributes = attributes_of(w, ceil);
  } else if (l.top_count() > 1) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.bottom(), "to pool it with a mask"));
    attributes = {{"kernel_shape", std::vector<int64_t>(dims.begin() + 2, dims.end())}};
  }
  if (l.top_count() > 1) {
    if (pool != Pool::Max) return unsupported("only MAX pooling has a mask");
    return pooling_with_mask(l, attributes);
  }
  return l.set_top(global ? globally_pooled(l, l.bottom(), pool) : pooled(l, l.bottom(), pool, attributes));
}

// Pools at several sizes, all results in one row.
Status spatial_pyramid(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("spp_param");
  ORKNN_TRY_ASSIGN(const Pool pool, pool_of(p));
  ORKNN_TRY_ASSIGN(const int64_t levels, p.get_int("pyramid_height", 1));
  if (levels < 1 || levels > 16)
    return invalid_model("'pyramid_height' is out of range").expected("1 to 16").found(std::to_string(levels));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.bottom(), "to divide it"));
  if (dims.size() != 4) return unsupported("a pyramid of pictures is needed").found(to_string(dims));
  std::vector<TensorId> rows;
  for (int64_t level = 0; level < levels; ++level) {
    const int64_t bins = int64_t{1} << level;
    Window w;
    for (size_t axis : {size_t{2}, size_t{3}}) {
      const int64_t kernel = (dims[axis] + bins - 1) / bins;
      if (kernel < 1) return invalid_model("the picture is empty").found(to_string(dims));
      w.kernel.push_back(kernel);
      w.stride.push_back(kernel);
      w.pad.push_back((kernel * bins - dims[axis] + 1) / 2);
    }
    rows.push_back(l.emit("Flatten", {pooled(l, l.bottom(), pool, attributes_of(w, true))}, {{"axis", int64_t{1}}}));
  }
  return l.set_top(rows.size() == 1 ? rows[0] : l.emit("Concat", rows, {{"axis", int64_t{1}}}));
}

// Enlarges by repeating pixels, or, with the mask of a pooling, puts each value back where it came from.
Status upsample(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 2));
  const Message& p = l.parameters("upsample_param");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.bottom(), "to enlarge it"));
  if (dims.size() != 4) return unsupported("Upsample is for pictures").found(to_string(dims));
  ORKNN_TRY_ASSIGN(const int64_t stride, p.get_int("stride", 2));
  ORKNN_TRY_ASSIGN(const int64_t scale, p.get_int("scale", stride));
  ORKNN_TRY_ASSIGN(const int64_t scale_h, p.get_int("scale_h", scale));
  ORKNN_TRY_ASSIGN(const int64_t scale_w, p.get_int("scale_w", scale));
  if (scale_h < 1 || scale_w < 1 || scale_h > 1024 || scale_w > 1024)
    return invalid_model("'scale' is out of range").expected("1 to 1024");
  if (l.bottom_count() == 1) {
    const float factors[] = {1, 1, static_cast<float>(scale_h), static_cast<float>(scale_w)};
    const TensorId scales = l.add_constant("scales", TensorData::from<float>({4}, std::span(factors)));
    return l.set_top(l.emit("Resize", {l.bottom(), TensorId{}, scales},
                            {{"mode", std::string("nearest")},
                             {"coordinate_transformation_mode", std::string("asymmetric")},
                             {"nearest_mode", std::string("floor")}}));
  }
  ORKNN_TRY_ASSIGN(const bool pad_h, p.get_bool("pad_out_h", false));
  ORKNN_TRY_ASSIGN(const bool pad_w, p.get_bool("pad_out_w", false));
  ORKNN_TRY_ASSIGN(const int64_t height, p.get_int("upsample_h", dims[2] * scale_h - (pad_h ? 1 : 0)));
  ORKNN_TRY_ASSIGN(const int64_t width, p.get_int("upsample_w", dims[3] * scale_w - (pad_w ? 1 : 0)));
  if (height < 1 || width < 1 || height > (1 << 20) || width > (1 << 20))
    return invalid_model("the enlarged size is out of range").found(std::to_string(height) + "x" + std::to_string(width));
  ORKNN_TRY_ASSIGN(const TensorId starts, plane_starts(l, dims[0], dims[1], height * width));
  const TensorId places = l.emit("Add", {l.cast(l.bottom(1), DType::Int64), starts});
  return l.set_top(
      l.emit("MaxUnpool", {l.bottom(), places, l.add_ints("output_shape", {dims[0], dims[1], height, width})},
             {{"kernel_shape", std::vector<int64_t>{scale_h, scale_w}}, {"strides", std::vector<int64_t>{scale_h, scale_w}}}));
}

// --- regions [R,5]: image, left, top, right, bottom

Status roi_pooling(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 2));
  const Message& p = l.parameters("roi_pooling_param");
  ORKNN_TRY_ASSIGN(const int64_t height, p.get_int("pooled_h", 0));
  ORKNN_TRY_ASSIGN(const int64_t width, p.get_int("pooled_w", 0));
  ORKNN_TRY_ASSIGN(const double scale, p.get_double("spatial_scale", 1));
  ORKNN_TRY_ASSIGN(const TensorId rois, [&]() -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(1), "to read the regions"));
    return rank == 2 ? l.bottom(1) : l.reshape(l.bottom(1), {-1, 5});
  }());
  return l.set_top(l.emit("MaxRoiPool", {l.bottom(), rois},
                          {{"pooled_shape", std::vector<int64_t>{height, width}}, {"spatial_scale", scale}}));
}

Status roi_align(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 2));
  const Message& p = l.parameters("roi_align_param");
  ORKNN_TRY_ASSIGN(const int64_t height, p.get_int("pooled_h", 0));
  ORKNN_TRY_ASSIGN(const int64_t width, p.get_int("pooled_w", 0));
  ORKNN_TRY_ASSIGN(const double scale, p.get_double("spatial_scale", 1));
  ORKNN_TRY_ASSIGN(const int64_t samples, p.get_int("sampling_ratio", 0));
  const TensorId rois = l.reshape(l.bottom(1), {-1, 5});
  const TensorId images = l.cast(l.reshape(l.slice(rois, 1, 0, 1), {-1}), DType::Int64);
  return l.set_top(l.emit("RoiAlign", {l.bottom(), l.slice(rois, 1, 1, 5), images},
                          {{"output_height", height},
                           {"output_width", width},
                           {"spatial_scale", scale},
                           {"sampling_ratio", std::max<int64_t>(samples, 0)},
                           {"coordinate_transformation_mode", std::string("output_half_pixel")}}));
}

Status ps_roi_pooling(Layer& l) {
  ORKNN_TRY(l.need_bottoms(2, 2));
  const Message& p = l.parameters("psroi_pooling_param");
  ORKNN_TRY_ASSIGN(const int64_t channels, p.get_int("output_dim", 0));
  ORKNN_TRY_ASSIGN(const int64_t size, p.get_int("group_size", 0));
  ORKNN_TRY_ASSIGN(const double scale, p.get_double("spatial_scale", 1));
  return l.set_top(l.emit("PSRoiPool", {l.bottom(), l.reshape(l.bottom(1), {-1, 5})},
                          {{"output_channels", channels}, {"group_size", size}, {"spatial_scale", scale}}));
}
}  // namespace

std::span<const Row> pool_rows() {
  static constexpr Row kRows[] = {
      {"Pooling", pooling},    {"PoolWithArgmax", pooling},      {"PoolingWithArgmax", pooling}, {"SPP", spatial_pyramid},
      {"Upsample", upsample},  {"Unpooling", upsample},          {"ROIPooling", roi_pooling},    {"ROIAlign", roi_align},
      {"RoiAlign", roi_align}, {"PSROIPooling", ps_roi_pooling},
  };
  return kRows;
}

}  // namespace orknn::importer::caffe
