// openrknn analyse MODEL: where a built model loses accuracy.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "commands.h"
#include "terminal.h"
#include "toolkit/accuracy.h"
#include "toolkit/step_trials.h"
#include "toolkit/table.h"

namespace orknn::cli {
namespace {

struct AnalyseOptions {
  SourceOptions source;
  std::string model, snapshot, html;
  std::vector<std::string> inputs;
  bool json = false;
};

Status analyse(const AnalyseOptions& o) {
  if (o.inputs.empty() && o.source.dataset.empty())
    return invalid_argument("analyse needs a sample")
        .hint("give --dataset to quantize with, or --input FILE for a float16 build");
  if (is_rknn(o.model))
    return invalid_argument("a finished .rknn has no float form to compare with").model(o.model).hint("give the source model");
  std::vector<std::string> read = o.source.other_files;
  read.push_back(o.model);
  ORKNN_TRY(check_outputs(read, {o.html}));
  ORKNN_TRY_ASSIGN(const toolkit::Builder builder, build_model(o.model, o.source));
  toolkit::AccuracyOptions options;
  options.inputs = o.inputs;
  options.dataset = o.source.dataset;
  options.output_dir = o.snapshot;
  ORKNN_TRY_ASSIGN(const toolkit::AccuracyReport report, builder.analyse_accuracy(options));
  if (!o.html.empty())
    ORKNN_TRY(write_file_atomically(o.html, [&](FileWriter& out) { return out.write(toolkit::accuracy_html(report)); }));
  if (o.json) {
    nlohmann::ordered_json json = toolkit::to_json(report);
    json["steps"] = toolkit::to_json(builder.built()->step_gains);
    print_json(json);
    return {};
  }
  const size_t width = output_width();
  const auto print_words = [&](const std::string& text) {
    print(fmt::format("{}\n", fmt::join(toolkit::wrapped(text, width), "\n")));
  };
  for (const std::string& line : builder.built()->hybrid_summary) print_words(line);
  if (!builder.built()->step_gains.empty()) print(toolkit::step_table(builder.built()->step_gains) + "\n");
  print_coloured(toolkit::accuracy_text(report, isatty(STDOUT_FILENO) != 0, width) + "\n");
  if (const toolkit::LayerAccuracy* worst = report.worst_output())
    print_words(fmt::format("worst output: {}, cosine {}", worst->name,
                            worst->entire->word.empty() ? fmt::format("{:.5f}", worst->entire->cosine) : worst->entire->word));
  for (const toolkit::LayerAccuracy& l : report.layers)
    if (!l.suggestion.empty() && l.single && (!l.single->word.empty() || l.single->cosine < toolkit::kSuspiciousCosine)) {
      print("\n");
      print_words(fmt::format("{}: {}", l.name, l.suggestion));
    }
  if (!o.html.empty()) print(fmt::format("\nwritten {}\n", o.html));
  return {};
}
}  // namespace

Action add_analyse(CLI::App& app) {
  CLI::App* command = app.add_subcommand("analyse", "show where a built model loses accuracy, layer by layer")->alias("analyze");
  const auto o = std::make_shared<AnalyseOptions>();
  command->add_option("model", o->model, "source model")->required();
  command
      ->add_option("-i,--input", o->inputs, "picture or .npy of each input, in order; the first sample of --dataset by default")
      ->allow_extra_args(false);
  o->source.add_to(*command);
  o->source.add_quantization_to(*command);
  o->source.add_other_keys_to(*command);
  command->add_option("--html", o->html, "write a page with plots, histograms and advice");
  command->add_option("--snapshot", o->snapshot, "folder for the values of every layer");
  command->add_flag("--json", o->json, "print JSON");
  add_examples(*command, {"analyse model.onnx -t CHIP --dataset list.txt --mean 0,0,0 --std 255,255,255 --html report.html",
                          "analyse model.onnx -t CHIP --input dog.jpg"});
  return [o] {
    const Status s = analyse(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace orknn::cli
