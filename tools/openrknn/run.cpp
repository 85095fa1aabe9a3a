// openrknn run MODEL --input FILE.npy: runs a .rknn or a source model on the simulator.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/nearest_name.h"
#include "commands.h"
#include "data/dataset.h"
#include "data/npy.h"
#include "data/picture.h"
#include "runtime/custom_op_plugins.h"
#include "terminal.h"
#include "toolkit/engine_comparison.h"
#include "toolkit/report.h"
#include "toolkit/table.h"

namespace orknn::cli {
namespace {

struct RunOptions {
  SourceOptions source;
  std::string model, out, layout, engine;
  std::vector<std::string> inputs;
  int loop = 1, threads = 0;
  bool pass_through = false, bgr = false, layers = false, verify = false, json = false;
};

struct Statistics {
  double min = 0, max = 0, mean = 0;
  int64_t not_finite = 0;
};

Statistics statistics_of(const ir::TensorData& value) {
  Statistics s;
  int64_t count = 0;
  for (double v : ir::to_doubles(value.view())) {
    if (!std::isfinite(v)) {
      ++s.not_finite;
      continue;
    }
    s.min = count ? std::min(s.min, v) : v;
    s.max = count ? std::max(s.max, v) : v;
    s.mean += v;
    ++count;
  }
  if (count) s.mean /= static_cast<double>(count);
  return s;
}

// An array of a .npy file, or a picture as `analyse` and calibration read it: scaled to the input, RGB unless --bgr.
struct InputFile {
  ir::TensorData value;
  ir::Layout layout = ir::Layout::Undefined;  // Undefined: as --layout says
};
Status not_an_input(const std::string& file, const runtime::PortInfo& port) {
  Status problem = invalid_argument("the file for input '" + port.name + "' is neither a picture nor an array")
                       .model(file)
                       .expected("a picture or a .npy file");
  if (file.ends_with(".txt")) problem.hint("name the files of one sample themselves; lists are for --dataset");
  return problem;
}
Result<InputFile> read_input(const std::string& file, const runtime::PortInfo& port, const RunOptions& o) {
  ORKNN_TRY_ASSIGN(const bool is_picture, data::is_picture_file(file));
  if (!is_picture) {
    ORKNN_TRY_ASSIGN(const bool is_array, data::is_npy_file(file));
    if (!is_array) return not_an_input(file, port);
    ORKNN_TRY_ASSIGN(ir::TensorData value, data::read_npy(file));
    return InputFile{std::move(value), {}};
  }
  if (!o.layout.empty()) note("'" + file + "' is a picture: --layout has no effect on it");
  ORKNN_TRY_ASSIGN(const data::Dataset sample, data::Dataset::of_files({file}, {{port.name, port.dims, port.layout, o.bgr}}));
  ORKNN_TRY_ASSIGN(std::vector<ir::TensorData> values, sample.sample(0));
  return InputFile{std::move(values[0]), port.layout};
}

Status no_such_input(const std::string& name, const std::vector<runtime::PortInfo>& ports) {
  std::vector<std::string> names;
  for (const runtime::PortInfo& port : ports) names.push_back(port.name);
  Status problem = invalid_argument(fmt::format("the model has no input '{}'", name))
                       .expected(fmt::format("one of {}", fmt::join(names, ", ")));
  if (const std::string meant = did_you_mean(name, names); !meant.empty()) problem.hint(meant);
  return problem;
}

Status feed(runtime::Session& session, const RunOptions& o) {
  std::map<size_t, std::string> given;  // by index of the input
  for (size_t k = 0; k < o.inputs.size(); ++k) {
    // NAME=FILE names the input; FILE alone goes by position.
    std::string file = o.inputs[k];
    size_t index = k;
    if (const size_t at = file.find('='); at != file.npos) {
      const auto& ports = session.inputs();
      const auto it =
          std::find_if(ports.begin(), ports.end(), [&](const runtime::PortInfo& p) { return p.name == file.substr(0, at); });
      std::error_code ignored;
      if (it != ports.end()) {
        index = static_cast<size_t>(it - ports.begin());
        file = file.substr(at + 1);
        if (file.empty()) return invalid_argument(fmt::format("'{}' names no file", o.inputs[k])).expected("NAME=FILE");
      } else if (!std::filesystem::exists(file, ignored)) {
        return no_such_input(file.substr(0, at), ports);
      }
    }
    if (index >= session.inputs().size())
      return invalid_argument(fmt::format("the model has {} input(s), found {}", session.inputs().size(), o.inputs.size()));
    if (const auto [first, is_new] = given.emplace(index, file); !is_new)
      return invalid_argument(fmt::format("two files are given for input '{}'", session.inputs()[index].name))
          .expected("one")
          .found(fmt::format("'{}' and '{}'", first->second, file));
    ORKNN_TRY_ASSIGN(const InputFile input, read_input(file, session.inputs()[index], o));
    const ir::TensorData& value = input.value;
    runtime::InputData data;
    data.dtype = value.dtype();
    data.data = value.data();
    data.bytes = value.bytes();
    data.layout = input.layout != ir::Layout::Undefined ? input.layout
                  : o.layout == "nhwc"                  ? ir::Layout::NHWC
                  : o.layout == "nchw"                  ? ir::Layout::NCHW
                                                        : ir::Layout::Undefined;
    data.pass_through = o.pass_through;
    data.dims = value.dims();
    if (Status s = session.set_input(index, data); !s) {
      const runtime::PortInfo& port = session.inputs()[index];
      if (o.layout.empty() && port.layout == ir::Layout::NCHW && runtime::nhwc_from_nchw(port.dims) == value.dims())
        s.hint("the array is in the order of pictures: add --layout nhwc");
      return s.model(file);
    }
  }
  return {};
}

// Every tensor of the command streams against the simulator's.
Status verify(const std::shared_ptr<const format::Model>& model, ThreadPool& pool, const RunOptions& o) {
  ORKNN_TRY_ASSIGN(const toolkit::EngineComparison result,
                   toolkit::compare_engines(model, pool, [&](runtime::Session& session) { return feed(session, o); }));
  if (o.json) {
    nlohmann::ordered_json j{{"model", o.model}};
    j.update(toolkit::to_json(result));
    if (!o.layers) j.erase("layers");
    print_json(j);
  } else {
    print(toolkit::engine_comparison_text(result, o.layers, output_width()));
  }
  return toolkit::status_of(result);
}

Status run(const RunOptions& o) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const format::Model> model, open_model(o.model, o.source));
  ThreadPool pool(o.threads);
  if (!o.engine.empty()) setenv("ORKNN_ENGINE", o.engine.c_str(), 1);
  if (o.verify) return verify(model, pool, o);
  ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> session, runtime::Session::open(model, &pool));
  runtime::load_plugins(*session);
  ORKNN_TRY(feed(*session, o));

  std::vector<double> times, layer_times(session->program().tasks.size(), 0);
  sim::RunHooks hooks;
  if (o.layers)
    hooks.timing = [&](size_t index, std::chrono::nanoseconds d) { layer_times[index] += static_cast<double>(d.count()) * 1e-3; };
  for (int i = 0; i < o.loop; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ORKNN_TRY(session->run(hooks));
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];

  nlohmann::ordered_json j{{"model", o.model},        {"threads", pool.threads()}, {"runs", o.loop},
                           {"min_ms", times.front()}, {"median_ms", median},       {"max_ms", times.back()}};
  toolkit::Table table({{"output", toolkit::Table::Align::Left, true},
                        {.title = "type", .may_drop = true},
                        {"shape", toolkit::Table::Align::Left, true},
                        {"min", toolkit::Table::Align::Right},
                        {"max", toolkit::Table::Align::Right},
                        {.title = "mean", .align = toolkit::Table::Align::Right, .may_drop = true},
                        {"NaN, inf", toolkit::Table::Align::Right},
                        {"file", toolkit::Table::Align::Left, true}});
  for (size_t i = 0; i < session->outputs().size(); ++i) {
    const ir::TensorData value = session->output(i);
    const std::string file = o.out.empty() ? "" : fmt::format("{}/output_{}.npy", o.out, i);
    if (!file.empty())
      if (Status s = data::write_npy(file, value); !s) return s.model(file);
    const Statistics s = statistics_of(value);
    const std::string& name = session->outputs()[i].name;
    table.add({name, std::string(dtype_name(value.dtype())), ir::to_string(value.dims()), fmt::format("{:.6g}", s.min),
               fmt::format("{:.6g}", s.max), fmt::format("{:.6g}", s.mean), std::to_string(s.not_finite), file});
    j["outputs"].push_back({{"name", name},
                            {"type", dtype_name(value.dtype())},
                            {"shape", value.dims()},
                            {"min", s.min},
                            {"max", s.max},
                            {"mean", s.mean},
                            {"not_finite", s.not_finite},
                            {"file", file}});
  }
  toolkit::Table layers({{"#", toolkit::Table::Align::Right},
                         {"type"},
                         {"name", toolkit::Table::Align::Left, true},
                         {"device"},
                         {"kernel", toolkit::Table::Align::Left, true},
                         {"us", toolkit::Table::Align::Right}});
  if (o.layers) {
    const auto report = toolkit::describe(*model);
    for (const toolkit::LayerReport& l : report.programs[0].layers) {
      const double us = layer_times[l.index] / o.loop;
      const std::string kernel(session->kernel_name(l.index));
      layers.add({std::to_string(l.index), l.type, l.name, l.device, kernel, fmt::format("{:.1f}", us)});
      j["layers"].push_back(
          {{"index", l.index}, {"type", l.type}, {"name", l.name}, {"device", l.device}, {"kernel", kernel}, {"us", us}});
    }
  }
  if (o.json) {
    print_json(j);
    return {};
  }
  if (o.layers) print(layers.to_text(output_width()) + "\n");
  print(table.to_text(output_width()));
  print(o.loop == 1 ? fmt::format("{:.3f} ms with {} thread(s)\n", median, pool.threads())
                    : fmt::format("{:.3f} ms median of {} runs with {} thread(s), {:.3f} to {:.3f} ms\n", median, o.loop,
                                  pool.threads(), times.front(), times.back()));
  return {};
}
}  // namespace

