#include "devices.h"

#include <nanobind/stl/string.h>

#include "errors.h"
#include "platform/platforms.h"

namespace nb = nanobind;
using namespace orknn;

namespace {

// The table's name of the chip that a user calls `target`.
std::string chip_of_target(const std::string& target) {
  const platform::Platform* chip = take(platform::get(target));
  if (!chip->features.board_connection)
    check(unsupported("Invalid target '" + target + "'! Programs run on the board itself, it takes no connection"));
  return std::string(chip->name);
}

}  // namespace

void check_runs_on(const runtime::Session& session, const std::string& chip) {
  const platform::Platform* made_for = platform::find(session.model().target_platform);
  if (made_for && !platform::compatible(*made_for, *take(platform::get(chip))))
    check(invalid_argument("Invalid RKNN format! The model was made for " + std::string(made_for->name) +
                           " and does not run on " + chip)
              .hint("build it with target_platform='" + chip + "'"));
}

void bind_devices(nb::module_& m) { m.def("chip_of_target", &chip_of_target); }
