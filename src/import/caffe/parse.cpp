#include "import/caffe/parse.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "import/wire/stored.h"

namespace orknn::importer::caffe {
namespace {

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
// V0 types whose V1 name is not their own in capitals.
constexpr TypeName kOldestTypes[] = {
    {"conv", "CONVOLUTION"}, {"images", "IMAGE_DATA"}, {"innerproduct", "INNER_PRODUCT"}, {"pool", "POOLING"}};

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

std::string type_of_oldest(std::string_view oldest) {
  for (const TypeName& t : kOldestTypes)
    if (t.old == oldest) return current_type(t.current);
  std::string capitals(oldest);
  for (char& c : capitals)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return current_type(capitals);
}

// --- phases

struct State {
  int64_t level = 0;
  std::vector<std::string> stages;
  bool has(const std::string& stage) const { return std::find(stages.begin(), stages.end(), stage) != stages.end(); }
};

bool meets(const Parameters& rule, const State& state) {
  const std::string phase = rule.word("phase", "TEST");
  if (phase != "TEST" && phase != "1") return false;
  if (state.level < rule.integer("min_level", state.level) || state.level > rule.integer("max_level", state.level)) return false;
  const auto is_on = [&](const std::string& stage) { return state.has(stage); };
  const std::vector<std::string> stages = rule.texts("stage"), not_stages = rule.texts("not_stage");
  return std::all_of(stages.begin(), stages.end(), is_on) && std::none_of(not_stages.begin(), not_stages.end(), is_on);
}

bool is_included(const Parameters& layer, const State& state) {
  const bool is_listed = layer.has("include");
  for (const Parameters& rule : layer.messages(is_listed ? "include" : "exclude"))
    if (meets(rule, state)) return is_listed;
  return !is_listed;
}

// --- layers

LayerDescription current_layer(const Message& fields, Status& problem) {
  const Parameters p(fields, problem);
  LayerDescription layer{.name = p.text("name", ""), .type = p.word("type", ""), .fields = fields};
  for (const Field* spec : fields.all("param")) {
    std::string name;
    if (spec->message())
      name = Parameters(*spec->message(), problem).text("name", "");
    else
      (void)spec->get(name);  // V1 writes the name alone
    layer.parameter_names.push_back(std::move(name));
  }
  return layer;
}

LayerDescription old_layer(const Message& fields, Status& problem) {
  if (const Message& oldest = fields.message("layer"); !oldest.fields().empty()) {
    const Parameters p(oldest, problem);
    LayerDescription layer{
        .name = p.text("name", ""), .type = type_of_oldest(p.text("type", "")), .fields = oldest, .is_oldest = true};
    layer.fields.rename("biasterm", "bias_term");
    layer.fields.rename("kernelsize", "kernel_size");
    layer.fields.rename("cropsize", "crop_size");
    return layer;
  }
  LayerDescription layer = current_layer(fields, problem);
  layer.type = current_type(layer.type);
  return layer;
}

// The three forms of `input`: four input_dim each, one input_shape each, or no shape at all.
Result<std::vector<InputDescription>> inputs_of(const Parameters& net) {
  std::vector<InputDescription> inputs;
  const std::vector<std::string> names = net.texts("input");
  const ir::Dims dims = net.integers("input_dim");
  const std::vector<Parameters> shapes = net.messages("input_shape");
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
    if (!dims.empty())
      input.shape =
          ir::Dims(dims.begin() + static_cast<std::ptrdiff_t>(4 * i), dims.begin() + static_cast<std::ptrdiff_t>(4 * i + 4));
    else if (!shapes.empty())
      input.shape = shapes[i].integers("dim");
    for (int64_t d : input.shape.value_or(ir::Dims()))
      if (d < 0 || d > (int64_t{1} << 40)) return invalid_model("an extent of a shape is out of range").found(std::to_string(d));
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
  blob.values = parts.gathered.empty() ? wire::stored_tensor(DType::Float32, {count}, parts.packed, keeper)
                                       : ir::TensorData::from<float>({count}, parts.gathered);
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
      ORKNN_TRY(read_fields(field.bytes, wire::Slot{1, parts.shape}));
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
constexpr uint32_t kOldestLayerNumber = 1;

Status weights_of_layer(wire::Bytes bytes, const LayerNumbers& numbers, const std::shared_ptr<const void>& keeper,
                        Weights& weights) {
  std::string_view name;
  std::vector<wire::Bytes> blobs;
  ORKNN_TRY(read_fields(bytes, wire::Slot{numbers.name, name}, wire::Slot{numbers.blobs, blobs}));
  if (numbers.blobs == kOldNumbers.blobs)
    ORKNN_TRY(read_fields(bytes, wire::Slot{kOldestLayerNumber, [&](wire::Bytes layer) {
                                              return weights_of_layer(layer, kOldestNumbers, keeper, weights);
                                            }}));
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
  const std::string_view head = wire::text_of(bytes.first(std::min<size_t>(bytes.size(), 512)));
  return std::all_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 32 || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\v';
  });
}

bool looks_like_net(wire::Bytes bytes) {
  if (bytes.empty()) return false;
  if (looks_like_text(bytes)) return looks_like_text_net(wire::text_of(bytes));
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
  ORKNN_TRY_ASSIGN(const Message net, looks_like_text(bytes) ? Message::from_text(wire::TextReader(wire::text_of(bytes)))
                                                             : Message::from_wire(bytes, schema_of("Net")));
  Status problem;
  const Parameters p(net, problem), stated = p.message("state");
  NetDescription result{.name = p.text("name", "")};
  ORKNN_TRY_ASSIGN(result.inputs, inputs_of(p));
  const State state{stated.integer("level", 0), stated.texts("stage")};
  for (const Field& field : net.fields()) {
    const bool is_old = field.name() == "layers";
    if ((!is_old && field.name() != "layer") || !field.message()) continue;
    const Parameters fields(*field.message(), problem);
    if (!is_included(fields, state)) continue;
    LayerDescription layer = is_old ? old_layer(*field.message(), problem) : current_layer(*field.message(), problem);
    layer.bottoms = fields.texts("bottom");
    layer.tops = fields.texts("top");
    result.layers.push_back(std::move(layer));
  }
  if (!problem) return problem;
  if (result.layers.empty())
    return invalid_model("the file holds no layers").expected("a Caffe network").hint("is it a deploy.prototxt?");
  return result;
}

Result<Weights> parse_weights(wire::Bytes bytes, std::shared_ptr<const void> keeper) {
  if (looks_like_text(bytes)) {
    ORKNN_TRY_ASSIGN(std::vector<std::byte> encoded, wire::encode_text(wire::text_of(bytes), schema_of("NetBlobs")));
    const auto holder = std::make_shared<const std::vector<std::byte>>(std::move(encoded));
    bytes = *holder;
    keeper = holder;
  }
  Weights weights;
  ORKNN_TRY(
      read_fields(bytes, wire::Slot{2, [&](wire::Bytes layer) { return weights_of_layer(layer, kOldNumbers, keeper, weights); }},
                  wire::Slot{100, [&](wire::Bytes layer) { return weights_of_layer(layer, kCurrentNumbers, keeper, weights); }}));
  return weights;
}

}  // namespace orknn::importer::caffe
