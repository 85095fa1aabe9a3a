// Sends the models of a program, in C or with RKNNLite, to a device that its environment names.
#pragma once

#include "remote/discovery.h"
#include "runtime/session.h"

namespace orknn::runtime {

// For programs that name no device themselves. With ORKNN_DEVICE set, runs of `session` happen on that device; with
// ORKNN_REQUIRE_DEVICE=1 and no NPU on this board on the only one with the model's chip. Code::Io when it is not in reach.
Status use_device_of_environment(Session& session);
// Whether ORKNN_REQUIRE_DEVICE=1 forbids to simulate a chip instead of using one.
bool is_device_required();
// While an object lives, use_device_of_environment does nothing on this thread: its caller chooses the place itself.
class RunsHere {
 public:
  RunsHere();
  ~RunsHere();
  RunsHere(const RunsHere&) = delete;
  RunsHere& operator=(const RunsHere&) = delete;

 private:
  bool before_;
};
// Whether a device of this chip runs models made for that one; unknown names fit nothing.
remote::Fit fit_of(const std::string& device_chip, const std::string& model_chip);
// Connects to the device at `address`, which must run the session's model, and uses it.
Status use_device_at(Session& session, const remote::Address& address);

}  // namespace orknn::runtime
