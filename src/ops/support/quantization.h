// Affine quantization shared by the quantized ops: real = (q - zero_point) * scale.
#pragma once

#include <cmath>

#include "ops/support/elementwise.h"

namespace orknn::ops {

// Which scale belongs to which element: one for the whole tensor, one per index of an axis, or one per block along an axis.
class ScaleLayout {
 public:
  static Result<ScaleLayout> make(std::span<const int64_t> x, std::span<const int64_t> scale, int64_t axis, int64_t block_size);
  int64_t scales() const { return scales_; }
  // Calls f(at, n, scale, step): elements [at, at + n) use scales scale, scale + step, ... Runs may be visited in parallel.
  template <class F>
  void for_runs(ThreadPool& pool, int64_t count, F&& f) const {
    pool.parallel_for(count, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end;) {
        const int64_t row = at / inner_, column = at % inner_, n = std::min(inner_ - column, end - at);
        if (scales_ == 1)
          f(at, n, int64_t{0}, int64_t{0});
        else if (block_ == 0)
          f(at, n, row % extent_, int64_t{0});
        else
          f(at, n, (row / extent_ * blocks_ + row % extent_ / block_) * inner_ + column, int64_t{1});
        at += n;
      }
    });
  }

 private:
  int64_t scales_ = 1, extent_ = 1, inner_ = 1;
  int64_t block_ = 0, blocks_ = 0;  // elements per block and blocks along the axis; 0 = not blocked
};

// round_half_even(value) + zero_point within [low, high]; NaN gives the zero point.
inline int32_t saturate(double value, int32_t zero_point, int32_t low, int32_t high) {
  if (value != value) return zero_point;
  const double q = std::rint(value) + zero_point;
  return q <= low ? low : q >= high ? high : static_cast<int32_t>(q);
}

// Integers of at most 16 bits: what activations and weights are stored in.
bool is_quantized_type(DType t);

// Scale and zero point of a whole tensor, from two inputs of a node (the second may be absent).
struct TensorScale {
  float scale = 1;
  int32_t zero_point = 0;
};
Result<TensorScale> read_tensor_scale(const ir::RunContext& c, size_t scale, size_t zero_point);
// All values of a scale or zero point input, as the given type.
std::vector<float> read_scales(const ir::RunContext& c, size_t input);
std::vector<int32_t> read_zero_points(const ir::RunContext& c, size_t input);  // {0} when absent

ir::TensorData dequantize(const ir::TensorView& x, TensorScale s);                      // float32
void quantize(const ir::TensorView& x, TensorScale s, const ir::MutableTensorView& y);  // x is float32

// The grid of a DequantizeLinear whose integers and parameters are constants, with zero points as int8 has them (those of uint8
// less 128). Nothing when there is more than a scale per tensor or per index of an axis.
std::optional<ir::QuantParams> stored_grid(const ir::Graph& graph, const ir::Node& dequantize);
// The same grid after a node that only moves the values of a constant; nothing when channels do not stay together.
std::optional<ir::QuantParams> moved_grid(const ir::Graph& graph, const ir::Node& move, std::span<const int64_t> result);

// Shape-rule check of constant scales: finite and not negative. 0 is legal: exporters give it to channels whose weights are all
// 0.
Status check_scale_values(const ir::InferContext& c, size_t i);
// Shape-rule checks: input i holds scales, input i + 1 (if present) zero points of type `dtype`.
Status check_scale(const ir::InferContext& c, size_t i, DType dtype);

}  // namespace orknn::ops
