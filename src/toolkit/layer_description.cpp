#include "toolkit/layer_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "base/files.h"
#include "base/half.h"
#include "data/npy.h"
#include "platform/platforms.h"
#include "silicon/network.h"
#include "toolkit/json_document.h"
#include "toolkit/layer_fields.h"

namespace orknn::toolkit {
using namespace silicon;

Status bad_layer(const std::string& problem) { return invalid_argument("layer.json: " + problem); }

Status check_chip(const nlohmann::ordered_json& layer) {
  const Fields fields(layer);
  if (!fields.has("chip")) return {};
  const std::string chip = fields.text("chip");
  if (const platform::Platform* found = platform::find(chip); found && knows_registers_of(*found)) return {};
  std::string known;
  for (const platform::Platform& p : platform::all())
    if (knows_registers_of(p)) known += (known.empty() ? "" : ", ") + std::string(p.name);
  return unsupported("layer.json: 'chip' is one without recipes and a model")
      .expected(known)
      .found(chip)
      .hint("describe the layer for the expected chip: streams of one chip do not run on another");
}

Result<nlohmann::ordered_json> read_json_object(const std::string& path) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  auto json = parse_json_object({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!json) return Status(json.status()).model(path);
  return json;
}

Result<ir::TensorData> read_array(const std::string& folder, const std::string& file, DType dtype, const ir::Dims& dims) {
  const auto without_ones = [](ir::Dims d) {
    std::erase(d, 1);
    return d;
  };
  ORKNN_TRY_ASSIGN(ir::TensorData value, data::read_npy((std::filesystem::path(folder) / file).string()));
  if (value.dtype() != dtype || without_ones(value.dims()) != without_ones(dims))
    return invalid_argument("'" + file + "' does not fit layer.json")
        .expected(fmt::format("{} of {}", ir::to_string(dims), dtype_name(dtype)))
        .found(fmt::format("{} of {}", ir::to_string(value.dims()), dtype_name(value.dtype())));
  return value;
}

ir::Dims FolderTensor::dims() const {
  if (is_flat) return {count()};
  if (order == TensorOrder::Hwc) return {cube.height, cube.width, cube.channels};
  return {cube.channels, cube.height, cube.width};
}

bool FolderLayer::is_computed(size_t tensor) const {
  return std::ranges::any_of(steps, [&](const FolderStep& s) { return s.output == tensor; });
}

int64_t bytes_in_memory(const FolderLayer& layer, size_t i) {
  int64_t bytes = layer.tensors[i].cube.bytes();
  for (const FolderStep& s : layer.steps)
    if (const auto* conv = std::get_if<ConvLayer>(&s.layer)) {
      if (s.input == i) bytes = std::max(bytes, conv->input_bytes());
      if (s.output == i || s.operand == i) bytes = std::max(bytes, conv->output_bytes());
    }
  return bytes;
}

std::vector<uint16_t> table_ramp(int64_t elements) {
  constexpr double kReach = 6.25;  // inside of the tables
  std::vector<uint16_t> ramp;
  for (int64_t i = 0; i < elements; ++i)
    ramp.push_back(
        float_to_half(static_cast<float>((2.0 * (static_cast<double>(i) + 0.5) / static_cast<double>(elements) - 1) * kReach)));
  return ramp;
}

Status load_tensor(const std::string& folder, const FolderTensor& t, std::vector<std::byte>& memory) {
  if (static_cast<int64_t>(memory.size()) < t.cube.bytes()) return bad_layer("the buffer of tensor " + t.id + " is too small");
  if (std::error_code ignored; t.is_flat && !std::filesystem::exists(std::filesystem::path(folder) / t.file, ignored)) {
    const std::vector<uint16_t> ramp = table_ramp(t.count());
    std::memcpy(memory.data(), ramp.data(), ramp.size() * sizeof(uint16_t));
    return {};
  }
  ORKNN_TRY_ASSIGN(const ir::TensorData value, read_array(folder, t.file, dtype_of_precision(t.cube.precision), t.dims()));
  pack_cube(t.cube, t.order, value.data(), memory, t.cube.precision == Precision::Int8 ? t.zero_point : 0);
  return {};
}

namespace {
constexpr int64_t kLargestWindow = 1024;  // kernel, stride, dilation, padding

// As many numbers as there are defaults, which hold where the field is missing.
std::vector<int64_t> window_numbers(const Fields& f, const char* key, std::vector<int64_t> otherwise) {
  if (!f.has(key)) return otherwise;
  std::vector<int64_t> values = f.integers(key);
  if (values.size() != otherwise.size())
    throw std::invalid_argument(fmt::format("'{}' has {} numbers, expected {}", key, values.size(), otherwise.size()));
  for (int64_t v : values)
    if (v < 0 || v > kLargestWindow)
      throw std::invalid_argument(fmt::format("'{}' holds {}, expected 0 to {}", key, v, kLargestWindow));
  return values;
}

Window2d window_of(const Fields& f, const char* pad_key) {
  const auto kernel = window_numbers(f, "kernel", {1, 1}), stride = window_numbers(f, "stride", {1, 1}),
             dilation = window_numbers(f, "dilation", {1, 1}), pad = window_numbers(f, pad_key, {0, 0, 0, 0});
  return {.height = kernel[0],
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

void read_activation(const Fields& op, double accumulator_scale, ConvLayer& layer) {
  const std::string name = op.text("activation", "none");
  const bool is_none = name == "none" || name == "linear", is_clip = name == "clip" || name == "relux";
  for (const char* key : {"ceiling", "max", "ceiling_accumulator"})
    if (op.has(key) && (is_none || (!is_clip && key != std::string_view("ceiling_accumulator"))))
      op.refuse(key, "no such field with the activation '" + name + "'");
  if (is_none) return;
  layer.relu = true;
  if (name == "relu6")
    layer.ceiling = ceiling_of(6, accumulator_scale);
  else if (is_clip)
    layer.ceiling = ceiling_of(op.number(op.has("ceiling") ? "ceiling" : "max"), accumulator_scale);
  else if (name != "relu")
    throw std::invalid_argument("unknown activation '" + name + "'");
  if (op.has("ceiling_accumulator")) layer.ceiling = op.integer("ceiling_accumulator");
}

// The rows of a product are pixels.
Status check_product_rows(const Fields& op, const Cube& input) {
  const int64_t rows = input.height * input.width;
  if (const std::string kind = op.text("kind"); (kind != "matmul" && kind != "fully_connected") || rows == 1 || rows % 4 == 0)
    return {};
  return unsupported("layer.json: other numbers of rows of a product come out wrong on boards")
      .expected("1 or a multiple of 4")
      .found(std::to_string(rows))
      .hint("add rows of zeros, and leave out their results");
}

Result<PoolTask::Method> pool_method(const std::string& name) {
  if (name == "avg" || name == "average") return PoolTask::Method::Average;
  if (name == "max") return PoolTask::Method::Max;
  if (name == "min") return PoolTask::Method::Min;
  return unsupported("layer.json: unknown pooling method '" + name + "'");
}

// Reads the form with "tensors" and "ops": int8 layers, rows, columns, channels.
class ChainReader {
 public:
  ChainReader(const std::string& folder, FolderLayer& layer) : folder_(folder), layer_(layer), json_(layer.json) {}

  Status run() {
    json_.refuse_dropped("a chain", {"per_channel"});
    for (const Fields& t : json_.objects("tensors")) read_tensor(t);
    const std::vector<Fields> ops = json_.objects("ops");
    for (const Fields& op : ops)
      if (!computed_.insert(tensor_of(op, "output")).second) op.refuse("output", "a tensor that no other operation computes");
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string kind = ops[i].text("kind");
      if (kind == "conv" || kind == "depthwise" || kind == "fully_connected" || kind == "matmul")
        ORKNN_TRY(read_conv(i, ops[i]));
      else if (kind == "add")
        ORKNN_TRY(read_add(i, ops[i]));
      else if (kind == "pool")
        ORKNN_TRY(read_pool(i, ops[i]));
      else
        return unsupported("layer.json: unknown operation '" + kind + "'");
      done_.insert(tensor_of(ops[i], "output"));
    }
    for (const FolderStep& s : layer_.steps)
      if (layer_.tensors[s.output].file.empty())
        return bad_layer("tensor " + layer_.tensors[s.output].id + " is virtual, and no addition is fused with what computes it");
    return {};
  }

 private:
  void read_tensor(const Fields& t) {
    t.refuse_dropped("a tensor", {"max", "min", "zero_point"});
    if (t.has("dtype") && t.text("dtype") != "i8" && t.text("dtype") != "int8") t.refuse("dtype", "i8");
    const int64_t id = t.integer("id");
    FolderTensor tensor;
    tensor.id = std::to_string(id);
    tensor.cube = {t.extent("height"), t.extent("width"), t.extent("channels"), Precision::Int8};
    tensor.zero_point = t.integer("zero_point");
    if (tensor.zero_point < INT8_MIN || tensor.zero_point > INT8_MAX)
      throw std::invalid_argument(fmt::format("the zero point of tensor {} is {}, expected -128 to 127", id, tensor.zero_point));
    if (!t.flag("virtual", false)) tensor.file = t.has("file") ? t.file("file") : "tensor_" + tensor.id + ".npy";
    if (!position_.emplace(id, layer_.tensors.size()).second)
      throw std::invalid_argument(fmt::format("two tensors have the id {}", id));
    scales_.push_back(t.exact_float("scale", 1.0f));
    layer_.tensors.push_back(std::move(tensor));
  }
  size_t tensor_of(const Fields& op, const char* key) const {
    const auto at = position_.find(op.integer(key));
    if (at == position_.end()) throw std::invalid_argument(fmt::format("'{}' names no tensor: {}", key, op.integer(key)));
    return at->second;
  }
  // A tensor in memory whose values are there when the operation runs.
  size_t source_of(const Fields& op, const char* key) const {
    const size_t tensor = tensor_of(op, key);
    if (computed_.contains(tensor) && !done_.contains(tensor))
      op.refuse(key, "a tensor of the folder or of an operation before this one");
    if (layer_.tensors[tensor].file.empty()) op.refuse(key, "a tensor that is not virtual");
    return tensor;
  }

  Status read_conv(size_t index, const Fields& op) {
    op.refuse_dropped("a convolution",
                      {"activation", "bias", "ceiling", "ceiling_accumulator", "dilation", "kernel", "max", "multiplier",
                       "pad_top_bottom_left_right", "per_channel", "shift", "stride", "weights", "weights_zero_point"});
    FolderStep step;
    step.op = index;
    step.input = source_of(op, "input");
    step.output = tensor_of(op, "output");
    const FolderTensor &in = layer_.tensors[step.input], &out = layer_.tensors[step.output];
    ORKNN_TRY(check_product_rows(op, in.cube));
    ConvLayer l;
    l.depthwise = op.text("kind") == "depthwise";
    set_geometry(op, in.cube, out.cube, l);
    l.kernels = out.cube.channels;
    l.channels = in.cube.channels;
    l.in_zero_point = in.zero_point;
    l.out_zero_point = out.zero_point;
    l.weight_zero_point = op.integer("weights_zero_point", 0);
    accumulator_scale_ = scales_[step.input] * op.exact_float("weights_scale", 1.0f);
    read_output_scale(op, accumulator_scale_ / scales_[step.output], l);
    if (const Fields& owner = op.has("per_channel") ? op : json_; owner.has("per_channel"))
      ORKNN_TRY(read_channels(owner.object("per_channel"), l));
    read_activation(op, accumulator_scale_, l);
    ORKNN_TRY_ASSIGN(step.weights, read_array(folder_, op.file("weights"), DType::Int8,
                                              {l.depthwise ? 1 : l.kernels, l.window.height, l.window.width, l.channels}));
    ORKNN_TRY_ASSIGN(const ir::TensorData bias, read_array(folder_, op.file("bias"), DType::Int32, {l.kernels}));
    step.bias.assign(bias.values<int32_t>().begin(), bias.values<int32_t>().end());
    step.layer = std::move(l);
    layer_.steps.push_back(std::move(step));
    return {};
  }

  Status read_channels(const Fields& channels, ConvLayer& l) const {
    channels.refuse_dropped("scales per channel",
                            {"activation", "ceiling", "ceiling_accumulator", "channel_multipliers", "channel_shift", "max"});
    for (const int64_t multiplier : channels.integers("channel_multipliers")) {
      if (multiplier < INT16_MIN || multiplier > INT16_MAX)
        return bad_layer("a multiplier of a channel does not fit 16 bits").found(std::to_string(multiplier));
      l.channel_multipliers.push_back(static_cast<int32_t>(multiplier));
    }
    l.channel_shift = channels.integer("channel_shift");
    if (static_cast<int64_t>(l.channel_multipliers.size()) != l.kernels)
      return bad_layer("there is not one multiplier per channel")
          .expected(std::to_string(l.kernels))
          .found(std::to_string(l.channel_multipliers.size()));
    read_activation(channels, accumulator_scale_, l);
    return {};
  }

  template <class Layer>
  static void set_geometry(const Fields& op, const Cube& in, const Cube& out, Layer& l) {
    l.height = in.height;
    l.width = in.width;
    l.out_height = out.height;
    l.out_width = out.width;
    l.window = window_of(op, "pad_top_bottom_left_right");
  }

  static void read_output_scale(const Fields& op, float factor, ConvLayer& l) {
    const ScaleShift split = split_output_scale(factor);
    l.out_multiplier = op.integer("multiplier", split.scale);
    l.out_shift = op.integer("shift", split.shift);
  }

  // Fused into the convolution that makes `a`, if that never reaches memory; else a convolution by one copies `a` and `b` is
  // added.
  Status read_add(size_t index, const Fields& op) {
    op.refuse_dropped("an addition", {"a", "activation", "b", "ceiling", "ceiling_accumulator", "max", "multiplier",
                                      "operand_multiplier", "operand_shift", "shift"});
    const size_t a = tensor_of(op, "a"), b = source_of(op, "b"), out = tensor_of(op, "output");
    for (const auto& [key, tensor] : {std::pair("b", b), std::pair("output", out)})
      if (!same_extents(layer_.tensors[a].cube, layer_.tensors[tensor].cube)) op.refuse(key, "a tensor of the shape of 'a'");
    if (layer_.tensors[a].file.empty()) {
      if (!ends_in_convolution(a)) return bad_layer("an addition follows the convolution that it is fused with");
    } else {
      ORKNN_TRY(add_copy(index, source_of(op, "a"), out));
    }
    FolderStep& step = layer_.steps.back();
    auto& l = std::get<ConvLayer>(step.layer);
    // The unit has a stage for ReLU on either side of the addition; this recipe uses one of them.
    if (l.relu && op.text("activation", "none") != "none" && op.text("activation") != "linear")
      op.refuse("activation", "none, as the convolution before has one");
    l.relu_first = l.relu;
    const ScaleShift split = split_operand_scale(scales_[b] / accumulator_scale_);
    ElementWise e;
    e.zero_point = layer_.tensors[b].zero_point;
    e.multiplier = op.integer("operand_multiplier", split.scale);
    e.shift = op.integer("operand_shift", split.shift);
    l.element_wise = e;
    l.out_zero_point = layer_.tensors[out].zero_point;
    read_output_scale(op, accumulator_scale_ / scales_[out], l);
    read_activation(op, accumulator_scale_, l);
    step.output = out;
    step.operand = b;
    return {};
  }

  static bool same_extents(const Cube& x, const Cube& y) {
    return x.height == y.height && x.width == y.width && x.channels == y.channels;
  }
  // True when the last step is a convolution that makes this tensor and nothing is added to it yet.
  bool ends_in_convolution(size_t tensor) const {
    if (layer_.steps.empty() || layer_.steps.back().output != tensor) return false;
    const auto* conv = std::get_if<ConvLayer>(&layer_.steps.back().layer);
    return conv && !conv->element_wise;
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

  Status read_pool(size_t index, const Fields& op) {
    op.refuse_dropped("a pool", {"dilation", "kernel", "method", "pad_top_bottom_left_right", "stride"});
    FolderStep step;
    step.op = index;
    step.input = source_of(op, "input");
    step.output = tensor_of(op, "output");
    const FolderTensor &in = layer_.tensors[step.input], &out = layer_.tensors[step.output];
    const auto differs = [&](const char* field, const auto& expected, const auto& found) {
      return bad_layer(fmt::format("'tensors[{}].{}' differs from that of the pool's input", step.output, field))
          .expected(fmt::format("{}", expected))
          .found(fmt::format("{}", found));
    };
    if (in.zero_point != out.zero_point) return differs("zero_point", in.zero_point, out.zero_point);
    if (scales_[step.input] != scales_[step.output]) return differs("scale", scales_[step.input], scales_[step.output]);
    if (in.cube.channels != out.cube.channels) return differs("channels", in.cube.channels, out.cube.channels);
    PoolLayer l;
    ORKNN_TRY_ASSIGN(l.method, pool_method(op.text("method")));
    set_geometry(op, in.cube, out.cube, l);
    l.channels = in.cube.channels;
    l.zero_point = in.zero_point;
    step.layer = l;
    layer_.steps.push_back(std::move(step));
    return {};
  }

  const std::string& folder_;
  FolderLayer& layer_;
  const Fields json_;
  std::map<int64_t, size_t> position_;
  std::set<size_t> computed_, done_;  // tensors: by any operation, by those that are read
  std::vector<float> scales_;         // of tensors
  float accumulator_scale_ = 1.0f;    // of the last convolution
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
  SingleReader(const std::string& folder, FolderLayer& layer)
      : folder_(folder), layer_(layer), fields_(Fields(layer.json).object("layer")) {}

  Status run() {
    const std::string kind = fields_.text("kind");
    Fields(layer_.json).refuse_dropped("a folder with a single 'layer'", {});
    if (kind == "pool") return read_pool();
    if (kind == "lut") return read_table();
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
    l.height = fields_.extent("in_height");
    l.width = fields_.extent("in_width");
    l.out_height = fields_.extent("out_height");
    l.out_width = fields_.extent("out_width");
    l.window = window_of(fields_, "pad");
  }
  // Results have the type of the operands, unless the layer converts.
  void refuse_conversion() const {
    if (const std::string dtype = fields_.text("dtype", "f16"); fields_.text("out_dtype", dtype.c_str()) != dtype)
      fields_.refuse("out_dtype", dtype);
  }
  Status read_conv(bool depthwise) {
    fields_.refuse_dropped("a single convolution", {"dilation", "ew", "kernel", "pad", "stride"});
    ConvLayer l;
    set_geometry(l);
    l.depthwise = depthwise;
    l.has_bias = false;
    l.channels = fields_.extent("in_channels");
    l.kernels = fields_.extent("out_channels");
    ORKNN_TRY_ASSIGN(l.in, precision_of(fields_.text("dtype")));
    ORKNN_TRY_ASSIGN(l.out, precision_of(fields_.text(fields_.has("out_dtype") ? "out_dtype" : "dtype")));
    const bool widens = (l.in == Precision::Int8 && l.out == Precision::Int32) ||
                        (l.in == Precision::Half && (l.out == Precision::Half || l.out == Precision::Float));
    if (!widens) return unsupported("layer.json: there is no recipe for these types of input and output");
    ORKNN_TRY(check_product_rows(fields_, l.input()));
    FolderStep step;
    add_tensor("input", l.input());
    add_tensor("output", l.output());
    step.output = 1;
    if (fields_.has("ew")) {
      ElementWise e;
      const std::string name = fields_.text("ew");
      using enum ElementWise::Operation;
      const std::map<std::string, ElementWise::Operation> operations{{"add", Add}, {"max", Max}, {"min", Min}, {"mul", Multiply}};
      if (!operations.contains(name)) return unsupported("layer.json: unknown element-wise operation '" + name + "'");
      e.operation = operations.at(name);
      l.element_wise = e;
      step.operand = 2;
      add_tensor("operand", l.output());
    }
    const int64_t kernels = depthwise ? 1 : l.kernels;
    ORKNN_TRY_ASSIGN(const ir::TensorData weights, read_array(folder_, "weights.npy", dtype_of_precision(l.in),
                                                              {kernels, l.channels, l.window.height, l.window.width}));
    step.weights = channels_last(weights, kernels, l.channels, l.window.height * l.window.width);
    step.layer = std::move(l);
    layer_.steps.push_back(std::move(step));
    return {};
  }
  Status read_pool() {
    fields_.refuse_dropped("a pool", {"dilation", "kernel", "method", "pad", "stride", "zero_point"});
    refuse_conversion();
    PoolLayer l;
    set_geometry(l);
    l.channels = fields_.extent("channels");
    l.zero_point = fields_.integer("zero_point", 0);
    ORKNN_TRY_ASSIGN(l.method, pool_method(fields_.text("method")));
    ORKNN_TRY_ASSIGN(l.precision, precision_of(fields_.text("dtype")));
    add_tensor("input", l.input());
    add_tensor("output", l.output());
    FolderStep step;
    step.output = 1;
    step.layer = l;
    layer_.steps.push_back(std::move(step));
    return {};
  }
  // Elements one after the other: pixels of eight channels.
  Status read_table() {
    fields_.refuse_dropped("a function", {"function"});
    refuse_conversion();
    const auto function = fields_.text("function");
    const int64_t elements = fields_.extent("elements");
    if (fields_.text("dtype", "f16") != "f16") return unsupported("layer.json: tables have a recipe for f16 only");
    const std::optional<TableLayer> table = table_of_function(function, elements);
    if (!table) return unsupported("layer.json: there is no table for the function '" + function + "'");
    for (const char* name : {"input", "output"}) {
      add_tensor(name, {1, elements / 8, 8, Precision::Half});
      layer_.tensors.back().order = TensorOrder::Hwc;
      layer_.tensors.back().is_flat = true;
    }
    FolderStep step;
    step.output = 1;
    step.layer = *table;
    layer_.steps.push_back(std::move(step));
    return {};
  }
  const std::string& folder_;
  FolderLayer& layer_;
  const Fields fields_;
};

}  // namespace

Result<FolderLayer> read_layer(const std::string& folder) {
  FolderLayer layer;
  ORKNN_TRY_ASSIGN(layer.json, read_json_object((std::filesystem::path(folder) / "layer.json").string()));
  try {
    ORKNN_TRY(check_chip(layer.json));
    const Fields fields(layer.json);
    if (fields.has("tolerance") && layer.json.at("tolerance") != "exact") layer.tolerance = fields.number("tolerance");
    layer.is_chain = fields.has("ops");
    if (!layer.is_chain && !fields.has("layer")) return bad_layer("neither 'ops' nor 'layer' is there");
    if (layer.is_chain)
      ORKNN_TRY(ChainReader(folder, layer).run());
    else
      ORKNN_TRY(SingleReader(folder, layer).run());
  } catch (const std::invalid_argument& e) {
    return bad_layer(e.what());
  }
  return layer;
}

}  // namespace orknn::toolkit
