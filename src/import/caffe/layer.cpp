#include "import/caffe/layer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orknn::importer::caffe {
using namespace ir;

namespace {
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
}  // namespace

// --- what a layer reads

Result<TensorId> Layer::operand(size_t i) const {
  if (i < bottoms_.size()) return bottoms_[i];
  return invalid_model("bottom " + std::to_string(i + 1) + " of the layer is missing").found(std::to_string(bottoms_.size()));
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

Result<Dims> Layer::extents(TensorId x, int64_t begin, int64_t end, std::string_view reason) const {
  Dims dims;
  for (int64_t i = begin; i < end; ++i) {
    ORKNN_TRY_ASSIGN(const int64_t extent, this->extent(x, i, reason));
    dims.push_back(extent);
  }
  return dims;
}

Result<int64_t> Layer::axis_of(TensorId x, const Parameters& parameters, std::string_view name, int64_t fallback) const {
  ORKNN_TRY_ASSIGN(const int64_t rank, need_rank(x, "to find the axis"));
  return normalize_axis(parameters.integer(name, fallback), rank);
}

// --- its blobs

size_t Layer::blob_count() const {
  const auto it = build_.weights.find(description_.name);
  return it == build_.weights.end() ? 0 : it->second.size();
}

const Blob* Layer::stored(size_t i) const {
  return i < blob_count() ? &build_.weights.find(description_.name)->second[i] : nullptr;
}

Result<TensorId> Layer::uniform(std::string_view role, Dims dims, double value) {
  ORKNN_TRY(build_.invented.add(description_.name, dims));
  return add_constant(role, uniform_data(std::move(dims), value));
}

// Values the network starts its training with, as far as they are of any use.
Result<TensorData> Layer::initial_value(const BlobSpec& spec) {
  ORKNN_TRY(build_.invented.add(description_.name, spec.dims));
  const Parameters filler(spec.filler ? *spec.filler : Message::empty(), problem_);
  const std::string type = filler.is_empty() ? "" : filler.text("type", "constant");
  const double value = filler.number("value", 0);
  if (type == "bilinear" && spec.dims.size() == 4 && spec.dims[2] == spec.dims[3]) return bilinear(spec.dims);
  if (type == "constant" && (value != 0 || build_.has_weights)) return uniform_data(spec.dims, value);
  if (build_.has_weights)
    return invalid_model("the weights hold nothing for '" + std::string(spec.role) + "' of this layer")
        .expected(to_string(spec.dims))
        .hint("do the prototxt and the caffemodel belong together?");
  build_.has_random = true;
  return filled(layer() + "/" + std::string(spec.role), spec.dims, spec.fill, spec.fan_in);
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
    ORKNN_TRY_ASSIGN(value, initial_value(spec));
  }
  const TensorId id = add_constant(spec.role, std::move(value));
  if (!shared_name.empty()) build_.shared.emplace(shared_name, id);
  return id;
}

Result<TensorId> Layer::channel_blob(TensorId x, bool is_shared, BlobSpec spec) {
  ORKNN_TRY_ASSIGN(const int64_t rank, need_rank(x, "to line up the blob"));
  int64_t channels = 1;
  if (!is_shared) {
    ORKNN_TRY_ASSIGN(channels, extent(x, 1, "to read the blob"));
  }
  if (const Blob* own = stored(0); own && own->values.count() == 1) channels = 1;
  spec.dims = {channels};
  ORKNN_TRY_ASSIGN(const TensorId value, blob(0, spec));
  return along_axis(value, {channels}, 1, rank);
}

TensorId Layer::along_axis(TensorId vector, Dims dims, int64_t axis, int64_t rank) {
  dims.resize(static_cast<size_t>(std::max(rank - axis, static_cast<int64_t>(dims.size()))), 1);
  return reshape(vector, std::move(dims));
}

// --- shared by families of layers

std::vector<int64_t> axes_between(int64_t begin, int64_t end) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(end - begin, 0)));
  std::iota(axes.begin(), axes.end(), begin);
  return axes;
}

TensorData uniform_data(Dims dims, double value) {
  TensorData data = TensorData::allocate(DType::Float32, std::move(dims));
  std::fill_n(static_cast<float*>(data.mutable_data()), data.count(), static_cast<float>(value));
  return data;
}

Result<Window> window_of(Layer& l, TensorId x, const Parameters& p) {
  constexpr int64_t kMost = int64_t{1} << 16;
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to place windows"));
  if (rank < 3 || rank > 5)
    return unsupported("windows have 1 to 3 spatial axes").expected("3 to 5 axes").found(std::to_string(rank));
  const auto spatial_axes = static_cast<size_t>(rank - 2);
  const auto read = [&](const std::string& list, const std::string& height, const std::string& width, int64_t least,
                        int64_t fallback) -> Result<std::vector<int64_t>> {
    std::vector<int64_t> values = p.integers(list);
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
      values = {p.integer(height, values[0]), p.integer(width, values[1])};
    }
    for (int64_t v : values)
      if (v < least || v > kMost) return out_of_range(list, v, least, kMost);
    return values;
  };
  Window w;
  ORKNN_TRY_ASSIGN(w.kernel, read("kernel_size", "kernel_h", "kernel_w", 1, 0));
  ORKNN_TRY_ASSIGN(w.strides, read("stride", "stride_h", "stride_w", 1, 1));
  ORKNN_TRY_ASSIGN(w.pads_begin, read("pad", "pad_h", "pad_w", 0, 0));
  ORKNN_TRY_ASSIGN(w.dilations, read("dilation", "dilation_h", "dilation_w", 1, 1));
  w.pads_end = w.pads_begin;
  return w;
}

}  // namespace orknn::importer::caffe
