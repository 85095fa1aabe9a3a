#include "runtime/perf_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "format/viewer_part.h"
#include "ops/facts.h"

namespace orknn::runtime {
namespace {
using format::Buffer;
using format::Program;

// What one NPU layer costs more when it is measured alone, from public layer logs.
constexpr double kDebugMicroseconds = 60;
// Handing over the input, and copying an output, from public layer logs.
constexpr double kInputMicroseconds = 10, kOutputMicroseconds = 10, kOutputBytesPerMicrosecond = 10000;

std::string upper_type(DType t) {
  if (t == DType::Float32) return "FLOAT";
  std::string name(dtype_name(t));
  for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

std::string shape_text(const ir::Tensor& t) {
  std::string text = "(";
  if (t.shape)
    for (const ir::Dim& d : *t.shape)
      text += (text.size() > 1 ? "," : "") + (d.is_known() ? std::to_string(d.value()) : std::string("-1"));
  return text + ")";
}

std::string shapes_text(const ir::Graph& graph, const std::vector<ir::TensorId>& tensors) {
  std::string text;
  size_t count = 0;
  for (ir::TensorId t : tensors) {
    if (!t) continue;
    if (++count > 4) return text + ",...";
    text += (text.empty() ? "" : ",") + shape_text(graph.tensor(t));
  }
  return text.empty() ? "\\" : text;
}

// What a layer reads, without the table of its activation, which is part of the layer.
std::vector<ir::TensorId> shown_inputs(const ir::Node& n) {
  std::vector<ir::TensorId> inputs = n.inputs;
  if (const int table = ops::facts_of(n).table_input; table >= 0 && static_cast<size_t>(table) < inputs.size())
    inputs.erase(inputs.begin() + table);
  return inputs;
}

std::string fixed(double value, int decimals) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return buffer;
}

// Columns as wide as their widest cell, left-aligned, two spaces apart, between rules of dashes.
std::string aligned(const std::string& title, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == width.size()) width.push_back(0);
      width[i] = std::max(width[i], row[i].size());
    }
  size_t total = 0;
  for (size_t w : width) total += w + 2;
  const std::string rule = std::string(total, '-') + "\n";
  const size_t indent = total > title.size() ? (total - title.size()) / 2 : 0;
  std::string text = rule + std::string(indent, ' ') + title + "\n" + rule;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      line += rows[r][i];
      if (i + 1 < rows[r].size()) line += std::string(width[i] - rows[r][i].size() + 2, ' ');
    }
    text += line + "\n" + (r == 0 ? rule : "");
  }
  return text + rule;
}

std::string sparsity_text(format::Sparsity s) {
  switch (s) {
    case format::Sparsity::Inputs: return "50%(IC)";
    case format::Sparsity::Outputs: return "50%(OC)";
    case format::Sparsity::Both: return "75%";
    case format::Sparsity::None: break;
  }
  return "0%";
}

const platform::Platform* chip_of(const format::Model& model) { return platform::find(model.target_platform); }

uint64_t external_bytes(const Program& p, const std::vector<format::Port>& ports) {
  uint64_t bytes = 0;
  for (const format::Port& port : ports) bytes += p.buffers[static_cast<size_t>(port.tensor.index)].bytes;
  return bytes;
}
}  // namespace

