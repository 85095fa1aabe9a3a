#include "runtime/remote_device.h"

#include <cstdlib>

#include "platform/platforms.h"
#include "remote/discovery.h"

namespace orknn::runtime {

bool runs_models_of(const std::string& device_chip, const std::string& model_chip) {
  const platform::Platform* device = platform::find(device_chip);
  const platform::Platform* model = platform::find(model_chip);
  return device && model && platform::compatible(*model, *device);
}

Status use_device_at(Session& session, const remote::Address& address) {
  ORKNN_TRY_ASSIGN(const remote::DeviceOptions options, remote::device_options_of_environment());
  ORKNN_TRY_ASSIGN(std::unique_ptr<remote::Device> device, remote::Device::connect(address, options));
  const std::string& model_chip = session.model().target_platform;
  if (!runs_models_of(device->facts().platform, model_chip))
    return Status::error(Code::PlatformMismatch, "the device at " + address.to_string() + " cannot run the model")
        .expected("a " + model_chip)
        .found(device->facts().platform)
        .model(session.model().name);
  return session.use_device(std::move(device));
}

Status use_device_of_environment(Session& session) {
  const char* chosen = std::getenv("ORKNN_DEVICE");
  if (!chosen || !*chosen) return {};
  const std::string& chip = session.model().target_platform;
  ORKNN_TRY_ASSIGN(const std::optional<remote::Address> address,
                   remote::locate_device(chosen, [&](const std::string& p) { return runs_models_of(p, chip); }));
  if (!address)
    return io_error("there is no device '" + std::string(chosen) + "'").hint("ORKNN_DEVICE is its name, serial or HOST:PORT");
  return use_device_at(session, *address);
}

}  // namespace orknn::runtime
