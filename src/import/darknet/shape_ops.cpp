// Sections that join, move or combine layers: route, shortcut, upsample, reorg, crop, scale_channels, sam, and those without
// effect.
#include "import/darknet/layer.h"
#include "import/lower/reorganize.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
constexpr int64_t kMaxStride = 64;

TensorId slice_channels(Layer& l, TensorId x, int64_t begin, int64_t end) {
  return l.emit("Slice", {x, l.add_ints("starts", {begin}), l.add_ints("ends", {end}), l.add_ints("axes", {1})});
}

Status route(Layer& l) {
  ORKNN_TRY_ASSIGN(const auto references, l.get_ints("layers"));
  ORKNN_TRY_ASSIGN(const int64_t groups, l.get_int("groups", 1, 1, int64_t{1} << 20));
  ORKNN_TRY_ASSIGN(const int64_t group, l.get_int("group_id", 0, 0, groups - 1));
  std::vector<TensorId> parts;
  for (const int64_t reference : references) {
    ORKNN_TRY_ASSIGN(TensorId x, l.layer_at(reference));
    if (groups > 1 || references.size() > 1) {
      ORKNN_TRY_ASSIGN(x, l.as_image(x));
    }
    if (groups > 1) {
      ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take a group of its channels"));
      if (dims[1] % groups != 0)
        return invalid_model("the channels cannot be divided into groups")
            .expected("a multiple of " + std::to_string(groups))
            .found(std::to_string(dims[1]));
      const int64_t share = dims[1] / groups;
      x = slice_channels(l, x, group * share, (group + 1) * share);
    }
    parts.push_back(x);
  }
  return l.finish(parts.size() == 1 ? parts[0] : l.emit("Concat", parts, {{"axis", int64_t{1}}}));
}

// Puts zeros between the pixels, so that a smaller picture meets every `step`-th pixel of a larger one.
TensorId spread(Layer& l, TensorId x, const Dims& dims, int64_t step_y, int64_t step_x) {
  const TensorId split = l.reshape(x, {dims[0], dims[1], dims[2], 1, dims[3], 1});
  const TensorId padded = l.emit("Pad", {split, l.add_ints("pads", {0, 0, 0, 0, 0, 0, 0, 0, 0, step_y - 1, 0, step_x - 1})});
  return l.reshape(padded, {dims[0], dims[1], dims[2] * step_y, dims[3] * step_x});
}

// Makes another layer's picture addable to one of `to` pixels and channels: common leading channels count, a larger picture is
// sampled, a smaller one meets every n-th pixel.
Result<TensorId> fit(Layer& l, TensorId x, const Dims& to) {
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(x, "to add it"));
  if (dims[2] == 1 && dims[3] == 1 && dims[1] == to[1]) return x;  // broadcast
  for (int axis : {2, 3})
    if (dims[axis] != to[axis] &&
        (dims[axis] == 0 || to[axis] == 0 || (dims[axis] % to[axis] != 0 && to[axis] % dims[axis] != 0)))
      return shape_mismatch("the pictures do not fit together").expected(to_string(to)).found(to_string(dims));
  if (dims[2] > to[2] || dims[3] > to[3]) {
    x = l.emit("Slice", {x, l.add_ints("starts", {0, 0}), l.add_ints("ends", {dims[2], dims[3]}), l.add_ints("axes", {2, 3}),
                         l.add_ints("steps", {std::max<int64_t>(dims[2] / to[2], 1), std::max<int64_t>(dims[3] / to[3], 1)})});
    ORKNN_TRY_ASSIGN(dims, l.need_dims(x, "to add it"));
  }
  if (dims[2] < to[2] || dims[3] < to[3]) x = spread(l, x, dims, to[2] / dims[2], to[3] / dims[3]);
  if (dims[1] > to[1]) return slice_channels(l, x, 0, to[1]);
  if (dims[1] < to[1]) return l.emit("Pad", {x, l.add_ints("pads", {0, 0, 0, 0, 0, to[1] - dims[1], 0, 0})});
  return x;
}