namespace {
// Intermediate results that a layer reads and writes: their bytes, and those inside the SRAM.
std::pair<double, double> feature_bytes(const Program& p, const format::Task& task, uint64_t sram_bytes) {
  double bytes = 0, inside = 0;
  const ir::Node& n = p.graph.node(task.node);
  for (const auto* list : {&n.inputs, &n.outputs})
    for (ir::TensorId t : *list) {
      if (!t || p.graph.is_constant(t)) continue;
      const Buffer& b = p.buffers[static_cast<size_t>(t.index)];
      bytes += static_cast<double>(b.bytes);
      if (b.place == Buffer::Place::Arena) inside += static_cast<double>(sram_hit({b.offset, b.bytes}, sram_bytes));
    }
  return {bytes, inside};
}

// Microseconds of one layer. The file holds the time without SRAM; what SRAM saves is found by taking the traffic out of it and
// the smaller one in.
double task_microseconds(const Program& p, const format::Task& task, const platform::Platform& chip, int cores,
                         uint64_t sram_bytes) {
  const double us = static_cast<double>(task.predicted_on(static_cast<size_t>(std::max(cores, 1)))) /
                    static_cast<double>(chip.report_hz()) * 1e6;
  if (sram_bytes == 0 || task.device != format::Device::Npu) return us;
  const platform::SpeedModel& v = chip.speed;
  const double bus = platform::SpeedModel::bus_gain(task.working_cores(cores));
  const bool multiplies =
      task.engine == ir::Engine::Conv || task.engine == ir::Engine::Depthwise || task.engine == ir::Engine::MatMul;
  const double weights = static_cast<double>(std::min(task.weight_bytes, task.read_bytes)),
               features = static_cast<double>(task.read_bytes) - weights + static_cast<double>(task.write_bytes);
  const double rate = (multiplies ? v.feature_gbs : v.move_gbs) * 1e3 * bus;  // bytes per microsecond
  const auto [bytes, inside] = feature_bytes(p, task, sram_bytes);
  const double traffic = features / rate + weights / (v.weight_gbs * 1e3 * bus),
               saved = bytes > 0 ? features * inside / bytes / rate : 0, busy = us - v.layer_us;
  if (busy <= 0 || saved <= 0) return us;
  if (traffic >= busy) return v.layer_us + busy * (1 - saved / traffic);  // nothing else took time
  const double others = std::pow(std::pow(busy, v.overlap) - std::pow(traffic, v.overlap), 1 / v.overlap);
  return v.layer_us + v.beside(others, traffic - saved);
}
}  // namespace

std::string why_no_time(const format::Model& model) {
  const platform::Platform* chip = chip_of(model);
  if (!chip) return "the chip '" + model.target_platform + "' is not known";
  if (!chip->has_speed()) return "the speed of " + std::string(chip->name) + " is not published";
  // The few operators that such a chip's CPU computes do not multiply.
  if (chip->cpu_ops == platform::CpuOps::All) return {};
  const Program& p = model.programs[0];
  for (const format::Task& task : p.tasks)
    if (task.device != format::Device::Npu && task.macs > 0) {
      const ir::Node& n = p.graph.node(task.node);
      const std::string type = n.has_input(0) ? std::string(dtype_name(p.graph.tensor(n.inputs[0]).dtype)) : std::string();
      return std::string(chip->name) + " cannot compute '" + n.name + "' (" + format::viewer_node_type(n) + ") in " + type +
             ", neither on its NPU nor on its CPU";
    }
  return {};
}

std::optional<double> predicted_microseconds(const format::Model& model, int cores, uint64_t sram_bytes) {
  if (!why_no_time(model).empty()) return std::nullopt;
  const Program& p = model.programs[0];
  double us = 0;
  for (const format::Task& t : p.tasks) us += task_microseconds(p, t, *chip_of(model), cores, sram_bytes);
  return us;
}

