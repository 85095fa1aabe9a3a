#include "toolkit/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/nearest_name.h"
#include "base/refusal.h"
#include "base/utf8.h"
#include "format/viewer_part.h"
#include "ops/eval.h"
#include "toolkit/config.h"
#include "toolkit/report.h"
#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {
using nlohmann::ordered_json;
using platform::Platform;
using Source = platform::SpeedModel::Source;

struct TypeName {
  std::string_view name;  // what reports say and quantized_dtype takes
  std::optional<compile::AssumedTypes> types;
  std::vector<std::string_view> spellings;
};

const std::vector<TypeName>& type_names() {
  using compile::AssumedTypes;
  static const std::vector<TypeName> table{
      {"w8a8",
       AssumedTypes{DType::Int8, DType::Int8},
       {"int8", "i8", "u8", "asymmetric_quantized-8", "asymmetric_quantized-u8", "asymmetric_affine-u8", "dynamic_fixed_point-8",
        "dynamic_fixed_point-i8"}},
      {"float16", AssumedTypes{DType::Float16, DType::Float16}, {"fp16", "f16", "half", "w16a16"}},
      {"w8a16", AssumedTypes{DType::Float16, DType::Int8}, {}},
      {"w4a16", AssumedTypes{DType::Float16, DType::Int4}, {}},
      {"w16a16i",
       AssumedTypes{DType::Int16, DType::Int16},
       {"int16", "i16", "w16a16i_dfp", "dynamic_fixed_point-16", "dynamic_fixed_point-i16"}},
      {"", std::nullopt, {"model"}},
  };
  return table;
}

const TypeName* find_type(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const TypeName& t : type_names())
    if (t.name == name || std::find(t.spellings.begin(), t.spellings.end(), name) != t.spellings.end()) return &t;
  return nullptr;
}

// Why the chip cannot compute in this type.
std::string type_problem(const Platform& p, const TypeName& type) {
  if (!type.types) return {};
  const auto lists = [&](std::string_view name) {
    return std::find(p.quantized_dtypes.begin(), p.quantized_dtypes.end(), name) != p.quantized_dtypes.end();
  };
  std::vector<std::string_view> names = p.quantized_dtypes;
  if (p.conv_half) names.push_back("float16");
  std::string offered;
  for (size_t i = 0; i < names.size(); ++i)
    offered += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + std::string(names[i]);
  if (type.name == "float16")
    return p.conv_half ? "" : fmt::format("{} has no float16 convolution: it offers {}", p.name, offered);
  if (!p.conv_int8) return fmt::format("{} computes in float16 only, not in {}", p.name, type.name);
  if (type.name == "w8a8") return {};
  const bool old16 = type.name == "w16a16i" && p.generation == 1;
  return lists(type.name) || old16 ? "" : fmt::format("{} does not offer {}: it offers {}", p.name, type.name, offered);
}

// What a step waits for most.
std::string bound_of(const compile::Step& s, const compile::StepTime& t, const Platform& chip) {
  using Work = compile::Step::Work;
  if (!s.npu) return chip.has_shader ? "vector" : "cpu";
  const bool vector = s.work == Work::Norm || s.work == Work::Attention || s.work == Work::Softmax || s.work == Work::Pool ||
                      s.work == Work::GlobalPool;
  const bool layout = s.work == Work::Transpose || s.work == Work::Reshape || s.work == Work::SpaceToBatch;
  const std::pair<double, const char*> parts[] = {{t.compute, vector   ? "vector"
                                                              : layout ? "layout"
                                                                       : "compute"},
                                                  {t.traffic, "bandwidth"},
                                                  {t.table, "table"},
                                                  {t.fixed, "overhead"}};
  return std::max_element(std::begin(parts), std::end(parts))->second;
}

std::string largest(const std::map<std::string, double>& parts) {
  const auto most =
      std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == parts.end() ? std::string() : most->first;
}

