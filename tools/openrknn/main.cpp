// The openrknn command: argument parsing and calls only.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
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

// The command that does what a call of the Python API, or another program's command, does.
std::string_view command_for_call(std::string_view word) {
  static constexpr std::pair<std::string_view, std::string_view> kCalls[] = {
      {"build", "convert"},     {"compile", "convert"},     {"export", "convert"},    {"export_rknn", "convert"},
      {"inference", "run"},     {"infer", "run"},           {"accuracy", "analyse"},  {"accuracy_analysis", "analyse"},
      {"eval_perf", "profile"}, {"eval_memory", "profile"}, {"benchmark", "profile"}, {"onnx_edit", "edit"},
      {"help", "--help"},       {"version", "--version"},
  };
  for (const auto& [call, command] : kCalls)
    if (call == word) return command;
  return {};
}

std::string command_name(const CLI::App& app, const CLI::App& command) {
  return &command == &app ? app.get_name() : app.get_name() + " " + command.get_name();
}

std::string suggested_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  if (const std::string_view command = command_for_call(word); !command.empty())
    return "did you mean '" + std::string(command) + "'?";
  return did_you_mean(word, names);
}

// What is wrong with an option that the command does not have, and what was probably meant.
std::string option_problem(const CLI::App& app, const std::string& word) {
  const CLI::App& command = command_of(app);
  const std::string name = word.substr(0, word.find('=')), quoted = "'" + name + "'", full_name = command_name(app, command);
  if (&command != &app && cli::has_option(command, name))
    return quoted + " belongs after the command: '" + full_name + " ... " + name + "'";
  // People also write the last part of a long name: --platform for --target-platform.
  std::map<std::string, std::string> meaning;  // spelling -> option
  for (const CLI::App* from : {&command, &app})
    for (const CLI::Option* option : from->get_options())
      for (const std::string& full : option->get_lnames()) {
        meaning["--" + full] = "--" + full;
        if (const size_t dash = full.rfind('-'); dash != full.npos) meaning.emplace("--" + full.substr(dash + 1), "--" + full);
      }
  if (const auto known = meaning.find(name); known != meaning.end())
    return quoted + " is not an option, did you mean '" + known->second + "'?";
  for (const CLI::App* other : app.get_subcommands(nullptr))
    if (cli::has_option(*other, name))
      return quoted + " is an option of '" + command_name(app, *other) + "'" +
             (&command == &app ? "" : ", not of '" + full_name + "'");
  std::vector<std::string_view> spellings;
  for (const auto& [spelling, option] : meaning) spellings.push_back(spelling);
  const std::string_view nearest = nearest_name(name, spellings);
  return quoted + " is not an option" + (nearest.empty() ? "" : ", did you mean '" + meaning[std::string(nearest)] + "'?");
}

// "model (ONNX model) and --output (the ONNX model to write) are required": a name alone does not say what for.
std::string missing_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (option->get_required() && option->count() == 0)
      names.push_back(option->get_name() + (option->get_description().empty() ? "" : " (" + option->get_description() + ")"));
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  return text + (names.size() == 1 ? " is required" : " are required");
}

// How a word that stands alone was probably meant: the file to write, a number of a list, or the file of an input.
std::string option_for_word(const CLI::App& command, const std::string& word) {
  const CLI::Option* output = command.get_option_no_throw("--output");
  if (output && output->get_required() && output->count() == 0) return "write '-o " + word + "'";
  if (word.find_first_not_of("0123456789.") == word.npos)
    return "numbers of one list are joined by commas, without blanks: 1,2,3";
  return cli::has_option(command, "--input") ? "write '--input " + word + "'" : "";
}

// The words that no option or command takes, in the order in which they were written.
std::vector<std::string> unexpected_words(const CLI::App& app, std::span<char* const> words) {
  const std::vector<std::string> left = app.remaining(true);
  std::multiset<std::string> open(left.begin(), left.end());
  std::vector<std::string> list;
  for (const char* word : words)
    if (const auto found = open.find(word); found != open.end()) {
      list.push_back(*found);
      open.erase(found);
    }
  return list;
}

// CLI11 says "Could not convert: --cores = two", or that a flag should be true or false.
std::string conversion_problem(const CLI::App& command, const std::string& message) {
  const size_t begin = message.find("--"), end = std::min(message.find_first_of(" :", begin), message.size());
  if (begin == message.npos) return message;
  const std::string name = message.substr(begin, end - begin);
  const CLI::Option* option = command.get_option_no_throw(name);
  if (!option) return message;
  if (option->get_items_expected_max() == 0) return "'" + name + "' takes no value";
  const size_t value = message.find(" = ", end);
  const std::string kind = option->get_type_name();
  return fmt::format("'{}' needs {}{}", name,
                     kind.starts_with("FLOAT") || kind.starts_with("NUMBER") ? "a number" : "a whole number",
                     value == message.npos ? "" : ", found '" + message.substr(value + 3) + "'");
}

