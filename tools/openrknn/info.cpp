// openrknn info FILE: ports and operators of a source model and what it would become, or what is inside a .rknn: layers with
// placement and reasons, tensors, memory plan.
#include <nlohmann/json.hpp>

#include "commands.h"
#include "terminal.h"
#include "toolkit/form_report.h"
#include "toolkit/report.h"
#include "toolkit/source_report.h"
#include "toolkit/stream_report.h"

namespace orknn::cli {
namespace {

struct InfoOptions {
  SourceOptions source;
  std::string file;
  bool json = false, brief = false;
};

// What is known of a source model without building it; everything unsupported is reported at once.
Status show_source(InfoOptions& o, nlohmann::ordered_json& j) {
  ORKNN_TRY_ASSIGN(const importer::ImportOptions importing, o.source.import_options());
  ORKNN_TRY_ASSIGN(std::vector<std::string> weights, o.source.weights_of(o.file));
  o.source.other_files = weights.empty() ? std::vector<std::string>{kNoWeights}
                                         : weights;  // building takes the same ones without reporting them again
  Status refusal;
  ORKNN_TRY_ASSIGN(const toolkit::SourceReport source,
                   toolkit::inspect_source(o.file, o.source.framework, importing, std::move(weights), refusal));
  if (o.json)
    j["source"] = toolkit::to_json(source);
  else
    print(toolkit::source_text(source, output_width()));
  return refusal;
}

// `j` gets what is known as JSON, built or not.
Status info(InfoOptions& o, nlohmann::ordered_json& j) {
  if (!is_rknn(o.file)) {
    ORKNN_TRY(show_source(o, j));
    if (!o.json) print("\n");
  }
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const format::Model> model, open_model(o.file, o.source));
  const toolkit::ModelReport report = toolkit::describe(*model);
  std::optional<toolkit::StreamReport> streams;
  toolkit::FormReport forms;
  if (!o.brief) {
    ORKNN_TRY_ASSIGN(forms, toolkit::describe_forms(*model));
    ORKNN_TRY_ASSIGN(streams, toolkit::describe_streams(*model));
  }
  if (o.json) {
    nlohmann::ordered_json built = toolkit::to_json(report);
    if (!o.brief) built["forms"] = toolkit::to_json(forms);
    if (streams) built["streams"] = toolkit::to_json(*streams);
    if (j.contains("source")) built["source"] = j["source"];
    print_json(built);
    return {};
  }
  print(toolkit::summary_text(report, output_width()));
  if (o.brief) return {};
  print("\nLayers\n" + toolkit::layers_text(report, output_width()));
  print("\nTensors\n" + toolkit::tensors_text(report, output_width()));
  print("\nMemory plan\n" + toolkit::memory_text(report, output_width()));
  print("\nForms in memory\n" + toolkit::forms_text(forms, output_width()));
  print("\nCommand streams\n" +
        (streams ? toolkit::streams_text(*streams, output_width()) : "none: the registers of this chip are not known\n"));
  return {};
}
}  // namespace

Action add_info(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "show what is inside a .rknn, or what a source model would become");
  const auto o = std::make_shared<InfoOptions>();
  command->add_option("file", o->file, ".rknn or source model")->required();
  command->add_flag("--brief", o->brief, "the summary only");
  o->source.add_to(*command);
  command->add_flag("--json", o->json, "print JSON");
  add_examples(*command, {"info model.rknn", "info model.onnx -t CHIP --brief"});
  return [o] {
    auto known = nlohmann::ordered_json::object();
    const Status s = info(*o, known);
    return s ? int{kOk} : o->json ? fail(s, known) : fail(s);
  };
}

}  // namespace orknn::cli
