// openrknn man: manual pages made from the declared commands and options.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/files.h"
#include "base/folders.h"
#include "base/version.h"
#include "commands.h"
#include "terminal.h"

namespace orknn::cli {
namespace {

// Text as troff prints it: no line begins a request, hyphens are those of options.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_roff(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("\\fB\\-" + roff(name) + "\\fR");
  for (const std::string& name : option.get_lnames()) names.push_back("\\fB\\-\\-" + roff(name) + "\\fR");
  if (names.empty()) names.push_back("\\fI" + roff(option.get_single_name()) + "\\fR");
  const bool takes_value = option.get_items_expected_max() > 0 && !option.get_positional();
  std::string text =
      fmt::format(".TP\n{}{}\n{}", fmt::join(names, ", "), takes_value ? " \\fIVALUE\\fR" : "", roff(option.get_description()));
  if (option.get_required()) text += " (required)";
  if (!option.get_default_str().empty()) text += roff(" [" + option.get_default_str() + "]");
  return text + "\n";
}

std::string examples_roff(const CLI::App& command) {
  const std::string footer = command.get_footer();
  if (footer.empty()) return "";
  std::string text = ".SH EXAMPLES\n.nf\n";
  for (size_t at = 0; at < footer.size();) {
    const size_t end = std::min(footer.find('\n', at), footer.size());
    const std::string_view line = std::string_view(footer).substr(at, end - at);
    if (line.starts_with("  ")) text += roff(line.substr(2)) + "\n";
    at = end + 1;
  }
  return text + ".fi\n";
}

std::string page_name(const CLI::App& app, const CLI::App& command) {
  return &app == &command ? app.get_name() : app.get_name() + "-" + command.get_name();
}

std::string synopsis_roff(const CLI::App& app, const CLI::App& command) {
  if (&app == &command) return fmt::format("\\fB{}\\fR [\\fIoptions\\fR] \\fIcommand\\fR ...\n", roff(app.get_name()));
  std::string text = fmt::format("\\fB{} {}\\fR [\\fIoptions\\fR]", roff(app.get_name()), roff(command.get_name()));
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional())
      text += fmt::format(" {1}\\fI{0}\\fR{2}", roff(option->get_single_name()), option->get_required() ? "" : "[",
                          option->get_required() ? "" : "]");
  return text + "\n";
}

std::string man_page(const CLI::App& app, const CLI::App& command) {
  const std::string name = page_name(app, command);
  std::string text = fmt::format(".TH {} 1 \"\" \"OpenRKNN {}\" \"OpenRKNN\"\n", roff(name), roff(version()));
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(command.get_description()));
  text += ".SH SYNOPSIS\n" + synopsis_roff(app, command);
  const std::vector<const CLI::App*> commands = command.get_subcommands(nullptr);
  if (!commands.empty()) text += ".SH COMMANDS\n";
  for (const CLI::App* sub : commands)
    text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(app, *sub)), roff(sub->get_description()));
  text += ".SH OPTIONS\n";
  for (const CLI::Option* option : command.get_options()) text += option_roff(*option);
  text += ".SH EXIT STATUS\n0 when done, 1 when the command failed or its results could not be written, 2 for wrong arguments.\n";
  text += examples_roff(command);
  if (&app != &command) text += fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", roff(app.get_name()));
  return text;
}

Status write_pages(const CLI::App& app, const std::string& folder) {
  ORKNN_TRY(make_folder(folder));
  std::vector<const CLI::App*> commands = app.get_subcommands(nullptr);
  commands.insert(commands.begin(), &app);
  for (const CLI::App* command : commands) {
    const std::string path = (std::filesystem::path(folder) / (page_name(app, *command) + ".1")).string();
    const std::string text = man_page(app, *command);
    ORKNN_TRY(write_file_atomically(path, [&](FileWriter& file) { return file.write(text); }));
  }
  return {};
}

}  // namespace

Action add_man(CLI::App& app) {
  CLI::App* command = app.add_subcommand("man", "print the manual page of a command, or write all of them");
  const auto about = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
  std::vector<std::string> names{"man"};
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  one_of(command->add_option("command", *about, "the command; none: the page of openrknn itself"), names)->option_text("NAME");
  command->add_option("-o,--output", *folder, "write the pages of all commands to this folder");
  add_examples(*command, {"man convert | man -l -", "man -o ~/.local/share/man/man1"});
  return [&app, about, folder] {
    if (folder->empty()) {
      print(man_page(app, about->empty() ? app : *app.get_subcommand(*about)));
      return int{kOk};
    }
    const Status written = write_pages(app, *folder);
    return written ? int{kOk} : fail(written);
  };
}

}  // namespace orknn::cli
