// The convolution every convolution-like op shares: geometry from a node and its shapes, and a direct loop that sums
// one output plane at a time. Float ops use it with double sums, integer ops with zero points and int32 sums.
#pragma once

#include <algorithm>
#include <vector>

#include "base/threads.h"
#include "ops/support/window.h"

namespace orknn::ops {

struct ConvShape {
  int64_t batch = 0, groups = 1;
  int64_t input_channels = 0, output_channels = 0;  // of all groups together
  Window window;                                    // padding settled
  ir::Dims input, output;                           // spatial extents

  int64_t channels_per_group() const { return input_channels / groups; }
  int64_t outputs_per_group() const { return output_channels / groups; }
  ir::Dims output_dims() const;
  int64_t macs() const;
};

// Schema of the attributes that Conv and its integer forms share.
std::vector<ir::AttributeDef> conv_attributes();
// Geometry for data [N, C, spatial...] and weights [M, C / groups, kernel...].
Result<ConvShape> conv_shape(const ir::NodeReader& node, std::span<const int64_t> x, std::span<const int64_t> w);
// The same for ConvTranspose, whose weights are [C, M / groups, kernel...]; reads output_padding and output_shape too.
Result<ConvShape> conv_transpose_shape(const ir::NodeReader& node, std::span<const int64_t> x, std::span<const int64_t> w);
// Output extent of ConvTranspose on one axis, where output_shape does not give it.
ir::Dim conv_transpose_output(const Window& window, size_t axis, int64_t output_padding, const ir::Dim& input);
// The shape rule for data and weights in the given input slots: output 0 gets `dtype`.
Status infer_conv(ir::InferContext& c, size_t x, size_t w, DType dtype);
Status infer_conv_transpose(ir::InferContext& c);
// A bias is [channels]: what the shape rule knows of input `slot` against output 0, which is set already; and what a kernel got.
Status check_bias(const ir::InferContext& c, size_t slot);
Status check_bias(const ir::TensorView& bias, int64_t channels);

// A run of outputs in one plane that read equally spaced inputs for one tap of the kernel.
struct TapRun {
  int64_t input, output, count;
};
// The runs of one tap (row-major index into the kernel) that cover every output whose input for that tap is not padding.
std::vector<TapRun> tap_runs(const ConvShape& s, int64_t tap);

// For each image and output channel: sums (x - x_zero) * (w - w_zero(channel)) in type A over the taps inside the input
// (padding adds nothing) and calls store(image, channel, sums of the plane) on some thread of the pool.
template <class A, class X, class W, class Zero, class Store>
void convolve(ThreadPool& pool, const ConvShape& s, const X* x, const W* w, A x_zero, Zero&& w_zero, Store&& store) {
  constexpr int64_t kBlock = 4;  // output channels that share each read of the input
  const int64_t input_plane = ir::element_count(s.input), output_plane = ir::element_count(s.output);
  if (output_plane == 0 || s.output_channels == 0) return;
  const int64_t taps = s.window.taps();
  // Runs are the same for all channels and kept, unless kernel and output are both absurdly big.
  constexpr int64_t kMaxKept = 1 << 22;
  std::vector<std::vector<TapRun>> kept;
  if (taps <= kMaxKept / (output_plane / s.output.back()))
    for (int64_t t = 0; t < taps; ++t) kept.push_back(tap_runs(s, t));
  const int64_t per_group = s.outputs_per_group(), depth = s.channels_per_group(), stride = s.window.strides.back();
  const int64_t blocks = (per_group + kBlock - 1) / kBlock;
  pool.parallel_for(s.batch * s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<A> sums(static_cast<size_t>(kBlock * output_plane));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / (s.groups * blocks), group = item / blocks % s.groups, first = item % blocks * kBlock;
      const int64_t channel = group * per_group + first, count = std::min(kBlock, per_group - first);
      std::fill(sums.begin(), sums.end(), A{});
      A zeros[kBlock] = {};
      for (int64_t m = 0; m < count; ++m) zeros[m] = w_zero(channel + m);
      for (int64_t c = 0; c < depth; ++c) {
        const X* plane = x + (image * s.input_channels + group * depth + c) * input_plane;
        for (int64_t t = 0; t < taps; ++t) {
          A weights[kBlock] = {};
          for (int64_t m = 0; m < count; ++m) weights[m] = static_cast<A>(w[((channel + m) * depth + c) * taps + t]) - zeros[m];
          std::vector<TapRun> fresh;
          if (kept.empty()) fresh = tap_runs(s, t);
          for (const TapRun& run : kept.empty() ? fresh : kept[static_cast<size_t>(t)]) {
            const X* from = plane + run.input;
            A* sum = sums.data() + run.output;
            if (count == 1) {
              for (int64_t i = 0; i < run.count; ++i) sum[i] += (static_cast<A>(from[i * stride]) - x_zero) * weights[0];
              continue;
            }
            A *sum1 = sum + output_plane, *sum2 = sum1 + output_plane, *sum3 = sum2 + output_plane;
            const auto add = [&](int64_t i, A value) {
              sum[i] += value * weights[0];
              sum1[i] += value * weights[1];
              sum2[i] += value * weights[2];
              sum3[i] += value * weights[3];
            };
            if (stride == 1)
              for (int64_t i = 0; i < run.count; ++i) add(i, static_cast<A>(from[i]) - x_zero);
            else
              for (int64_t i = 0; i < run.count; ++i) add(i, static_cast<A>(from[i * stride]) - x_zero);
          }
        }
      }
      for (int64_t m = 0; m < count; ++m)
        store(image, channel + m, std::span<const A>(sums.data() + m * output_plane, static_cast<size_t>(output_plane)));
    }
  });
}

}  // namespace orknn::ops
