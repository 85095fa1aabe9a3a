// Translates the fused tail of a node into steps of the compute cores.
#pragma once

#include <algorithm>
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

// The steps of one run. As many as tails usually have are held in the object itself: runs allocate nothing.
class StepList {
 public:
  StepList() = default;
  StepList(const StepList& other) { *this = other; }
  StepList& operator=(const StepList& other) {
    clear();
    for (const Step& step : other) push_back(step);
    return *this;
  }
  void push_back(const Step& step) {
    if (many_.empty() && size_ < kFew) {
      few_[size_++] = step;
      return;
    }
    if (many_.empty()) many_.assign(begin(), end());
    many_.push_back(step);
    size_ = many_.size();
  }
  void pop_front() {
    std::copy(begin() + 1, end(), begin());
    --size_;
    if (!many_.empty()) many_.pop_back();
  }
  void clear() {
    many_.clear();
    size_ = 0;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Step* data() { return many_.empty() ? few_ : many_.data(); }
  const Step* data() const { return many_.empty() ? few_ : many_.data(); }
  Step* begin() { return data(); }
  Step* end() { return data() + size_; }
  const Step* begin() const { return data(); }
  const Step* end() const { return data() + size_; }
  Step& operator[](size_t i) { return data()[i]; }
  const Step& front() const { return *data(); }
  Step& back() { return data()[size_ - 1]; }

 private:
  static constexpr size_t kFew = 8;
  Step few_[kFew];
  std::vector<Step> many_;  // all of them, when they are more; never empty then
  size_t size_ = 0;
};

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
  StepList bind(std::span<const ir::TensorView> inputs) const;

 private:
  std::vector<Step> steps_;
  std::vector<int32_t> operands_;  // per step, -1 for none
};

// Takes a leading clamp (Relu, Clip) off the steps, for cores that apply it in registers.
struct Clamp {
  bool active = false;
  float low = 0, high = 0;
};
Clamp take_clamp(StepList& steps);

}  // namespace orknn::sim::kernels
