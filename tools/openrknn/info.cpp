// openrknn info FILE: layers with placement and reasons, tensors, memory plan.
#include <nlohmann/json.hpp>

#include "commands.h"
#include "terminal.h"
#include "toolkit/report.h"

namespace orknn::cli {
namespace {

struct Options {
  SourceOptions source;
  std::string file;
  bool json = false, brief = false;
};

Status info(const Options& o) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const format::Model> model, open_model(o.file, o.source));
  const toolkit::ModelReport report = toolkit::describe(*model);
  if (o.json) {
    print(toolkit::to_json(report).dump(2) + "\n");
    return {};
  }
  print(toolkit::summary_text(report));
  if (o.brief) return {};
  print("\nLayers\n" + toolkit::layers_text(report));
  print("\nTensors\n" + toolkit::tensors_text(report));
  print("\nMemory plan\n" + toolkit::memory_text(report));
  return {};
}
}  // namespace

Action add_info(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "show what is inside a .rknn, or what a source model would become");
  const auto o = std::make_shared<Options>();
  command->add_option("file", o->file, ".rknn or source model")->required();
  command->add_flag("--brief", o->brief, "the summary only");
  o->source.add_to(*command);
  command->add_flag("--json", o->json, "print JSON");
  return [o] {
    const Status s = info(*o);
    return s ? int{kOk} : fail(s);
  };
}

}  // namespace orknn::cli
