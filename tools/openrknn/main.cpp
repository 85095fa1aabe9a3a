// The openrknn command: argument parsing and calls only.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/nearest_name.h"
#include "base/version.h"
#include "commands.h"
#include "terminal.h"

namespace {
using namespace orknn;

// The command that was given, or the program itself.
const CLI::App& command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

// What a word that nobody expected was probably meant to be: a command in its first place, else an option.
std::string suggestion_for(const CLI::App& app, const std::string& word) {
  const CLI::App& command = command_of(app);
  if (!word.starts_with("-")) {
    std::vector<std::string> names;
    if (&command == &app)
      for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
    return did_you_mean(word, names);
  }
  // People also write the last part of a long name: --platform for --target-platform.
  std::map<std::string, std::string> meaning;  // spelling -> option
  for (const CLI::App* from : {&command, &app})
    for (const CLI::Option* option : from->get_options())
      for (const std::string& name : option->get_lnames()) {
        meaning["--" + name] = "--" + name;
        if (const size_t dash = name.rfind('-'); dash != name.npos) meaning.emplace("--" + name.substr(dash + 1), "--" + name);
      }
  std::vector<std::string_view> spellings;
  for (const auto& [spelling, option] : meaning) spellings.push_back(spelling);
  const std::string_view nearest = nearest_name(word.substr(0, word.find('=')), spellings);
  return nearest.empty() ? std::string() : "did you mean '" + meaning[std::string(nearest)] + "'?";
}

// Help or version as asked for, or what is wrong with the arguments.
int say(const CLI::App& app, const CLI::ParseError& outcome, bool json) {
  std::ostringstream out, problem;
  const bool is_result = app.exit(outcome, out, problem) == 0;
  cli::print(out.str());
  if (is_result) return cli::kOk;
  std::string message = outcome.what();
  if (outcome.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
    for (const std::string& word : app.remaining(true))
      if (const std::string hint = suggestion_for(app, word); !hint.empty()) message += "; " + hint;
  const CLI::App& command = command_of(app);
  const std::string help = &command == &app ? "openrknn --help" : "openrknn " + command.get_name() + " --help";
  if (json) cli::print_json({{"error", {{"code", "usage"}, {"message", message}}}});
  cli::note(message + "\nRun '" + help + "' for more information.");
  return cli::kUsage;
}

// A file opened for reading must not become the descriptor that results or error messages are written to. Results for a closed
// stdout cannot be written, which is an error like any other: there the descriptor is one that only reads.
void keep_standard_descriptors_open() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) (void)!open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR);
}

int print_folder(const std::string& folder, const char* what) {
  if (folder.empty())
    return cli::fail(Status::error(Code::NotFound, fmt::format("{} is not where this program expects it", what)));
  cli::print(folder + "\n");
  return cli::close_output(cli::kOk);
}
}  // namespace

namespace {
int run(int argc, char** argv) {
  CLI::App app("OpenRKNN: converts neural networks for Rockchip NPUs and runs them anywhere", "openrknn");
  bool verbose = false, library = false, include = false;
  app.add_flag("-v,--verbose", verbose, "show more log lines");
  app.add_flag("--libdir", library, "print the folder of librknnrt.so");
  app.add_flag("--includedir", include, "print the folder of rknn_api.h");
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(0, 1);
  cli::add_examples(app,
                    {"convert model.onnx -o model.rknn -t CHIP", "quantize model.onnx -o model.rknn -t CHIP --dataset list.txt",
                     "run model.rknn --input dog.jpg", "convert --help"});
  app.fallthrough();
  const std::pair<const char*, cli::Action> commands[] = {{"convert", cli::add_convert(app)},
                                                          {"quantize", cli::add_quantize(app)},
                                                          {"analyse", cli::add_analyse(app)},
                                                          {"compare", cli::add_compare(app)},
                                                          {"run", cli::add_run(app)},
                                                          {"info", cli::add_info(app)},
                                                          {"hybrid-step1", cli::add_hybrid_step1(app)},
                                                          {"hybrid-step2", cli::add_hybrid_step2(app)},
                                                          {"edit", cli::add_edit(app)},
                                                          {"encrypt", cli::add_encrypt(app)},
                                                          {"codegen", cli::add_codegen(app)},
                                                          {"profile", cli::add_profile(app)},
                                                          {"platforms", cli::add_platforms(app)},
                                                          {"passes", cli::add_passes(app)},
                                                          {"ops", cli::add_ops(app)},
                                                          {"completion", cli::add_completion(app)},
                                                          {"man", cli::add_man(app)}};
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
}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors_open();
  signal(SIGPIPE, SIG_DFL);  // Python, which starts this program, ignores it: `openrknn ops | head` ends in silence
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return cli::fail(Status::error(Code::OutOfMemory, "there is not enough memory")
                         .hint("close other programs, or raise the limit (ulimit -v)"));
  } catch (const std::exception& e) {
    return cli::fail(internal_error(e.what()));
  }
}
