#include "import/caffe/layer.h"

#include <cmath>

namespace orknn::importer::caffe {
using namespace ir;

namespace {
// Numbers made up for a description without weights: more than any network that fits on the chips has.
constexpr int64_t kMaxInvented = int64_t{1} << 29;

// Weights of a deconvolution that enlarges bilinearly: each plane is the product of two tents.
TensorData bilinear(const Dims& dims) {
  TensorData data = TensorData::allocate(DType::Float32, dims);
  const int64_t width = dims.back();
  const int64_t half = (width + 1) / 2;
  const auto factor = static_cast<double>(half), middle = static_cast<double>(2 * half - 1 - half % 2) / (2.0 * factor);
  float* values = static_cast<float*>(data.mutable_data());
  for (int64_t i = 0; i < data.count(); ++i) {
    const auto x = static_cast<double>(i % width), y = static_cast<double>(i / width % width);
    values[i] = static_cast<float>((1 - std::abs(x / factor - middle)) * (1 - std::abs(y / factor - middle)));
  }
  return data;
}

TensorData constant(Dims dims, float value) {
  TensorData data = TensorData::allocate(DType::Float32, std::move(dims));
  std::fill_n(static_cast<float*>(data.mutable_data()), data.count(), value);
  return data;
}
}  // namespace

Status Layer::need_bottoms(size_t least, size_t most) const {
  if (bottoms_.size() >= least && bottoms_.size() <= most) return {};
  const std::string range = least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  return invalid_model("the layer has the wrong number of bottoms").expected(range).found(std::to_string(bottoms_.size()));
}

Status Layer::set_top(TensorId id, size_t i) {
  if (i >= tops_.size())
    return invalid_model("the layer has too few tops")
        .expected("at least " + std::to_string(i + 1))
        .found(std::to_string(tops_.size()));
  tops_[i] = id;
  return {};
}

Result<int64_t> Layer::extent(TensorId x, int64_t axis, std::string_view reason) const {
  ORKNN_TRY_ASSIGN(const int64_t rank, need_rank(x, reason));
  if (axis < 0 || axis >= rank)
    return invalid_model("the bottom has too few axes")
        .expected("at least " + std::to_string(axis + 1))
        .found(std::to_string(rank));
  const Dim& d = (*shape_of(x))[static_cast<size_t>(axis)];
  if (!d.is_known())
    return unsupported("extent " + std::to_string(axis) + " of the bottom must be known " + std::string(reason))
        .found(to_string(*shape_of(x)));
  return d.value();
}

Result<int64_t> Layer::axis_of(const Message& parameters, std::string_view name, int64_t fallback, int64_t rank) const {
  ORKNN_TRY_ASSIGN(const int64_t axis, parameters.get_int(name, fallback));
  return normalize_axis(axis, rank);
}

size_t Layer::blob_count() const {
  const auto it = build_.weights.find(description_.name);
  return it == build_.weights.end() ? 0 : it->second.size();
}

const Blob* Layer::stored(size_t i) const {
  const auto it = build_.weights.find(description_.name);
  return it == build_.weights.end() || i >= it->second.size() ? nullptr : &it->second[i];
}

Status Build::allow(std::span<const int64_t> dims) {
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(dims, kMaxInvented));
  invented += count;
  if (invented > kMaxInvented)
    return invalid_model("the description asks for too many values that are not in the file")
        .expected("at most " + std::to_string(kMaxInvented))
        .found(std::to_string(invented));
  return {};
}

Result<TensorId> Layer::uniform(std::string_view role, Dims dims, double value) {
  ORKNN_TRY(build_.allow(dims));
  return add_constant(role, constant(std::move(dims), static_cast<float>(value)));
}

// Values the network starts its training with, as far as they are of any use.
Result<TensorData> Layer::filled(const BlobSpec& spec) {
  ORKNN_TRY(build_.allow(spec.dims));
  std::string type;
  double value = 0;
  if (spec.filler && !spec.filler->fields().empty()) {
    ORKNN_TRY_ASSIGN(type, spec.filler->get_string("type", "constant"));
    ORKNN_TRY_ASSIGN(value, spec.filler->get_double("value", 0));
  }
  if (type == "bilinear" && spec.dims.size() == 4 && spec.dims[2] == spec.dims[3]) return bilinear(spec.dims);
  if (type == "constant" && (value != 0 || build_.has_weights)) return constant(spec.dims, static_cast<float>(value));
  if (build_.has_weights)
    return invalid_model("the weights hold nothing for '" + std::string(spec.role) + "' of this layer")
        .expected(to_string(spec.dims))
        .hint("do the prototxt and the caffemodel belong together?");
  build_.has_random = true;
  if (spec.filling == Filling::Random) return random_weights(layer() + "/" + std::string(spec.role), spec.dims, spec.fan_in);
  return constant(spec.dims, spec.filling == Filling::Ones ? 1.0f : 0.0f);
}

