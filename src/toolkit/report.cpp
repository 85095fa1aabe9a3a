#include "toolkit/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <map>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "format/model_facts.h"
#include "format/viewer_part.h"
#include "runtime/perf_report.h"
#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {
using nlohmann::ordered_json;
using Align = Table::Align;

std::string_view device_name(format::Device d) {
  switch (d) {
    case format::Device::Npu: return "NPU";
    case format::Device::Custom: return "custom";
    case format::Device::Gpu: return "GPU";
    case format::Device::Cpu: break;
  }
  return "CPU";
}

std::string_view place_name(format::Buffer::Place p) {
  switch (p) {
    case format::Buffer::Place::Arena: return "arena";
    case format::Buffer::Place::External: return "external";
    case format::Buffer::Place::Weights: return "weights";
    case format::Buffer::Place::None: break;
  }
  return "run time";
}

std::string_view layout_name(ir::Layout l) { return l == ir::Layout::NHWC ? "NHWC" : l == ir::Layout::NCHW ? "NCHW" : ""; }

std::string shape_of(const ir::Tensor& t) { return t.shape ? ir::to_string(*t.shape) : "?"; }

PortReport describe(const ir::Graph& graph, const format::Port& port) {
  const ir::Tensor& t = graph.tensor(port.tensor);
  return {t.name, std::string(dtype_name(port.dtype)), shape_of(t), std::string(layout_name(port.layout)), port.mean, port.std};
}

ProgramReport describe(const format::Program& program, const platform::Platform* chip) {
  const ir::Graph& graph = program.graph;
  ProgramReport report;
  report.label = program.label;
  const bool timed = chip && chip->has_speed();
  if (timed) report.microseconds = 0;
  for (const format::Port& p : program.inputs) report.inputs.push_back(describe(graph, p));
  for (const format::Port& p : program.outputs) report.outputs.push_back(describe(graph, p));
  std::vector<int64_t> first(graph.tensor_count(), -1), last(graph.tensor_count(), -1);
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const format::Task& task = program.tasks[i];
    const ir::Node& n = graph.node(task.node);
    LayerReport row;
    row.index = i;
    row.type = format::viewer_node_type(n);
    row.name = n.name;
    row.origin = n.origin;
    row.device = device_name(task.device);
    row.engine = engine_name(task.engine);
    row.reason = task.reason;
    for (ir::TensorId t : n.inputs) {
      if (!t) continue;
      last[static_cast<size_t>(t.index)] = static_cast<int64_t>(i);
      if (!graph.is_constant(t)) row.inputs.push_back(graph.tensor(t).name);
    }
    for (ir::TensorId t : n.outputs) {
      if (!t) continue;
      first[static_cast<size_t>(t.index)] = static_cast<int64_t>(i);
      row.outputs.push_back(graph.tensor(t).name);
      if (row.output_shape.empty()) {
        row.output_shape = shape_of(graph.tensor(t));
        row.output_type = dtype_name(graph.tensor(t).dtype);
      }
    }
    row.macs = task.macs;
    row.cycles = task.predicted_cycles;
    if (timed) row.microseconds = static_cast<double>(task.predicted_cycles) / static_cast<double>(chip->npu_hz) * 1e6;
    row.read_bytes = task.read_bytes;
    row.write_bytes = task.write_bytes;
    row.cores = static_cast<uint32_t>(std::popcount(task.core_mask));
    row.tiles = task.tiles;
    report.macs += row.macs;
    if (timed) *report.microseconds += *row.microseconds;
    ++(task.device == format::Device::Npu ? report.npu_layers : report.cpu_layers);
    report.layers.push_back(std::move(row));
  }
  report.internal_bytes = program.arena_bytes;
  for (size_t i = 0; i < program.buffers.size() && i < graph.tensor_count(); ++i) {
    const ir::Tensor& t = graph.tensor({static_cast<int32_t>(i)});
    const format::Buffer& b = program.buffers[i];
    if (b.place == format::Buffer::Place::External) report.port_bytes += b.bytes;
    report.tensors.push_back({t.name, std::string(dtype_name(t.dtype)), shape_of(t), std::string(place_name(b.place)), b.offset,
                              b.bytes, first[i], last[i]});
  }
  return report;
}