// What is wrong with the arguments. A misspelt option is why another one is missing, and what follows it is its value.
std::string problem_text(const CLI::App& app, const CLI::ParseError& outcome, std::span<char* const> words) {
  const CLI::App& command = command_of(app);
  const auto is_a = [&](CLI::ExitCodes code) { return outcome.get_exit_code() == static_cast<int>(code); };
  const std::string message = outcome.what();
  if (is_a(CLI::ExitCodes::ArgumentMismatch) && message.ends_with(" missing"))
    return message.substr(0, message.find(':')) + " needs a value";
  if (is_a(CLI::ExitCodes::ConversionError)) return conversion_problem(command, message);
  const bool is_missing = is_a(CLI::ExitCodes::RequiredError);
  if (!is_missing && !is_a(CLI::ExitCodes::ExtrasError)) return message;
  std::vector<std::string> problems;
  if (is_missing) problems.push_back(missing_options(command));
  bool is_value = false;
  for (const std::string& word : unexpected_words(app, words)) {
    if (word.starts_with("-")) {
      problems.push_back(option_problem(app, word));
    } else if (!is_value) {
      const std::string meant = &command == &app ? suggested_command(app, word) : option_for_word(command, word);
      if (!is_missing || meant.empty()) problems.push_back("'" + word + "' was not expected");
      if (!meant.empty() && std::find(problems.begin(), problems.end(), meant) == problems.end()) problems.push_back(meant);
    }
    is_value = word.starts_with("-") && word.find('=') == word.npos;
  }
  return fmt::format("{}", fmt::join(problems, "; "));
}

// The word in the place of the command, when it is none: help was asked for, but for nothing that there is.
std::string unknown_command(const CLI::App& app) {
  if (!app.get_subcommands().empty()) return "";
  for (const std::string& word : app.remaining())
    if (!word.starts_with("-")) return word;
  return "";
}

int say_usage(const std::string& message, const std::string& help, bool json) {
  if (json) cli::print_json({{"error", {{"code", "usage"}, {"message", message}}}});
  cli::note(message + "\nRun '" + help + "' for more information.");
  return cli::kUsage;
}

// Help or version as asked for, or what is wrong with the arguments.
int say(const CLI::App& app, const CLI::ParseError& outcome, std::span<char* const> words) {
  const bool json = std::any_of(words.begin(), words.end(), [](const char* word) { return std::string_view(word) == "--json"; });
  if (const std::string word = unknown_command(app); !word.empty()) {
    const std::string hint = suggested_command(app, word);
    return say_usage("there is no command '" + word + "'" + (hint.empty() ? "" : "; " + hint), "openrknn --help", json);
  }
  std::ostringstream out, problem;
  const bool is_result = app.exit(outcome, out, problem) == 0;
  cli::print(out.str());
  if (is_result) return cli::kOk;
  return say_usage(problem_text(app, outcome, words), command_name(app, command_of(app)) + " --help", json);
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
  app.formatter(cli::help_formatter());
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
  const cli::Action commands[] = {cli::add_convert(app),      cli::add_quantize(app),     cli::add_analyse(app),
                                  cli::add_compare(app),      cli::add_run(app),          cli::add_info(app),
                                  cli::add_hybrid_step1(app), cli::add_hybrid_step2(app), cli::add_edit(app),
                                  cli::add_encrypt(app),      cli::add_codegen(app),      cli::add_profile(app),
                                  cli::add_emit(app),         cli::add_board_test(app),   cli::add_platforms(app),
                                  cli::add_passes(app),       cli::add_ops(app),          cli::add_devices(app),
                                  cli::add_sweep(app),        cli::add_completion(app),   cli::add_man(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return cli::close_output(say(app, e, std::span(argv, static_cast<size_t>(argc))));
  }
  cli::attach_log(verbose);
  if (library) return print_folder(cli::library_folder(), "librknnrt.so");
  if (include) return print_folder(cli::include_folder(), "rknn_api.h");
  const auto known = app.get_subcommands(nullptr);  // in the order of `commands`
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i]->parsed()) return cli::close_output(commands[i]());
  cli::print(app.help());
  return cli::close_output(cli::kUsage);
}

// Objects of CLI11 are built before main, and some of its functions that allocate are noexcept: a failed allocation there is out
// of the reach of main's handlers and ends here instead of in abort(). Allocates nothing.
std::terminate_handler default_handler = nullptr;
[[noreturn]] void end_without_memory() {
  constexpr std::string_view kText = "there is not enough memory\n";
  try {
    const std::exception_ptr problem = std::current_exception();
    if (problem) std::rethrow_exception(problem);  // none: there was no memory for the exception itself
  } catch (const std::bad_alloc&) {
  } catch (...) {
    if (default_handler) default_handler();
  }
  (void)!write(STDERR_FILENO, kText.data(), kText.size());
  _exit(cli::kFailed);
}
// 101: ahead of all objects that have no priority of their own.
[[gnu::constructor(101)]] void install_terminate_handler() { default_handler = std::set_terminate(end_without_memory); }
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