Result<TensorId> Layer::blob(size_t i, const BlobSpec& spec) {
  const std::string shared_name = i < description_.parameter_names.size() ? description_.parameter_names[i] : "";
  const Blob* own = stored(i);
  if (!own && !shared_name.empty())
    if (const auto it = build_.shared.find(shared_name); it != build_.shared.end()) {
      const Dims& dims = constant_of(it->second)->dims();
      if (element_count(dims) != element_count(spec.dims))
        return invalid_model("the shared blob '" + shared_name + "' has another size")
            .expected(to_string(spec.dims))
            .found(to_string(dims));
      return reshape(it->second, spec.dims);
    }
  TensorData value;
  if (own) {
    ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(spec.dims));
    if (own->values.count() != count)
      return invalid_model("the blob '" + std::string(spec.role) + "' has another size than the layer needs")
          .expected(to_string(spec.dims))
          .found(to_string(own->dims))
          .hint("do the prototxt and the caffemodel belong together?");
    value = own->values.reshaped(spec.dims);
  } else {
    ORKNN_TRY_ASSIGN(value, filled(spec));
  }
  const TensorId id = add_constant(spec.role, std::move(value));
  if (!shared_name.empty()) build_.shared.emplace(shared_name, id);
  return id;
}

TensorId Layer::scaled(TensorId x, double factor) { return factor == 1 ? x : emit("Mul", {x, add_scalar("factor", factor)}); }
TensorId Layer::shifted(TensorId x, double term) { return term == 0 ? x : emit("Add", {x, add_scalar("term", term)}); }
TensorId Layer::power(TensorId x, double exponent) {
  return exponent == 1 ? x : emit("Pow", {x, add_scalar("exponent", exponent)});
}

TensorId Layer::slice(TensorId x, int64_t axis, int64_t begin, int64_t end) {
  return emit("Slice", {x, add_ints("starts", {begin}), add_ints("ends", {end}), add_ints("axes", {axis})});
}

TensorId Layer::along_axis(TensorId vector, Dims dims, int64_t axis, int64_t rank) {
  const int64_t behind = rank - axis - static_cast<int64_t>(dims.size());
  for (int64_t i = 0; i < behind; ++i) dims.push_back(1);
  return reshape(vector, std::move(dims));
}

std::vector<int64_t> Window::pads() const {
  std::vector<int64_t> both = pad;
  both.insert(both.end(), pad.begin(), pad.end());
  return both;
}

Result<Window> window_of(const Message& p, size_t spatial_axes) {
  constexpr int64_t kMost = int64_t{1} << 16;
  if (spatial_axes > 3) return unsupported("windows have at most 3 spatial axes").found(std::to_string(spatial_axes));
  const auto read = [&](const std::string& list, const std::string& height, const std::string& width, int64_t least,
                        int64_t fallback) -> Result<std::vector<int64_t>> {
    ORKNN_TRY_ASSIGN(std::vector<int64_t> values, p.get_ints(list));
    if (values.empty()) values = {fallback};
    if (values.size() == 1) values.assign(spatial_axes, values[0]);
    if (values.size() != spatial_axes)
      return invalid_model("'" + list + "' has the wrong length")
          .expected("1 or " + std::to_string(spatial_axes))
          .found(std::to_string(values.size()));
    if (p.has(height) || p.has(width)) {  // each stands before the common field
      if (spatial_axes != 2)
        return invalid_model("'" + height + "' and '" + width + "' are for pictures")
            .expected("2 spatial axes")
            .found(std::to_string(spatial_axes));
      ORKNN_TRY_ASSIGN(values[0], p.get_int(height, values[0]));
      ORKNN_TRY_ASSIGN(values[1], p.get_int(width, values[1]));
    }
    for (int64_t v : values)
      if (v < least || v > kMost)
        return invalid_model("'" + list + "' is out of range")
            .expected(std::to_string(least) + " to " + std::to_string(kMost))
            .found(std::to_string(v));
    return values;
  };
  Window w;
  ORKNN_TRY_ASSIGN(w.kernel, read("kernel_size", "kernel_h", "kernel_w", 1, 0));
  ORKNN_TRY_ASSIGN(w.stride, read("stride", "stride_h", "stride_w", 1, 1));
  ORKNN_TRY_ASSIGN(w.pad, read("pad", "pad_h", "pad_w", 0, 0));
  ORKNN_TRY_ASSIGN(w.dilation, read("dilation", "dilation_h", "dilation_w", 1, 1));
  return w;
}

}  // namespace orknn::importer::caffe
