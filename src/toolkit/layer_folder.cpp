#include "toolkit/layer_folder.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/files.h"
#include "data/npy.h"
#include "ops/support/requantize.h"

namespace orknn::toolkit {
namespace {
using nlohmann::ordered_json;
using namespace silicon;
namespace fs = std::filesystem;

struct FolderTensor {
  std::string id;    // in layer.json
  std::string file;  // empty: fused away, never in memory
  Cube cube;
  TensorOrder order = TensorOrder::Hwc;
  int64_t zero_point = 0;
};
struct FolderStep {
  size_t op = 0;  // its number in layer.json
  std::variant<ConvLayer, PoolLayer> layer;
  size_t input = 0, output = 0;  // positions in FolderLayer::tensors
  std::optional<size_t> operand;
  ir::TensorData weights;  // as pack_operands wants them
  std::vector<int32_t> bias;
};
// layer.json, understood.
struct FolderLayer {
  ordered_json json;
  bool is_chain = false;  // "tensors" and "ops", against a single "layer"
  std::vector<FolderTensor> tensors;
  std::vector<FolderStep> steps;
  double tolerance = 0;
};

Status bad_layer(const std::string& problem) { return invalid_argument("layer.json: " + problem); }

Result<ordered_json> read_json(const std::string& path) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  ordered_json json = ordered_json::parse(text, text + bytes.size(), nullptr, false);
  if (json.is_discarded() || !json.is_object()) return invalid_argument("'" + path + "' is not a JSON object");
  return json;
}

Result<ir::TensorData> read_array(const std::string& folder, const std::string& file, DType dtype, int64_t count) {
  ORKNN_TRY_ASSIGN(ir::TensorData value, data::read_npy((fs::path(folder) / file).string()));
  if (value.dtype() != dtype || value.count() != count)
    return invalid_argument("'" + file + "' does not fit layer.json")
        .expected(fmt::format("{} elements of {}", count, dtype_name(dtype)))
        .found(fmt::format("{} elements of {}", value.count(), dtype_name(value.dtype())));
  return value;
}

// Numbers of an array, or that many defaults where it is missing.
std::vector<int64_t> integers(const ordered_json& j, const char* key, std::vector<int64_t> otherwise) {
  if (!j.contains(key)) return otherwise;
  std::vector<int64_t> values = j.at(key).get<std::vector<int64_t>>();
  if (values.size() != otherwise.size())
    throw std::invalid_argument(fmt::format("'{}' has {} numbers, expected {}", key, values.size(), otherwise.size()));
  return values;
}

float number_of(const ordered_json& j, const char* key) {
  const std::string hex_key = std::string(key) + "_hex";
  if (j.contains(hex_key)) return std::strtof(j.at(hex_key).get<std::string>().c_str(), nullptr);
  return j.at(key).get<float>();
}

// Axes [kernels][channels][taps] become [kernels][taps][channels].
ir::TensorData channels_last(const ir::TensorData& from, int64_t kernels, int64_t channels, int64_t taps) {
  ir::TensorData to = ir::TensorData::allocate(from.dtype(), {kernels, taps, channels});
  const size_t size = dtype_bytes(from.dtype());
  const auto* in = static_cast<const std::byte*>(from.data());
  auto* out = static_cast<std::byte*>(to.mutable_data());
  for (int64_t k = 0; k < kernels; ++k)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t t = 0; t < taps; ++t)
        std::memcpy(out + static_cast<size_t>((k * taps + t) * channels + c) * size,
                    in + static_cast<size_t>((k * channels + c) * taps + t) * size, size);
  return to;
}

// ReLU with a ceiling: the largest accumulator whose result is still that of the ceiling.
int64_t ceiling_of(double real, double accumulator_scale) { return std::llround(real / accumulator_scale); }

void read_activation(const ordered_json& op, double accumulator_scale, ConvLayer& layer) {
  const std::string name = op.value("activation", "none");
  if (name == "none" || name == "linear") return;
  layer.relu = true;
  if (name == "relu6")
    layer.ceiling = ceiling_of(6, accumulator_scale);
  else if (name == "clip" || name == "relux")
    layer.ceiling = ceiling_of(op.at(op.contains("ceiling") ? "ceiling" : "max").get<double>(), accumulator_scale);
  else if (name != "relu")
    throw std::invalid_argument("unknown activation '" + name + "'");
  if (op.contains("ceiling_accumulator")) layer.ceiling = op.at("ceiling_accumulator").get<int64_t>();
}

// Reads the form with "tensors" and "ops": int8 layers, rows, columns, channels.
class ChainReader {
 public:
  ChainReader(const std::string& folder, FolderLayer& layer) : folder_(folder), layer_(layer), json_(layer.json) {}

