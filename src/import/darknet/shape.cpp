// Sections that join, move or add layers: route, shortcut, upsample, reorg, crop.
#include "import/darknet/layer.h"
#include "import/lower/reorganize.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
Result<TensorId> route(Layer& l) {
  ORKNN_TRY_ASSIGN(const auto references, l.integers("layers"));
  const int64_t groups = l.integer("groups", 1, 1, int64_t{1} << 20), group = l.integer("group_id", 0, 0, groups - 1);
  std::vector<TensorId> parts;
  for (const int64_t reference : references) {
    ORKNN_TRY_ASSIGN(TensorId x, l.layer_at(reference));
    if (groups > 1 || references.size() > 1) {
      ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(x));
      if (in.dims[1] % groups != 0)
        return invalid_model("the channels cannot be divided into groups")
            .expected("a multiple of " + std::to_string(groups))
            .found(std::to_string(in.dims[1]));
      const int64_t share = in.dims[1] / groups;
      x = groups > 1 ? l.slice(in.x, 1, group * share, (group + 1) * share) : in.x;
    }
    parts.push_back(x);
  }
  return l.activated(l.concat(std::move(parts), 1));
}

// Puts zeros between the pixels, so that a smaller picture meets every `step`-th pixel of a larger one.
TensorId spread(Layer& l, TensorId x, const Dims& dims, int64_t step_y, int64_t step_x) {
  const TensorId split = l.reshape(x, {dims[0], dims[1], dims[2], 1, dims[3], 1});
  const TensorId padded = l.emit("Pad", {split, l.add_ints("pads", {0, 0, 0, 0, 0, 0, 0, 0, 0, step_y - 1, 0, step_x - 1})});
  return l.reshape(padded, {dims[0], dims[1], dims[2] * step_y, dims[3] * step_x});
}

// Makes another layer's picture addable to one of `to` pixels and channels: common leading channels count, a larger picture is
// sampled, a smaller one meets every n-th pixel.
Result<TensorId> fit(Layer& l, TensorId summand, const Dims& to) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(summand));
  TensorId x = in.x;
  Dims dims = in.dims;
  if (dims[2] == 1 && dims[3] == 1 && dims[1] == to[1]) return x;  // broadcast
  for (int axis : {2, 3})
    if (dims[axis] != to[axis] &&
        (dims[axis] == 0 || to[axis] == 0 || (dims[axis] % to[axis] != 0 && to[axis] % dims[axis] != 0)))
      return shape_mismatch("the pictures do not fit together").expected(to_string(to)).found(to_string(dims));
  if (dims[2] > to[2] || dims[3] > to[3]) {
    const std::vector<int64_t> steps{std::max<int64_t>(dims[2] / to[2], 1), std::max<int64_t>(dims[3] / to[3], 1)};
    x = l.slice(x, {0, 0}, {dims[2], dims[3]}, {2, 3}, steps);
    ORKNN_TRY_ASSIGN(dims, l.need_dims(x, "to add it"));
  }
  if (dims[2] < to[2] || dims[3] < to[3]) x = spread(l, x, dims, to[2] / dims[2], to[3] / dims[3]);
  if (dims[1] > to[1]) return l.slice(x, 1, 0, to[1]);
  if (dims[1] < to[1]) return l.emit("Pad", {x, l.add_ints("pads", {0, 0, 0, 0, 0, to[1] - dims[1], 0, 0})});
  return x;
}

// Learned weights of the summands, [summands, channels or 1, 1, 1], normalized as the section says.
Result<TensorId> summand_weights(Layer& l, int64_t summands, int64_t channels, const std::string& type) {
  const bool per_channel = type == "per_channel";
  if (!per_channel && type != "per_feature" && type != "per_layer")
    return invalid_model("unknown weights_type").expected("none, per_feature or per_channel").found(type);
  ORKNN_TRY_ASSIGN(TensorId w, l.take("weight", {summands, per_channel ? channels : 1, 1, 1}, Fill::Ones));
  const std::string normalization = l.text("weights_normalization", "none");
  if (normalization == "none") return w;
  if (normalization == "softmax") {
    w = l.unary("Exp", l.sub(w, l.reduce("ReduceMax", w, {0}, true)));
  } else if (normalization == "relu" || normalization == "avg_relu") {
    w = l.unary("Relu", w);
  } else {
    return invalid_model("unknown weights_normalization").expected("none, relu or softmax").found(normalization);
  }
  return l.div(w, l.add(l.reduce("ReduceSum", w, {0}, true), 0.0001));
}

