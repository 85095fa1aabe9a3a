// Layers that combine several tensors element by element, and those that do nothing when a model is used.
#include "import/keras/layer.h"
#include "import/lower/functions.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
template <OpName Op>
TensorId folded(Layer& l, Operands inputs) {
  TensorId y = inputs[0];
  for (TensorId x : inputs.subspan(1)) y = l.binary(Op.chars, y, x);
  return y;
}
TensorId average(Layer& l, Operands inputs) { return l.mul(folded<"Add">(l, inputs), 1 / static_cast<double>(inputs.size())); }

// Of ConvNeXt: a factor for each channel.
Result<TensorId> layer_scale(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId factors, l.weight(0));
  return l.mul(x, factors);
}

std::vector<float> numbers_in(const Json& value) {
  std::vector<float> list;
  if (value.kind == Json::Kind::Scalar) list.push_back(static_cast<float>(value.number(0)));
  for (const Json& item : value.items)
    for (const float number : numbers_in(item)) list.push_back(number);
  return value.kind == Json::Kind::Map ? numbers_in(value["config"]["value"]) : list;
}
// A number, or one for each channel.
TensorId channel_values(Layer& l, std::vector<float> values) {
  const Dims dims = values.size() == 1 ? Dims{} : Dims{std::ssize(values)};
  return l.add_constant("values", TensorData::from<float>(dims, values));
}
Result<TensorId> rescaling(Layer& l, TensorId x) {
  const auto values = [&](const char* key, float otherwise) {
    const std::vector<float> list = numbers_in(l.config[key]);
    return channel_values(l, list.empty() ? std::vector{otherwise} : list);
  };
  return l.add(l.mul(l.cast(x, DType::Float32), values("scale", 1)), values("offset", 0));
}

// (x - mean) / sqrt(variance), or back, from the configuration or from weights, along the axes it has them for.
Result<TensorId> normalization(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to normalize it"));
  std::vector<float> mean = numbers_in(l.config["mean"]), variance = numbers_in(l.config["variance"]);
  if (mean.empty()) {
    ORKNN_TRY_ASSIGN(const TensorId stored_mean, l.weight(0));
    ORKNN_TRY_ASSIGN(const TensorId stored_variance, l.weight(1));
    for (double v : to_doubles(l.constant_of(stored_mean)->view())) mean.push_back(static_cast<float>(v));
    for (double v : to_doubles(l.constant_of(stored_variance)->view())) variance.push_back(static_cast<float>(v));
  }
  if (mean.size() != variance.size()) return shape_mismatch("mean and variance have different sizes");
  for (float& v : variance) v = std::max(std::sqrt(v), 1e-7F);
  const auto shaped = [&](const std::vector<float>& values) -> Result<TensorId> {
    if (values.size() == 1) return channel_values(l, values);
    ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, l.axes(x));
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to normalize it"));
    Dims shape(static_cast<size_t>(rank), 1);
    for (int64_t axis : axes) shape[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
    if (element_count(shape) != std::ssize(values))
      return shape_mismatch("mean and variance do not fit the input")
          .expected(to_string(shape))
          .found(std::to_string(values.size()));
    return l.add_constant("values", TensorData::from<float>(shape, values));
  };
  ORKNN_TRY_ASSIGN(const TensorId offset, shaped(mean));
  ORKNN_TRY_ASSIGN(const TensorId deviation, shaped(variance));
  x = l.cast(x, DType::Float32);
  return l.flag("invert", false) ? l.add(l.mul(x, deviation), offset) : l.div(l.sub(x, offset), deviation);
}

// Steps whose features all have the value are masked, and become zeros.
Result<TensorId> masking(Layer& l, TensorId x) {
  const TensorId value = l.scalar_like(x, l.number("mask_value", 0));
  const TensorId counts = l.reduce("ReduceMax", l.cast(not_equal(l, x, value), DType::Int32), {-1}, true);
  const TensorId y = l.mul(x, l.cast(counts, l.dtype_of(x)));
  l.build.masks[y.index] = l.cast(l.squeeze(counts, {-1}), DType::Bool);
  return y;
}
}  // namespace

std::span<const Row> elementwise_rows() {
  constexpr RowLimits kAny{.inputs = {.least = 1}};
  static const Row rows[] = {
      {"Add", folded<"Add">, kAny},
      {"Average", average, kAny},
      {"Maximum", folded<"Max">, kAny},
      {"Minimum", folded<"Min">, kAny},
      {"Multiply", folded<"Mul">, kAny},
      {"Subtract", folded<"Sub">, kAny},
      {"LayerScale", layer_scale},
      {"Rescaling", rescaling},
      {"Normalization", normalization},
      {"Masking", masking},
      {"ActivityRegularization|AlphaDropout|Dropout|GaussianDropout|GaussianNoise|Identity|SpatialDropout1D|SpatialDropout2D|"
       "SpatialDropout3D",
       pass_on},
      // Pictures are changed in training alone.
      {"AugMix|CutMix|MixUp|RandAugment|RandomBrightness|RandomColorDegeneration|RandomColorJitter|RandomContrast|"
       "RandomElasticTransform|RandomErasing|RandomFlip|RandomGaussianBlur|RandomGrayscale|RandomHeight|RandomHue|RandomInvert|"
       "RandomPerspective|RandomPosterization|RandomRotation|RandomSaturation|RandomSharpness|RandomShear|RandomTranslation|"
       "RandomWidth|RandomZoom",
       pass_on},
  };
  return rows;
}

}  // namespace orknn::importer::keras