  Status run() {
    for (const ordered_json& t : json_.at("tensors")) read_tensor(t);
    const ordered_json& ops = json_.at("ops");
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string kind = ops[i].at("kind").get<std::string>();
      if (kind == "conv" || kind == "depthwise" || kind == "fully_connected" || kind == "matmul")
        ORKNN_TRY(read_conv(i, ops[i]));
      else if (kind == "add")
        ORKNN_TRY(read_add(i, ops[i]));
      else if (kind == "pool")
        ORKNN_TRY(read_pool(i, ops[i]));
      else
        return unsupported("layer.json: unknown operation '" + kind + "'");
    }
    return {};
  }

 private:
  void read_tensor(const ordered_json& t) {
    FolderTensor tensor;
    tensor.id = std::to_string(t.at("id").get<int64_t>());
    tensor.cube = {t.at("height").get<int64_t>(), t.at("width").get<int64_t>(), t.at("channels").get<int64_t>(), Precision::Int8};
    tensor.zero_point = t.at("zero_point").get<int64_t>();
    if (!t.value("virtual", false))
      tensor.file = t.contains("file") ? t.at("file").get<std::string>() : "tensor_" + tensor.id + ".npy";
    position_[t.at("id").get<int64_t>()] = layer_.tensors.size();
    scales_.push_back(t.contains("scale") ? number_of(t, "scale") : 1.0f);
    layer_.tensors.push_back(std::move(tensor));
  }
  size_t tensor_of(const ordered_json& op, const char* key) const {
    const auto at = position_.find(op.at(key).get<int64_t>());
    if (at == position_.end()) throw std::invalid_argument(fmt::format("'{}' names no tensor", key));
    return at->second;
  }

  Status read_conv(size_t index, const ordered_json& op) {
    FolderStep step;
    step.op = index;
    step.input = tensor_of(op, "input");
    step.output = tensor_of(op, "output");
    const FolderTensor &in = layer_.tensors[step.input], &out = layer_.tensors[step.output];
    ConvLayer l;
    l.depthwise = op.at("kind") == "depthwise";
    set_geometry(op, in.cube, out.cube, l);
    l.kernels = out.cube.channels;
    l.channels = in.cube.channels;
    l.in_zero_point = in.zero_point;
    l.out_zero_point = out.zero_point;
    l.weight_zero_point = op.value("weights_zero_point", int64_t{0});
    const float weight_scale = op.contains("weights_scale") ? number_of(op, "weights_scale") : 1.0f;
    accumulator_scale_ = scales_[step.input] * weight_scale;
    read_output_scale(op, accumulator_scale_ / scales_[step.output], l);
    const ordered_json& channels = json_.contains("per_channel") && !op.contains("per_channel")
                                       ? json_.at("per_channel")
                                       : op.value("per_channel", ordered_json());
    if (channels.is_object()) {
      if (channels.contains("channel_multipliers")) {
        l.channel_multipliers = channels.at("channel_multipliers").get<std::vector<int32_t>>();
        l.channel_shift = channels.at("channel_shift").get<int64_t>();
        if (static_cast<int64_t>(l.channel_multipliers.size()) != l.kernels)
          return bad_layer("there is not one multiplier per channel");
      }
      read_activation(channels, accumulator_scale_, l);
    }
    read_activation(op, accumulator_scale_, l);
    const int64_t taps = l.window.height * l.window.width;
    ORKNN_TRY_ASSIGN(step.weights, read_array(folder_, op.at("weights").get<std::string>(), DType::Int8,
                                              taps * l.channels * (l.depthwise ? 1 : l.kernels)));
    ORKNN_TRY_ASSIGN(const ir::TensorData bias, read_array(folder_, op.at("bias").get<std::string>(), DType::Int32, l.kernels));
    step.bias.assign(bias.values<int32_t>().begin(), bias.values<int32_t>().end());
    step.layer = std::move(l);
    layer_.steps.push_back(std::move(step));
    return {};
  }

  template <class Layer>
  static void set_geometry(const ordered_json& op, const Cube& in, const Cube& out, Layer& l) {
    const auto kernel = integers(op, "kernel", {1, 1}), stride = integers(op, "stride", {1, 1}),
               dilation = integers(op, "dilation", {1, 1});
    const auto pad = integers(op, "pad_top_bottom_left_right", {0, 0, 0, 0});
    l.height = in.height;
    l.width = in.width;
    l.out_height = out.height;
    l.out_width = out.width;
    l.window = {.height = kernel[0],
                .width = kernel[1],
                .stride_y = stride[0],
                .stride_x = stride[1],
                .dilation_y = dilation[0],
                .dilation_x = dilation[1],
                .top = pad[0],
                .bottom = pad[1],
                .left = pad[2],
                .right = pad[3]};
  }

  static void read_output_scale(const ordered_json& op, float factor, ConvLayer& l) {
    const ScaleShift split = split_output_scale(factor);
    l.out_multiplier = op.value("multiplier", split.scale);
    l.out_shift = op.value("shift", split.shift);
  }

  // Fused into the convolution that makes `a`, if that never reaches memory; else a convolution by one copies `a` and `b` is
  // added.
  Status read_add(size_t index, const ordered_json& op) {
    const size_t a = tensor_of(op, "a"), b = tensor_of(op, "b"), out = tensor_of(op, "output");
    if (layer_.tensors[a].file.empty()) {
      if (layer_.steps.empty() || layer_.steps.back().output != a)
        return bad_layer("an addition follows the convolution that it is fused with");
    } else {
      ORKNN_TRY(add_copy(index, a, out));
    }
    FolderStep& step = layer_.steps.back();
    auto& l = std::get<ConvLayer>(step.layer);
    const ScaleShift split = split_operand_scale(scales_[b] / accumulator_scale_);
    ElementWise e;
    e.zero_point = layer_.tensors[b].zero_point;
    e.multiplier = op.value("operand_multiplier", split.scale);
    e.shift = op.value("operand_shift", split.shift);
    l.element_wise = e;
    l.out_zero_point = layer_.tensors[out].zero_point;
    read_output_scale(op, accumulator_scale_ / scales_[out], l);
    read_activation(op, accumulator_scale_, l);
    step.output = out;
    step.operand = b;
    return {};
  }

  Status add_copy(size_t index, size_t a, size_t out) {
    constexpr int8_t kGain = 64;  // of the diagonal: sums then have room for the operand's rounding
    FolderStep step;
    step.op = index;
    step.input = a;
    step.output = out;
    const Cube& cube = layer_.tensors[a].cube;
    ConvLayer l;
    l.height = l.out_height = cube.height;
    l.width = l.out_width = cube.width;
    l.channels = l.kernels = cube.channels;
    l.in_zero_point = layer_.tensors[a].zero_point;
    accumulator_scale_ = scales_[a] / kGain;
    step.weights = ir::TensorData::zeros(DType::Int8, {cube.channels, cube.channels});
    for (int64_t c = 0; c < cube.channels; ++c) static_cast<int8_t*>(step.weights.mutable_data())[c * cube.channels + c] = kGain;
    step.bias.assign(static_cast<size_t>(cube.channels), 0);
    step.layer = std::move(l);
    layer_.steps.push_back(std::move(step));
    return {};
  }

  Status read_pool(size_t index, const ordered_json& op) {
    FolderStep step;
    step.op = index;
    step.input = tensor_of(op, "input");
    step.output = tensor_of(op, "output");
    const FolderTensor& in = layer_.tensors[step.input];
    PoolLayer l;
    ORKNN_TRY_ASSIGN(l.method, method_of(op.at("method").get<std::string>()));
    set_geometry(op, in.cube, layer_.tensors[step.output].cube, l);
    l.channels = in.cube.channels;
    l.zero_point = in.zero_point;
    step.layer = l;
    layer_.steps.push_back(std::move(step));
    return {};
  }

 public:
  static Result<PoolTask::Method> method_of(const std::string& name) {
    if (name == "avg" || name == "average") return PoolTask::Method::Average;
    if (name == "max") return PoolTask::Method::Max;
    if (name == "min") return PoolTask::Method::Min;
    return unsupported("layer.json: unknown pooling method '" + name + "'");
  }

 private:
  const std::string& folder_;
  FolderLayer& layer_;
  const ordered_json& json_;
  std::map<int64_t, size_t> position_;
  std::vector<float> scales_;       // of tensors
  float accumulator_scale_ = 1.0f;  // of the last convolution
};

