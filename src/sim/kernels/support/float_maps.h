// Feature maps of floats in blocks (sim/form.h): fused tails over them, and convolution by direct sums.
#pragma once

#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim::kernels {

// Steps on pixels of a block: seen as a matrix, the block of channels is the batch, a pixel is a row, its channels are the
// columns.
class BlockedSteps {
 public:
  // Appends a function of one value; a function of the value and an operand of the node; its tail. False when a step is beyond
  // the cores or an operand neither a map in blocks nor one value per channel or for all.
  void append(const Step& step);
  bool append(const KernelQuery& query, Fn fn, size_t operand);
  bool append_tail(const KernelQuery& query);
  static std::optional<BlockedSteps> of_tail(const KernelQuery& query);
  // The steps of one image, whose operands are at hand.
  StepList bind(std::span<const ir::TensorView> inputs, int64_t image) const;

 private:
  struct Operand {
    int64_t input = -1;         // of the node; -1 = none, or one that is held here
    int64_t image_stride = 0;   // floats
    std::vector<float> values;  // of a constant, one or whole blocks of them
  };
  std::vector<Step> steps_;
  std::vector<Operand> operands_;  // per step
};

constexpr int64_t kTogether = 2;       // blocks of the result that a core computes at once, if it can
constexpr int64_t kJobsPerThread = 3;  // of several

// Convolution of one group by direct sums; its weights are the caller's.
struct FloatConv {
  Window window;
  int64_t channels = 0, outputs = 0, x_blocks = 0, y_blocks = 0;
  bool from_rows = false;  // the input is in rows
  BlockedSteps tail;
  AlignedFloats bias;  // [block][kBlock]

  // Without a bias; nothing for nodes that are not such a convolution.
  static std::optional<FloatConv> create(const KernelQuery& query);
  Status take_bias(const KernelQuery& query);
  // As [block][tap][channel][kBlock].
  Status pack_weights(const ir::TensorView& values, ThreadPool& pool, AlignedFloats& weights) const;
  Status run(KernelContext& context, const float* packed) const;
};

}  // namespace orknn::sim::kernels
