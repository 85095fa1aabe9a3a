#include "runtime/run_report.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "format/model_facts.h"
#include "platform/platforms.h"
#include "runtime/layer_dump.h"
#include "runtime/library_identity.h"
#include "runtime/perf_report.h"

namespace orknn::runtime {
namespace {

void log_model(const Session& session) {
  const format::Model& model = session.model();
  const platform::Platform* platform = platform::find(model.target_platform);
  bool nhwc = false;
  for (const PortInfo& port : session.inputs()) nhwc |= port.layout == ir::Layout::NHWC;
  log(LogLevel::Info, "", "RKNN Runtime Information, " + std::string(library_version_text()));
  log(LogLevel::Info, "", "RKNN Driver Information, version: " + std::string(kDriverVersion));
  log(LogLevel::Info, "",
      "RKNN Model Information, version: 6, toolkit version: " + model.toolkit_version +
          "(compiler version: " + model.toolkit_version + "), target: " + std::string(platform ? platform->npu_name : "RKNPU") +
          ", target platform: " + model.target_platform + ", framework name: " + model.source_framework +
          ", framework layout: " + (nhwc ? "NHWC" : "NCHW") +
          ", model inference type: " + (format::has_shape_sets(model) ? "dynamic_shape" : "static_shape"));
}

// What the caller's own memory holds for this tensor, when it is an input that is converted on the way.
std::optional<ir::TensorData> given_value(const Session& session, ir::TensorId tensor) {
  const std::vector<format::Port>& inputs = session.program().inputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].tensor == tensor) return session.given_input(i);
  return std::nullopt;
}

// `hooks` with every value handed to the dumps as well; inputs in the caller's memory as they are there.
sim::RunHooks with_dumps(const sim::RunHooks& hooks, const Session& session, std::vector<LayerDump>& dumps) {
  sim::RunHooks all = hooks;
  all.observe = [&session, &dumps, observe = hooks.observe](ir::TensorId tensor, const ir::TensorView& value) {
    if (observe) observe(tensor, value);
    const std::optional<ir::TensorData> given = given_value(session, tensor);
    for (LayerDump& dump : dumps) given ? dump.write(tensor, given->view(), true) : dump.write(tensor, value);
  };
  return all;
}
}  // namespace

int environment_log_level(int otherwise) {
  const char* text = std::getenv("RKNN_LOG_LEVEL");
  if (!text) return otherwise;
  int level = 0;
  const auto [end, problem] = std::from_chars(text, text + std::strlen(text), level);
  if (problem != std::errc{} || *end != '\0') return otherwise;
  return std::clamp(level, 0, 6);
}

void log_lines(LogLevel level, const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    log(level, "", text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void report_loading(const Session& session, const RunReport& report) {
  if (report.level >= 2) log_model(session);
  if (report.level >= 3) log_lines(LogLevel::Detail, memory_table(session.model(), report.sram_bytes));
}

namespace {
// `run` with the report around it.
template <class Run>
Status reported(Session& session, const RunReport& report, const sim::RunHooks& hooks, Run run) {
  std::vector<LayerDump> dumps;
  if (auto options = runtime_dump(report.level)) dumps.emplace_back(session.program(), std::move(*options));
  if (auto options = toolkit1_dump()) dumps.emplace_back(session.program(), std::move(*options));
  // Without dumps nothing is allocated here: runs on the caller's memory promise that.
  ORKNN_TRY(dumps.empty() ? run(hooks) : run(with_dumps(hooks, session, dumps)));
  if (report.level >= 4) log_lines(LogLevel::Debug, perf_table(session.model(), report.cores, report.sram_bytes));
  return {};
}
}  // namespace

Status run_with_report(Session& session, const RunReport& report, const sim::RunHooks& hooks) {
  return reported(session, report, hooks, [&](const sim::RunHooks& h) { return session.run(h); });
}

Status run_values_with_report(Session& session, std::span<const ir::TensorView> inputs, const RunReport& report,
                              const sim::RunHooks& hooks) {
  return reported(session, report, hooks, [&](const sim::RunHooks& h) { return session.run_values(inputs, h); });
}

}  // namespace orknn::runtime
