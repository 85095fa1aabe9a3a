#include "import/caffe/parse.h"

#include <algorithm>
#include <cstring>

#include "base/files.h"
#include "base/half.h"

namespace orknn::importer::caffe {
namespace {

std::string_view text_of(wire::Bytes bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

// --- names of layer types

struct TypeName {
  std::string_view old, current;
};
// V1 types whose current name does not follow from capitals at the word boundaries.
constexpr TypeName kIrregularTypes[] = {
    {"ABSVAL", "AbsVal"},
    {"ARGMAX", "ArgMax"},
    {"BNLL", "BNLL"},
    {"HDF5_DATA", "HDF5Data"},
    {"HDF5_OUTPUT", "HDF5Output"},
    {"IM2COL", "Im2col"},
    {"LRN", "LRN"},
    {"MVN", "MVN"},
    {"RELU", "ReLU"},
    {"PRELU", "PReLU"},
    {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
    {"TANH", "TanH"},
};
constexpr TypeName kOldestTypes[] = {
    {"accuracy", "Accuracy"},
    {"bnll", "BNLL"},
    {"concat", "Concat"},
    {"conv", "Convolution"},
    {"data", "Data"},
    {"dropout", "Dropout"},
    {"euclidean_loss", "EuclideanLoss"},
    {"flatten", "Flatten"},
    {"hdf5_data", "HDF5Data"},
    {"hdf5_output", "HDF5Output"},
    {"im2col", "Im2col"},
    {"images", "ImageData"},
    {"infogain_loss", "InfogainLoss"},
    {"innerproduct", "InnerProduct"},
    {"lrn", "LRN"},
    {"multinomial_logistic_loss", "MultinomialLogisticLoss"},
    {"padding", "Padding"},
    {"pool", "Pooling"},
    {"relu", "ReLU"},
    {"sigmoid", "Sigmoid"},
    {"softmax", "Softmax"},
    {"softmax_loss", "SoftmaxWithLoss"},
    {"split", "Split"},
    {"tanh", "TanH"},
    {"window_data", "WindowData"},
};

std::string current_type(std::string_view old) {
  for (const TypeName& t : kIrregularTypes)
    if (t.old == old) return std::string(t.current);
  std::string name;
  bool begins_word = true;
  for (char c : old) {
    if (c == '_') {
      begins_word = true;
      continue;
    }
    name += !begins_word && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    begins_word = false;
  }
  return name;
}

// --- phases

struct State {
  int64_t level = 0;
  std::vector<std::string> stages;
  bool has(const std::string& stage) const { return std::find(stages.begin(), stages.end(), stage) != stages.end(); }
};

Result<bool> meets(const Message& rule, const State& state) {
  if (rule.has("phase")) {
    ORKNN_TRY_ASSIGN(const std::string phase, rule.get_word("phase", "TEST"));
    if (phase != "TEST" && phase != "1") return false;
  }
  ORKNN_TRY_ASSIGN(const int64_t least, rule.get_int("min_level", state.level));
  ORKNN_TRY_ASSIGN(const int64_t most, rule.get_int("max_level", state.level));
  if (state.level < least || state.level > most) return false;
  ORKNN_TRY_ASSIGN(const auto stages, rule.get_strings("stage"));
  ORKNN_TRY_ASSIGN(const auto not_stages, rule.get_strings("not_stage"));
  return std::all_of(stages.begin(), stages.end(), [&](const std::string& s) { return state.has(s); }) &&
         std::none_of(not_stages.begin(), not_stages.end(), [&](const std::string& s) { return state.has(s); });
}

Result<bool> is_included(const Message& layer, const State& state) {
  const auto any_met = [&](std::string_view list) -> Result<bool> {
    for (const Field* rule : layer.all(list)) {
      if (!rule->message()) continue;
      ORKNN_TRY_ASSIGN(const bool met, meets(*rule->message(), state));
      if (met) return true;
    }
    return false;
  };
  if (layer.has("include")) return any_met("include");
  ORKNN_TRY_ASSIGN(const bool excluded, any_met("exclude"));
  return !excluded;
}

// --- layers

Result<LayerDescription> current_layer(const Message& fields) {
  LayerDescription layer;
  layer.fields = fields;
  ORKNN_TRY_ASSIGN(layer.name, fields.get_string("name", ""));
  ORKNN_TRY_ASSIGN(layer.type, fields.get_word("type", ""));
  for (const Field* spec : fields.all("param")) {
    std::string name;
    if (spec->message()) {
      ORKNN_TRY_ASSIGN(name, spec->message()->get_string("name", ""));
    } else {
      (void)spec->get(name);  // V1 writes the name alone
    }
    layer.parameter_names.push_back(std::move(name));
  }
  return layer;
}

Result<LayerDescription> old_layer(const Message& fields) {
  if (const Message& oldest = fields.message("layer"); !oldest.fields().empty()) {
    LayerDescription layer;
    layer.fields = oldest;
    layer.is_oldest = true;
    ORKNN_TRY_ASSIGN(layer.name, oldest.get_string("name", ""));
    ORKNN_TRY_ASSIGN(const std::string type, oldest.get_string("type", ""));
    layer.type = type;
    for (const TypeName& t : kOldestTypes)
      if (t.old == type) layer.type = t.current;
    layer.fields.rename("biasterm", "bias_term");
    layer.fields.rename("kernelsize", "kernel_size");
    layer.fields.rename("cropsize", "crop_size");
    return layer;
  }
  ORKNN_TRY_ASSIGN(LayerDescription layer, current_layer(fields));
  layer.type = current_type(layer.type);
  return layer;
}

Result<ir::Dims> shape_of(const Message& shape) {
  ORKNN_TRY_ASSIGN(ir::Dims dims, shape.get_ints("dim"));
  for (int64_t d : dims)
    if (d < 0 || d > (int64_t{1} << 40)) return invalid_model("an extent of a shape is out of range").found(std::to_string(d));
  return dims;
}

// The three forms of `input`: four input_dim each, one input_shape each, or no shape at all.
Result<std::vector<InputDescription>> inputs_of(const Message& net) {
  std::vector<InputDescription> inputs;
  ORKNN_TRY_ASSIGN(const auto names, net.get_strings("input"));
  ORKNN_TRY_ASSIGN(const auto dims, net.get_ints("input_dim"));
  const auto shapes = net.all("input_shape");
  if (!dims.empty() && dims.size() != names.size() * 4)
    return invalid_model("the number of input_dim does not fit")
        .expected(std::to_string(names.size() * 4) + ", four per input")
        .found(std::to_string(dims.size()));
  if (dims.empty() && !shapes.empty() && shapes.size() != names.size())
    return invalid_model("the number of input_shape does not fit")
        .expected(std::to_string(names.size()))
        .found(std::to_string(shapes.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    InputDescription input{names[i], std::nullopt};
    if (!dims.empty()) {
      input.shape =
          ir::Dims(dims.begin() + static_cast<std::ptrdiff_t>(4 * i), dims.begin() + static_cast<std::ptrdiff_t>(4 * i + 4));
    } else if (!shapes.empty() && shapes[i]->message()) {
      ORKNN_TRY_ASSIGN(input.shape, shape_of(*shapes[i]->message()));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// --- weights

// What one blob states, gathered from its fields.
struct BlobParts {
  ir::Dims shape, legacy{0, 0, 0, 0};
  bool has_legacy = false;
  wire::Bytes packed;           // the only stretch of floats, when they are in one
  std::vector<float> gathered;  // values that come in several pieces, or as doubles or halves
};

void keep_packed(BlobParts& parts) {
  const size_t count = parts.packed.size() / sizeof(float);
  const size_t before = parts.gathered.size();
  parts.gathered.resize(before + count);
  if (count) std::memcpy(parts.gathered.data() + before, parts.packed.data(), count * sizeof(float));
  parts.packed = {};
}

// NVIDIA's fork stores raw bytes with a type.
Status read_raw(wire::Bytes raw, int64_t type, std::vector<float>& values) {
  constexpr int64_t kDouble = 0, kFloat = 1, kHalf = 2;
  const auto each = [&](auto sample, auto&& convert) -> Status {
    using T = decltype(sample);
    if (raw.size() % sizeof(T) != 0)
      return invalid_model("raw data of a blob end within a value").found(std::to_string(raw.size()) + " bytes");
    for (size_t at = 0; at < raw.size(); at += sizeof(T)) {
      std::memcpy(&sample, raw.data() + at, sizeof(T));
      values.push_back(convert(sample));
    }
    return {};
  };
  if (type == kDouble) return each(double{}, [](double v) { return static_cast<float>(v); });
  if (type == kFloat) return each(float{}, [](float v) { return v; });
  if (type == kHalf) return each(uint16_t{}, [](uint16_t v) { return half_to_float(v); });
  return unsupported("raw data of a blob have an unknown type").expected("double, float or float16").found(std::to_string(type));
}

Result<Blob> make_blob(BlobParts parts, const std::shared_ptr<const void>& keeper) {
  Blob blob;
  blob.dims = parts.shape.empty() && parts.has_legacy ? parts.legacy : parts.shape;
  const int64_t count =
      static_cast<int64_t>(parts.gathered.empty() ? parts.packed.size() / sizeof(float) : parts.gathered.size());
  for (int64_t d : blob.dims)
    if (d < 0) return invalid_model("a blob has a negative extent").found(ir::to_string(blob.dims));
  ORKNN_TRY_ASSIGN(const int64_t stated, ir::checked_element_count(blob.dims));
  if (blob.dims.empty() && count != 1) {
    blob.dims = {count};
  } else if (stated != count) {
    return invalid_model("a blob holds another number of values than its shape says")
        .expected(std::to_string(stated) + " for " + ir::to_string(blob.dims))
        .found(std::to_string(count));
  }
  if (!parts.gathered.empty()) {
    blob.values = ir::TensorData::from<float>({count}, parts.gathered);
  } else if (reinterpret_cast<uintptr_t>(parts.packed.data()) % alignof(float) == 0) {
    blob.values = ir::TensorData::wrap(DType::Float32, {count}, parts.packed.data(), keeper);
  } else {
    blob.values = ir::TensorData::allocate(DType::Float32, {count});
    copy_and_release(parts.packed, blob.values.mutable_data());
  }
  return blob;
}

Result<Blob> blob_from_wire(wire::Bytes bytes, const std::shared_ptr<const void>& keeper) {
  BlobParts parts;
  wire::Bytes raw;
  int64_t raw_type = 1;
  wire::Reader reader(bytes);
  for (wire::Field field; reader.next(field);) {
    if (field.number >= 1 && field.number <= 4) {
      int32_t extent = 0;
      if (!field.get(extent)) continue;
      parts.legacy[field.number - 1] = extent;
      parts.has_legacy = true;
    } else if (field.number == 5) {
      if (field.type == wire::WireType::Bytes && field.bytes.size() % sizeof(float) != 0)
        return invalid_model("values of a blob end within one").found(std::to_string(field.bytes.size()) + " bytes");
      if (field.type == wire::WireType::Bytes && parts.packed.empty() && parts.gathered.empty()) {
        parts.packed = field.bytes;
        continue;
      }
      keep_packed(parts);
      ORKNN_TRY(wire::append(field, parts.gathered));
    } else if (field.number == 7 && field.type == wire::WireType::Bytes) {
      wire::Reader shape(field.bytes);
      for (wire::Field dim; shape.next(dim);)
        if (dim.number == 1) ORKNN_TRY(wire::append(dim, parts.shape));
      if (!shape.status()) return shape.status();
    } else if (field.number == 8) {
      keep_packed(parts);
      ORKNN_TRY(wire::for_each_fixed<uint64_t>(
          field, [&](uint64_t bits) { parts.gathered.push_back(static_cast<float>(std::bit_cast<double>(bits))); }));
    } else if (field.number == 10) {
      (void)field.get(raw_type);
    } else if (field.number == 12) {
      (void)field.get(raw);
    }
  }
  if (!reader.status()) return reader.status();
  if (!raw.empty() && parts.packed.empty() && parts.gathered.empty()) ORKNN_TRY(read_raw(raw, raw_type, parts.gathered));
  return make_blob(std::move(parts), keeper);
}

// Field numbers of a generation of layers. V0 layers sit in a message of their own inside a V1 layer.
struct LayerNumbers {
  uint32_t name, blobs;
};
constexpr LayerNumbers kCurrentNumbers{1, 7}, kOldNumbers{4, 6}, kOldestNumbers{1, 50};
constexpr uint32_t kOldestLayer = 1;

Status weights_of_layer(wire::Bytes bytes, const LayerNumbers& numbers, const std::shared_ptr<const void>& keeper,
                        Weights& weights) {
  std::string_view name;
  std::vector<wire::Bytes> blobs;
  wire::Reader reader(bytes);
  for (wire::Field field; reader.next(field);) {
    if (field.number == numbers.name) (void)field.get(name);
    if (field.number == numbers.blobs && field.type == wire::WireType::Bytes) blobs.push_back(field.bytes);
    if (numbers.blobs == kOldNumbers.blobs && field.number == kOldestLayer && field.type == wire::WireType::Bytes)
      ORKNN_TRY(weights_of_layer(field.bytes, kOldestNumbers, keeper, weights));
  }
  if (!reader.status()) return reader.status();
  if (blobs.empty()) return {};
  auto& list = weights[std::string(name)];
  if (!list.empty()) return {};  // layers of one name share what the first one has
  for (wire::Bytes b : blobs) {
    auto blob = blob_from_wire(b, keeper);
    if (!blob) return Status(blob.status()).node(name, "weights");
    list.push_back(std::move(*blob));
  }
  return {};
}

Result<Blob> blob_from_text(const wire::TextField& text) {
  BlobParts parts;
  wire::TextReader reader(text);
  constexpr std::string_view kLegacy[] = {"num", "channels", "height", "width"};
  for (wire::TextField field; reader.next(field);) {
    if (field.name == "data" || field.name == "double_data") {
      float value = 0;
      if (!field.get(value)) return field.unsuitable("a number");
      parts.gathered.push_back(value);
    } else if (field.name == "shape" && field.kind == wire::TextField::Kind::Message) {
      wire::TextReader shape(field);
      for (wire::TextField dim; shape.next(dim);) {
        int64_t extent = 0;
        if (dim.name == "dim" && !dim.get(extent)) return dim.unsuitable("an integer");
        if (dim.name == "dim") parts.shape.push_back(extent);
      }
      if (!shape.status()) return shape.status();
    } else {
      for (size_t i = 0; i < std::size(kLegacy); ++i)
        if (field.name == kLegacy[i] && field.get(parts.legacy[i])) parts.has_legacy = true;
    }
  }
  if (!reader.status()) return reader.status();
  return make_blob(std::move(parts), nullptr);
}

// A layer in text, V0 ones inside their V1 layer.
Status weights_of_text(const wire::TextField& layer, Weights& weights, int depth) {
  std::string name;
  std::vector<Blob> blobs;
  wire::TextReader reader(layer);
  for (wire::TextField field; reader.next(field);) {
    if (field.name == "name") (void)field.get(name);
    if (field.name == "layer" && field.kind == wire::TextField::Kind::Message && depth == 0)
      ORKNN_TRY(weights_of_text(field, weights, 1));
    if (field.name != "blobs" || field.kind != wire::TextField::Kind::Message) continue;
    ORKNN_TRY_ASSIGN(Blob blob, blob_from_text(field));
    blobs.push_back(std::move(blob));
  }
  if (!reader.status()) return reader.status();
  if (!blobs.empty() && weights[name].empty()) weights[name] = std::move(blobs);
  return {};
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 32 || c == '\t'; });
}

// Whether a message holds a name and a type in the places of a layer.
bool looks_like_layer(wire::Bytes bytes, bool is_old) {
  wire::Reader reader(bytes);
  bool has_name = false, has_type = false;
  for (wire::Field field; reader.next(field);) {
    std::string_view text;
    if (is_old) {
      has_name |= (field.number == 4 || field.number == 1) && field.get(text) && !text.empty();
      has_type |= field.number == 5 && field.type == wire::WireType::Varint;
      has_type |= field.number == 1 && field.type == wire::WireType::Bytes;
    } else {
      has_name |= field.number == 1 && field.get(text) && is_printable(text);
      has_type |= field.number == 2 && field.get(text) && is_printable(text);
    }
  }
  return reader.status().is_ok() && has_name && has_type;
}

bool looks_like_text_net(std::string_view text) {
  wire::TextReader reader(text);
  for (wire::TextField field; reader.next(field);) {
    const bool is_message = field.kind == wire::TextField::Kind::Message;
    if ((field.name == "layer" || field.name == "layers") && is_message) return true;
    bool known = false;
    for (std::string_view name : {"name", "input", "input_dim", "input_shape", "force_backward", "state", "debug_info"})
      known |= field.name == name;
    if (!known) return false;
  }
  return false;
}
}  // namespace

bool looks_like_text(wire::Bytes bytes) {
  const std::string_view head = text_of(bytes.first(std::min<size_t>(bytes.size(), 512)));
  return std::all_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 32 || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\v';
  });
}

bool looks_like_net(wire::Bytes bytes) {
  if (bytes.empty()) return false;
  if (looks_like_text(bytes)) return looks_like_text_net(text_of(bytes));
  wire::Reader reader(bytes);
  size_t names = 0;
  for (wire::Field field; reader.next(field);) {
    std::string_view text;
    if (field.number == 1) {
      if (!field.get(text) || !is_printable(text) || ++names > 1) return false;
    } else if (field.number == 100 || field.number == 2) {
      return field.type == wire::WireType::Bytes && looks_like_layer(field.bytes, field.number == 2);
    } else if (field.number > 8) {
      return false;
    }
  }
  return false;
}

Result<NetDescription> parse_net(wire::Bytes bytes) {
  ORKNN_TRY_ASSIGN(const Message net, looks_like_text(bytes) ? Message::from_text(wire::TextReader(text_of(bytes)))
                                                             : Message::from_wire(bytes, net_schema()));
  NetDescription result;
  ORKNN_TRY_ASSIGN(result.name, net.get_string("name", ""));
  ORKNN_TRY_ASSIGN(result.inputs, inputs_of(net));
  State state;
  ORKNN_TRY_ASSIGN(state.level, net.message("state").get_int("level", 0));
  ORKNN_TRY_ASSIGN(state.stages, net.message("state").get_strings("stage"));
  for (const Field& field : net.fields()) {
    const bool is_old = field.name() == "layers";
    if ((!is_old && field.name() != "layer") || !field.message()) continue;
    ORKNN_TRY_ASSIGN(const bool included, is_included(*field.message(), state));
    if (!included) continue;
    ORKNN_TRY_ASSIGN(LayerDescription layer, is_old ? old_layer(*field.message()) : current_layer(*field.message()));
    ORKNN_TRY_ASSIGN(layer.bottoms, field.message()->get_strings("bottom"));
    ORKNN_TRY_ASSIGN(layer.tops, field.message()->get_strings("top"));
    result.layers.push_back(std::move(layer));
  }
  if (result.layers.empty())
    return invalid_model("the file holds no layers").expected("a Caffe network").hint("is it a deploy.prototxt?");
  return result;
}

Result<Weights> parse_weights(wire::Bytes bytes, const std::shared_ptr<const void>& keeper) {
  Weights weights;
  if (looks_like_text(bytes)) {
    wire::TextReader reader(text_of(bytes));
    for (wire::TextField field; reader.next(field);)
      if ((field.name == "layer" || field.name == "layers") && field.kind == wire::TextField::Kind::Message)
        ORKNN_TRY(weights_of_text(field, weights, field.name == "layers" ? 0 : 1));
    if (!reader.status()) return reader.status();
    return weights;
  }
  wire::Reader reader(bytes);
  for (wire::Field field; reader.next(field);) {
    if (field.type != wire::WireType::Bytes) continue;
    if (field.number == 100) ORKNN_TRY(weights_of_layer(field.bytes, kCurrentNumbers, keeper, weights));
    if (field.number == 2) ORKNN_TRY(weights_of_layer(field.bytes, kOldNumbers, keeper, weights));
  }
  if (!reader.status()) return reader.status();
  return weights;
}

}  // namespace orknn::importer::caffe