Action add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "run a .rknn or a source model on the simulator");
  const auto o = std::make_shared<RunOptions>();
  command->add_option("model", o->model, ".rknn or source model")->required();
  command->add_option("-i,--input", o->inputs,
                      "picture or .npy file of each input, in order, or NAME=FILE; inputs not given are zeros");
  one_of(command->add_option("--layout", o->layout, "axis order of 4-D inputs, the model's own by default"), {"nchw", "nhwc"});
  command->add_flag("--bgr", o->bgr, "pictures are fed as BGR");
  command->add_flag("--pass-through", o->pass_through, "inputs are used as they are, without mean and std");
  command->add_option("--out", o->out, "folder for output_0.npy, ...")->check(existing_folder());
  command->add_option("--loop", o->loop, "number of runs")->check(whole_number(1, 1000000))->capture_default_str();
  command->add_option("--threads", o->threads, "0 = one per core")->check(whole_number(0, 1024))->capture_default_str();
  one_of(command->add_option("--engine", o->engine,
                             "simulator; registers: command streams on the model of the chip; npu: on this board's NPU (default: "
                             "ORKNN_ENGINE, else the board's NPU where there is one that fits the model, else the simulator)"),
         {"simulator", "registers", "npu"});
  command->add_flag("--verify", o->verify,
                    "run command streams, on the board's NPU where there is one, and the simulator, and compare every tensor: "
                    "integers bit for bit, floats up to the order of additions");
  command->add_flag("--layers", o->layers, "show the time of every layer");
  o->source.add_to(*command);
  command->add_flag("--json", o->json, "print JSON");
  add_examples(*command, {"run model.rknn --input dog.jpg --out results", "run model.onnx -t CHIP --input a=a.npy b=b.npy",
                          "run model.rknn --loop 100 --layers"});
  return [o] {
    const Status s = run(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace orknn::cli
