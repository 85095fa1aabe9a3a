// The openrknn command: argument parsing and calls only.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/version.h"
#include "commands.h"
#include "terminal.h"

namespace {
using namespace orknn;

// Help or version as asked for, or what is wrong with the arguments.
int say(const CLI::App& app, const CLI::ParseError& outcome, bool json) {
  std::ostringstream out, problem;
  const bool is_answer = app.exit(outcome, out, problem) == 0;
  cli::print(out.str());
  if (is_answer) return cli::kOk;
  if (json) cli::print_json({{"error", {{"code", "usage"}, {"message", outcome.what()}}}});
  fmt::print(stderr, "{}", problem.str());
  return cli::kUsage;
}

int print_folder(const std::string& folder, const char* what) {
  if (folder.empty())
    return cli::fail(Status::error(Code::NotFound, fmt::format("{} is not where this program expects it", what)));
  cli::print(folder + "\n");
  return cli::close_output(cli::kOk);
}
}  // namespace

int main(int argc, char** argv) {
  CLI::App app("OpenRKNN: converts neural networks for Rockchip NPUs and runs them anywhere", "openrknn");
  bool verbose = false, library = false, include = false;
  app.add_flag("-v,--verbose", verbose, "show more log lines");
  app.add_flag("--libdir", library, "print the folder of librknnrt.so");
  app.add_flag("--includedir", include, "print the folder of rknn_api.h");
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(0, 1);
  app.fallthrough();
  const std::pair<const char*, cli::Action> commands[] = {
      {"convert", cli::add_convert(app)}, {"quantize", cli::add_quantize(app)},
      {"analyse", cli::add_analyse(app)}, {"compare", cli::add_compare(app)},
      {"run", cli::add_run(app)},         {"info", cli::add_info(app)},
      {"profile", cli::add_profile(app)}, {"platforms", cli::add_platforms(app)},
      {"passes", cli::add_passes(app)},   {"ops", cli::add_ops(app)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return cli::close_output(
        say(app, e, std::any_of(argv, argv + argc, [](const char* a) { return std::string_view(a) == "--json"; })));
  }
  cli::attach_log(verbose);
  if (library) return print_folder(cli::library_folder(), "librknnrt.so");
  if (include) return print_folder(cli::include_folder(), "rknn_api.h");
  for (const auto& [name, action] : commands)
    if (app.got_subcommand(name)) return cli::close_output(action());
  cli::print(app.help());
  return cli::close_output(cli::kUsage);
}
