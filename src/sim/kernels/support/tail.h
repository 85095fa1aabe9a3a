// Translates the fused tail of a node into steps of the compute cores.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/kernel.h"
#include "sim/kernels/support/forms.h"

namespace orknn::sim::kernels {

// Float32 or float16: what the cores compute with. Nothing for other types.
std::optional<Storage> storage_of(DType dtype);

// The function of one value that an op with these attributes computes, as a step without operand; nothing when it is none. Ops
// that the cores have no function for are called element by element.
std::optional<Step> unary_step(std::string_view op, const ir::Attributes& attributes);
// The function of x and y; `swapped` when x is the op's second input.
std::optional<Fn> binary_function(std::string_view op, bool swapped);

// A result [d0, d1, ...] seen as a matrix per batch: axes before `row_axis` are the batch, axes from `column_axis` on are
// the columns, those between are the rows.
struct MatrixView {
  size_t row_axis = 0, column_axis = 0;
};

// Steps without the addresses of their operands, which are known only when running.
class TailPlan {
 public:
  // Nothing when a step is beyond the cores: an unknown op, another dtype, or an operand broadcast in a way that is not
  // linear in batch, row and column.
  static std::optional<TailPlan> create(const KernelQuery& query, MatrixView view);
  bool empty() const { return steps_.empty(); }
  std::vector<Step> bind(std::span<const ir::TensorView> inputs) const;

 private:
  std::vector<Step> steps_;
  std::vector<int32_t> operands_;  // per step, -1 for none
};

// Takes a leading clamp (Relu, Clip) off the steps, for cores that apply it in registers.
struct Clamp {
  bool active = false;
  float low = 0, high = 0;
};
Clamp take_clamp(std::vector<Step>& steps);

}  // namespace orknn::sim::kernels