std::vector<LayerRow> layer_rows(const format::Model& model, bool debug, int cores, uint64_t sram_bytes) {
  const Program& p = model.programs[0];
  const platform::Platform* chip = chip_of(model);
  const bool timed = why_no_time(model).empty();
  const auto whole = [&](double us) {
    return timed ? std::optional(static_cast<uint64_t>(std::min(us, 1e15) + 0.5)) : std::nullopt;
  };
  std::vector<LayerRow> rows;
  for (const format::Port& port : p.inputs) {
    const ir::Tensor& t = p.graph.tensor(port.tensor);
    LayerRow row;
    row.type = "InputOperator";
    row.data_type = upper_type(t.dtype);
    row.target = "CPU";
    row.inputs = "\\";
    row.outputs = shape_text(t);
    row.name = "InputOperator:" + t.name;
    row.microseconds = whole(kInputMicroseconds);
    rows.push_back(std::move(row));
  }
  for (const format::Task& task : p.tasks) {
    const ir::Node& n = p.graph.node(task.node);
    const bool npu = task.device == format::Device::Npu;
    LayerRow row;
    row.type = format::viewer_node_type(n);
    row.element = n.has_input(0) ? p.graph.tensor(n.inputs[0]).dtype : DType::Undefined;
    row.data_type = n.has_input(0) ? upper_type(row.element) : "\\";
    row.target = npu ? "NPU" : task.device == format::Device::Gpu ? "GPU" : "CPU";
    row.inputs = shapes_text(p.graph, shown_inputs(n));
    row.outputs = shapes_text(p.graph, n.outputs);
    row.name = row.type + ":" + n.name;
    row.uid = static_cast<uint32_t>(&task - p.tasks.data());
    row.ddr_cycles = task.ddr_cycles;
    row.npu_cycles = task.array_cycles;
    row.tasks = npu ? task.tasks_on(cores) : 0;
    row.read_bytes = task.read_bytes;
    row.macs = task.macs;
    row.sparsity = task.sparsity;
    const uint32_t users = npu ? task.working_cores(cores) : 0;
    for (uint32_t core = 0; core < users; ++core) row.load.push_back(format::core_share(task.pieces, users, core));
    if (timed)
      row.microseconds = whole(task_microseconds(p, task, *chip, cores, sram_bytes) + (debug && npu ? kDebugMicroseconds : 0));
    rows.push_back(std::move(row));
  }
  for (const format::Port& port : p.outputs) {
    const ir::Tensor& t = p.graph.tensor(port.tensor);
    LayerRow row;
    row.type = "OutputOperator";
    row.data_type = upper_type(t.dtype);
    row.target = "CPU";
    row.inputs = shape_text(t);
    row.outputs = "\\";
    row.name = "OutputOperator:" + t.name;
    row.read_bytes = p.buffers[static_cast<size_t>(port.tensor.index)].bytes;
    row.microseconds = whole(kOutputMicroseconds + static_cast<double>(row.read_bytes) / kOutputBytesPerMicrosecond);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string clocks_text(const platform::Platform* chip) {
  const auto list = [](const char* name, int64_t value) {
    return std::string(name) + " Current Frequency List:\n    - " + (value > 0 ? std::to_string(value) : std::string("Unknown")) +
           "\n";
  };
  return list("CPU", chip ? chip->cpu_hz / 1000 : 0) + list("NPU", chip ? chip->npu_hz : 0) +
         list("DDR", chip ? chip->ddr_hz : 0);
}

std::string perf_table(const format::Model& model, int cores, uint64_t sram_bytes) {
  const platform::Platform* chip = chip_of(model);
  const size_t columns = static_cast<size_t>(chip ? chip->cores : 1);
  const std::vector<LayerRow> layers = layer_rows(model, true, cores, sram_bytes);
  const bool timed = why_no_time(model).empty(), knows_ddr = chip && chip->ddr_bytes_per_cycle() > 0,
             knows_array = chip && (chip->int8_macs > 0 || chip->half_macs > 0);
  const bool sparse =
      std::any_of(layers.begin(), layers.end(), [](const LayerRow& l) { return l.sparsity != format::Sparsity::None; });
  const auto time_text = [](const std::optional<uint64_t>& us) { return us ? std::to_string(*us) : std::string("\\"); };
  std::vector<std::string> header{
      "ID", "OpType", "DataType", "Target", "InputShape", "OutputShape", "Cycles(DDR/NPU/Total)", "Time(us)", "MacUsage(%)"};
  if (columns > 1) header.push_back(columns == 2 ? "WorkLoad(0/1)" : "WorkLoad(0/1/2)");
  header.push_back("TaskNumber");
  if (sparse) header.push_back("SparseRation");  // the vendor's spelling, which programs search for
  for (const char* name : {"RW(KB)", "FullName"}) header.push_back(name);
  std::vector<std::vector<std::string>> rows{header};
  struct Sum {
    uint64_t calls = 0, cpu = 0, gpu = 0, npu = 0;
    uint64_t total() const { return cpu + gpu + npu; }
  };
  std::map<std::string, Sum> sums;
  uint64_t total = 0, read = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerRow& l = layers[i];
    const bool npu = l.target == "NPU";
    std::string usage = "\\";
    const int rate = chip ? chip->macs_per_cycle(l.element) : 0;
    if (npu && l.npu_cycles > 0 && rate > 0 && l.microseconds.value_or(0) > 0) {
      const double capacity = rate * static_cast<double>(chip->report_hz()) / 1e6 * static_cast<double>(*l.microseconds) * cores;
      usage.clear();
      for (size_t core = 0; core < columns; ++core)
        usage +=
            (core ? "/" : "") + fixed(core < static_cast<size_t>(cores) ? 100 * static_cast<double>(l.macs) / capacity : 0, 2);
    }
    // Clocks or an array that are not published give no cycles.
    const auto cycles = [&](bool known, uint64_t count) { return known || !npu ? std::to_string(count) : std::string("\\"); };
    std::vector<std::string> row{std::to_string(i + 1),
                                 l.type,
                                 l.data_type,
                                 l.target,
                                 l.inputs,
                                 l.outputs,
                                 cycles(knows_ddr, l.ddr_cycles) + "/" + cycles(knows_array, l.npu_cycles) + "/" +
                                     cycles(knows_ddr && knows_array, std::max(l.ddr_cycles, l.npu_cycles)),
                                 time_text(l.microseconds),
                                 usage};
    if (columns > 1) {
      std::string load;
      for (size_t core = 0; core < columns; ++core)
        load += (core ? "/" : "") + fixed(100 * (core < l.load.size() ? l.load[core] : 0), 1) + "%";
      row.push_back(load);
    }
    row.push_back(std::to_string(l.tasks));
    if (sparse) row.push_back(npu ? sparsity_text(l.sparsity) : "\\");
    row.push_back(std::to_string(l.read_bytes / 1024));
    row.push_back(l.name);
    rows.push_back(std::move(row));
    Sum& s = sums[l.type];
    ++s.calls;
    (npu ? s.npu : l.target == "GPU" ? s.gpu : s.cpu) += l.microseconds.value_or(0);
    total += l.microseconds.value_or(0);
    read += l.read_bytes;
  }
  std::string text = "W The performance result is just for debugging, it may be worse than actual performance!\n";
  text += aligned("Network Layer Information Table", rows);
  text += "Total Operator Elapsed Per Frame Time(us): " + (timed ? std::to_string(total) : std::string("Unknown")) + "\n";
  text += "Total Memory Read/Write Per Frame Size(KB): " + std::to_string(read / 1024) + "\n";
  std::vector<std::pair<std::string, Sum>> order(sums.begin(), sums.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.total() > b.second.total(); });
  std::vector<std::vector<std::string>> ranking{
      {"OpType", "CallNumber", "CPUTime(us)", "GPUTime(us)", "NPUTime(us)", "TotalTime(us)", "TimeRatio(%)"}};
  const auto ranked = [&](const std::string& type, const Sum& s, std::string ratio) {
    const auto known = [&](uint64_t us) { return timed ? std::to_string(us) : std::string("\\"); };
    ranking.push_back({type, std::to_string(s.calls), known(s.cpu), s.gpu ? known(s.gpu) : "0", known(s.npu), known(s.total()),
                       timed ? std::move(ratio) : ""});
  };
  Sum all;
  for (const auto& [type, s] : order) {
    ranked(type, s, fixed(total ? 100 * static_cast<double>(s.total()) / static_cast<double>(total) : 0, 2) + "%");
    all.calls += s.calls;
    all.cpu += s.cpu;
    all.gpu += s.gpu;
    all.npu += s.npu;
  }
  ranked("Total", all, "");
  return text + aligned("Operator Time Consuming Ranking Table", ranking);
}

