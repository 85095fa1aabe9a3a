// Command streams: 64-bit words that write registers and start the blocks, as the unit fetches them from memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "silicon/registers.h"

namespace orknn::silicon {

// Bits 63:48 of a word.
enum class Target : uint16_t {
  None = 0,  // an all-zero word is skipped
  Mark = 0x0041,
  Enable = 0x0081,
  Pc = 0x0101,
  Cna = 0x0201,
  Cmac = 0x0401,  // a programmed block on other chips only
  Core = 0x0801,
  Dpu = 0x1001,
  DpuRdma = 0x2001,
  Ppu = 0x4001,
  PpuRdma = 0x8001,
};
Target target_of(Block block);

struct Command {
  Target target = Target::None;
  uint16_t offset = 0;
  uint32_t value = 0;
};
constexpr uint64_t encode(const Command& c) {
  return static_cast<uint64_t>(c.target) << 48 | static_cast<uint64_t>(c.value) << 16 | c.offset;
}
constexpr Command decode(uint64_t word) {
  return {static_cast<Target>(word >> 48), static_cast<uint16_t>(word), static_cast<uint32_t>(word >> 16)};
}

// Which blocks the last word of a task starts.
inline constexpr uint32_t kEnableConvolution = 0x1d, kEnableDpu = 0x18, kEnablePooling = 0x60;
// Words of the tail that every task ends in: next task, its amount, mark, enable.
inline constexpr size_t kTailWords = 4;
inline constexpr size_t kLutEntries = 513;

// One task, decoded.
struct DecodedTask {
  Registers registers;
  uint32_t enable = 0;
  uint32_t next_address = 0, next_amount = 0;
  std::vector<int16_t> lut_le, lut_lo;  // as far as the stream loads them, from the first entry on
};
// Checks words one by one: known targets and registers, the tail. What values mean together is the lint's matter.
Result<DecodedTask> decode_task(std::span<const uint64_t> words);

// The words of a task that writes these registers, in the order of their offsets after the pointers, and starts `enable`. `next`
// is the stream that follows in memory and its amount; 0 for none.
std::vector<uint64_t> encode_task(const Registers& registers, uint32_t enable, uint32_t next_address = 0,
                                  uint32_t next_amount = 0);
// What the kernel or a chaining word states for a stream of so many words, tail included.
constexpr uint32_t register_amount(size_t words) { return static_cast<uint32_t>((words + 1) / 2 - 1); }

// "CNA_CONV_CON1", or empty.
std::string register_name(const Command& command);
// One line per word: position, block, register, value, fields that are not zero.
std::string disassemble(std::span<const uint64_t> words);

}  // namespace orknn::silicon
