// openrknn hybrid-step1, hybrid-step2: quantization with layers that the user leaves in float, in two steps.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "commands.h"
#include "terminal.h"
#include "toolkit/report.h"

namespace orknn::cli {
namespace {

struct HybridStep1Options {
  SourceOptions source;
  std::string model;
  toolkit::HybridRequest request;
  std::vector<std::string> between;
  bool json = false;
};

Status hybrid_step1(HybridStep1Options& o) {
  for (const std::string& pair : o.between) {
    const size_t comma = pair.find(',');
    if (comma == 0 || comma == pair.npos || comma + 1 == pair.size())
      return invalid_argument("--between needs two tensors").expected("INPUT,OUTPUT").found(pair);
    o.request.custom.emplace_back(pair.substr(0, comma), pair.substr(comma + 1));
  }
  ORKNN_TRY_ASSIGN(toolkit::BuildConfig config, o.source.config());
  ORKNN_TRY_ASSIGN(const importer::ImportOptions importing, o.source.import_options());
  ORKNN_TRY_ASSIGN(toolkit::Builder builder, toolkit::Builder::create(std::move(config), progress_bar()));
  ORKNN_TRY_ASSIGN(std::vector<std::string> weights, o.source.weights_of(o.model));
  ORKNN_TRY(builder.load_model({o.model, o.source.framework, importing, std::move(weights)}));
  o.request.dataset = o.source.dataset;
  ORKNN_TRY_ASSIGN(const toolkit::HybridStep1 done, builder.hybrid_step1(o.request));
  if (o.json) {
    print_json({{"files", done.files}, {"summary", done.hybrid_summary}});
    return {};
  }
  for (const std::string& line : done.hybrid_summary) print(line + "\n");
  for (const std::string& file : done.files) print(fmt::format("{:<16}{}\n", "written", file));
  print(fmt::format("{:<16}edit {}, then run openrknn hybrid-step2\n", "next", done.files.back()));
  return {};
}

struct HybridStep2Options {
  std::string quantization, out;
  toolkit::HybridFiles files;
  bool json = false;
};

// The files of step 1 share a name: those that are not named lie beside the one that is.
toolkit::HybridFiles files_of(const HybridStep2Options& o) {
  constexpr std::string_view kEnding = ".quantization.cfg";
  toolkit::HybridFiles files = o.files;
  files.quantization = o.quantization;
  const bool has_ending = o.quantization.ends_with(kEnding);
  const std::string stem = o.quantization.substr(0, o.quantization.size() - (has_ending ? kEnding.size() : 0));
  if (files.model.empty()) files.model = stem + ".model";
  if (files.data.empty()) files.data = stem + ".data";
  return files;
}

Status hybrid_step2(const HybridStep2Options& o) {
  const toolkit::HybridFiles files = files_of(o);
  ORKNN_TRY(check_outputs({files.model, files.data, files.quantization}, {o.out}));
  ORKNN_TRY_ASSIGN(const toolkit::Builder builder, toolkit::Builder::hybrid_step2(files, progress_bar()));
  ORKNN_TRY(builder.export_rknn(o.out));
  const toolkit::ModelReport report = toolkit::describe(*builder.built()->model);
  const uint64_t bytes = std::filesystem::file_size(o.out);
  if (o.json) {
    print_json({{"output", o.out}, {"file_bytes", bytes}, {"model", toolkit::to_json(report)}});
    return {};
  }
  print(toolkit::summary_text(report, output_width()));
  print(fmt::format("{:<16}{} ({})\n", "written", o.out, toolkit::bytes_text(bytes)));
  return {};
}

}  // namespace

Action add_hybrid_step1(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("hybrid-step1", "calibrate a model and write files in which you choose layers for float");
  const auto o = std::make_shared<HybridStep1Options>();
  command->add_option("model", o->model, "source model")->required();
  command->add_option("-o,--output", o->request.folder, "folder of the files")->capture_default_str();
  o->source.add_to(*command);
  o->source.needs_dataset = true;
  o->source.add_quantization_to(*command);
  command->add_flag("--proposal", o->request.proposal, "fill in the layers that --auto-hybrid would leave in float");
  command->add_option("--proposal-samples", o->request.proposal_samples, "samples of the dataset that the proposal is made with")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--between", o->between, "every layer between two tensors stays in float, INPUT,OUTPUT; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--json", o->json, "print JSON");
  o->source.add_other_keys_to(*command);
  add_examples(*command, {"hybrid-step1 model.onnx -t CHIP --dataset list.txt --proposal",
                          "hybrid-step2 model.quantization.cfg -o model.rknn"});
  return [o] {
    const Status s = hybrid_step1(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

Action add_hybrid_step2(CLI::App& app) {
  CLI::App* command = app.add_subcommand("hybrid-step2", "build the model that the files of hybrid-step1 describe");
  const auto o = std::make_shared<HybridStep2Options>();
  command->add_option("quantization", o->quantization, "the .quantization.cfg of step 1")->required();
  command->add_option("-o,--output", o->out, "the .rknn to write")->required();
  command->add_option("--model", o->files.model, "the .model of step 1, by default the one beside the .quantization.cfg");
  command->add_option("--data", o->files.data, "the .data of step 1, by default the one beside the .quantization.cfg");
  command->add_option("--dataset", o->files.dataset, "where the calibration list of step 1 has moved, if it is still needed");
  command->add_flag("--json", o->json, "print JSON");
  add_examples(*command, {"hybrid-step2 model.quantization.cfg -o model.rknn"});
  return [o] {
    const Status s = hybrid_step2(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace orknn::cli
