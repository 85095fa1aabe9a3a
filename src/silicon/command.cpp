#include "silicon/command.h"

#include <array>
#include <cstdio>

namespace orknn::silicon {
namespace {
std::string hex(uint64_t value, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

Status bad_word(size_t index, const Command& c, std::string problem) {
  return invalid_argument("command word " + std::to_string(index) + ": " + std::move(problem))
      .found("target " + hex(static_cast<uint16_t>(c.target), 4) + ", register " + hex(c.offset, 4) + ", value " +
             hex(c.value, 8));
}

// Loads of the two tables: an address that advances with each datum.
struct LutLoad {
  bool writing = false, second = false;
  size_t address = 0;

  Status access(uint32_t config) {
    if (config == 0) return {};  // a stream without tables clears the register
    writing = (config & field::DPU_LUT_ACCESS_CFG_WRITE.mask()) != 0;
    second = (config & field::DPU_LUT_ACCESS_CFG_TABLE.mask()) != 0;
    address = config & field::DPU_LUT_ACCESS_CFG_ADDRESS.mask();
    return {};
  }
  bool store(uint32_t value, DecodedTask& task) {
    if (!writing) return value == 0;
    std::vector<int16_t>& table = second ? task.lut_lo : task.lut_le;
    if (address != table.size() || address >= kLutEntries || value > 0xffff) return false;
    table.push_back(static_cast<int16_t>(value));
    ++address;
    return true;
  }
};

Status check_tail(std::span<const uint64_t> words, DecodedTask& task) {
  const size_t n = words.size();
  const Command next = decode(words[n - 4]), amount = decode(words[n - 3]), mark = decode(words[n - 2]),
                start = decode(words[n - 1]);
  const bool has_next = next.target == Target::Pc && next.offset == reg::PC_BASE_ADDRESS;
  if (words[n - 4] != 0 && !has_next) return bad_word(n - 4, next, "the address of the next task, or zero, is expected here");
  if (amount.target != Target::Pc || amount.offset != reg::PC_REGISTER_AMOUNTS)
    return bad_word(n - 3, amount, "the amount of the next task is expected here");
  if (mark.target != Target::Mark || mark.offset != 0 || mark.value != 0)
    return bad_word(n - 2, mark, "the mark that precedes the enable word is missing");
  if (start.target != Target::Enable || start.offset != reg::PC_OPERATION_ENABLE)
    return bad_word(n - 1, start, "a task ends in the word that enables its blocks");
  task.next_address = has_next ? next.value : 0;
  task.next_amount = amount.value;
  task.enable = start.value;
  if (task.next_address % 64 != 0) return bad_word(n - 4, next, "streams begin at multiples of 64 bytes");
  if ((task.next_address == 0) != (task.next_amount == 0) || task.next_amount > 0xffff)
    return bad_word(n - 3, amount, "address and amount of the next task belong together");
  return {};
}
}  // namespace

Target target_of(Block block) {
  constexpr std::array kTargets{Target::Pc,      Target::Cna, Target::Core,   Target::Dpu,
                                Target::DpuRdma, Target::Ppu, Target::PpuRdma};
  return kTargets[static_cast<size_t>(block)];
}

Result<DecodedTask> decode_task(std::span<const uint64_t> words) {
  if (words.size() < kTailWords + 1)
    return invalid_argument("a task has register words and four words that end it")
        .found(std::to_string(words.size()) + " words");
  DecodedTask task;
  LutLoad lut;
  for (size_t i = 0; i + kTailWords < words.size(); ++i) {
    const Command c = decode(words[i]);
    if (words[i] == 0) continue;
    if (c.target == Target::Cmac) return bad_word(i, c, "this block is programmed on other chips only");
    const RegisterInfo* info = find_register(c.offset);
    if (!info || info->block == Block::Pc) return bad_word(i, c, "no such register on this chip");
    if (c.target != target_of(info->block)) return bad_word(i, c, "the register belongs to another block");
    if (c.offset == reg::DPU_LUT_ACCESS_DATA) {
      if (!lut.store(c.value, task)) return bad_word(i, c, "the table has 513 entries of 16 bits");
      continue;
    }
    if (c.value & ~info->known_bits()) return bad_word(i, c, std::string(info->name) + " has reserved bits set");
    if (c.offset == reg::DPU_LUT_ACCESS_CFG) ORKNN_TRY(lut.access(c.value));
    task.registers.set(c.offset, c.value);
  }
  ORKNN_TRY(check_tail(words, task));
  return task;
}

std::vector<uint64_t> encode_task(const Registers& registers, uint32_t enable, uint32_t next_address, uint32_t next_amount) {
  std::vector<uint64_t> words;
  const auto add = [&](const RegisterInfo& r) {
    if (registers.written(r.offset)) words.push_back(encode({target_of(r.block), r.offset, registers.get(r.offset)}));
  };
  const auto is_pointer = [](const RegisterInfo& r) { return (r.offset & 0xfff) == 0x004; };
  for (const RegisterInfo& r : all_registers())
    if (is_pointer(r)) add(r);
  for (const RegisterInfo& r : all_registers())
    if (!is_pointer(r)) add(r);
  words.push_back(next_address ? encode({Target::Pc, reg::PC_BASE_ADDRESS, next_address}) : 0);
  words.push_back(encode({Target::Pc, reg::PC_REGISTER_AMOUNTS, next_amount}));
  words.push_back(encode({Target::Mark, 0, 0}));
  words.push_back(encode({Target::Enable, reg::PC_OPERATION_ENABLE, enable}));
  return words;
}

std::string register_name(const Command& command) {
  if (command.target == Target::None || command.target == Target::Mark) return {};
  const RegisterInfo* info = find_register(command.offset);
  return info ? std::string(info->name) : std::string();
}

std::string disassemble(std::span<const uint64_t> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    const Command c = decode(words[i]);
    char line[96];
    const std::string name = words[i] == 0 ? "skip" : c.target == Target::Mark ? "mark" : register_name(c);
    std::snprintf(line, sizeof line, "%4zu  %04x %04x %08x  %s", i, static_cast<unsigned>(c.target), c.offset, c.value,
                  name.empty() ? "unknown" : name.c_str());
    text += line;
    if (const RegisterInfo* info = words[i] ? find_register(c.offset) : nullptr; info && info->fields.size() > 1)
      for (const NamedField& f : info->fields)
        if (const uint32_t v = (c.value & f.field.mask()) >> f.field.low)
          text += "  " + std::string(f.name) + "=" + std::to_string(v);
    text += '\n';
  }
  return text;
}

}  // namespace orknn::silicon
