#include "silicon/unit.h"

#include <array>
#include <cstring>

#include "silicon/chip_model.h"

namespace orknn::silicon {
namespace {

class ChipModelUnit final : public Unit {
 public:
  std::string name() const override { return "the chip model"; }
  bool is_board() const override { return false; }
  bool waits_for_pooling() const override { return true; }
  bool keeps_buffer_between_tasks() const override { return true; }

  Result<UnitBuffer> allocate(BufferUse use, uint64_t bytes) override {
    std::vector<std::byte>& memory = buffers_[static_cast<size_t>(use)];
    memory.resize(bytes);
    ORKNN_TRY_ASSIGN(const uint32_t address, space_.allocate(bytes));
    const auto access = use == BufferUse::Features ? DeviceMemory::Access::ReadWrite : DeviceMemory::Access::ReadOnly;
    ORKNN_TRY(memory_.map(kNames[static_cast<size_t>(use)], address, memory, access));
    return UnitBuffer{address, memory};
  }
  Status give(BufferUse) override { return {}; }
  Status take(BufferUse) override { return {}; }

  Status run(std::span<const UnitTask> tasks, const UnitRun& run) override {
    std::vector<Stream> streams;
    for (const UnitTask& t : tasks) {
      ORKNN_TRY_ASSIGN(const std::byte* words, memory_.at(t.address, uint64_t{t.words} * sizeof(uint64_t), "a stream"));
      streams.emplace_back(t.words);
      std::memcpy(streams.back().data(), words, t.words * sizeof(uint64_t));
    }
    return run_streams(streams, memory_, run.pool ? *run.pool : ThreadPool::shared());
  }

 private:
  static constexpr std::array<const char*, kBufferUses> kNames{"commands", "operands", "features"};
  AddressSpace space_;
  DeviceMemory memory_;
  std::array<std::vector<std::byte>, kBufferUses> buffers_;
};
}  // namespace

std::unique_ptr<Unit> make_chip_model_unit() { return std::make_unique<ChipModelUnit>(); }

}  // namespace orknn::silicon
