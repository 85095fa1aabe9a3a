// A kernel's surroundings in tests.
#pragma once

#include <cstring>

#include "sim/kernel.h"

namespace orknn::tests {

// Scratch memory is full of ones (NaN in floats, -1 in integers): no result may depend on what was there before.
class PoisonedContext final : public sim::KernelContext {
 public:
  PoisonedContext(const ir::Node& n, const ir::OpDef& d, std::span<const ir::TensorView> in,
                  std::span<const ir::MutableTensorView> out, ThreadPool& pool)
      : KernelContext(n, d, in, out, pool) {}
  std::byte* scratch(size_t bytes) override {
    memory_ = ir::TensorData::allocate(DType::UInt8, {static_cast<int64_t>(bytes)});
    auto* data = static_cast<std::byte*>(memory_.mutable_data());
    std::memset(data, 0xff, bytes);
    return data;
  }

 private:
  ir::TensorData memory_;
};

}  // namespace orknn::tests
