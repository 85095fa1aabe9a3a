#include "runtime/sram.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/forks.h"
#include "runtime/perf_report.h"

namespace orknn::runtime {
namespace {
struct SramTable {
  BriefMutex mutex;
  std::unordered_map<const platform::Platform*, uint64_t> held;
};
SramTable& sram_table() {
  static SramTable* const instance = new SramTable;  // contexts may outlive static objects
  return *instance;
}
ORKNN_MAKE_AT_LOAD(sram_table);

uint64_t free_of(const SramTable& table, const platform::Platform& chip) {
  if (!chip.features.sram_for_internal) return 0;
  const auto total = static_cast<uint64_t>(chip.sram_bytes);
  const auto it = table.held.find(&chip);
  return total - (it == table.held.end() ? 0 : std::min(total, it->second));
}
}  // namespace

uint64_t free_sram(const platform::Platform& chip) {
  SramTable& t = sram_table();
  const std::lock_guard lock(t.mutex);
  return free_of(t, chip);
}

SramShare::SramShare(const platform::Platform& chip, uint64_t bytes) : chip_(&chip) {
  SramTable& t = sram_table();
  const std::lock_guard lock(t.mutex);
  found_free_ = free_of(t, chip);
  bytes_ = sram_block(bytes, found_free_);
  t.held[&chip] += bytes_;
}

SramShare::~SramShare() {
  if (!bytes_) return;
  SramTable& t = sram_table();
  const std::lock_guard lock(t.mutex);
  t.held[chip_] -= bytes_;
}

SramShare::SramShare(SramShare&& other) noexcept
    : chip_(other.chip_), bytes_(std::exchange(other.bytes_, 0)), found_free_(other.found_free_) {}

SramShare& SramShare::operator=(SramShare&& other) noexcept {
  std::swap(chip_, other.chip_);
  std::swap(bytes_, other.bytes_);
  std::swap(found_free_, other.found_free_);
  return *this;
}

}  // namespace orknn::runtime