uint64_t packed_weight_bytes(const Program& program) {
  uint64_t bytes = 0;
  for (const format::Task& t : program.tasks) bytes += t.weight_bytes;
  return bytes;
}

uint64_t sram_hit(const MemoryBlock& block, uint64_t sram_bytes) {
  return block.offset >= sram_bytes ? 0 : std::min(block.bytes, sram_bytes - block.offset);
}

uint64_t sram_block(uint64_t internal_bytes, uint64_t sram_bytes) {
  constexpr uint64_t kGranule = 4096;
  if (internal_bytes >= sram_bytes) return sram_bytes;
  const uint64_t granules = internal_bytes / kGranule + (internal_bytes % kGranule ? 1 : 0);
  return std::min(granules * kGranule, sram_bytes);
}

MemoryTotals memory_totals(std::span<const MemoryBlock> blocks, uint64_t input_bytes, uint64_t output_bytes,
                           uint64_t sram_bytes) {
  MemoryTotals totals;
  for (const MemoryBlock& b : blocks) {
    totals.internal_bytes = std::max(totals.internal_bytes, b.offset + b.bytes);
    totals.internal_traffic += 2 * b.bytes;
    totals.sram_traffic += 2 * sram_hit(b, sram_bytes);
  }
  totals.internal_traffic += input_bytes + output_bytes;
  return totals;
}

