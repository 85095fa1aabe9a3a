// Devices in reach: boards at adb and servers of this machine.
#include <nlohmann/json.hpp>

#include "commands.h"
#include "remote/discovery.h"
#include "terminal.h"

namespace orknn::cli {

Action add_devices(CLI::App& app) {
  CLI::App* command = app.add_subcommand("devices", "list devices in reach");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  add_examples(*command, {"devices", "devices --json"});
  return [=] {
    if (!*json) {
      print(remote::device_block(remote::list_devices(), false));
      return int{kOk};
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const std::string& serial : remote::adb_serials()) list.push_back({{"id", serial}, {"mode", "adb"}});
    for (const remote::Announcement& a : remote::announced_servers())
      list.push_back({{"id", a.name},
                      {"mode", a.mode == remote::Mode::Ntb ? "ntb" : "adb"},
                      {"platform", a.platform},
                      {"address", a.address.to_string()}});
    print_json(list);
    return int{kOk};
  };
}

}  // namespace orknn::cli
