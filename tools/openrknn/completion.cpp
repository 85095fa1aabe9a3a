// openrknn completion SHELL: a completion script made from the declared commands and options, so that there is no second list.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "commands.h"
#include "terminal.h"

namespace orknn::cli {
namespace {

// --- what a shell must know

struct Word {
  std::vector<std::string> names;  // "--output", "-o"; of an argument its own
  std::string help;
  bool takes_value = false, is_argument = false;
  bool is_file = false;              // the value may be a path
  std::vector<std::string> choices;  // of the value
};

struct Page {
  std::string name, help;  // empty name: the program itself
  std::vector<Word> words;
};

Word word_of(const CLI::Option& option) {
  Word word;
  word.is_argument = option.get_positional() && option.nonpositional() == false;
  for (const std::string& name : option.get_lnames()) word.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) word.names.push_back("-" + name);
  if (word.names.empty()) word.names.push_back(option.get_single_name());
  word.help = option.get_description();
  word.takes_value = option.get_items_expected_max() > 0;
  if (const auto* choices = offered(&option)) word.choices = *choices;
  word.is_file = word.takes_value && word.choices.empty() && option.get_type_name().starts_with("TEXT");
  return word;
}

std::vector<Page> pages_of(const CLI::App& app) {
  std::vector<Page> pages;
  const auto add = [&](const CLI::App& command, const std::string& name) {
    Page page{name, command.get_description(), {}};
    for (const CLI::Option* option : command.get_options()) page.words.push_back(word_of(*option));
    pages.push_back(std::move(page));
  };
  add(app, "");
  for (const CLI::App* command : app.get_subcommands(nullptr)) add(*command, command->get_name());
  return pages;
}

std::vector<std::string> command_names(const std::vector<Page>& pages) {
  std::vector<std::string> names;
  for (const Page& page : pages)
    if (!page.name.empty()) names.push_back(page.name);
  return names;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) text.replace(at, what.size(), by);
  return text;
}

// Inside single quotes of a POSIX shell.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

// --- bash

// The cases of one command: what follows an option that takes a value.
std::string bash_values(const Page& page) {
  std::string text;
  for (const Word& word : page.words) {
    if (!word.takes_value || word.is_argument) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : word.names) patterns.push_back(quoted(page.name + " " + name));
    text += fmt::format("    {}) {} ;;\n", fmt::join(patterns, "|"),
                        !word.choices.empty()
                            ? fmt::format("_openrknn_words {}; return", quoted(fmt::format("{}", fmt::join(word.choices, " "))))
                        : word.is_file ? "_openrknn_files; return"
                                       : "return");
  }
  return text;
}

std::string bash_options(const Page& page) {
  std::vector<std::string> names;
  std::string argument = page.name.empty() ? "_openrknn_words \"$commands\"" : "_openrknn_files";
  for (const Word& word : page.words) {
    if (word.is_argument && !word.choices.empty())
      argument = "_openrknn_words " + quoted(fmt::format("{}", fmt::join(word.choices, " ")));
    if (!word.is_argument) names.insert(names.end(), word.names.begin(), word.names.end());
  }
  return fmt::format("    {}) if [[ $cur == -* ]]; then _openrknn_words {}; else {}; fi ;;\n", quoted(page.name),
                     quoted(fmt::format("{}", fmt::join(names, " "))), argument);
}

std::string bash_script(const std::vector<Page>& pages) {
  const std::vector<std::string> commands = command_names(pages);
  std::string values, options;
  for (const Page& page : pages) {
    values += bash_values(page);
    options += bash_options(page);
  }
  return fmt::format(R"(# bash completion of openrknn, made by: openrknn completion bash
_openrknn_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }}
_openrknn_files() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}}
_openrknn() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= i
  local commands={0}
  COMPREPLY=()
  if [[ $cur == "=" ]]; then  # --option= and --option=VALUE are several words
    cur=
  elif [[ $previous == "=" ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
    {1})
      command=${{COMP_WORDS[i]}}
      break
      ;;
    esac
  done
  case "$command $previous" in
{2}  esac
  case $command in
{3}  esac
}}
complete -F _openrknn openrknn
)",
                     quoted(fmt::format("{}", fmt::join(commands, " "))), fmt::join(commands, "|"), values, options);
}

// --- zsh

// Inside the brackets of an _arguments specification.
std::string zsh_text(const std::string& text) {
  return replaced(replaced(replaced(replaced(text, "\\", "\\\\"), "[", "\\["), "]", "\\]"), ":", "\\:");
}