std::string type_text(DType t) {
  std::string name(dtype_name(t));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

// The name of what the layers compute in, by where most multiplications are.
std::string_view type_of(const format::Program& program) {
  std::map<DType, uint64_t> work;
  for (const format::Task& t : program.tasks)
    if (const ir::Node& n = program.graph.node(t.node); n.has_input(0))
      work[program.graph.tensor(n.inputs[0]).dtype] += t.macs + 1;
  if (work.empty()) return "float16";
  switch (std::max_element(work.begin(), work.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first) {
    case DType::Int8:
    case DType::UInt8: return "w8a8";
    case DType::Int16: return "w16a16i";
    default: return "float16";
  }
}

// Layers with integer multipliers of their own have no other type.
bool is_integer_program(const ir::Graph& graph) {
  const auto order = graph.order();
  return std::any_of(order.begin(), order.end(), [&](ir::NodeId id) { return graph.node(id).op.starts_with("int:"); });
}

int64_t hertz(const std::optional<double>& mhz) { return mhz ? static_cast<int64_t>(std::llround(*mhz * 1e6)) : 0; }

LayerProfile layer(const compile::Estimate& estimate, size_t i, const Platform& chip, const compile::Conditions& conditions,
                   int cores) {
  const format::Program& program = estimate.program;
  const format::Task& task = program.tasks[i];
  const compile::TaskCost& cost = estimate.costs[i];
  const ir::Node& n = program.graph.node(task.node);
  const int64_t npu_hz = conditions.npu_hz > 0 ? conditions.npu_hz : chip.npu_hz,
                ddr_hz = conditions.ddr_hz > 0 ? conditions.ddr_hz : chip.ddr_hz;
  LayerProfile l;
  l.index = i;
  l.op = compile::NodeFacts(program.graph, n, chip).op();
  l.type = format::viewer_node_type(n);
  l.name = n.name;
  l.origin = n.origin;
  l.device = task.device == format::Device::Npu ? "NPU" : task.device == format::Device::Gpu ? "GPU" : "CPU";
  l.engine = engine_name(task.engine);
  l.reason = task.reason;
  const DType type = n.has_input(0) ? program.graph.tensor(n.inputs[0]).dtype : DType::Undefined;
  if (n.has_input(0)) l.data_type = type_text(type);
  if (const ir::TensorId t = n.output(0); t && program.graph.tensor(t).shape)
    l.output_shape = ir::to_string(*program.graph.tensor(t).shape);
  l.macs = task.macs;
  l.array_cycles = task.array_cycles;
  l.read_bytes = task.read_bytes;
  l.write_bytes = task.write_bytes;
  l.read_again_bytes = task.read_again_bytes;
  l.weight_bytes = task.weight_bytes;
  l.tasks = l.is_on_npu() ? task.tasks_on(cores) : task.tiles;
  l.tiling = task.tiling;
  l.steps = cost.steps;
  for (const compile::Step& s : cost.steps) l.on_chip_bytes += static_cast<uint64_t>(s.on_chip_bytes);
  const double bytes = static_cast<double>(task.read_bytes) + static_cast<double>(task.write_bytes),
               bytes_per_cycle = chip.ddr_bytes_per_cycle(npu_hz, ddr_hz);
  if (bytes_per_cycle > 0 && l.is_on_npu()) l.ddr_cycles = static_cast<uint64_t>(std::ceil(bytes / bytes_per_cycle));
  l.cores = static_cast<int>(task.working_cores(cores));
  const std::vector<compile::StepTime> times = compile::times_of(task, cost, chip, conditions, cores);
  for (size_t k = 0; k < times.size(); ++k) {
    const compile::StepTime& t = times[k];
    l.us += t.total;
    l.compute_us += t.compute;
    l.traffic_us += t.traffic;
    l.table_us += t.table;
    l.fixed_us += t.fixed;
    if (!cost.steps[k].npu && !chip.has_shader) l.cpu_us += t.total;
    l.bounds[bound_of(cost.steps[k], t, chip)] += t.total;
  }
  l.bound = largest(l.bounds);
  if (const int rate = chip.macs_per_cycle(type); l.is_on_npu() && l.macs > 0 && l.us > 0 && rate > 0)
    l.mac_usage = static_cast<double>(l.macs) / (rate * static_cast<double>(npu_hz) * l.us * 1e-6 * l.cores);
  return l;
}

void add_memory(Profile& p, const format::Program& program) {
  std::vector<size_t> first(program.buffers.size(), 0), last(program.buffers.size(), 0);
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const ir::Node& n = program.graph.node(program.tasks[i].node);
    for (ir::TensorId t : n.outputs)
      if (t) first[static_cast<size_t>(t.index)] = last[static_cast<size_t>(t.index)] = i;
    for (ir::TensorId t : n.inputs)
      if (t) last[static_cast<size_t>(t.index)] = i;
  }
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const format::Buffer& b = program.buffers[i];
    if (b.place == format::Buffer::Place::External) p.port_bytes += b.bytes;
    if (b.place == format::Buffer::Place::Arena)
      p.memory.push_back({program.graph.tensor({static_cast<int32_t>(i)}).name, b.offset, b.bytes, first[i], last[i]});
  }
  // A batch has inputs and outputs for every sample, and intermediate results for every sample under way; weights are shared.
  p.port_bytes *= static_cast<uint64_t>(p.batch);
  p.internal_bytes = program.arena_bytes * static_cast<uint64_t>(p.at_once);
}

