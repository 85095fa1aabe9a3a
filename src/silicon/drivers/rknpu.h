// The vendor's open kernel driver `rknpu` (a DRM render node) as a unit.
#pragma once

#include <memory>

#include "silicon/drivers/kernel.h"
#include "silicon/unit.h"

namespace orknn::silicon {

// Each task is a submission of its own, because integer tasks after the first one of a kick are reported to compute garbage. With
// several cores in the mask, as many tasks of a layer's bands go to the cores at once.
std::unique_ptr<Unit> make_rknpu_unit(std::unique_ptr<DeviceFile> file);

}  // namespace orknn::silicon
