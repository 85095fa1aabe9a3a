// OPENRKNN_CHECK=1: mistakes that a board punishes at random, or not at all on a PC, become lines in the log that name the call
// and what to do instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/memory.h"

namespace orknn::runtime {

// Whether the variable was set when it was first looked at, or set_checking() said so.
bool is_checking();
void set_checking(bool on);
// "OPENRKNN_CHECK: rknn_run: problem. Fix: fix" as an E line.
void report_mistake(std::string_view function, std::string_view problem, std::string_view fix);
// How many there were so far in this process.
uint64_t reported_mistakes();

// All of these do something only while is_checking().
// The struct was released before: says so.
void check_not_destroyed(const char* function, const rknn_tensor_mem* mem);
// A struct that the caller hands over, and the memory it describes: not destroyed, and as large as it says.
void check_described(const char* function, const rknn_tensor_mem* mem, const Payload& payload);
// Nothing was written past the end of memory that was made while checking.
void check_bounds(const char* function, const Memory& memory);
// What the struct says about its descriptor and block is true.
void check_sizes(const char* function, const Memory& memory);
// rknn_mem_sync was called.
void note_sync(Memory& memory, uint32_t mode);
// Before a run of a context that does not flush its inputs itself.
void check_input_sync(const char* function, const Memory& memory, std::string_view port);
// Around a run of a context that does not invalidate its outputs itself.
void check_output_sync(const char* function, Memory& memory, std::string_view port);

}  // namespace orknn::runtime
