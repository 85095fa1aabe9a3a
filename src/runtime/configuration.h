// What programs choose for contexts that they make from now on (include/openrknn.h).
#pragma once

#include <memory>

#include "base/threads.h"
#include "platform/platforms.h"

namespace orknn::runtime {

// The pool to compute with; nullptr = the threads of the simulated cores.
std::shared_ptr<ThreadPool> configured_pool();
// The chip to simulate; nullptr = the one the model was made for. OPENRKNN_PLATFORM is the choice a program begins with.
const platform::Platform* configured_chip();

}  // namespace orknn::runtime
