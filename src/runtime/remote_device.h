// Sends a C program's models to a device that its environment names.
#pragma once

#include "runtime/session.h"

namespace orknn::runtime {

// With ORKNN_DEVICE set, runs of `session` happen on that device. Without it nothing changes.
Status use_device_of_environment(Session& session);
// Whether a device of this chip runs models made for that one; unknown names fit nothing.
bool runs_models_of(const std::string& device_chip, const std::string& model_chip);
// Connects to the device at `address`, which must run the session's model, and uses it.
Status use_device_at(Session& session, const remote::Address& address);

}  // namespace orknn::runtime