ordered_json to_json(const PortReport& p) {
  ordered_json j{{"name", p.name}, {"type", p.type}, {"shape", p.shape}, {"layout", p.layout}};
  if (!p.mean.empty()) j["mean"] = p.mean;
  if (!p.std.empty()) j["std"] = p.std;
  return j;
}

// What is not known is null.
ordered_json known(const std::optional<double>& value) { return value ? ordered_json(*value) : ordered_json(nullptr); }

std::string count_text(double value) {
  if (value >= 1e9) return fmt::format("{:.2f} G", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  return value >= 1e3 ? fmt::format("{:.2f} k", value / 1e3) : fmt::format("{:.0f}", value);
}

std::string ports_text(std::string_view what, const std::vector<PortReport>& ports, size_t width) {
  std::string text;
  for (const PortReport& p : ports) {
    const std::string before = fmt::format("{:<16}", what);
    const std::string after = fmt::format(": {}{}{}", p.type, p.shape, p.layout.empty() ? "" : " " + p.layout);
    std::string normalization;
    if (!p.mean.empty()) normalization = fmt::format("mean [{}], std [{}]", fmt::join(p.mean, ","), fmt::join(p.std, ","));
    const std::string name = name_in_line(p.name, width, before.size() + after.size());
    text += before + name + after;
    if (!normalization.empty()) {
      const bool fits = width == 0 || before.size() + name.size() + after.size() + 2 + normalization.size() <= width;
      text += (fits ? ", " : ",\n" + std::string(before.size(), ' ')) + normalization;
    }
    text += "\n";
  }
  return text;
}

// "int8 (15 layers), float16 (2 layers)"; the float type alone for a model without integer layers.
std::string number_formats(const ModelReport& r) {
  std::map<std::string_view, size_t> layers;
  for (const ProgramReport& p : r.programs)
    for (const LayerReport& l : p.layers)
      if (l.output_type == "int8" || l.output_type == "uint8" || l.output_type == "int16" || l.output_type == r.float_dtype)
        ++layers[l.output_type];
  const size_t in_float = layers[r.float_dtype];
  layers.erase(r.float_dtype);
  if (layers.empty()) return r.float_dtype;
  std::string text;
  const auto add = [&](std::string_view type, size_t count) {
    text += fmt::format("{}{} ({} layer{})", text.empty() ? "" : ", ", type, count, count == 1 ? "" : "s");
  };
  for (const auto& [type, count] : layers) add(type, count);
  if (in_float) add(r.float_dtype, in_float);
  return text;
}

// Several programs in one file: each table under its label.
template <class F>
std::string per_program(const ModelReport& report, F&& table) {
  std::string text;
  for (const ProgramReport& p : report.programs) {
    if (report.programs.size() > 1) text += "program " + p.label + "\n";
    text += table(p);
  }
  return text;
}
}  // namespace

std::string_view engine_name(ir::Engine e) {
  switch (e) {
    case ir::Engine::Conv: return "conv";
    case ir::Engine::Depthwise: return "depthwise";
    case ir::Engine::MatMul: return "matmul";
    case ir::Engine::Elementwise: return "elementwise";
    case ir::Engine::Pool: return "pool";
    case ir::Engine::Move: return "move";
    case ir::Engine::Lut: return "lut";
    case ir::Engine::Norm: return "norm";
    case ir::Engine::Recurrent: return "recurrent";
    case ir::Engine::None: break;
  }
  return "-";
}

std::string bytes_text(uint64_t bytes) {
  const double v = static_cast<double>(bytes);
  if (v >= 1024.0 * 1024 * 1024) return fmt::format("{:.2f} GiB", v / (1024.0 * 1024 * 1024));
  if (v >= 1024.0 * 1024) return fmt::format("{:.2f} MiB", v / (1024.0 * 1024));
  return v >= 1024 ? fmt::format("{:.2f} KiB", v / 1024) : fmt::format("{} B", bytes);
}

