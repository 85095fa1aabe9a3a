// openrknn emit FOLDER -o OUT: command streams and packed operands of a layer described in a folder.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "terminal.h"
#include "toolkit/layer_folder.h"

namespace orknn::cli {
namespace {

struct EmitCommandOptions {
  std::string folder, out, groups = "whole";
  bool execute = false, disassemble = false, json = false;
};

std::string outcome(const toolkit::EmitReport& r) {
  if (r.compared == r.results.size()) return "the chip model's results equal the folder's";
  if (r.compared > 0) return fmt::format("{} of {} results compared with the folder's, equal", r.compared, r.results.size());
  return "the folder holds no results to compare the chip model's with";
}

Status emit(const EmitCommandOptions& o) {
  toolkit::EmitOptions options;
  if (o.groups == "short") options.grouping = silicon::Grouping::Short;
  ORKNN_TRY_ASSIGN(const toolkit::EmitReport report, toolkit::emit_layer(o.folder, o.out, options));
  if (o.json)
    print_json({{"folder", o.out},
                {"tasks", report.tasks},
                {"words", report.words},
                {"packed_bytes", report.packed_bytes},
                {"results", report.results},
                {"compared", report.compared}});
  else
    print(fmt::format("{}: {} tasks, {} words, {} bytes of packed operands; {}\n", o.out, report.tasks, report.words,
                      report.packed_bytes, outcome(report)));
  return {};
}

Status execute(const EmitCommandOptions& o) {
  ORKNN_TRY_ASSIGN(const toolkit::StoredRun run, toolkit::run_stored_layer(o.folder));
  if (o.json)
    print_json({{"folder", o.folder},
                {"tasks", run.tasks},
                {"elements", run.elements},
                {"different", run.different},
                {"largest_difference", run.largest}});
  else
    print(fmt::format("{}: {} tasks, {} of {} elements differ\n", o.folder, run.tasks, run.different, run.elements));
  if (run.different > 0) return Status::error(Code::Fail, "the stored streams give other values than the stored results");
  return {};
}

Status run_emit(const EmitCommandOptions& o) {
  if (o.disassemble) {
    ORKNN_TRY_ASSIGN(const std::string text, toolkit::disassemble_stored_layer(o.folder));
    print(text);
    return {};
  }
  if (o.execute) return execute(o);
  if (o.out.empty()) return invalid_argument("emit needs -o FOLDER");
  return emit(o);
}
}  // namespace

Action add_emit(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("emit", "write the NPU's command streams of a layer described in a folder, or execute stored ones");
  const auto o = std::make_shared<EmitCommandOptions>();
  command->add_option("folder", o->folder, "folder with layer.json and operands")->required()->check(existing_folder());
  command->add_option("-o,--output", o->out, "folder for streams, packed operands and results");
  one_of(
      command->add_option("--groups", o->groups, "last groups of kernels and depthwise channels: whole (every board) or short"),
      {"whole", "short"});
  CLI::Option* run = command->add_flag("--execute", o->execute,
                                       "execute the streams in the folder with the chip model and compare with its results");
  command->add_flag("--disassemble", o->disassemble, "print the streams in the folder")->excludes(run);
  command->add_flag("--json", o->json, "print JSON");
  add_examples(*command, {"emit layer -o streams", "emit streams --execute", "emit streams --disassemble"});
  return [o] {
    const Status s = run_emit(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace orknn::cli
