// The unit as a computation: executes command streams on device memory and knows nothing else, no graph and no Program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/threads.h"
#include "silicon/command.h"
#include "silicon/memory.h"

namespace orknn::silicon {

using Stream = std::vector<uint64_t>;

// One task as a kick of the unit executes it. Refuses what the lint refuses; the error lists every problem.
Status run_task(const DecodedTask& task, const DeviceMemory& memory, ThreadPool& pool);
// Tasks of one core, in order.
Status run_streams(std::span<const Stream> streams, const DeviceMemory& memory, ThreadPool& pool);
// Decodes a stream and refuses what run_task would refuse; `before` is the task before it on the core, nullptr for none.
Result<DecodedTask> check_task(std::span<const uint64_t> words, const DecodedTask* before, const DeviceMemory& memory);
// Every problem that the lint has with them, the memory aside; an error names the task.
Status check_streams(std::span<const Stream> streams);

}  // namespace orknn::silicon
