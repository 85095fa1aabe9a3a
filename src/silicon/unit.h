// A place where streams run: the chip model in this process, or a board's NPU through its kernel driver.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "silicon/memory.h"

namespace orknn::silicon {

// What the three buffers of a unit hold. The unit writes features only.
enum class BufferUse : uint8_t { Commands, Operands, Features };
inline constexpr size_t kBufferUses = 3;

struct UnitBuffer {
  uint32_t address = 0;        // as streams state it
  std::span<std::byte> bytes;  // as the CPU sees it
};

struct UnitTask {
  uint32_t address = 0;  // of its stream, in the buffer of commands
  uint32_t words = 0;    // tail included
  uint32_t enable = 0;
  uint32_t layer = 0;  // tasks of one layer do not read each other's results
};

struct UnitRun {
  ThreadPool* pool = nullptr;                                                    // of the chip model; nullptr = the shared one
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;  // besides the unit's own limit
  uint32_t core_mask = 0;                                                        // 0 = any one
};

// Buffers live as long as their unit. Not for use from two threads at once.
class Unit {
 public:
  virtual ~Unit() = default;
  // For people: "the chip model", "rocket (/dev/accel/accel0)".
  virtual std::string name() const = 0;
  // What its driver states about itself and the hardware, on one line for reports; empty without a driver.
  virtual std::string driver() const { return {}; }
  virtual bool is_board() const = 0;
  // False: a task that only pools never reports its end, so none must be submitted.
  virtual bool waits_for_pooling() const = 0;
  // False: another task may run between two tasks of a job, so none may rely on what an earlier one left in the convolution
  // buffer.
  virtual bool keeps_buffer_between_tasks() const = 0;

  // At most once per use.
  virtual Result<UnitBuffer> allocate(BufferUse use, uint64_t bytes) = 0;
  // Who may touch a buffer: the CPU after allocate and take, the unit after give. Caches are written back or forgotten here.
  virtual Status give(BufferUse use) = 0;
  virtual Status take(BufferUse use) = 0;
  // Runs the tasks in order and waits. All buffers belong to the unit meanwhile. After an error the unit is of no more use: its
  // owner makes another one.
  virtual Status run(std::span<const UnitTask> tasks, const UnitRun& run) = 0;
};

std::unique_ptr<Unit> make_chip_model_unit();

}  // namespace orknn::silicon
