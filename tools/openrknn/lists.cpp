// Commands that list what this build knows: platforms, passes, operators; and where its files are.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "ops/eval.h"
#include "optimize/pipeline.h"
#include "platform/platforms.h"
#include "quantize/steps.h"
#include "terminal.h"
#include "toolkit/report.h"
#include "toolkit/table.h"

namespace orknn::cli {
namespace {
using nlohmann::ordered_json;

Action add_list(CLI::App& app, const char* name, const char* what, ordered_json (*as_json)(), std::string (*as_text)(size_t)) {
  CLI::App* command = app.add_subcommand(name, what);
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  add_examples(*command, {name, fmt::format("{} --json", name)});
  return [=] {
    if (*json)
      print_json(as_json());
    else
      print(as_text(output_width()));
    return int{kOk};
  };
}

std::vector<const ir::OpDef*> sorted_ops() {
  std::vector<const ir::OpDef*> defs;
  for (const auto& [name, def] : ops::builtin_ops()) defs.push_back(def);
  std::sort(defs.begin(), defs.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  return defs;
}

// The first of the candidates, relative to the program, that holds `file`.
std::string folder_with(std::string_view file, std::initializer_list<std::filesystem::path> candidates) {
  std::error_code error;
  const auto program = std::filesystem::canonical("/proc/self/exe", error).parent_path();
  if (error) return {};
  for (const auto& candidate : candidates) {
    const auto folder = program / candidate;
    if (std::filesystem::exists(folder / file, error)) return std::filesystem::weakly_canonical(folder, error).string();
  }
  return {};
}
}  // namespace

// Installed: PREFIX/bin, PREFIX/lib, PREFIX/include. In a build tree both lie beside the program.
std::string library_folder() { return folder_with("librknnrt.so", {"../lib", ".", "../lib64"}); }
std::string include_folder() { return folder_with("rknn_api.h", {"../include", "include"}); }

Action add_platforms(CLI::App& app) {
  return add_list(
      app, "platforms", "list the chips",
      [] {
        ordered_json list = ordered_json::array();
        for (const platform::Platform& p : platform::all()) list.push_back(toolkit::to_json(p));
        return list;
      },
      toolkit::platforms_text);
}

Action add_passes(CLI::App& app) {
  return add_list(
      app, "passes", "list the passes of the optimizer and the steps of the quantizer",
      [] {
        ordered_json list = ordered_json::array();
        for (const optimize::Pass& p : optimize::pass_catalogue())
          list.push_back(
              {{"name", p.name}, {"stage", "optimize"}, {"level", p.min_level}, {"required", false}, {"summary", p.summary}});
        for (const quantize::Step& s : quantize::steps())
          list.push_back({{"name", s.name},
                          {"stage", "quantize"},
                          {"level", s.min_level},
                          {"required", s.required},
                          {"summary", s.summary}});
        return list;
      },
      [](size_t width) {
        toolkit::Table table(
            {{"pass"}, {"stage"}, {"level", toolkit::Table::Align::Right}, {.title = "what it does", .may_wrap = true}});
        for (const optimize::Pass& p : optimize::pass_catalogue())
          table.add({std::string(p.name), "optimize", std::to_string(p.min_level), std::string(p.summary)});
        for (const quantize::Step& s : quantize::steps())
          table.add(
              {std::string(s.name), "quantize", s.required ? "always" : std::to_string(s.min_level), std::string(s.summary)});
        return table.to_text(width);
      });
}

Action add_ops(CLI::App& app) {
  return add_list(
      app, "ops", "list the operators",
      [] {
        ordered_json list = ordered_json::array();
        for (const ir::OpDef* d : sorted_ops()) list.push_back({{"name", d->name}, {"summary", d->summary}});
        return list;
      },
      [](size_t width) {
        toolkit::Table table({{"operator"}, {.title = "what it does", .may_wrap = true}});
        for (const ir::OpDef* d : sorted_ops()) table.add({std::string(d->name), std::string(d->summary)});
        return table.to_text(width);
      });
}

}  // namespace orknn::cli
