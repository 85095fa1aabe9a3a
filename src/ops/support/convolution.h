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
// A bias is [channels].
Status check_bias(const ir::TensorView& bias, int64_t channels);

// For each image and output channel: sums (x - x_zero) * (w - w_zero(channel)) in type A over the taps inside the input
// (padding adds nothing) and calls store(image, channel, sums of the plane) on some thread of the pool.
template <class A, class X, class W, class Zero, class Store>
void convolve(ThreadPool& pool, const ConvShape& s, const X* x, const W* w, A x_zero, Zero&& w_zero, Store&& store) {
  const size_t inner = s.window.rank() - 1;  // the innermost spatial axis runs contiguously
  const int64_t input_plane = ir::element_count(s.input), output_plane = ir::element_count(s.output), taps = s.window.taps();
  const ir::Dims outer_dims(s.output.begin(), s.output.end() - 1);
  const ir::Dims input_strides = ir::strides_of(s.input);
  const int64_t stride = s.window.strides[inner];
  if (output_plane == 0) return;
  pool.parallel_for(s.batch * s.output_channels, 1, [&](int64_t begin, int64_t end) {
    std::vector<A> sums(static_cast<size_t>(output_plane));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / s.output_channels, channel = item % s.output_channels;
      std::fill(sums.begin(), sums.end(), A{});
      const int64_t first = channel / s.outputs_per_group() * s.channels_per_group();
      const A zero = w_zero(channel);
      for (int64_t c = 0; c < s.channels_per_group(); ++c) {
        const X* plane = x + (image * s.input_channels + first + c) * input_plane;
        const W* kernel = w + (channel * s.channels_per_group() + c) * taps;
        ir::Dims tap(s.window.rank(), 0);
        for (int64_t t = 0; t < taps; ++t, next_index(tap, s.window.kernel)) {
          const A weight = static_cast<A>(kernel[t]) - zero;
          const int64_t offset = tap[inner] * s.window.dilations[inner] - s.window.pads_begin[inner];
          const OutputRange range = outputs_inside(offset, stride, s.input[inner], s.output[inner]);
          ir::Dims row(inner, 0);
          A* to = sums.data();
          do {
            int64_t start = 0;
            bool inside = true;
            for (size_t i = 0; i < inner && inside; ++i) {
              const int64_t at = row[i] * s.window.strides[i] + tap[i] * s.window.dilations[i] - s.window.pads_begin[i];
              inside = at >= 0 && at < s.input[i];
              start += at * input_strides[i];
            }
            if (inside && range.begin < range.end) {
              const X* from = plane + start + (range.begin * stride + offset);
              A* sum = to + range.begin;
              const int64_t n = range.end - range.begin;
              if (stride == 1)
                for (int64_t i = 0; i < n; ++i) sum[i] += (static_cast<A>(from[i]) - x_zero) * weight;
              else
                for (int64_t i = 0; i < n; ++i) sum[i] += (static_cast<A>(from[i * stride]) - x_zero) * weight;
            }
            to += s.output[inner];
          } while (next_index(row, outer_dims));
        }
      }
      store(image, channel, std::span<const A>(sums));
    }
  });
}

}  // namespace orknn::ops