Profile measure(const compile::Estimate& estimate, const Platform& chip, const ProfileRequest& request, std::string_view dtype,
                int cores) {
  Profile p;
  p.platform = chip.name;
  p.dtype = dtype;
  p.cores = cores;
  p.batch = request.batch;
  p.constants = chip.speed.source == Source::Fitted ? "fitted" : chip.speed.source == Source::Scaled ? "scaled" : "";
  if (chip.speed.source == Source::Unknown) {
    for (std::string_view name : chip.unknown()) p.unknown += (p.unknown.empty() ? "" : ", ") + std::string(name);
    p.unknown = "no times: not published are " + p.unknown;
  }
  if (p.constants == "scaled") p.remark = "scaled from a relative, no published speeds";
  if (chip.has_speed() && chip.ddr_hz == 0 && !request.ddr_mhz)
    p.remark += fmt::format("; DDR clock unknown, counted as {} MHz", chip.speed_ddr_hz() / 1'000'000);
  p.off_list = off_list(estimate, chip);
  // The runtime spreads the samples of a batch over the cores, one sample on one core; without a batch the cores share each
  // layer.
  p.at_once = std::min(request.batch, cores);
  const int cores_per_sample = request.batch > 1 ? 1 : cores;
  compile::Conditions conditions{
      .npu_hz = hertz(request.npu_mhz), .ddr_hz = hertz(request.ddr_mhz), .neighbours = p.at_once - 1 + request.neighbours};
  const int64_t npu_hz = conditions.npu_hz > 0 ? conditions.npu_hz : chip.npu_hz,
                ddr_hz = conditions.ddr_hz > 0 ? conditions.ddr_hz : chip.ddr_hz;
  p.knows_ddr_cycles = chip.ddr_bytes_per_cycle(npu_hz, ddr_hz) > 0;
  p.knows_npu_cycles = chip.int8_macs > 0 || chip.half_macs > 0;
  p.memory_gbs = std::max({chip.speed.feature_gbs, chip.speed.weight_gbs, chip.speed.move_gbs}) *
                 compile::bus_share(chip, conditions, cores_per_sample);
  bool knows_usage = true;
  double used = 0;
  for (size_t i = 0; i < estimate.program.tasks.size(); ++i) {
    LayerProfile l = layer(estimate, i, chip, conditions, cores_per_sample);
    p.layers_us += l.us;
    for (const auto& [bound, us] : l.bounds) p.shares[bound] += us;
    p.macs += l.macs;
    p.weight_bytes += l.weight_bytes;
    p.traffic_bytes += l.ddr_bytes();
    used += l.mac_usage.value_or(0) * l.us * l.cores / cores_per_sample;
    knows_usage &= l.mac_usage.has_value() || !l.is_on_npu() || l.macs == 0;
    ++(l.is_on_npu() ? p.npu_layers : p.cpu_layers);
    p.layers.push_back(std::move(l));
  }
  add_memory(p, estimate.program);
  if (!p.unknown.empty() || p.layers_us <= 0) {
    p.shares.clear();
    p.layers_us = 0;
    p.advice = advise(p, estimate, chip, conditions);
    return p;
  }
  for (auto& [bound, share] : p.shares) share /= p.layers_us;
  if (knows_usage) p.mac_usage = used / p.layers_us;
  p.bound = largest(p.shares);
  // Full rounds of `at_once` samples, then what is left.
  double run_us = p.layers_us * (request.batch / p.at_once);
  if (const int rest = request.batch % p.at_once; rest > 0) {
    compile::Conditions fewer = conditions;
    fewer.neighbours = rest - 1 + request.neighbours;
    for (size_t i = 0; i < estimate.program.tasks.size(); ++i)
      run_us += compile::microseconds(estimate.program.tasks[i], estimate.costs[i], chip, fewer, cores_per_sample);
  }
  p.latency_ms = run_us / 1000;
  p.fps = request.batch * 1e6 / run_us;
  p.gbs = static_cast<double>(p.traffic_bytes) * request.batch / run_us / 1e3;
  p.advice = advise(p, estimate, chip, conditions);
  return p;
}

