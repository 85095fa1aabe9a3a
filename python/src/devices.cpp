#include "devices.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errors.h"
#include "interpreter_end.h"
#include "platform/platforms.h"
#include "remote/discovery.h"
#include "runtime/remote_device.h"

namespace nb = nanobind;
using namespace orknn;
using python::Inside;
using python::Unlocked;

namespace {

// The table's name of the chip that a user calls `target`.
std::string chip_of_target(const std::string& target) {
  const platform::Platform* chip = take(platform::get(target));
  if (!chip->features.board_connection)
    check(unsupported("Invalid target '" + target + "'! Programs run on the board itself, it takes no connection"));
  return std::string(chip->name);
}

// `body` without the interpreter's lock.
template <class Body>
auto unlocked(Body body) {
  const Unlocked without_lock;
  return body();
}

// check() of a call that looked for a device, which Ctrl-C may have ended with any status. Users search for the vendor's words.
void check_connection(const Status& status) {
  if (PyErr_Occurred()) throw nb::python_error();
  if (status.code() == Code::Io)
    throw nb::value_error(printable("Connect to Device Failure (-1): " + status.to_string()).c_str());
  check(status);
}

// The device that is meant: (address, ""), or (None, what was tried) when there is none of that kind.
std::pair<std::optional<std::string>, std::string> find_device(const std::string& chip, const std::string& id) {
  const auto found =
      unlocked([&] { return remote::find_device(id, [&](const std::string& p) { return runtime::fit_of(p, chip); }); });
  check_connection(found.status());
  return {found->address ? std::optional(found->address->to_string()) : std::nullopt, printable(found->why)};
}

nb::bytes fetch_model(const std::string& address, const std::string& path) {
  const remote::Address parsed = take(remote::Address::parse(address));
  const auto bytes = take(unlocked([&]() -> Result<std::vector<std::byte>> {
    ORKNN_TRY_ASSIGN(const remote::DeviceOptions options, remote::device_options_of_environment());
    ORKNN_TRY_ASSIGN(const std::unique_ptr<remote::Device> device, remote::Device::connect(parsed, options));
    return device->fetch(path);
  }));
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::pair<std::vector<std::string>, std::vector<std::string>> list_devices() {
  remote::DeviceList list = unlocked([] { return remote::list_devices(); });
  return {std::move(list.adb), std::move(list.ntb)};
}

// Ctrl-C ends a wait for a device, on the thread that Python gives signals to.
bool is_interrupted() {
  if (!PyGILState_GetThisThreadState()) return false;
  const Inside inside;
  const nb::gil_scoped_acquire lock;
  return PyErr_CheckSignals() != 0;
}

}  // namespace

void check_runs_on(const runtime::Session& session, const std::string& chip) {
  const platform::Platform* made_for = platform::find(session.model().target_platform);
  if (made_for && !platform::compatible(*made_for, *take(platform::get(chip))))
    check(invalid_argument("Invalid RKNN format! The model was made for " + std::string(made_for->name) +
                           " and does not run on " + chip)
              .hint("build it with target_platform='" + chip + "'"));
}

void use_device(runtime::Session& session, const std::string& address, uint32_t mask) {
  const remote::Address parsed = take(remote::Address::parse(address));
  const Status status = unlocked([&] { return runtime::use_device_at(session, parsed); });
  check(status);
  session.choose_device_cores(mask, 0);
}

void use_device_of_environment(runtime::Session& session, uint32_t mask) {
  const Status status = unlocked([&] { return runtime::use_device_of_environment(session); });
  check_connection(status);
  if (session.device()) session.choose_device_cores(mask, 0);
}

nb::object device_facts(const runtime::Session& session) {
  if (!session.device()) return nb::none();
  const remote::Ready& ready = session.device()->facts();
  nb::dict facts;
  facts["name"] = printable(ready.board);
  facts["platform"] = printable(ready.platform);
  facts["server_version"] = printable(ready.server_version);
  facts["runtime_version"] = printable(ready.runtime_version);
  facts["address"] = session.device()->address().to_string();
  return facts;
}

void measure_on_device(const runtime::Session& session, int cores, nb::dict& facts) {
  if (!session.device()) return;
  const remote::Measured m = take(unlocked([&] { return session.device()->measure(static_cast<uint32_t>(cores)); }));
  facts["table"] = printable(m.table);
  facts["total_us"] = m.has_time ? nb::cast(m.microseconds) : nb::none();
  facts["why_no_time"] = printable(m.why_no_time);
  facts["weight"] = m.weight_bytes;
  facts["internal"] = m.internal_bytes;
  facts["other"] = m.other_bytes;
}

void bind_devices(nb::module_& m) {
  remote::set_interrupt_check(&is_interrupted);
  m.def("chip_of_target", &chip_of_target);
  m.def("find_device", &find_device);
  m.def("fetch_model", &fetch_model);
  m.def("list_devices", &list_devices);
  m.def("device_block", [](std::vector<std::string> adb, std::vector<std::string> ntb, bool as_list) {
    return remote::device_block({std::move(adb), std::move(ntb)}, as_list);
  });
}
