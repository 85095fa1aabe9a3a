// The blocks CNA and CORE with the DPU after them, and the DPU alone.
#pragma once

#include "base/threads.h"
#include "silicon/command.h"
#include "silicon/memory.h"

namespace orknn::silicon {

// Tasks have passed the lint.
Status run_convolution(const DecodedTask& task, const DeviceMemory& memory, ThreadPool& pool);
Status run_flying(const DecodedTask& task, const DeviceMemory& memory);

}  // namespace orknn::silicon
