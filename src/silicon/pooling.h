// The blocks PPU and PPU_RDMA.
#pragma once

#include "base/threads.h"
#include "silicon/command.h"
#include "silicon/memory.h"

namespace orknn::silicon {

// `task` has passed the lint.
Status run_pooling(const DecodedTask& task, const DeviceMemory& memory, ThreadPool& pool);

}  // namespace orknn::silicon