Result<Precision> precision_of(const std::string& name) {
  if (name == "i8") return Precision::Int8;
  if (name == "f16") return Precision::Half;
  if (name == "i32") return Precision::Int32;
  if (name == "f32") return Precision::Float;
  return unsupported("layer.json: unknown type '" + name + "'");
}

// Reads the form with a single "layer": channels, rows, columns.
class SingleReader {
 public:
  SingleReader(const std::string& folder, FolderLayer& layer) : folder_(folder), layer_(layer), j_(layer.json.at("layer")) {}

  Status run() {
    const std::string kind = j_.at("kind").get<std::string>();
    if (kind == "pool") return read_pool();
    if (kind == "conv" || kind == "depthwise" || kind == "matmul" || kind == "fully_connected")
      return read_conv(kind == "depthwise");
    return unsupported("layer.json: there is no recipe for the layer '" + kind + "'");
  }

 private:
  void add_tensor(const char* name, const Cube& cube) {
    layer_.tensors.push_back({name, std::string(name) + ".npy", cube, TensorOrder::Chw, 0});
  }
  template <class Layer>
  void set_geometry(Layer& l) const {
    const auto kernel = integers(j_, "kernel", {1, 1}), stride = integers(j_, "stride", {1, 1}),
               dilation = integers(j_, "dilation", {1, 1});
    auto pad = integers(j_, "pad", {0, 0, 0, 0});
    l.height = j_.at("in_height").get<int64_t>();
    l.width = j_.at("in_width").get<int64_t>();
    l.out_height = j_.at("out_height").get<int64_t>();
    l.out_width = j_.at("out_width").get<int64_t>();
    l.window = {.height = kernel[0],
                .width = kernel[1],
                .stride_y = stride[0],
                .stride_x = stride[1],
                .dilation_y = dilation[0],
                .dilation_x = dilation[1],
                .top = pad[0],
                .bottom = pad[1],
                .left = pad[2],
                .right = pad[3]};
  }
  Status read_conv(bool depthwise) {
    ConvLayer l;
    set_geometry(l);
    l.depthwise = depthwise;
    l.has_bias = false;
    l.channels = j_.at("in_channels").get<int64_t>();
    l.kernels = j_.at("out_channels").get<int64_t>();
    ORKNN_TRY_ASSIGN(l.in, precision_of(j_.at("dtype").get<std::string>()));
    ORKNN_TRY_ASSIGN(l.out, precision_of(j_.value("out_dtype", j_.at("dtype").get<std::string>())));
    const bool widens = (l.in == Precision::Int8 && l.out == Precision::Int32) ||
                        (l.in == Precision::Half && (l.out == Precision::Half || l.out == Precision::Float));
    if (!widens) return unsupported("layer.json: there is no recipe for these types of input and output");
    FolderStep step;
    add_tensor("input", l.input());
    add_tensor("output", l.output());
    step.output = 1;
    if (j_.contains("ew") && j_.at("ew").is_string()) {
      ElementWise e;
      const std::string name = j_.at("ew").get<std::string>();
      using enum ElementWise::Operation;
      const std::map<std::string, ElementWise::Operation> operations{{"add", Add}, {"max", Max}, {"min", Min}, {"mul", Multiply}};
      if (!operations.contains(name)) return unsupported("layer.json: unknown element-wise operation '" + name + "'");
      e.operation = operations.at(name);
      l.element_wise = e;
      step.operand = 2;
      add_tensor("operand", l.output());
    }
    const int64_t taps = l.window.height * l.window.width, kernels = depthwise ? 1 : l.kernels;
    ORKNN_TRY_ASSIGN(const ir::TensorData weights,
                     read_array(folder_, "weights.npy", dtype_of_precision(l.in), taps * l.channels * kernels));
    step.weights = channels_last(weights, kernels, l.channels, taps);
    step.layer = std::move(l);
    layer_.steps.push_back(std::move(step));
    return {};
  }
  Status read_pool() {
    PoolLayer l;
    set_geometry(l);
    l.channels = j_.at("channels").get<int64_t>();
    l.zero_point = j_.value("zero_point", int64_t{0});
    ORKNN_TRY_ASSIGN(l.method, ChainReader::method_of(j_.at("method").get<std::string>()));
    ORKNN_TRY_ASSIGN(l.precision, precision_of(j_.at("dtype").get<std::string>()));
    add_tensor("input", l.input());
    add_tensor("output", l.output());
    FolderStep step;
    step.output = 1;
    step.layer = l;
    layer_.steps.push_back(std::move(step));
    return {};
  }
  const std::string& folder_;
  FolderLayer& layer_;
  const ordered_json& j_;
};

