// openrknn board-test: every family of command streams with fixed operands on the board's NPU, as a report to send back.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/version.h"
#include "commands.h"
#include "platform/platforms.h"
#include "silicon/drivers/board.h"
#include "silicon/network.h"
#include "silicon/self_check.h"
#include "terminal.h"

namespace orknn::cli {
namespace {
// The first chip of the list whose registers are known.
std::string known_chip() {
  for (const platform::Platform& p : platform::all())
    if (silicon::knows_registers_of(p)) return std::string(p.name);
  return {};
}

struct BoardTestOptions {
  std::string out;
  bool chip_model = false, json = false;
};

// Zeros of the device tree become blanks.
std::string board_name() {
  std::string text = silicon::linux_kernel().read("/proc/device-tree/compatible");
  std::ranges::replace(text, '\0', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}
std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? fmt::format("{} {} {}", names.sysname, names.release, names.machine) : "";
}

struct Place {
  std::string name, driver;
  bool is_board = false;
  silicon::MakeUnit make_unit;
};
Result<Place> find_place(bool chip_model) {
  ORKNN_TRY_ASSIGN(const std::unique_ptr<silicon::Unit> board,
                   chip_model ? Result(std::unique_ptr<silicon::Unit>()) : silicon::open_board(known_chip()));
  if (!board) return Place{"the chip model", "", false, [] { return Result(silicon::make_chip_model_unit()); }};
  return Place{board->name(), board->driver(), true, []() -> Result<std::unique_ptr<silicon::Unit>> {
                 ORKNN_TRY_ASSIGN(std::unique_ptr<silicon::Unit> unit, silicon::open_board(known_chip()));
                 if (!unit) return io_error("the NPU is no longer there");
                 return unit;
               }};
}

nlohmann::ordered_json to_json(const std::vector<silicon::WrongElement>& wrong) {
  auto elements = nlohmann::ordered_json::array();
  for (const silicon::WrongElement& w : wrong)
    elements.push_back(
        {{"row", w.row}, {"column", w.column}, {"channel", w.channel}, {"expected", w.expected}, {"found", w.found}});
  return elements;
}
nlohmann::ordered_json to_json(const Place& place, const std::vector<silicon::FamilyResult>& results) {
  auto families = nlohmann::ordered_json::array();
  for (const silicon::FamilyResult& r : results)
    families.push_back({{"family", r.family},
                        {"state", silicon::state_name(r.state)},
                        {"tasks", r.tasks},
                        {"elements", r.elements},
                        {"different", r.different},
                        {"wrong", to_json(r.wrong)},
                        {"checksum", fmt::format("{:016x}", r.checksum)},
                        {"milliseconds", r.milliseconds},
                        {"detail", r.detail}});
  return {{"openrknn", version()}, {"board", board_name()},  {"kernel", kernel_release()},
          {"unit", place.name},    {"driver", place.driver}, {"run_on_a_board", place.is_board},
          {"families", families}};
}

std::string to_text(const Place& place, const std::vector<silicon::FamilyResult>& results) {
  const std::string board = board_name();
  std::string text = fmt::format("OpenRKNN {}\nboard: {}\nkernel: {}\nunit: {}\n", version(), board.empty() ? "unknown" : board,
                                 kernel_release(), place.name);
  if (!place.driver.empty()) text += fmt::format("driver: {}\n", place.driver);
  if (!place.is_board) text += "not run on a board: no known NPU is used here, the chip model executed the streams\n";
  for (const silicon::FamilyResult& r : results) {
    text += fmt::format("{:<56} {:<9} {:2} tasks {:8.2f} ms  {:016x}", r.family, silicon::state_name(r.state), r.tasks,
                        r.milliseconds, r.checksum);
    if (r.different) text += fmt::format("  {} of {} elements differ", r.different, r.elements);
    if (!r.detail.empty()) text += "  " + r.detail;
    text += "\n";
    for (const silicon::WrongElement& w : r.wrong)
      text +=
          fmt::format("  row {} column {} channel {}: expected {} found {}\n", w.row, w.column, w.channel, w.expected, w.found);
  }
  return text;
}

Status write_report(const std::string& path, const std::string& text) {
  return write_file_atomically(path, [&](FileWriter& out) { return out.write(text); });
}

Status board_test(const BoardTestOptions& o) {
  ORKNN_TRY_ASSIGN(const Place place, find_place(o.chip_model));
  const std::vector<silicon::FamilyResult> results = silicon::check_families(place.make_unit);
  const std::string text = to_text(place, results);
  if (!o.out.empty()) ORKNN_TRY(write_report(o.out, text));
  if (o.json)
    print_json(to_json(place, results));
  else
    print(text);
  const auto wrong = std::ranges::count_if(results, [](const silicon::FamilyResult& r) {
    return r.state == silicon::FamilyResult::State::Different || r.state == silicon::FamilyResult::State::Failed;
  });
  if (wrong > 0) return Status::error(Code::Fail, fmt::format("{} of {} families are not right", wrong, results.size()));
  return {};
}
}  // namespace

Action add_board_test(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("board-test", "run every family of command streams with fixed operands on this board's NPU");
  const auto o = std::make_shared<BoardTestOptions>();
  command->add_option("-o,--output", o->out, "file for the report");
  command->add_flag("--chip-model", o->chip_model, "the model of the chip instead of the board's NPU");
  command->add_flag("--json", o->json, "print JSON");
  add_examples(*command, {"board-test", "board-test -o report.txt", "board-test --chip-model"});
  return [o] {
    const Status s = board_test(*o);
    return s ? int{kOk} : fail(s, o->json);
  };
}

}  // namespace orknn::cli