Status check_clock(std::string_view which, const std::optional<double>& mhz, double most) {
  if (!mhz || (*mhz >= 1 && *mhz <= most)) return {};
  return invalid_argument(fmt::format("the {} clock must be between 1 and {:.0f} MHz", which, most))
      .found(fmt::format("{}", *mhz));
}
}  // namespace

std::string percent_text(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string fps_text(double fps) { return fmt::format("{:.{}f}", fps, fps < 1 ? 3 : fps < 10 ? 2 : 1); }

Status check(const ProfileRequest& request) {
  Status problems;
  if (!find_type(request.dtype)) {
    std::string list;
    std::vector<std::string_view> known;
    for (const TypeName& t : type_names())
      if (!t.name.empty()) known.push_back(t.name);
    for (std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
    Status problem = invalid_argument("unknown dtype '" + request.dtype + "'").expected("one of: " + list);
    if (const std::string meant = did_you_mean(request.dtype, known); !meant.empty()) problem.hint(meant);
    problems.also(problem);
  }
  problems.also(check_op_target(request.op_target));
  problems.also(check_clock("NPU", request.npu_mhz, 10000));
  problems.also(check_clock("DDR", request.ddr_mhz, 20000));
  if (request.batch < 1 || request.batch > kMostSamplesAtOnce)
    problems.also(invalid_argument(fmt::format("a batch must be between 1 and {}", kMostSamplesAtOnce))
                      .found(std::to_string(request.batch)));
  for (int c : request.cores)
    if (c < 1) problems.also(invalid_argument("a number of cores must be at least 1").found(std::to_string(c)));
  if (request.sparse_percent != 0 && request.sparse_percent != 50 && request.sparse_percent != 75)
    problems.also(invalid_argument("weights can be 50 or 75 percent sparse").found(std::to_string(request.sparse_percent)));
  if (request.sram_kib < 0) problems.also(invalid_argument("SRAM cannot be negative").found(std::to_string(request.sram_kib)));
  return problems;
}

Result<std::vector<Profile>> profile(const ir::Graph& graph, const Platform& chip, const ProfileRequest& request) {
  ORKNN_TRY(check(request));
  const TypeName& type = *find_type(request.dtype);
  const auto refused = [&](std::string_view dtype, std::string problem) {
    Profile p;
    p.platform = chip.name;
    p.dtype = dtype;
    p.batch = request.batch;
    p.problem = std::move(problem);
    return std::vector<Profile>{std::move(p)};
  };
  if (type.types && is_integer_program(graph))
    return invalid_argument(fmt::format("the model is quantized already and cannot be judged in {}", type.name))
        .stage("profile")
        .hint("leave out the type, or give the model it was made from");
  if (std::string problem = type_problem(chip, type); !problem.empty()) return refused(type.name, std::move(problem));
  std::vector<int> counts = request.cores;
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.empty())
    for (int c = 1; c <= (request.single_core ? 1 : chip.cores); ++c) counts.push_back(c);
  for (int c : counts)
    if (c > chip.cores)
      return refused(type.name,
                     fmt::format("{} has {} NPU core{}, not {}", chip.name, chip.cores, chip.cores == 1 ? "" : "s", c));
  if (request.sparse_percent > 0 && !chip.features.sparse_weights)
    return refused(type.name, fmt::format("{} has no kernels for sparse weights", chip.name));
  if (request.sram_kib > 0 && !chip.features.sram_for_internal)
    return refused(type.name, fmt::format("{} has no SRAM for intermediate results", chip.name));
  if (int64_t{request.sram_kib} * 1024 > chip.sram_bytes && request.sram_kib > 0)
    return refused(type.name, fmt::format("{} can give at most {} KiB of SRAM", chip.name, chip.sram_bytes / 1024));

  for (ir::TensorId t : graph.inputs()) {
    const ir::Tensor& input = graph.tensor(t);
    if (!input.shape || !ir::to_dims(*input.shape))
      return invalid_argument("the shape of input '" + input.name + "' is open")
          .stage("profile")
          .hint("give it with --input-size-list");
  }

  compile::CompileOptions options;
  options.platform = &chip;
  options.float_dtype = DType::Float32;  // types are assumed, or those of a finished model
  options.assume = type.types;
  options.op_target = request.op_target;
  options.single_core = request.single_core;
  options.cost.weights.assumed = request.sparse_percent == 75   ? format::Sparsity::Both
                                 : request.sparse_percent == 50 ? format::Sparsity::Inputs
                                                                : format::Sparsity::None;
  options.cost.on_chip_bytes = static_cast<uint64_t>(request.sram_kib) * 1024;
  auto estimate = compile::estimate(graph, options);
  if (!estimate && !is_refusal(estimate.status())) return estimate.status();
  if (!estimate) return refused(type.name, estimate.status().to_string());
  const std::string_view name = type.types ? type.name : type_of(estimate->program);
  if (std::string problem = type_problem(chip, *find_type(std::string(name))); !problem.empty())
    return refused(name, std::move(problem));
  std::vector<Profile> results;
  for (int c : counts) results.push_back(measure(*estimate, chip, request, name, c));
  if (const Profile& p = results.front();
      chip.dram_bytes > 0 && p.weight_bytes + p.internal_bytes + p.port_bytes > static_cast<uint64_t>(chip.dram_bytes))
    return refused(name, fmt::format("{} has at most {} of memory in its package, the network needs {} (weights {}, intermediate "
                                     "results {}, inputs and outputs {})",
                                     chip.name, bytes_text(static_cast<uint64_t>(chip.dram_bytes)),
                                     bytes_text(p.weight_bytes + p.internal_bytes + p.port_bytes), bytes_text(p.weight_bytes),
                                     bytes_text(p.internal_bytes), bytes_text(p.port_bytes)));
  return results;
}

namespace {
std::string_view resident_name(format::Tiling::Resident r) {
  return r == format::Tiling::Resident::Features ? "features" : r == format::Tiling::Resident::Weights ? "weights" : "both";
}
}  // namespace

ordered_json to_json(const Profile& p) {
  ordered_json j{{"platform", p.platform}, {"cores", p.cores}, {"dtype", p.dtype}, {"batch", p.batch}};
  if (!p.input_size.empty()) j["input_size"] = p.input_size;
  if (!p.problem.empty()) {
    j["problem"] = p.problem;
    for (const char* key : {"fps", "latency_ms", "weight_bytes", "internal_bytes"}) j[key] = nullptr;
    j["layers"] = ordered_json::array();
    return j;
  }
  // Times that are not known are null, never 0.
  const bool timed = p.has_times();
  const auto time = [&](std::optional<double> value) { return timed && value ? ordered_json(*value) : ordered_json(nullptr); };
  const auto known = [](bool is_known, uint64_t value) { return is_known ? ordered_json(value) : ordered_json(nullptr); };
  for (const auto& [key, text] : {std::pair{"unknown", &p.unknown}, {"remark", &p.remark}, {"off_list", &p.off_list}})
    if (!text->empty()) j[key] = *text;
  j.update({{"samples_at_once", p.at_once},
            {"fps", time(p.fps)},
            {"latency_ms", time(p.latency_ms)},
            {"weight_bytes", p.weight_bytes},
            {"internal_bytes", p.internal_bytes},
            {"port_bytes", p.port_bytes},
            {"traffic_bytes", p.traffic_bytes},
            {"gb_per_s", time(p.gbs)},
            {"macs", p.macs},
            {"mac_usage", time(p.mac_usage)},
            {"bound", p.bound},
            {"shares", p.shares},
            {"constants", p.constants},
            {"npu_layers", p.npu_layers},
            {"cpu_layers", p.cpu_layers},
            {"advice", p.advice}});
  j["layers"] = ordered_json::array();
  for (const LayerProfile& l : p.layers) {
    ordered_json row{{"index", l.index},
                     {"type", l.type},
                     {"name", l.name},
                     {"origin", l.origin},
                     {"device", l.device},
                     {"engine", l.engine},
                     {"reason", l.reason},
                     {"data_type", l.data_type},
                     {"output_shape", l.output_shape},
                     {"macs", l.macs},
                     {"npu_cycles", known(p.knows_npu_cycles, l.array_cycles)},
                     {"ddr_cycles", known(p.knows_ddr_cycles, l.ddr_cycles)},
                     {"max_cycles", known(p.knows_npu_cycles && p.knows_ddr_cycles, std::max(l.array_cycles, l.ddr_cycles))},
                     {"read_bytes", l.read_bytes},
                     {"write_bytes", l.write_bytes},
                     {"read_again_bytes", l.read_again_bytes},
                     {"on_chip_bytes", l.on_chip_bytes},
                     {"weight_bytes", l.weight_bytes},
                     {"tasks", l.tasks},
                     {"cores", l.cores},
                     {"us", time(l.us)},
                     {"compute_us", time(l.compute_us)},
                     {"traffic_us", time(l.traffic_us)},
                     {"table_us", time(l.table_us)},
                     {"fixed_us", time(l.fixed_us)},
                     {"bound", timed ? l.bound : ""},
                     {"mac_usage", time(l.mac_usage)}};
    if (l.tiling.data_banks > 0)
      row["tiling"] = {{"resident", resident_name(l.tiling.resident)},
                       {"rows", l.tiling.rows},
                       {"columns", l.tiling.columns},
                       {"kernels", l.tiling.kernels},
                       {"channels", l.tiling.channels},
                       {"data_banks", l.tiling.data_banks},
                       {"weight_banks", l.tiling.weight_banks}};
    row["steps"] = ordered_json::array();
    for (const compile::Step& s : l.steps)
      row["steps"].push_back({{"work", compile::to_string(s.work)},
                              {"npu", s.npu},
                              {"half", s.half},
                              {"cycles", s.cycles},
                              {"bytes", s.bytes},
                              {"on_chip_bytes", s.on_chip_bytes},
                              {"weight_bytes", s.weight_bytes},
                              {"table_elements", s.table_elements},
                              {"elements", s.elements},
                              {"macs", s.macs},
                              {"least_cycles", s.least_cycles},
                              {"serial", s.serial},
                              {"tasks", s.tasks}});
    j["layers"].push_back(std::move(row));
  }
  j["memory"] = ordered_json::array();
  for (const Profile::Block& b : p.memory)
    j["memory"].push_back(
        {{"tensor", b.tensor}, {"offset", b.offset}, {"bytes", b.bytes}, {"first_layer", b.first}, {"last_layer", b.last}});
  return j;
}

ordered_json chrome_trace(const Profile& p) {
  ordered_json events = ordered_json::array();
  const std::string chip = fmt::format("{}, {} core(s), {}", p.platform, p.cores, p.dtype);
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", chip}}}});
  for (int core = 0; core < p.cores; ++core)
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", core},
                      {"args", {{"name", fmt::format("NPU core {}", core)}}}});
  events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", p.cores}, {"args", {{"name", "CPU"}}}});
  double at = 0;
  for (const LayerProfile& l : p.layers) {
    const int lanes = l.is_on_npu() ? l.cores : 1;
    for (int lane = 0; lane < lanes; ++lane)
      events.push_back({{"name", l.name.empty() ? l.type : l.name},
                        {"cat", l.type},
                        {"ph", "X"},
                        {"ts", at},
                        {"dur", l.us},
                        {"pid", 1},
                        {"tid", l.is_on_npu() ? lane : p.cores},
                        {"args",
                         {{"type", l.type},
                          {"bound", l.bound},
                          {"macs", l.macs},
                          {"read_bytes", l.read_bytes},
                          {"write_bytes", l.write_bytes},
                          {"output", l.output_shape}}}});
    at += l.us;
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

std::string remarks(const Profile& p) {
  std::string text;
  for (const std::string* part : {&p.problem, &p.unknown, &p.remark, &p.off_list})
    if (!part->empty()) text += (text.empty() ? "" : "; ") + *part;
  return text;
}

std::string chips_text(const std::vector<Profile>& profiles, size_t width) {
  using Align = Table::Align;
  const bool sized = std::any_of(profiles.begin(), profiles.end(), [](const Profile& p) { return !p.input_size.empty(); });
  const auto name = [&](const Profile& p) { return sized ? p.platform + ", " + p.input_size : p.platform; };
  Table table({{sized ? "platform, input" : "platform"},
               {"cores", Align::Right},
               {"type"},
               {"FPS", Align::Right},
               {"ms", Align::Right},
               {"weights", Align::Right},
               {"activations", Align::Right},
               {.title = "GB/s", .align = Align::Right, .may_drop = true},
               {"bound by"},
               {.title = "CPU layers", .align = Align::Right, .may_drop = true},
               {.title = "", .may_wrap = true}});
  for (const Profile& p : profiles) {
    if (!p.problem.empty()) {
      table.add({name(p), "", p.dtype, "-", "-", "-", "-", "-", "", "", remarks(p)});
      continue;
    }
    const auto time = [&](std::string text) { return p.has_times() ? text : std::string("?"); };
    table.add({name(p), std::to_string(p.cores), p.dtype, time(fps_text(p.fps)), time(fmt::format("{:.2f}", p.latency_ms)),
               bytes_text(p.weight_bytes), bytes_text(p.internal_bytes), time(fmt::format("{:.2f}", p.gbs)),
               p.bound.empty() ? "" : fmt::format("{} ({})", p.bound, percent_text(p.shares.at(p.bound))),
               std::to_string(p.cpu_layers), remarks(p)});
  }
  return table.to_text(width);
}

std::string layers_text(const Profile& p, size_t width) {
  using Align = Table::Align;
  Table table({{"#", Align::Right},
               {"type", Align::Left, true},
               {"output", Align::Left, true},
               {"on"},
               {"us", Align::Right},
               {"share", Align::Right},
               {"bound by"},
               {.title = "MAC use", .align = Align::Right, .may_drop = true},
               {.title = "MACs/byte", .align = Align::Right, .may_drop = true},
               {.title = "read KiB", .align = Align::Right, .may_drop = true},
               {.title = "tasks", .align = Align::Right, .may_drop = true},
               {"name", Align::Left, true}});
  for (const LayerProfile& l : p.layers) {
    const double bytes = static_cast<double>(l.read_bytes) + static_cast<double>(l.write_bytes);
    const auto time = [&](std::string text) { return p.has_times() ? text : std::string("?"); };
    table.add({std::to_string(l.index + 1), l.type, l.data_type + l.output_shape, l.device, time(fmt::format("{:.1f}", l.us)),
               time(percent_text(p.layers_us > 0 ? l.us / p.layers_us : 0)), time(l.bound),
               l.mac_usage ? time(percent_text(*l.mac_usage)) : "",
               l.macs && bytes > 0 ? fmt::format("{:.1f}", static_cast<double>(l.macs) / bytes) : "",
               fmt::format("{:.0f}", static_cast<double>(l.read_bytes) / 1024), std::to_string(l.tasks), l.name});
  }
  return table.to_text(width);
}

std::string advice_text(const Profile& p, size_t width) {
  constexpr size_t kBullet = 2;
  std::string text;
  for (const std::string& advice : p.advice) {
    const char* begin = "- ";
    for (const std::string& line : wrapped(printable(advice), width ? std::max(width, 2 * kBullet) - kBullet : 0)) {
      text += begin + line + "\n";
      begin = "  ";
    }
  }
  return text;
}

}  // namespace orknn::toolkit
