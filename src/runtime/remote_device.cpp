#include "runtime/remote_device.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "platform/platforms.h"

namespace orknn::runtime {
namespace {
thread_local bool runs_here = false;
}  // namespace

RunsHere::RunsHere() : before_(std::exchange(runs_here, true)) {}
RunsHere::~RunsHere() { runs_here = before_; }

bool is_device_required() {
  const char* text = std::getenv("ORKNN_REQUIRE_DEVICE");
  return text && std::string_view(text) == "1";
}

remote::Fit fit_of(const std::string& device_chip, const std::string& model_chip) {
  const platform::Platform* device = platform::find(device_chip);
  const platform::Platform* model = platform::find(model_chip);
  if (!device || !model || !platform::compatible(*model, *device)) return remote::Fit::None;
  return device == model ? remote::Fit::Exact : remote::Fit::Family;
}

Status use_device_at(Session& session, const remote::Address& address) {
  ORKNN_TRY_ASSIGN(const remote::DeviceOptions options, remote::device_options_of_environment());
  ORKNN_TRY_ASSIGN(std::unique_ptr<remote::Device> device, remote::Device::connect(address, options));
  const std::string& model_chip = session.model().target_platform;
  if (fit_of(device->facts().platform, model_chip) == remote::Fit::None)
    return Status::error(Code::PlatformMismatch, "the device at " + address.to_string() + " cannot run the model")
        .expected("a " + model_chip)
        .found(device->facts().platform)
        .model(session.model().name);
  return session.use_device(std::move(device));
}

Status use_device_of_environment(Session& session) {
  if (runs_here) return {};
  const bool is_demanded = is_device_required() && !session.uses_board();
  if (remote::device_of_environment().empty() && !is_demanded) return {};
  const std::string& chip = session.model().target_platform;
  ORKNN_TRY_ASSIGN(const remote::Location found, remote::find_device({}, [&](const std::string& p) { return fit_of(p, chip); }));
  if (!found.address)
    return io_error("there is no " + chip + " in reach" + (found.why.empty() ? "" : " (" + found.why + ")"))
        .hint("start rknn_server on the device, or unset ORKNN_REQUIRE_DEVICE to simulate the chip in this process");
  return use_device_at(session, *found.address);
}

}  // namespace orknn::runtime