Result<FolderLayer> read_layer(const std::string& folder) {
  FolderLayer layer;
  ORKNN_TRY_ASSIGN(layer.json, read_json((fs::path(folder) / "layer.json").string()));
  try {
    if (layer.json.contains("tolerance") && layer.json.at("tolerance").is_number())
      layer.tolerance = layer.json.at("tolerance").get<double>();
    layer.is_chain = layer.json.contains("ops");
    if (layer.is_chain)
      ORKNN_TRY(ChainReader(folder, layer).run());
    else
      ORKNN_TRY(SingleReader(folder, layer).run());
  } catch (const ordered_json::exception& e) {
    return bad_layer(e.what());
  } catch (const std::invalid_argument& e) {
    return bad_layer(e.what());
  }
  for (const FolderTensor& t : layer.tensors)
    if (t.cube.height < 1 || t.cube.width < 1 || t.cube.channels < 1 || t.cube.height > 65536 || t.cube.width > 65536 ||
        t.cube.channels > 65536)
      return bad_layer("tensor '" + t.id + "' has no legal shape");
  return layer;
}

std::string hex(uint64_t v) { return fmt::format("{:#x}", v); }

ordered_json words_json(const Stream& stream) {
  auto words = ordered_json::array();
  for (const uint64_t word : stream) {
    const Command c = decode(word);
    words.push_back({fmt::format("{:#06x}", static_cast<uint16_t>(c.target)), fmt::format("{:#06x}", c.offset),
                     fmt::format("{:#010x}", c.value), register_name(c)});
  }
  return words;
}

// Streams one after the other, each at a multiple of 64 bytes.
std::vector<std::byte> joined(std::span<const Stream> streams) {
  std::vector<std::byte> bytes;
  for (const Stream& s : streams) {
    const size_t at = bytes.size();
    bytes.resize(at + static_cast<size_t>(round_up(static_cast<int64_t>(s.size() * 8), 64)));
    std::memcpy(bytes.data() + at, s.data(), s.size() * 8);
  }
  return bytes;
}

Status write_bytes(const fs::path& path, std::span<const std::byte> bytes) {
  return write_file_atomically(path.string(), [&](FileWriter& w) { return w.write(bytes); });
}

// A tensor's memory; results of steps are written into it.
struct PlacedTensor {
  uint32_t address = 0;
  std::vector<std::byte> bytes;
};
struct PlacedStep {
  uint32_t weights = 0, bias = 0, streams_at = 0;
  ConvOperands operands;
  std::vector<Stream> streams;
  std::vector<std::byte> joined_streams;
};

class Emitter {
 public:
  Emitter(const std::string& folder, const std::string& out, FolderLayer& layer) : folder_(folder), out_(out), layer_(layer) {}

  Result<EmitReport> run(const EmitOptions& options) {
    for (FolderStep& s : layer_.steps)
      if (auto* conv = std::get_if<ConvLayer>(&s.layer)) conv->grouping = options.grouping;
    ORKNN_TRY(place());
    ORKNN_TRY(make_streams());
    ORKNN_TRY(execute());
    std::error_code failed;
    fs::create_directories(out_, failed);
    if (failed) return io_error("cannot make the folder '" + out_.string() + "': " + failed.message());
    ORKNN_TRY(write_results());
    ORKNN_TRY(copy_operands());
    ORKNN_TRY(write_streams());
    ORKNN_TRY(write_layer());
    return report_;
  }

