#include "runtime/layer_dump.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/file_name.h"
#include "base/files.h"
#include "base/log.h"
#include "base/npy_header.h"
#include "base/threads.h"
#include "format/viewer_part.h"
#include "runtime/convert.h"

namespace orknn::runtime {
namespace {

// Where boards keep dumps; people who set no other place look there.
constexpr const char* kDefaultFolder = "/userdata/dumps";

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && std::atoi(text) != 0;
}

// The element type as it is spelt in file names.
std::string type_text(DType dtype) { return dtype == DType::Float32 ? "float" : std::string(dtype_name(dtype)); }

std::string dims_text(std::span<const int64_t> dims) {
  std::string text;
  for (int64_t d : dims) text += "_" + std::to_string(d);
  return text;
}

// Quantized and half values as float32 unless they are wanted as they are stored; indices and truth values stay what they are.
ir::TensorData dumped_value(const ir::Tensor& tensor, const ir::TensorView& value, bool stored) {
  const bool quantized = tensor.quant && !tensor.quant->scale.empty() && is_integer(value.dtype);
  const bool real = quantized || is_float(value.dtype);
  DType dtype = real && !stored ? DType::Float32 : value.dtype;
  if (npy_type_name(dtype).empty()) dtype = is_float(dtype) ? DType::Float32 : is_signed_int(dtype) ? DType::Int8 : DType::UInt8;
  ir::TensorData out = ir::TensorData::allocate(dtype, ir::Dims(value.dims.begin(), value.dims.end()));
  if (dtype == value.dtype)
    std::memcpy(out.mutable_data(), value.data, value.bytes());
  else
    convert_output(tensor, value, dtype, out.mutable_data(), ThreadPool::shared());
  return out;
}

Status write_npy_file(const std::string& path, const ir::TensorData& value) {
  return write_file_atomically(path, [&](FileWriter& out) -> Status {
    ORKNN_TRY(out.write(npy_header(value.dtype(), value.dims())));
    return out.write(std::span(static_cast<const std::byte*>(value.data()), value.bytes()));
  });
}

template <class T>
void append_number(std::string& text, T value) {
  char buffer[64];
  const auto end = [&] {
    if constexpr (std::is_floating_point_v<T>)
      return std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    else
      return std::to_chars(buffer, buffer + sizeof buffer, static_cast<int64_t>(value)).ptr;
  }();
  text.append(buffer, end);
  text += '\n';
}

// One number per line, in row-major order.
Status write_text_file(const std::string& path, const ir::TensorData& value) {
  return write_file_atomically(path, [&](FileWriter& out) -> Status {
    constexpr size_t kPiece = 1 << 16;
    std::string text;
    return visit_dtype(value.dtype(), [&]<class T>(TypeTag<T>) -> Status {
      for (const T& v : value.values<T>()) {
        if constexpr (std::is_same_v<T, uint64_t>)
          text += std::to_string(v) + "\n";
        else if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
          append_number(text, v);
        else
          append_number(text, static_cast<float>(v));
        if (text.size() < kPiece) continue;
        ORKNN_TRY(out.write(text));
        text.clear();
      }
      return out.write(text);
    });
  });
}
}  // namespace

std::optional<DumpOptions> runtime_dump(int log_level) {
  if (log_level < 5) return std::nullopt;
  const char* folder = std::getenv("RKNN_DUMP_DIR");
  DumpOptions options;
  options.folder = folder && *folder ? folder : kDefaultFolder;
  options.stored_types = is_set("RKNN_DUMP_QUANT");
  options.as_text = log_level >= 6;
  return options;
}

std::optional<DumpOptions> toolkit1_dump() {
  if (!is_set("NN_LAYER_DUMP")) return std::nullopt;
  DumpOptions options;
  options.form = DumpOptions::Form::Toolkit1;
  options.folder = ".";
  return options;
}

LayerDump::LayerDump(const format::Program& program, DumpOptions options) : program_(program), options_(std::move(options)) {
  size_t id = 0;
  for (const format::Port& port : program.inputs)
    layers_[port.tensor.index] = {id++, 0, "InputOperator", program.graph.tensor(port.tensor).name};
  for (const format::Task& task : program.tasks) {
    const ir::Node& node = program.graph.node(task.node);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i]) layers_[node.outputs[i].index] = {id, i, format::viewer_node_type(node), node.name};
    ++id;
  }
}

std::string LayerDump::file_stem(const Layer& layer, const ir::Tensor& tensor, const ir::TensorData& value) {
  std::string stem;
  if (options_.form == DumpOptions::Form::Toolkit1) {
    stem = file_name_for(layer.name) + "_" + std::to_string(layer.id) + "_out" + std::to_string(layer.output) +
           (value.dims().size() == 4 ? "_nchw" : "_nd") + dims_text(value.dims());
  } else {
    const std::string id = std::to_string(layer.id);
    stem = std::string(id.size() < 3 ? 3 - id.size() : 0, '0') + id + "_" + file_name_for(layer.type) + "_" +
           file_name_for(tensor.name) + "_shape" + dims_text(value.dims()) + "_" + type_text(value.dtype());
  }
  // Names of two results of a layer may differ in nothing that a file name can hold.
  std::string unique = stem;
  for (int i = 1; !used_.insert(unique).second; ++i) unique = stem + "_" + std::to_string(i);
  return unique;
}

void LayerDump::write(ir::TensorId id, const ir::TensorView& value, bool as_given) {
  const auto layer = layers_.find(id.index);
  if (layer == layers_.end() || !value.data) return;
  const ir::Tensor& tensor = program_.graph.tensor(id);
  const ir::TensorData dumped = dumped_value(tensor, value, options_.stored_types || as_given);
  const std::string path = options_.folder + "/" + file_stem(layer->second, tensor, dumped);
  const auto report = [](const char* kind, const std::string& file, const Status& written) {
    log(LogLevel::Trace, "", std::string("dump ") + kind + " tensor to: " + file);
    if (!written) log(LogLevel::Error, "", "failed open dump path: " + file + " (" + written.to_string() + ")");
  };
  if (options_.form == DumpOptions::Form::Toolkit1)
    return report("text", path + ".tensor", write_text_file(path + ".tensor", dumped));
  report("npy", path + ".npy", write_npy_file(path + ".npy", dumped));
  if (options_.as_text) report("text", path + ".txt", write_text_file(path + ".txt", dumped));
}

}  // namespace orknn::runtime
