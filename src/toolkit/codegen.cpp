#include "toolkit/codegen.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/folders.h"
#include "base/utf8.h"
#include "data/dataset.h"
#include "data/npy.h"
#include "format/rknn_file.h"
#include "ir/tensor_data.h"
#include "runtime/input_shapes.h"
#include "runtime/session.h"
#include "toolkit/codegen_texts.h"

namespace orknn::toolkit {
namespace {

namespace fs = std::filesystem;

// A text as a C++ literal.
std::string literal(std::string_view text) {
  std::string out = "\"";
  for (char c : to_utf8(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

// File names of a project hold nothing that a build tool could stumble over.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (char c : name) plain += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return plain.empty() || plain[0] == '.' ? "model" : plain;
}

std::string port_row(const runtime::PortInfo& port) {
  return fmt::format("{}, {}, {}", to_utf8(port.name), ir::to_string(port.dims), dtype_name(port.source_dtype));
}

std::string model_info(const format::Model& model, const runtime::Session& session, const std::string& file, bool has_arrays) {
  std::string ports;
  for (const auto* list : {&session.inputs(), &session.outputs()})
    for (const runtime::PortInfo& port : *list)
      ports += fmt::format("// {}: {}\n", list == &session.inputs() ? "input" : "output", printable(port_row(port)));
  std::replace(ports.begin(), ports.end(), '\\', '/');  // a backslash at the end of a comment would join the next line
  return fmt::format(
      "// What the toolkit knows of the model, made for {}.\n{}#pragma once\n\nstatic const char kModelFile[] = {};\n"
      "static const bool kHasShapeSets = {};  // built with dynamic_input\n"
      "static const bool kStoredArrays = {};  // in data/: inputs, and the outputs that the simulator computed\n",
      model.target_platform, ports, literal(file), runtime::has_shape_sets(model), has_arrays);
}

std::string readme(const format::Model& model, const runtime::Session& session) {
  std::string text = fmt::format("# rknn_app_demo: {} on {}\n\n| | name, shape, type in the source model |\n|---|---|\n",
                                 printable(to_utf8(model.name)), model.target_platform);
  for (const runtime::PortInfo& port : session.inputs()) text += fmt::format("| input | {} |\n", printable(port_row(port)));
  for (const runtime::PortInfo& port : session.outputs()) text += fmt::format("| output | {} |\n", printable(port_row(port)));
  return text + std::string(kProjectReadme);
}

Status write_text(const fs::path& path, std::string_view text) {
  return write_file_atomically(path.string(), [&](FileWriter& out) { return out.write(text); });
}

// 4-D arrays as the C API takes them.
ir::TensorData in_nhwc(const ir::TensorData& value, ir::Layout layout) {
  if (value.dims().size() != 4 || layout != ir::Layout::NCHW) return value;
  const ir::Dims& d = value.dims();
  ir::TensorData result = ir::TensorData::allocate(value.dtype(), {d[0], d[2], d[3], d[1]});
  const size_t element = dtype_bytes(value.dtype()), pixels = static_cast<size_t>(d[2] * d[3]),
               channels = static_cast<size_t>(d[1]);
  const auto* from = static_cast<const std::byte*>(value.data());
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (size_t n = 0; n < static_cast<size_t>(d[0]); ++n)
    for (size_t p = 0; p < pixels; ++p)
      for (size_t c = 0; c < channels; ++c, to += element)
        std::copy_n(from + ((n * channels + c) * pixels + p) * element, element, to);
  return result;
}

Result<std::vector<ir::TensorData>> read_inputs(const runtime::Session& session, const CodegenRequest& request,
                                                std::vector<ir::Layout>& layouts) {
  std::vector<data::ModelInput> described;
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    const runtime::PortInfo& port = session.inputs()[i];
    if (std::any_of(port.dims.begin(), port.dims.end(), [](int64_t d) { return d < 0; }))
      return unsupported("input '" + to_utf8(port.name) + "' has no fixed shape");
    const auto& swaps = request.swap_red_blue;
    const bool swap = !swaps.empty() && (swaps.size() == 1 ? swaps[0] : i < swaps.size() && swaps[i]);
    described.push_back({port.name, port.dims, port.layout, swap});
    layouts.push_back(port.layout);
  }
  ORKNN_TRY_ASSIGN(const data::Dataset sample, data::Dataset::of_files(request.inputs, described));
  return sample.sample(0);
}

// The inputs as the C API takes them, and what the simulator makes of them.
struct Arrays {
  std::vector<ir::TensorData> inputs, outputs;
};

Result<Arrays> run_once(runtime::Session& session, const CodegenRequest& request) {
  Arrays arrays;
  std::vector<ir::Layout> layouts;
  ORKNN_TRY_ASSIGN(const std::vector<ir::TensorData> values, read_inputs(session, request, layouts));
  for (size_t i = 0; i < values.size(); ++i) {
    runtime::InputData data;
    data.dtype = values[i].dtype();
    data.data = values[i].data();
    data.bytes = values[i].bytes();
    data.layout = layouts[i];
    ORKNN_TRY(session.set_input(i, data));
    arrays.inputs.push_back(in_nhwc(values[i], layouts[i]));
  }
  ORKNN_TRY(session.run());
  for (size_t i = 0; i < session.outputs().size(); ++i)
    arrays.outputs.push_back(ir::convert(session.output(i).view(), DType::Float32));
  return arrays;
}

Status write_arrays(const std::vector<ir::TensorData>& arrays, const fs::path& folder, std::string_view what) {
  for (size_t i = 0; i < arrays.size(); ++i)
    ORKNN_TRY(data::write_npy((folder / fmt::format("{}_{}.npy", what, i)).string(), arrays[i]));
  return {};
}
}  // namespace

Result<bool> generate_project(const std::shared_ptr<const format::Model>& model, const CodegenRequest& request) {
  std::error_code ignored;
  const fs::path folder = request.output_path;
  if (fs::exists(folder, ignored) && !request.overwrite) return false;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored))
    return invalid_argument("the output_path is a file, not a folder").model(request.output_path);
  ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> session, runtime::Session::open(model));
  const size_t inputs = session->inputs().size();
  if (!request.inputs.empty() && request.inputs.size() != inputs)
    return invalid_argument("codegen takes one file per input of the model")
        .expected(std::to_string(inputs))
        .found(std::to_string(request.inputs.size()));
  Arrays arrays;  // before anything is written: a folder that is there counts as made
  if (!request.inputs.empty()) {
    ORKNN_TRY_ASSIGN(arrays, run_once(*session, request));
  }
  for (const char* part : {"src", "model", "data"})
    if (part != std::string_view("data") || !request.inputs.empty()) ORKNN_TRY(make_folder((folder / part).string()));
  const std::string file = plain_name(model->name) + ".rknn";
  ORKNN_TRY(write_arrays(arrays.inputs, folder / "data", "input"));
  ORKNN_TRY(write_arrays(arrays.outputs, folder / "data", "output"));
  ORKNN_TRY(format::write_rknn(*model, (folder / "model" / file).string()));
  ORKNN_TRY(write_text(folder / "CMakeLists.txt", kProjectCMake));
  ORKNN_TRY(write_text(folder / "README.md", readme(*model, *session)));
  ORKNN_TRY(write_text(folder / "src" / "main.cpp", kProjectMain));
  ORKNN_TRY(write_text(folder / "src" / "npy.h", kProjectArrays));
  ORKNN_TRY(write_text(folder / "src" / "model_runner.h", kProjectRunnerHeader));
  ORKNN_TRY(write_text(folder / "src" / "model_runner.cpp", kProjectRunner));
  ORKNN_TRY(write_text(folder / "src" / "model_info.h", model_info(*model, *session, file, !request.inputs.empty())));
  return true;
}

}  // namespace orknn::toolkit
