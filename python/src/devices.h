// Chips as targets of init_runtime.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "runtime/session.h"

// Throws unless the session's model runs on `chip`, a name of the platform table.
void check_runs_on(const orknn::runtime::Session& session, const std::string& chip);
void bind_devices(nanobind::module_& m);
