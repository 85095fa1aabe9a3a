#include "runtime/checker.h"

#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "base/log.h"

namespace orknn::runtime {
namespace {
std::atomic<uint64_t> mistakes{0};

std::atomic<bool>& switched_on() {
  static std::atomic<bool> on{[] {
    const char* text = std::getenv("OPENRKNN_CHECK");
    return text && *text && std::strcmp(text, "0") != 0;
  }()};
  return on;
}

std::span<const std::byte> bytes_of(const Memory& memory) {
  const Payload p = payload_of(memory.mem);
  return {p.data, p.data ? p.bytes : 0};
}

// FNV-1a over words.
uint64_t digest(std::span<const std::byte> bytes) {
  uint64_t sum = 14695981039346656037u;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    sum = (sum ^ word) * 1099511628211u;
  }
  for (; i < bytes.size(); ++i) sum = (sum ^ static_cast<uint64_t>(bytes[i])) * 1099511628211u;
  return sum;
}
}  // namespace

bool is_checking() { return switched_on().load(std::memory_order_relaxed); }
void set_checking(bool on) { switched_on() = on; }
uint64_t reported_mistakes() { return mistakes; }

void report_mistake(std::string_view function, std::string_view problem, std::string_view fix) {
  ++mistakes;
  log(LogLevel::Error, "OPENRKNN_CHECK", std::string(function) + ": " + std::string(problem) + ". Fix: " + std::string(fix));
}

void check_not_destroyed(const char* function, const rknn_tensor_mem* mem) {
  if (!is_checking() || !mem || !was_released(mem)) return;
  if (std::string_view(function) == "rknn_destroy_mem")
    report_mistake(function, "this memory was destroyed before", "destroy each rknn_tensor_mem once");
  else
    report_mistake(function, "this memory was destroyed", "call rknn_destroy_mem only after the last use");
}

void check_described(const char* function, const rknn_tensor_mem* mem, const Payload& payload) {
  if (!is_checking()) return;
  check_not_destroyed(function, mem);
  if (payload.keeper) check_sizes(function, *payload.keeper);
}

void check_bounds(const char* function, const Memory& memory) {
  if (is_checking() && memory.block && memory.block->is_overrun())
    report_mistake(function, "somebody wrote past the end of a block of " + std::to_string(memory.block->bytes()) + " bytes",
                   "allocate size_with_stride of the tensor's attributes, or write fewer bytes");
}

void check_sizes(const char* function, const Memory& memory) {
  if (!is_checking()) return;
  const rknn_tensor_mem& m = memory.mem;
  const uint64_t end = static_cast<uint64_t>(std::max(m.offset, 0)) + m.size;
  if (memory.block && m.virt_addr == memory.block->data() && end > memory.block->bytes())
    report_mistake(
        function, "the struct describes " + std::to_string(end) + " bytes of a block of " + std::to_string(memory.block->bytes()),
        "leave the fields of rknn_tensor_mem as they were made, and pass an offset inside of the buffer to "
        "rknn_create_mem_from_fd");
  struct stat about {};
  if (!memory.block && m.fd >= 0 && ::fstat(m.fd, &about) == 0 && S_ISREG(about.st_mode) &&
      static_cast<uint64_t>(about.st_size) < end)
    report_mistake(function,
                   "offset + size is " + std::to_string(end) + ", the descriptor has " + std::to_string(about.st_size) + " bytes",
                   "pass the size of the buffer and an offset inside of it to rknn_create_mem_from_fd");
}

void note_sync(Memory& memory, uint32_t mode) {
  if (!is_checking()) return;
  if (mode & RKNN_MEMORY_SYNC_TO_DEVICE) memory.flushed = digest(bytes_of(memory));
  if (mode & RKNN_MEMORY_SYNC_FROM_DEVICE) memory.has_unread_results = false;
}

void check_input_sync(const char* function, const Memory& memory, std::string_view port) {
  if (!is_checking() || !memory.cacheable || memory.flushed == digest(bytes_of(memory))) return;
  report_mistake(function, "input '" + std::string(port) + "' was written and not synchronized, the NPU would read old bytes",
                 "call rknn_mem_sync(ctx, mem, RKNN_MEMORY_SYNC_TO_DEVICE) after writing, or leave out "
                 "RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE");
}

void check_output_sync(const char* function, Memory& memory, std::string_view port) {
  if (!is_checking() || !memory.cacheable) return;
  if (memory.has_unread_results)
    report_mistake(
        function,
        "the results of the last run in output '" + std::string(port) + "' were not synchronized, the CPU would read old bytes",
        "call rknn_mem_sync(ctx, mem, RKNN_MEMORY_SYNC_FROM_DEVICE) before reading, or leave out "
        "RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE");
  memory.has_unread_results = true;
}

}  // namespace orknn::runtime
