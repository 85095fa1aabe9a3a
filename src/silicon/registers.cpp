#include "silicon/registers.h"

#include <algorithm>

#include "base/assert.h"

namespace orknn::silicon {
namespace {
std::vector<RegisterInfo> make_table() {
  std::vector<RegisterInfo> table;
#define REGISTER(block, offset, name) table.push_back({Block::block, offset, #name, {}});
#define FIELD(register, name, low, bits) table.back().fields.push_back({#name, field::register##_##name});
#include "silicon/registers.inc"
#undef REGISTER
#undef FIELD
  return table;
}
}  // namespace

uint32_t RegisterInfo::known_bits() const {
  uint32_t bits = 0;
  for (const NamedField& f : fields) bits |= f.field.mask();
  return bits;
}

std::span<const RegisterInfo> all_registers() {
  static const std::vector<RegisterInfo> table = make_table();
  return table;
}

const RegisterInfo* find_register(uint16_t offset) {
  const auto table = all_registers();
  const auto at = std::ranges::lower_bound(table, offset, {}, &RegisterInfo::offset);
  return at != table.end() && at->offset == offset ? &*at : nullptr;
}

int64_t Registers::get_signed(Field f) const {
  const int64_t value = get(f), sign = int64_t{1} << (f.bits - 1);
  return (value ^ sign) - sign;
}

void Registers::set(Field f, int64_t value) {
  const int64_t most = f.max(), least = -(most / 2) - 1;
  ORKNN_ASSERT(value >= least && value <= most, "a register field holds its value");
  const uint32_t bits = (static_cast<uint32_t>(value) << f.low) & f.mask();
  set(f.offset, (get(f.offset) & ~f.mask()) | bits);
}

Registers cleared(std::initializer_list<Block> blocks, std::initializer_list<uint16_t> except) {
  Registers r;
  for (const RegisterInfo& info : all_registers())
    for (const Block b : blocks)
      if (info.block == b && std::ranges::find(except, info.offset) == except.end()) r.set(info.offset, 0);
  return r;
}

}  // namespace orknn::silicon
