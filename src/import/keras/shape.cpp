// Layers that move, cut, repeat or join elements.
#include "import/keras/layer.h"
#include "import/lower/axes.h"
#include "import/lower/strided_slice.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
// Channels are the last ones of each row whatever the order of axes.
Result<TensorId> flattened(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to flatten it"));
  if (!l.format(2).channels_last && rank > 2) x = from_channels_first(l, {true, static_cast<size_t>(rank) - 2}, x);
  return rank < 2 ? l.unsqueeze(x, {1}) : l.reshape(x, {0, -1});
}
TensorId reshape_layer(Layer& l, TensorId x) { return l.reshape(x, joined({0}, l.config["target_shape"].integers())); }
TensorId permute(Layer& l, TensorId x) { return l.transpose(x, joined({0}, l.config["dims"].integers())); }
Result<TensorId> repeat_vector(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to repeat it"));
  if (dims.size() != 2 || l.integer("n", 1) < 1 || l.integer("n", 1) > kMaxWindow)
    return invalid_model("RepeatVector needs vectors and how often").found(to_string(dims));
  return l.expand(l.unsqueeze(x, {1}), Dims{dims[0], l.integer("n", 1), dims[1]});
}
Result<TensorId> concatenate_layer(Layer& l, Operands inputs) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(inputs[0], "to find the axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.integer("axis", -1), rank));
  return l.concat({inputs.begin(), inputs.end()}, axis);
}

// Numbers for both ends of each axis: one for all, one per axis, or a pair per axis. Of a single axis two numbers are a pair.
struct Borders {
  std::vector<int64_t> begin, end;
};
Result<Borders> borders_of(const Json& stated, size_t spatial) {
  Borders b;
  for (size_t i = 0; i < spatial; ++i) {
    const bool is_pair = spatial == 1 && stated.items.size() == 2;
    const Json& own = is_pair || stated.items.size() <= i ? stated : stated.items[i];
    const std::vector<int64_t> pair = own.integers(2);
    if ((stated.kind == Json::Kind::List && stated.items.size() != (is_pair ? 2 : spatial)) || pair.size() != 2)
      return invalid_model("the borders of the layer are stated in an unknown way");
    b.begin.push_back(pair[0]);
    b.end.push_back(pair[1]);
  }
  return b;
}

template <size_t Spatial>
Result<TensorId> zero_padding(Layer& l, TensorId x) {
  const PictureFormat format = l.format(Spatial);
  ORKNN_TRY_ASSIGN(const Borders b, borders_of(l.config["padding"], Spatial));
  ORKNN_TRY((Window{.pads_begin = b.begin, .pads_end = b.end}.check()));
  std::vector<int64_t> pads(2 * (Spatial + 2), 0);
  for (size_t i = 0; i < Spatial; ++i) {
    pads[format.axis(i)] = b.begin[i];
    pads[Spatial + 2 + format.axis(i)] = b.end[i];
  }
  return pad(l, x, pads);
}

template <size_t Spatial>
Result<TensorId> cropping(Layer& l, TensorId x) {
  const PictureFormat format = l.format(Spatial);
  ORKNN_TRY_ASSIGN(Borders b, borders_of(l.config["cropping"], Spatial));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < Spatial; ++i) {
    axes.push_back(static_cast<int64_t>(format.axis(i)));
    b.end[i] = b.end[i] > 0 ? -b.end[i] : INT64_MAX;
  }
  return l.slice(x, b.begin, b.end, axes);
}

// Elements of each spatial axis are repeated.
template <size_t Spatial>
Result<TensorId> repeated(Layer& l, TensorId x) {
  const PictureFormat format = l.format(Spatial);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to repeat its elements"));
  const std::vector<int64_t> times = l.config["size"].integers(Spatial);
  if (times.size() != Spatial || dims.size() != Spatial + 2) return invalid_model("the layer has the wrong number of sizes");
  for (size_t i = 0; i < Spatial; ++i) {
    ORKNN_TRY_ASSIGN(x, repeat_elements(l, x, static_cast<int64_t>(format.axis(i)), times[i]));
  }
  return x;
}

