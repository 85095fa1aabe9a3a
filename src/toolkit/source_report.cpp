#include "toolkit/source_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/utf8.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {
namespace fs = std::filesystem;

std::vector<SourcePort> ports_of(const ir::Graph& graph, const std::vector<ir::TensorId>& ids) {
  std::vector<SourcePort> ports;
  for (ir::TensorId id : ids) {
    const ir::Tensor& t = graph.tensor(id);
    ports.push_back({t.name, std::string(dtype_name(t.dtype)), t.shape ? ir::to_string(*t.shape) : "?"});
  }
  return ports;
}

std::vector<SourcePort> ports_of(const std::vector<importer::StatedPort>& stated) {
  std::vector<SourcePort> ports;
  for (const importer::StatedPort& p : stated)
    ports.push_back({to_utf8(p.name), p.dtype == DType::Undefined ? "?" : std::string(dtype_name(p.dtype)),
                     p.shape ? ir::to_string(*p.shape) : "?"});
  return ports;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Whether `part` stands in `name` as one or more whole words: "yolov3-tiny" does in "yolov3-tiny_final", "resnet1" does not in
// "resnet18".
bool holds_name(std::string_view name, std::string_view part) {
  const auto is_word = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (size_t at = name.find(part); !part.empty() && at != name.npos; at = name.find(part, at + 1)) {
    const size_t end = at + part.size();
    if ((at == 0 || !is_word(name[at - 1])) && (end == name.size() || !is_word(name[end]))) return true;
  }
  return false;
}
}  // namespace

Result<std::vector<std::string>> find_other_files(const std::string& path, std::string_view framework) {
  ORKNN_TRY_ASSIGN(const importer::Importer* const found, importer::choose_importer(path, framework));
  if (found->weights_extension.empty()) return std::vector<std::string>{};
  const std::string_view description = found->extensions[0], weights = found->weights_extension;
  std::string stem = fs::path(path).filename().string();
  if (stem.ends_with(description))
    stem.resize(stem.size() - description.size());
  else
    stem = fs::path(path).stem().string();

  std::vector<std::string> same_stem, related;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_of(path), error)) {
    const std::string other = entry.path().filename().string();
    if (!other.ends_with(weights) || other == fs::path(path).filename().string()) continue;
    const std::string other_stem = other.substr(0, other.size() - weights.size());
    if (holds_name(other_stem, stem) || holds_name(stem, other_stem)) related.push_back(entry.path().string());
    const std::string rest =
        other.starts_with(stem)
            ? other.substr(stem.size(), other.size() - stem.size() - std::min(other.size() - stem.size(), weights.size()))
            : "?";
    const bool is_epoch = rest.size() > 1 && rest[0] == '-' && std::all_of(rest.begin() + 1, rest.end(), [](char c) {
                            return c >= '0' && c <= '9';
                          });  // model-0010.params
    if (rest.empty() || is_epoch) same_stem.push_back(entry.path().string());
  }
  if (!same_stem.empty())
    return std::vector<std::string>{*std::max_element(same_stem.begin(), same_stem.end())};  // the last epoch
  return related.size() == 1 ? related : std::vector<std::string>{};
}

Result<SourceReport> inspect_source(const std::string& path, std::string_view framework, const importer::ImportOptions& options,
                                    std::vector<std::string> other_files, Status& refusal) {
  SourceReport report;
  report.file = path;
  report.framework = framework;
  report.other_files = other_files;
  ORKNN_TRY_ASSIGN(const importer::Importer* const found, importer::choose_importer(path, framework));
  report.framework = found->name;
  auto imported = importer::load_file(path, options, ops::builtin_ops(), report.framework, std::move(other_files));
  if (!imported) {
    refusal = imported.status();
    report.problems = lines_of(refusal.to_string());
    if (auto known = importer::survey_file(path, report.framework)) {
      report.operators = std::move(known->operators);
      report.inputs = ports_of(known->inputs);
      report.outputs = ports_of(known->outputs);
    }
    return report;
  }
  if (Status s = infer_shapes(imported->graph, ops::builtin_ops()); !s) {  // ports and operators are known all the same
    refusal = s.model(fs::path(path).filename().string()).stage("load");
    report.problems = lines_of(refusal.to_string());
  }
  report.producer = imported->source.producer;
  report.warnings = imported->source.warnings;
  report.inputs = ports_of(imported->graph, imported->graph.inputs());
  report.outputs = ports_of(imported->graph, imported->graph.outputs());
  for (ir::NodeId id : imported->graph.order()) ++report.operators[imported->graph.node(id).op];
  return report;
}

nlohmann::ordered_json to_json(const SourceReport& report) {
  const auto ports = [](const std::vector<SourcePort>& list) {
    auto array = nlohmann::ordered_json::array();
    for (const SourcePort& p : list) array.push_back({{"name", p.name}, {"type", p.type}, {"shape", p.shape}});
    return array;
  };
  return {{"file", report.file},
          {"framework", report.framework},
          {"producer", report.producer},
          {"other_files", report.other_files},
          {"inputs", ports(report.inputs)},
          {"outputs", ports(report.outputs)},
          {"operators", report.operators},
          {"warnings", report.warnings},
          {"unsupported", report.problems}};
}

namespace {
// "input           image float32 [1,3,64,64]"
std::string port_line(const char* what, const SourcePort& p, size_t width) {
  const std::string before = fmt::format("{:<16}", what), after = fmt::format(" {} {}\n", p.type, p.shape);
  return before + name_in_line(p.name, width, before.size() + after.size() - 1) + after;
}
}  // namespace

std::string source_text(const SourceReport& report, size_t width) {
  std::string text =
      fmt::format("{:<16}{}{}\n", "source", report.framework,
                  report.producer.empty() || report.producer == report.framework ? "" : " (" + report.producer + ")");
  for (const std::string& file : report.other_files) text += fmt::format("{:<16}{}\n", "weights", file);
  for (const SourcePort& p : report.inputs) text += port_line("input", p, width);
  for (const SourcePort& p : report.outputs) text += port_line("output", p, width);
  std::vector<std::pair<std::string, size_t>> operators(report.operators.begin(), report.operators.end());
  std::stable_sort(operators.begin(), operators.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (size_t i = 0; i < operators.size(); ++i)
    text += fmt::format("{:<16}{} x{}\n", i ? "" : "operators", operators[i].first, operators[i].second);
  for (size_t i = 0; i < report.warnings.size(); ++i) text += fmt::format("{:<16}{}\n", "warning", report.warnings[i]);
  for (size_t i = 0; i < report.problems.size(); ++i)
    text += fmt::format("{:<16}{}\n", i ? "" : "unsupported", report.problems[i]);
  return printable(text);  // names come from files
}

}  // namespace orknn::toolkit
