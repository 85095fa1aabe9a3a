#include "toolkit/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compile/cpu_ops.h"
#include "ops/eval.h"
#include "toolkit/report.h"
#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {
using nlohmann::ordered_json;
using platform::Platform;
using Source = platform::SpeedModel::Source;

struct TypeName {
  std::string_view name;     // what reports say and quantized_dtype takes
  std::optional<compile::AssumedTypes> types;
  std::vector<std::string_view> spellings;
};

const std::vector<TypeName>& type_names() {
  using compile::AssumedTypes;
  static const std::vector<TypeName> table{
      {"w8a8", AssumedTypes{DType::Int8, DType::Int8}, {"int8", "i8", "u8", "asymmetric_quantized-8", "asymmetric_quantized-u8", "asymmetric_affine-u8", "dynamic_fixed_point-8", "dynamic_fixed_point-i8"}},
      {"float16", AssumedTypes{DType::Float16, DType::Float16}, {"fp16", "f16", "half", "w16a16"}},
      {"w8a16", AssumedTypes{DType::Float16, DType::Int8}, {}},
      {"w4a16", AssumedTypes{DType::Float16, DType::Int4}, {}},
      {"w16a16i", AssumedTypes{DType::Int16, DType::Int16}, {"int16", "i16", "w16a16i_dfp", "dynamic_fixed_point-16", "dynamic_fixed_point-i16"}},
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
  const auto lists = [&](std::string_view name) { return std::find(p.quantized_dtypes.begin(), p.quantized_dtypes.end(), name) != p.quantized_dtypes.end(); };
  std::string offered;
  for (std::string_view name : p.quantized_dtypes) offered += (offered.empty() ? "" : ", ") + std::string(name);
  if (type.name == "float16") return p.conv_half ? "" : fmt::format("{} has no float16 convolution: it computes {}", p.name, offered);
  if (!p.conv_int8) return fmt::format("{} computes in float16 only, not in {}", p.name, type.name);
  if (type.name == "w8a8") return {};
  const bool old16 = type.name == "w16a16i" && p.generation == 1;
  return lists(type.name) || old16 ? "" : fmt::format("{} does not offer {}: it computes {}", p.name, type.name, offered);
}

std::string bound_of(const compile::StepTime& t, bool npu) {
  if (!npu) return "cpu";
  const std::pair<double, const char*> parts[] = {{t.compute, "compute"}, {t.traffic, "bandwidth"}, {t.table, "table"}, {t.fixed, "overhead"}};
  return std::max_element(std::begin(parts), std::end(parts))->second;
}

std::string type_text(DType t) {
  std::string name(dtype_name(t));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

// How much of the array's rows and columns the channels of a dense convolution fill.
double channel_use(const ir::Graph& graph, const ir::Node& n, const Platform& p) {
  if (n.op != "Conv" || p.packs_channels) return 1;
  const compile::NodeFacts facts(graph, n, p);
  const auto w = compile::window_of(facts);
  if (!w || w->group != 1 || !n.has_input(0) || w->in_channels <= 4) return 1;
  const auto& align = dtype_bytes(facts.input_type(0)) == 1 ? p.align_int8 : p.align_half;
  const auto use = [](int64_t channels, int multiple) { return static_cast<double>(channels) / static_cast<double>((channels + multiple - 1) / multiple * multiple); };
  return use(w->in_channels, std::max(align.conv_in, 1)) * use(w->out_channels, std::max(align.conv_out, 1));
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

// Advice in plain words, the costliest first.
std::vector<std::string> advise(const Profile& p, const format::Program& program, const Platform& chip, const compile::Conditions& conditions) {
  std::vector<std::pair<double, std::string>> found;
  const double total = p.latency_ms * 1000 / std::max(p.batch, 1);
  if (total <= 0) return {};
  std::map<std::string, std::pair<double, size_t>> moves;
  for (const LayerProfile& l : p.layers) {
    const double share = l.us / total;
    if (l.device != "NPU" && share >= 0.03)
      found.push_back({share, fmt::format("'{}' ({}) falls to the CPU and takes {} of the time: {}.", l.name, l.type, percent(share), l.reason)});
    if (l.bound == "compute" && share >= 0.02 && l.channel_use < 0.8) {
      const ir::Node& n = program.graph.node(program.tasks[l.index].node);
      const auto w = compile::window_of(compile::NodeFacts(program.graph, n, chip));
      const auto& align = dtype_bytes(program.graph.tensor(n.inputs[0]).dtype) == 1 ? chip.align_int8 : chip.align_half;
      const auto up = [](int64_t v, int m) { return (v + m - 1) / m * m; };
      if (w)
        found.push_back({share * (1 - l.channel_use), fmt::format("'{}': {} -> {} channels leave {} of the MAC array idle; {} -> {} would cost the same time.", l.name, w->in_channels,
                                                                  w->out_channels, percent(1 - l.channel_use), up(w->in_channels, align.conv_in), up(w->out_channels, align.conv_out))});
    }
    const bool mover = l.engine == "move" && l.device == "NPU";
    if (mover) {
      auto& [us, count] = moves[l.type];
      us += l.us;
      ++count;
    }
  }
  for (const auto& [type, sum] : moves)
    if (sum.first / total >= 0.05)
      found.push_back({sum.first / total, fmt::format("{} layers of type {} only move data and take {} of the time.", sum.second, type, percent(sum.first / total))});

  // What the same layers would take with activations that need no table.
  double plain = 0;
  std::map<std::string, double> activations;
  for (const LayerProfile& l : p.layers) {
    double without = 0;
    for (compile::Step s : l.steps) {
      s.table_elements = 0;
      without += compile::time_of(s, chip, conditions, l.cores).total;
    }
    plain += without;
    const ir::Node& n = program.graph.node(program.tasks[l.index].node);
    for (const ir::TailStep& step : n.tail) activations[step.op] += std::max(l.us - without, 0.0) / static_cast<double>(n.tail.size());
  }
  if (const double gain = (total - plain) / total; gain >= 0.05) {
    const auto most = std::max_element(activations.begin(), activations.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    found.push_back({gain, fmt::format("Table activations ({}) cost {} here; with ReLU the network would reach {:.1f} FPS instead of {:.1f}.",
                                       most == activations.end() ? "Swish" : most->first == "Swish" ? "SiLU" : most->first, percent(gain), 1e6 / plain, 1e6 / total)});
  }
  double weight_us = 0;
  for (const LayerProfile& l : p.layers)
    for (const compile::Step& s : l.steps)
      if (l.bound == "bandwidth") weight_us += s.weight_bytes / (chip.speed.weight_gbs * 1e3);
  if (weight_us / total >= 0.2)
    found.push_back({weight_us / total, fmt::format("Reading weights takes {} of the time: fewer bits per weight or a larger batch inside the graph would help.", percent(weight_us / total))});
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> advice;
  for (size_t i = 0; i < found.size() && i < 12; ++i) advice.push_back(std::move(found[i].second));
  std::map<std::string, size_t> refused;
  for (const format::Task& t : program.tasks) {
    const ir::Node& n = program.graph.node(t.node);
    if (t.device == format::Device::Npu) continue;
    if (!compile::cpu_objection(compile::NodeFacts(program.graph, n, chip)).empty()) ++refused[n.op];
  }
  for (const auto& [op, count] : refused)
    advice.push_back(fmt::format("{} layer(s) {} are on no operator list of {} in this form: the vendor's tools would rewrite or refuse them; counted as CPU work.", count, op, chip.name));
  return advice;
}

Result<Profile> measure(const format::Program& program, const Platform& chip, const ProfileRequest& request, int cores) {
  Profile p;
  p.platform = chip.name;
  p.cores = cores;
  p.batch = request.batch;
  p.constants = chip.speed.source == Source::Fitted ? "fitted" : "scaled";
  compile::Conditions conditions;
  conditions.npu_hz = request.npu_hz;
  conditions.ddr_hz = request.ddr_hz;
  conditions.cores = cores;
  const double clock = static_cast<double>(request.npu_hz > 0 ? request.npu_hz : chip.npu_hz);
  const double bytes_per_cycle = chip.ddr_bytes_per_cycle(request.npu_hz > 0 ? request.npu_hz : chip.npu_hz, request.ddr_hz > 0 ? request.ddr_hz : chip.ddr_hz);
  double total_us = 0;
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const format::Task& task = program.tasks[i];
    const ir::Node& n = program.graph.node(task.node);
    compile::TaskCost cost = compile::cost_of(program.graph, task, chip, ops::builtin_ops());
    LayerProfile l;
    l.index = i;
    l.type = n.type_name();
    l.name = n.name;
    l.origin = n.origin;
    l.device = task.device == format::Device::Npu ? "NPU" : "CPU";
    l.engine = engine_name(task.engine);
    l.reason = task.reason;
    if (n.has_input(0)) l.data_type = type_text(program.graph.tensor(n.inputs[0]).dtype);
    if (const ir::TensorId t = n.output(0); t && program.graph.tensor(t).shape) l.output_shape = ir::to_string(*program.graph.tensor(t).shape);
    l.macs = cost.macs;
    l.array_cycles = cost.array_cycles;
    l.read_bytes = cost.read_bytes;
    l.write_bytes = cost.write_bytes;
    l.weight_bytes = cost.packed_bytes;
    l.tiles = cost.tiles;
    const double bytes = static_cast<double>(cost.read_bytes) + static_cast<double>(cost.write_bytes);
    if (bytes_per_cycle > 0 && l.device == "NPU") l.ddr_cycles = static_cast<uint64_t>(std::ceil(bytes / bytes_per_cycle));
    l.cores = std::min(cores, std::popcount(task.core_mask));
    compile::StepTime sum;
    double cpu_us = 0;
    for (const compile::Step& s : cost.steps) {
      const compile::StepTime t = compile::time_of(s, chip, conditions, l.cores);
      sum.total += t.total;
      sum.compute += t.compute;
      sum.traffic += t.traffic;
      sum.table += t.table;
      sum.fixed += t.fixed;
      if (!s.npu) cpu_us += t.total;
    }
    l.us = sum.total;
    l.compute_us = sum.compute;
    l.traffic_us = sum.traffic;
    l.table_us = sum.table;
    l.fixed_us = sum.fixed;
    l.bound = bound_of(sum, cpu_us < sum.total / 2);
    const int rate = chip.macs_per_cycle(n.has_input(0) ? program.graph.tensor(n.inputs[0]).dtype : DType::Undefined);
    if (l.us > 0 && rate > 0) l.mac_usage = static_cast<double>(l.macs) / (rate * clock * l.us * 1e-6 * l.cores);
    l.channel_use = channel_use(program.graph, n, chip);
    l.steps = std::move(cost.steps);
    total_us += l.us;
    p.shares[l.bound] += l.us;
    p.macs += l.macs;
    p.weight_bytes += l.weight_bytes;
    p.traffic_bytes += l.read_bytes + l.write_bytes;
    ++(l.device == "NPU" ? p.npu_layers : p.cpu_layers);
    p.layers.push_back(std::move(l));
  }
  for (auto& [bound, share] : p.shares) share = total_us > 0 ? share / total_us : 0;
  if (!p.shares.empty()) p.bound = std::max_element(p.shares.begin(), p.shares.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  p.latency_ms = total_us / 1000 * request.batch;
  p.fps = total_us > 0 ? 1e6 / total_us : 0;
  p.gbs = total_us > 0 ? static_cast<double>(p.traffic_bytes) / total_us / 1e3 : 0;
  p.internal_bytes = program.arena_bytes;
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
  p.advice = advise(p, program, chip, conditions);
  return p;
}
}  // namespace

Status check(const ProfileRequest& request) {
  Status problems;
  if (!find_type(request.dtype)) {
    std::string known;
    for (const TypeName& t : type_names())
      if (!t.name.empty()) known += (known.empty() ? "" : ", ") + std::string(t.name);
    problems.also(invalid_argument("unknown dtype '" + request.dtype + "'").expected("one of: " + known));
  }
  constexpr int64_t kMHz = 1'000'000;
  if (request.npu_hz != 0 && (request.npu_hz < kMHz || request.npu_hz > 10000 * kMHz)) problems.also(invalid_argument("an NPU clock must lie between 1 and 10000 MHz").found(fmt::format("{:.3f} MHz", static_cast<double>(request.npu_hz) / 1e6)));
  if (request.ddr_hz != 0 && (request.ddr_hz < kMHz || request.ddr_hz > 20000 * kMHz)) problems.also(invalid_argument("a DDR clock must lie between 1 and 20000 MHz").found(fmt::format("{:.3f} MHz", static_cast<double>(request.ddr_hz) / 1e6)));
  if (request.batch < 1 || request.batch > 65536) problems.also(invalid_argument("a batch must lie between 1 and 65536").found(std::to_string(request.batch)));
  for (int c : request.cores)
    if (c < 1 || c > 64) problems.also(invalid_argument("a number of cores must be at least 1").found(std::to_string(c)));
  return problems;
}

Result<std::vector<Profile>> profile(const ir::Graph& graph, const Platform& chip, const ProfileRequest& request) {
  ORKNN_TRY(check(request));
  const TypeName& type = *find_type(request.dtype);
  const auto refused = [&](std::string problem) {
    Profile p;
    p.platform = chip.name;
    p.dtype = type.name;
    p.batch = request.batch;
    p.problem = std::move(problem);
    return std::vector<Profile>{std::move(p)};
  };
  if (std::string problem = type_problem(chip, type); !problem.empty()) return refused(std::move(problem));
  if (chip.speed.source == Source::Unknown) {
    std::string what;
    for (std::string_view name : chip.unknown()) what += (what.empty() ? "" : ", ") + std::string(name);
    return refused(fmt::format("nothing can be predicted for {}: not published are {}", chip.name, what));
  }
  std::vector<int> counts = request.cores;
  if (counts.empty())
    for (int c = 1; c <= (request.single_core ? 1 : chip.cores); ++c) counts.push_back(c);
  for (int c : counts)
    if (c > chip.cores) return refused(fmt::format("{} has {} NPU core{}, not {}", chip.name, chip.cores, chip.cores == 1 ? "" : "s", c));

  for (ir::TensorId t : graph.inputs()) {
    const ir::Tensor& input = graph.tensor(t);
    if (!input.shape || !ir::to_dims(*input.shape))
      return invalid_argument("the shape of input '" + input.name + "' is open").stage("profile").hint("give it with --input-size-list");
  }

  compile::CompileOptions options;
  options.platform = &chip;
  options.assume = type.types;
  options.op_target = request.op_target;
  auto program = compile::compile(graph, options);
  if (!program) return refused(program.status().to_string());
  std::vector<Profile> results;
  for (int c : counts) {
    ORKNN_TRY_ASSIGN(Profile p, measure(*program, chip, request, c));
    p.dtype = type.name;
    results.push_back(std::move(p));
  }
  return results;
}

ordered_json to_json(const Profile& p) {
  ordered_json j{{"platform", p.platform}, {"cores", p.cores}, {"dtype", p.dtype}, {"batch", p.batch}};
  if (!p.problem.empty()) {
    j["problem"] = p.problem;
    for (const char* key : {"fps", "latency_ms", "weight_bytes", "internal_bytes"}) j[key] = nullptr;
    j["layers"] = ordered_json::array();
    return j;
  }
  j.update({{"fps", p.fps}, {"latency_ms", p.latency_ms}, {"weight_bytes", p.weight_bytes}, {"internal_bytes", p.internal_bytes}, {"port_bytes", p.port_bytes},
            {"traffic_bytes", p.traffic_bytes}, {"gb_per_s", p.gbs}, {"macs", p.macs}, {"bound", p.bound}, {"shares", p.shares}, {"constants", p.constants},
            {"npu_layers", p.npu_layers}, {"cpu_layers", p.cpu_layers}, {"advice", p.advice}});
  j["layers"] = ordered_json::array();
  for (const LayerProfile& l : p.layers) {
    ordered_json row{{"index", l.index}, {"type", l.type}, {"name", l.name}, {"origin", l.origin}, {"device", l.device}, {"engine", l.engine}, {"reason", l.reason},
                     {"data_type", l.data_type}, {"output_shape", l.output_shape}, {"macs", l.macs}, {"npu_cycles", l.array_cycles}, {"ddr_cycles", l.ddr_cycles},
                     {"max_cycles", std::max(l.array_cycles, l.ddr_cycles)}, {"read_bytes", l.read_bytes}, {"write_bytes", l.write_bytes}, {"weight_bytes", l.weight_bytes},
                     {"tasks", l.tiles}, {"cores", l.cores}, {"us", l.us}, {"compute_us", l.compute_us}, {"traffic_us", l.traffic_us}, {"table_us", l.table_us},
                     {"fixed_us", l.fixed_us}, {"bound", l.bound}, {"mac_usage", l.mac_usage}};
    row["steps"] = ordered_json::array();
    for (const compile::Step& s : l.steps)
      row["steps"].push_back({{"work", compile::to_string(s.work)}, {"npu", s.npu}, {"half", s.half}, {"cycles", s.cycles}, {"bytes", s.bytes}, {"weight_bytes", s.weight_bytes},
                              {"table_elements", s.table_elements}, {"elements", s.elements}, {"macs", s.macs}});
    j["layers"].push_back(std::move(row));
  }
  return j;
}

ordered_json chrome_trace(const Profile& p) {
  ordered_json events = ordered_json::array();
  const std::string chip = fmt::format("{}, {} core(s), {}", p.platform, p.cores, p.dtype);
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", chip}}}});
  for (int core = 0; core < p.cores; ++core) events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", core}, {"args", {{"name", fmt::format("NPU core {}", core)}}}});
  events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", p.cores}, {"args", {{"name", "CPU"}}}});
  double at = 0;
  for (const LayerProfile& l : p.layers) {
    const int lanes = l.device == "NPU" ? l.cores : 1;
    for (int lane = 0; lane < lanes; ++lane)
      events.push_back({{"name", l.name.empty() ? l.type : l.name}, {"cat", l.type}, {"ph", "X"}, {"ts", at}, {"dur", l.us}, {"pid", 1}, {"tid", l.device == "NPU" ? lane : p.cores},
                        {"args", {{"type", l.type}, {"bound", l.bound}, {"macs", l.macs}, {"read_bytes", l.read_bytes}, {"write_bytes", l.write_bytes}, {"output", l.output_shape}}}});
    at += l.us;
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

std::string chips_text(const std::vector<Profile>& profiles) {
  using Align = Table::Align;
  Table table({{"platform"}, {"cores", Align::Right}, {"type"}, {"FPS", Align::Right}, {"ms", Align::Right}, {"weights", Align::Right}, {"activations", Align::Right},
               {"GB/s", Align::Right}, {"bound by"}, {"CPU layers", Align::Right}, {""}});
  for (const Profile& p : profiles) {
    if (!p.problem.empty()) {
      table.add({p.platform, "", p.dtype, "-", "-", "-", "-", "-", "", "", p.problem});
      continue;
    }
    table.add({p.platform, std::to_string(p.cores), p.dtype, fmt::format("{:.1f}", p.fps), fmt::format("{:.2f}", p.latency_ms), bytes_text(p.weight_bytes), bytes_text(p.internal_bytes),
               fmt::format("{:.2f}", p.gbs), p.bound.empty() ? "" : fmt::format("{} ({})", p.bound, percent(p.shares.at(p.bound))), std::to_string(p.cpu_layers),
               p.constants == "scaled" ? "scaled from a relative, no published speeds" : ""});
  }
  return table.to_text();
}

std::string layers_text(const Profile& p) {
  using Align = Table::Align;
  Table table({{"#", Align::Right}, {"type"}, {"output"}, {"on"}, {"us", Align::Right}, {"share", Align::Right}, {"bound by"}, {"MAC use", Align::Right}, {"MACs/byte", Align::Right},
               {"read KiB", Align::Right}, {"tasks", Align::Right}, {"name"}});
  for (const LayerProfile& l : p.layers) {
    const double bytes = static_cast<double>(l.read_bytes) + static_cast<double>(l.write_bytes);
    table.add({std::to_string(l.index + 1), l.type, l.data_type + l.output_shape, l.device, fmt::format("{:.1f}", l.us),
               percent(p.latency_ms > 0 ? l.us / (p.latency_ms * 1000 / std::max(p.batch, 1)) : 0), l.bound, l.macs ? percent(l.mac_usage) : "",
               l.macs && bytes > 0 ? fmt::format("{:.1f}", static_cast<double>(l.macs) / bytes) : "", fmt::format("{:.0f}", static_cast<double>(l.read_bytes) / 1024),
               std::to_string(l.tiles), l.name});
  }
  return table.to_text();
}

std::string advice_text(const Profile& p) {
  std::string text;
  for (const std::string& line : p.advice) text += "- " + line + "\n";
  return text;
}

}  // namespace orknn::toolkit