// Learned weights of the summands, [summands, channels or 1, 1, 1], normalized as the section says.
Result<TensorId> summand_weights(Layer& l, int64_t summands, int64_t channels, const std::string& type) {
  const bool per_channel = type == "per_channel";
  if (!per_channel && type != "per_feature" && type != "per_layer")
    return invalid_model("unknown weights_type").expected("none, per_feature or per_channel").found(type);
  ORKNN_TRY_ASSIGN(TensorId w, l.take("weight", {summands, per_channel ? channels : 1, 1, 1}, Filling::Ones));
  const std::string normalization = l.get_string("weights_normalization", "none");
  if (normalization == "none") return w;
  if (normalization == "softmax") {
    w = l.emit("Exp", {l.emit("Sub", {w, l.emit("ReduceMax", {w, l.add_ints("axes", {0})}, {{"keepdims", int64_t{1}}})})});
  } else if (normalization == "relu" || normalization == "avg_relu") {
    w = l.emit("Relu", {w});
  } else {
    return invalid_model("unknown weights_normalization").expected("none, relu or softmax").found(normalization);
  }
  const TensorId sum = l.emit(
      "Add", {l.emit("ReduceSum", {w, l.add_ints("axes", {0})}, {{"keepdims", int64_t{1}}}), l.add_scalar("epsilon", 0.0001)});
  return l.emit("Div", {w, sum});
}

Status shortcut(Layer& l) {
  ORKNN_TRY_ASSIGN(const auto references, l.get_ints("from"));
  ORKNN_TRY_ASSIGN(const TensorId first, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(first, "to add to it"));
  std::vector<TensorId> summands{first};
  for (const int64_t reference : references) {
    ORKNN_TRY_ASSIGN(TensorId x, l.layer_at(reference));
    ORKNN_TRY_ASSIGN(x, l.as_image(x));
    ORKNN_TRY_ASSIGN(x, fit(l, x, dims));
    summands.push_back(x);
  }
  if (const std::string type = l.get_string("weights_type", "none"); type != "none") {
    ORKNN_TRY_ASSIGN(const TensorId weights, summand_weights(l, static_cast<int64_t>(summands.size()), dims[1], type));
    for (size_t i = 0; i < summands.size(); ++i) {
      const TensorId w = l.emit("Slice", {weights, l.add_ints("starts", {static_cast<int64_t>(i)}),
                                          l.add_ints("ends", {static_cast<int64_t>(i) + 1}), l.add_ints("axes", {0})});
      summands[i] = l.emit("Mul", {summands[i], w});
    }
  }
  ORKNN_TRY_ASSIGN(const double alpha, l.get_float("alpha", 1));
  ORKNN_TRY_ASSIGN(const double beta, l.get_float("beta", 1));
  if (alpha != 1) summands[0] = l.emit("Mul", {summands[0], l.add_scalar("alpha", alpha)});
  if (beta != 1) summands[1] = l.emit("Mul", {summands[1], l.add_scalar("beta", beta)});
  TensorId y = summands[0];
  for (size_t i = 1; i < summands.size(); ++i) y = l.emit("Add", {y, summands[i]});
  return l.finish(y);
}

Status upsample(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const int64_t stride, l.get_int("stride", 2, -kMaxStride, kMaxStride));
  if (stride == 0) return invalid_model("option 'stride' must not be 0");
  ORKNN_TRY_ASSIGN(double scale, l.get_float("scale", 1));
  TensorId y;
  if (stride > 0) {
    const float factors[] = {1, 1, static_cast<float>(stride), static_cast<float>(stride)};
    const TensorId scales = l.add_constant("scales", TensorData::from<float>({4}, std::span(factors)));
    y = l.emit("Resize", {x, TensorId{}, scales},
               {{"mode", std::string("nearest")},
                {"coordinate_transformation_mode", std::string("asymmetric")},
                {"nearest_mode", std::string("floor")}});
  } else {  // the other way round: the sum of each block
    y = l.emit("AveragePool", {x},
               {{"kernel_shape", std::vector<int64_t>{-stride, -stride}}, {"strides", std::vector<int64_t>{-stride, -stride}}});
    scale *= static_cast<double>(stride * stride);
  }
  if (scale != 1) y = l.emit("Mul", {y, l.add_scalar("scale", scale)});
  return l.finish(y);
}

struct Reorganized {
  TensorId x;
  Dims dims, out;
  int64_t stride = 1;
  bool reverse = false;
};