namespace {
// The shape in memory: blocks of C2 channels. A picture that a layer reads directly keeps its channels as they are.
std::string native_shape(const Program& p, ir::TensorId t, const platform::Platform& chip) {
  const ir::Tensor& tensor = p.graph.tensor(t);
  const Buffer& b = p.buffers[static_cast<size_t>(t.index)];
  const auto dims = tensor.shape ? ir::to_dims(*tensor.shape) : std::nullopt;
  const bool input = p.graph.is_input(t);
  if (!dims || dims->size() != 4 || dtype_bytes(tensor.dtype) > 2 || (b.place != Buffer::Place::Arena && !input))
    return shape_text(tensor);
  const uint64_t n = static_cast<uint64_t>((*dims)[0]), c = static_cast<uint64_t>((*dims)[1]),
                 pixels = static_cast<uint64_t>((*dims)[2]) * static_cast<uint64_t>((*dims)[3]);
  const uint64_t lanes = input && c <= 4 ? c : static_cast<uint64_t>(std::max(chip.c2(tensor.dtype), 1)),
                 area = n * pixels * lanes * dtype_bytes(tensor.dtype);
  if (area == 0) return shape_text(tensor);
  const uint64_t blocks = input ? (c + lanes - 1) / lanes : b.bytes / area;
  return "(" + std::to_string(n) + "," + std::to_string(blocks) + "," + std::to_string((*dims)[2]) + "," +
         std::to_string((*dims)[3]) + "," + std::to_string(lanes) + ")";
}

// A layer's constants and their bytes in memory. The file holds the sum: all but the first (the weights) are counted, the first
// takes what is left.
std::vector<std::pair<ir::TensorId, uint64_t>> packed_constants(const Program& p, const format::Task& task,
                                                                const platform::Platform* chip) {
  constexpr uint64_t kAlignment = 64;
  const auto up = [](uint64_t v, uint64_t multiple) { return (v + multiple - 1) / multiple * multiple; };
  std::vector<std::pair<ir::TensorId, uint64_t>> found;
  uint64_t left = task.weight_bytes;
  const bool integer =
      p.graph.node(task.node).has_input(0) && dtype_bytes(p.graph.tensor(p.graph.node(task.node).inputs[0]).dtype) == 1;
  for (ir::TensorId t : shown_inputs(p.graph.node(task.node))) {
    if (!t || !p.graph.is_constant(t)) continue;
    const ir::TensorData& value = *p.graph.constant(t);
    uint64_t bytes = up(value.bytes(), kAlignment);
    if (!found.empty() && task.macs > 0 && task.device == format::Device::Npu && chip)
      bytes = up(integer ? up(static_cast<uint64_t>(value.count()), static_cast<uint64_t>(chip->packing.bias_align)) *
                               static_cast<uint64_t>(chip->packing.bias_bytes)
                         : up(static_cast<uint64_t>(value.count()), 16) * 4,
                 kAlignment);
    if (!found.empty()) {
      bytes = std::min(bytes, left);
      left -= bytes;
    }
    found.emplace_back(t, bytes);
  }
  if (!found.empty()) found.front().second = left;
  return found;
}
}  // namespace

