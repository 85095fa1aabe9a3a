// The block DPU: what becomes of an accumulator on its way to memory.
#pragma once

#include <cstdint>
#include <vector>

#include "silicon/geometry.h"
#include "silicon/memory.h"

namespace orknn::silicon {

// The stages of one task with the operands that DPU_RDMA fetches for it.
class Dpu {
 public:
  // `task` outlives the object and has passed the lint.
  static Result<Dpu> create(const DecodedTask& task, const DeviceMemory& memory);

  const DpuTask& task() const { return d_; }
  // What is added to a window's sum of weights times zero point, for a channel.
  int64_t weight_zero(int64_t channel) const {
    return d_.weight_zero_from_memory ? zeros_[static_cast<size_t>(channel)] : d_.weight_zero;
  }
  // One accumulator of the array, from stage BS to memory.
  void write(int64_t accumulator, int64_t channel, int64_t pixel) const;
  void write(float accumulator, int64_t channel, int64_t pixel) const;
  // Planes between the real and the programmed channels. What the writer leaves there is not known: a pattern that nothing may
  // rely on.
  void write_beyond_real_channels() const;

 private:
  explicit Dpu(const DecodedTask& task) : task_(&task), d_(dpu_task(task.registers)) {}
  Status fetch_bias(const DeviceMemory& memory);
  Status fetch_operand(const DeviceMemory& memory);
  int64_t stage(const Stage& s, int64_t v, int64_t channel) const;
  float stage(const Stage& s, float v, int64_t channel) const;
  float look_up(float index) const;
  const std::byte* operand(int64_t channel, int64_t pixel) const;
  std::byte* place(int64_t channel, int64_t pixel) const {
    const int64_t lanes = lanes_of(d_.out);
    return destination_ + channel / lanes * d_.surface_stride + pixel * kAtomBytes + channel % lanes * bytes_of(d_.out);
  }

  const DecodedTask* task_;
  DpuTask d_;
  std::vector<int32_t> bias_, multipliers_, zeros_;  // per real channel, or none
  std::vector<float> float_bias_;
  const std::byte *even_ = nullptr, *odd_ = nullptr;
  std::byte* destination_ = nullptr;
};

}  // namespace orknn::silicon