 private:
  // Addresses in the order of use: operands of all steps, tensors, streams.
  Status place() {
    tensors_.resize(layer_.tensors.size());
    std::vector<int64_t> sizes;
    for (const FolderTensor& t : layer_.tensors) sizes.push_back(t.cube.bytes());
    for (const FolderStep& s : layer_.steps) {
      PlacedStep placed;
      if (const auto* conv = std::get_if<ConvLayer>(&s.layer)) {
        placed.operands = pack_operands(*conv, s.weights.data(), s.bias);
        ORKNN_TRY_ASSIGN(placed.weights, space_.allocate(placed.operands.weights.size()));
        if (conv->has_bias) ORKNN_TRY(assign(placed.bias, placed.operands.bias.size()));
        sizes[s.input] = std::max(sizes[s.input], conv->input_bytes());
        sizes[s.output] = std::max(sizes[s.output], conv->output_bytes());
      }
      steps_.push_back(std::move(placed));
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (layer_.tensors[i].file.empty()) continue;
      const FolderTensor& t = layer_.tensors[i];
      tensors_[i].bytes.resize(static_cast<size_t>(sizes[i]));
      if (t.cube.precision == Precision::Int8)
        std::memset(tensors_[i].bytes.data(), static_cast<int>(t.zero_point), tensors_[i].bytes.size());
      ORKNN_TRY(assign(tensors_[i].address, tensors_[i].bytes.size()));
    }
    return {};
  }
  Status assign(uint32_t& address, size_t bytes) {
    ORKNN_TRY_ASSIGN(address, space_.allocate(bytes));
    return {};
  }

