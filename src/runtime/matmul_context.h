// What a rknn_matmul_ctx refers to: a plan, the memory bound to its matrices and their packed contents.
#pragma once

#include <optional>

#include "base/threads.h"
#include "runtime/handles.h"
#include "runtime/matmul_plan.h"
#include "runtime/memory.h"
#include "sim/matrix_product.h"

namespace orknn::runtime {

class MatmulContext : public HandleObject {
 public:
  MatmulContext(MatmulPlan plan, bool is_dynamic, std::shared_ptr<ThreadPool> pool);

  const MatmulPlan& plan() const { return plan_; }
  bool is_dynamic() const { return is_dynamic_; }
  bool has_shape() const { return shape_.has_value(); }
  // Whether an attribute is one that the context gave out: for some shape, for the current one.
  bool knows(const rknn_matmul_tensor_attr& attr) const;
  bool is_current(const rknn_matmul_tensor_attr& attr) const;

  // InvalidArgument for a shape the context was not made with. What is bound to matrices that change is forgotten.
  Status set_shape(const rknn_matmul_shape& shape);
  // `name` is 'A', 'B' or 'C'. Plain layouts are copied now, native ones are read and written by run().
  Status bind(char name, const Payload& memory);
  // InvalidArgument for parameters that do not belong to the matrix or its scheme.
  Status set_quantization(char name, const rknn_quant_params& params);
  // The scale that the channels' scales of B are brought to.
  float common_scale() const;
  void set_core_mask(uint32_t mask) { core_mask_ = mask; }
  // `handle` names the context in the run trace.
  Status run(uint64_t handle);
  // Frees everything but the object itself, which another call may still wait for.
  void release();

 private:
  // Values as the caller gave them; empty = scale 1 and zero point 0.
  struct Quantization {
    std::vector<float> scales;
    std::vector<int32_t> zeros;
  };
  struct Binding {
    std::byte* data = nullptr;       // nullptr = not bound
    std::shared_ptr<Memory> keeper;  // lives until something else is bound, whatever the caller destroys
    // While mistakes are looked for: what was copied when it was bound.
    std::span<const std::byte> copied = {};
    uint64_t checksum = 0;
  };
  static Binding copied_binding(const Payload& memory, size_t bytes);
  void check_memory() const;

  // What binding computes with; runs have the core's own.
  ThreadPool& pool() const { return pool_ ? *pool_ : ThreadPool::shared(); }
  bool right_is_native() const { return plan_.info().B_layout == RKNN_MM_LAYOUT_NATIVE; }
  bool left_is_native() const { return plan_.info().AC_layout == RKNN_MM_LAYOUT_NATIVE; }
  Quantization& quantization(char name) { return name == 'A' ? left_ : name == 'B' ? right_ : result_; }
  DType type_of(char name) const;
  size_t parameters(char name) const;
  Status check_zero_points(char name, std::span<const int32_t> zeros) const;
  sim::ProductScaling scaling_for(const rknn_matmul_shape& shape) const;
  std::vector<double> factors(const rknn_matmul_shape& shape) const;
  Status bind_right(const Payload& memory);
  Status refresh_right(ThreadPool& pool);
  uint64_t right_fingerprint(ThreadPool& pool) const;

  const MatmulPlan plan_;
  const bool is_dynamic_;
  std::shared_ptr<ThreadPool> pool_;  // nullptr = the threads of the simulated core
  std::optional<rknn_matmul_shape> shape_;
  uint32_t core_mask_ = 0;
  Quantization left_, right_, result_;
  Binding bound_left_, bound_right_, bound_result_;
  std::vector<std::byte> right_copy_;  // of a plain right operand that is packed again when its quantization changes
  uint64_t right_fingerprint_ = 0;     // of the native right operand that is packed
  bool right_is_stale_ = false;        // packed with another quantization
  std::unique_ptr<sim::MatrixProduct> product_;
  sim::ProductScaling scaling_;
};

}  // namespace orknn::runtime
