// The NPU of the board that this process runs on, if there is one.
#pragma once

#include <memory>
#include <string>

#include "silicon/drivers/kernel.h"
#include "silicon/unit.h"

namespace orknn::silicon {

// Looks for the mainline driver (/dev/accel/accel*), then for the vendor's (/dev/dri/renderD* named rknpu) on a board whose
// device tree names `chip` ("rk3588"). nullptr when there is none; an error when there is one that cannot be used.
Result<std::unique_ptr<Unit>> open_board(const std::string& chip, Kernel& kernel = linux_kernel());

}  // namespace orknn::silicon
