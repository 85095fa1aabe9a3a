// The mainline kernel's driver `rocket` (/dev/accel/accelN) as a unit.
#pragma once

#include <memory>

#include "silicon/drivers/kernel.h"
#include "silicon/unit.h"

namespace orknn::silicon {

// One open file is one address space and one queue, whose jobs run one at a time on a core of the kernel's choice: masks of cores
// have no effect here, and as many networks as there are cores run at once.
std::unique_ptr<Unit> make_rocket_unit(std::unique_ptr<DeviceFile> file);

}  // namespace orknn::silicon