Result<Reorganized> reorganized(Layer& l) {
  Reorganized r;
  ORKNN_TRY_ASSIGN(r.x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(r.dims, l.need_dims(r.x, "to reorganize it"));
  ORKNN_TRY_ASSIGN(r.stride, l.get_int("stride", 1, 1, kMaxStride));
  r.reverse = l.get_flag("reverse");
  const int64_t s = r.stride;
  const bool fits = r.reverse ? r.dims[1] % (s * s) == 0 : r.dims[2] % s == 0 && r.dims[3] % s == 0;
  if (!fits) return shape_mismatch("the picture cannot be reorganized by " + std::to_string(s)).found(to_string(r.dims));
  r.out = r.reverse ? Dims{r.dims[0], r.dims[1] / (s * s), r.dims[2] * s, r.dims[3] * s}
                    : Dims{r.dims[0], r.dims[1] * s * s, r.dims[2] / s, r.dims[3] / s};
  return r;
}

// Darknet's first form works on the memory as if the picture had fewer and larger planes.
Status reorg(Layer& l) {
  for (const char* option : {"flatten", "extra"})
    if (l.get_flag(option)) return unsupported("option '" + std::string(option) + "' of reorg is not supported");
  ORKNN_TRY_ASSIGN(const Reorganized r, reorganized(l));
  if (r.dims[1] % (r.stride * r.stride) != 0)
    return shape_mismatch("the channels cannot be reorganized")
        .expected("a multiple of " + std::to_string(r.stride * r.stride))
        .found(to_string(r.dims));
  return l.finish(reorganize(l, r.x, r.dims, r.stride, r.reverse, r.out));
}

// The plain form: blocks of pixels become channels.
Status reorg3d(Layer& l) {
  ORKNN_TRY_ASSIGN(const Reorganized r, reorganized(l));
  if (!r.reverse) return l.finish(l.emit("SpaceToDepth", {r.x}, {{"blocksize", r.stride}}));
  if (r.out[1] % (r.stride * r.stride) != 0)
    return shape_mismatch("the channels cannot be reorganized")
        .expected("a multiple of " + std::to_string(r.stride * r.stride))
        .found(to_string(r.out));
  return l.finish(reorganize(l, r.x, r.out, r.stride, true, r.out));
}

// The middle of the picture, brought from 0..1 to -1..1.
Status crop(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to crop it"));
  ORKNN_TRY_ASSIGN(const int64_t height, l.get_int("crop_height", 1, 1, dims[2]));
  ORKNN_TRY_ASSIGN(const int64_t width, l.get_int("crop_width", 1, 1, dims[3]));
  const int64_t top = (dims[2] - height) / 2, left = (dims[3] - width) / 2;
  TensorId y = x;
  if (height != dims[2] || width != dims[3])
    y = l.emit("Slice", {x, l.add_ints("starts", {top, left}), l.add_ints("ends", {top + height, left + width}),
                         l.add_ints("axes", {2, 3})});
  if (!l.get_flag("noadjust")) y = l.emit("Sub", {l.emit("Mul", {y, l.add_scalar("two", 2)}), l.add_scalar("one", 1)});
  return l.finish(y);
}

// The layer before gives a factor per channel (or per pixel) of another layer.
Status multiply(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId other, l.layer_of("from"));
  ORKNN_TRY_ASSIGN(other, l.as_image(other));
  ORKNN_TRY_ASSIGN(const TensorId factor, l.as_image(l.previous()));
  return l.finish(l.emit("Mul", {other, factor}));
}

Status activation(Layer& l) { return l.finish(l.previous()); }
Status pass_on(Layer& l) { return l.finish(l.previous()); }
}  // namespace

std::span<const Row> shape_rows() {
  static constexpr Row kRows[] = {
      {"route", route},  {"shortcut", shortcut},       {"upsample", upsample}, {"reorg", reorg},           {"reorg3d", reorg3d},
      {"crop", crop},    {"scale_channels", multiply}, {"sam", multiply},      {"activation", activation}, {"dropout", pass_on},
      {"cost", pass_on}, {"contrastive", pass_on},     {"empty", pass_on},     {"silence", pass_on},
  };
  return kRows;
}

}  // namespace orknn::importer::darknet