// Steps are samples of their own while the layer, or the model, computes.
Result<TensorId> time_distributed(Layer& l, TensorId x) {
  const Json& layer = l.config["layer"];
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take its steps apart"));
  if (dims.size() < 3) return invalid_model("TimeDistributed needs a sequence").found(to_string(dims));
  const TensorId samples = l.reshape(x, joined({dims[0] * dims[1]}, {dims.begin() + 2, dims.end()}));
  const std::string path = l.has_weights_below("layer") ? l.call.path + "/layer" : l.call.path;
  TensorId y;
  if (is_model(layer)) {
    const std::string name = l.layer() + "/steps";
    l.build.network.bind(name, samples, l.layer());
    ORKNN_TRY_ASSIGN(const FlatModel inner, flatten_inner(layer, l.generation(), path, {name}));
    for (const Call& call : inner.calls)
      if (Status s = lower_call(l.build, call); !s) return s.node(call.path, (*call.layer)["class_name"].string());
    ORKNN_TRY_ASSIGN(y, l.build.network.need(inner.outputs[0]));
  } else {
    const Call call{&layer, path, {}, {l.layer() + "/step"}, {}};
    Layer inner(l.build, call, {samples});
    ORKNN_TRY_ASSIGN(const std::vector<TensorId> outputs, lower(inner));
    y = outputs[0];
  }
  ORKNN_TRY_ASSIGN(const Dims made, l.need_dims(y, "to put its steps together"));
  if (made.empty() || made[0] != dims[0] * dims[1]) return unsupported("the layer mixes steps").found(to_string(made));
  return l.reshape(y, joined({dims[0], dims[1]}, {made.begin() + 1, made.end()}));
}

// The inner layer, whose weights were normalized in training.
Result<TensorId> spectral_normalization(Layer& l, TensorId x) {
  const Call call{&l.config["layer"], l.has_weights_below("layer") ? l.call.path + "/layer" : l.call.path, {}, {l.layer()}, {}};
  Layer inner(l.build, call, {x});
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> outputs, lower(inner));
  return outputs[0];
}

// Numbers in lists of lists, all of one length at each depth.
Status add_values(const Json& value, size_t depth, Dims& dims, std::vector<double>& to) {
  if (value.kind != Json::Kind::List) {
    const bool is_number = value.kind == Json::Kind::Scalar || value.kind == Json::Kind::Text;  // "NaN", "Infinity"
    if (!is_number || depth != dims.size()) return invalid_model("a stored tensor holds something else than numbers");
    const bool is_true = value.text == "true";
    to.push_back(is_true ? 1 : std::strtod(value.text.c_str(), nullptr));
    return {};
  }
  const int64_t count = std::ssize(value.items);
  if (depth == dims.size() && to.empty()) dims.push_back(count);
  if (depth >= dims.size() || dims[depth] != count) return invalid_model("the lists of a stored tensor differ in length");
  for (const Json& item : value.items) ORKNN_TRY(add_values(item, depth + 1, dims, to));
  return {};
}

// A tensor that is stored with its values.
Result<TensorId> stored_tensor(Layer& l) {
  Dims dims;
  std::vector<double> values;
  ORKNN_TRY(add_values(l.config["value"], 0, dims, values));
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(dims));
  if (count != std::ssize(values)) return invalid_model("a stored tensor has the wrong number of elements");
  const DType stated = dtype_from_name(l.text("dtype", "float32"));
  const DType dtype = stated == DType::Undefined || is_float(stated) ? DType::Float32 : stated;
  return l.add_constant("value", convert(TensorData::from<double>(dims, values).view(), dtype));
}
}  // namespace

std::span<const Row> shape_rows() {
  static const Row rows[] = {
      {"Flatten", flattened},
      {"Reshape", reshape_layer},
      {"Permute", permute},
      {"RepeatVector", repeat_vector},
      {"Concatenate", concatenate_layer, {.inputs = {.least = 1}}},
      {"ZeroPadding1D", zero_padding<1>},
      {"ZeroPadding2D", zero_padding<2>},
      {"ZeroPadding3D", zero_padding<3>},
      {"Cropping1D", cropping<1>},
      {"Cropping2D", cropping<2>},
      {"Cropping3D", cropping<3>},
      {"UpSampling1D", repeated<1>},
      {"UpSampling3D", repeated<3>},
      {"TimeDistributed", time_distributed},
      {"__numpy__|__tensor__", stored_tensor, {.inputs = {0, 0}}},
      {"SpectralNormalization", spectral_normalization},
  };
  return rows;
}

}  // namespace orknn::importer::keras