  Status make_streams() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const FolderStep& s = layer_.steps[i];
      PlacedStep& placed = steps_[i];
      const uint32_t in = tensors_[s.input].address, out = tensors_[s.output].address;
      if (const auto* conv = std::get_if<ConvLayer>(&s.layer)) {
        const uint32_t operand = s.operand ? tensors_[*s.operand].address : 0;
        ORKNN_TRY_ASSIGN(placed.streams, conv_streams(*conv, {in, placed.weights, placed.bias, out, operand}));
      } else {
        ORKNN_TRY_ASSIGN(Stream stream, pool_stream(std::get<PoolLayer>(s.layer), in, out));
        placed.streams.push_back(std::move(stream));
      }
      placed.joined_streams = joined(placed.streams);
      ORKNN_TRY(assign(placed.streams_at, placed.joined_streams.size()));
      report_.tasks += placed.streams.size();
      for (const Stream& stream : placed.streams) report_.words += stream.size();
      report_.packed_bytes += placed.operands.weights.size() + placed.operands.bias.size();
    }
    return {};
  }

  // True for tensors that some step computes.
  bool is_computed(size_t tensor) const {
    return std::ranges::any_of(layer_.steps, [&](const FolderStep& s) { return s.output == tensor; });
  }

  Status execute() {
    DeviceMemory memory;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (layer_.tensors[i].file.empty()) continue;
      ORKNN_TRY(memory.map("tensor " + layer_.tensors[i].id, tensors_[i].address, tensors_[i].bytes));
      if (is_computed(i)) continue;
      const Cube& cube = layer_.tensors[i].cube;
      ORKNN_TRY_ASSIGN(const ir::TensorData value, read_array(folder_, layer_.tensors[i].file, dtype_of_precision(cube.precision),
                                                              cube.height * cube.width * cube.channels));
      pack_cube(cube, layer_.tensors[i].order, value.data(), tensors_[i].bytes,
                cube.precision == Precision::Int8 ? layer_.tensors[i].zero_point : 0);
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      PlacedStep& s = steps_[i];
      if (s.weights) ORKNN_TRY(memory.map("weights " + std::to_string(i), s.weights, s.operands.weights));
      if (s.bias) ORKNN_TRY(memory.map("bias " + std::to_string(i), s.bias, s.operands.bias));
    }
    for (const PlacedStep& s : steps_) ORKNN_TRY(run_streams(s.streams, memory, ThreadPool::shared()));
    return {};
  }

  Result<ir::TensorData> value_of(size_t tensor) const {
    const FolderTensor& t = layer_.tensors[tensor];
    const ir::Dims dims = t.order == TensorOrder::Hwc ? ir::Dims{t.cube.height, t.cube.width, t.cube.channels}
                                                      : ir::Dims{t.cube.channels, t.cube.height, t.cube.width};
    ir::TensorData value = ir::TensorData::allocate(dtype_of_precision(t.cube.precision), dims);
    unpack_cube(t.cube, t.order, tensors_[tensor].bytes, value.mutable_data());
    return value;
  }

  Status write_results() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const FolderTensor& t = layer_.tensors[i];
      if (t.file.empty() || !is_computed(i)) continue;
      ORKNN_TRY_ASSIGN(const ir::TensorData value, value_of(i));
      ORKNN_TRY(compare_with_stored(t, value));
      ORKNN_TRY(data::write_npy((out_ / t.file).string(), value));
      report_.results.push_back(t.file);
    }
    return {};
  }
  Status compare_with_stored(const FolderTensor& t, const ir::TensorData& value) const {
    const fs::path stored = fs::path(folder_) / t.file;
    std::error_code ignored;
    if (!fs::exists(stored, ignored)) return {};
    ORKNN_TRY_ASSIGN(const ir::TensorData expected, read_array(folder_, t.file, value.dtype(), value.count()));
    const std::vector<double> a = ir::to_doubles(value.view()), b = ir::to_doubles(expected.view());
    for (size_t i = 0; i < a.size(); ++i)
      if (!(std::abs(a[i] - b[i]) <= layer_.tolerance))
        return Status::error(
                   Code::Fail,
                   fmt::format("'{}': the streams give other values than the folder holds, first at element {}", t.file, i))
            .expected(std::to_string(b[i]))
            .found(std::to_string(a[i]));
    return {};
  }

  // Inputs, weights and biases make the new folder complete.
  Status copy_operands() const {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(folder_, failed)) {
      if (entry.path().extension() != ".npy" || fs::exists(out_ / entry.path().filename())) continue;
      ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(entry.path().string()));
      ORKNN_TRY(write_bytes(out_ / entry.path().filename(), file->bytes()));
    }
    return failed ? io_error("cannot list '" + folder_ + "': " + failed.message()) : Status();
  }

  std::string numbered(const char* stem, size_t op) const {
    return layer_.is_chain ? fmt::format("{}_{}.bin", stem, op) : fmt::format("{}.bin", stem);
  }

  Status write_streams() const {
    auto all = ordered_json::array();
    for (size_t i = 0; i < steps_.size(); ++i) {
      const PlacedStep& s = steps_[i];
      const size_t op = layer_.steps[i].op;
      if (!s.operands.weights.empty()) ORKNN_TRY(write_bytes(out_ / numbered("packed_weights", op), s.operands.weights));
      if (!s.operands.bias.empty()) ORKNN_TRY(write_bytes(out_ / numbered("packed_bias", op), s.operands.bias));
      // A single task of the single form is the file, without padding, as readers of that form expect.
      const std::span<const std::byte> bytes =
          !layer_.is_chain && s.streams.size() == 1 ? std::as_bytes(std::span(s.streams[0])) : s.joined_streams;
      ORKNN_TRY(write_bytes(out_ / numbered("regcmd", op), bytes));
      uint64_t at = s.streams_at;
      for (const Stream& stream : s.streams) {
        ordered_json task;
        if (layer_.is_chain) task["op"] = op;
        task["regcmd_address"] = hex(at);
        task["words"] = words_json(stream);
        all.push_back(std::move(task));
        at += static_cast<uint64_t>(round_up(static_cast<int64_t>(stream.size() * 8), 64));
      }
    }
    const std::string text = all.dump(1) + "\n";
    return write_file_atomically((out_ / "regcmd.json").string(), [&](FileWriter& w) { return w.write(text); });
  }

  ordered_json tasks_json(const PlacedStep& s) const {
    auto tasks = ordered_json::array();
    uint64_t at = s.streams_at;
    for (const Stream& stream : s.streams) {
      const Result<DecodedTask> task = decode_task(stream);
      ordered_json j{{"regcmd_address", hex(at)}, {"regcmd_count", stream.size()}};
      if (task && task->enable == kEnableConvolution) {
        const DpuTask d = dpu_task(task->registers);
        j["out_rows_x_cols"] = fmt::format("{}x{}", d.height, d.width);
      }
      tasks.push_back(std::move(j));
      at += static_cast<uint64_t>(round_up(static_cast<int64_t>(stream.size() * 8), 64));
    }
    return tasks;
  }

  void describe_chain(ordered_json& j) const {
    auto memory = ordered_json::array(), jobs = ordered_json::array();
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (!layer_.tensors[i].file.empty())
        memory.push_back({{"what", "tensor " + layer_.tensors[i].id},
                          {"address", hex(tensors_[i].address)},
                          {"size", tensors_[i].bytes.size()}});
    for (size_t i = 0; i < steps_.size(); ++i) {
      const PlacedStep& s = steps_[i];
      const FolderStep& step = layer_.steps[i];
      const std::string op = std::to_string(step.op);
      const auto add = [&](const char* what, const char* stem, uint32_t address, size_t bytes) {
        memory.push_back(
            {{"what", what + (" " + op)}, {"address", hex(address)}, {"size", bytes}, {"file", numbered(stem, step.op)}});
      };
      if (s.weights) add("weights", "packed_weights", s.weights, s.operands.weights.size());
      if (s.bias) add("bias", "packed_bias", s.bias, s.operands.bias.size());
      add("regcmd", "regcmd", s.streams_at, s.joined_streams.size());
      ordered_json reads{std::stoll(layer_.tensors[step.input].id)};
      if (step.operand) reads.push_back(std::stoll(layer_.tensors[*step.operand].id));
      jobs.push_back({{"op", step.op},
                      {"reads", reads},
                      {"writes", std::stoll(layer_.tensors[step.output].id)},
                      {"clip_truncate", 0},
                      {"tasks", tasks_json(s)}});
    }
    j["memory"] = std::move(memory);
    j["jobs"] = std::move(jobs);
  }

  void describe_single(ordered_json& j) const {
    ordered_json memory;
    for (size_t i = 0; i < tensors_.size(); ++i) memory[layer_.tensors[i].id] = hex(tensors_[i].address);
    const PlacedStep& s = steps_.front();
    if (s.weights) memory["weights"] = hex(s.weights);
    if (s.bias) memory["bias"] = hex(s.bias);
    memory["regcmd"] = hex(s.streams_at);
    j["memory"] = std::move(memory);
    j["enable"] = hex(decode(s.streams.front().back()).value);
    j["tasks"] = tasks_json(s);
  }

  Status write_layer() const {
    ordered_json j = layer_.json;
    j["origin"] = "OpenRKNN";
    j["checks"] = {{"chip_model", "executed"}};
    if (layer_.is_chain)
      describe_chain(j);
    else
      describe_single(j);
    const std::string text = j.dump(1) + "\n";
    return write_file_atomically((out_ / "layer.json").string(), [&](FileWriter& w) { return w.write(text); });
  }

  const std::string& folder_;
  const fs::path out_;
  FolderLayer& layer_;
  AddressSpace space_;
  std::vector<PlacedTensor> tensors_;
  std::vector<PlacedStep> steps_;
  EmitReport report_;
};