Result<TensorId> shortcut(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const auto references, l.integers("from"));
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  std::vector<TensorId> summands{in.x};
  for (const int64_t reference : references) {
    ORKNN_TRY_ASSIGN(TensorId x, l.layer_at(reference));
    ORKNN_TRY_ASSIGN(x, fit(l, x, in.dims));
    summands.push_back(x);
  }
  const auto count = static_cast<int64_t>(summands.size());
  if (const std::string type = l.text("weights_type", "none"); type != "none") {
    ORKNN_TRY_ASSIGN(const TensorId weights, summand_weights(l, count, in.dims[1], type));
    for (int64_t i = 0; i < count; ++i) {
      TensorId& x = summands[static_cast<size_t>(i)];
      x = l.mul(x, l.slice(weights, 0, i, i + 1));
    }
  }
  const double alpha = l.number("alpha", 1), beta = l.number("beta", 1);
  if (alpha != 1) summands[0] = l.mul(summands[0], alpha);
  if (beta != 1) summands[1] = l.mul(summands[1], beta);
  TensorId y = summands[0];
  for (size_t i = 1; i < summands.size(); ++i) y = l.add(y, summands[i]);
  return l.activated(y);
}

Result<TensorId> upsample(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const int64_t stride = l.integer("stride", 2, -kMaxReorgStride, kMaxReorgStride);
  if (stride == 0) return invalid_model("option 'stride' must not be 0");
  double scale = l.number("scale", 1);
  TensorId y;
  if (stride > 0) {
    y = repeat_pixels(l, in.x, stride, stride);
  } else {  // the other way round: the sum of each block
    y = l.emit("AveragePool", {in.x}, square_window(-stride, -stride, -stride, 0, 0).attributes());
    scale *= static_cast<double>(stride * stride);
  }
  return l.activated(scale == 1 ? y : l.mul(y, scale));
}

// Darknet's first form works on the memory as if the picture had fewer and larger planes.
Result<TensorId> reorg(Layer& l, TensorId previous) {
  for (const char* option : {"flatten", "extra"})
    if (l.flag(option)) return unsupported("option '" + std::string(option) + "' of reorg is not supported");
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const int64_t stride = l.integer("stride", 1, 1, kMaxReorgStride);
  ORKNN_TRY_ASSIGN(const TensorId y, reorganize_pixels(l, in.x, stride, l.flag("reverse")));
  return l.activated(y);
}

// The plain form: blocks of pixels become channels.
Result<TensorId> reorg3d(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const int64_t stride = l.integer("stride", 1, 1, kMaxReorgStride);
  const bool reverse = l.flag("reverse");
  ORKNN_TRY_ASSIGN(const Dims out, reorganized_dims(l, in.x, stride, reverse));
  if (!reverse) return l.activated(l.emit("SpaceToDepth", {in.x}, {{"blocksize", stride}}));
  if (out[1] % (stride * stride) != 0)
    return shape_mismatch("the channels cannot be reorganized")
        .expected("a multiple of " + std::to_string(stride * stride))
        .found(to_string(out));
  return l.activated(reorganize(l, in.x, out, stride, true, out));
}

// The middle of the picture, brought from 0..1 to -1..1.
Result<TensorId> crop(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const int64_t height = l.integer("crop_height", 1, 1, std::max<int64_t>(in.dims[2], 1)),
                width = l.integer("crop_width", 1, 1, std::max<int64_t>(in.dims[3], 1));
  const int64_t top = (in.dims[2] - height) / 2, left = (in.dims[3] - width) / 2;
  TensorId y = in.x;
  if (height != in.dims[2] || width != in.dims[3]) y = l.slice(y, {top, left}, {top + height, left + width}, {2, 3});
  return l.activated(l.flag("noadjust") ? y : l.sub(l.mul(y, 2.0), 1.0));
}
}  // namespace

std::span<const Row> shape_rows() {
  static const Row rows[] = {{"route", route}, {"shortcut", shortcut}, {"upsample", upsample},
                             {"reorg", reorg}, {"reorg3d", reorg3d},   {"crop", crop}};
  return rows;
}

}  // namespace orknn::importer::darknet
