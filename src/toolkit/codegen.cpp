#include "toolkit/codegen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/folders.h"
#include "base/refusal.h"
#include "base/utf8.h"
#include "data/dataset.h"
#include "data/npy.h"
#include "data/picture.h"
#include "format/model_facts.h"
#include "format/rknn_file.h"
#include "ir/tensor_data.h"
#include "runtime/session.h"
#include "toolkit/codegen_texts.h"
#include "toolkit/shape_sets.h"

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

struct PortRow {
  const char* side;
  std::string text;  // name, the shapes of all sets, type
};

std::vector<PortRow> port_rows(const runtime::Session& session) {
  std::vector<PortRow> rows;
  for (const char* side : {"input", "output"}) {
    std::vector<std::vector<runtime::PortInfo>> sets;
    for (size_t s = 0; s < session.model().programs.size(); ++s)
      sets.push_back(side == std::string_view("input") ? session.inputs_of_program(s) : session.outputs_of_program(s));
    for (size_t i = 0; i < sets[0].size(); ++i) {
      std::vector<std::string> shapes;
      for (const std::vector<runtime::PortInfo>& ports : sets) shapes.push_back(ir::to_string(ports[i].dims));
      const runtime::PortInfo& port = sets[0][i];
      rows.push_back({side, printable(fmt::format("{}, {}, {}", to_utf8(port.name), fmt::join(shapes, " or "),
                                                  dtype_name(port.source_dtype)))});
    }
  }
  return rows;
}

std::string model_info(const runtime::Session& session, const std::string& file, bool has_arrays) {
  const format::Model& model = session.model();
  std::string ports;
  for (const PortRow& row : port_rows(session)) ports += fmt::format("// {}: {}\n", row.side, row.text);
  std::replace(ports.begin(), ports.end(), '\\', '/');  // a backslash at the end of a comment would join the next line
  return fmt::format(
      "// What the toolkit knows of the model, made for {}.\n{}#pragma once\n\nstatic const char kModelFile[] = {};\n"
      "static const bool kHasShapeSets = {};  // built with dynamic_input\n"
      "static const bool kStoredArrays = {};  // in data/: inputs, and the outputs that the simulator computed\n",
      model.target_platform, ports, literal(file), format::has_shape_sets(model), has_arrays);
}

std::string readme(const runtime::Session& session) {
  const format::Model& model = session.model();
  std::string text = fmt::format("# rknn_app_demo: {} on {}\n\n| | name, shape, type in the source model |\n|---|---|\n",
                                 printable(to_utf8(model.name)), model.target_platform);
  for (const PortRow& row : port_rows(session)) text += fmt::format("| {} | {} |\n", row.side, row.text);
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

Result<std::vector<data::ModelInput>> inputs_of_set(const runtime::Session& session, size_t set, const CodegenRequest& request) {
  std::vector<data::ModelInput> inputs;
  for (const runtime::PortInfo& port : session.inputs_of_program(set)) {
    if (std::any_of(port.dims.begin(), port.dims.end(), [](int64_t d) { return d < 0; }))
      return unsupported("input '" + to_utf8(port.name) + "' has no fixed shape");
    const auto& swaps = request.swap_red_blue;
    const size_t i = inputs.size();
    const bool swap = !swaps.empty() && (swaps.size() == 1 ? swaps[0] : i < swaps.size() && swaps[i]);
    inputs.push_back({port.name, port.dims, port.layout, swap});
  }
  return inputs;
}

// The model's shape sets as they are tried: the smallest first for arrays, because one that fits a small batch is repeated for a
// larger one; pictures fit every set and get the largest, which is the first program.
Result<std::vector<size_t>> sets_to_try(const runtime::Session& session, const CodegenRequest& request) {
  std::vector<std::pair<int64_t, size_t>> sets;  // elements of the arrays
  for (size_t s = 0; s < session.model().programs.size(); ++s) sets.emplace_back(0, s);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    ORKNN_TRY_ASSIGN(const bool is_picture, data::is_picture_file(request.inputs[i]));
    if (is_picture) continue;
    for (auto& [elements, s] : sets) elements += ir::element_count(session.inputs_of_program(s)[i].dims);
  }
  std::ranges::sort(sets);
  std::vector<size_t> order;
  for (const auto& [elements, s] : sets) order.push_back(s);
  return order;
}

// Chooses the shape set that the files fit.
Result<std::vector<ir::TensorData>> read_inputs(runtime::Session& session, const CodegenRequest& request) {
  ORKNN_TRY_ASSIGN(const std::vector<size_t> order, sets_to_try(session, request));
  Status refused;
  std::string shapes;
  for (const size_t set : order) {
    ORKNN_TRY_ASSIGN(const std::vector<data::ModelInput> inputs, inputs_of_set(session, set, request));
    ORKNN_TRY_ASSIGN(const data::Dataset sample, data::Dataset::of_files(request.inputs, inputs));
    if (Result<std::vector<ir::TensorData>> values = sample.sample(0)) {
      ORKNN_TRY(session.choose_program(set));
      return values;
    } else if (!is_refusal(values.status())) {
      return values.status();
    } else if (set == 0) {
      refused = std::move(values).status();
    }
    std::vector<ir::Dims> dims;
    for (const data::ModelInput& input : inputs) dims.push_back(input.dims);
    shapes += (shapes.empty() ? "" : "; ") + to_text(dims);
  }
  if (order.size() > 1) refused.hint("the inputs have the shapes of one set: " + shapes);
  return refused;
}

// The inputs as the C API takes them, and what the simulator makes of them.
struct Arrays {
  std::vector<ir::TensorData> inputs, outputs;
};

Result<Arrays> run_once(runtime::Session& session, const CodegenRequest& request) {
  Arrays arrays;
  ORKNN_TRY_ASSIGN(const std::vector<ir::TensorData> values, read_inputs(session, request));
  for (size_t i = 0; i < values.size(); ++i) {
    runtime::InputData data;
    data.dtype = values[i].dtype();
    data.data = values[i].data();
    data.bytes = values[i].bytes();
    data.layout = session.inputs()[i].layout;
    ORKNN_TRY(session.set_input(i, data));
    arrays.inputs.push_back(in_nhwc(values[i], data.layout));
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
  ORKNN_TRY(write_text(folder / "README.md", readme(*session)));
  ORKNN_TRY(write_text(folder / "src" / "main.cpp", kProjectMain));
  ORKNN_TRY(write_text(folder / "src" / "npy.h", kProjectArrays));
  ORKNN_TRY(write_text(folder / "src" / "model_runner.h", kProjectRunnerHeader));
  ORKNN_TRY(write_text(folder / "src" / "model_runner.cpp", kProjectRunner));
  ORKNN_TRY(write_text(folder / "src" / "model_info.h", model_info(*session, file, !request.inputs.empty())));
  return true;
}

}  // namespace orknn::toolkit
