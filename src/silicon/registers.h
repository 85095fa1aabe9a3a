// The registers of one NPU core: offsets and fields as constants, the whole list as a table, and a set of values.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace orknn::silicon {

enum class Block : uint8_t { Pc, Cna, Core, Dpu, DpuRdma, Ppu, PpuRdma };

// Bits [low, low + bits) of the register at `offset`.
struct Field {
  uint16_t offset = 0;
  uint8_t low = 0, bits = 32;

  constexpr uint32_t mask() const { return (bits == 32 ? ~0u : (1u << bits) - 1) << low; }
  constexpr uint32_t max() const { return mask() >> low; }
};

// Offsets: reg::CNA_CONV_CON1.
namespace reg {
enum Offset : uint16_t {
#define REGISTER(block, offset, name) name = offset,
#define FIELD(register, name, low, bits)
#include "silicon/registers.inc"
#undef REGISTER
#undef FIELD
};
}  // namespace reg

// Fields: field::CNA_CONV_CON1_CONV_MODE.
namespace field {
#define REGISTER(block, offset, name)
#define FIELD(register, name, low, bits) inline constexpr Field register##_##name{reg::register, low, bits};
#include "silicon/registers.inc"
#undef REGISTER
#undef FIELD
}  // namespace field

struct NamedField {
  std::string_view name;
  Field field;
};
struct RegisterInfo {
  Block block = Block::Pc;
  uint16_t offset = 0;
  std::string_view name;
  std::vector<NamedField> fields;

  uint32_t known_bits() const;
};
// In the order of their offsets.
std::span<const RegisterInfo> all_registers();
// nullptr for offsets that are no register a stream may write.
const RegisterInfo* find_register(uint16_t offset);

// Values of registers; those never written read as zero.
class Registers {
 public:
  static constexpr size_t kWindow = 0x8000;  // bytes of offsets that streams address

  uint32_t get(uint16_t offset) const { return values_[offset / 4]; }
  uint32_t get(Field f) const { return (get(f.offset) & f.mask()) >> f.low; }
  // The field as a two's complement number.
  int64_t get_signed(Field f) const;
  bool written(uint16_t offset) const { return written_[offset / 4]; }

  void set(uint16_t offset, uint32_t value) {
    values_[offset / 4] = value;
    written_[offset / 4] = true;
  }
  // `value` must fit; negative numbers are stored in two's complement.
  void set(Field f, int64_t value);

 private:
  std::array<uint32_t, kWindow / 4> values_{};
  std::bitset<kWindow / 4> written_;
};

// Every register of these blocks but some, zero: what a task does not write keeps the value of an earlier one.
Registers cleared(std::initializer_list<Block> blocks, std::initializer_list<uint16_t> except = {});

}  // namespace orknn::silicon