ModelReport describe(const format::Model& model) {
  ModelReport report{model.name,
                     format::platforms_of(model),
                     model.source_framework,
                     model.toolkit_version,
                     model.float_dtype,
                     model.custom_string,
                     model.weight_bytes,
                     model.programs.empty() ? 0 : runtime::packed_weight_bytes(model.programs[0]),
                     {}};
  const platform::Platform* chip = platform::find(model.target_platform);
  for (const format::Program& p : model.programs) report.programs.push_back(describe(p, chip));
  return report;
}

ordered_json to_json(const ModelReport& report) {
  ordered_json j{{"name", report.name},
                 {"target_platform", report.platforms.front()},
                 {"platforms", report.platforms},
                 {"source_framework", report.source_framework},
                 {"toolkit_version", report.toolkit_version},
                 {"float_dtype", report.float_dtype},
                 {"custom_string", report.custom_string},
                 {"weight_bytes", report.weight_bytes},
                 {"packed_weight_bytes", report.packed_weight_bytes},
                 {"programs", ordered_json::array()}};
  for (const ProgramReport& p : report.programs) {
    ordered_json program{{"label", p.label},
                         {"internal_bytes", p.internal_bytes},
                         {"port_bytes", p.port_bytes},
                         {"macs", p.macs},
                         {"predicted_us", known(p.microseconds)},
                         {"npu_layers", p.npu_layers},
                         {"cpu_layers", p.cpu_layers}};
    for (const PortReport& port : p.inputs) program["inputs"].push_back(to_json(port));
    for (const PortReport& port : p.outputs) program["outputs"].push_back(to_json(port));
    program["layers"] = ordered_json::array();
    for (const LayerReport& l : p.layers)
      program["layers"].push_back({{"index", l.index},
                                   {"type", l.type},
                                   {"name", l.name},
                                   {"origin", l.origin},
                                   {"device", l.device},
                                   {"engine", l.engine},
                                   {"reason", l.reason},
                                   {"inputs", l.inputs},
                                   {"outputs", l.outputs},
                                   {"output_type", l.output_type},
                                   {"output_shape", l.output_shape},
                                   {"macs", l.macs},
                                   {"cycles", l.cycles},
                                   {"predicted_us", known(l.microseconds)},
                                   {"read_bytes", l.read_bytes},
                                   {"write_bytes", l.write_bytes},
                                   {"cores", l.cores},
                                   {"tiles", l.tiles}});
    program["tensors"] = ordered_json::array();
    for (const TensorReport& t : p.tensors)
      program["tensors"].push_back({{"name", t.name},
                                    {"type", t.type},
                                    {"shape", t.shape},
                                    {"place", t.place},
                                    {"offset", t.offset},
                                    {"bytes", t.bytes},
                                    {"first_layer", t.first_layer},
                                    {"last_layer", t.last_layer}});
    j["programs"].push_back(std::move(program));
  }
  return j;
}