std::string memory_table(const format::Model& model, uint64_t sram_bytes) {
  const Program& p = model.programs[0];
  const platform::Platform* chip = chip_of(model);
  const auto hex = [](uint64_t v) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "0x%08llx", static_cast<unsigned long long>(v));
    return std::string(buffer);
  };
  std::vector<std::vector<std::string>> rows{
      {"ID", "User", "Tensor", "DataType", "OrigShape", "NativeShape", "[Start", "End)", "Size"}};
  if (sram_bytes) rows[0].push_back("SramHit");
  std::vector<MemoryBlock> blocks;
  uint64_t top = 0;  // where the tensor with the highest end ends
  for (const Buffer& b : p.buffers)
    if (b.place == Buffer::Place::Arena) {
      blocks.push_back({b.offset, b.bytes});
      top = std::max(top, b.offset + b.bytes);
    }
  const auto add = [&](size_t id, const std::string& user, ir::TensorId t) {
    const ir::Tensor& tensor = p.graph.tensor(t);
    const Buffer& b = p.buffers[static_cast<size_t>(t.index)];
    if (b.place != Buffer::Place::Arena && b.place != Buffer::Place::External) return;
    const bool inside = b.place == Buffer::Place::Arena;
    std::vector<std::string> row{std::to_string(id),
                                 user,
                                 tensor.name,
                                 upper_type(tensor.dtype),
                                 shape_text(tensor),
                                 chip ? native_shape(p, t, *chip) : shape_text(tensor),
                                 hex(b.offset) + (inside && b.offset + b.bytes == top ? "*" : ""),
                                 hex(b.offset + b.bytes),
                                 hex(b.bytes)};
    if (sram_bytes) row.push_back(inside ? hex(sram_hit({b.offset, b.bytes}, sram_bytes)) : "\\");
    rows.push_back(std::move(row));
  };
  for (size_t i = 0; i < p.tasks.size(); ++i) {
    const ir::Node& n = p.graph.node(p.tasks[i].node);
    for (ir::TensorId t : n.inputs)
      if (t && !p.graph.is_constant(t)) add(i + 1, format::viewer_node_type(n), t);
  }
  for (size_t i = 0; i < p.outputs.size(); ++i) add(p.tasks.size() + 1 + i, "OutputOperator", p.outputs[i].tensor);
  // Constants follow each other in the order of the layers.
  std::vector<std::vector<std::string>> constants{{"ID", "User", "Tensor", "DataType", "OrigShape", "[Start", "End)", "Size"}};
  uint64_t at = 0;
  for (size_t i = 0; i < p.tasks.size(); ++i)
    for (const auto& [t, bytes] : packed_constants(p, p.tasks[i], chip)) {
      const ir::Tensor& tensor = p.graph.tensor(t);
      constants.push_back({std::to_string(i + 1), format::viewer_node_type(p.graph.node(p.tasks[i].node)), tensor.name,
                           upper_type(tensor.dtype), shape_text(tensor), hex(at), hex(at + bytes), hex(bytes)});
      at += bytes;
    }
  const MemoryTotals totals = memory_totals(blocks, external_bytes(p, p.inputs), external_bytes(p, p.outputs), sram_bytes);
  uint64_t weights = packed_weight_bytes(p);
  std::string text;
  if (const uint64_t block = sram_block(totals.internal_bytes, sram_bytes); sram_bytes)
    text += "Total allocated Internal SRAM Size: " + std::to_string(block) + ", Addr: [" + hex(0) + ", " + hex(block) + ")\n";
  text += aligned("Feature Tensor Information Table", rows) + aligned("Const Tensor Information Table", constants);
  text += "Total Weight Memory Size: " + std::to_string(weights) +
          "\nTotal Internal Memory Size: " + std::to_string(totals.internal_bytes) + "\n";
  text += "Predict Internal Memory RW Amount: " + std::to_string(totals.internal_traffic) +
          "\nPredict Weight Memory RW Amount: " + std::to_string(weights) + "\n";
  if (sram_bytes) text += "Predict SRAM Hit RW Amount: " + std::to_string(totals.sram_traffic) + "\n";
  return text;
}

}  // namespace orknn::runtime