Result<std::vector<std::byte>> read_bytes(const fs::path& path) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path.string()));
  const auto bytes = file->bytes();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

uint64_t parse_address(const ordered_json& j) {
  return j.is_string() ? std::stoull(j.get<std::string>(), nullptr, 0) : j.get<uint64_t>();
}

// A folder's buffers as its layer.json places them, and its streams in order.
class StoredLayer {
 public:
  Status read(const std::string& folder) {
    folder_ = folder;
    ORKNN_TRY_ASSIGN(json_, read_json((fs::path(folder) / "layer.json").string()));
    try {
      return json_.contains("jobs") ? read_chain() : read_single();
    } catch (const ordered_json::exception& e) {
      return bad_layer(e.what());
    } catch (const std::exception& e) {
      return bad_layer(e.what());
    }
  }
  const std::vector<Stream>& streams() const { return streams_; }

  Result<StoredRun> run() {
    ORKNN_TRY_ASSIGN(FolderLayer layer, described());
    DeviceMemory memory;
    for (auto& [name, b] : buffers_) ORKNN_TRY(memory.map(name, b.address, b.bytes));
    for (const FolderTensor& t : layer.tensors)
      if (is_input(layer, t)) ORKNN_TRY(load(t));
    ORKNN_TRY(run_streams(streams_, memory, ThreadPool::shared()));
    StoredRun result{.tasks = streams_.size()};
    for (const FolderTensor& t : layer.tensors)
      if (!t.file.empty() && !is_input(layer, t)) ORKNN_TRY(compare(t, layer.tolerance, result));
    return result;
  }

 private:
  Status read_chain() {
    for (const ordered_json& m : json_.at("memory")) {
      const std::string what = m.at("what").get<std::string>();
      PlacedTensor b{static_cast<uint32_t>(parse_address(m.at("address"))), {}};
      const auto size = m.at("size").get<uint64_t>();
      if (size > uint64_t{1} << 31) return bad_layer("'" + what + "' is too large");
      if (m.contains("file")) {
        ORKNN_TRY_ASSIGN(b.bytes, read_bytes(fs::path(folder_) / m.at("file").get<std::string>()));
        if (b.bytes.size() != size) return bad_layer("'" + what + "' and its file have different sizes");
      } else {
        b.bytes.resize(size);
      }
      buffers_[what] = std::move(b);
    }
    for (const ordered_json& job : json_.at("jobs")) {
      const auto at = buffers_.find("regcmd " + std::to_string(job.at("op").get<int64_t>()));
      if (at == buffers_.end()) return bad_layer("a job has no stream");
      for (const ordered_json& task : job.at("tasks"))
        ORKNN_TRY(add_stream(at->second, parse_address(task.at("regcmd_address")), task.at("regcmd_count").get<uint64_t>()));
    }
    return {};
  }
  Status add_stream(const PlacedTensor& buffer, uint64_t address, uint64_t words) {
    const uint64_t from = address - buffer.address;
    if (address < buffer.address || words > buffer.bytes.size() / 8 || from > buffer.bytes.size() - words * 8)
      return bad_layer("a task lies outside of its buffer");
    Stream s(words);
    std::memcpy(s.data(), buffer.bytes.data() + from, words * 8);
    streams_.push_back(std::move(s));
    return {};
  }

  Status read_single() {
    ORKNN_TRY_ASSIGN(const std::vector<std::byte> bytes, read_bytes(fs::path(folder_) / "regcmd.bin"));
    const ordered_json& memory = json_.at("memory");
    PlacedTensor all{memory.contains("regcmd") ? static_cast<uint32_t>(parse_address(memory.at("regcmd"))) : 0, bytes};
    if (json_.contains("tasks")) {
      for (const ordered_json& task : json_.at("tasks"))
        ORKNN_TRY(add_stream(all, parse_address(task.at("regcmd_address")), task.at("regcmd_count").get<uint64_t>()));
    } else {
      uint64_t words = bytes.size() / 8;  // a board's file is padded to 64 bytes
      const auto word = [&](uint64_t i) {
        uint64_t v;
        std::memcpy(&v, bytes.data() + i * 8, 8);
        return v;
      };
      while (words > 0 && word(words - 1) == 0) --words;
      ORKNN_TRY(add_stream(all, all.address, words));
    }
    for (const auto& [name, address] : memory.items()) {
      if (name == "regcmd") continue;
      PlacedTensor b{static_cast<uint32_t>(parse_address(address)), {}};
      if (name == "weights" || name == "bias") {
        ORKNN_TRY_ASSIGN(b.bytes, read_bytes(fs::path(folder_) / ("packed_" + name + ".bin")));
      } else if (fs::exists(fs::path(folder_) / (name + "_cube.bin"))) {
        ORKNN_TRY_ASSIGN(b.bytes, read_bytes(fs::path(folder_) / (name + "_cube.bin")));
      }
      buffers_[name] = std::move(b);
    }
    return {};
  }