std::string zsh_value(const Word& word) {
  if (!word.takes_value) return "";
  if (!word.choices.empty()) return fmt::format(":value:({})", fmt::join(word.choices, " "));
  return word.is_file ? ":file:_files" : ":value: ";
}

std::string zsh_arguments(const Page& page) {
  std::string text;
  for (const Word& word : page.words) {
    if (word.is_argument) {
      text += fmt::format(" \\\n        {}", quoted("*" + zsh_value(word)));
      continue;
    }
    for (const std::string& name : word.names)
      text += fmt::format(" \\\n        {}",
                          quoted(fmt::format("*{}{}[{}]{}", name, word.takes_value && name.starts_with("--") ? "=" : "",
                                             zsh_text(word.help), zsh_value(word))));
  }
  return text;
}

std::string zsh_script(const std::vector<Page>& pages) {
  std::string commands, cases;
  for (const Page& page : pages) {
    if (page.name.empty()) continue;
    commands += fmt::format("    {}\n", quoted(zsh_text(page.name) + ":" + replaced(page.help, ":", "\\:")));
    cases += fmt::format("      {})\n      _arguments{}\n      ;;\n", page.name, zsh_arguments(page));
  }
  return fmt::format(R"(#compdef openrknn
# zsh completion of openrknn, made by: openrknn completion zsh
_openrknn() {{
  local curcontext=$curcontext state line
  local -a commands=(
{0}  )
  _arguments -C{1} \
    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $line[1] in
{2}      esac
      ;;
  esac
}}
if [[ $funcstack[1] == _openrknn ]]; then
  _openrknn "$@"
else
  compdef _openrknn openrknn
fi
)",
                     commands, zsh_arguments(pages.front()), cases);
}

// --- fish

std::string fish_line(const std::string& condition, const Word& word) {
  std::string line = fmt::format("complete -c openrknn -n {}", quoted(condition));
  if (!word.is_argument)
    for (const std::string& name : word.names) line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!word.choices.empty())
    line += fmt::format(" -x -a {}", quoted(fmt::format("{}", fmt::join(word.choices, " "))));
  else if (word.takes_value)
    line += word.is_file ? " -r -F" : " -x";
  return line + fmt::format(" -d {}\n", quoted(replaced(word.help, "\\", "\\\\")));
}

std::string fish_script(const std::vector<Page>& pages) {
  const std::string any_command = fmt::format("{}", fmt::join(command_names(pages), " "));
  std::string text = "# fish completion of openrknn, made by: openrknn completion fish\n";
  for (const Page& page : pages) {
    const bool is_program = page.name.empty();
    if (!is_program)
      text += fmt::format("complete -c openrknn -n {} -f -a {} -d {}\n", quoted("not __fish_seen_subcommand_from " + any_command),
                          page.name, quoted(page.help));
    const std::string condition =
        is_program ? "not __fish_seen_subcommand_from " + any_command : "__fish_seen_subcommand_from " + page.name;
    for (const Word& word : page.words) text += fish_line(condition, word);
  }
  return text;
}

struct Shell {
  const char* name;
  std::string (*script)(const std::vector<Page>& pages);
};
constexpr Shell kShells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

}  // namespace

Action add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "print a script that completes these commands in a shell");
  const auto shell = std::make_shared<std::string>(), out = std::make_shared<std::string>();
  std::vector<std::string> shells;
  for (const Shell& s : kShells) shells.emplace_back(s.name);
  one_of(command->add_option("shell", *shell, fmt::format("one of {}", fmt::join(shells, ", ")))->required(), shells);
  command->add_option("-o,--output", *out, "write the script to this file");
  add_examples(*command, {"completion bash > ~/.local/share/bash-completion/completions/openrknn",
                          "completion zsh > ~/.zfunc/_openrknn", "completion fish > ~/.config/fish/completions/openrknn.fish"});
  return [&app, shell, out] {
    for (const Shell& s : kShells) {
      if (*shell != s.name) continue;
      const std::string script = s.script(pages_of(app));
      if (out->empty()) {
        print(script);
        return int{kOk};
      }
      const Status written = write_file_atomically(*out, [&](FileWriter& file) { return file.write(script); });
      return written ? int{kOk} : fail(written);
    }
    return int{kUsage};
  };
}

}  // namespace orknn::cli
