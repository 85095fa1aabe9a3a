#include "toolkit/form_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ops/eval.h"
#include "sim/executor.h"
#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {
const char* form_name(bool blocks) { return blocks ? "NC1HWC2" : "rows"; }
}  // namespace

Result<FormReport> describe_forms(const format::Model& model) {
  FormReport report;
  if (model.programs.empty()) return report;
  const format::Program& program = model.programs[0];
  ThreadPool alone(1);
  ORKNN_TRY_ASSIGN(const std::unique_ptr<sim::Executor> executor, sim::Executor::create(program, ops::builtin_ops(), alone));
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const ir::Node& n = program.graph.node(program.tasks[i].node);
    for (ir::TensorId t : n.outputs) {
      if (!t) continue;
      const ir::Tensor& tensor = program.graph.tensor(t);
      report.tensors.push_back(
          {tensor.name, tensor.shape ? to_string(*tensor.shape) : "", executor->form(t) == sim::Form::Blocked});
    }
    for (ir::TensorId t : executor->conversions(i)) {
      const bool is_result = std::ranges::find(n.outputs, t) != n.outputs.end();
      report.conversions.push_back(
          {i, n.name, program.graph.tensor(t).name, (executor->form(t) == sim::Form::Blocked) == is_result});
    }
  }
  return report;
}

nlohmann::ordered_json to_json(const FormReport& report) {
  auto tensors = nlohmann::ordered_json::array(), conversions = nlohmann::ordered_json::array();
  for (const FormReport::Tensor& t : report.tensors)
    tensors.push_back({{"name", t.name}, {"shape", t.shape}, {"form", form_name(t.blocks)}});
  for (const FormReport::Conversion& c : report.conversions)
    conversions.push_back({{"layer", c.layer}, {"name", c.name}, {"tensor", c.tensor}, {"to", form_name(c.to_blocks)}});
  return {{"tensors", tensors}, {"conversions", conversions}};
}

std::string forms_text(const FormReport& report, size_t width) {
  Table tensors({{"tensor", Table::Align::Left, true}, {"shape", Table::Align::Left, true}, {"form"}});
  for (const FormReport::Tensor& t : report.tensors) tensors.add({t.name, t.shape, form_name(t.blocks)});
  Table conversions(
      {{"#", Table::Align::Right}, {"layer", Table::Align::Left, true}, {"tensor", Table::Align::Left, true}, {"becomes"}});
  for (const FormReport::Conversion& c : report.conversions)
    conversions.add({std::to_string(c.layer), c.name, c.tensor, form_name(c.to_blocks)});
  const auto blocks = std::ranges::count_if(report.tensors, [](const FormReport::Tensor& t) { return t.blocks; });
  return tensors.to_text(width) +
         fmt::format("{} of {} tensors are stored as NC1HWC2 in the simulator, in blocks of {} channels;\n{} conversions{}\n",
                     blocks, report.tensors.size(), sim::kBlock, report.conversions.size(),
                     report.conversions.empty() ? "" : ":") +
         (report.conversions.empty() ? "" : conversions.to_text(width));
}

}  // namespace orknn::toolkit