ordered_json to_json(const platform::Platform& p) {
  // What is not published is null.
  const auto known = [](int64_t value) { return value > 0 ? ordered_json(value) : ordered_json(nullptr); };
  const platform::Features& f = p.features;
  const platform::MatMulLimits& m = p.mat_mul;
  ordered_json products = nullptr;
  if (!m.types.empty())
    products = {
        {"types", m.types},
        {"max_inner", known(m.max_inner)},
        {"max_columns", known(m.max_columns)},
        {"max_columns_int4", known(m.max_columns_int4)},
        {"inner_multiple",
         {{"int8", m.inner_multiple_int8}, {"float16", m.inner_multiple_half}, {"int4", m.inner_multiple_int4}}},
        {"columns_multiple",
         {{"int8", m.columns_multiple_int8}, {"float16", m.columns_multiple_half}, {"int4", known(m.columns_multiple_int4)}}},
        {"inner_segment", known(m.inner_segment)},
        {"transposed_normal", m.transposed_normal},
        {"block",
         {{"int8", {p.align_int8.conv_out, p.align_int8.conv_in}}, {"float16", {p.align_half.conv_out, p.align_half.conv_in}}}}};
  return {{"name", p.name},
          {"aliases", p.aliases},
          {"generation", p.generation},
          {"compatibility", p.compatibility},
          {"unknown", p.unknown()},
          {"cores", p.cores},
          {"int8_macs", known(p.int8_macs)},
          {"int16_macs", known(p.int16_macs)},
          {"float16_macs", known(p.half_macs)},
          {"int4_macs", known(p.int4_macs)},
          {"npu_hz", known(p.npu_hz)},
          {"ddr_hz", known(p.ddr_hz)},
          {"cpu_hz", known(p.cpu_hz)},
          {"ddr_bus_bytes", known(p.ddr_bus_bytes)},
          {"cbuf_bytes", p.cbuf_bytes()},
          {"sram_bytes", p.sram_bytes},
          {"nbuf_bytes", p.nbuf_bytes},
          {"package_memory_bytes", known(p.dram_bytes)},
          {"max_tasks_per_submit", p.max_tasks_per_submit},
          {"c2", {{"int8", known(p.c2_int8)}, {"float16", known(p.c2_half)}}},
          {"output_align", {{"int8", known(p.output_align_conv_int8)}, {"float16", known(p.output_align_conv_half)}}},
          {"features",
           {{"general_api", f.general_api},
            {"dynamic_shape", f.dynamic_shape},
            {"matmul_api", f.matmul_api},
            {"custom_ops", f.custom_ops},
            {"layer_profile", f.layer_profile},
            {"dup_context", f.dup_context},
            {"core_mask", f.core_mask},
            {"sram_for_internal", f.sram_for_internal},
            {"encryption", f.encryption},
            {"sparse_weights", f.sparse_weights},
            {"weight_compression", f.weight_compression},
            {"flash_attention", f.flash_attention},
            {"memory_from_fd", f.memory_from_fd},
            {"device_memory_query", f.device_memory_query},
            {"board_connection", f.board_connection},
            {"nchw_output", f.nchw_output}}},
          {"mat_mul", std::move(products)},
          {"conv_int8", p.conv_int8},
          {"conv_float16", p.conv_half},
          {"quantized_dtypes", p.quantized_dtypes}};
}

std::string summary_text(const ModelReport& r, size_t width) {
  std::string text =
      fmt::format("{:<16}{}\n{:<16}{}\n{:<16}{}\n{:<16}{}\n", "model", r.name, "made for", fmt::join(r.platforms, ", "),
                  "made from", r.source_framework, "made by", "openrknn " + r.toolkit_version);
  text += fmt::format("{:<16}{}\n", "computes in", number_formats(r));
  if (!r.custom_string.empty()) text += fmt::format("{:<16}{}\n", "custom string", r.custom_string);
  text += fmt::format("{:<16}{} in the file{}\n", "weights", bytes_text(r.weight_bytes),
                      r.packed_weight_bytes ? ", " + bytes_text(r.packed_weight_bytes) + " as the NPU packs them" : "");
  text += per_program(r, [&](const ProgramReport& p) {
    return ports_text("input", p.inputs, width) + ports_text("output", p.outputs, width) +
           fmt::format(
               "{:<16}{}, inputs and outputs {}\n{:<16}{} on the NPU, {} on the CPU\n{:<16}{} multiply-accumulates, {} on one "
               "core\n",
               "activations", bytes_text(p.internal_bytes), bytes_text(p.port_bytes), "layers", p.npu_layers, p.cpu_layers,
               "work", count_text(static_cast<double>(p.macs)),
               p.microseconds ? fmt::format("{:.2f} ms predicted", *p.microseconds / 1000) : "unknown time");
  });
  return printable(text);  // names come from files
}

