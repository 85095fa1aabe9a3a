// openrknn convert MODEL -o OUT: a source model becomes a .rknn.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "commands.h"
#include "ir/text.h"
#include "terminal.h"
#include "toolkit/report.h"

namespace orknn::cli {
namespace {

// Constants with more elements are not worth reading in a dump.
constexpr int64_t kDumpedElements = 16;

struct ConvertOptions {
  SourceOptions source;
  std::string model, out, yml, stop_after, custom_string;
  std::vector<std::string> disable, dump_after, shape_sets;
  size_t max_rewrites = SIZE_MAX;
  int64_t batch = 1;
  bool trace = false, json = false, single_core = false, separate_buffers = false;
};

Status convert(const ConvertOptions& o) {
  std::error_code problem;
  if (is_rknn(o.model) && std::filesystem::exists(o.model, problem))
    return invalid_argument("the model is a finished .rknn already").model(o.model).hint("convert the model it was made from");
  ORKNN_TRY_ASSIGN(toolkit::BuildConfig config, o.source.config());
  ORKNN_TRY_ASSIGN(const importer::ImportOptions importing, o.source.import_options());
  config.disable_rules = o.disable;
  config.stop_after = o.stop_after;
  config.max_rewrites = o.max_rewrites;
  config.custom_string = o.custom_string;
  config.rknn_batch_size = o.batch;
  ORKNN_TRY_ASSIGN(config.dynamic_input, parse_shape_sets("--dynamic-input", o.shape_sets));
  config.single_core_mode = o.single_core;
  config.share_memory = !o.separate_buffers;
  std::map<std::string, std::string> dump_files;  // pass -> file, empty = stdout
  for (const std::string& dump : o.dump_after) {
    const size_t at = dump.find('=');
    config.dump_after.push_back(dump.substr(0, at));
    dump_files[config.dump_after.back()] = at == dump.npos ? "" : dump.substr(at + 1);
    if (o.json && at == dump.npos)
      return invalid_argument("a dump is text and cannot go among the JSON")
          .hint(fmt::format("write it to a file: --dump-after {}=FILE", dump));
  }
  std::vector<std::string> read = o.source.other_files, written{o.out};
  read.push_back(o.model);
  for (const auto& [pass, file] : dump_files) written.push_back(file);
  ORKNN_TRY(check_outputs(read, written));
  Status dumped;
  config.dump = [&](std::string_view pass, const ir::Graph& graph) {
    const std::string text = ir::print(graph, {.max_elements = kDumpedElements}), &file = dump_files[std::string(pass)];
    if (file.empty())
      print(fmt::format("after {}:\n{}\n", pass, text));
    else if (Status s = write_file_atomically(file, [&](FileWriter& out) { return out.write(text); }); !s && dumped)
      dumped = s;  // a pass runs several times
  };

  const bool is_stopped = !config.stop_after.empty();
  ORKNN_TRY_ASSIGN(toolkit::Builder builder, toolkit::Builder::create(std::move(config), progress_bar()));
  ORKNN_TRY_ASSIGN(std::vector<std::string> weights, o.source.weights_of(o.model));
  ORKNN_TRY(builder.load_model({o.model, o.source.framework, importing, std::move(weights)}));
  ORKNN_TRY(builder.build(o.source.build_request()));
  ORKNN_TRY(dumped);
  ORKNN_TRY(builder.export_rknn(o.out));

  const toolkit::Built& built = *builder.built();
  const toolkit::ModelReport report = toolkit::describe(*built.model);
  const uint64_t bytes = std::filesystem::file_size(o.out);
  if (o.json) {
    nlohmann::ordered_json j{{"output", o.out}, {"file_bytes", bytes}, {"model", toolkit::to_json(report)}};
    if (!built.hybrid_summary.empty()) j["auto_hybrid"] = built.hybrid_summary;
    if (o.trace) {
      j["trace"] = nlohmann::ordered_json::parse(built.trace.to_json());
      for (const passes::PassTime& t : built.trace.times)
        j["pass_times"].push_back({{"pass", t.pass}, {"runs", t.runs}, {"rewrites", t.rewrites}, {"seconds", t.seconds}});
    }
    print_json(j);
    return {};
  }
  if (o.trace) print(built.trace.to_text() + built.trace.times_text());
  print(toolkit::summary_text(report, output_width()));
  for (const std::string& line : built.hybrid_summary) print(line + "\n");
  print(
      fmt::format("{:<16}{} ({}){}\n", "written", o.out, toolkit::bytes_text(bytes), is_stopped ? ", not fully optimized" : ""));
  return {};
}

// A yml file states everything that options could.
Status check_yml_options(const CLI::App& command, const ConvertOptions& o) {
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0 && !option->check_lname("yml") && !option->check_lname("output") &&
        !option->check_lname("target-platform") && !option->check_lname("json"))
      return invalid_argument(fmt::format("'{}' has no effect beside --yml", option->get_name()))
          .hint(fmt::format("state it in {}", o.yml));
  return {};
}

Status convert_either(const CLI::App& command, const ConvertOptions& o) {
  if (o.yml.empty()) return o.model.empty() ? invalid_argument("convert needs a model, or --yml FILE") : convert(o);
  ORKNN_TRY(check_yml_options(command, o));
  return convert_yml(o.yml, o.out, o.source.platform, o.json);
}

// quantize is convert with a dataset.
Action add_command(CLI::App& app, const char* name, const char* what, bool needs_dataset) {
  CLI::App* command = app.add_subcommand(name, what);
  const auto o = std::make_shared<ConvertOptions>();
  CLI::Option* model = command->add_option("model", o->model, "source model");
  command->add_option("-o,--output", o->out, "the .rknn to write")->required();
  o->source.add_to(*command);
  o->source.needs_dataset = needs_dataset;
  o->source.add_quantization_to(*command);
  if (needs_dataset) {
    model->required();
  } else {
    command->add_option(
        "--yml", o->yml,
        "convert the models that this file of rknn_convert describes; -o is their folder, -t the chip; no other options");
  }
  command->add_option("--custom-string", o->custom_string, "text stored in the model");
  command->add_option("--batch-size", o->batch, "samples the model computes at once")->capture_default_str();
  command
      ->add_option("--dynamic-input", o->shape_sets,
                   "a set of input shapes the model runs with, 1,3,224,224 or 1,20;1,40 for two inputs; once per set")
      ->allow_extra_args(false);
  command->add_flag("--single-core,--single-core-mode", o->single_core, "plan every layer for one core");
  command->add_flag("--separate-buffers", o->separate_buffers,
                    "no memory is reused, so every intermediate result can be looked at");
  command
      ->add_option("--disable,--disable-rules", o->disable,
                   "passes of the optimizer or steps of the quantizer to leave out, a,b (openrknn passes); may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--stop-after", o->stop_after, "stop optimizing after this pass");
  command->add_option("--dump-after", o->dump_after, "print the graph after PASS, or write it: PASS=FILE; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--max-rewrites", o->max_rewrites, "stop optimizing after this many rewrites");
  command->add_flag("--trace", o->trace, "show what passes and steps did, and their times");
  command->add_flag("--json", o->json, "print JSON");
  o->source.add_other_keys_to(*command);
  if (needs_dataset)
    add_examples(*command, {"quantize model.onnx -o model.rknn -t CHIP --dataset list.txt --mean 0,0,0 --std 255,255,255",
                            "quantize model.onnx -o model.rknn -t CHIP --dataset list.txt --algorithm mmse --auto-hybrid 0.99"});
  else
    add_examples(*command, {"convert model.onnx -o model.rknn -t CHIP",
                            "convert model.onnx -o model.rknn -t CHIP --inputs image --input-size-list 1,3,224,224",
                            "convert deploy.prototxt --weights net.caffemodel -o net.rknn -t CHIP"});
  return [o, command] {
    const Status s = convert_either(*command, *o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace

Action add_convert(CLI::App& app) { return add_command(app, "convert", "convert a model to .rknn", false); }
Action add_quantize(CLI::App& app) {
  return add_command(app, "quantize", "convert a model to .rknn in 8 bits, calibrated with pictures", true);
}

}  // namespace orknn::cli
