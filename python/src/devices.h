// Chips and devices as targets of init_runtime.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "runtime/session.h"

// Throws unless the session's model runs on `chip`, a name of the platform table.
void check_runs_on(const orknn::runtime::Session& session, const std::string& chip);
// Runs of the session happen on the device at `address` from here on, on the cores of `mask`.
void use_device(orknn::runtime::Session& session, const std::string& address, uint32_t mask);
// The same on the device that the environment asks for, if it asks for one (runtime/remote_device.h).
void use_device_of_environment(orknn::runtime::Session& session, uint32_t mask);
// What the session's device says about itself; None without one.
nanobind::object device_facts(const orknn::runtime::Session& session);
// Overwrites what the device knows better: times and memory.
void measure_on_device(const orknn::runtime::Session& session, int cores, nanobind::dict& facts);
void bind_devices(nanobind::module_& m);