  // The layer as described; folders that hold cubes are described by their cubes.
  Result<FolderLayer> described() {
    if (!fs::exists(fs::path(folder_) / "input_cube.bin")) {
      ORKNN_TRY_ASSIGN(FolderLayer layer, read_layer(folder_));
      if (!layer.is_chain) size_single(layer);
      return layer;
    }
    FolderLayer layer;
    const ordered_json& j = json_.at("layer");
    const Cube cube{j.at("height").get<int64_t>(), j.at("width").get<int64_t>(), j.at("channels").get<int64_t>(),
                    Precision::Int8};
    FolderStep step;
    step.output = 1;
    layer.steps.push_back(std::move(step));
    layer.tensors = {{"input", "input_cube.bin", cube}, {"output", "output_cube.bin", cube}};
    return layer;
  }
  // This form states no sizes.
  void size_single(const FolderLayer& layer) {
    const FolderStep& s = layer.steps.front();
    for (size_t i = 0; i < layer.tensors.size(); ++i) {
      int64_t bytes = layer.tensors[i].cube.bytes();
      if (const auto* conv = std::get_if<ConvLayer>(&s.layer))
        bytes = std::max(bytes, i == s.output ? conv->output_bytes() : i == s.input ? conv->input_bytes() : 0);
      buffers_[layer.tensors[i].id].bytes.resize(static_cast<size_t>(bytes));
    }
  }
  static bool is_input(const FolderLayer& layer, const FolderTensor& t) {
    return !t.file.empty() &&
           std::ranges::none_of(layer.steps, [&](const FolderStep& s) { return layer.tensors[s.output].id == t.id; });
  }
  PlacedTensor& buffer_of(const FolderTensor& t) { return buffers_[json_.contains("jobs") ? "tensor " + t.id : t.id]; }
  Status load(const FolderTensor& t) {
    if (t.file.ends_with(".bin")) return {};
    PlacedTensor& b = buffer_of(t);
    if (static_cast<int64_t>(b.bytes.size()) < t.cube.bytes()) return bad_layer("the buffer of tensor " + t.id + " is too small");
    ORKNN_TRY_ASSIGN(const ir::TensorData value, read_array(folder_, t.file, dtype_of_precision(t.cube.precision),
                                                            t.cube.height * t.cube.width * t.cube.channels));
    pack_cube(t.cube, t.order, value.data(), b.bytes, t.cube.precision == Precision::Int8 ? t.zero_point : 0);
    return {};
  }
  Status compare(const FolderTensor& t, double tolerance, StoredRun& result) {
    const int64_t count = t.cube.height * t.cube.width * t.cube.channels;
    const DType dtype = dtype_of_precision(t.cube.precision);
    ir::TensorData expected;
    if (t.file.ends_with(".bin")) {
      ORKNN_TRY_ASSIGN(const std::vector<std::byte> cube, read_bytes(fs::path(folder_) / t.file));
      if (static_cast<int64_t>(cube.size()) < t.cube.bytes()) return bad_layer("'" + t.file + "' is too small");
      expected = ir::TensorData::allocate(dtype, {count});
      unpack_cube(t.cube, t.order, cube, expected.mutable_data());
    } else {
      ORKNN_TRY_ASSIGN(expected, read_array(folder_, t.file, dtype, count));
    }
    ir::TensorData value = ir::TensorData::allocate(dtype, {count});
    unpack_cube(t.cube, t.order, buffer_of(t).bytes, value.mutable_data());
    const std::vector<double> a = ir::to_doubles(value.view()), b = ir::to_doubles(expected.view());
    result.elements += count;
    for (size_t i = 0; i < a.size(); ++i) {
      const double difference = std::abs(a[i] - b[i]);
      result.largest = std::max(result.largest, difference);
      result.different += !(difference <= tolerance);
    }
    return {};
  }

  std::string folder_;
  ordered_json json_;
  std::map<std::string, PlacedTensor> buffers_;
  std::vector<Stream> streams_;
};
}  // namespace

Result<EmitReport> emit_layer(const std::string& folder, const std::string& out, const EmitOptions& options) {
  std::error_code ignored;
  if (fs::equivalent(folder, out, ignored))
    return invalid_argument("the result would overwrite the described layer").hint("name another folder");
  ORKNN_TRY_ASSIGN(FolderLayer layer, read_layer(folder));
  return Emitter(folder, out, layer).run(options);
}

Result<StoredRun> run_stored_layer(const std::string& folder) {
  StoredLayer stored;
  ORKNN_TRY(stored.read(folder));
  return stored.run();
}

Result<std::string> disassemble_stored_layer(const std::string& folder) {
  StoredLayer stored;
  ORKNN_TRY(stored.read(folder));
  std::string text;
  for (size_t i = 0; i < stored.streams().size(); ++i) text += fmt::format("task {}\n{}", i, disassemble(stored.streams()[i]));
  return text;
}

}  // namespace orknn::toolkit