std::string layers_text(const ModelReport& r, size_t width) {
  return per_program(r, [&](const ProgramReport& p) {
    Table table({{"#", Align::Right},
                 {"type", Align::Left, true},
                 {"name", Align::Left, true},
                 {"device"},
                 {.title = "engine", .may_drop = true},
                 {"output", Align::Left, true},
                 {.title = "MACs", .align = Align::Right, .may_drop = true},
                 {.title = "read", .align = Align::Right, .may_drop = true},
                 {"us", Align::Right},
                 {.title = "tiles", .align = Align::Right, .may_drop = true},
                 {.title = "why", .may_shorten = true, .may_drop = true}});
    for (const LayerReport& l : p.layers)
      table.add({std::to_string(l.index), l.type, l.name, l.device, l.engine, l.output_type + l.output_shape,
                 l.macs ? count_text(static_cast<double>(l.macs)) : "", bytes_text(l.read_bytes),
                 l.microseconds ? fmt::format("{:.1f}", *l.microseconds) : "?", std::to_string(l.tiles), l.reason});
    return table.to_text(width);
  });
}

std::string tensors_text(const ModelReport& r, size_t width) {
  return per_program(r, [&](const ProgramReport& p) {
    Table table({{"tensor", Align::Left, true}, {"type"}, {"shape", Align::Left, true}, {"place"}, {"bytes", Align::Right}});
    for (const TensorReport& t : p.tensors) table.add({t.name, t.type, t.shape, t.place, std::to_string(t.bytes)});
    return table.to_text(width);
  });
}

std::string memory_text(const ModelReport& r, size_t width) {
  return per_program(r, [&](const ProgramReport& p) {
    Table table({{"start", Align::Right},
                 {.title = "end", .align = Align::Right, .may_drop = true},
                 {"bytes", Align::Right},
                 {"made", Align::Right},
                 {"last read", Align::Right},
                 {"tensor", Align::Left, true},
                 {"shape", Align::Left, true}});
    for (const TensorReport& t : p.tensors)
      if (t.place == "arena")
        table.add({fmt::format("0x{:08x}", t.offset), fmt::format("0x{:08x}", t.offset + t.bytes), std::to_string(t.bytes),
                   std::to_string(t.first_layer), t.last_layer < 0 ? "-" : std::to_string(t.last_layer), t.name,
                   t.type + t.shape});
    return table.to_text(width) +
           fmt::format("activation memory: {} ({} bytes)\n", bytes_text(p.internal_bytes), p.internal_bytes);
  });
}

std::string platforms_text(size_t width) {
  Table table({{"platform", Align::Left, true},
               {"cores", Align::Right},
               {"int8 TOPS", Align::Right},
               {"fp16 TFLOPS", Align::Right},
               {"NPU MHz", Align::Right},
               {"DDR MHz", Align::Right},
               {.title = "on-chip", .align = Align::Right, .may_drop = true},
               {.title = "toolkit", .align = Align::Right, .may_drop = true},
               {"runs models of", Align::Left, true},
               {.title = "", .may_wrap = true}});
  for (const platform::Platform& p : platform::all()) {
    const auto megahertz = [](int64_t hz) { return hz ? std::to_string(hz / 1'000'000) : std::string("?"); };
    const auto tera = [&](int macs) {
      return macs && p.npu_hz ? fmt::format("{:.2f}", 2e-12 * macs * p.cores * static_cast<double>(p.npu_hz)) : std::string("-");
    };
    std::string name(p.name), remark;
    for (std::string_view what : p.unknown()) remark += (remark.empty() ? "unknown: " : ", ") + std::string(what);
    for (std::string_view alias : p.aliases) name += ", " + std::string(alias);
    table.add({name, std::to_string(p.cores), tera(p.int8_macs), tera(p.half_macs), megahertz(p.npu_hz), megahertz(p.ddr_hz),
               bytes_text(static_cast<uint64_t>(p.cores * p.cbuf_bytes() + p.nbuf_bytes + p.sram_bytes)),
               std::to_string(p.generation), std::string(p.compatibility), remark});
  }
  return table.to_text(width);
}

}  // namespace orknn::toolkit
