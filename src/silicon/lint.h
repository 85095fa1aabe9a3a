// Refuses tasks that would hang the unit, read or write outside of a buffer, or leave what any board has been seen to accept.
#pragma once

#include <string>
#include <vector>

#include "silicon/command.h"
#include "silicon/memory.h"

namespace orknn::silicon {

inline constexpr int64_t kCbufBanks = 12, kBankBytes = 32 * 1024, kEntryBytes = 64, kBankEntries = kBankBytes / kEntryBytes;

// One sentence per problem; none for a task that is sound in itself.
std::vector<std::string> lint(const DecodedTask& task);
// Accesses of a sound task that are outside of the buffers.
std::vector<std::string> lint(const DecodedTask& task, const DeviceMemory& memory);
// A task that keeps weights in the convolution buffer follows one that loaded them there; `before` is nullptr for the first.
std::vector<std::string> lint_sequence(const DecodedTask* before, const DecodedTask& task);

}  // namespace orknn::silicon
